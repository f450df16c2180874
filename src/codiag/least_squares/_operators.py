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

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
from array_api_compat import is_numpy_array

from codiag._arrays import (
    Array,
    adjoint,
    array_namespace,
    asarray_like,
    conjugate,
    identity,
    matrix_transpose,
    real_part,
    squared_magnitudes,
    sum_along,
    take,
    to_namespace,
)
from codiag.constraints import Penalties, lengths_of, others_of
from codiag.least_squares._parametrization import Parametrization
from codiag.least_squares._tolerances import NEGLIGIBLE, ROUNDING, TINY
from codiag.tensors import Tensor
from codiag.tensors.entries import ObservedEntries


class CurvatureOperator(Protocol):
    """What a step needs of a curvature.

    Attributes
    ----------
    point : array of shape (D, k)
    parametrization : Parametrization
        Of the unknowns.
    scales : array of shape (D, k)
        Measure damping, one number per unknown: the diagonal of the matrix, equal for the column of a component in a
        mode. Components differ in size by orders of magnitude.
    n_free : int
        Number of unknowns that may move.
    separation : Separation or None
        The equations in the ranges of the factors, if moves out of these are coupled to no others.
    has_matrix : bool
        Whether `matrix` is available.
    takes_stacks : bool
        Whether `product` and preconditioners take stacks of moves (n, D, k).
    visits_entries : bool
        Whether `product` visits all entries of the tensor.
    """

    point: Array
    parametrization: Parametrization
    has_matrix: bool
    takes_stacks: bool
    visits_entries: bool

    @property
    def scales(self) -> Array: ...

    @property
    def n_free(self) -> int: ...

    @property
    def separation(self) -> Separation | None: ...

    def project(self, move: Array) -> Array:
        """Return the part of a move that constraints allow."""

    def product(self, move: Array) -> Array:
        """Return the matrix times a move."""

    def matrix(self) -> Array:
        """Return the matrix; unknowns are numbered row by row of the array (D, k)."""

    def project_matrix(self, matrix: Array) -> Array:
        """Return a matrix of all unknowns, like the damped one, restricted to moves that constraints allow."""

    def free_matrix(self) -> tuple[Array, np.ndarray | slice]:
        """Return the matrix of the unknowns that are free, and which these are."""

    def preconditioner(self, damping: float) -> Callable[[Array], Array]:
        """Return an approximate inverse of the damped matrix."""


class UnrestrictedOperator:
    """A curvature without constraints."""

    point: Array
    has_matrix = True
    takes_stacks = False
    visits_entries = False

    @property
    def n_free(self) -> int:
        return math.prod(self.point.shape)

    @property
    def separation(self) -> Separation | None:
        return None

    def project(self, move: Array) -> Array:
        return move

    def matrix(self) -> Array:
        raise NotImplementedError("only products are available")

    def project_matrix(self, matrix: Array) -> Array:
        return matrix

    def free_matrix(self) -> tuple[Array, np.ndarray | slice]:
        return self.matrix(), slice(None)


class GaussNewtonOperator(UnrestrictedOperator):
    r"""The Gauss-Newton matrix of a complete tensor at a point, times a number, plus a ridge.

    Modes that share a factor count as often as there are: with :math:`c_g` modes in group g and :math:`G_g` its Gram
    matrix, blocks are entrywise products of powers of Gram matrices, :math:`c_g` or :math:`c_g c_h` times.

    Attributes
    ----------
    own : array of shape (n, k, k)
        Blocks within factors: moves of a factor are multiplied by its block from the right.
    """

    takes_stacks = True

    def __init__(
        self, parametrization: Parametrization, point: Array, *, multiple: float = 1.0, ridge: float = 0.0
    ) -> None:
        self._xp = array_namespace(point)
        self.point, self.parametrization = point, parametrization
        self._multiple, self._ridge = multiple, ridge
        self._factors = parametrization.factors(point)

    @property
    def own(self) -> Array:
        return self._blocks[0]

    @cached_property
    def _grams(self) -> list[Array]:
        """The conjugates of the Gram matrices of the factors."""
        return [factor.T @ conjugate(factor) for factor in self._factors]

    @cached_property
    def _blocks(self) -> tuple[Array, Array]:
        """The blocks within factors (n, k, k) and between them (n, n, k, k)."""
        xp, signs = self._xp, self.parametrization.signs
        counts = [len(group) for group in self.parametrization.groups]
        grams = self._grams

        def product_without(*left_out: int) -> Array:
            powers = [count - left_out.count(place) for place, count in enumerate(counts)]
            parts = [gram if power == 1 else gram**power for gram, power in zip(grams, powers, strict=True) if power]
            return math.prod(parts[1:], start=parts[0]) if parts else xp.ones_like(grams[0])

        places, none = range(len(counts)), xp.zeros_like(grams[0])
        own = [counts[g] * product_without(g) for g in places]
        cross = {}
        for g in places:
            cross[g, g] = counts[g] * (counts[g] - 1) * product_without(g, g) if counts[g] > 1 else none
            for h in range(g):
                cross[g, h] = cross[h, g] = counts[g] * counts[h] * product_without(g, h)
        within, between = xp.stack(own), xp.stack([cross[g, h] for g in places for h in places])
        if signs is not None or self._multiple != 1:
            multiple = self._multiple if signs is None else self._multiple * signs[:, None] * signs[None, :]
            within, between = within * multiple, between * multiple
        if self._ridge > 0:
            within = within + self._ridge * identity(within.shape[-1], within)
        return within, xp.reshape(between, (len(own), len(own), *between.shape[1:]))

    @cached_property
    def _factor_scales(self) -> Array:
        """The diagonals of the blocks within factors (n, k), bounded from below."""
        xp = self._xp
        diagonals = xp.abs(xp.linalg.diagonal(self.own))
        floor = ROUNDING * float(xp.max(diagonals)) + TINY
        return xp.where(diagonals > floor, diagonals, xp.full_like(diagonals, floor))

    @cached_property
    def scales(self) -> Array:
        xp = self._xp
        parts = [xp.broadcast_to(self._factor_scales[g, :], factor.shape) for g, factor in enumerate(self._factors)]
        return parts[0] if len(parts) == 1 else xp.concat(parts)

    def at(self, parametrization: Parametrization, point: Array) -> GaussNewtonOperator:
        return GaussNewtonOperator(parametrization, point, multiple=self._multiple, ridge=self._ridge)

    def product(self, move: Array) -> Array:
        """Return the matrix times a move, or times each of a stack of them (..., D, k)."""
        own, cross = self._blocks
        if self._equal_factors is not None:  # a few large products instead of many small ones
            parts = self._xp.reshape(move, (*move.shape[:-2], *self._equal_factors.shape))
            overlaps = matrix_transpose(parts) @ conjugate(self._equal_factors)
            mixed = sum_along(cross * overlaps[..., None, :, :, :], -3)
            return self._xp.reshape(parts @ own + self._equal_factors @ mixed, move.shape)
        pairs = list(zip(self.parametrization.factors(move), self._factors, strict=True))
        overlaps = self._xp.stack([matrix_transpose(part) @ conjugate(factor) for part, factor in pairs], axis=-3)
        mixed = sum_along(cross * overlaps[..., None, :, :, :], -3)
        images = [part @ own[g, :, :] + factor @ mixed[..., g, :, :] for g, (part, factor) in enumerate(pairs)]
        return images[0] if len(images) == 1 else self._xp.concat(images, axis=-2)

    @cached_property
    def _equal_factors(self) -> Array | None:
        """The factors as one array (n, d, k) if they have one shape."""
        sizes = {factor.shape[0] for factor in self._factors}
        return self._xp.reshape(self.point, (-1, sizes.pop(), self.point.shape[1])) if len(sizes) == 1 else None

    def inverses(self, damping: float) -> Array:
        """Return the inverses of the damped blocks within factors (n, k, k)."""
        scales = self._factor_scales[:, :, None]
        return self._xp.linalg.inv(self.own + damping * scales * identity(self.own.shape[-1], self.own))

    def preconditioner(self, damping: float) -> Callable[[Array], Array]:
        xp, inverses, factors = self._xp, self.inverses(damping), self.parametrization.factors
        if self._equal_factors is not None:
            shape = self._equal_factors.shape
            return lambda move: xp.reshape(xp.reshape(move, (*move.shape[:-2], *shape)) @ inverses, move.shape)
        return lambda move: xp.concat([part @ inverses[g, :, :] for g, part in enumerate(factors(move))], axis=-2)

    @cached_property
    def _matrix(self) -> Array:
        xp, (own, cross), rows = self._xp, self._blocks, self.point
        places = self.parametrization.factor_of_row
        # (a, i), (b, j): cross_ji of the factors of both rows, A[a, j] conj(A[b, i]); own_ji in addition if a = b.
        turned = xp.permute_dims(cross, (0, 3, 1, 2))
        matrix = take(take(turned, places, 0), places, 2)
        matrix *= rows[:, None, None, :]  # in place if the library can
        matrix *= adjoint(rows)[None, :, :, None]
        within = take(xp.matrix_transpose(own), places, 0)[:, :, None, :]
        matrix += identity(rows.shape[0], rows)[:, None, :, None] * within
        return xp.reshape(matrix, (math.prod(rows.shape), -1))

    def matrix(self) -> Array:
        return self._matrix

    @cached_property
    def separation(self) -> Separation | None:
        r"""The equations in the ranges of the factors; None if no factor is longer than its rank.

        With :math:`A_m = Q_m R_m`, a move :math:`Q_m Y_m + Z_m`, :math:`Q_m^\top Z_m = 0`, has the image
        :math:`Q_m (\dots) + Z_m \Gamma_m`: the equations of Y are those of the factors R, and Z is found at once.
        """
        if all(factor.shape[0] <= factor.shape[1] for factor in self._factors):
            return None
        bases, inner = zip(*map(_range_and_coordinates, self._factors, self._grams), strict=True)
        groups, signs = self.parametrization.groups, self.parametrization.signs
        sizes = {mode: part.shape[0] for group, part in zip(groups, inner, strict=True) for mode in group}
        shape = tuple(sizes[mode] for mode in range(len(self.parametrization.shape)))
        point = self._xp.concat(inner) if len(inner) > 1 else inner[0]
        inside = self.at(replace(self.parametrization, shape=shape, signs=signs), point)
        vars(inside)["_blocks"] = self._blocks  # Gram matrices are the same
        return Separation(bases, inside)


class Separation(NamedTuple):
    """Orthonormal bases of the ranges of long factors, None for others, and the matrix in their coordinates."""

    bases: Sequence[Array | None]
    inside: GaussNewtonOperator

    def inward(self, parts: Sequence[Array]) -> list[Array]:
        """Return the coordinates of moves in the ranges."""
        return [part if basis is None else adjoint(basis) @ part for basis, part in zip(self.bases, parts, strict=True)]

    def outward(self, parts: Sequence[Array]) -> list[Array]:
        """Return moves from their coordinates in the ranges."""
        return [part if basis is None else basis @ part for basis, part in zip(self.bases, parts, strict=True)]


def _range_and_coordinates(factor: Array, gram: Array) -> tuple[Array | None, Array]:
    r"""Return an orthonormal basis Q of the columns of a long factor, and R, :math:`A = Q R`.

    By the Cholesky decomposition of the Gram matrix, :math:`A^H A = R^H R`, in a tenth of the time of Householder's, if
    no column nearly depends on those before: if the sine of the angle to them is s, Q is orthonormal to
    :math:`\epsilon / s^2`.
    """
    rows, rank = factor.shape
    if rows <= rank:
        return None, factor
    xp = array_namespace(factor)
    if is_numpy_array(factor):
        try:
            inner = adjoint(np.linalg.cholesky(conjugate(gram)))
        except np.linalg.LinAlgError:
            inner = np.zeros_like(gram)
        if np.all(squared_magnitudes(np.diagonal(inner)) > NEGLIGIBLE * np.abs(np.diagonal(gram))):
            return factor @ np.linalg.inv(inner), inner
    return tuple(xp.linalg.qr(factor))


class WeightedGaussNewtonOperator(UnrestrictedOperator):
    r"""The Gauss-Newton matrix :math:`J^{\mathsf H} O J` at a point, for entries with weights O.

    The preconditioner solves the damped equations of every row by itself.
    """

    visits_entries = True

    def __init__(self, parametrization: Parametrization, point: Array, entries: ObservedEntries) -> None:
        self.point, self.parametrization, self._entries = point, parametrization, entries
        self._factors = parametrization.expand(point)
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
        return self.parametrization.accumulate(parts, signed=False)

    def product(self, move: Array) -> Array:
        return self.parametrization.accumulate(
            self._entries.gauss_newton_product(self._factors, self.parametrization.expand(move))
        )

    def matrix(self) -> Array:
        """Return the matrix itself, unknowns numbered row by row of the array (D, k)."""
        return self.parametrization.accumulate_matrix(
            self._entries.gauss_newton_matrix(self._factors), self.point.shape[1]
        )

    def preconditioner(self, damping: float) -> Callable[[Array], Array]:
        xp = array_namespace(self.point)
        rank = self.point.shape[1]
        grams = self.parametrization.accumulate_rows(self._grams)
        unit = identity(rank, self.point)
        inverses = xp.linalg.inv(grams + (damping * self.scales)[:, :, None] * unit + TINY * unit)
        return lambda move: (inverses @ move[:, :, None])[:, :, 0]


class HessianOperator(UnrestrictedOperator):
    r"""The second derivative at a point: the Gauss-Newton matrix, minus a term of the residual.

    Between the factors of one component in two modes m and n, the term is :math:`R(\cdot, \cdot, a_{li}, \dots)`, the
    residual contracted with the factors of the other modes.
    """

    has_matrix = False

    def __init__(self, curvature: CurvatureOperator, residual: Tensor) -> None:
        self._base = curvature
        self.point, self.parametrization, self.scales = curvature.point, curvature.parametrization, curvature.scales
        order, reference = residual.order, residual.reference  # the residual may be elsewhere
        factors = [to_namespace(factor, reference) for factor in self.parametrization.expand(self.point)]
        self._terms = []
        for m in range(order):
            for n in range(m):
                others = [mode for mode in range(order) if mode not in (m, n)]
                directions = (adjoint(factors[mode]) for mode in others)
                matrices = residual.permute((m, n, *others)).project(*directions)
                self._terms.append((m, n, to_namespace(matrices, self.point)))

    def product(self, move: Array) -> Array:
        moves = self.parametrization.expand(move)
        parts = [0 * part for part in moves]
        for m, n, matrices in self._terms:
            parts[m] = parts[m] + (matrices @ conjugate(moves[n]).T[:, :, None])[:, :, 0].T
            parts[n] = parts[n] + (conjugate(moves[m]).T[:, None, :] @ matrices)[:, 0, :].T
        return self._base.product(move) - self.parametrization.accumulate(parts)

    def preconditioner(self, damping: float) -> Callable[[Array], Array]:
        return self._base.preconditioner(damping)


class PenalizedOperator(UnrestrictedOperator):
    """A curvature plus the Gauss-Newton matrices of quadratic penalties on components.

    Attributes
    ----------
    penalties : Penalties
    """

    visits_entries = True

    def __init__(self, curvature: CurvatureOperator, penalties: Penalties) -> None:
        self._base, self.penalties = curvature, penalties
        self.point, self.parametrization, self.scales = curvature.point, curvature.parametrization, curvature.scales
        self.has_matrix = curvature.has_matrix
        self._factors = self.parametrization.expand(self.point)
        self._squares = [length**2 for length in lengths_of(self._factors)]

    def penalty_product(self, move: Array) -> Array:
        """Return the matrix of the penalties times a move, or a stack of moves."""
        moves, xp = self._expand(move), array_namespace(self.point)
        images = [0 * part for part in moves]
        for mode, rule in self.penalties:
            product = rule.penalty_product(self._factors[mode])
            columns = [product if n == mode else factor for n, factor in enumerate(self._factors)]
            squares = list(self._squares)
            squares[mode] = xp.sum(product * self._factors[mode], axis=-2)
            along = [xp.sum(part * column, axis=-2, keepdims=True) for part, column in zip(moves, columns, strict=True)]
            for n, part in enumerate(moves):
                own = rule.penalty_product(part) if n == mode else part
                images[n] = images[n] + own * others_of(squares, n)
                for other, size in enumerate(along):
                    if other != n:
                        images[n] = images[n] + columns[n] * size * others_of(squares, n, other)
        return self._accumulate(images)

    def _expand(self, move: Array) -> list[Array]:
        if self.parametrization.signs is not None:
            return self.parametrization.expand(move)
        factors = zip(self.parametrization.groups, self.parametrization.factors(move), strict=True)
        of_mode = {mode: factor for group, factor in factors for mode in group}
        return [of_mode[mode] for mode in sorted(of_mode)]

    def _accumulate(self, parts: Sequence[Array]) -> Array:
        if self.parametrization.signs is not None:
            return self.parametrization.accumulate(parts)
        totals = [sum((parts[n] for n in group[1:]), parts[group[0]]) for group in self.parametrization.groups]
        return array_namespace(parts[0]).concat(totals, axis=-2)

    def product(self, move: Array) -> Array:
        return self._base.product(move) + self.penalty_product(move)

    @cached_property
    def penalty_matrix(self) -> Array:
        """The matrix of the penalties, unknowns numbered row by row."""
        size = math.prod(self.point.shape)
        moves = asarray_like(np.eye(size).reshape(size, *self.point.shape), self.point)
        return array_namespace(self.point).reshape(self.penalty_product(moves), (size, size))

    def matrix(self) -> Array:
        return self._base.matrix() + self.penalty_matrix

    def preconditioner(self, damping: float) -> Callable[[Array], Array]:
        return self._base.preconditioner(damping)


class ProjectedOperator(UnrestrictedOperator):
    """A curvature with ridges added, on the unknowns that constraints leave free.

    Parameters
    ----------
    curvature : CurvatureOperator
    free : array of shape (D, k)
        One for unknowns that may move, zero for the others.
    strengths : array of shape (D, 1), optional
        Ridge strengths, added to the diagonal.
    tangent : callable, optional
        Projects moves, or a stack of them, on the tangent space of curved sets of factors.
    """

    def __init__(
        self,
        curvature: CurvatureOperator,
        free: Array,
        strengths: Array | None,
        tangent: Callable[[Array], Array] | None = None,
    ) -> None:
        self._base, self._free, self._strengths, self._tangent = curvature, free, strengths, tangent
        self.point, self.parametrization, self.scales = curvature.point, curvature.parametrization, curvature.scales
        self.has_matrix, self.visits_entries = curvature.has_matrix, curvature.visits_entries

    def project(self, move: Array) -> Array:
        return self._free * move if self._tangent is None else self._free * self._tangent(self._free * move)

    def product(self, move: Array) -> Array:
        inside = self.project(move)
        image = self._base.product(inside)
        if self._strengths is not None:
            image = image + self._strengths * inside
        return self.project(image)

    @cached_property
    def n_free(self) -> int:
        return int(array_namespace(self._free).sum(self._free))

    def free_matrix(self) -> tuple[Array, np.ndarray | slice]:
        if self._tangent is not None or not is_numpy_array(self._free):
            return self.matrix(), slice(None)
        free = np.flatnonzero(self._free)
        matrix = self._base.matrix()[np.ix_(free, free)]
        if self._strengths is not None:
            diagonal = np.broadcast_to(self._strengths, self._free.shape).reshape(-1)[free]
            matrix[np.diag_indices(free.size)] += diagonal
        return matrix, free

    def matrix(self) -> Array:
        xp = array_namespace(self._free)
        free = xp.reshape(self._free, (-1,))
        matrix = free[:, None] * self._base.matrix() * free[None, :]
        diagonal = (1 - self._free) * self.scales
        if self._strengths is not None:
            diagonal = diagonal + self._free * self._strengths
        return matrix + xp.reshape(diagonal, (-1, 1)) * identity(free.shape[0], free)

    def project_matrix(self, matrix: Array) -> Array:
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
        return lambda move: self.project(inner(self.project(move)))
