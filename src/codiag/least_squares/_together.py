r"""Alternating least squares of many members together, each accelerated until it has converged.

Members are tensors of one shape, each from one or several starts, or one tensor whose rows along a mode count a number
of times that differs from member to member, as in resamples. Near a minimum sweeps are a fixed-point iteration, which
Anderson acceleration takes to its end in a few steps (`codiag._arrays.Extrapolation` has the formula), here with
coefficients of its own for each member.

References
----------
D. Mitchell, N. Ye and H. De Sterck, "Nesterov acceleration of alternating least squares for canonical tensor
decomposition", Numer. Linear Algebra Appl. 27(4), 2020.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from codiag._arrays import (
    Array,
    adjoint,
    array_namespace,
    conjugate,
    identity,
    matrix_transpose,
    real_part,
    squared_magnitudes,
    to_host,
)
from codiag.least_squares._batch import RowEquations
from codiag.least_squares._tolerances import NEGLIGIBLE, ROUNDING, TINY


class NormalEquations:
    """The normal equations of members for complete tensors.

    Parameters
    ----------
    entries : array of shape (g, d_0, d_1, ...)
        Tensors. Each has n / g of the n members, one after the other.
    counts : array of shape (n, d_m), optional
        How often a member counts the rows of a mode.
    mode : int
        The mode of `counts`.
    """

    def __init__(self, entries: Array, counts: Array | None = None, mode: int = 0) -> None:
        self._order, self._counts, self._mode = entries.ndim - 1, counts, mode
        self.modes = list(range(self._order))
        xp, self._sides = array_namespace(entries), list[Array]()
        for own in range(self._order):
            axes = [0, own + 1, *(other + 1 for other in self._others(own))]
            shape = (entries.shape[0], entries.shape[own + 1], -1)
            self._sides.append(xp.reshape(xp.permute_dims(entries, axes), shape))

    @property
    def n_tensors(self) -> int:
        """Number of tensors."""
        return int(self._sides[0].shape[0])

    def of(self, mode: int, factors: Sequence[Array]) -> tuple[Array, Array]:
        """Return the Gram matrices of a mode (n, k, k), and its right-hand sides (n, d_m, k)."""
        xp, n, rank = array_namespace(factors[0]), factors[0].shape[0], factors[0].shape[2]
        counted = [self.counted(other, factors[other]) for other in self._others(mode)]
        grams = [adjoint(factors[other]) @ own for other, own in zip(self._others(mode), counted, strict=True)]
        columns = [_beside(conjugate(own), self.n_tensors) for own in counted]
        product = self._sides[mode] @ columnwise_kronecker(columns)
        product = xp.reshape(product, (self.n_tensors, -1, n // self.n_tensors, rank))
        return math.prod(grams[1:], start=grams[0]), xp.reshape(xp.permute_dims(product, (0, 2, 1, 3)), (n, -1, rank))

    def select(self, kept: np.ndarray) -> None:
        """Continue with some of the members."""
        xp = array_namespace(self._sides[0])
        index = xp.asarray(kept)
        if self._counts is not None:
            self._counts = xp.take(self._counts, index, axis=0)
        if self.n_tensors > 1:  # one member each
            self._sides = [xp.take(side, index, axis=0) for side in self._sides]

    def _others(self, mode: int) -> list[int]:
        return [other for other in range(self._order) if other != mode]

    def counted(self, mode: int, factor: Array) -> Array:
        """Return the factors of a mode with each row as often as it counts."""
        return factor if self._counts is None or mode != self._mode else factor * self._counts[:, :, None]


class CountedRows:
    """The normal equations of every row of members for one tensor with weights of its entries, zero for missing ones.

    Parameters
    ----------
    entries, shares : arrays of shape (d_0, d_1, ...)
    counts : array of shape (n, d_m)
        How often a member counts the rows of a mode.
    mode : int
        The mode of `counts`.
    one_sided : sequence of bool, optional
        Modes whose factors are not negative; they are solved first.
    """

    def __init__(self, entries: Array, shares: Array, counts: Array, mode: int, one_sided: Sequence[bool] = ()) -> None:
        signs, shape = one_sided or (False,) * entries.ndim, entries.shape
        self.modes = sorted(range(entries.ndim), key=lambda other: (not signs[other], shape[other]))
        self._grams, self._products = (RowEquations(entries, shares, self.modes) for _ in range(2))
        self._counts, self._mode = counts, mode

    def of(self, mode: int, factors: Sequence[Array]) -> tuple[Array, Array]:
        """Return the Gram matrices of all rows (n, d_m, k, k), and their right-hand sides (n, d_m, k)."""
        roots, whole, counted = list(factors), list(factors), factors[self._mode]
        if mode != self._mode:
            roots[self._mode] = counted * array_namespace(counted).sqrt(self._counts)[:, :, None]
            whole[self._mode] = counted * self._counts[:, :, None]
        return self._grams.of(mode, roots)[0], self._products.of(mode, whole)[1]

    def select(self, kept: np.ndarray) -> None:
        """Continue with some of the members."""
        xp = array_namespace(self._counts)
        self._counts = xp.take(self._counts, xp.asarray(kept), axis=0)

    def counted(self, mode: int, factor: Array) -> Array:
        """Return the factors of a mode with each row as often as it counts."""
        return factor if mode != self._mode else factor * self._counts[:, :, None]


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


def sweep(
    equations: NormalEquations | CountedRows, factors: Sequence[Array], one_sided: Sequence[bool] = ()
) -> tuple[list[Array], Array]:
    """Take one sweep over the modes of all members; return balanced factors and the objectives."""
    xp, order, solved = array_namespace(factors[0]), len(factors), list(factors)
    signs = one_sided or (False,) * order
    # Free factors come last: they turn the sign of components that one-sided factors could only remove.
    for mode in sorted(equations.modes, key=lambda mode: not signs[mode]):
        gram, product = equations.of(mode, solved)
        if signs[mode]:
            solved[mode] = _one_sided(gram, product, solved[mode], turns_signs=not all(signs))
        else:
            solved[mode] = _free(gram, product)
    image = solved[mode] @ matrix_transpose(gram) if gram.ndim == 3 else (gram @ solved[mode][..., None])[..., 0]
    slope = image / 2 - product
    values = real_part(xp.sum(slope * conjugate(equations.counted(mode, solved[mode])), axis=(1, 2)))
    lengths = [xp.linalg.vector_norm(factor, axis=1, keepdims=True) + TINY for factor in solved]
    mean = math.prod(lengths[1:], start=lengths[0]) ** (1 / order)
    return [factor * (mean / length) for factor, length in zip(solved, lengths, strict=True)], values


def settle(
    equations: NormalEquations | CountedRows,
    factors: Sequence[Array],
    one_sided: Sequence[bool] = (),
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
    one_sided : sequence of bool, optional
        Modes whose factors are not negative.
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
        swept, values = sweep(equations, _split(point, sizes), one_sided)
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
        if any(one_sided):
            point = _feasible(point, safe, sizes, one_sided)
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


def _free(gram: Array, product: Array) -> Array:
    """Return the factors of a mode by least squares; singular equations are solved as if they were not quite so."""
    xp, rank = array_namespace(gram), gram.shape[-1]
    sizes = sum(real_part(gram[..., i, i]) for i in range(rank))
    matrix = gram + (ROUNDING * sizes + TINY)[..., None, None] * identity(rank, gram)
    if gram.ndim == 4:
        return xp.linalg.solve(matrix, product[..., None])[..., 0]
    return matrix_transpose(xp.linalg.solve(matrix, matrix_transpose(product)))


def _one_sided(gram: Array, product: Array, factor: Array, *, turns_signs: bool) -> Array:
    """Return factors whose columns are in turn, and twice, the best that are not negative, for given other columns."""
    xp, rank = array_namespace(gram), gram.shape[-1]
    columns = [factor[:, :, i] for i in range(rank)]
    for i in [*range(rank), *range(rank)]:
        row = gram[..., i, :] if gram.ndim == 4 else gram[:, None, i, :]
        fitted = sum(row[..., j] * columns[j] for j in range(rank))
        best = columns[i] + (product[:, :, i] - fitted) / (row[..., i] + TINY)
        if turns_signs:
            best = xp.where(xp.max(best, axis=1, keepdims=True) > 0, best, -best)
        columns[i] = xp.where(best > 0, best, 0 * best)
    return xp.stack(columns, axis=2)


def _beside(factor: Array, n_tensors: int) -> Array:
    """Return the factors of all members of a tensor side by side, (g, d, n k / g)."""
    xp, (n, size, rank) = array_namespace(factor), factor.shape
    if n == n_tensors:
        return factor
    split = xp.reshape(factor, (n_tensors, n // n_tensors, size, rank))
    return xp.reshape(xp.permute_dims(split, (0, 2, 1, 3)), (n_tensors, size, -1))


def columnwise_kronecker(factors: Sequence[Array]) -> Array:
    """Return the columnwise Kronecker products of stacks of factors, (n, d_0 d_1 ..., k)."""
    xp, rows = array_namespace(factors[0]), factors[0]
    for factor in factors[1:]:
        product = rows[:, :, None, :] * factor[:, None, :, :]
        rows = xp.reshape(product, (rows.shape[0], -1, rows.shape[2]))
    return rows
