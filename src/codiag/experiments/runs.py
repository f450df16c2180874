"""Experiments of many trials: run once, gone on with where they stopped, shared by any number of processes."""

from __future__ import annotations

import json
import math
import signal
import time
import warnings
import zlib
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from dataclasses import dataclass
from multiprocessing import active_children, get_context
from pathlib import Path

from threadpoolctl import threadpool_limits

from codiag.experiments.records import Cell, Claims, Journal, Record, Values, cell_key, is_taken
from codiag.experiments.reports import Report


def _first(_: Cell) -> int:
    return 0


@dataclass(frozen=True)
class Experiment:
    """An experiment of the paper.

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
        From a place to how late it may be run: of several experiments all places of stage 0 are run first.
    missing : callable
        Why it cannot be run here, or nothing.
    """

    name: str
    title: str
    setup: str
    cells: Callable[[bool], Sequence[Cell]]
    measure: Callable[[Cell, int], Values]
    report: Callable[[Sequence[Record]], Report]
    stage: Callable[[Cell], int] = _first
    missing: Callable[[], str] = str


Progress = Callable[[int, int], None]
"""Told how many trials are done, of how many."""
Job = tuple[Experiment, Cell]


def run(
    experiments: Sequence[Experiment],
    folder: Path,
    *,
    quick: bool = False,
    jobs: int = 1,
    minutes: float = math.inf,
    progress: Progress | None = None,
) -> list[str]:
    """Run what has not been run yet in a folder; return what went wrong, a sentence a trial.

    With `minutes` no trial is begun after that time, and a later call goes on from there. Several processes may run in
    one folder at once: none begins what another has begun.
    """
    folder.mkdir(parents=True, exist_ok=True)
    journals = {experiment.name: Journal(folder, experiment.name) for experiment in experiments}
    planned = [(experiment, cell) for experiment in experiments for cell in experiment.cells(quick)]
    planned.sort(key=lambda job: job[0].stage(job[1]))
    end = time.monotonic() + 60 * minutes
    failures: list[str] = []
    with Claims(folder) as claims:
        queue = _Queue(planned, journals, claims)
        with closing(_outcomes(queue, jobs, end, progress or _silent)) as outcomes:
            for (experiment, cell), outcome in outcomes:
                if isinstance(outcome, Record):
                    journals[experiment.name].append(outcome)
                else:
                    failures.append(f"{experiment.name}, {cell_key(cell)}: {outcome}")
    return failures


def _silent(_done: int, _planned: int) -> None:
    """Tell nobody."""


def read(experiment: Experiment, folder: Path) -> list[Record]:
    """Return all records of an experiment in a folder, in the order of its axes; others are left out."""
    journal = Journal(folder, experiment.name)
    journal.refresh()
    keys = (cell_key(cell) for cell in experiment.cells(False))
    return [journal.records[key] for key in keys if key in journal.records]


def seed_of(experiment: str, cell: Cell) -> int:
    """Derive a seed from a place on the axes alone."""
    return zlib.crc32(json.dumps([experiment, cell], sort_keys=True).encode())


def measure_cell(experiment: Experiment, cell: Cell) -> Record:
    """Run one trial, on one thread: the same numbers wherever it is run."""
    start = time.process_time()
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what does not converge is part of the result
        values = experiment.measure(cell, seed_of(experiment.name, cell))
    numbers = {name: float(value) for name, value in values.items()}
    return Record(cell, numbers, round(time.process_time() - start, 3))


class _Queue:
    """What is left to be run, in order; what another process has begun is passed over."""

    def __init__(self, planned: Sequence[Job], journals: dict[str, Journal], claims: Claims) -> None:
        self._planned, self._journals, self._claims = planned, journals, claims
        self._keys = {name: {cell_key(cell) for e, cell in planned if e.name == name} for name in journals}
        self._next = 0

    def tell(self, progress: Progress) -> None:
        """Tell how many of the planned trials have records."""
        done = sum(len(keys & self._journals[name].records.keys()) for name, keys in self._keys.items())
        progress(done, len(self._planned))

    def take(self, count: int) -> list[Job]:
        """Claim the next trials that nobody has run or claimed."""
        taken: list[Job] = []
        with self._claims.choosing() as others:
            for journal in self._journals.values():
                journal.refresh()
            while self._next < len(self._planned) and len(taken) < count:
                experiment, cell = self._planned[self._next]
                self._next += 1
                key = cell_key(cell)
                if key not in self._journals[experiment.name].records and not is_taken(experiment.name + key, others):
                    taken.append((experiment, cell))
            self._claims.add(experiment.name + cell_key(cell) for experiment, cell in taken)
        return taken


Outcome = tuple[Job, Record | str]


def _outcomes(queue: _Queue, jobs: int, end: float, progress: Progress) -> Generator[Outcome, None, None]:
    if jobs > 1:
        yield from _outcomes_of_pool(queue, jobs, end, progress)
        return
    while time.monotonic() < end and (taken := queue.take(1)):
        queue.tell(progress)
        try:
            yield taken[0], measure_cell(*taken[0])
        except (ArithmeticError, ValueError, TypeError, LookupError, AttributeError) as error:
            yield taken[0], f"{type(error).__name__}: {error}"
    queue.tell(progress)


def _outcomes_of_pool(queue: _Queue, jobs: int, end: float, progress: Progress) -> Generator[Outcome, None, None]:
    pool = ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=_ignore_interrupts)
    try:
        running: dict[Future[Record], Job] = {}
        while True:
            if len(running) <= jobs and time.monotonic() < end:
                for job in queue.take(2 * jobs - len(running)):
                    running[pool.submit(measure_cell, *job)] = job
                queue.tell(progress)
            if not running:
                return
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                yield running.pop(future), _result(future)
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


def _ignore_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the first process ends the others
