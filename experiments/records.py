"""Records of trials in a folder, which several processes may write to at once and any of them may be killed in."""

from __future__ import annotations

import csv
import gzip
import itertools
import json
import os
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import IO, Any, Self

fcntl: Any
try:
    import fcntl
except ImportError:  # where files cannot be locked, one process at a time is to work in a folder
    fcntl = None

Cell = dict[str, Any]
Values = dict[str, float]


@dataclass(frozen=True)
class Record:
    """What one trial gave: its place on the axes, a number for every name, and how it was obtained.

    `seconds` is CPU time, `refused` the reason if the trial cannot be run, `seed` the seed of the trial, and `version`
    the version of the code that ran it.
    """

    cell: Cell
    values: Values
    seconds: float = field(default=float("nan"), compare=False)
    refused: str = ""
    seed: int = field(default=0, compare=False)
    version: str = field(default="", compare=False)


class Journal:
    """The records of one experiment: one JSON line each, in one file of a folder; an `archive` is read first.

    A line that a killed process has cut, and one that holds no record, is passed over; what is written next begins a
    line of its own.
    """

    def __init__(self, folder: Path, name: str, archive: Path | None = None) -> None:
        self.path = folder / f"{name}.jsonl"
        self.records: dict[str, Record] = read_archive(archive, name) if archive else {}
        self._read = 0

    def refresh(self) -> None:
        """Take in what has been written since the last time, by whomever."""
        if not self.path.exists():
            return
        with self.path.open("rb") as file:
            file.seek(self._read)
            text = file.read()
        end = text.rfind(b"\n") + 1  # the rest may still be in writing
        self._read += end
        for line in text[:end].splitlines():
            record = _parsed(line)
            if record is not None:
                self.records.setdefault(cell_key(record.cell), record)

    def append(self, record: Record) -> None:
        """Write a record, whole and on a line of its own."""
        self.records[cell_key(record.cell)] = record
        line = as_line(record)
        with self.path.open("a+b") as file, locked(file):
            size = file.seek(0, os.SEEK_END)
            if size and _last_byte(file) != b"\n":
                line = b"\n" + line
            file.write(line)


class Reservations:
    """Which trials are being run by which process, so that those in one folder share the work.

    Every process has a file that it keeps locked while it lives: what the dead have reserved is free again.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder / ".claims"
        self._folder.mkdir(parents=True, exist_ok=True)
        self._own = self._folder / f"{os.getpid()}-{uuid.uuid4().hex}"

    def __enter__(self) -> Self:
        self._file = self._own.open("a+b")
        if fcntl is not None:
            fcntl.flock(self._file, fcntl.LOCK_EX)
        return self

    def __exit__(self, *_: object) -> None:
        self._own.unlink(missing_ok=True)
        self._file.close()

    @contextmanager
    def choosing(self) -> Iterator[set[str]]:
        """Give the keys that others work on, while nobody else may choose."""
        with (self._folder / "lock").open("a+b") as file, locked(file):
            yield self._taken()

    def add(self, keys: Iterable[str]) -> None:
        """Reserve trials; only while choosing."""
        self._file.write("".join(f"{key}\n" for key in keys).encode())
        self._file.flush()

    def _taken(self) -> set[str]:
        taken: set[str] = set()
        for path in self._folder.iterdir():
            if path.name == "lock" or path == self._own:
                continue
            try:
                with path.open("rb") as file:
                    if _is_free(file):
                        path.unlink(missing_ok=True)
                    else:
                        taken.update(file.read().decode().splitlines())
            except FileNotFoundError:  # its owner has just ended
                continue
        return taken


def as_line(record: Record) -> bytes:
    """Return a record as a line of JSON, numbers rounded to seven digits."""
    values = {name: float(f"{value:.7g}") for name, value in record.values.items()}
    entry: dict[str, Any] = {"cell": record.cell, "values": values, "seconds": record.seconds}
    if record.refused:
        entry["refused"] = record.refused
    if record.version:
        entry |= {"seed": record.seed, "version": record.version}
    return json.dumps(entry).encode() + b"\n"


def read_archive(folder: Path, name: str) -> dict[str, Record]:
    """Return the records of a compressed file, by their places; none if there is no file."""
    path = folder / f"{name}.jsonl.gz"
    if not path.exists():
        return {}
    parsed = (_parsed(line) for line in gzip.decompress(path.read_bytes()).splitlines())
    return {cell_key(record.cell): record for record in parsed if record is not None}


def write_archive(folder: Path, name: str, records: Iterable[Record]) -> None:
    """Write records into a compressed file: the same bytes for the same records."""
    folder.mkdir(parents=True, exist_ok=True)
    text = b"".join(as_line(record) for record in records)
    (folder / f"{name}.jsonl.gz").write_bytes(gzip.compress(text, 9, mtime=0))


def cell_key(cell: Cell) -> str:
    """Return a name for a place on the axes."""
    return json.dumps(cell, sort_keys=True)


def agree(one: Record, two: Record, tolerance: float = 0.01) -> bool:
    """Tell whether two records of a trial have the same numbers, times left out."""
    names = [name for name in one.values if name in two.values and not name.endswith("seconds")]
    pairs = [(one.values[name], two.values[name]) for name in names]
    return all(abs(a - b) <= tolerance * max(abs(a), abs(b)) or (a != a and b != b) for a, b in pairs)


def combinations(axes: Mapping[str, Sequence[Any]]) -> list[Cell]:
    """Return every combination of the values of axes, the last one innermost."""
    return [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]


def select(records: Sequence[Record], **place: Any) -> list[Record]:
    """Return the records at a place on some axes."""
    return [record for record in records if all(record.cell.get(axis) == value for axis, value in place.items())]


def as_csv(records: Iterable[Record]) -> str:
    """Return records as a table with a row for every number."""
    records = list(records)
    axes = list(dict.fromkeys(axis for record in records for axis in record.cell))
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*axes, "name", "value"])
    for record in records:
        place = [record.cell.get(axis, "") for axis in axes]
        writer.writerows([*place, name, repr(value)] for name, value in record.values.items())
    return text.getvalue()


@contextmanager
def locked(file: IO[bytes]) -> Iterator[None]:
    """Keep every other process that asks out, until this one is done."""
    if fcntl is not None:
        fcntl.flock(file, fcntl.LOCK_EX)
    try:
        yield
    finally:
        file.flush()
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_UN)


def _is_free(file: IO[bytes]) -> bool:
    if fcntl is None:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _last_byte(file: IO[bytes]) -> bytes:
    file.seek(-1, os.SEEK_END)
    return file.read(1)


def _parsed(line: bytes) -> Record | None:
    """Return the record of a line, if it is one."""
    try:
        entry = json.loads(line)
        entry = _with_method(entry) if "method" in entry else entry
        cell, values = entry["cell"], entry["values"]
        if not isinstance(cell, dict) or not isinstance(values, dict):
            return None
        numbers = {str(name): float(value) for name, value in values.items()}
        seconds, refused = float(entry.get("seconds", "nan")), str(entry.get("refused", ""))
        return Record(cell, numbers, seconds, refused, int(entry.get("seed", 0)), str(entry.get("version", "")))
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def _with_method(entry: dict[str, Any]) -> dict[str, Any]:
    """Return the entry of a benchmark that was recorded before the seed and the method were axes like others."""
    cell = {**entry["cell"], "seed": entry["seed"], "method": entry["method"]}
    values = {name: value for name, value in entry.items() if name not in ("cell", "seed", "method", "refused")}
    return {"cell": cell, "values": values, "refused": entry.get("refused", "")}
