"""The objective of least squares, with all that a method may ask of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property

from array_api_compat import array_namespace

from codiag._array import Array, moved
from codiag._problem import Problem
from codiag.methods.least_squares._components import hadamard_gram, solve_semidefinite, unit_columns
from codiag.methods.least_squares._curvature import Curvature
from codiag.methods.least_squares._layout import Layout
from codiag.methods.least_squares._observed import row_equations, solve_rows, weighted_square
from codiag.tensors import DenseTensor, FactoredTensor


class LeastSquares:
    r"""Half the squared distance of components from the tensor of a problem.

    .. math:: f = \tfrac12 \sum_j o_j \bigl(T - \textstyle\sum_i w_i a_i \otimes b_i \otimes \dots\bigr)_j^2

    over the entries j, :math:`o_j` being one unless the problem says which entries were observed. A point is one array
    of all unknowns; `layout` says where in it the factors stand. Derivatives are those of entries that all count alike.

    Parameters
    ----------
    problem : Problem
    start : FactoredTensor, optional
        Where it will be minimized from: of an even order, components of a symmetric tensor keep the signs of these.
    """

    def __init__(self, problem: Problem, start: FactoredTensor | None = None) -> None:
        self.problem, self.tensor = problem, problem.tensor
        self.layout = (
            Layout.of(start) if problem.symmetric and start is not None else Layout(problem.tensor.shape, None)
        )

    @property
    def noise_variance(self) -> float:
        """Variance of the noise at a fit whose objective is one; 0 where hardly an entry is left to tell."""
        spare = self.problem.n_entries - self.problem.n_parameters
        return 2 / spare if spare > 1 else 0.0

    @cached_property
    def total(self) -> float:
        """The squared norm of what was observed, by which objectives are measured."""
        if self.problem.observed is not None:
            return weighted_square(self.tensor.to_dense(), self.problem.observed)
        return self.tensor.squared_norm()

    def distance(self, components: FactoredTensor) -> float:
        """Return the squared distance of components, over what was observed."""
        if self.problem.observed is not None:
            return weighted_square(self.tensor.to_dense() - components.to_dense(), self.problem.observed)
        return self.tensor.squared_distance(components.weights, components.factors)

    def relative_error(self, components: FactoredTensor) -> float:
        """Return the distance of components, relative to the norm of what was observed."""
        return math.sqrt(self.distance(components) / self.total)

    def value(self, point: Array) -> float:
        """Return the objective at a point."""
        return self.distance(self.layout.components(point)) / 2

    def gradient(self, point: Array) -> Array:
        """Return the derivative of the objective: one pass over the tensor."""
        xp = array_namespace(point)
        layout, tensor = self.layout, self.tensor
        factors, order = layout.factors(point), tensor.order
        known = [moved(factor, tensor.reference) for factor in factors]  # the tensor may be in single precision
        if layout.signs is None:
            products = [moved(product, point) for product in tensor.mttkrps(known)]
            pairs = zip(factors, products, strict=True)
            parts = [factor @ hadamard_gram(factors, [m]) - product for m, (factor, product) in enumerate(pairs)]
            return xp.concat(_without_scaling(factors, parts))
        gram = (xp.matrix_transpose(point) @ point) ** (order - 1)
        product = moved(tensor.mttkrp(known * order, 0), point)
        return order * layout.signs * ((point * layout.signs) @ gram - product)

    def curvature(self, point: Array) -> Curvature:
        """Return the Gauss-Newton matrix at a point."""
        return Curvature(self.layout, point)

    def second_derivative(self, point: Array) -> Curvature:
        """Return the second derivative itself: the Gauss-Newton matrix, and what the residual adds to it."""
        return Curvature(self.layout, point, self.residual(self.layout.components(point)))

    def residual(self, components: FactoredTensor) -> DenseTensor:
        """Return what components leave of the tensor, formed."""
        entries = self.tensor.to_dense() - components.to_dense()
        return DenseTensor.of(entries, symmetric=self.tensor.symmetric)

    def solve_mode(self, factors: Sequence[Array], mode: int) -> Array:
        """Return the factor of one mode that fits best to those of the others, under its constraint."""
        xp = array_namespace(factors[0])
        constraint = None if self.problem.constraints is None else self.problem.constraints[mode]
        gram, product = self._equations(factors, mode)
        if constraint is not None:
            return constraint.solve(gram, product, factors[mode])
        if gram.ndim == 3:
            return solve_rows(gram, product)
        return xp.matrix_transpose(solve_semidefinite(gram, xp.matrix_transpose(product)))

    def solve_weights(self, factors: Sequence[Array]) -> Array:
        """Return the weights that fit best to given factors."""
        xp = array_namespace(factors[0])
        gram, product = self._equations(factors, 0)
        outer = factors[0][:, :, None] * factors[0][:, None, :]
        return solve_semidefinite(xp.sum(outer * gram, axis=0), xp.sum(factors[0] * product, axis=0))

    def _equations(self, factors: Sequence[Array], mode: int) -> tuple[Array, Array]:
        """Return the normal equations of a mode's factor: one Gram matrix for all rows, or one for each."""
        if self.problem.observed is None:
            return hadamard_gram(factors, [mode]), self.tensor.mttkrp(factors, mode)
        return row_equations(self.tensor, factors, self.problem.observed, mode)

    def sweep(self, factors: Sequence[Array], *, unit: bool) -> FactoredTensor:
        """Solve for every mode in turn; if `unit`, columns get unit length and those of the last mode are weights."""
        found = list(factors)
        weights = array_namespace(found[0]).ones_like(found[0][0, :])
        for mode in range(self.tensor.order):
            found[mode] = self.solve_mode(found, mode)
            if unit:
                found[mode], weights = unit_columns(found[mode])
        constraints = self.problem.constraints
        if constraints is not None and all(one is not None and one.known for one in constraints):
            weights = self.solve_weights(found)
        return FactoredTensor(weights, found, symmetric=False)

    def feasible(self, components: FactoredTensor) -> FactoredTensor:
        """Return components near these that satisfy the constraints, with sizes in the factors and weights of one.

        Of the two signs of a column, the one that the constraint changes less is taken; a free mode makes up for it.
        """
        xp = array_namespace(components.weights)
        scale = xp.abs(components.weights) ** (1 / components.order)
        signs = xp.where(components.weights < 0, -xp.ones_like(scale), xp.ones_like(scale))
        factors = [factor * scale for factor in components.factors]
        constraints = self.problem.constraints or (None,) * components.order
        for mode, constraint in enumerate(constraints):
            if constraint is None:
                continue
            same, turned = constraint.project(factors[mode]), constraint.project(-factors[mode])
            moves = [xp.linalg.vector_norm(factors[mode] - near, axis=0) for near in (same, -turned)]
            factors[mode] = xp.where(moves[0] <= moves[1], same, turned)
            signs = xp.where(moves[0] <= moves[1], signs, -signs)
        free = [mode for mode, constraint in enumerate(constraints) if constraint is None]
        if free:
            factors[free[-1]] = factors[free[-1]] * signs
        return FactoredTensor(xp.ones_like(scale), factors)

    def project(self, factors: Sequence[Array]) -> list[Array]:
        """Return the nearest factors that satisfy the constraints."""
        return [self._projected(factor, mode) for mode, factor in enumerate(factors)]

    def _projected(self, factor: Array, mode: int) -> Array:
        constraint = None if self.problem.constraints is None else self.problem.constraints[mode]
        return factor if constraint is None else constraint.project(factor)


def _without_scaling(factors: list[Array], slopes: list[Array]) -> list[Array]:
    """Make slopes along the columns equal in all modes, as they are but for rounding.

    Size moved from one mode of a component to another changes nothing, so that nothing would hold back a step there.
    """
    xp = array_namespace(factors[0])
    along = [xp.sum(factor * slope, axis=0) for factor, slope in zip(factors, slopes, strict=True)]
    mean = sum(along[1:], along[0]) / len(along)
    squares = [xp.sum(factor**2, axis=0) for factor in factors]
    return [
        slope + factor * ((mean - own) / xp.where(square > 0, square, xp.ones_like(square)))
        for factor, slope, own, square in zip(factors, slopes, along, squares, strict=True)
    ]
