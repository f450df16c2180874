"""Grids of problems and methods: run once, resumed where they stopped, shared by any number of processes.

The experiments of the paper and the benchmarks are both run here: places on axes give seeds, seeds give records, and a
report turns records into tables and figures.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import signal
import threading
import time
import warnings
import zlib
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from multiprocessing import active_children, get_context, parent_process
from pathlib import Path

from threadpoolctl import threadpool_limits

import codiag
from experiments.records import Cell, Journal, Record, Reservations, Values, cell_key, read_archive, write_archive
from experiments.reports import Report


def _first(_: Cell) -> int:
    return 0


@dataclass(frozen=True)
class Experiment:
    """Trials at places on axes, and what they show: an experiment of the paper, or a benchmark.

    Attributes
    ----------
    name, title : str
    setup : str
        What is run, under which noise, in words.
    cells : callable
        From whether it is to be quick to the places on the axes, `trial` among them. Quick ones are among the others.
    measure : callable
        From a place and a seed, which is derived from the place, to numbers. Times end in " seconds".
    report : callable
        From records to figures and tables.
    stage : callable
        From a place to how late it may be run: trials of all experiments are run in this order.
    missing : callable
        Why it cannot be run here, or nothing.
    """

    name: str
    title: str
    setup: str
    cells: Callable[[bool], Sequence[Cell]]
    measure: Callable[[Cell, int], Values]
    report: Callable[[Sequence[Record]], Report]
    stage: Callable[[Cell], float] = _first
    missing: Callable[[], str] = str


class Refused(Exception):  # noqa: N818
    """Raised by a measurement that cannot be made at a place and never will be; its reason is the record."""


Progress = Callable[[int, int], None]
"""Told how many trials are done, of how many."""
Job = tuple[Experiment, Cell]
OptimizeResult = tuple[Job, Record | str]
FAILURES = (ArithmeticError, ValueError, TypeError, LookupError, AttributeError)


def run(
    experiments: Sequence[Experiment],
    folder: Path,
    *,
    quick: bool = False,
    jobs: int = 0,
    minutes: float = math.inf,
    archive: Path | None = None,
    progress: Progress | None = None,
) -> list[str]:
    """Run what neither a folder nor an archive holds yet; return what went wrong, a sentence a trial.

    With `jobs` so many processes are started, which do not show warnings; without, trials run in this one. With
    `minutes` no trial is begun after that time, and a later call goes on from there. Several calls may work in one
    folder at once: none begins what another has begun.
    """
    folder.mkdir(parents=True, exist_ok=True)
    journals = {experiment.name: Journal(folder, experiment.name, archive) for experiment in experiments}
    planned = [(experiment, cell) for experiment in experiments for cell in experiment.cells(quick)]
    planned.sort(key=lambda job: job[0].stage(job[1]))
    end = time.monotonic() + 60 * minutes
    failures: list[str] = []
    with Reservations(folder) as reservations:
        queue = _Queue(planned, journals, reservations, end, progress)
        outcomes = _outcomes_of_pool(queue, jobs) if jobs else _outcomes(queue)
        with closing(outcomes):
            for (experiment, cell), result in outcomes:
                if isinstance(result, Record):
                    journals[experiment.name].append(result)
                else:
                    failures.append(f"{experiment.name}, {cell_key(cell)}: {result}")
    return failures


def read(experiment: Experiment, folder: Path, archive: Path | None = None) -> list[Record]:
    """Return all records of an experiment in a folder and an archive, in the order of its axes; others are left out."""
    journal = Journal(folder, experiment.name, archive)
    journal.refresh()
    keys = (cell_key(cell) for cell in experiment.cells(False))
    return [journal.records[key] for key in keys if key in journal.records]


def seed_of(*axes: object) -> int:
    """Derive a seed from names and places on axes alone, whatever else is run."""
    return zlib.crc32(json.dumps(axes, sort_keys=True).encode())


def merge(experiment: Experiment, folder: Path, archive: Path) -> int:
    """Add the records of a folder to an archive, which keeps those that it has; return the number of new ones."""
    before = read_archive(archive, experiment.name)
    records = read(experiment, folder, archive)
    n_new = sum(cell_key(record.cell) not in before for record in records)
    if n_new:
        write_archive(archive, experiment.name, records)
    return n_new


@cache
def code_version() -> str:
    """Return the version of codiag and a digest of all code, its own and that of the experiments."""
    digest = hashlib.sha256()
    for top in (Path(codiag.__file__).parent, Path(__file__).parent):
        for path in sorted(top.rglob("*.py")):
            digest.update(path.read_bytes())
    return f"{codiag.__version__}+{digest.hexdigest()[:10]}"


def measure_cell(experiment: Experiment, cell: Cell) -> Record:
    """Run one trial, on one thread: the same numbers wherever it is run."""
    start, seed = time.process_time(), seed_of(experiment.name, cell)
    values: Values = {}
    refused = ""
    with threadpool_limits(1):  # not `few_threads`, which leaves large fits their threads
        try:
            values = experiment.measure(cell, seed)
        except Refused as reason:
            refused = str(reason)
    numbers = {name: float(value) for name, value in values.items()}
    return Record(cell, numbers, round(time.process_time() - start, 3), refused, seed, code_version())


class _Queue:
    """What is left to be run, in order and until a time; what another process has begun is passed over."""

    def __init__(
        self,
        planned: Sequence[Job],
        journals: dict[str, Journal],
        reservations: Reservations,
        end: float,
        progress: Progress | None,
    ) -> None:
        self._planned, self._journals, self._reservations = planned, journals, reservations
        self._end, self._progress = end, progress
        self._keys = {name: {cell_key(cell) for e, cell in planned if e.name == name} for name in journals}
        self._next = 0

    def take(self, count: int) -> list[Job]:
        """Reserve the next trials that nobody has run or reserved, and tell how many of the planned have records."""
        taken: list[Job] = []
        if time.monotonic() < self._end:
            with self._reservations.choosing() as others:
                for journal in self._journals.values():
                    journal.refresh()
                while self._next < len(self._planned) and len(taken) < count:
                    job = self._planned[self._next]
                    self._next += 1
                    if not self._is_run(job) and _key(job) not in others:
                        taken.append(job)
                self._reservations.add(map(_key, taken))
        if self._progress is not None:
            done = sum(len(keys & self._journals[name].records.keys()) for name, keys in self._keys.items())
            self._progress(done, len(self._planned))
        return taken

    @property
    def is_over(self) -> bool:
        """Whether no trial may begin any more."""
        return time.monotonic() >= self._end

    def _is_run(self, job: Job) -> bool:
        return cell_key(job[1]) in self._journals[job[0].name].records


def _key(job: Job) -> str:
    return job[0].name + cell_key(job[1])


def _outcomes(queue: _Queue) -> Generator[OptimizeResult, None, None]:
    while taken := queue.take(1):
        try:
            yield taken[0], measure_cell(*taken[0])
        except FAILURES as error:
            yield taken[0], f"{type(error).__name__}: {error}"


def _outcomes_of_pool(queue: _Queue, jobs: int) -> Generator[OptimizeResult, None, None]:
    pool = ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=_prepare_worker)
    try:
        running: dict[Future[Record], Job] = {}
        while True:
            if len(running) <= jobs:
                for job in queue.take(2 * jobs - len(running)):
                    running[pool.submit(measure_cell, *job)] = job
            if not running:
                return
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                yield running.pop(future), _result(future)
            if queue.is_over:
                running = {future: job for future, job in running.items() if not future.cancel()}
    except BaseException:  # an interruption, too: what runs is not waited for
        for child in active_children():
            if child in _workers(pool):
                child.terminate()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _workers(pool: ProcessPoolExecutor) -> Iterable[object]:
    return list((pool._processes or {}).values())


def _result(future: Future[Record]) -> Record | str:
    error = future.exception()
    if isinstance(error, BrokenProcessPool):
        raise ValueError("a worker process was killed, perhaps for want of memory; try fewer --jobs") from None
    return future.result() if error is None else f"{type(error).__name__}: {error}"


def _end_with_parent() -> None:
    """Wait for the end of the first process, and end this one: a process that is killed cannot end the others."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _prepare_worker() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the first process ends the others
    threading.Thread(target=_end_with_parent, daemon=True).start()
    warnings.simplefilter("ignore")  # what does not converge is part of the result
