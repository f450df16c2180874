"""The search: starts in the space of the leading right singular vectors, and the lowest one finished in full."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
from scipy.sparse.linalg import svds
from scipy.special import betaln

from codiag._parafac2._model import Factors, Rules
from codiag._parafac2._stack import Stack
from codiag._parafac2._starts import (
    cross_products,
    n_patterns,
    positive_starts,
    refitted_weights,
    signed_rounds,
    signed_starts,
)
from codiag._parafac2._steps import Minimum, minimize
from codiag._progress import tell
from codiag.problem import LogEntry

MOST_STARTS = 10
"""Largest number of starts; three times as many if these are quick, and much more than noise is left."""
SAME = 1e-4
"""Relative difference of objectives below which two minima count as the same one."""
MOST_COST = 2e6
"""Entries of a step for all patterns of signs, above which starts are few, and none has signs."""
MANY_ENTRIES = 1e6
"""Entries of the Jacobian, about, above which starts are compared on some of the slices."""


@dataclass
class Found:
    """The lowest minimum, and the stages that led there."""

    minimum: Minimum
    history: list[LogEntry]
    p_missed: float


def search(stack: Stack, rank: int, sizes: np.ndarray, rules: Rules, rng: np.random.Generator) -> Found:
    """Return the lowest minimum from several starts; `sizes` are the numbers of rows of the slices."""
    run = _Run(stack, rank, sizes, replace(rules, nonnegative_c=False), rng)
    clock, small = time.perf_counter(), run.small
    for name, start, is_positive in _alternating(run, rng):
        end = run.end(start, is_positive=is_positive)
        seconds, clock = time.perf_counter() - clock, time.perf_counter()
        run.history.append(LogEntry(name, end.n_iter, _relative(end, small), seconds, p_missed=run.p_missed))
        tell("%d starts", len(run.ends))
        if run.is_over:
            break
    lowest = min(run.ends, key=lambda end: end.point.value)
    best, outside = lowest.point.factors, stack.squared_norm - run.small.squared_norm
    if run.whole is not run.small:
        best = refitted_weights(run.whole, best, is_positive=bool(np.all(best.a >= 0)))
    c = run.basis @ best.c
    signs = np.where(np.sum(c * np.abs(c), axis=0) < 0, -1.0, 1.0) if rules.nonnegative_c else 1.0
    tol = 1e-9 if run.whole is run.small else 1e-7  # with the curvature of some slices, steps converge linearly
    whole = minimize(stack, Factors(best.a, best.b * signs, c * signs), rules, tol=tol, max_iter=500)
    seconds = time.perf_counter() - clock
    last = LogEntry("Gauss-Newton steps", whole.n_iter, _relative(whole, stack), seconds, p_missed=run.p_missed)
    whole = whole._replace(values=tuple(value + outside for value in lowest.values) + whole.values)
    return Found(whole, [*run.history, last], run.p_missed)


class _Run:
    """The reduced problem, and the minima that were found in it."""

    def __init__(self, stack: Stack, rank: int, sizes: np.ndarray, rules: Rules, rng: np.random.Generator) -> None:
        self.rank, self.rules = rank, rules
        self.basis, rest = _leading(stack, rank, rng)
        self.whole = self.small = stack.triangles(self.basis)
        most = int(max(MANY_ENTRIES // rank**4, 10 * rank))
        if stack.n_slices > 2 * most:
            self.small, sizes = self.whole.subset(most), sizes[:: stack.n_slices // most]
        self.is_quick = self.small.n_slices * n_patterns(rank) * rank**2 <= MOST_COST
        self.ends: list[Minimum] = []
        self.history: list[LogEntry] = []
        n_rows = max(float(np.sum(sizes)), 1.0)
        self.products = cross_products(self.small, float(np.mean(rest)) / n_rows if rest.size else 0.0, sizes)
        freedom = self.small.n_slices * rank * (rank - 1) / 2 - 1.5 * rank * (rank - 1)
        least = float(np.quantile(rest, 0.25)) / n_rows if rest.size else 0.0
        self.noise = 2 * least * (freedom + 4 * math.sqrt(2 * max(freedom, 0.0))) if freedom > 0 else 0.0

    @property
    def lowest(self) -> float:
        return min(end.point.value for end in self.ends)

    @property
    def is_noise(self) -> bool:
        """Whether the lowest minimum leaves no more than the noise in the directions that were left out."""
        return self.lowest <= max(self.noise, 1e-20 * self.small.squared_norm)

    @property
    def n_hits(self) -> int:
        return sum(end.point.value <= self.lowest * (1 + SAME) for end in self.ends)

    @property
    def p_missed(self) -> float:
        """The chance that a lower minimum was missed, as in `codiag.search`: n starts of which h met the lowest."""
        n, h = len(self.ends), self.n_hits
        if self.is_noise and n > 1:
            return 0.0
        return math.exp(betaln(h + 1, 2 * n - h + 1) - betaln(h + 1, n - h + 1))

    @property
    def is_over(self) -> bool:
        most = 3 * MOST_STARTS if self.is_quick and self.lowest > 10 * self.noise else MOST_STARTS
        return self.p_missed <= 0.05 or len(self.ends) >= most

    def end(self, start: Factors, *, is_positive: bool) -> Minimum:
        """Return a minimum: with weights bounded from below first, then without the bound."""
        values: tuple[float, ...] = ()
        if is_positive:
            bounded = minimize(self.small, start, replace(self.rules, floor=0.02), tol=1e-3, max_iter=50)
            start, values = bounded.point.factors, bounded.values
        else:
            start = signed_rounds(self.small, start, 20)[1]
        end = minimize(self.small, start, self.rules, tol=1e-5, max_iter=50)
        self.ends.append(end._replace(values=values + end.values))
        return self.ends[-1]


def _alternating(run: _Run, rng: np.random.Generator) -> Iterator[tuple[str, Factors, bool]]:
    """Yield two starts with positive weights, then in turn ones with signs and without, if signs are free."""
    positive = positive_starts(run.small, run.products, rng)
    signed = signed_starts(run.small, run.rank, rng)
    yield from ((*start, True) for start in islice(positive, 2))
    has_signs = run.rank > 1 and not run.rules.nonnegative_a and run.is_quick
    while True:
        if has_signs:
            yield from ((*start, False) for start in islice(signed, 3))
        yield *next(positive), True


def _leading(stack: Stack, rank: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return the leading right singular vectors of all slices below each other, and the squares of the others."""
    width = stack.matrix.shape[1]
    if width > 1500:  # all vectors of the cross product would cost more than the fit
        _, sizes, right = svds(stack.matrix, rank, rng=rng)
        left = max(stack.squared_norm - float(sizes @ sizes), 0.0)
        return right[::-1].T, np.full(width - rank, left / (width - rank))
    sums, vectors = np.linalg.eigh(stack.cross_product())
    return vectors[:, ::-1][:, :rank], np.maximum(sums[: width - rank], 0.0)


def _relative(end: Minimum, stack: Stack) -> float:
    return math.sqrt(end.point.distance / stack.squared_norm) if stack.squared_norm > 0 else 0.0
