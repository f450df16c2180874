"""Votes and edges from files, and tables to files."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from codiag._writing import written_at_once

NAMES = {
    "task": ("task", "item", "question"),
    "worker": ("worker", "rater", "annotator", "performer"),
    "label": ("label", "rating", "answer", "response"),
}
"""What the columns of votes may be called."""
SEPARATORS = {".csv": ",", ".tsv": "\t"}
SHOWN = 5
"""Bad lines that are named."""


def read_votes(path: str | Path) -> dict[str, np.ndarray]:
    """Read votes: the columns task, worker and label of a table.

    Parameters
    ----------
    path : str or Path
        A ``.csv`` or ``.tsv`` file, also ``.gz``, or a ``.parquet`` file. The first line names the columns, of which
        others are left out; without names there must be three columns of whole numbers. Columns of whole numbers are
        read as such, others as text.
    """
    path = Path(path)
    ending = _ending(path, (*SEPARATORS, ".parquet"))
    if ending == ".parquet":
        return _read_parquet(path)
    with _opened(path) as file:
        rows = [(number, row) for number, row in _rows(file, SEPARATORS[ending]) if row]
    if not rows:
        raise ValueError(f"{path.name} holds no votes")
    places, named = _columns(path.name, rows[0][1])
    votes = rows[1:] if named else rows
    _check_rows(path.name, votes, places)
    if not votes:
        raise ValueError(f"{path.name} holds no votes, only names of columns")
    return {name: _as_column([row[place].strip() for _, row in votes]) for name, place in places.items()}


def read_edges(path: str | Path) -> np.ndarray:
    """Read pairs of linked nodes (n_edges, 2), one on every line, between blanks, tabs or commas.

    Lines that begin with # or % are left out, as is what follows the two nodes.
    """
    path = Path(path)
    _ending(path, (".txt", ".csv", ".tsv", ".edges", ".edgelist"))
    ends, bad = [], []
    with _opened(path) as file:
        for number, line in enumerate(file, 1):
            fields = line.replace(",", " ").split()
            if not fields or fields[0][0] in "#%":
                continue
            if len(fields) < 2:
                bad.append(f"line {number} has one node")
            ends.append(fields[:2])
    _refuse(path.name, bad, "edges")
    if not ends:
        raise ValueError(f"{path.name} holds no edges")
    try:
        return np.array(ends, dtype=np.int64)
    except ValueError:
        return np.array(ends)


def write_table(path: str | Path, columns: Mapping[str, Iterable[Any]]) -> None:
    """Write columns to a ``.csv`` or ``.tsv`` file, whole or not at all."""
    path = Path(path)
    separator = SEPARATORS[_ending(path, tuple(SEPARATORS), must_exist=False)]
    with written_at_once(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
        writer = csv.writer(text, delimiter=separator, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
        text.detach()


def _ending(path: Path, endings: tuple[str, ...], *, must_exist: bool = True) -> str:
    ending = Path(path.stem).suffix.lower() if path.suffix == ".gz" else path.suffix.lower()
    if ending not in endings:
        raise ValueError(f"{path.name} must end in {', '.join(endings)}")
    if must_exist and not path.is_file():
        raise FileNotFoundError(f"{path} is not a file")
    return ending


def _opened(path: Path) -> Any:
    return gzip.open(path, "rt", encoding="utf-8-sig") if path.suffix == ".gz" else path.open(encoding="utf-8-sig")


def _rows(file: Any, separator: str) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(file, delimiter=separator)
    try:
        for row in reader:
            yield reader.line_num, row
    except (csv.Error, UnicodeDecodeError, OSError, EOFError) as error:
        raise ValueError(
            f"{Path(file.name).name} cannot be read from line {reader.line_num + 1} on: {error}"
        ) from error


def _columns(name: str, first: list[str]) -> tuple[dict[str, int], bool]:
    """Return where the columns are, and whether the first line names them."""
    given = [field.strip().lower() for field in first]
    places = {
        column: next((given.index(word) for word in words if word in given), -1) for column, words in NAMES.items()
    }
    if min(places.values()) >= 0:
        return places, True
    if len(first) == 3 and all(_is_whole(field) for field in given):
        return dict(zip(NAMES, range(3), strict=True)), False
    raise ValueError(f"line 1 of {name} must name the columns task, worker and label; it reads {', '.join(first)[:80]}")


def _check_rows(name: str, votes: list[tuple[int, list[str]]], places: dict[str, int]) -> None:
    bad = []
    for number, row in votes:
        if len(row) <= max(places.values()):
            bad.append(f"line {number} has {len(row)} columns")
        else:
            empty = [column for column, place in places.items() if not row[place].strip()]
            bad += [f"line {number} has no {' and no '.join(empty)}"] if empty else []
    _refuse(name, bad, "votes")


def _refuse(name: str, bad: list[str], what: str) -> None:
    if bad:
        more = f", and {len(bad) - SHOWN} more" if len(bad) > SHOWN else ""
        raise ValueError(f"{len(bad)} lines of {name} are not {what}: {', '.join(bad[:SHOWN])}{more}")


def _as_column(fields: list[str]) -> np.ndarray:
    """Return whole numbers where all are, unless that would lose leading zeros; else text."""
    if all(_is_whole(field) for field in fields):
        return np.array([int(field) for field in fields])
    return np.array(fields)


def _is_whole(field: str) -> bool:
    digits = field.removeprefix("-")
    return digits.isascii() and digits.isdigit() and len(digits) < 19 and (digits == "0" or digits[0] != "0")


def _read_parquet(path: Path) -> dict[str, np.ndarray]:
    frame = _parquet_frame(path)
    places, _ = _columns(path.name, [str(column) for column in frame.columns])
    return {name: np.asarray(frame[frame.columns[place]]) for name, place in places.items()}


def _parquet_frame(path: Path) -> Any:
    for reader in ("pandas", "polars"):
        try:
            return __import__(reader).read_parquet(path)
        except ImportError:
            continue
        except (OSError, ValueError) as error:
            raise ValueError(f"{path.name} is not a readable .parquet file: {error}") from error
    raise ValueError(f"{path.name}: reading .parquet files needs polars, or pandas with pyarrow; install one of them")
