"""The objective of least squares, with all that a method may ask of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property

import numpy as np
from array_api_compat import array_namespace

from codiag._array import Array, double, like, moved
from codiag._entries import Entries, ListedEntries
from codiag._problem import Problem
from codiag.constraints import Constraint
from codiag.constraints._base import solve_rows
from codiag.methods.least_squares._components import hadamard_gram, solve_semidefinite, unit_columns
from codiag.methods.least_squares._curvature import Curvature
from codiag.methods.least_squares._layout import Layout
from codiag.methods.least_squares._observed_curvature import ObservedCurvature
from codiag.methods.least_squares._restricted import CurvatureLike, Restricted
from codiag.tensors import DenseTensor, FactoredTensor, Tensor


class LeastSquares:
    r"""Half the squared distance of components from the tensor of a problem.

    .. math:: f = \tfrac12 \sum_j o_j \bigl(T - \textstyle\sum_i w_i a_i \otimes b_i \otimes \dots\bigr)_j^2
        + \tfrac12 \sum_m \lambda_m \|A_m\|^2

    over the entries j, :math:`o_j` being one unless the problem says which entries were observed, with the strengths
    :math:`\lambda_m` of ridge constraints. A point is one array of all unknowns; `layout` says where in it the factors
    stand.

    Parameters
    ----------
    problem : Problem
    start : FactoredTensor, optional
        Where it will be minimized from: of an even order, components of a symmetric tensor keep the signs of these.
    entries : Entries, optional
        What stands for the entries that were observed, such as a part of them; by default those of the problem.
    sample : Entries, optional
        What stands for them in the Gauss-Newton matrix alone.
    """

    def __init__(
        self,
        problem: Problem,
        start: FactoredTensor | None = None,
        *,
        entries: Entries | None = None,
        sample: Entries | None = None,
    ) -> None:
        self.problem, self.tensor = problem, problem.tensor
        self.entries = problem.entries if entries is None else entries
        self._sample = sample
        self.layout = Layout(problem.tensor.shape, None)
        if start is not None and problem.symmetric and start.symmetric:
            self.layout = Layout.of(start)

    @property
    def noise_variance(self) -> float:
        """Variance of the noise at a fit whose objective is one; 0 where hardly an entry is left to tell."""
        n_entries = self.entries.size if isinstance(self.entries, ListedEntries) else self.problem.n_entries
        spare = n_entries - self.problem.n_parameters
        return 2 / spare if spare > 1 else 0.0

    @cached_property
    def total(self) -> float:
        """The squared norm of what was observed, by which objectives are measured."""
        return self.tensor.squared_norm() if self.entries is None else self.entries.square()

    def distance(self, components: FactoredTensor) -> float:
        """Return the squared distance of components, over what was observed."""
        if self.entries is not None:
            return self.entries.distance(components)
        return self.tensor.squared_distance(components.weights, components.factors)

    def relative_error(self, components: FactoredTensor) -> float:
        """Return the distance of components, relative to the norm of what was observed."""
        return math.sqrt(self.distance(components) / self.total)

    def value(self, point: Array) -> float:
        """Return the objective at a point."""
        return self.distance(self.layout.components(point)) / 2 + self._ridge(point)

    def gradient(self, point: Array) -> Array:
        """Return the derivative of the objective: one pass over the tensor."""
        if self.entries is not None:
            return self.value_and_gradient(point)[1]
        slope = self._slope(point)
        return slope if self._strengths is None else slope + self._strengths * point

    def value_and_gradient(self, point: Array) -> tuple[float, Array]:
        """Return the objective and its derivative: of entries that were observed, in one pass over them."""
        if self.entries is None:
            return self.value(point), self.gradient(point)
        layout = self.layout
        distance, slopes = self.entries.distance_and_slopes(layout.expanded(point))
        slope = layout.folded(slopes if layout.signs is not None else _without_scaling(layout.factors(point), slopes))
        if self._strengths is not None:
            slope = slope + self._strengths * point
        return distance / 2 + self._ridge(point), slope

    def _ridge(self, point: Array) -> float:
        return 0.0 if self._strengths is None else float(array_namespace(point).sum(self._strengths * point**2)) / 2

    def _slope(self, point: Array) -> Array:
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

    def curvature(self, point: Array) -> CurvatureLike:
        """Return the Gauss-Newton matrix at a point, of the entries alone."""
        if self.entries is not None:
            return ObservedCurvature(self.layout, point, self._sample or self.entries)
        return Curvature(self.layout, point)

    def restricted(self, curvature: CurvatureLike, slope: Array) -> CurvatureLike:
        """Return a curvature with the ridges, for the unknowns that constraints leave free to follow a slope."""
        if self.problem.constraints is None:
            return curvature
        return Restricted(curvature, self.free(curvature.point, slope), self._strengths)

    def second_derivative(self, point: Array) -> Curvature:
        """Return the second derivative itself: the Gauss-Newton matrix, and what the residual adds to it."""
        return Curvature(self.layout, point, self.residual(self.layout.components(point)))

    @property
    def accuracy(self) -> float:
        """How exactly steps are worth solving for: a sample does not tell the curvature any better."""
        return 0.0 if self._sample is None else 0.1

    def left_over(self, components: FactoredTensor) -> Tensor:
        """Return what components leave of the tensor, zero where nothing was observed: a list of a list, or formed."""
        if isinstance(self.entries, ListedEntries):
            return self.entries.residual(components)
        return self.residual(components)

    def residual(self, components: FactoredTensor) -> DenseTensor:
        """Return what components leave of the tensor, formed; zero where nothing was observed."""
        if isinstance(self.entries, ListedEntries):
            return DenseTensor.of(self.entries.residual(components).to_dense(), symmetric=self.tensor.symmetric)
        entries = self.tensor.to_dense() - components.to_dense()
        if self.problem.observed is not None:
            entries = entries * self.problem.observed
        return DenseTensor.of(entries, symmetric=self.tensor.symmetric)

    @cached_property
    def steps(self) -> bool:
        """Whether Gauss-Newton steps know all constraints; if not, modes are to be solved for in turn."""
        return all(constraint is None or constraint.steps for constraint in self.problem.constraints or ())

    def free(self, point: Array, slope: Array) -> Array:
        """Return which unknowns constraints leave free to move against a slope: ones, and zeros for the others."""
        xp = array_namespace(point)
        parts = []
        factors, slopes = self.layout.factors(point), self.layout.factors(slope)
        for constraint, factor, own in zip(self._constraints, factors, slopes, strict=False):
            parts.append(xp.ones_like(factor) if constraint is None else constraint.free(factor, own))
        return parts[0] if len(parts) == 1 else xp.concat(parts)

    def projected(self, point: Array) -> Array:
        """Return the nearest point that satisfies the constraints."""
        if self.problem.constraints is None:
            return point
        parts = [self._projected(factor, mode) for mode, factor in enumerate(self.layout.factors(point))]
        return parts[0] if len(parts) == 1 else array_namespace(point).concat(parts)

    @property
    def _constraints(self) -> Sequence[Constraint | None]:
        return self.problem.constraints or (None,) * self.tensor.order

    @cached_property
    def _strengths(self) -> Array | None:
        """The strength of the ridge for every row of the unknowns, (D, 1), or None where there is none."""
        strengths = [0.0 if constraint is None else constraint.ridge for constraint in self._constraints]
        if not any(strengths):
            return None
        shape, reference = self.tensor.shape, self.tensor.reference
        known = [sum(strengths)] if self.layout.signs is not None else strengths
        return like(np.repeat(known, shape[: len(known)])[:, None], double(reference))

    def solve_mode(self, factors: Sequence[Array], mode: int) -> Array:
        """Return the factor of one mode that fits best to those of the others, under its constraint."""
        xp = array_namespace(factors[0])
        constraint, entries = self._constraints[mode], self.entries
        if entries is None:
            gram, product = hadamard_gram(factors, [mode]), self.tensor.mttkrp(factors, mode)
        else:
            gram, product = entries.row_grams(factors, mode), entries.row_products(factors, mode)
        if constraint is not None:
            return constraint.solve(gram, product, factors[mode])
        if gram.ndim == 3:
            return solve_rows(gram, product)
        return xp.matrix_transpose(solve_semidefinite(gram, xp.matrix_transpose(product)))

    def sweep(self, factors: Sequence[Array], *, unit: bool) -> FactoredTensor:
        """Solve for every mode in turn; if `unit`, columns get unit length and those of the last mode are weights."""
        found = list(factors)
        weights = array_namespace(found[0]).ones_like(found[0][0, :])
        for mode in range(self.tensor.order):
            found[mode] = self.solve_mode(found, mode)
            if unit:
                found[mode], weights = unit_columns(found[mode])
        return FactoredTensor(weights, found, symmetric=False)

    def feasible(self, components: FactoredTensor) -> FactoredTensor:
        """Return components near these that satisfy the constraints, with sizes in the factors and weights of one.

        Of the two signs of a column, the one that the constraint changes less is taken.
        """
        xp = array_namespace(components.weights)
        scale = xp.abs(components.weights) ** (1 / components.order)
        factors = []
        for mode, factor in enumerate(components.factors):
            ways = [(sign * factor * scale, self._projected(sign * factor * scale, mode)) for sign in (1, -1)]
            moves = [xp.linalg.vector_norm(after - before, axis=0) for before, after in ways]
            factors.append(xp.where(moves[0] <= moves[1], ways[0][1], ways[1][1]))
        return FactoredTensor(xp.ones_like(scale), factors, symmetric=False)

    def project(self, factors: Sequence[Array]) -> list[Array]:
        """Return the nearest factors that satisfy the constraints."""
        return [self._projected(factor, mode) for mode, factor in enumerate(factors)]

    def _projected(self, factor: Array, mode: int) -> Array:
        constraint = self._constraints[mode]
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
