"""Read data frames from files, by whichever library is installed."""

from __future__ import annotations

import csv
import gzip
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from codiag._reading import readable

SEPARATORS = {".csv": ",", ".tsv": "\t"}
LIBRARIES = ("pandas", "polars")


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
        separator = separator_of(path, _first_line(path))
        library = _installed()
        if library is None:
            return _read_csv(path, separator)
        name = "sep" if library.__name__ == "pandas" else "separator"
        return library.read_csv(path, **{name: separator})


def separator_of(path: Path, first: str) -> str:
    """Return what stands between fields: a semicolon in files of that ending which have no comma in the first line."""
    separator = SEPARATORS[ending_of(path)]
    return ";" if separator == "," and ";" in first and "," not in first else separator


def _first_line(path: Path) -> str:
    with _opened(path) as file:
        return str(file.readline())


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


def _read_csv(path: Path, separator: str) -> Columns:
    with _opened(path) as file:
        names, *rows = [row for row in csv.reader(file, delimiter=separator) if row] or [[]]
    wrong = next((number for number, row in enumerate(rows, 2) if len(row) != len(names)), None)
    if wrong is not None:
        raise ValueError(f"row {wrong} of {path.name} has {len(rows[wrong - 2])} columns, not {len(names)}")
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
