r"""The objective of PARAFAC2 with the bases eliminated, its gradient, and Gauss-Newton steps.

A slice is :math:`X_k \approx P_k B D_k C^\top` with orthonormal columns of :math:`P_k` and :math:`D_k` the diagonal
matrix of row k of A. For given A, B and C the best :math:`P_k` is the polar factor of :math:`X_k C D_k B^\top`, so that
the objective is one of A, B and C alone. Its Gauss-Newton matrix is that of the projected residual
:math:`P_k^\top X_k - Z_k` with :math:`Z_k = B D_k C^\top`, less the directions :math:`\Omega Z_k` with skew
:math:`\Omega`, in which :math:`P_k` rotates. With :math:`Z_k = U S V^\top` these are, in the coordinates of U and V,
:math:`s_j e_i e_j^\top - s_i e_j e_i^\top`, so that of the entries (i, j) and (j, i) one combination is left.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from typing import Any

import numpy as np
from scipy import sparse

BLOCK = 25_000_000
"""Largest number of entries of a Jacobian that is kept."""


@dataclass(frozen=True, eq=False)
class Stack:
    """Slices of equal width, sorted by their numbers of rows and padded by rows of zeros to a few lengths.

    Attributes
    ----------
    matrix : array or sparse matrix of shape (n_rows, width)
        The slices below each other.
    groups : tuple of (int, int)
        Numbers of slices and of rows of each, group by group.
    """

    matrix: Any
    groups: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, slices: Sequence[Any], least: int) -> tuple[Stack, np.ndarray]:
        """Return the stack of slices with at least `least` rows each, and the order in which they are in it."""
        sizes = np.array([max(one.shape[0], least) for one in slices])
        order = np.argsort(-sizes, kind="stable")
        groups, padded, place = [], [], 0
        while place < order.size:
            length = int(sizes[order[place]])
            members = order[place:][sizes[order[place:]] > 0.8 * length]  # rows of zeros cost less than many groups
            groups.append((members.size, length))
            padded += [_padded(slices[member], length) for member in members]
            place += members.size
        is_sparse = any(sparse.issparse(one) for one in slices)
        return cls(sparse.vstack(padded, "csr") if is_sparse else np.concatenate(padded), tuple(groups)), order

    @property
    def is_sparse(self) -> bool:
        return sparse.issparse(self.matrix)

    @property
    def n_slices(self) -> int:
        return sum(n for n, _ in self.groups)

    @cached_property
    def squared_norm(self) -> float:
        values = self.matrix.data if self.is_sparse else self.matrix.ravel()
        return float(values @ values)

    def by_group(self, rows: np.ndarray) -> list[np.ndarray]:
        """Return views (n, length, columns) of what has the rows of the stack, a view for each group."""
        views, place = [], 0
        for n, length in self.groups:
            views.append(rows[place : place + n * length].reshape(n, length, -1))
            place += n * length
        return views

    def per_row(self, per_slice: np.ndarray) -> np.ndarray:
        """Repeat what there is of each slice for each of its rows."""
        return np.repeat(per_slice, np.repeat([m for _, m in self.groups], [n for n, _ in self.groups]), axis=0)

    def cross_product(self) -> np.ndarray:
        """Return the sum of the cross products of all slices."""
        product = self.matrix.T @ self.matrix
        return product.toarray() if self.is_sparse else product

    def times(self, basis: np.ndarray) -> np.ndarray:
        return np.asarray(self.matrix @ basis)

    def triangles(self, basis: np.ndarray | None = None) -> Stack:
        """Return the triangular factors of the slices, times a basis if given: a stack with the same cross products."""
        if basis is None and (self.is_sparse or all(length <= self.matrix.shape[1] for _, length in self.groups)):
            return self
        rows = self.matrix if basis is None else self.times(basis)
        parts = [np.asarray(np.linalg.qr(view, mode="r")) for view in self.by_group(rows)]
        lengths = [part.shape[1] for part in parts for _ in part]
        groups = [(len(list(same)), length) for length, same in groupby(lengths)]
        return Stack(np.concatenate([part.reshape(-1, rows.shape[1]) for part in parts]), tuple(groups))

    def subset(self, n: int) -> Stack:
        """Return every so many of the slices, about `n`, where all have one length."""
        (n_all, length) = self.groups[0]
        chosen = self.matrix.reshape(n_all, length, -1)[:: max(n_all // n, 1)]
        return Stack(np.ascontiguousarray(chosen).reshape(-1, chosen.shape[2]), ((chosen.shape[0], length),))


def _padded(one: Any, length: int) -> Any:
    missing = length - one.shape[0]
    if sparse.issparse(one):
        pointers = np.pad(one.indptr, (0, missing), mode="edge")
        return sparse.csr_array((one.data, one.indices, pointers), shape=(length, one.shape[1]))
    return np.pad(one, ((0, missing), (0, 0))) if missing else one


@dataclass(frozen=True, eq=False)
class Factors:
    """The factors A (n_slices, rank), B (rank, rank) and C (width, rank), in any scale."""

    a: np.ndarray
    b: np.ndarray
    c: np.ndarray

    @property
    def rank(self) -> int:
        return int(self.b.shape[1])

    def scaled(self, ridge: float = 0.0) -> Factors:
        """Return the same components with unit columns of B and C, or with columns of equal norms under a ridge."""
        sizes = [np.linalg.norm(one, axis=0) for one in (self.a, self.b, self.c)]
        sizes = [np.where(size > 0, size, 1.0) for size in sizes]
        whole = sizes[0] * sizes[1] * sizes[2]
        own = np.cbrt(whole) if ridge else np.ones_like(whole)
        a, b, c = (one * (own / size) for one, size in zip((self.a, self.b, self.c), sizes, strict=True))
        return Factors(a if ridge else a * whole, b, c)


@dataclass(frozen=True)
class Rules:
    """What holds for the factors: no negative entries of A or C, a ridge on all, a lower bound for entries of A.

    If `only_a`, B and C are given.

    The bound is relative to the mean magnitude of the column. It keeps the first phase of a search from minima in which
    single small entries of A have the wrong sign.
    """

    nonnegative_a: bool = False
    nonnegative_c: bool = False
    ridge: float = 0.0
    floor: float | None = None
    only_a: bool = False

    def lowest(self, a: np.ndarray) -> np.ndarray | None:
        """Return the lower bounds of the columns of A."""
        if self.floor is not None:
            return np.asarray(self.floor * np.mean(np.abs(a), axis=0))
        return np.zeros(a.shape[1]) if self.nonnegative_a else None

    def project(self, factors: Factors) -> Factors:
        bound = self.lowest(factors.a)
        a = factors.a if bound is None else np.maximum(factors.a, bound)
        return Factors(a, factors.b, np.maximum(factors.c, 0.0) if self.nonnegative_c else factors.c)


@dataclass(frozen=True, eq=False)
class Point:
    """Factors with the best bases, the objective there, and its gradient.

    Attributes
    ----------
    bases : list of arrays (n, length, rank)
        Group by group.
    value : float
        Squared distance plus penalties.
    """

    stack: Stack
    factors: Factors
    bases: list[np.ndarray]
    value: float
    distance: float
    slopes: Factors = field(repr=False)

    @classmethod
    def at(cls, stack: Stack, factors: Factors, ridge: float = 0.0) -> Point:
        a, b, c = factors.a, factors.b, factors.c
        scores = stack.times(c)
        bases = polar_factors(stack, scores, factors)
        evolving = np.concatenate([(basis @ b).reshape(-1, b.shape[1]) for basis in bases])
        rows = stack.per_row(a)
        weighted = evolving * rows
        if stack.is_sparse:
            fitted = weighted @ (c.T @ c)
            left = scores - fitted
            back = np.asarray(stack.matrix.T @ weighted) - c @ (weighted.T @ weighted)
            distance = max(stack.squared_norm - 2 * np.vdot(scores, weighted) + np.vdot(fitted, weighted), 0.0)
        else:
            residual = stack.matrix - weighted @ c.T
            left, back, distance = residual @ c, residual.T @ weighted, float(np.vdot(residual, residual))
        starts = np.cumsum([0, *np.repeat([m for _, m in stack.groups], [n for n, _ in stack.groups])[:-1]])
        slope_a = np.add.reduceat(evolving * left, starts, axis=0)
        turned = left * rows
        views = zip(bases, stack.by_group(turned), strict=True)
        slope_b = sum(np.einsum("nir,nis->rs", basis, view, optimize=True) for basis, view in views)
        penalty = ridge * sum(float(np.vdot(one, one)) for one in (a, b, c))
        slopes = Factors(slope_a - ridge * a, slope_b - ridge * b, back - ridge * c)
        return cls(stack, factors, bases, distance + penalty, distance, slopes)

    @cached_property
    def system(self) -> System:
        return System.of(self.factors)


def polar_factors(stack: Stack, scores: np.ndarray, factors: Factors) -> list[np.ndarray]:
    """Return the bases that are best for given factors, from the slices times C."""
    targets = (scores * stack.per_row(factors.a)) @ factors.b.T
    found = []
    for view in stack.by_group(targets):
        left, _, right = np.linalg.svd(view, full_matrices=False)
        found.append(left @ right)
    return found


@dataclass(frozen=True, eq=False)
class System:
    """The Gauss-Newton matrix: blocks of single slices that are coupled by B and by the part of C in its own span.

    Attributes
    ----------
    factors : Factors
    frame, triangle : arrays
        C is ``frame @ triangle``, with orthonormal columns of the frame.
    gram : array (rank, rank)
        That of the weighted evolving factors of all slices, the curvature in each row of C outside of its span.
    """

    factors: Factors
    frame: np.ndarray
    triangle: np.ndarray
    gram: np.ndarray

    @classmethod
    def of(cls, factors: Factors) -> System:
        frame, triangle = np.linalg.qr(factors.c)
        gram = (factors.a.T @ factors.a) * (factors.b.T @ factors.b)
        return cls(factors, frame, triangle, gram)

    @cached_property
    def _kept(self) -> list[tuple[slice, np.ndarray, np.ndarray]] | None:
        """The Jacobians of all slices, if they fit into memory."""
        n, rank = self.factors.a.shape
        return list(self._computed()) if n * rank**4 <= BLOCK else None

    def blocks(self) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
        """Yield ranges of slices, and their Jacobians for rows of A, and for B and the span of C."""
        return self._computed() if self._kept is None else iter(self._kept)

    def _computed(self) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
        n, rank = self.factors.a.shape
        most = max(BLOCK // (rank**4 + 1), 1)
        for start in range(0, n, most):
            a = self.factors.a[start : start + most]
            left, sizes, right = self.decomposed(a)
            own = left, right, *pairs_of(sizes)
            yield slice(start, start + len(a)), self.jacobian_a(*own), self.jacobian_common(a, *own)

    def curvatures_a(self) -> np.ndarray:
        """Return the curvatures of the rows of A if B and C are given."""
        left, sizes, right = self.decomposed(self.factors.a)
        jacobian = self.jacobian_a(left, right, *pairs_of(sizes))
        return np.swapaxes(jacobian, 1, 2) @ jacobian

    def decomposed(self, a: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return U, s and V' of :math:`B D_k` times the transposed triangle of C, for some slices."""
        left, sizes, right = np.linalg.svd((self.factors.b * a[:, None, :]) @ self.triangle.T)
        return left, sizes, right

    def jacobian_a(self, left: np.ndarray, right: np.ndarray, pairs: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return derivatives of weighted sums of entries (i, j) and (j, i) by the rows of A, (n, pairs, rank).

        Entries are in the coordinates of `left` and `right`, as `decomposed` returns them.
        """
        (i, j), (first, second) = pairs, weights[..., None]
        for_b, for_c = np.swapaxes(left, 1, 2) @ self.factors.b, right @ self.triangle
        return np.asarray(first * for_b[:, i] * for_c[:, j] + second * for_b[:, j] * for_c[:, i])

    def jacobian_common(
        self, a: np.ndarray, left: np.ndarray, right: np.ndarray, pairs: np.ndarray, weights: np.ndarray
    ) -> np.ndarray:
        """Return the same by B and by the span of C, (n, pairs, 2 rank^2)."""
        (i, j), (first, second) = pairs, weights[..., None, None]
        columns = np.swapaxes(left, 1, 2)
        by_b, by_c = a[:, None, :] * (right @ self.triangle), a[:, None, :] * (columns @ self.factors.b)
        parts = [
            first * columns[:, i, :, None] * by_b[:, j, None] + second * columns[:, j, :, None] * by_b[:, i, None],
            first * right[:, j, :, None] * by_c[:, i, None] + second * right[:, i, :, None] * by_c[:, j, None],
        ]
        return np.concatenate([part.reshape(len(a), i.size, a.shape[1] ** 2) for part in parts], axis=2)

    def curvatures(self) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
        """Yield ranges of slices, the curvature of their rows of A, and its coupling with B and the span of C."""
        for part, for_a, common in self.blocks():
            turned = np.swapaxes(for_a, 1, 2)
            yield part, turned @ for_a, turned @ common

    @cached_property
    def common(self) -> np.ndarray:
        """Curvature in B and the span of C."""
        flat = (jacobian.reshape(-1, jacobian.shape[2]) for _, _, jacobian in self.blocks())
        return np.asarray(sum(part.T @ part for part in flat))


def pairs_of(sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return pairs i <= j, and the weights of entries (i, j) and (j, i) in what no rotation of a basis changes."""
    i, j = np.triu_indices(sizes.shape[1])
    norm = np.hypot(sizes[:, i], sizes[:, j])
    norm = np.where(norm > 0, norm, 1.0)
    weights = np.where(i == j, [[[1.0]], [[0.0]]], [sizes[:, i] / norm, sizes[:, j] / norm])
    return np.stack([i, j]), weights
