r"""Alternating least squares: solve for one factor at a time, with the others fixed; of one fit, or of many together.

Members of a batch (`settle`) are tensors of one shape, each from one or several starts, or one tensor whose rows along
a mode count a number of times that differs from member to member, as in resamples. Near a minimum sweeps are a
fixed-point iteration, which Anderson acceleration takes to its end in a few steps (`codiag._arrays.Extrapolation` has
the formula), here with coefficients of its own for each member.

References
----------
H. De Sterck, "A nonlinear GMRES optimization algorithm for canonical tensor decomposition", SIAM J. Sci. Comput. 34(3),
2012.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from codiag._arrays import (
    Array,
    array_namespace,
    conjugate,
    identity,
    matrix_transpose,
    real_part,
    squared_magnitudes,
    to_host,
)
from codiag.least_squares._batch import NormalEquations, RowEquations, gram_products, solved_rows
from codiag.least_squares._components import unit_components
from codiag.least_squares._gauss_newton import OptimizeResult
from codiag.least_squares._least_squares import LeastSquares
from codiag.least_squares._tolerances import NEGLIGIBLE, ROUNDING, TINY
from codiag.tensors import FactoredTensor


def alternate(
    objective: LeastSquares,
    start: FactoredTensor,
    *,
    max_iter: int,
    tol: float,
    callback: Callable[[FactoredTensor, float], bool] | None = None,
) -> OptimizeResult:
    """Take sweeps over the modes until the relative error changes by less than a tolerance.

    Parameters
    ----------
    objective : LeastSquares
    start : FactoredTensor
        Satisfies the constraints.
    max_iter : int
    tol : float
        Change of the relative error in a sweep.
    callback : callable, optional
        Called as ``callback(components, objective)`` after every sweep; True ends the fit.
    """
    is_plain = not objective.problem.required_features
    current = unit_components(start) if is_plain else start
    error, value, converged, n_iter = math.inf, math.inf, False, 0
    while n_iter < max_iter and not converged:
        before, current = error, objective.sweep(current.factors, unit=is_plain)
        error = objective.relative_error(current)
        n_iter += 1
        converged = abs(before - error) < tol
        value = error**2 * objective.squared_norm / 2
        if objective.penalties:
            value = objective.value(objective.parametrization.vectorize(current, balanced=False))
        if callback is not None and callback(current, value):
            break
    return OptimizeResult(current, value, n_iter, converged)


@dataclass(frozen=True, eq=False)
class Settled:
    """Where sweeps of members have ended.

    Attributes
    ----------
    factors : list of arrays of shape (n, d_m, k)
        Components have one size in all modes.
    objectives : array of shape (n,), on the host
        Half the squared distances, without half the squared norms of the tensors.
    n_sweeps : array of int of shape (n,)
    converged : array of bool of shape (n,)
        Whether the last sweep moved no component by more than the tolerance.
    """

    factors: list[Array]
    objectives: np.ndarray
    n_sweeps: np.ndarray
    converged: np.ndarray


def sweep(equations: NormalEquations | RowEquations, factors: Sequence[Array]) -> tuple[list[Array], Array]:
    """Take one sweep over the modes of all members; return balanced factors and the objectives."""
    xp, order, solved = array_namespace(factors[0]), len(factors), list(factors)
    signs = equations.one_sided
    for mode in equations.modes:
        gram, product = equations.of(mode, solved)
        if signs[mode]:  # each column twice
            once = solved_rows(gram, product, solved[mode], turns_signs=not all(signs))
            solved[mode] = solved_rows(gram, product, once, turns_signs=not all(signs))
        else:
            solved[mode] = solved_rows(gram, product, share=ROUNDING)
    slope = gram_products(gram, solved[mode]) / 2 - product
    values = real_part(xp.sum(slope * conjugate(equations.counted(mode, solved[mode])), axis=(1, 2)))
    lengths = [xp.linalg.vector_norm(factor, axis=1, keepdims=True) + TINY for factor in solved]
    mean = math.prod(lengths[1:], start=lengths[0]) ** (1 / order)
    return [factor * (mean / length) for factor, length in zip(solved, lengths, strict=True)], values


def settle(
    equations: NormalEquations | RowEquations,
    factors: Sequence[Array],
    *,
    max_sweeps: int,
    tol: float,
) -> Settled:
    """Take accelerated sweeps until every member has converged.

    Parameters
    ----------
    equations : NormalEquations
        Of members with a tensor each, or of one tensor; members leave them as they converge.
    factors : sequence of arrays of shape (n, d_m, k)
    max_sweeps : int
    tol : float
        Largest move of a component in the last sweep, relative to its size.
    """
    xp, n = array_namespace(factors[0]), factors[0].shape[0]
    sizes, active = [factor.shape[1] for factor in factors], np.arange(n)
    ended = Settled([], np.full(n, math.inf), np.zeros(n, dtype=int), np.zeros(n, dtype=bool))
    parts, path = list[tuple[np.ndarray, Array]](), _Path()
    point = xp.concat(list(factors), axis=1)
    safe, lowest = point, 0 * real_part(point[:, 0, 0]) + math.inf
    for n_sweeps in range(1, max_sweeps + 1):
        swept, values = sweep(equations, _split(point, sizes))
        image = xp.concat(swept, axis=1)
        is_lower = values <= lowest + ROUNDING * xp.abs(values)
        moves = xp.max(xp.sum(squared_magnitudes(image - point), axis=1) / _column_floor(image), axis=1)
        safe, lowest = xp.where(is_lower[:, None, None], image, safe), xp.where(is_lower, values, lowest)
        done = to_host((moves < tol**2) & is_lower) | (n_sweeps == max_sweeps)
        if done.any():
            out, stay = np.flatnonzero(done), np.flatnonzero(~done)
            ended.objectives[active[out]], ended.n_sweeps[active[out]] = to_host(lowest)[out], n_sweeps
            ended.converged[active[out]] = to_host((moves < tol**2) & is_lower)[out]
            parts.append((active[out], xp.take(safe, xp.asarray(out), axis=0)))
            if stay.size == 0:
                break
            active = active[stay]
            point, image, safe, lowest, is_lower = (
                xp.take(own, xp.asarray(stay), axis=0) for own in (point, image, safe, lowest, is_lower)
            )
            equations.select(stay)
            path.select(stay)
        ahead = path.extrapolated(point, image, is_lower)
        # A point that is higher than the lowest so far is left for a plain sweep from there.
        point = xp.where(is_lower[:, None, None], ahead, safe)
        if any(equations.one_sided):
            point = _feasible(point, safe, sizes, equations.one_sided)
    order = np.argsort(np.concatenate([places for places, _ in parts]), kind="stable")
    whole = xp.take(xp.concat([part for _, part in parts], axis=0), xp.asarray(order), axis=0)
    ended.factors.extend(_split(whole, sizes))
    return ended


class _Path:
    """The last points of all members and the moves from them, extrapolated to where the moves vanish."""

    def __init__(self, memory: int = 6) -> None:
        self._memory = memory
        self._last: tuple[Array, Array] | None = None
        self._shifts: list[Array] = []
        self._changes: list[Array] = []

    def select(self, kept: np.ndarray) -> None:
        def taken(values: Array) -> Array:
            return array_namespace(values).take(values, array_namespace(values).asarray(kept), axis=0)

        self._last = None if self._last is None else (taken(self._last[0]), taken(self._last[1]))
        self._shifts, self._changes = [taken(one) for one in self._shifts], [taken(one) for one in self._changes]

    def extrapolated(self, point: Array, image: Array, is_lower: Array) -> Array:
        """Record points and what sweeps made of them, and return the next points; forget those of members that rise."""
        xp, n, move = array_namespace(point), point.shape[0], image - point
        if self._last is not None:
            self._shifts = [*self._shifts, xp.reshape(point - self._last[0], (n, -1))][-self._memory :]
            self._changes = [*self._changes, xp.reshape(move - self._last[1], (n, -1))][-self._memory :]
        kept = xp.astype(is_lower, point.dtype)[:, None]
        self._shifts, self._changes = [one * kept for one in self._shifts], [one * kept for one in self._changes]
        self._last = (point, move)
        if not self._changes:
            return image
        changes = xp.stack(self._changes, axis=1)  # (n, m, p)
        gram = real_part(conjugate(changes) @ matrix_transpose(changes))
        right = real_part(conjugate(changes) @ xp.reshape(move, (n, -1, 1)))
        scale = xp.sqrt(xp.linalg.diagonal(gram)) + TINY
        gram = gram / (scale[:, :, None] * scale[:, None, :]) + ROUNDING * identity(gram.shape[1], gram)
        shares = xp.linalg.solve(gram, right / scale[:, :, None]) / scale[:, :, None]
        step = matrix_transpose(xp.stack(self._shifts, axis=1) + changes) @ xp.astype(shares, point.dtype)
        ahead = image - xp.reshape(step, point.shape)
        return xp.where(xp.isfinite(xp.sum(real_part(ahead), axis=(1, 2)))[:, None, None], ahead, image)


def _split(point: Array, sizes: Sequence[int]) -> list[Array]:
    """Return the factors that stand below each other."""
    ends = np.cumsum([0, *sizes]).tolist()
    return [point[:, begin:end, :] for begin, end in pairwise(ends)]


def _column_floor(point: Array) -> Array:
    """Return the squared norms of components; those that vanish may move."""
    xp = array_namespace(point)
    squares = xp.sum(squared_magnitudes(point), axis=1)
    return xp.maximum(squares, NEGLIGIBLE**2 * xp.max(squares, axis=1, keepdims=True) + TINY)


def _feasible(point: Array, image: Array, sizes: Sequence[int], one_sided: Sequence[bool]) -> Array:
    """Return points whose one-sided factors are not negative; columns that would vanish are left where they were."""
    xp, found = array_namespace(point), []
    for ahead, before, sign in zip(_split(point, sizes), _split(image, sizes), one_sided, strict=True):
        clipped = xp.where(ahead > 0, ahead, 0 * ahead) if sign else ahead
        found.append(xp.where(xp.max(clipped, axis=1, keepdims=True) > 0, clipped, before) if sign else clipped)
    return xp.concat(found, axis=1)
