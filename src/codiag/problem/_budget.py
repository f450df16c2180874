"""How much work a search may do.

Work is counted in steps of least squares, at a price that depends on the problem alone, and not measured by a clock: so
the same seed gives the same answer on every machine, however busy it is. Only a limit in seconds reads the clock.
"""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from codiag._arrays import on_host
from codiag.problem._problem import Problem

STEP_SECONDS = 3e-4
"""Seconds that a step of least squares takes on the smallest tensors: a hundred calls of Python."""

FLOPS_PER_SECOND = 2e9
"""Operations of a step in a second, on one core: most of them wait for memory."""

SOLVE_PRODUCTS = 30
"""Products with the Gauss-Newton matrix in a step, typically."""

SCREENING_SECONDS, MOST_STARTS = 0.03, 256
"""Seconds for a few sweeps of many starts of a small tensor, and how many of them at most."""

LEAST_SECONDS = 0.1
"""Seconds that a search may take in any case, which nobody notices."""

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
    effort : float
        All work, relative to that for the first local minimum; `LEAST_SECONDS` more than that are always granted.
    max_seconds : float, optional
        By the clock, from now.
    patience : float
        How many times as much work is allowed where the model holds, as `extend` says.
    """

    def __init__(self, effort: float = math.inf, max_seconds: float | None = None, patience: float = 1.0) -> None:
        self._effort, self._spent, self._limit = effort, 0.0, math.inf
        self._first, self._patience = 0.0, patience
        self._deadline = math.inf if max_seconds is None else time.perf_counter() + max_seconds
        self._is_running = False

    @property
    def is_late(self) -> bool:
        """Whether the time is over, or the user has interrupted."""
        return INTERRUPTED.is_set() or time.perf_counter() > self._deadline

    @property
    def is_over(self) -> bool:
        """Whether no further work is allowed."""
        return self._spent > self._limit or self.is_late

    def spend(self, seconds: float) -> bool:
        """Count work, and return whether no further is allowed."""
        self._spent += seconds
        return self.is_over

    def start(self) -> None:
        """Limit all further work by what was done so far, unless that has been done before."""
        if not self._is_running:
            self._is_running, self._first = True, self._spent
            self._limit = max(self._effort * self._first, self._first + LEAST_SECONDS)

    def extend(self) -> None:
        """Allow the search more work: what it has found shows that there is a best fit worth searching for."""
        self._limit = max(self._limit, self._patience * self._effort * self._first)

    def clock(self) -> Budget:
        """Return a budget that limits the time as this one does, and nothing else, for work that is no search."""
        other = Budget()
        other._deadline = self._deadline
        return other


def step_seconds(problem: Problem) -> float:
    """Return the price of a step: products with all entries, and with the Gauss-Newton matrix.

    Under a loss the weights of entries change from step to step, so that the matrix is one of all entries.
    """
    rank = problem.rank
    product = 6.0 * problem.tensor.n_stored * rank
    solve = 4.0 * SOLVE_PRODUCTS * rank**2 * sum(min(size, rank) for size in problem.tensor.shape)
    if problem.loss is not None:
        solve = rank * product
    return STEP_SECONDS + (product + solve) / FLOPS_PER_SECOND


def largest_product(problem: Problem) -> float:
    """Return the multiplications in the largest product that the host computes in a step, for `few_threads`."""
    rank, tensor = problem.rank, problem.tensor
    if on_host(tensor.reference):
        return float(rank) * math.prod(tensor.shape)
    return float(rank) ** 2 * sum(tensor.shape)


def terms_seconds(problem: Problem) -> float:
    """Return the price of the strongest terms of a residual: power iterations from a few vectors."""
    return SOLVE_PRODUCTS * step_seconds(problem.with_rank(1))


def n_affordable_starts(problem: Problem, n_sweeps: int) -> int:
    """Return how many starts of a small tensor can be swept at once: one call of Python for all of them."""
    sweep = 6.0 * problem.tensor.n_stored * problem.rank / FLOPS_PER_SECOND
    return int(min(MOST_STARTS, SCREENING_SECONDS / (n_sweeps * sweep)))
