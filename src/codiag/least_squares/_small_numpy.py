r"""Gauss-Newton steps for a tensor that is a NumPy array, with few calls of Python.

They compute what `LeastSquares` and `Curvature` compute for arrays of any library, in the same coordinates, in half the
time: a step on a small tensor takes some hundred microseconds of arithmetic, as long as the calls through the array API
(measured on tensors of size 10 to 30 with as many components). The residual is formed, and the gradient is its product
with the factors, so that both are exact to rounding of the residual. Equal columns of the unfolding of a symmetric
tensor are computed once: at order n, about one of (n - 1)! remains.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
from scipy.linalg import lapack

from codiag._arrays import adjoint, conjugate, is_complex, squared_magnitudes
from codiag.least_squares._layout import Layout
from codiag.least_squares._linear_solve import DIRECT_UNKNOWNS, conjugate_gradients
from codiag.least_squares._powers import powers_of
from codiag.least_squares._tolerances import ROUNDING, TINY


class HostSteps:
    """Half the squared distance of components from an array, plus a ridge, with damped Gauss-Newton steps.

    Parameters
    ----------
    entries : numpy.ndarray of float64 or complex128
    layout : Layout
        All modes have a factor of their own, or all share one.
    ridge : float
        Half of it times the squares of all unknowns is added to the objective.
    weights : numpy.ndarray of float64, optional
        Of the entries, symmetric if all modes share a factor.
    share : float
        Of the matrix of the complete tensor that the matrix is taken to be: see `LeastSquares.expected_share`.
    """

    def __init__(
        self,
        entries: np.ndarray,
        layout: Layout,
        ridge: float = 0.0,
        weights: np.ndarray | None = None,
        share: float = 1.0,
    ) -> None:
        weighted = entries if weights is None else weights * entries
        self.layout, self.ridge, self.total = layout, ridge, _inner_product(entries, weighted)
        self._share = share
        self._order, self._signs = entries.ndim, layout.signs
        # The longest mode comes first: what is left once it is contracted is smallest.
        first = 0 if self._signs is not None else int(np.argmax(entries.shape))
        self._modes = [first, *(mode for mode in range(entries.ndim) if mode != first)]
        self._powers = None if self._signs is None else powers_of(entries.shape[0], entries.ndim - 1)
        self._side, self._roots = _turned(entries, first), None if weights is None else np.sqrt(_turned(weights, first))
        if self._powers is not None:
            places = self._powers.places
            self._side = np.take(self._side, places, axis=1) * self._powers.scales
            self._roots = None if self._roots is None else np.take(self._roots, places, axis=1)
        self._left = np.empty_like(self._side)
        self._shape = tuple(entries.shape[mode] for mode in self._modes)
        ends = np.cumsum([0, *entries.shape]).tolist()
        self._rows = [slice(ends[mode], ends[mode + 1]) for mode in range(entries.ndim)]
        self._equations: Equations | None = None

    def value_and_gradient(self, point: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the objective and its derivative."""
        signs = self._signs
        factors = [point[self._rows[mode]] for mode in self._modes] if signs is None else [point * signs]
        rest = _khatri_rao(factors[1:]) if self._powers is None else self._powers.of(point)
        left = np.matmul(factors[0], rest.T, out=self._left)
        np.subtract(self._side, left, out=left)
        if self._roots is not None:
            left *= self._roots
        value = _inner_product(left, left) / 2
        if self._roots is not None:
            left *= self._roots
        slope = np.empty_like(point)
        factors, rest = [conjugate(factor) for factor in factors], conjugate(rest)
        if signs is not None:
            np.multiply(left @ rest, -self._order * signs, out=slope)
        else:
            slope[self._rows[self._modes[0]]] = -(left @ rest)
            inner = (factors[0].T @ left).reshape(-1, *self._shape[1:])
            for place in range(1, self._order):
                slope[self._rows[self._modes[place]]] = -_contracted(inner, factors, place)
            self._remove_scaling(point, slope)
        if self.ridge > 0:
            value += self.ridge * _inner_product(point, point) / 2
            slope += self.ridge * point
        return value, slope

    def _remove_scaling(self, point: np.ndarray, slope: np.ndarray) -> None:
        """Make derivatives along the columns of a component equal in all modes, as they are but for rounding."""
        both = conjugate(point) * slope
        starts = [rows.start for rows in self._rows]
        along = np.add.reduceat(both, starts, axis=0)
        squares = np.add.reduceat(squared_magnitudes(point), starts, axis=0)
        share = (along.mean(axis=0) - along) / np.where(squares > 0, squares, 1.0)
        for rows, own in zip(self._rows, share, strict=True):
            slope[rows] += point[rows] * own

    def step(
        self, point: np.ndarray, slope: np.ndarray, damping: float, max_products: int, free: np.ndarray | None = None
    ) -> tuple[np.ndarray, float]:
        """Return the damped step of the unknowns that are free, and the decrease that it promises."""
        if self._equations is None or self._equations.point is not point:
            rows = [slice(None)] if self._signs is not None else self._rows
            self._equations = Equations(point, rows, self._signs, self._order, self.ridge, self._share, free)
        return self._equations.step(slope, damping, self.total, max_products)


class Equations:
    """The damped Gauss-Newton equations at a point, inside and outside of the ranges of the factors.

    See `codiag.least_squares._linear_solve` for the parts, `_curvature` for the matrix.
    """

    def __init__(
        self,
        point: np.ndarray,
        rows: Sequence[slice],
        signs: np.ndarray | None,
        order: int,
        ridge: float,
        share: float = 1.0,
        free: np.ndarray | None = None,
    ) -> None:
        self.point, self._rows = point, rows
        self._free = None if free is None or free.all() else free
        rank = point.shape[1]
        factors = [point[part] for part in rows]
        self._bases: list[np.ndarray | None] = []
        inner = []
        for factor in factors:
            is_long = factor.shape[0] > rank and self._free is None  # else rows are not equal
            basis, own = _orthonormal(factor) if is_long else (None, factor)
            self._bases.append(basis)
            inner.append(own)
        self._inner = inner
        self._own, self._cross = (share * blocks for blocks in _blocks(inner, signs, order))
        diagonals = self._own.reshape(len(inner), -1)[:, :: rank + 1]
        diagonals += ridge
        diagonals = np.abs(diagonals)
        self._scales = np.maximum(diagonals, ROUNDING * diagonals.max() + TINY)
        self._matrix: np.ndarray | None = None

    def step(self, slope: np.ndarray, damping: float, total: float, max_products: int) -> tuple[np.ndarray, float]:
        """Return the damped step of the unknowns that are free, and the decrease that it promises."""
        slope = slope if self._free is None else slope * self._free
        turned = [
            slope[part] if basis is None else adjoint(basis) @ slope[part]
            for part, basis in zip(self._rows, self._bases, strict=True)
        ]
        inside = self._solved(turned, damping, total, max_products)
        inverse = np.linalg.inv(self._damped(damping)) if any(basis is not None for basis in self._bases) else None
        move = np.empty_like(slope)
        promised = 0.0
        for place, (part, basis) in enumerate(zip(self._rows, self._bases, strict=True)):
            if basis is None or inverse is None:
                move[part] = inside[place]
            else:
                outside = (slope[part] - basis @ turned[place]) @ inverse[place]
                np.subtract(basis @ inside[place], outside, out=move[part])
            promised += damping * _inner_product(move[part] * self._scales[place], move[part])
        return move, (promised - _inner_product(move, slope)) / 2

    def _damped(self, damping: float) -> np.ndarray:
        """Return the blocks within factors, damped, (n, k, k)."""
        damped = self._own.copy()
        n, rank = self._scales.shape
        damped.reshape(n, -1)[:, :: rank + 1] += damping * self._scales
        return damped

    def _solved(self, slopes: list[np.ndarray], damping: float, total: float, max_products: int) -> list[np.ndarray]:
        """Return the step inside of the ranges, mode by mode: solved for directly, or by conjugate gradients."""
        sizes = [part.shape[0] for part in slopes]
        n_unknowns = sum(sizes) * self.point.shape[1] if self._free is None else int(np.count_nonzero(self._free))
        if n_unknowns == 0:
            return [np.zeros_like(part) for part in slopes]
        if n_unknowns > DIRECT_UNKNOWNS:
            return self._iteratively(slopes, sizes, damping, total, max_products)
        right = -(slopes[0] if len(slopes) == 1 else np.concatenate(slopes)).reshape(-1)
        move = self._directly(right, sizes, damping).reshape(-1, self.point.shape[1])
        ends = list(accumulate(sizes))
        return [move[end - size : end] for end, size in zip(ends, sizes, strict=True)]

    def _directly(self, right: np.ndarray, sizes: list[int], damping: float) -> np.ndarray:
        chosen = np.arange(right.size) if self._free is None else np.flatnonzero(self._free)
        if self._matrix is None:
            self._matrix = self._lower_matrix(sizes)
            self._matrix = self._matrix if self._free is None else self._matrix[np.ix_(chosen, chosen)]
        move, right = np.zeros_like(right), right[chosen]
        move[chosen] = self._factorized(right, damping * np.repeat(self._scales, sizes, axis=0).reshape(-1)[chosen])
        return move

    def _factorized(self, right: np.ndarray, added: np.ndarray) -> np.ndarray:
        """Solve the equations of the lower triangle of the matrix, with something added to its diagonal."""
        assert self._matrix is not None
        matrix = self._matrix.copy()
        matrix.reshape(-1)[:: matrix.shape[0] + 1] += added
        # The lower triangle in the order of C is the upper one in that of Fortran: nothing is copied.
        factorize, solve, solve_any = _routines(("potrf", "potrs", "gesv"), matrix)
        factor, failed = factorize(matrix.T, lower=0, clean=0, overwrite_a=1)
        if failed == 0:  # transposed is conjugated
            return np.asarray(conjugate(solve(factor, conjugate(right), lower=0)[0]))
        matrix = np.tril(self._matrix) + adjoint(np.tril(self._matrix, -1))
        matrix.reshape(-1)[:: matrix.shape[0] + 1] += added
        return np.asarray(solve_any(matrix, right)[2])

    def _lower_matrix(self, sizes: list[int]) -> np.ndarray:
        """Return the lower triangle of the matrix; unknowns are numbered row by row."""
        rank, ends = self.point.shape[1], np.cumsum([0, *sizes]).tolist()
        matrix = np.zeros((ends[-1], rank, ends[-1], rank), self.point.dtype)
        for m, left in enumerate(self._inner):
            for n, right in enumerate(self._inner[: m + 1]):
                block = matrix[ends[m] : ends[m + 1], :, ends[n] : ends[n + 1], :]
                cross = self._cross[m, n]
                if m != n or cross.any():
                    # (a, i), (b, j): cross_ji A_m[a, j] conj(A_n[b, i])
                    np.multiply(left[:, None, None, :], adjoint(right)[:, :, None] * cross.T[:, None, :], out=block)
                if m == n:
                    places = np.arange(ends[m], ends[m + 1])
                    matrix[places, :, places, :] += self._own[m].T
        return matrix.reshape(ends[-1] * rank, -1)

    def _iteratively(
        self, slopes: list[np.ndarray], sizes: list[int], damping: float, total: float, max_products: int
    ) -> list[np.ndarray]:
        """Solve the equations inside by conjugate gradients; short factors are padded with rows of zeros."""
        shape = (len(slopes), max(sizes), self.point.shape[1])
        inner, right = _padded(self._inner, shape), -_padded(slopes, shape)
        others = conjugate(inner)
        allowed = None if self._free is None else _padded([self._free[rows] for rows in self._rows], shape)
        shift = damping * self._scales[:, None, :]
        inverse = np.linalg.inv(self._damped(damping))

        def multiply(move: np.ndarray) -> np.ndarray:
            mixed = (self._cross * (move.transpose(0, 2, 1) @ others)).sum(axis=1)
            image = move @ self._own + inner @ mixed + shift * move
            return image if allowed is None else allowed * image

        def precondition(move: np.ndarray) -> np.ndarray:
            return move @ inverse if allowed is None else allowed * (move @ inverse)

        found = conjugate_gradients(
            multiply, precondition, right, _inner_product, scale=total, max_products=max_products
        )
        move = found.move if found.is_positive else precondition(right)
        return [part[:size] for part, size in zip(move, sizes, strict=True)]


def _padded(parts: Sequence[np.ndarray], shape: tuple[int, ...]) -> np.ndarray:
    """Return a stack of matrices, with rows of zeros below short ones."""
    stack = np.zeros(shape, parts[0].dtype)
    for place, part in enumerate(parts):
        stack[place, : part.shape[0]] = part
    return stack


def _turned(entries: np.ndarray, first: int) -> np.ndarray:
    """Return the unfolding along a mode."""
    return np.ascontiguousarray(np.moveaxis(entries, first, 0)).reshape(entries.shape[first], -1)


def _inner_product(left: np.ndarray, right: np.ndarray) -> float:
    return float(np.vdot(left, right).real)


def _blocks(inner: Sequence[np.ndarray], signs: np.ndarray | None, order: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the blocks of the matrix within factors (n, k, k) and between them (n, n, k, k)."""
    if signs is not None:
        gram, both = inner[0].T @ conjugate(inner[0]), np.outer(signs, signs)
        own = order * both * gram ** (order - 1)
        return own[None], (order * (order - 1) * both * gram ** (order - 2))[None, None]
    grams = [factor.T @ conjugate(factor) for factor in inner]
    n, rank = len(grams), grams[0].shape[0]
    own, cross = np.empty((n, rank, rank), grams[0].dtype), np.zeros((n, n, rank, rank), grams[0].dtype)
    for m in range(n):
        own[m] = math.prod(grams[mode] for mode in range(n) if mode != m)
        for other in range(m):
            cross[m, other] = cross[other, m] = math.prod(grams[mode] for mode in range(n) if mode not in (m, other))
    return own, cross


def _orthonormal(factor: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return an orthonormal basis of the columns, and their coordinates in it."""
    triangularize, form = _routines(("geqrf", "ungqr" if is_complex(factor) else "orgqr"), factor)
    reflections, scales, _, _ = triangularize(factor)
    rank = factor.shape[1]
    inner = np.triu(reflections[:rank])
    return form(reflections, scales, overwrite_a=1)[0], inner


def _routines(names: Sequence[str], matrix: np.ndarray) -> list[Callable[..., Any]]:
    """Return routines of LAPACK for a matrix in double precision, real or complex."""
    kind = "z" if is_complex(matrix) else "d"
    return [getattr(lapack, kind + name) for name in names]


def _khatri_rao(factors: Sequence[np.ndarray]) -> np.ndarray:
    product = factors[0]
    for factor in factors[1:]:
        product = (product[:, None, :] * factor[None, :, :]).reshape(-1, factor.shape[1])
    return product


def _contracted(inner: np.ndarray, factors: Sequence[np.ndarray], place: int) -> np.ndarray:
    """Contract (r, d_1, ..., d_N) with the columns of all factors but the first and one; return (d, r)."""
    for other in range(len(factors) - 1, place, -1):
        inner = (inner @ factors[other].T.reshape(-1, *[1] * (inner.ndim - 3), inner.shape[-1], 1))[..., 0]
    for other in range(1, place):
        rows = factors[other].T[:, None, :]
        inner = (rows @ inner.reshape(inner.shape[0], inner.shape[1], -1)).reshape(inner.shape[0], *inner.shape[2:])
    return inner.T
