"""The standard input and output in place of files, by the name ``-``."""

from __future__ import annotations

import gzip
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

STREAM = Path("-")
BEGINNINGS = {
    b"\x93NUMPY": ".npy",
    b"PK\x03\x04": ".npz",
    b"\x89HDF\r\n": ".h5",
    b"PAR1": ".parquet",
    b"MATLAB": ".mat",
    b"<?xml": ".graphml",
    b"<graphml": ".graphml",
}
"""How files of a kind begin; what begins otherwise is text."""


def spooled(folder: Path, text_ending: str) -> Path:
    """Write the standard input to a file in a folder, with the ending of what it holds, and return its path."""
    content = sys.stdin.buffer.read()
    if not content.strip():
        raise ValueError("the standard input is empty; - reads what another program writes, as in cat FILE | codiag")
    if content[:2] == b"\x1f\x8b":
        content = gzip.decompress(content)
    ending = next((kind for start, kind in BEGINNINGS.items() if content.startswith(start)), None)
    path = folder / f"standard input{ending or _text_kind(content, text_ending)}"
    path.write_bytes(content)
    return path


def write_to_stdout(write: Callable[[Path], None], ending: str) -> None:
    """Write what belongs into a file to the standard output, all of it or nothing."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"stdout{ending}"
        write(path)
        sys.stdout.flush()
        sys.stdout.buffer.write(path.read_bytes())
        sys.stdout.buffer.flush()


def _text_kind(content: bytes, expected: str) -> str:
    """Tell a list of entries as FROSTT has it, and tables with commas or tabs, where one of these is expected."""
    if expected == ".txt":
        return expected
    first = next((line for line in content.splitlines() if line.strip() and not line.startswith(b"#")), b"")
    if expected == ".tns" and all(_is_number(one) for one in first.split()):
        return ".tns"
    return ".tsv" if b"\t" in first and b"," not in first else ".csv"


def _is_number(field: bytes) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True
