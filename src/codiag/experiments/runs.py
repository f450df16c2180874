"""Experiments of many trials: run once, resumed where they stopped, the same on one process or several."""

from __future__ import annotations

import csv
import json
import math
import time
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from io import StringIO
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from codiag.experiments.reports import Report

Cell = dict[str, Any]
Values = dict[str, float]


@dataclass(frozen=True)
class Record:
    """What one trial gave: its place on the axes, and a number for every name."""

    cell: Cell
    values: Values


@dataclass(frozen=True)
class Experiment:
    """An experiment of the paper.

    Attributes
    ----------
    name, title : str
    claim : str
        What the paper says.
    noise : str
        Which noise models there are, in words.
    cells : callable
        From whether it is to be quick to the places on the axes, `trial` among them: those that come first are run
        first, so that trials should be the outermost axis.
    measure : callable
        From a place and a seed, which is derived from the place, to numbers. Times are not among them.
    report : callable
        From records to a table, a figure and findings.
    missing : callable
        Why it cannot be run here, or nothing.
    """

    name: str
    title: str
    claim: str
    noise: str
    cells: Callable[[bool], Sequence[Cell]]
    measure: Callable[[Cell, int], Values]
    report: Callable[[Sequence[Record]], Report]
    missing: Callable[[], str] = str


Progress = Callable[[int, int], None]
"""Told how many trials are done, of how many."""


def run(
    experiment: Experiment,
    folder: Path,
    *,
    quick: bool = False,
    jobs: int = 1,
    minutes: float = math.inf,
    progress: Progress | None = None,
) -> list[Record]:
    """Run what has not been run yet, one JSON line a trial; return all records there are, in the order of the axes.

    With `minutes` no trial is begun after that time, and a later run goes on from there.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{'quick' if quick else 'full'}.jsonl"
    cells = list(experiment.cells(quick))
    done = {_key(record.cell): record for record in read_records(path)}
    left = [cell for cell in cells if _key(cell) not in done]
    tell = progress or (lambda *_: None)
    tell(len(cells) - len(left), len(cells))
    with path.open("a") as file:
        for record in _measured(experiment, list(left), jobs, time.monotonic() + 60 * minutes):
            done[_key(record.cell)] = record
            file.write(json.dumps({"cell": record.cell, "values": record.values}) + "\n")
            file.flush()
            left.pop()
            tell(len(cells) - len(left), len(cells))
    return [done[_key(cell)] for cell in cells if _key(cell) in done]


def read_records(path: Path) -> list[Record]:
    """Return the records of a file; a last line that was cut short is left out."""
    records = []
    for line in path.read_text().splitlines() if path.exists() else []:
        try:
            entry = json.loads(line)
        except json.JSONDecodeError:
            continue
        records.append(Record(entry["cell"], entry["values"]))
    return records


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


def seed_of(experiment: str, cell: Cell) -> int:
    """Derive a seed from a place on the axes alone."""
    return zlib.crc32(json.dumps([experiment, cell], sort_keys=True).encode())


def measure_cell(experiment: Experiment, cell: Cell) -> Record:
    """Run one trial, on one thread: the same numbers wherever it is run."""
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what does not converge is part of the result
        values = experiment.measure(cell, seed_of(experiment.name, cell))
    return Record(cell, {name: float(value) for name, value in values.items()})


def _measured(experiment: Experiment, cells: list[Cell], jobs: int, end: float) -> Iterator[Record]:
    if jobs == 1:
        for cell in cells:
            if time.monotonic() > end:
                return
            yield measure_cell(experiment, cell)
        return
    waiting = iter(cells)
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        running: set[Future[Record]] = set()
        while True:
            while len(running) < 2 * jobs and time.monotonic() < end and (cell := next(waiting, {})):
                running.add(pool.submit(measure_cell, experiment, cell))
            if not running:
                return
            finished, running = wait(running, return_when=FIRST_COMPLETED)
            for future in finished:
                yield future.result()


def _key(cell: Cell) -> str:
    return json.dumps(cell, sort_keys=True)
