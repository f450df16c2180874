"""Read data frames from files, by whichever library is installed."""

from __future__ import annotations

import csv
import gzip
import itertools
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from codiag._text._reading import readable

SEPARATORS = {".csv": ",", ".tsv": "\t"}
LIBRARIES = ("pandas", "polars")
NUMBERS = (int, float, np.number, Decimal)


class Columns(dict[str, np.ndarray]):
    """Columns by name, where no library for data frames is installed."""

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self)


def ending_of(path: Path) -> str:
    """Return the last suffix of a path, in small letters, before ``.gz``."""
    return Path(path.stem).suffix.lower() if path.suffix.lower() == ".gz" else path.suffix.lower()


def read_frame(path: Path) -> Any:
    """Return the table in a ``.csv`` or ``.tsv`` file, also ``.gz``, or a ``.parquet`` file; a first line has names."""
    with readable(path):
        if ending_of(path) == ".parquet":
            return _read_parquet(path)
        first = _first_lines(path)
        if not first:
            raise ValueError(f"{path.name} is empty")
        separator = separator_of(path, first[0])
        comma = separator == ";" and any(has_decimal_comma(field) for line in first for field in line.split(";"))
        library = _installed()
        if library is None:
            return _read_csv(path, separator, comma=comma)
        if library.__name__ == "pandas":
            return library.read_csv(path, sep=separator, decimal="," if comma else ".")
        return library.read_csv(path, separator=separator, decimal_comma=comma)


def separator_of(path: Path, first: str) -> str:
    """Return what stands between fields: a semicolon in files of that ending which have no comma in the first line."""
    separator = SEPARATORS[ending_of(path)]
    return ";" if separator == "," and ";" in first and "," not in first else separator


def has_decimal_comma(field: str) -> bool:
    """Tell whether a field is a number with a comma before its decimals."""
    return "." not in field and field.count(",") == 1 and is_number(field.replace(",", "."))


def is_number(field: str) -> bool:
    """Tell whether a field is a number."""
    try:
        float(field)
    except ValueError:
        return False
    return True


def as_entries(name: Any, column: Any) -> np.ndarray:
    """Return a column of numbers, or raise and name the first value that is none."""
    entries = np.asarray(column)
    if not entries.size:
        raise ValueError("tensor must not be empty; the table has no rows")
    if entries.dtype.kind in "buif":
        return entries
    if entries.dtype.kind == "O" and all(one is None or isinstance(one, NUMBERS) for one in entries.tolist()):
        return np.array([np.nan if one is None else one for one in entries.tolist()], dtype=np.float64)
    texts = [str(one) for one in entries.tolist()]
    bad = [place for place, text in enumerate(texts) if not is_number(text)] or list(range(len(texts)))
    column_named = "" if name is None else f", column {str(name)!r},"
    way_out = "Leave a cell empty where it is missing"
    if len(bad) == len(texts):
        way_out = "Name another column by `value`, as in codiag.io.labelled_tensor(table, value=...)"
    raise TypeError(
        f"the values of a table{column_named} must be numbers; {len(bad)} of {len(texts)} are not, the first in row "
        f"{bad[0] + 1}: {texts[bad[0]]!r:.60}. {way_out}"
    )


def _first_lines(path: Path, n_lines: int = 20) -> list[str]:
    """Return the first lines that are not empty."""
    with _opened(path) as file:
        return list(itertools.islice((line for line in map(str, file) if line.strip()), n_lines))


def _opened(path: Path) -> Any:
    if path.suffix.lower() == ".gz":
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return path.open(encoding="utf-8-sig", newline="")


def _installed() -> Any:
    for name in LIBRARIES:
        try:
            return import_module(name)
        except ImportError:
            continue
    return None


def _read_csv(path: Path, separator: str, *, comma: bool) -> Columns:
    with _opened(path) as file:
        names, *rows = [row for row in csv.reader(file, delimiter=separator) if row] or [[]]
    wrong = next((number for number, row in enumerate(rows, 2) if len(row) != len(names)), None)
    if wrong is not None:
        raise ValueError(f"row {wrong} of {path.name} has {len(rows[wrong - 2])} columns, not {len(names)}")
    if comma:
        rows = [[field.replace(",", ".") if has_decimal_comma(field) else field for field in row] for row in rows]
    fields = zip(*rows, strict=True) if rows else [()] * len(names)
    return Columns({name: _typed(column) for name, column in zip(names, fields, strict=True)})


def _typed(column: tuple[str, ...]) -> np.ndarray:
    """Return integers or numbers where all fields are, an empty one being NaN; otherwise text."""
    raw = np.array(column, dtype=str)
    try:
        return raw.astype(np.int64)
    except ValueError:
        pass
    try:
        return np.where(raw == "", "nan", raw).astype(np.float64)
    except ValueError:
        return raw


def _read_parquet(path: Path) -> Any:
    for name in LIBRARIES:
        try:
            return import_module(name).read_parquet(path)
        except ImportError:
            continue
    raise ValueError(f"{path.name}: reading .parquet files needs polars, or pandas with pyarrow; install one of them")
