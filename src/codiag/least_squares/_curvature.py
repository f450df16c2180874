r"""Second derivatives of the distance between components and a tensor.

Unknown are the scaled factors :math:`A_m`, one above the other in one array (D, k). With Gram matrices
:math:`G_m = A_m^\top A_m` and :math:`\Gamma_m = \ast_{n \ne m} G_n`, :math:`\Gamma_{mn} = \ast_{l \ne m, n} G_l`, the
Gauss-Newton matrix maps X to

.. math:: X_m \Gamma_m + A_m \textstyle\sum_{n \ne m} \Gamma_{mn} \ast (X_n^\top A_n),

at :math:`O(D k^2)` a product; for a symmetric tensor of order N there is one factor and the map is
:math:`N X G^{\ast (N-1)} + N (N - 1) A (G^{\ast (N-2)} \ast (X^\top A))`. The first term, damped, is the
preconditioner.

The Gauss-Newton matrix of entries that were observed, or that count with weights.

A curvature on the unknowns that constraints leave free.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Protocol

import numpy as np
from array_api_compat import device

from codiag._arrays import Array, array_namespace, identity, like, on_host, to_host
from codiag.least_squares._components import product_without
from codiag.least_squares._layout import Layout
from codiag.tensors import DenseTensor
from codiag.tensors.entries import Entries


def curvature_of(layout: Layout, point: Array, residual: DenseTensor | None = None) -> Curvature | SharedCurvature:
    """Return the Gauss-Newton matrix at a point, or with a residual the second derivative, for any layout."""
    return (SharedCurvature if layout.shared else Curvature)(layout, point, residual)


class Curvature:
    r"""The Gauss-Newton matrix at a point; with a residual R, the second derivative itself.

    That adds :math:`-R(\cdot, \cdot, a_{li}, \dots)` between the factors of one component in two modes, and
    :math:`-N (N - 1) R(\cdot, \cdot, a_i, \dots)` where all modes share one.
    """

    def __init__(self, layout: Layout, point: Array, residual: DenseTensor | None = None) -> None:
        self._xp = xp = array_namespace(point)
        self.point, self.layout = point, layout
        self._residual_terms = [] if residual is None else _residual_terms(layout, point, residual)
        self.exact = residual is not None
        self._factors = layout.factors(point)
        order, signs = len(layout.shape), layout.signs
        if signs is None:
            modes = range(order)
            grams = [factor.T @ factor for factor in self._factors]
            self.own = [product_without(grams, [m]) for m in modes]
            self._cross = [[None if m == n else product_without(grams, [m, n]) for n in modes] for m in modes]
        else:
            gram = xp.matrix_transpose(point) @ point
            both = signs[:, None] * signs[None, :]
            self.own = [order * both * gram ** (order - 1)]
            self._cross = [[order * (order - 1) * both * gram ** (order - 2)]]
        self.scales = self._scales()

    def _scales(self) -> Array:
        """Return what damping is measured by, one number per unknown, equal for the column of a component in a mode.

        Components differ in size by orders of magnitude: a step that is short for one may be all that another needs.
        """
        xp = array_namespace(self.own[0])
        diagonals = [xp.abs(xp.linalg.diagonal(own)) for own in self.own]
        floor = 1e-12 * max(float(xp.max(diagonal)) for diagonal in diagonals) + 1e-300
        rows = [
            xp.ones_like(factor) * xp.where(diagonal > floor, diagonal, xp.full_like(diagonal, floor))
            for factor, diagonal in zip(self._factors, diagonals, strict=True)
        ]
        return rows[0] if len(rows) == 1 else xp.concat(rows)

    def product(self, move: Array) -> Array:
        """Return the image of a move, or of a stack of them (..., D, k); with a residual, of one."""
        xp, moves = self._xp, self.layout.factors(move)
        overlaps = [xp.matrix_transpose(part) @ factor for part, factor in zip(moves, self._factors, strict=True)]
        parts = []
        for m, (part, factor, own) in enumerate(zip(moves, self._factors, self.own, strict=True)):
            mixed = None
            for block, overlap in zip(self._cross[m], overlaps, strict=True):
                if block is not None:
                    mixed = block * overlap if mixed is None else mixed + block * overlap
            parts.append(part @ own + factor @ mixed)
        if self._residual_terms:
            parts = self._with_residual(moves, parts)
        return parts[0] if len(parts) == 1 else xp.concat(parts, axis=-2)

    def _with_residual(self, moves: list[Array], parts: list[Array]) -> list[Array]:
        """Add what the residual adds to the second derivative."""
        for m, n, matrices in self._residual_terms:
            parts[m] = parts[m] - (matrices @ moves[n].T[:, :, None])[:, :, 0].T
            if m != n:
                parts[n] = parts[n] - (moves[m].T[:, None, :] @ matrices)[:, 0, :].T
        return self._with_scaling_fixed(moves, parts) if len(parts) > 1 else parts

    def _with_scaling_fixed(self, moves: list[Array], parts: list[Array]) -> list[Array]:
        """Add curvature where size moves from one mode of a component to another, which leaves the tensor as it is."""
        xp = array_namespace(moves[0])
        along = [xp.sum(factor * move, axis=0) for factor, move in zip(self._factors, moves, strict=True)]
        mean = sum(along[1:], along[0]) / len(along)
        stiffness = self._stiffness
        return [
            part + factor * (stiffness * (own - mean))
            for part, factor, own in zip(parts, self._factors, along, strict=True)
        ]

    def inverses(self, damping: float) -> list[Array]:
        """Return, for each factor, the inverse of what maps its moves to its own rows, damped (k, k)."""
        scales = [part[0, :] for part in self.layout.factors(self.scales)]
        return [
            _small_inverse(own + damping * scale * identity(own.shape[0], own))
            for own, scale in zip(self.own, scales, strict=True)
        ]

    def preconditioner(self, damping: float) -> Callable[[Array], Array]:
        xp, inverses = array_namespace(self.own[0]), self.inverses(damping)
        if len(inverses) == 1:
            return lambda move: move @ inverses[0]
        return lambda move: xp.concat(
            [part @ inv for part, inv in zip(self.layout.factors(move), inverses, strict=True)]
        )

    def matrix(self) -> Array:
        """Return the matrix itself, unknowns numbered row by row of the array (D, k)."""
        xp = array_namespace(self.own[0])
        terms = {(m, n): matrices for m, n, matrices in self._residual_terms}
        terms |= {(n, m): xp.matrix_transpose(matrices) for (m, n), matrices in terms.items() if m != n}
        rows = []
        for m, left in enumerate(self._factors):
            row = []
            for n, right in enumerate(self._factors):
                size = (left.shape[0], left.shape[1], right.shape[0], right.shape[1])
                block = xp.zeros(size, dtype=left.dtype, device=device(left))
                cross = self._cross[m][n]
                if cross is not None:
                    # (a, i), (b, j): cross_ij A_m[a, j] A_n[b, i]
                    block = left[:, None, None, :] * xp.matrix_transpose(right)[None, :, :, None]
                    block = block * cross[None, :, None, :]
                if m == n:
                    unit = identity(left.shape[0], left)
                    block = block + unit[:, None, :, None] * self.own[m][None, :, None, :]
                if self.exact:
                    same = identity(left.shape[1], left)[None, :, None, :]
                    block = block + self._residual_block(m, n, terms.get((m, n))) * same
                row.append(xp.reshape(block, (size[0] * size[1], size[2] * size[3])))
            rows.append(xp.concat(row, axis=1))
        return xp.concat(rows)

    def _residual_block(self, m: int, n: int, term: Array | None) -> Array:
        """Return what the residual, and the fixing of sizes, add between two modes of a component, (d_m, k, d_n, 1)."""
        xp = array_namespace(self.own[0])
        left, right = self._factors[m], xp.matrix_transpose(self._factors[n])
        added = xp.zeros((left.shape[0], *right.shape), dtype=left.dtype, device=device(left))
        if len(self._factors) > 1:
            share = (1.0 if m == n else 0.0) - 1 / len(self._factors)
            added = left[:, :, None] * right[None, :, :] * (share * self._stiffness)[None, :, None]
        if term is not None:
            added = added - xp.permute_dims(term, (1, 0, 2))
        return added[:, :, :, None]

    @cached_property
    def _stiffness(self) -> Array:
        """What holds size back from moving between the modes of a component; nothing in the data does."""
        xp = array_namespace(self.own[0])
        square = xp.sum(self._factors[0] ** 2, axis=0)
        return xp.linalg.diagonal(self.own[0]) / xp.where(square > 0, square, xp.ones_like(square))


class SharedCurvature:
    """The same where some modes share a factor: that of factors of their own, with equal moves for those modes."""

    def __init__(self, layout: Layout, point: Array, residual: DenseTensor | None = None) -> None:
        self.point, self.layout = point, layout
        self._apart = Layout(layout.shape, None)
        self._base = Curvature(self._apart, self._expanded(point), residual)
        self.exact = self._base.exact
        self.scales = self._folded(self._base.scales)

    def _expanded(self, move: Array) -> Array:
        return array_namespace(move).concat(self.layout.expanded(move))

    def _folded(self, image: Array) -> Array:
        return self.layout.folded(self._apart.factors(image))

    def product(self, move: Array) -> Array:
        return self._folded(self._base.product(self._expanded(move)))

    def matrix(self) -> Array:
        return self.layout.folded_matrix(self._base.matrix(), self.point.shape[1])

    def preconditioner(self, damping: float) -> Callable[[Array], Array]:
        xp = array_namespace(self.point)
        counts = [len(group) for group in self.layout.groups]
        owns = [self._base.own[group[0]] for group in self.layout.groups]
        scales = [part[0, :] for part in self.layout.factors(self.scales)]
        inverses = [
            _small_inverse(count * own + damping * scale * identity(own.shape[0], own))
            for count, own, scale in zip(counts, owns, scales, strict=True)
        ]
        return lambda move: xp.concat(
            [part @ inverse for part, inverse in zip(self.layout.factors(move), inverses, strict=True)]
        )


def _small_inverse(matrix: Array) -> Array:
    """Return the inverse of a matrix as large as the rank, by the host: an accelerator takes milliseconds to start."""
    if on_host(matrix):
        return array_namespace(matrix).linalg.inv(matrix)
    return like(np.linalg.inv(to_host(matrix)), matrix)


def _residual_terms(layout: Layout, point: Array, residual: DenseTensor) -> list[tuple[int, int, Array]]:
    """Return (m, n, matrices): the residual's part of the second derivative between modes m >= n, by component."""
    xp = array_namespace(point)
    factors, order = layout.factors(point), len(layout.shape)
    if layout.signs is not None:
        stack = residual.project(*[xp.matrix_transpose(point)] * (order - 2))
        return [(0, 0, order * (order - 1) * layout.signs[:, None, None] * stack)]
    terms = []
    for m in range(order):
        for n in range(m):
            others = [mode for mode in range(order) if mode not in (m, n)]
            stack = residual.permute((m, n, *others)).project(*(xp.matrix_transpose(factors[mode]) for mode in others))
            # In the order of C, so that products with vectors are those of a library for linear algebra.
            terms.append((m, n, xp.reshape(xp.reshape(stack, (-1,)), stack.shape)))
    return terms


class ObservedCurvature:
    r"""The Gauss-Newton matrix :math:`J^\top O J` at a point, for entries with weights O.

    The equations of every row by itself, damped, are the preconditioner.
    """

    exact = False

    def __init__(self, layout: Layout, point: Array, entries: Entries) -> None:
        self.point = point
        self._layout, self._entries = layout, entries
        self._factors = layout.expanded(point)
        self._grams = [entries.row_grams(self._factors, mode) for mode in range(len(self._factors))]
        self.scales = self._scales()

    def _scales(self) -> Array:
        """Return what damping is measured by: the mean over rows, so that rows hardly observed are held back, too."""
        xp = array_namespace(self.point)
        parts = []
        for factor, gram in zip(self._factors, self._grams, strict=True):
            diagonal = xp.mean(xp.linalg.diagonal(gram), axis=0)
            floor = 1e-12 * float(xp.max(diagonal)) + 1e-300
            parts.append(xp.ones_like(factor) * xp.where(diagonal > floor, diagonal, xp.full_like(diagonal, floor)))
        return self._layout.folded(parts, signed=False)

    def product(self, move: Array) -> Array:
        return self._layout.folded(self._entries.curved(self._factors, self._layout.expanded(move)))

    def matrix(self) -> Array:
        """Return the matrix itself, unknowns numbered row by row of the array (D, k)."""
        return self._layout.folded_matrix(self._entries.matrix(self._factors), self.point.shape[1])

    def preconditioner(self, damping: float) -> Callable[[Array], Array]:
        xp = array_namespace(self.point)
        rank = self.point.shape[1]
        grams = self._layout.folded_rows(self._grams)
        unit = identity(rank, self.point)
        inverses = xp.linalg.inv(grams + (damping * self.scales)[:, :, None] * unit + 1e-300 * unit)
        return lambda move: (inverses @ move[:, :, None])[:, :, 0]


class CurvatureLike(Protocol):
    """What a step asks of a curvature."""

    point: Array
    scales: Array
    exact: bool

    def product(self, move: Array) -> Array: ...

    def matrix(self) -> Array: ...

    def preconditioner(self, damping: float) -> Callable[[Array], Array]: ...


class Restricted:
    """A curvature with ridges added, in which unknowns that are not free neither move nor matter.

    Parameters
    ----------
    curvature : Curvature or ObservedCurvature
    free : array of shape (D, k)
        One for unknowns that may move, zero for the others.
    strengths : array of shape (D, 1), optional
        What ridges add to the diagonal.
    tangent : callable, optional
        Projects moves on those that curved sets of factors allow. Then the matrix is not to be had, only products.
    """

    def __init__(
        self,
        curvature: CurvatureLike,
        free: Array,
        strengths: Array | None,
        tangent: Callable[[Array], Array] | None = None,
    ) -> None:
        self._base, self.free, self._strengths, self.tangent = curvature, free, strengths, tangent
        self.point, self.scales, self.exact = curvature.point, curvature.scales, curvature.exact

    def allowed(self, move: Array) -> Array:
        """Return the part of a move that the constraints allow."""
        return self.free * move if self.tangent is None else self.free * self.tangent(self.free * move)

    def product(self, move: Array) -> Array:
        inside = self.allowed(move)
        image = self._base.product(inside)
        if self._strengths is not None:
            image = image + self._strengths * inside
        return self.allowed(image)

    def matrix(self) -> Array:
        xp = array_namespace(self.free)
        free = xp.reshape(self.free, (-1,))
        matrix = free[:, None] * self._base.matrix() * free[None, :]
        diagonal = (1 - self.free) * self.scales
        if self._strengths is not None:
            diagonal = diagonal + self.free * self._strengths
        return matrix + xp.reshape(diagonal, (-1, 1)) * identity(free.shape[0], free)

    def preconditioner(self, damping: float) -> Callable[[Array], Array]:
        inner = self._base.preconditioner(damping)
        return lambda move: self.allowed(inner(self.allowed(move)))
