"""The objective of least squares, with all that a method may ask of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property, partial

import numpy as np

from codiag._arrays import Array, array_namespace, double, like, moved
from codiag.constraints import Constraint, Ridge, ridge_strengths, solve_rows
from codiag.least_squares._components import (
    hadamard_gram,
    merged_modes,
    product_without,
    solve_semidefinite,
    unit_columns,
)
from codiag.least_squares._curvature import CurvatureLike, ObservedCurvature, Restricted, curvature_of
from codiag.least_squares._layout import Layout
from codiag.problem import Problem
from codiag.tensors import DenseTensor, FactoredTensor, Products, SquaredDistance, Tensor
from codiag.tensors.entries import Entries, ListedEntries

FAR = 1e-5
"""Share of the squared norm beyond which a difference of squared norms tells a squared distance to ten digits."""


class LeastSquares:
    r"""Half the squared distance of components from the tensor of a problem.

    .. math:: f = \tfrac12 \sum_j o_j \left(T - \sum_i w_i a_i \otimes b_i \otimes \dots\right)_j^2
        + \tfrac12 \sum_m \lambda_m \|A_m\|^2

    over the entries j, :math:`o_j` being one unless the problem says which entries were observed, with the strengths
    :math:`\lambda_m` of ridge constraints. A point is one array of all unknowns; ``layout`` says where in it the
    factors stand.

    Parameters
    ----------
    problem : Problem
        What is to be solved.
    start : FactoredTensor, optional
        Where it will be minimized from: of an even order, components of a symmetric tensor keep the signs of these.
    entries : Entries, optional
        What stands for the entries that were observed, such as a part of them; by default those of the problem.
    sample : Entries, optional
        What stands for them in the Gauss-Newton matrix alone.

    See Also
    --------
    minimize : Goes from a start to a minimum.
    codiag.Problem : What is asked.

    Examples
    --------
    >>> import numpy as np
    >>> import codiag
    >>> from codiag.least_squares import LeastSquares
    >>> from codiag.tensors import FactoredTensor
    >>> objective = LeastSquares(codiag.Problem(np.ones((3, 4, 5)), 1))
    >>> half = FactoredTensor(np.array([0.5]), [np.ones((size, 1)) for size in (3, 4, 5)])
    >>> round(objective.relative_error(half), 6)
    0.5
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
        self.layout = Layout(problem.tensor.shape, None, problem.shared)
        if start is not None and problem.symmetric is True and start.symmetric:
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
        return self.gradient_from(point, self.tensor.read(self.products(point))[0])

    def products(self, point: Array) -> Products:
        """Return what to ask of the tensor for the gradient at a point."""
        layout, reference = self.layout, self.tensor.reference
        factors = layout.factors(point) if layout.signs is not None else layout.expanded(point)
        known = [moved(factor, reference) for factor in factors]  # the tensor may be in single precision
        return Products(known) if layout.signs is None else Products(known * self.tensor.order, [0])

    def gradient_from(self, point: Array, products: Sequence[Array]) -> Array:
        """Return the derivative of the objective from the products of the tensor at the point."""
        slope = self._slope(point, [moved(product, point) for product in products])
        return slope if self._strengths is None else slope + self._strengths * point

    def distance_from(self, point: Array, products: Sequence[Array]) -> float:
        """Return the squared distance from the products of the tensor at the point: to rounding of its squared norm."""
        model = self.layout.components(point)
        terms = double(moved(products[0], point) * model.factors[0] * model.weights)
        return max(self.total - 2 * float(array_namespace(terms).sum(terms)) + model.squared_norm(), 0.0)

    def is_far(self, squared_distance: float) -> bool:
        """Tell whether a squared distance is so large that a difference of squared norms tells it to ten digits."""
        reference = self.tensor.reference
        return reference.dtype == array_namespace(reference).float64 and squared_distance > FAR * self.total

    def value_and_gradient(self, point: Array, *, far: bool = False) -> tuple[float, Array]:
        """Return the objective and its derivative, in one pass over the tensor, or over what of it was observed.

        Where the point is known to be far from the tensor, entries are not subtracted one by one.
        """
        layout = self.layout
        if self.entries is None and far:
            products = self.tensor.read(self.products(point))[0]
            return self.distance_from(point, products) / 2 + self._ridge(point), self.gradient_from(point, products)
        if self.entries is None:
            model = layout.components(point)
            asked = self.products(point), SquaredDistance(model.weights, model.factors)
            products, distance = self.tensor.read(*asked)
            return distance / 2 + self._ridge(point), self.gradient_from(point, products)
        distance, slopes = self.entries.distance_and_slopes(layout.expanded(point))
        if layout.signs is None:
            slopes = _without_scaling(layout.expanded(point), slopes)
        slope = layout.folded(slopes)
        if self._strengths is not None:
            slope = slope + self._strengths * point
        return distance / 2 + self._ridge(point), slope

    def _ridge(self, point: Array) -> float:
        return 0.0 if self._strengths is None else float(array_namespace(point).sum(self._strengths * point**2)) / 2

    def _slope(self, point: Array, products: Sequence[Array]) -> Array:
        xp = array_namespace(point)
        layout, order = self.layout, self.tensor.order
        if layout.signs is None:
            factors = layout.expanded(point)
            grams, pairs = [factor.T @ factor for factor in factors], zip(factors, products, strict=True)
            parts = [factor @ product_without(grams, [m]) - product for m, (factor, product) in enumerate(pairs)]
            return layout.folded(_without_scaling(factors, parts))
        gram = (xp.matrix_transpose(point) @ point) ** (order - 1)
        return order * layout.signs * ((point * layout.signs) @ gram - products[0])

    def curvature(self, point: Array) -> CurvatureLike:
        """Return the Gauss-Newton matrix at a point, of the entries alone."""
        if self.entries is not None:
            return ObservedCurvature(self.layout, point, self._sample or self.entries)
        return curvature_of(self.layout, point)

    def restricted(self, curvature: CurvatureLike, slope: Array) -> CurvatureLike:
        """Return a curvature with the ridges, for the unknowns that constraints leave free to follow a slope."""
        if self.problem.constraints is None:
            return curvature
        curved = any(constraint is not None and constraint.curved for constraint in self.problem.constraints)
        tangent = partial(self.tangent, curvature.point) if curved else None
        return Restricted(curvature, self.free(curvature.point, slope), self._strengths, tangent)

    def second_derivative(self, point: Array) -> CurvatureLike:
        """Return the second derivative itself: the Gauss-Newton matrix, and what the residual adds to it."""
        return curvature_of(self.layout, point, self.residual(self.layout.components(point)))

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
        if self.all_known:
            return False
        return all(constraint is None or constraint.steps for constraint in self._constraints)

    @cached_property
    def all_known(self) -> bool:
        """Whether all factors are known, and nothing but the weights is left to be found."""
        return all(constraint is not None and constraint.known for constraint in self._constraints)

    def free(self, point: Array, slope: Array) -> Array:
        """Return which unknowns constraints leave free to move against a slope: ones, and zeros for the others."""
        xp = array_namespace(point)
        parts = []
        factors, slopes = self.layout.factors(point), self.layout.factors(slope)
        for constraint, factor, own in zip(self._by_factor, factors, slopes, strict=True):
            parts.append(xp.ones_like(factor) if constraint is None else constraint.free(factor, own))
        return parts[0] if len(parts) == 1 else xp.concat(parts)

    def tangent(self, point: Array, move: Array) -> Array:
        """Return the part of a move that leaves curved sets of factors to second order only."""
        parts = []
        for constraint, factor, own in zip(
            self._by_factor, self.layout.factors(point), self.layout.factors(move), strict=True
        ):
            parts.append(own if constraint is None else constraint.tangent(factor, own))
        return parts[0] if len(parts) == 1 else array_namespace(point).concat(parts)

    def projected(self, point: Array) -> Array:
        """Return the nearest point that satisfies the constraints."""
        if self.problem.constraints is None:
            return point
        pairs = zip(self._by_factor, self.layout.factors(point), strict=True)
        parts = [factor if constraint is None else constraint.project(factor) for constraint, factor in pairs]
        return parts[0] if len(parts) == 1 else array_namespace(point).concat(parts)

    @property
    def _constraints(self) -> Sequence[Constraint | None]:
        return self.problem.constraints or (None,) * self.tensor.order

    @property
    def _by_factor(self) -> list[Constraint | None]:
        """The constraint of each factor of the layout."""
        return [self._constraints[group[0]] for group in self.layout.groups]

    @cached_property
    def ridge(self) -> float | None:
        """What multiplies half the squares of all unknowns, where constraints are equal ridges or none; else None."""
        found = set(self._constraints)
        if found == {None}:
            return 0.0
        if not all(isinstance(constraint, Ridge) for constraint in found):
            return None
        strengths = {constraint.ridge for constraint in found if constraint is not None}
        return strengths.pop() * len(self.layout.groups[0]) if len(strengths) == 1 else None

    @cached_property
    def _strengths(self) -> Array | None:
        """The strength of the ridge for every row of the unknowns, (D, 1), or None where there is none."""
        strengths = ridge_strengths(self._constraints)
        if not any(strengths):
            return None
        shape, reference = self.tensor.shape, self.tensor.reference
        totals = [(shape[group[0]], sum(strengths[mode] for mode in group)) for group in self.layout.groups]
        rows = np.concatenate([np.full((size, 1), strength) for size, strength in totals])
        return like(rows, double(reference))

    def solve_mode(self, factors: Sequence[Array], mode: int) -> Array:
        """Return the factor of one mode that fits best to those of the others, under its constraint."""
        xp = array_namespace(factors[0])
        constraint = self._constraints[mode]
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
        entries = self.entries
        if entries is None:
            return hadamard_gram(factors, [mode]), self.tensor.mttkrp(factors, mode)
        return entries.row_grams(factors, mode), entries.row_products(factors, mode)

    def sweep(self, factors: Sequence[Array], *, unit: bool) -> FactoredTensor:
        """Solve for every mode in turn; with `unit`, columns get unit length and those of the last mode are weights."""
        found = list(factors)
        weights = array_namespace(found[0]).ones_like(found[0][0, :])
        for mode in range(self.tensor.order):
            found[mode] = self.solve_mode(found, mode)
            if unit:
                found[mode], weights = unit_columns(found[mode])
        if self.all_known:
            weights = self.solve_weights(found)
        return FactoredTensor(weights, found, symmetric=False)

    def feasible(self, components: FactoredTensor) -> FactoredTensor:
        """Return components near these that satisfy the constraints, with sizes in the factors and weights of one.

        Modes that share a factor are brought together. Of the two signs of a column, the one that the constraint
        changes less is taken, and the sign of the component given to a mode that may have either.
        """
        xp = array_namespace(components.weights)
        groups = self.problem.groups
        for group in groups:
            components = merged_modes(components, group) if len(group) > 1 else components
        scale, ones = xp.abs(components.weights) ** (1 / components.order), xp.ones_like(components.weights)
        total = xp.where(components.weights < 0, -ones, ones)
        of_mode: dict[int, Array] = {}
        for group in groups:
            factor = components.factors[group[0]]
            ways = [(sign * factor * scale, self._projected(sign * factor * scale, group[0])) for sign in (1, -1)]
            moves = [xp.linalg.vector_norm(after - before, axis=0) for before, after in ways]
            kept = moves[0] <= moves[1]
            total = xp.where(kept, total, total * (-1.0) ** len(group))
            of_mode |= dict.fromkeys(group, xp.where(kept, ways[0][1], ways[1][1]))
        either = next((group for group in reversed(groups) if len(group) % 2 and self._has_either_sign(group[0])), None)
        if either is not None:
            of_mode |= dict.fromkeys(either, of_mode[either[0]] * total)
        factors = [of_mode[mode] for mode in range(components.order)]
        if self.problem.symmetric is True:
            return FactoredTensor(total if components.order % 2 == 0 else ones, factors, symmetric=True)
        return FactoredTensor(ones, factors, symmetric=False)

    def _has_either_sign(self, mode: int) -> bool:
        constraint = self._constraints[mode]
        return constraint is None or constraint.either_sign

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
