"""How much work a search may do, and the log of what it has done.

Work is counted in steps of least squares, at a price that depends on the problem alone, and not measured by a clock: so
the same seed gives the same answer on every machine, however busy it is. Only a limit in seconds reads the clock.
"""

from __future__ import annotations

import logging
import math
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from codiag._arrays import on_host
from codiag._progress import tell
from codiag.problem import LogEntry, Problem

logger = logging.getLogger("codiag")

STEP_SECONDS = 3e-4
"""Seconds that a step of least squares takes on the smallest tensors: a hundred calls of Python."""

FLOPS_PER_SECOND = 2e9
"""Operations of a step in a second, on one core: most of them wait for memory."""

LOSS_STEP_SECONDS = 2e-3
"""The same for a step of Fisher scoring."""

LOSS_FLOPS = 60
"""Operations for the value, the slope and the weight of one entry under a loss."""

SOLVE_PRODUCTS = 30
"""Products with the Gauss-Newton matrix in a step, typically."""

SWEEPS = 300
"""Alternating sweeps over the stored entries that a search may cost after its first local minimum, per unit of work."""

MODEL_WORK = 8.0
"""Times as much work as usual, where the model is shown to hold: there is a best fit to search for."""

INTERRUPTED = threading.Event()
"""Set while searches are to end with the best fit so far."""


@contextmanager
def interrupts_end_searches() -> Iterator[None]:
    """Let the first interrupt by Ctrl-C end searches with the best fit so far, and the second everything."""

    def end(*_: object) -> None:
        if INTERRUPTED.is_set():
            raise KeyboardInterrupt
        INTERRUPTED.set()

    before = signal.signal(signal.SIGINT, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        INTERRUPTED.clear()


class Budget:
    """The work that a search may do, and has done.

    Parameters
    ----------
    max_work : float
        Work after the first local minimum, in units of 300 sweeps over the stored entries.
    time_limit : float, optional
        By the clock, from now.
    """

    def __init__(self, max_work: float = math.inf, time_limit: float | None = None) -> None:
        self._max_work, self._spent, self._limit, self._unit = max_work, 0.0, math.inf, 0.0
        self._deadline = math.inf if time_limit is None else time.perf_counter() + time_limit

    @property
    def is_late(self) -> bool:
        """Whether the time is over, or the user has interrupted."""
        return INTERRUPTED.is_set() or time.perf_counter() > self._deadline

    @property
    def is_over(self) -> bool:
        """Whether no further work is allowed."""
        return self._spent > self._limit or self.is_late

    @property
    def left(self) -> float:
        """The work that is still allowed, in seconds."""
        return max(self._limit - self._spent, 0.0)

    def spend(self, seconds: float) -> bool:
        """Count work, and return whether no further is allowed."""
        self._spent += seconds
        return self.is_over

    def start(self, problem: Problem) -> None:
        """Limit all further work, from the first local minimum on."""
        if self._limit == math.inf:
            self._unit = self._max_work * SWEEPS * sweep_seconds(problem)
            self._limit = self._spent + self._unit

    def extend(self) -> None:
        """Allow `MODEL_WORK` times as much work, once: what the search has found shows that the model holds."""
        self._limit, self._unit = self._limit + (MODEL_WORK - 1) * self._unit, 0.0

    def renewed(self, problem: Problem) -> Budget:
        """Return a budget of the same size for the finish, which is no search, with the same end by the clock."""
        other = Budget(self._max_work)
        other._deadline = self._deadline
        other.start(problem)
        return other


def step_seconds(problem: Problem) -> float:
    """Return the price of a step: products with all entries, and with the Gauss-Newton matrix.

    Modes that share a factor have one gradient and one set of unknowns. Under a loss, and if entries are missing, that
    matrix is one of all entries.
    """
    rank = problem.rank
    product = (4.0 if problem.symmetric is True else 6.0) * problem.tensor.n_stored * rank
    sizes = [problem.tensor.shape[group[0]] for group in problem.groups]
    solve = 4.0 * SOLVE_PRODUCTS * rank**2 * sum(min(size, rank) for size in sizes)
    if problem.loss is not None:
        solve = rank * product
    elif problem.entries is not None:
        factorization = (sum(problem.tensor.shape) * rank) ** 3 / SOLVE_PRODUCTS  # in blocks, ten times as fast
        solve = min(rank * product + factorization, SOLVE_PRODUCTS * product)
    return (STEP_SECONDS if problem.loss is None else LOSS_STEP_SECONDS) + flops_seconds(product + solve)


def largest_product(problem: Problem) -> float:
    """Return the multiplications in the largest product that the host computes in a step, for `few_threads`."""
    rank, tensor = problem.rank, problem.tensor
    if on_host(tensor.reference):
        return float(rank) * math.prod(tensor.shape)
    return float(rank) ** 2 * sum(tensor.shape)


def terms_seconds(problem: Problem) -> float:
    """Return the price of the strongest terms of a residual: power iterations from a few vectors."""
    return SOLVE_PRODUCTS * step_seconds(problem.with_rank(1))


def sweep_seconds(problem: Problem) -> float:
    """Return the price of an alternating sweep over the stored entries."""
    return STEP_SECONDS + flops_seconds(2.0 * problem.tensor.order * problem.tensor.n_stored * problem.rank)


def member_seconds(problem: Problem, n_entries: int) -> float:
    """Return the price of a sweep of one member of a batch, whose products add and multiply at once."""
    flops = float(problem.tensor.order * problem.rank)
    return flops_seconds(n_entries * (flops if problem.loss is None else 2 * flops * problem.rank + LOSS_FLOPS))


def flops_seconds(flops: float) -> float:
    """Return the price of operations."""
    return flops / FLOPS_PER_SECOND


@dataclass
class Log:
    """The stages so far, the time since the last one, and the work that may be done."""

    budget: Budget = field(default_factory=Budget)
    history: list[LogEntry] = field(default_factory=list)
    _since: float = field(default_factory=time.perf_counter)

    def add(self, name: str, n_iter: int, objective: float, flops: float = 0.0, *, p_missed: float = 0.0) -> None:
        """Close a stage."""
        now = time.perf_counter()
        self.history.append(LogEntry(name, n_iter, objective, now - self._since, flops, p_missed))
        self._since = now
        counted = "1 iteration" if n_iter == 1 else f"{n_iter} iterations"
        tell("%s: %s", name, counted)
        logger.info("%s: %s, objective %.3g, %.2f s", name, counted, objective, self.history[-1].seconds)

    def extend(self, history: Sequence[LogEntry]) -> None:
        """Take over the stages of another method."""
        self.history.extend(history)
        self._since = time.perf_counter()
