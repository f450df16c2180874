r"""Penalties on components: quadratic in the factor of a mode, times the squared sizes in all other modes.

Of a component with factors :math:`a_m` such a penalty is :math:`\tfrac12 a_m^\top L a_m \prod_{n \ne m} \|a_n\|^2`,
half the squared norm of a rank-one tensor with :math:`L^{1/2} a_m` in mode m. Its Gauss-Newton matrix is that of a
rank-one tensor, with :math:`L` in the inner products of this mode.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np

from codiag._arrays import Array, array_namespace, asarray_like
from codiag.constraints import Constraint
from codiag.least_squares._operators import CurvatureOperator, UnrestrictedOperator

Penalties = Sequence[tuple[int, Constraint]]
"""Modes with a penalty, and their constraints."""


def penalties_of(constraints: Sequence[Constraint | None]) -> Penalties:
    """Return the constraints that have a penalty on components, with their modes."""
    pairs = enumerate(constraints)
    return [(mode, rule) for mode, rule in pairs if rule is not None and rule.penalty_degree > 0]


def _lengths(factors: Sequence[Array]) -> list[Array]:
    xp = array_namespace(factors[0])
    return [xp.sqrt(xp.sum(factor**2, axis=-2)) for factor in factors]


def others_of(parts: Sequence[Array], *left_out: int) -> Array:
    """Return the product of what all modes have but some."""
    kept = [part for mode, part in enumerate(parts) if mode not in left_out]
    return math.prod(kept[1:], start=kept[0]) if kept else 0 * parts[0] + 1


def penalty_value(penalties: Penalties, factors: Sequence[Array]) -> float:
    """Return the sum of all penalties."""
    lengths, total = _lengths(factors), 0.0
    for mode, rule in penalties:
        values = rule.penalty(factors[mode]) * others_of(lengths, mode) ** rule.penalty_degree
        total += float(array_namespace(values).sum(values))
    return total


def penalty_slopes(penalties: Penalties, factors: Sequence[Array]) -> list[Array]:
    """Return the derivatives of quadratic penalties by the factors of all modes."""
    squares = [length**2 for length in _lengths(factors)]
    slopes = [0 * factor for factor in factors]
    for mode, rule in penalties:
        product = rule.penalty_product(factors[mode])
        inner = array_namespace(product).sum(product * factors[mode], axis=-2)
        for other, factor in enumerate(factors):
            own = product if other == mode else factor * inner
            slopes[other] = slopes[other] + own * others_of(squares, mode, other)
    return slopes


def majorants(penalties: Penalties, factors: Sequence[Array], mode: int) -> Array:
    """Return what penalties on other modes add to the diagonal of the equations of a mode, (rank,).

    Those that grow as the component are replaced by a quadratic function that is nowhere below them.
    """
    lengths = _lengths(factors)
    total = 0 * lengths[mode]
    for place, rule in penalties:
        if place != mode:
            values = rule.penalty(factors[place]) * others_of(lengths, place, mode) ** rule.penalty_degree
            floor = array_namespace(values).where(lengths[mode] > 0, lengths[mode], 1 + 0 * lengths[mode])
            total = total + rule.penalty_degree * values * floor ** (rule.penalty_degree - 2)
    return total


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
        self._squares = [length**2 for length in _lengths(self._factors)]

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
