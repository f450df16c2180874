r"""The objective of PARAFAC2 with the bases eliminated, its gradient, and Gauss-Newton steps.

A slice is :math:`X_k \approx P_k B D_k C^\top` with orthonormal columns of :math:`P_k` and :math:`D_k` the diagonal
matrix of row k of A. For given A, B and C the best :math:`P_k` is the polar factor of :math:`X_k C D_k B^\top`, so that
the objective is one of A, B and C alone. Its Gauss-Newton matrix is that of the projected residual
:math:`P_k^\top X_k - Z_k` with :math:`Z_k = B D_k C^\top`, less the directions :math:`\Omega Z_k` with skew
:math:`\Omega`, in which :math:`P_k` rotates. With :math:`Z_k = U S V^\top` these are, in the coordinates of U and V,
:math:`s_j e_i e_j^\top - s_i e_j e_i^\top`, so that of the entries (i, j) and (j, i) one combination is left.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from codiag._parafac2._slices import Slices

BLOCK = 2_500_000
"""Entries of Jacobians that are formed together, about, and of their products that are kept."""

SAMPLED = 5e6
"""Entries of the Jacobian, about, above which the curvature in B and C is that of some of the slices."""


GROUP = 4096
"""Largest number of slices that are decomposed together."""


@dataclass(frozen=True, eq=False)
class Stack:
    """Slices of equal width, sorted by their numbers of rows and padded by rows of zeros to a few lengths.

    Attributes
    ----------
    matrix : array or sparse matrix of shape (n_rows, width)
        The slices below each other.
    groups : tuple of (int, int)
        Numbers of slices and of rows of each, group by group.
    is_rough : bool
        Whether distances are differences of large numbers, as for sparse slices. Bases then need fewer digits.
    """

    matrix: Any
    groups: tuple[tuple[int, int], ...]
    is_rough: bool = False

    @classmethod
    def of(cls, slices: Slices, least: int, scale: float = 1.0) -> tuple[Stack, np.ndarray, np.ndarray]:
        """Return the stack of slices with at least `least` rows each, divided by `scale`, without empty sparse rows.

        Last are the order of the slices in it, and the place in it of every row, or -1.
        """
        counts = np.diff(slices.matrix.indptr) if slices.is_sparse else np.ones(slices.matrix.shape[0], dtype=int)
        is_kept, owners = counts > 0, np.repeat(np.arange(slices.sizes.size), slices.sizes)
        sizes = np.bincount(owners[is_kept], minlength=slices.sizes.size)
        order = np.argsort(-np.maximum(sizes, least), kind="stable")
        lengths = np.maximum(sizes, least)[order]
        groups, place = [], 0
        while place < order.size:
            group = lengths[place : place + GROUP]
            members = int(np.sum(group > 0.8 * group[0]))  # rows of zeros cost less than many groups
            groups.append((members, int(lengths[place])))
            lengths[place : place + members] = lengths[place]
            place += members
        starts = np.empty(order.size, dtype=int)
        starts[order] = np.cumsum(lengths) - lengths
        places = np.full(owners.size, -1)
        within = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        places[is_kept] = starts[owners[is_kept]] + within
        total = int(lengths.sum())
        if not slices.is_sparse:
            matrix = np.zeros((total, slices.width))
            matrix[places] = slices.matrix / scale
            return cls(matrix, tuple(groups)), order, places
        rows = slices.matrix[np.flatnonzero(is_kept)[np.argsort(places[is_kept])]]
        pointers = np.zeros(total + 1, dtype=rows.indptr.dtype)
        pointers[1 + places[is_kept]] = counts[is_kept]
        matrix = sparse.csr_array((rows.data / scale, rows.indices, np.cumsum(pointers)), shape=(total, slices.width))
        return cls(matrix, tuple(groups), True), order, places

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

    def split(self, per_slice: np.ndarray) -> list[np.ndarray]:
        """Return what there is of each slice, group by group."""
        return np.split(per_slice, np.cumsum([n for n, _ in self.groups])[:-1])

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
        matrix = np.concatenate([part.reshape(-1, rows.shape[1]) for part in parts])
        return Stack(matrix, tuple(groups), self.is_rough)

    def subset(self, stride: int) -> tuple[Stack, np.ndarray]:
        """Return every so many of the slices of each group, and their numbers."""
        rows = self.by_group(np.arange(self.matrix.shape[0]))
        numbers = np.concatenate([each[::stride] for each in self.split(np.arange(self.n_slices))])
        chosen = np.concatenate([each[::stride].ravel() for each in rows])
        groups = tuple((-(-n // stride), length) for n, length in self.groups)
        return Stack(self.matrix[chosen], groups, self.is_rough), numbers


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
        Group by group; none are kept of a rough stack, which has many.
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
        pairs = zip(bases, stack.by_group(scores), strict=True)
        inner = np.concatenate([np.swapaxes(basis, 1, 2) @ view for basis, view in pairs])
        del scores
        weighted = weighted_rows(stack, bases, factors)
        grams = [one.T @ one for one in (a, b, c)]
        if stack.is_sparse:
            back = np.asarray(stack.matrix.T @ weighted) - c @ (grams[0] * grams[1])
            fitted = np.sum(grams[0] * grams[1] * grams[2])
            distance = max(stack.squared_norm - 2 * np.einsum("krs,rs,ks->", inner, b, a, optimize=True) + fitted, 0.0)
        else:
            residual = stack.matrix - weighted @ c.T
            back, distance = residual.T @ weighted, float(np.vdot(residual, residual))
        slope_a = np.einsum("krs,rs->ks", inner, b) - a @ (grams[1] * grams[2])
        slope_b = np.einsum("krs,ks->rs", inner, a) - b @ (grams[0] * grams[2])
        penalty = ridge * sum(float(np.trace(one)) for one in grams)
        slopes = Factors(slope_a - ridge * a, slope_b - ridge * b, back - ridge * c)
        return cls(stack, factors, [] if stack.is_rough else bases, distance + penalty, distance, slopes)

    @cached_property
    def system(self) -> System:
        return System.of(self.factors)

    def fitted_rows(self) -> np.ndarray:
        """Return the fit to all rows of the stack."""
        return np.asarray(weighted_rows(self.stack, self.bases, self.factors) @ self.factors.c.T)


def weighted_rows(stack: Stack, bases: list[np.ndarray], factors: Factors) -> np.ndarray:
    """Return the evolving factors of all rows of a stack, times the weights of their slices."""
    found = np.empty((stack.matrix.shape[0], factors.rank))
    for basis, own, view in zip(bases, stack.split(factors.a), stack.by_group(found), strict=True):
        np.matmul(basis, factors.b * own[:, None, :], out=view)
    return found


def polar_factors(stack: Stack, scores: np.ndarray, factors: Factors) -> list[np.ndarray]:
    """Return the bases that are best for given factors, from the slices times C."""
    found = []
    for view, own in zip(stack.by_group(scores), stack.split(factors.a), strict=True):
        targets = view @ np.swapaxes(factors.b * own[:, None, :], 1, 2)
        is_rest = np.ones(len(targets), dtype=bool)
        if stack.is_rough:  # by half of the digits, in half of the time
            sizes, vectors = np.linalg.eigh(np.swapaxes(targets, 1, 2) @ targets)
            is_rest = sizes[:, 0] <= 1e-12 * sizes[:, -1]
            inverse = vectors / np.sqrt(np.where(is_rest, 1.0, sizes.T).T)[:, None, :]
            bases = targets @ (inverse @ np.swapaxes(vectors, 1, 2))
        else:
            bases = np.empty_like(targets)
        if is_rest.any():
            left, _, right = np.linalg.svd(targets[is_rest], full_matrices=False)
            bases[is_rest] = left @ right
        found.append(bases)
    return found


class Curvatures(NamedTuple):
    """A range of slices: curvatures of rows of A, the coupling with B and the span of C, the curvature in these."""

    part: slice
    own: np.ndarray
    coupling: np.ndarray
    common: np.ndarray


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

    @property
    def stride(self) -> int:
        """Of so many slices, one is in the curvature in B and C."""
        n, rank = self.factors.a.shape
        return int(n * rank**4 // SAMPLED) + 1

    @cached_property
    def sample(self) -> System:
        a, b, c = self.factors.a, self.factors.b, self.factors.c
        return self if self.stride == 1 else System.of(Factors(a[:: self.stride], b, c))

    def _ranges(self) -> Iterator[slice]:
        n, rank = self.factors.a.shape
        most = max(BLOCK // (rank**4 + 1), 1)
        return (slice(start, min(start + most, n)) for start in range(0, n, most))

    @cached_property
    def decomposed(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """U, s and V' of :math:`B D_k` times the transposed triangle of C."""
        left, sizes, right = np.linalg.svd((self.factors.b * self.factors.a[:, None, :]) @ self.triangle.T)
        return left, sizes, right

    @cached_property
    def _kept(self) -> list[Curvatures] | None:
        """The curvatures of all slices, if they are not many."""
        n, rank = self.factors.a.shape
        return list(self._computed()) if n * rank**3 <= BLOCK else None

    def curvatures(self) -> Iterator[Curvatures]:
        """Yield curvatures of ranges of slices."""
        return self._computed() if self._kept is None else iter(self._kept)

    def _computed(self) -> Iterator[Curvatures]:
        for part in self._ranges():
            pairs = pairs_of(self.decomposed[1][part])
            for_a, common = self.jacobian_a(part, *pairs), self.jacobian_common(part, *pairs)
            turned, flat = np.swapaxes(for_a, 1, 2), common.reshape(-1, common.shape[2])
            yield Curvatures(part, turned @ for_a, turned @ common, flat.T @ flat)

    @cached_property
    def curvatures_a(self) -> np.ndarray:
        """The curvatures of the rows of A if B and C are given."""
        found = np.empty((*self.factors.a.shape, self.factors.rank))
        for part in self._ranges():
            jacobian = self.jacobian_a(part, *pairs_of(self.decomposed[1][part]))
            found[part] = np.swapaxes(jacobian, 1, 2) @ jacobian
        return found

    def _turned(self, part: slice) -> tuple[np.ndarray, np.ndarray]:
        """Return B and the triangle of C in the coordinates of U and V of each slice."""
        left, _, right = self.decomposed
        return np.swapaxes(left[part], 1, 2) @ self.factors.b, right[part] @ self.triangle

    def jacobian_a(self, part: slice, pairs: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return derivatives of weighted sums of entries (i, j) and (j, i) by the rows of A, (n, pairs, rank).

        Entries are in the coordinates of `decomposed`.
        """
        (i, j), (first, second) = pairs, weights[..., None]
        for_b, for_c = self._turned(part)
        return np.asarray(first * for_b[:, i] * for_c[:, j] + second * for_b[:, j] * for_c[:, i])

    def jacobian_common(self, part: slice, pairs: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return the same by B and by the span of C, (n, pairs, 2 rank^2)."""
        (i, j), (first, second), a = pairs, weights[..., None, None], self.factors.a[part, None]
        columns, right = np.swapaxes(self.decomposed[0][part], 1, 2), self.decomposed[2][part]
        for_b, for_c = self._turned(part)
        by_b, by_c = a * for_c, a * for_b
        parts = [
            first * columns[:, i, :, None] * by_b[:, j, None] + second * columns[:, j, :, None] * by_b[:, i, None],
            first * right[:, j, :, None] * by_c[:, i, None] + second * right[:, i, :, None] * by_c[:, j, None],
        ]
        return np.concatenate([each.reshape(len(a), i.size, a.shape[2] ** 2) for each in parts], axis=2)

    def _without_rotations(self, part: slice, change: np.ndarray) -> np.ndarray:
        """Return changes of the fit, in the coordinates of `decomposed`, less those that rotations of bases undo."""
        sizes = self.decomposed[1][part]
        shares = sizes[:, :, None] / np.maximum(np.hypot(sizes[:, :, None], sizes[:, None, :]), 1e-300)
        weighted = shares * change
        return np.asarray(shares * (weighted + np.swapaxes(weighted, 1, 2)))

    def coupled(self, step_b: np.ndarray, inside: np.ndarray) -> np.ndarray:
        """Return by how much a step of B, and of C in its span, changes the slopes of the rows of A."""
        found = np.empty(self.factors.a.shape)
        for part in self._ranges():
            (for_b, for_c), a = self._turned(part), self.factors.a[part, None]
            columns, right = np.swapaxes(self.decomposed[0][part], 1, 2), self.decomposed[2][part]
            change = (columns @ step_b * a) @ np.swapaxes(for_c, 1, 2)
            change += (for_b * a) @ np.swapaxes(right @ inside, 1, 2)
            found[part] = np.sum(for_b * (self._without_rotations(part, change) @ for_c), axis=1)
        return found

    def coupled_back(self, step_a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return by how much a step of A changes the slopes of B, and of C in its span."""
        by_b, by_c = np.zeros((2, self.factors.rank, self.factors.rank))
        for part in self._ranges():
            (for_b, for_c), a = self._turned(part), self.factors.a[part, None]
            change = (for_b * step_a[part, None]) @ np.swapaxes(for_c, 1, 2)
            change, (left, _, right) = self._without_rotations(part, change), self.decomposed
            by_b += np.sum(left[part] @ (change @ for_c) * a, axis=0)
            by_c += np.sum(np.swapaxes(right[part], 1, 2) @ (np.swapaxes(change, 1, 2) @ for_b) * a, axis=0)
        return by_b, by_c


def pairs_of(sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return pairs i <= j, and the weights of entries (i, j) and (j, i) in what no rotation of a basis changes."""
    i, j = np.triu_indices(sizes.shape[1])
    norm = np.hypot(sizes[:, i], sizes[:, j])
    norm = np.where(norm > 0, norm, 1.0)
    weights = np.where(i == j, [[[1.0]], [[0.0]]], [sizes[:, i] / norm, sizes[:, j] / norm])
    return np.stack([i, j]), weights
