"""Write files atomically and tables as HTML; escape text that terminals and browsers would interpret."""

from __future__ import annotations

import os
import tempfile
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from html import escape
from pathlib import Path
from typing import IO

import numpy as np

TURNS = frozenset(map(chr, [*range(0x202A, 0x202F), *range(0x2066, 0x206A)]))
"""Unicode characters that change the direction of text."""


@contextmanager
def written_at_once(path: Path) -> Iterator[IO[bytes]]:
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
    with written_at_once(path) as file:
        file.write(text.encode())


def save_arrays(path: Path, arrays: dict[str, np.ndarray]) -> None:
    """Write an ``.npz`` file."""
    with written_at_once(path) as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]


def visible(text: str) -> str:
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


def text_table(columns: Mapping[str, Iterable[object]]) -> str:
    """Return columns as lines of text, the first at the left, the others at the right."""
    rows = [tuple(columns), *zip(*columns.values(), strict=True)]
    cells = [[visible(str(cell)) for cell in row] for row in rows]
    widths = [max(len(row[column]) for row in cells) for column in range(len(columns))]
    lines = ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in cells]
    return "\n".join(lines)


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
    return escape(visible(str(cell)))
