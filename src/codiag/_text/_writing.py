"""Write files atomically, tables as HTML and data by its sizes; escape text that terminals would interpret."""

from __future__ import annotations

import os
import tempfile
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from html import escape
from pathlib import Path
from typing import IO, Any

import numpy as np

TURNS = frozenset(map(chr, [*range(0x202A, 0x202F), *range(0x2066, 0x206A)]))
"""Unicode characters that change the direction of text."""


@contextmanager
def atomic_write(path: Path) -> Iterator[IO[bytes]]:
    """Yield a temporary file in the same folder, which replaces the path at the end: no file is half written."""
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


def write_text(path: Path, text: str) -> None:
    """Write a text file in UTF-8."""
    with atomic_write(path) as file:
        file.write(text.encode())


def save_arrays(path: Path, arrays: dict[str, np.ndarray]) -> None:
    """Write an ``.npz`` file."""
    with atomic_write(path) as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]


def escape_control(text: str) -> str:
    r"""Return text with control characters escaped, which terminals would execute: ESC becomes ``\x1b``.

    Marks that change the direction of text, line separators and unpaired surrogates are escaped, too.
    """
    return "".join(_escaped(letter) for letter in text)


def _escaped(letter: str) -> str:
    if unicodedata.category(letter) in ("Cc", "Cs", "Zl", "Zp") or letter in TURNS:
        return letter.encode("unicode_escape").decode("ascii")
    return letter


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


MOST_ROWS = 30
"""Largest number of rows that a notebook shows."""


def counted(number: int, noun: str) -> str:
    """Return a number and a noun, in the plural unless the number is one."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def listed(items: Sequence[object]) -> str:
    """Return items as words: "1, 2 and 3"."""
    words = [str(item) for item in items]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def text_table(columns: Mapping[str, Iterable[object]]) -> str:
    """Return columns as lines of text, the first at the left, the others at the right."""
    rows = [tuple(columns), *zip(*columns.values(), strict=True)]
    cells = [[escape_control(str(cell)) for cell in row] for row in rows]
    widths = [max(len(row[column]) for row in cells) for column in range(len(columns))]
    lines = ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in cells]
    return "\n".join(lines)


class Table(dict[str, np.ndarray]):
    """Columns by name, shown as a table; ``pandas.DataFrame(table)`` is a data frame."""

    def __repr__(self) -> str:
        return text_table(self._cells())

    def _repr_html_(self) -> str:
        return html_table("", self._cells())

    def _cells(self) -> dict[str, list[str]]:
        return {name: [_shown(value) for value in column.tolist()] for name, column in self.items()}


def _shown(value: object) -> str:
    """Return a cell: numbers to three digits, a dash for what was not computed."""
    if isinstance(value, float):
        return "-" if value != value else f"{value:.3g}"
    return str(value)


def html_paragraphs(text: str) -> str:
    """Return every line of a text as a paragraph of HTML."""
    return f"<div>{''.join(f'<p>{_text(line)}</p>' for line in text.splitlines())}</div>"


def html_table(title: str, columns: Mapping[str, Iterable[object]]) -> str:
    """Return a title and columns as HTML, with all cells as text."""
    head = "".join(f"<th>{_text(name)}</th>" for name in columns)
    rows = list(zip(*columns.values(), strict=True))
    body = "".join(f"<tr>{''.join(f'<td>{_text(cell)}</td>' for cell in row)}</tr>" for row in rows[:MOST_ROWS])
    more = f"<p>{len(rows) - MOST_ROWS} more</p>" if len(rows) > MOST_ROWS else ""
    return f"<div><p>{_text(title)}</p><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}</div>"


def _text(cell: object) -> str:
    return escape(escape_control(str(cell)))


class ReprMixin:
    """Base of data classes that are shown so."""

    def __repr__(self) -> str:
        parts = [f"{part.name}: {described(getattr(self, part.name))}" for part in fields(self)]  # type: ignore[arg-type]
        return f"{type(self).__name__}({'; '.join(parts)})"


def described(value: Any) -> str:
    """Return the sizes of an array, or of each of several; other values as they are."""
    shape = getattr(value, "shape", None)
    if shape is not None:
        return " x ".join(map(str, shape)) or str(value)
    if isinstance(value, list | tuple) and value and all(_has_sizes(item) for item in value):
        return ", ".join(map(described, value))
    return repr(value)


def _has_sizes(value: Any) -> bool:
    """Return whether a value is an array, several of them."""
    if isinstance(value, list | tuple):
        return len(value) > 0 and all(_has_sizes(item) for item in value)
    return hasattr(value, "shape")
