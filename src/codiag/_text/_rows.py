"""Rows of delimited text files, and error messages that name the lines that cannot be read."""

from __future__ import annotations

import csv
import gzip
import zlib
from pathlib import Path

from codiag._text._frames import SEPARATORS, ending_of, read_frame, separator_of
from codiag._text._reading import as_file

ABSENT = {"", "na", "nan", "null", "none"}
"""Texts that mark a missing value."""


SHOWN = 5
"""Number of bad lines that an error message names."""


def checked_ending(path: Path, endings: tuple[str, ...], *, must_exist: bool = True) -> str:
    """Return the ending of a path, which must be one of these."""
    ending = ending_of(path)
    if must_exist and (path.is_dir() or not path.exists()):
        as_file("path", path)
    if ending not in endings:
        more = "; .gz may follow" if must_exist else ""
        raise ValueError(f"path must end in {', '.join(endings)}{more}; got {path}")
    if must_exist:
        as_file("path", path)
    return ending


def table_rows(path: Path) -> list[tuple[int, list[str]]]:
    """Return the lines of a ``.csv``, ``.tsv`` or ``.parquet`` table as text, names of columns first, with numbers."""
    ending = checked_ending(path, (*SEPARATORS, ".parquet"))
    if ending != ".parquet":
        return rows_of(path, SEPARATORS[ending])
    frame = read_frame(path)
    columns = [[_as_text(cell) for cell in frame[name].to_list()] for name in frame.columns]
    header = [str(name) for name in frame.columns]
    return [(1, header), *((number, list(row)) for number, row in enumerate(zip(*columns, strict=True), 2))]


def _as_text(cell: object) -> str:
    return "" if cell is None or cell != cell else str(cell)


def rows_of(path: Path, separator: str | None) -> list[tuple[int, list[str]]]:
    """Return the fields of lines that are not empty, with line numbers; without a separator, split at blanks."""
    try:
        with (
            gzip.open(path, "rt", encoding="utf-8-sig")
            if path.suffix == ".gz"
            else path.open(encoding="utf-8-sig") as file
        ):
            if separator is None:
                lines = ((number, line.replace(",", " ").split()) for number, line in enumerate(file, 1))
                return [(number, fields) for number, fields in lines if fields]
            separator = separator_of(path, file.readline())
            file.seek(0)
            reader = csv.reader(file, delimiter=separator)
            return [(reader.line_num, row) for row in reader if row]
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path.name} cannot be read as text; save it as UTF-8, and end a packed file in .gz"
        ) from error
    except (csv.Error, OSError, EOFError, zlib.error) as error:
        raise ValueError(f"{path.name} cannot be read: {error}") from error


def refuse_lines(name: str, bad: list[str], what: str, way_out: str = "") -> None:
    """Raise where lines are bad, and name the first of them and the way out."""
    if bad:
        more = f", and {len(bad) - SHOWN} more" if len(bad) > SHOWN else ""
        count = "1 line" if len(bad) == 1 else f"{len(bad)} lines"
        end = f". {way_out}" if way_out else ""
        raise ValueError(f"{count} of {name} cannot be read as {what}: {', '.join(bad[:SHOWN])}{more}{end}")


def is_whole(field: str) -> bool:
    """Tell whether a field is an integer without leading zeros."""
    digits = field.removeprefix("-")
    return digits.isascii() and digits.isdigit() and len(digits) < 19 and (digits == "0" or digits[0] != "0")
