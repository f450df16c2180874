"""The search: starts in the space of the leading right singular vectors, of which the lowest is finished in full."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice, product
from typing import NamedTuple

import numpy as np
from scipy.sparse.linalg import svds

from codiag._parafac2._model import Factors, Rules, Stack, polar_factors
from codiag._parafac2._steps import Minimum, minimize
from codiag._progress import tell
from codiag.diagonalize import UWEDGE
from codiag.problem import LogEntry
from codiag.search import chance_missed

MOST_STARTS = 10
"""Largest number of starts; three times as many if these are quick, and much more than noise is left."""
SAME = 1e-4
"""Relative difference of objectives below which two minima count as the same one."""
MOST_COST = 2e6
"""Entries of a step for all patterns of signs, above which starts are few, and none has signs."""
MANY_ENTRIES = 1e6
"""Entries of the Jacobian, about, above which starts are compared on some of the slices."""


ALL_PATTERNS = 6
"""Largest rank for which all patterns of signs of a slice are tried; above it one or two signs are flipped."""


class Found(NamedTuple):
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
    c = run.basis @ best.c
    signs = np.where(np.sum(c * np.abs(c), axis=0) < 0, -1.0, 1.0) if rules.nonnegative_c else 1.0
    best = Factors(best.a, best.b * signs, c * signs)
    whole = _on_all_slices(stack, best, rules, run.stride, is_positive=run.is_positive[run.ends.index(lowest)])
    seconds = time.perf_counter() - clock
    last = LogEntry("Gauss-Newton steps", whole.n_iter, _relative(whole, stack), seconds, p_missed=run.p_missed)
    whole = whole._replace(values=tuple(value + outside for value in lowest.values) + whole.values)
    return Found(whole, [*run.history, last], run.p_missed)


def _on_all_slices(stack: Stack, best: Factors, rules: Rules, stride: int, *, is_positive: bool) -> Minimum:
    """Return the minimum near factors that were found on some of the slices, by way of ever more of them."""
    if stride == 1:
        return minimize(stack, best, rules, max_iter=500)
    while True:
        stride = stride // 8 or 1
        part = stack.subset(stride)[0] if stride > 1 else stack
        begun = refitted_weights(part, best, is_positive=is_positive)
        end = minimize(part, begun, rules, tol=1e-5 if stride > 1 else 1e-7, max_iter=500)
        if stride == 1:
            return end
        best = end.point.factors


class _Run:
    """The reduced problem, and the minima that were found in it."""

    def __init__(self, stack: Stack, rank: int, sizes: np.ndarray, rules: Rules, rng: np.random.Generator) -> None:
        self.rank, self.rules = rank, rules
        self.basis, rest = _leading(stack, rank, rng)
        most = int(max(MANY_ENTRIES // rank**4, 10 * rank))
        self.stride = stack.n_slices // most if stack.n_slices > 2 * most else 1
        n_rows = max(float(np.sum(sizes)), 1.0)
        chosen, numbers = stack.subset(self.stride)
        self.small, sizes = chosen.triangles(self.basis), sizes[numbers]
        self.is_quick = self.small.n_slices * (len(_patterns(rank)) + 1) * rank**2 <= MOST_COST
        self.ends: list[Minimum] = []
        self.is_positive: list[bool] = []
        self.history: list[LogEntry] = []
        self.products = cross_products(self.small, float(np.mean(rest)) / n_rows if rest.size else 0.0, sizes)
        freedom = self.small.n_slices * rank * (rank - 1) / 2 - 1.5 * rank * (rank - 1)
        least = float(np.quantile(rest, 0.25)) / n_rows if rest.size else 0.0
        self.noise = 2 * least * (freedom + 4 * math.sqrt(2 * max(freedom, 0.0))) if freedom > 0 else 0.0

    @property
    def lowest(self) -> float:
        return min(end.point.value for end in self.ends)

    @property
    def p_missed(self) -> float:
        """The chance that a lower minimum was missed.

        Zero if that leaves no more than the noise in the directions that were left out.
        """
        n, lowest = len(self.ends), self.lowest
        if n > 1 and lowest <= max(self.noise, 1e-20 * self.small.squared_norm):
            return 0.0
        return chance_missed(n, sum(end.point.value <= lowest * (1 + SAME) for end in self.ends))

    @property
    def is_over(self) -> bool:
        most = 3 * MOST_STARTS if self.is_quick and self.stride == 1 and self.lowest > 10 * self.noise else MOST_STARTS
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
        self.ends.append(Minimum(replace(end.point), end.converged, values + end.values))  # without its Jacobians
        self.is_positive.append(is_positive)
        return self.ends[-1]


def _alternating(run: _Run, rng: np.random.Generator) -> Iterator[tuple[str, Factors, bool]]:
    """Yield two starts with positive weights, then in turn ones with signs and without, if signs are free.

    Of many slices none have signs: these would be refitted on all slices, pattern by pattern.
    """
    positive = positive_starts(run.small, run.products, rng)
    signed = signed_starts(run.small, run.rank, rng)
    yield from ((*start, True) for start in islice(positive, 2))
    has_signs = run.rank > 1 and not run.rules.nonnegative_a and run.is_quick and run.stride == 1
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


def cross_products(stack: Stack, variance: float, sizes: np.ndarray) -> np.ndarray:
    """Return the cross products of the slices, less those that noise has on average."""
    parts = [np.swapaxes(view, 1, 2) @ view for view in stack.by_group(stack.matrix)]
    return np.concatenate(parts) - variance * sizes[:, None, None] * np.eye(stack.matrix.shape[1])


def positive_starts(stack: Stack, products: np.ndarray, rng: np.random.Generator) -> Iterator[tuple[str, Factors]]:
    """Yield names and factors for positive weights: joint diagonalization, singular vectors, then random ones."""
    n, rank = stack.n_slices, products.shape[1]
    if n > 1 and np.any(products):
        yield "joint diagonalization", _diagonalized(products, rng)
    yield "singular vectors", Factors(np.ones((n, rank)), np.eye(rank), np.eye(rank))
    while True:
        yield "random", Factors(rng.uniform(0.5, 1.5, (n, rank)), np.eye(rank), rng.standard_normal((rank, rank)))


def signed_starts(stack: Stack, rank: int, rng: np.random.Generator) -> Iterator[tuple[str, Factors]]:
    """Yield starts for weights of any signs: the best four of sixteen random ones, after a few steps from each.

    With the right signs of most slices the steps find the rest, from almost any C and B. A round chooses the signs of
    every slice that are best for given B and C, and takes two steps.
    """
    while True:
        drawn = [_random_signed(stack, rank, rng) for _ in range(16)]
        for _, factors in sorted(drawn, key=lambda one: one[0])[:4]:
            yield "random, with signs", factors


def _random_signed(stack: Stack, rank: int, rng: np.random.Generator) -> tuple[float, Factors]:
    c = np.linalg.qr(rng.standard_normal((rank, rank)))[0]
    b = rng.standard_normal((rank, rank))
    factors = Factors(np.ones((stack.n_slices, rank)), b / np.linalg.norm(b, axis=0), c)
    return signed_rounds(stack, factors, 3)


def signed_rounds(stack: Stack, factors: Factors, most: int) -> tuple[float, Factors]:
    """Return the objective and the factors after some rounds, as long as these lower it."""
    value = np.inf
    for _ in range(most):
        point = minimize(stack, _with_best_signs(stack, factors), Rules(), tol=1e-5, max_iter=2).point
        factors = point.factors
        if point.value > (1 - 1e-3) * value:
            break
        value = point.value
    return point.value, factors


def _diagonalized(products: np.ndarray, rng: np.random.Generator) -> Factors:
    r"""Return factors from cross products, which are :math:`D_k \Phi D_k` in the coordinates of C."""
    if products.shape[1] == 1:
        c = np.ones((1, 1))
    else:
        inverse = np.asarray(UWEDGE(fallback=False)(products, rng=rng).inverse)
        c, products = np.linalg.pinv(inverse), inverse @ products @ inverse.T
    diagonals = np.einsum("krr->kr", products)
    a = np.sqrt(np.maximum(diagonals, 1e-4 * np.mean(np.abs(diagonals), axis=0) + 1e-300))
    outer = a[:, :, None] * a[:, None, :]
    correlations = np.sum(products * outer, axis=0) / np.sum(outer**2, axis=0)  # those that suit the products best
    np.fill_diagonal(correlations, 1.0)
    sizes, vectors = np.linalg.eigh(correlations)
    root = (vectors * np.sqrt(np.maximum(sizes, 1e-2))) @ vectors.T
    return Factors(a, root / np.linalg.norm(root, axis=0), c)


def _with_best_signs(stack: Stack, factors: Factors) -> Factors:
    """Return factors in which slices have the signs that suit them best, their weights refitted; B and C stay."""
    best_a, best = _refitted(stack, factors, factors.a)
    sizes = np.sqrt(factors.a**2 + 1e-4 * np.mean(factors.a**2, axis=0))
    signs = np.where(factors.a < 0, -1.0, 1.0)
    for pattern in _patterns(factors.rank):
        a, values = _refitted(stack, factors, sizes * signs * pattern)
        lower = values < best
        best_a, best = np.where(lower[:, None], a, best_a), np.where(lower, values, best)
    return Factors(best_a, factors.b, factors.c)


def refitted_weights(stack: Stack, factors: Factors, *, is_positive: bool) -> Factors:
    """Return factors with weights of all slices of a stack, for B and C that were found on some of them."""
    frame, inner = np.linalg.qr(factors.c)
    found = _weights_for(stack.triangles(frame), Factors(factors.a, factors.b, inner), is_positive=is_positive)
    return Factors(found, factors.b, factors.c)


def _weights_for(stack: Stack, factors: Factors, *, is_positive: bool) -> np.ndarray:
    equal = np.tile(np.mean(np.abs(factors.a), axis=0), (stack.n_slices, 1))
    begun = Factors(equal, factors.b, factors.c)
    if not is_positive:
        return _with_best_signs(stack, begun).a
    for _ in range(5):
        begun = Factors(np.maximum(_refitted(stack, begun, begun.a)[0], 0.02 * equal), factors.b, factors.c)
    return begun.a


def _patterns(rank: int) -> list[np.ndarray]:
    if rank <= ALL_PATTERNS:
        return [np.array((1.0, *rest)) for rest in product((1.0, -1.0), repeat=rank - 1)][1:]
    singles = [1 - 2 * one for one in np.eye(rank)]
    return [*singles, *(singles[i] * singles[j] for i in range(rank) for j in range(i))]


def _refitted(stack: Stack, factors: Factors, a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return weights after some alternating steps, and the squared distances of the slices."""
    scores = stack.times(factors.c)
    gram = (factors.b.T @ factors.b) * (factors.c.T @ factors.c)
    inverse = np.linalg.pinv(gram, hermitian=True)
    values = np.zeros(len(a))
    for _ in range(3):
        bases = polar_factors(stack, scores, Factors(a, factors.b, factors.c))
        pairs = zip(bases, stack.by_group(scores), strict=True)
        right = np.concatenate([np.sum((basis @ factors.b) * view, axis=1) for basis, view in pairs])
        a = right @ inverse
        values = -np.einsum("nr,nr->n", a, right)
    return a, values
