"""The objective of least squares, for every problem."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property, partial

import numpy as np

from codiag._arrays import Array, array_namespace, double, epsilon, like, moved
from codiag.constraints import Constraint, ridge_strengths, solve_rows
from codiag.least_squares._components import (
    hadamard_gram,
    merged_modes,
    product_without,
    solve_semidefinite,
    unit_columns,
)
from codiag.least_squares._curvature import (
    CurvatureLike,
    ObservedCurvature,
    Restricted,
    Scaled,
    SecondDerivative,
    curvature_of,
)
from codiag.least_squares._layout import Layout
from codiag.least_squares._tolerances import PER_UNKNOWN, ROUNDING, TOLERANCE
from codiag.problem import Problem
from codiag.tensors import DenseTensor, FactoredTensor, Products, SquaredDistance, Tensor
from codiag.tensors.entries import Entries


class LeastSquares:
    r"""Half the squared distance of components from the tensor of a problem.

    .. math:: f = \tfrac12 \sum_j o_j \left(T - \sum_i w_i a_i \otimes b_i \otimes \dots\right)_j^2
        + \tfrac12 \sum_m \lambda_m \|A_m\|^2

    over the observed entries j, with weights :math:`o_j` (one by default) and ridge strengths :math:`\lambda_m`. A
    point is one array of all unknowns; ``layout`` says where in it the factors are.

    Parameters
    ----------
    problem : Problem
        What is to be solved.
    start : FactoredTensor, optional
        The start of the minimization: at even orders, components of a symmetric tensor keep its signs.
    entries : Entries, optional
        Replaces the observed entries, such as by a part of them; by default those of the problem.
    sample : Entries, optional
        Replaces them in the Gauss-Newton matrix alone.

    See Also
    --------
    minimize : Goes from a start to a minimum.
    codiag.Problem : What is asked.

    Examples
    --------
    >>> import numpy as np
    >>> import codiag
    >>> from codiag.extending import LeastSquares
    >>> from codiag.tensors import FactoredTensor
    >>> objective = LeastSquares(codiag.Problem(np.ones((3, 4, 5)), 1))
    >>> half = FactoredTensor(np.array([0.5]), [np.ones((size, 1)) for size in (3, 4, 5)])
    >>> round(objective.relative_error(half), 6)
    0.5
    """

    is_quadratic = True

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
        self._sample, self._is_part = sample, entries is not None
        self.layout = Layout(problem.tensor.shape, None, problem.shared)
        if start is not None and problem.symmetric is True and start.symmetric:
            self.layout = Layout.of(start)

    @property
    def noise_variance(self) -> float:
        """Noise variance per unit objective, 2 / (n - p) for n entries and p parameters; 0 if n - p <= 1."""
        n_entries = self.problem.n_independent
        if self._is_part and self.entries is not None:
            n_entries = self.entries.n_independent(self.problem.groups)
        spare = n_entries - self.problem.n_parameters
        return 2 / spare if spare > 1 else 0.0

    @cached_property
    def squared_norm(self) -> float:
        """Weighted sum of squares of the observed entries."""
        return self.entries.squared_norm() if self._is_part and self.entries else self.problem.data.squared_norm

    def distance(self, components: FactoredTensor) -> float:
        """Return the squared distance of components over the observed entries."""
        if self.entries is not None:
            return self.entries.distance(components)
        return self.tensor.squared_distance(components.weights, components.factors)

    def relative_error(self, components: FactoredTensor, value: float | None = None) -> float:
        """Return the distance of components, relative to the norm of the observed entries.

        It is computed from the value of the objective if that is known, and holds no ridges.
        """
        distance = self.distance(components) if value is None or self.has_ridges else 2 * value
        return math.sqrt(distance / self.squared_norm)

    def value(self, point: Array) -> float:
        """Return the objective at a point."""
        return self.distance(self.layout.components(point)) / 2 + self._ridge(point)

    def gradient(self, point: Array) -> Array:
        """Return the gradient of the objective: one pass over the tensor."""
        if self.entries is not None:
            return self.value_and_gradient(point)[1]
        return self.gradient_from(point, self.tensor.read(self.products(point))[0])

    def products(self, point: Array) -> Products:
        """Return the products of the tensor with factors that the gradient at a point needs."""
        layout, reference = self.layout, self.tensor.reference
        factors = layout.factors(point) if layout.signs is not None else layout.expanded(point)
        factors = [moved(factor, reference) for factor in factors]  # the tensor may be in single precision
        return Products(factors) if layout.signs is None else Products(factors * self.tensor.order, [0])

    def gradient_from(self, point: Array, products: Sequence[Array]) -> Array:
        """Return the gradient of the objective from the products of the tensor at the point."""
        gradient = self._gradient(point, [moved(product, point) for product in products])
        return gradient if self._strengths is None else gradient + self._strengths * point

    def distance_from(self, point: Array, products: Sequence[Array]) -> float:
        """Return the squared distance from the products of the tensor at the point, to rounding of the squared norm."""
        model = self.layout.components(point)
        terms = double(moved(products[0], point) * model.factors[0] * model.weights)
        return max(self.squared_norm - 2 * float(array_namespace(terms).sum(terms)) + model.squared_norm(), 0.0)

    def is_far(self, squared_distance: float) -> bool:
        """Return whether so large a squared distance is known to the tolerance without subtracting entries exactly.

        In double precision a difference of squared norms gives it. In single precision entries are subtracted, but
        rounded, if the squares of their rounding errors are below the tolerance.
        """
        if self._is_double:
            return TOLERANCE * squared_distance > ROUNDING * self.squared_norm
        return TOLERANCE * squared_distance > epsilon(self.tensor.reference) ** 2 * self.squared_norm

    @cached_property
    def _is_double(self) -> bool:
        return bool(self.tensor.reference.dtype == array_namespace(self.tensor.reference).float64)

    def value_and_gradient(self, point: Array, *, far: bool = False) -> tuple[float, Array]:
        """Return the objective and its gradient, in one pass over the tensor or over its observed entries.

        With `far`, entries are not subtracted exactly: see `is_far`.
        """
        layout = self.layout
        if self.entries is None and far and self._is_double:
            products = self.tensor.read(self.products(point))[0]
            return self.distance_from(point, products) / 2 + self._ridge(point), self.gradient_from(point, products)
        if self.entries is None:
            model, products = layout.components(point), self.products(point)
            factors = products.factors if far and layout.signs is None else model.factors  # rounded, and there already
            products, distance = self.tensor.read(products, SquaredDistance(model.weights, factors, far))
            return distance / 2 + self._ridge(point), self.gradient_from(point, products)
        distance, gradients = self.entries.distance_and_slopes(layout.expanded(point))
        if layout.signs is None:
            gradients = with_equal_scaling(layout.expanded(point), gradients)
        gradient = layout.folded(gradients)
        if self._strengths is not None:
            gradient = gradient + self._strengths * point
        return distance / 2 + self._ridge(point), gradient

    def _ridge(self, point: Array) -> float:
        return 0.0 if self._strengths is None else float(array_namespace(point).sum(self._strengths * point**2)) / 2

    def _gradient(self, point: Array, products: Sequence[Array]) -> Array:
        xp = array_namespace(point)
        layout, order = self.layout, self.tensor.order
        if layout.signs is None:
            factors = layout.expanded(point)
            grams, pairs = [factor.T @ factor for factor in factors], zip(factors, products, strict=True)
            parts = [factor @ product_without(grams, [m]) - product for m, (factor, product) in enumerate(pairs)]
            return layout.folded(with_equal_scaling(factors, parts))
        gram = (xp.matrix_transpose(point) @ point) ** (order - 1)
        return order * layout.signs * ((point * layout.signs) @ gram - products[0])

    def curvature(self, point: Array) -> CurvatureLike:
        """Return the Gauss-Newton matrix at a point, without ridges and constraints."""
        if self.entries is not None:
            return ObservedCurvature(self.layout, point, self._sample or self.entries)
        return curvature_of(self.layout, point)

    @cached_property
    def expected_share(self) -> float | None:
        """Mean weight of all entries, missing ones included, if steps may rely on it; None otherwise.

        Such a share of the matrix of the complete tensor is the expectation of the Gauss-Newton matrix if entries are
        missing at random. If they are p unknowns and n entries, of which a share q is missing, the two differ by about
        2 sqrt(p q / n), the edge of the Marchenko-Pastur law, which must be at most a fifth. Wherever entries are
        missing, a share of at least half of the largest weight is not less than half of the matrix in any direction, so
        that steps do not overshoot the minimum of the model by more than the distance to it.
        """
        if self.entries is None or self._is_part or self._sample is not None or self.tensor.is_partial:
            return None
        share = self.problem.data.mean_share
        missing = 1 - share / self.entries.largest_weight()
        n_needed = PER_UNKNOWN * self.problem.n_parameters * missing
        return share if missing <= 0.5 and n_needed <= self.problem.n_observed else None

    def step_curvature(self, point: Array) -> CurvatureLike:
        """Return the Gauss-Newton matrix for steps: its expectation if few entries are missing."""
        if self.expected_share is None:
            return self.curvature(point)
        return Scaled(curvature_of(self.layout, point), self.expected_share)

    def restricted(self, curvature: CurvatureLike, gradient: Array) -> CurvatureLike:
        """Return a curvature with ridges, on the unknowns that constraints leave free to move against a gradient."""
        if self.problem.constraints is None:
            return curvature
        tangent = partial(self.tangent, curvature.point) if self.is_curved else None
        return Restricted(curvature, self.free(curvature.point, gradient), self._strengths, tangent)

    def second_derivative(self, point: Array, gradient: Array) -> CurvatureLike:
        """Return the second derivative, with ridges, on the unknowns that constraints leave free."""
        residual = self.residual(self.layout.components(point))
        return self.restricted(SecondDerivative(self.step_curvature(point), residual), gradient)

    @property
    def curvature_error(self) -> float:
        """Relative error of the curvature, if it is that of a sample."""
        return 0.0 if self._sample is None else PER_UNKNOWN**-0.5

    def residual(self, components: FactoredTensor) -> Tensor:
        """Return the tensor minus components, times the weights of entries; zero at missing entries."""
        if self.entries is not None:
            return self.entries.residual(components)
        entries = self.tensor.to_dense()
        there = components.changed(lambda factor, _: moved(factor, entries), moved(components.weights, entries))
        return DenseTensor.of(entries - there.to_dense(), symmetric=self.tensor.symmetric)

    @cached_property
    def supports_steps(self) -> bool:
        """Whether all constraints support Gauss-Newton steps, and some factor is to be found."""
        if self.all_fixed:
            return False
        return all(constraint is None or constraint.supports_steps for constraint in self._constraints)

    @cached_property
    def all_fixed(self) -> bool:
        """Whether all factors are fixed, so that only weights are to be found."""
        return all(constraint is not None and constraint.is_fixed for constraint in self._constraints)

    def free(self, point: Array, gradient: Array) -> Array:
        """Return one for unknowns that constraints leave free to move against a gradient, zero for the others."""
        xp = array_namespace(point)
        factors, slopes = self.layout.factors(point + 0 * gradient), self.layout.factors(gradient)  # one or a stack
        triples = zip(self._of_factors, factors, slopes, strict=True)
        return _stacked([xp.ones_like(factor) if rule is None else rule.free(factor, g) for rule, factor, g in triples])

    def tangent(self, point: Array, move: Array) -> Array:
        """Return the part of a move that is tangent to curved sets of factors."""
        triples = zip(self._of_factors, self.layout.factors(point), self.layout.factors(move), strict=True)
        return _stacked([part if rule is None else rule.tangent(factor, part) for rule, factor, part in triples])

    def projected(self, point: Array) -> Array:
        """Return the nearest point that satisfies the constraints."""
        if self.problem.constraints is None:
            return point
        pairs = zip(self._of_factors, self.layout.factors(point), strict=True)
        return _stacked([factor if rule is None else rule.project(factor) for rule, factor in pairs])

    @property
    def _of_factors(self) -> list[Constraint | None]:
        """The constraint of each factor of the layout."""
        return [self._constraints[group[0]] for group in self.layout.groups]

    @property
    def _constraints(self) -> Sequence[Constraint | None]:
        return self.problem.constraints or (None,) * self.tensor.order

    @cached_property
    def is_free(self) -> bool:
        """Whether no constraint excludes any factor."""
        return not any(constraint is not None and constraint.restricts for constraint in self._constraints)

    @cached_property
    def is_curved(self) -> bool:
        """Whether some set of factors is a curved surface."""
        return any(constraint is not None and constraint.is_curved for constraint in self._constraints)

    @cached_property
    def uniform_ridge(self) -> float | None:
        """Ridge strength of all unknowns, if ridges are equal in all modes; None otherwise."""
        strengths = set(ridge_strengths(self._constraints))
        return strengths.pop() * len(self.layout.groups[0]) if len(strengths) == 1 else None

    @property
    def has_ridges(self) -> bool:
        """Whether ridges bound the components."""
        return self._strengths is not None

    @cached_property
    def _strengths(self) -> Array | None:
        """Ridge strengths of the rows of unknowns, (D, 1); None if all are zero."""
        strengths = ridge_strengths(self._constraints)
        if not any(strengths):
            return None
        shape, reference = self.tensor.shape, self.tensor.reference
        totals = [(shape[group[0]], sum(strengths[mode] for mode in group)) for group in self.layout.groups]
        rows = np.concatenate([np.full((size, 1), strength) for size, strength in totals])
        return like(rows, double(reference))

    def solve_mode(self, factors: Sequence[Array], mode: int) -> Array:
        """Return the best factor of one mode for given factors of the others, under its constraint."""
        xp = array_namespace(factors[0])
        constraint = self._constraints[mode]
        gram, product = self._equations(factors, mode)
        if constraint is not None:
            return constraint.solve(gram, product, factors[mode])
        if gram.ndim == 3:
            return solve_rows(gram, product)
        return xp.matrix_transpose(solve_semidefinite(gram, xp.matrix_transpose(product)))

    def solve_weights(self, factors: Sequence[Array]) -> Array:
        """Return the best weights for given factors."""
        xp = array_namespace(factors[0])
        gram, product = self._equations(factors, 0)
        outer = factors[0][:, :, None] * factors[0][:, None, :]
        return solve_semidefinite(xp.sum(outer * gram, axis=0), xp.sum(factors[0] * product, axis=0))

    def _equations(self, factors: Sequence[Array], mode: int) -> tuple[Array, Array]:
        """Return the normal equations of the factor of a mode: one Gram matrix for all rows, or one for each."""
        if self.entries is None:
            there = [moved(factor, self.tensor.reference) for factor in factors]
            return hadamard_gram(factors, [mode]), moved(self.tensor.mttkrp(there, mode), factors[0])
        return self.entries.row_grams(factors, mode), self.entries.row_products(factors, mode)

    def sweep(self, factors: Sequence[Array], *, unit: bool) -> FactoredTensor:
        """Solve for each mode in turn; with `unit`, columns get unit length and those of the last mode are weights."""
        solved = list(factors)
        weights = array_namespace(solved[0]).ones_like(solved[0][0, :])
        for mode in range(self.tensor.order):
            solved[mode] = self.solve_mode(solved, mode)
            if unit:
                solved[mode], weights = unit_columns(solved[mode])
        if self.all_fixed:
            weights = self.solve_weights(solved)
        return FactoredTensor(weights, solved, symmetric=False)

    def feasible(self, components: FactoredTensor) -> FactoredTensor:
        """Return components near these that satisfy the constraints, with sizes in the factors and weights of one.

        Factors of modes that share one are averaged. Of the two signs of a column, the one that projection changes less
        is taken. The sign of the component goes to a mode whose columns may have either sign.
        """
        xp = array_namespace(components.weights)
        groups = self.problem.groups
        for group in groups:
            components = merged_modes(components, group) if len(group) > 1 else components
        scale, ones = xp.abs(components.weights) ** (1 / components.order), xp.ones_like(components.weights)
        total = xp.where(components.weights < 0, -ones, ones)
        of_mode: dict[int, Array] = {}
        for group in groups:
            factor = components.factors[group[0]] * scale
            plus, minus = (self._projected(sign * factor, group[0]) for sign in (1, -1))
            kept = xp.linalg.vector_norm(plus - factor, axis=0) <= xp.linalg.vector_norm(minus + factor, axis=0)
            total = xp.where(kept, total, total * (-1.0) ** len(group))
            of_mode |= dict.fromkeys(group, xp.where(kept, plus, minus))
        for group in reversed(groups):
            if len(group) % 2 and self._allows_sign_change(group[0]):
                of_mode |= dict.fromkeys(group, of_mode[group[0]] * total)
                break
        factors = [of_mode[mode] for mode in range(components.order)]
        if self.problem.symmetric is True:
            return FactoredTensor(total if components.order % 2 == 0 else ones, factors, symmetric=True)
        return FactoredTensor(ones, factors, symmetric=False)

    def _allows_sign_change(self, mode: int) -> bool:
        constraint = self._constraints[mode]
        return constraint is None or constraint.allows_sign_change

    def project(self, factors: Sequence[Array]) -> list[Array]:
        """Return the nearest factors that satisfy the constraints."""
        return [self._projected(factor, mode) for mode, factor in enumerate(factors)]

    def _projected(self, factor: Array, mode: int) -> Array:
        constraint = self._constraints[mode]
        return factor if constraint is None else constraint.project(factor)


def _stacked(parts: list[Array]) -> Array:
    return parts[0] if len(parts) == 1 else array_namespace(parts[0]).concat(parts, axis=-2)


def with_equal_scaling(factors: list[Array], gradients: list[Array]) -> list[Array]:
    """Make the derivatives along the columns of a component equal in all modes.

    They are equal but for rounding, because moving size from one mode to another does not change the tensor. Rounding
    errors in these directions would not be corrected by any step.
    """
    xp = array_namespace(factors[0])
    along = [xp.sum(factor * gradient, axis=0) for factor, gradient in zip(factors, gradients, strict=True)]
    mean = sum(along[1:], along[0]) / len(along)
    squares = [xp.sum(factor**2, axis=0) for factor in factors]
    return [
        gradient + factor * ((mean - derivative) / xp.where(square > 0, square, xp.ones_like(square)))
        for factor, gradient, derivative, square in zip(factors, gradients, along, squares, strict=True)
    ]
