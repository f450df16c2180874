r"""Gauss-Newton matrices and second derivatives of the distance between components and a tensor.

The unknowns are the scaled factors :math:`A_m`, one above the other in one array (D, k). With Gram matrices
:math:`G_m = A_m^\top A_m` and :math:`\Gamma_m = \ast_{n \ne m} G_n`, :math:`\Gamma_{mn} = \ast_{l \ne m, n} G_l`, the
Gauss-Newton matrix maps X to

.. math:: X_m \Gamma_m + A_m \textstyle\sum_{n \ne m} \Gamma_{mn} \ast (X_n^\top A_n),

at :math:`O(D k^2)` operations a product. For a symmetric tensor of order N there is one factor, and the map is
:math:`N X G^{\ast (N-1)} + N (N - 1) A (G^{\ast (N-2)} \ast (X^\top A))`. The first term, damped, is the
preconditioner.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from array_api_compat import device

from codiag._arrays import (
    Array,
    adjoint,
    array_namespace,
    conjugate,
    identity,
    like,
    moved,
    on_host,
    real_part,
    to_host,
)
from codiag.least_squares._components import product_without
from codiag.least_squares._layout import Layout
from codiag.least_squares._tolerances import ROUNDING, TINY
from codiag.tensors import Tensor
from codiag.tensors.entries import Entries


class CurvatureLike(Protocol):
    """What a step needs of a curvature.

    Attributes
    ----------
    point : array of shape (D, k)
    layout : Layout
        Of the unknowns.
    scales : array of shape (D, k)
        Measure damping, one number per unknown: the diagonal of the matrix, equal for the column of a component in a
        mode. Components differ in size by orders of magnitude.
    is_separable : bool
        Whether moves out of the ranges of the factors are coupled to no others.
    has_matrix : bool
        Whether `matrix` is available.
    takes_stacks : bool
        Whether `product` and preconditioners take stacks of moves (n, D, k).
    visits_entries : bool
        Whether `product` visits all entries of the tensor.
    """

    point: Array
    layout: Layout
    scales: Array
    is_separable: bool
    has_matrix: bool
    takes_stacks: bool
    visits_entries: bool

    def allowed(self, move: Array) -> Array:
        """Return the part of a move that constraints allow."""

    def product(self, move: Array) -> Array:
        """Return the matrix times a move."""

    def matrix(self) -> Array:
        """Return the matrix; unknowns are numbered row by row of the array (D, k)."""

    def within(self, matrix: Array) -> Array:
        """Return a matrix of all unknowns, like the damped one, restricted to moves that constraints allow."""

    def preconditioner(self, damping: float) -> Callable[[Array], Array]:
        """Return an approximate inverse of the damped matrix."""

    def at(self, layout: Layout, point: Array) -> CurvatureLike:
        """Return the curvature at another point; only if `is_separable`."""


class _Unrestricted:
    """A curvature without constraints."""

    is_separable = False
    has_matrix = True
    takes_stacks = False
    visits_entries = False

    def allowed(self, move: Array) -> Array:
        return move

    def within(self, matrix: Array) -> Array:
        return matrix

    def at(self, layout: Layout, point: Array) -> CurvatureLike:
        raise NotImplementedError(f"{type(self).__name__} couples all unknowns")


def curvature_of(layout: Layout, point: Array) -> Curvature | SharedCurvature:
    """Return the Gauss-Newton matrix of a complete tensor at a point."""
    return (SharedCurvature if layout.shared else Curvature)(layout, point)


class Curvature(_Unrestricted):
    """The Gauss-Newton matrix at a point, if no modes or all modes share a factor."""

    is_separable = True
    takes_stacks = True

    def __init__(self, layout: Layout, point: Array) -> None:
        self._xp = xp = array_namespace(point)
        self.point, self.layout = point, layout
        self._factors = layout.factors(point)
        order, signs = len(layout.shape), layout.signs
        if signs is None:
            modes = range(order)
            grams = [factor.T @ conjugate(factor) for factor in self._factors]
            self.own = [product_without(grams, [m]) for m in modes]
            self._cross = [[None if m == n else product_without(grams, [m, n]) for n in modes] for m in modes]
        else:
            gram = xp.matrix_transpose(point) @ conjugate(point)
            both = signs[:, None] * signs[None, :]
            self.own = [order * both * gram ** (order - 1)]
            self._cross = [[order * (order - 1) * both * gram ** (order - 2)]]
        self.scales = self._scales()

    def at(self, layout: Layout, point: Array) -> Curvature:
        return Curvature(layout, point)

    def _scales(self) -> Array:
        xp = array_namespace(self.own[0])
        diagonals = [xp.abs(xp.linalg.diagonal(own)) for own in self.own]
        floor = ROUNDING * max(float(xp.max(diagonal)) for diagonal in diagonals) + TINY
        rows = [
            xp.ones_like(real_part(factor)) * xp.where(diagonal > floor, diagonal, xp.full_like(diagonal, floor))
            for factor, diagonal in zip(self._factors, diagonals, strict=True)
        ]
        return rows[0] if len(rows) == 1 else xp.concat(rows)

    def product(self, move: Array) -> Array:
        """Return the matrix times a move, or times each of a stack of them (..., D, k)."""
        xp, moves = self._xp, self.layout.factors(move)
        overlaps = [
            xp.matrix_transpose(part) @ conjugate(factor) for part, factor in zip(moves, self._factors, strict=True)
        ]
        parts = []
        for m, (part, factor, own) in enumerate(zip(moves, self._factors, self.own, strict=True)):
            mixed = None
            for block, overlap in zip(self._cross[m], overlaps, strict=True):
                if block is not None:
                    mixed = block * overlap if mixed is None else mixed + block * overlap
            parts.append(part @ own + factor @ mixed)
        return parts[0] if len(parts) == 1 else xp.concat(parts, axis=-2)

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
            [part @ inverse for part, inverse in zip(self.layout.factors(move), inverses, strict=True)], axis=-2
        )

    def matrix(self) -> Array:
        """Return the matrix itself, unknowns numbered row by row of the array (D, k)."""
        xp = array_namespace(self.own[0])
        rows = []
        for m, left in enumerate(self._factors):
            row = []
            for n, right in enumerate(self._factors):
                size = (left.shape[0], left.shape[1], right.shape[0], right.shape[1])
                block = xp.zeros(size, dtype=left.dtype, device=device(left))
                cross = self._cross[m][n]
                if cross is not None:
                    # (a, i), (b, j): cross_ji A_m[a, j] conj(A_n[b, i])
                    block = left[:, None, None, :] * adjoint(right)[None, :, :, None]
                    block = block * xp.matrix_transpose(cross)[None, :, None, :]
                if m == n:
                    unit = identity(left.shape[0], left)
                    block = block + unit[:, None, :, None] * xp.matrix_transpose(self.own[m])[None, :, None, :]
                row.append(xp.reshape(block, (size[0] * size[1], size[2] * size[3])))
            rows.append(xp.concat(row, axis=1))
        return xp.concat(rows)


class SharedCurvature(_Unrestricted):
    """The curvature if some modes share a factor: that of separate factors, with equal moves in the shared modes."""

    is_separable = True

    def __init__(self, layout: Layout, point: Array) -> None:
        self.point, self.layout = point, layout
        self._apart = Layout(layout.shape, None)
        self._base = Curvature(self._apart, self._expanded(point))
        self.scales = self._folded(self._base.scales)

    def at(self, layout: Layout, point: Array) -> SharedCurvature:
        return SharedCurvature(layout, point)

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
    """Return the inverse of a k x k matrix, computed by the host: an accelerator takes milliseconds to start."""
    if on_host(matrix):
        return array_namespace(matrix).linalg.inv(matrix)
    return like(np.linalg.inv(to_host(matrix)), matrix)


class ObservedCurvature(_Unrestricted):
    r"""The Gauss-Newton matrix :math:`J^{\mathsf H} O J` at a point, for entries with weights O.

    The preconditioner solves the damped equations of every row by itself.
    """

    visits_entries = True

    def __init__(self, layout: Layout, point: Array, entries: Entries) -> None:
        self.point, self.layout, self._entries = point, layout, entries
        self._factors = layout.expanded(point)
        self._grams = [entries.row_grams(self._factors, mode) for mode in range(len(self._factors))]
        self.scales = self._scales()

    def _scales(self) -> Array:
        """Return the mean diagonal over rows, so that rows with few observed entries are damped, too."""
        xp = array_namespace(self.point)
        parts = []
        for factor, gram in zip(self._factors, self._grams, strict=True):
            diagonal = xp.mean(real_part(xp.linalg.diagonal(gram)), axis=0)
            floor = ROUNDING * float(xp.max(diagonal)) + TINY
            parts.append(
                xp.ones_like(real_part(factor)) * xp.where(diagonal > floor, diagonal, xp.full_like(diagonal, floor))
            )
        return self.layout.folded(parts, signed=False)

    def product(self, move: Array) -> Array:
        return self.layout.folded(self._entries.gauss_newton_product(self._factors, self.layout.expanded(move)))

    def matrix(self) -> Array:
        """Return the matrix itself, unknowns numbered row by row of the array (D, k)."""
        return self.layout.folded_matrix(self._entries.gauss_newton_matrix(self._factors), self.point.shape[1])

    def preconditioner(self, damping: float) -> Callable[[Array], Array]:
        xp = array_namespace(self.point)
        rank = self.point.shape[1]
        grams = self.layout.folded_rows(self._grams)
        unit = identity(rank, self.point)
        inverses = xp.linalg.inv(grams + (damping * self.scales)[:, :, None] * unit + TINY * unit)
        return lambda move: (inverses @ move[:, :, None])[:, :, 0]


class Scaled(_Unrestricted):
    """A multiple of a curvature."""

    def __init__(self, curvature: CurvatureLike, scale: float) -> None:
        self._base, self._scale = curvature, scale
        self.point, self.layout, self.scales = curvature.point, curvature.layout, scale * curvature.scales
        self.takes_stacks, self.is_separable = curvature.takes_stacks, curvature.is_separable

    def at(self, layout: Layout, point: Array) -> Scaled:
        return Scaled(self._base.at(layout, point), self._scale)

    def product(self, move: Array) -> Array:
        return self._scale * self._base.product(move)

    def matrix(self) -> Array:
        return self._scale * self._base.matrix()

    def preconditioner(self, damping: float) -> Callable[[Array], Array]:
        inner = self._base.preconditioner(damping)
        return lambda move: inner(move) / self._scale


class SecondDerivative(_Unrestricted):
    r"""The second derivative at a point: the Gauss-Newton matrix, minus a term of the residual.

    Between the factors of one component in two modes m and n, the term is :math:`R(\cdot, \cdot, a_{li}, \dots)`, the
    residual contracted with the factors of the other modes.
    """

    has_matrix = False

    def __init__(self, curvature: CurvatureLike, residual: Tensor) -> None:
        self._base = curvature
        self.point, self.layout, self.scales = curvature.point, curvature.layout, curvature.scales
        order, reference = residual.order, residual.reference  # the residual may be elsewhere
        factors = [moved(factor, reference) for factor in self.layout.expanded(self.point)]
        self._terms = []
        for m in range(order):
            for n in range(m):
                others = [mode for mode in range(order) if mode not in (m, n)]
                directions = (adjoint(factors[mode]) for mode in others)
                matrices = residual.permute((m, n, *others)).project(*directions)
                self._terms.append((m, n, moved(matrices, self.point)))

    def product(self, move: Array) -> Array:
        moves = self.layout.expanded(move)
        parts = [0 * part for part in moves]
        for m, n, matrices in self._terms:
            parts[m] = parts[m] + (matrices @ conjugate(moves[n]).T[:, :, None])[:, :, 0].T
            parts[n] = parts[n] + (conjugate(moves[m]).T[:, None, :] @ matrices)[:, 0, :].T
        return self._base.product(move) - self.layout.folded(parts)

    def matrix(self) -> Array:
        raise NotImplementedError("only products are available")

    def preconditioner(self, damping: float) -> Callable[[Array], Array]:
        return self._base.preconditioner(damping)


class Restricted(_Unrestricted):
    """A curvature with ridges added, on the unknowns that constraints leave free.

    Parameters
    ----------
    curvature : CurvatureLike
    free : array of shape (D, k)
        One for unknowns that may move, zero for the others.
    strengths : array of shape (D, 1), optional
        Ridge strengths, added to the diagonal.
    tangent : callable, optional
        Projects moves, or a stack of them, on the tangent space of curved sets of factors.
    """

    def __init__(
        self,
        curvature: CurvatureLike,
        free: Array,
        strengths: Array | None,
        tangent: Callable[[Array], Array] | None = None,
    ) -> None:
        self._base, self._free, self._strengths, self._tangent = curvature, free, strengths, tangent
        self.point, self.layout, self.scales = curvature.point, curvature.layout, curvature.scales
        self.has_matrix, self.visits_entries = curvature.has_matrix, curvature.visits_entries

    def allowed(self, move: Array) -> Array:
        return self._free * move if self._tangent is None else self._free * self._tangent(self._free * move)

    def product(self, move: Array) -> Array:
        inside = self.allowed(move)
        image = self._base.product(inside)
        if self._strengths is not None:
            image = image + self._strengths * inside
        return self.allowed(image)

    def matrix(self) -> Array:
        xp = array_namespace(self._free)
        free = xp.reshape(self._free, (-1,))
        matrix = free[:, None] * self._base.matrix() * free[None, :]
        diagonal = (1 - self._free) * self.scales
        if self._strengths is not None:
            diagonal = diagonal + self._free * self._strengths
        return matrix + xp.reshape(diagonal, (-1, 1)) * identity(free.shape[0], free)

    def within(self, matrix: Array) -> Array:
        """Return P M P + c (I - P), P the projection on the tangent space: solutions stay in that space."""
        if self._tangent is None:
            return matrix
        unit = identity(matrix.shape[0], matrix)
        moves = array_namespace(matrix).reshape(unit, (-1, *self.point.shape))
        projection = array_namespace(matrix).reshape(self._tangent(moves), matrix.shape)
        size = float(array_namespace(matrix).max(self.scales))
        return projection @ matrix @ projection + size * (unit - projection)

    def preconditioner(self, damping: float) -> Callable[[Array], Array]:
        inner = self._base.preconditioner(damping)
        return lambda move: self.allowed(inner(self.allowed(move)))
