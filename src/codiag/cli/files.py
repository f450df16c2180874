"""Files that commands read and write, with ``-`` for the standard input and output.

What a command is to write is checked before it starts to work.
"""

from __future__ import annotations

import gzip
import itertools
import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path

from codiag._text import is_number, text_start
from codiag.cli.terminal import fail

PICTURES = {".png", ".svg", ".pdf"}
TABLES = {".csv", ".tsv"}
ARRAYS = {".npz"}
PAGES = {".html"}
Outputs = Mapping[str, tuple[Path | None, set[str]]]
"""For every option, the file that it names, if any, and the endings that are allowed."""
STREAM = Path("-")
"""The standard input or output."""
BEGINNINGS = {
    b"\x93NUMPY": ".npy",
    b"PK\x03\x04": ".npz",
    b"\x89HDF\r\n": ".h5",
    b"PAR1": ".parquet",
    b"MATLAB": ".mat",
    b"CDF": ".nc",
    b"<?xml": ".graphml",
    b"<graphml": ".graphml",
}
"""First bytes of binary files and of GraphML; what begins otherwise is text."""


def check_outputs(outputs: Outputs, sources: Sequence[Path] = (), *, force: bool) -> None:
    """Exit if a result could not be written, or would replace a file that exists.

    The input files `sources` are never replaced, whatever the name that is given; other files only with `force`.
    """
    from codiag.io import split_dataset

    named = {option: path for option, (path, _) in outputs.items() if path is not None}
    streams = [option for option, path in named.items() if path == STREAM]
    if len(streams) > 1:
        fail(f"{streams[0]} and {streams[1]} must not both be -, the standard output; name a file for one")
    for option in streams:
        _check_stream(option, outputs[option][1])
        del named[option]
    for option, path in named.items():
        for source, _ in map(split_dataset, sources):
            if _is_same_file(path, source):
                fail(f"{option} must not be the file that is read, {source}; choose another name")
            if source.suffix.lower() == ".zarr" and path.resolve().is_relative_to(source.resolve()):
                fail(f"{option} must not lie in the folder that is read, {source}; choose another folder")
        _check_writable(path, option, outputs[option][1])
    for (first, path), (second, other) in itertools.combinations(named.items(), 2):
        if _is_same_file(path, other):
            fail(f"{first} and {second} must be two files; both are {path}")
    for option, path in named.items():
        if path.exists() and not force:
            fail(f"{option} must not be a file that exists, unless it is to be replaced: {path}. Then add --force")
    if named.keys() & {"--figure", "--report"}:
        import_module("matplotlib")  # its absence is reported before the work rather than after it


def _check_stream(option: str, endings: set[str]) -> None:
    if endings & PICTURES:
        fail(f"{option} must be a file; pictures are not written to the standard output")
    ending = stream_ending(endings)
    if ending not in TABLES and sys.stdout.isatty():
        fail(f"{option} must not be - on a terminal, which cannot show {ending} files; add > FILE or | PROGRAM")


def _is_same_file(path: Path, other: Path) -> bool:
    """Return whether two paths are one file, also through symbolic or hard links."""
    if path.resolve() == other.resolve():
        return True
    return path.exists() and other.exists() and path.samefile(other)


def _check_writable(path: Path, option: str, endings: set[str]) -> None:
    parent = path.resolve().parent
    if not parent.is_dir():
        fail(f"{option} must be in a folder that exists; {parent} does not")
    if path.suffix.lower() not in endings:
        fail(f"{option} must end in {', '.join(sorted(endings))}; got {path.name}")
    if path.is_dir() or not os.access(path if path.exists() else parent, os.W_OK):
        fail(f"{option} must be a file that can be written; {path} is not")


def stream_ending(endings: set[str]) -> str:
    """Return the ending of the format that goes to the standard output: text if that is allowed."""
    return ".csv" if ".csv" in endings else min(endings)


def write_to_stdout(write: Callable[[Path], object], ending: str) -> None:
    """Write what belongs into a file to the standard output, all of it or nothing."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"stdout{ending}"
        write(path)
        sys.stdout.flush()
        sys.stdout.buffer.write(path.read_bytes())
        sys.stdout.buffer.flush()


def spooled(folder: Path, text_ending: str) -> Path:
    """Write the standard input to a file in a folder, with the ending of its format, and return its path."""
    content = sys.stdin.buffer.read()
    if not content.strip():
        raise ValueError("the standard input is empty; - reads what another program writes, as in cat FILE | codiag")
    if content[:2] == b"\x1f\x8b":
        content = gzip.decompress(content)
    ending = next((kind for start, kind in BEGINNINGS.items() if content.startswith(start)), None)
    if ending == ".npz" and b"xl/workbook" in content:
        ending = ".xlsx"
    path = folder / f"standard input{ending or _text_ending(content, text_ending)}"
    path.write_bytes(content)
    return path


def _text_ending(content: bytes, expected: str) -> str:
    """Return .tns for a FROSTT list, .jsonl for JSON lines, .csv for a table; .txt if a command expects that."""
    if expected == ".txt":
        return expected
    lines = text_start(content).splitlines()
    first = next((line for line in lines if line.strip() and not line.startswith("#")), "")
    if expected == ".tns" and all(is_number(field) for field in first.split()):
        return ".tns"
    return ".jsonl" if first.lstrip().startswith("{") else ".csv"
