"""Write files whole or not at all, and text of others so that it commands nothing."""

from __future__ import annotations

import os
import re
import tempfile
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import numpy as np

FORMULAS = tuple("=+-@\t\r\n")
"""What begins a formula in a spreadsheet."""
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
TURNS = frozenset(map(chr, [*range(0x202A, 0x202F), *range(0x2066, 0x206A)]))
"""Marks of Unicode that turn the direction in which text is shown."""


@contextmanager
def written_at_once(path: Path) -> Iterator[IO[bytes]]:
    """Give a file beside this one to write to, which takes its place at the end: no reader ever sees half of it."""
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path.parent} is not a folder that exists")
    with tempfile.NamedTemporaryFile(
        dir=path.parent, prefix=f".{path.name}.", suffix=path.suffix, delete=False
    ) as file:
        temporary = Path(file.name)
        try:
            yield file
            file.close()
            temporary.chmod(0o666 & ~_umask())
            temporary.replace(path)
        except BaseException:
            temporary.unlink()
            raise


def save_arrays(path: Path, arrays: dict[str, np.ndarray]) -> None:
    """Write an ``.npz`` file."""
    with written_at_once(path) as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]


def visible(text: str) -> str:
    r"""Return text with control characters written out, since they command a terminal: ESC becomes ``\x1b``.

    So do marks that turn the direction of writing, which show names as others, and halves of characters.
    """
    return "".join(_written_out(letter) if _commands(letter) else letter for letter in text)


def _commands(letter: str) -> bool:
    return unicodedata.category(letter) in ("Cc", "Cs", "Zl", "Zp") or letter in TURNS


def _written_out(letter: str) -> str:
    return letter.encode("unicode_escape").decode("ascii")


def inert(cell: object) -> object:
    """Return a cell of a table for a spreadsheet: text that it would take for a formula gets a quote before it.

    What begins with = + - @, a tab or a line end is run as a formula (OWASP, CSV injection); numbers stay.
    """
    if isinstance(cell, str) and cell[:1] in FORMULAS and not NUMBER.fullmatch(cell):
        return "'" + cell
    return cell


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
