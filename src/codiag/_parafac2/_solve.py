"""From slices to factors: scaling, reduction, missing entries by expectation maximization, the form of results."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace

import numpy as np

from codiag._parafac2._model import Factors, Point, Rules, Stack, polar_factors
from codiag._parafac2._search import Found, refitted_weights, search
from codiag._parafac2._slices import Slices
from codiag._parafac2._steps import Minimum, minimize
from codiag._progress import tell
from codiag.constraints import ConstraintsLike, as_constraints
from codiag.problem import LogEntry


@dataclass(frozen=True, eq=False)
class Solution:
    """Factors in the order of the slices, in the units of the data; relative errors at the end, then of all steps."""

    factors: Factors
    bases: tuple[np.ndarray, ...]
    errors: tuple[float, ...]
    converged: bool
    history: tuple[LogEntry, ...]
    p_missed: float


def as_rules(constraints: ConstraintsLike) -> Rules:
    """Return what constraints mean for PARAFAC2."""
    given = as_constraints(constraints, 3, ("a", "b", "c")) or (None, None, None)
    ridges = [each.ridge for each in given if each is not None and each.ridge > 0]
    signs = [each is not None and each.is_cone for each in given]
    if len(ridges) + sum(signs) < sum(each is not None for each in given) or signs[1]:
        raise ValueError(
            "constraints of PARAFAC2 must be 'nonnegative' for A (mode 0) or C (mode 2), as {0: 'nonnegative'}, or "
            f"one Ridge for all modes; got {constraints!r}. For evolving factors with constraints use matcouply"
        )
    if ridges and (len(ridges) < 3 or len(set(ridges)) > 1):
        raise ValueError(f"constraints must give all three modes the same Ridge, or none; got {constraints!r}")
    return Rules(signs[0], signs[2], ridges[0] if ridges else 0.0)


def solve(slices: Slices, rank: int, rules: Rules, rng: np.random.Generator, start: Factors | None = None) -> Solution:
    """Return the fit, from the usual starts or a given one; if only A is asked for, from its mean magnitudes.

    The root mean square of the observed entries is the unit of the steps.
    """
    scale = math.sqrt(slices.squared_norm / slices.n_observed)
    rules = replace(rules, ridge=rules.ridge * scale ** (-4 / 3))  # the objective is relative to the squared scale
    stack, order, places = Stack.of(slices, rank, scale)
    seen: np.ndarray | None = None
    if slices.n_missing:
        seen = ~np.isnan(stack.matrix)
        stack = Stack(_imputed(stack.matrix, seen, rank), stack.groups)
    small = stack.triangles() if seen is None else stack
    if start is None:
        found = search(small, rank, slices.sizes[order], rules, rng)
    else:
        begun = Factors(start.a / scale, start.b, start.c)
        if rules.only_a:
            begun = refitted_weights(small, begun, is_positive=rules.nonnegative_a or bool(np.all(begun.a >= 0)))
        else:
            begun = Factors(begun.a[order], begun.b, begun.c)
        found = Found(minimize(small, begun, rules), [], 1.0)
    if seen is not None:
        found = _with_missing(stack, seen, found, rules)
        stack = found.minimum.point.stack
    end = found.minimum
    point = Point.at(stack, end.point.factors, rules.ridge)
    distance = point.distance if seen is None else _observed_distance(point, seen)
    bases = polar_factors(stack, stack.times(point.factors.c), point.factors)
    flat, rows = np.concatenate([basis.reshape(-1, rank) for basis in bases]), np.zeros((places.size, rank))
    del bases
    rows[places >= 0] = flat[places[places >= 0]]
    projections = tuple(slices.split(rows))
    factors = Factors(point.factors.a[np.argsort(order)] * scale, point.factors.b, point.factors.c)
    relative = (math.sqrt(max(value, 0.0) / slices.n_observed) for value in (distance, *end.values))
    return Solution(factors, projections, tuple(relative), end.converged, tuple(found.history), found.p_missed)


def in_form(found: Solution) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray, np.ndarray], tuple[np.ndarray, ...]]:
    """Return the weights, unit factors and projections of results, the largest components first.

    B is the symmetric root of the correlations, so that each basis is as close to its evolving factors as it can be. A
    slice and its basis may change their sign together; the largest component of a slice is then positive.
    """
    units = found.factors.scaled()
    weights = np.linalg.norm(units.a, axis=0)
    order = np.argsort(-weights, kind="stable")
    a, b, c, weights = units.a[:, order], units.b[:, order], units.c[:, order], weights[order]
    a = a / np.where(weights > 0, weights, 1.0)
    sizes = a * weights
    turns = np.where(np.sum(sizes * np.abs(sizes), axis=1) < 0, -1.0, 1.0)
    a = a * turns[:, None]
    signs_a = np.where(a.sum(axis=0) < 0, -1.0, 1.0)
    peaks = c[np.argmax(np.abs(c), axis=0), np.arange(c.shape[1])]
    signs_c = np.where(peaks < 0, -1.0, 1.0)
    left, sizes_b, right = np.linalg.svd(b * (signs_a * signs_c))
    turned = left @ right
    projections = tuple(sign * (basis @ turned) for sign, basis in zip(turns, found.bases, strict=True))
    return weights, (a * signs_a, (right.T * sizes_b) @ right, c * signs_c), projections


def _observed_distance(point: Point, seen: np.ndarray) -> float:
    residual = np.where(seen, point.stack.matrix - point.fitted_rows(), 0.0)
    return float(np.vdot(residual, residual))


def _imputed(matrix: np.ndarray, seen: np.ndarray, rank: int) -> np.ndarray:
    """Return rows with missing entries replaced by those of the matrix of low rank that is nearest where observed."""
    known = np.where(seen, matrix, 0.0)
    right = np.linalg.svd(np.linalg.qr(known, mode="r"))[2][:rank].T
    for _ in range(50):
        left = np.linalg.qr(_regressed(known, seen, right))[0]
        right = _regressed(known.T, seen.T, left)
    return np.where(seen, matrix, left @ right.T)


def _regressed(known: np.ndarray, seen: np.ndarray, factor: np.ndarray) -> np.ndarray:
    """Return the coefficients of every row, from the entries that are observed."""
    grams = np.einsum("ij,jr,js->irs", seen, factor, factor, optimize=True)
    small = 1e-8 * np.vdot(factor, factor) * np.eye(factor.shape[1])
    return np.asarray(np.linalg.solve(grams + small, (known @ factor)[:, :, None])[:, :, 0])


def _with_missing(stack: Stack, seen: np.ndarray, found: Found, rules: Rules) -> Found:
    """Alternate between missing entries and steps, extrapolated by the ratio of the last two changes.

    At most 2000 times, each of them two steps.
    """
    clock, factors = time.perf_counter(), found.minimum.point.factors
    known = np.where(seen, stack.matrix, 0.0)
    norm, value, before = float(np.vdot(known, known)), np.inf, stack.matrix
    change: np.ndarray | None = None
    for n_iter in range(1, 2001):
        end = minimize(stack, factors, rules, max_iter=2)
        factors, now = end.point.factors, _observed_distance(end.point, seen)
        penalty = end.point.value - end.point.distance
        gain, value = value - now - penalty, now + penalty
        tell("missing entries, round %d", n_iter)
        is_over = abs(gain) <= 1e-9 * value or value <= 1e-28 * norm
        fitted = end.point.fitted_rows()
        filled = np.where(seen, stack.matrix, fitted)
        moved, change = change, filled - before
        if moved is not None and not is_over and n_iter % 3 == 0 and gain > 0:
            ratio = float(np.vdot(moved, change)) / max(float(np.vdot(moved, moved)), 1e-300)
            filled = filled + change * min(max(ratio, 0.0), 0.95) / (1 - min(max(ratio, 0.0), 0.95))
        before, stack = filled, Stack(filled, stack.groups)
        if is_over:
            break
    seconds = time.perf_counter() - clock
    name, error = "missing entries by expectation maximization", (now / norm) ** 0.5
    entry = LogEntry(name, n_iter, error, seconds, p_missed=found.p_missed)
    last = Minimum(Point.at(stack, factors, rules.ridge), is_over, (*found.minimum.values, value))
    return Found(last, [*found.history, entry], found.p_missed)
