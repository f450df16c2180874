"""Tables: rows of text files, columns of files, and data frames of every library that narwhals knows."""

from __future__ import annotations

import csv
import zlib
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from codiag._text._encoding import open_text
from codiag._text._files import checked_ending, ending_of, readable
from codiag._text._json_lines import JSON_LINES, json_rows
from codiag._text._separators import SAMPLED, SEPARATORS, first_lines, has_decimal_comma, separator_of

PARQUET = {"pandas": "read_parquet", "polars": "read_parquet", "pyarrow.parquet": "read_table"}
"""Functions that read .parquet files, by module; pandas first, since it alone restores an index as one."""
EXCEL = {"pandas": "read_excel", "polars": "read_excel"}
"""Functions that read the first sheet of .xlsx files, by module; each needs another library, which it names."""
PACKAGES = {".parquet": "pyarrow", ".xlsx": "pandas openpyxl"}
"""What to install if none of these libraries can read a file, by its ending."""
TABLES = (*SEPARATORS, *PACKAGES)
"""Endings of tables; .gz may follow those of text."""
ABSENT = {"", "na", "nan", "null", "none"}
"""Texts, in small letters, that mark a missing value among numbers."""
SHOWN = 5
"""Number of bad lines that an error message names."""


class Columns(dict[str, np.ndarray]):
    """Columns of a text file by name; numbers if all cells are, otherwise text with None for empty cells."""

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self)


def as_frame(raw: Any) -> Any:
    """Return a data frame as one of narwhals, collected if it is lazy; None if `raw` is no data frame."""
    if isinstance(raw, Columns):
        return raw
    import narwhals.stable.v1 as nw

    try:
        frame = nw.from_native(raw, pass_through=True)
        frame = frame.collect() if isinstance(frame, nw.LazyFrame) else frame
        return frame if isinstance(frame, nw.DataFrame) and frame.columns is not None else None
    except ValueError as error:  # two columns of one name
        raise ValueError(f"a table must have columns of different names: {' '.join(str(error).split())}") from error


def column_of(frame: Any, name: Any) -> Any:
    """Return a column of a data frame: a Series of narwhals, or an array if the frame is `Columns`."""
    return frame[name] if isinstance(frame, Columns) else frame.get_column(name)


def values_of(column: Any) -> np.ndarray:
    """Return a column as an array; missing cells are None among objects, NaN among numbers, NaT among times."""
    if isinstance(column, np.ndarray):
        return column
    values: np.ndarray = column.to_numpy()
    if values.dtype.kind == "O":
        values = values.copy()
        values[column.is_null().to_numpy()] = None
    return values


def categories_of(column: Any) -> list[Any] | None:
    """Return the categories of a column in their order; None if it has none, or if polars sorts them as text."""
    if isinstance(column, np.ndarray):
        return None
    import narwhals.stable.v1 as nw

    if column.dtype not in (nw.Categorical, nw.Enum):
        return None
    if column.dtype == nw.Categorical and column.implementation.is_polars():
        return None
    try:
        categories: list[Any] = column.cat.get_categories().to_list()
    except AttributeError:  # pandas has no accessor for dictionaries of pyarrow
        return None
    return categories


def read_frame(path: Path) -> Any:
    """Return the table in a text file, also ``.gz``, a ``.parquet`` or an ``.xlsx`` file; a first line has names."""
    with readable(path):
        return _read_binary(path) if ending_of(path) in PACKAGES else _read_columns(path)


def _read_binary(path: Path) -> Any:
    ending = ending_of(path)
    for module, function in (PARQUET if ending == ".parquet" else EXCEL).items():
        try:
            return as_frame(getattr(import_module(module), function)(path))
        except ImportError:
            continue
    raise ValueError(
        f"{path.name} cannot be read: no library that reads {ending} files is installed. Get one with: pip install "
        f"{PACKAGES[ending]}"
    )


def _read_columns(path: Path) -> Columns:
    if not first_lines(path, 1):
        raise ValueError(f"{path.name} is empty")
    separator = separator_of(path)
    try:
        with open_text(path) as file:
            cells = np.loadtxt(file, dtype=object, delimiter=separator, quotechar='"', comments=None, ndmin=2)
    except ValueError:
        _refuse_ragged(path, separator)
        raise
    names = cells[0].tolist()
    if len(set(names)) < len(names):
        raise ValueError(f"line 1 of {path.name} must name columns differently; it reads {', '.join(names)[:80]}")
    if separator != "," and any(map(has_decimal_comma, cells[1 : 1 + SAMPLED].ravel())):
        cells = np.vectorize(lambda cell: cell.replace(",", ".") if has_decimal_comma(cell) else cell, "O")(cells)
    return Columns(zip(names, map(_typed, cells[1:].T), strict=True))


def _refuse_ragged(path: Path, separator: str) -> None:
    """Raise if a line has more or fewer fields than the first."""
    (_, names), *rows = rows_of(path, separator)
    for number, row in rows:
        if len(row) != len(names):
            raise ValueError(f"line {number} of {path.name} has {len(row)} columns, not {len(names)}")


def _typed(cells: np.ndarray) -> np.ndarray:
    """Return integers, numbers or truth values if all cells are; otherwise text, None for empty cells."""
    try:
        return cells.astype(np.int64)
    except (ValueError, OverflowError):
        pass
    try:
        return np.array([float(cell) if cell.strip().lower() not in ABSENT else np.nan for cell in cells])
    except ValueError:
        pass
    if all(cell in ("True", "False") for cell in cells):
        return np.asarray(cells == "True")
    return np.array([cell or None for cell in cells], dtype=object)


def is_whole(field: str) -> bool:
    """Return whether a field is an integer without leading zeros."""
    digits = field.removeprefix("-")
    return digits.isascii() and digits.isdigit() and len(digits) < 19 and (digits == "0" or digits[0] != "0")


def table_rows(path: Path) -> list[tuple[int, list[str]]]:
    """Return the lines of a table or of JSON objects as text, with numbers; the first has the names."""
    ending = checked_ending(path, (*SEPARATORS, *JSON_LINES, *PACKAGES))
    if ending in JSON_LINES:
        return json_rows(path)
    if ending not in PACKAGES:
        return rows_of(path, SEPARATORS[ending])
    frame = read_frame(path)
    columns = [_texts(column_of(frame, name)) for name in frame.columns]
    header = [str(name) for name in frame.columns]
    return [(1, header), *((number, list(row)) for number, row in enumerate(zip(*columns, strict=True), 2))]


def _texts(column: Any) -> list[str]:
    """Return the cells of a column as text, empty if they are missing."""
    cells, missing = column.to_list(), column.is_null().to_list()
    return ["" if is_missing or cell != cell else str(cell) for cell, is_missing in zip(cells, missing, strict=True)]


def rows_of(path: Path, separator: str | None) -> list[tuple[int, list[str]]]:
    """Return the fields of lines that are not empty, with line numbers; without a separator, split at blanks."""
    try:
        separator = separator if separator is None else separator_of(path)
        with open_text(path) as file:
            if separator is None:
                lines = ((number, line.replace(",", " ").split()) for number, line in enumerate(file, 1))
                return [(number, fields) for number, fields in lines if fields]
            reader = csv.reader(file, delimiter=separator)
            return [(reader.line_num, row) for row in reader if row]
    except (csv.Error, OSError, EOFError, zlib.error) as error:
        raise ValueError(f"{path.name} cannot be read: {error}") from error


def refuse_lines(name: str, bad: list[str], what: str, way_out: str = "") -> None:
    """Raise if lines are bad; the message names the first of them and the way out."""
    if bad:
        more = f", and {len(bad) - SHOWN} more" if len(bad) > SHOWN else ""
        count = "1 line" if len(bad) == 1 else f"{len(bad)} lines"
        end = f". {way_out}" if way_out else ""
        raise ValueError(f"{count} of {name} cannot be read as {what}: {', '.join(bad[:SHOWN])}{more}{end}")
