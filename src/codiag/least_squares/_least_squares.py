"""The objective of least squares, for every problem."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from codiag._arrays import Array, array_namespace, conjugate, epsilon, identity, real_part, to_double, to_namespace
from codiag.constraints import majorants, others_of, solve_rows
from codiag.least_squares._components import hadamard_gram, product_without, solve_semidefinite, unit_columns
from codiag.least_squares._objective import Objective, Terms
from codiag.least_squares._operators import (
    CurvatureOperator,
    GaussNewtonOperator,
    HessianOperator,
    WeightedGaussNewtonOperator,
)
from codiag.least_squares._rank_one import N_TERMS, distinct_terms
from codiag.least_squares._tolerances import PER_UNKNOWN, ROUNDING, TOLERANCE
from codiag.problem import Problem
from codiag.tensors import (
    DenseTensor,
    FactoredTensor,
    Products,
    SquaredDistance,
    Tensor,
    array_in_double_precision,
    is_large,
)
from codiag.tensors.entries import DenseEntries, ObservedEntries


class LeastSquares(Objective):
    r"""Half the squared distance of components from the tensor of a problem.

    .. math:: f = \tfrac12 \sum_j o_j \left(T - \sum_i w_i a_i \otimes b_i \otimes \dots\right)_j^2
        + \tfrac12 \sum_m \lambda_m \|A_m\|^2

    over the observed entries j, with weights :math:`o_j` (one by default) and ridge strengths :math:`\lambda_m`. A
    point is one array of all unknowns; ``parametrization`` says where in it the factors are.

    Parameters
    ----------
    problem : Problem
        What is to be solved.
    start : FactoredTensor, optional
        The start of the minimization: at even orders, components of a symmetric tensor keep its signs.

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
    steps_name = "least squares"

    @property
    def noise_variance(self) -> float:
        """Noise variance per unit objective, 2 / (n - p) for n entries and p parameters; 0 if n - p <= 1."""
        spare = self.problem.n_independent - self.problem.n_parameters
        return 2 / spare if spare > 1 else 0.0

    @cached_property
    def squared_norm(self) -> float:
        """Weighted sum of squares of the observed entries."""
        return self.problem.data.squared_norm

    def distance(self, components: FactoredTensor) -> float:
        """Return the squared distance of components over the observed entries."""
        if self.entries is not None:
            return self.entries.distance(components)
        return self.tensor.squared_distance(components.weights, components.factors)

    def products(self, point: Array) -> Products:
        """Return the products of the tensor with factors that the gradient at a point needs."""
        parametrization, reference = self.parametrization, self.tensor.reference
        factors = parametrization.factors(point) if parametrization.signs is not None else parametrization.expand(point)
        # The tensor may be in single precision.
        factors = [to_namespace(conjugate(factor), reference) for factor in factors]
        return Products(factors) if parametrization.signs is None else Products(factors * self.tensor.order, [0])

    def gradient_from(self, point: Array, products: Sequence[Array]) -> Array:
        """Return the gradient of the objective from the products of the tensor at the point."""
        return self._with_ridge(self._gradient(point, [to_namespace(product, point) for product in products]), point)

    def distance_from(self, point: Array, products: Sequence[Array]) -> float:
        """Return the squared distance from the products of the tensor at the point, to rounding of the squared norm."""
        model = self.parametrization.components(point)
        terms = real_part(to_double(to_namespace(products[0], point) * conjugate(model.factors[0] * model.weights)))
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
        return epsilon(self.tensor.reference) < ROUNDING

    def value_and_gradient(self, point: Array, *, far: bool = False) -> tuple[float, Array]:
        """Return the objective and its gradient, in one pass over the tensor or over its observed entries.

        With `far`, entries are not subtracted exactly: see `is_far`.
        """
        parametrization = self.parametrization
        if self._held is not None:
            factors, signs = parametrization.expand(point), parametrization.signs
            is_symmetric = self.entries is None and signs is not None  # then one mode says all
            distance, slopes = self._held.distance_and_slopes(factors, [0] if is_symmetric else None)
            if is_symmetric:
                slopes = [slopes[0], *[signs * slopes[0]] * (self.tensor.order - 1)]
            gradient = parametrization.accumulate(slopes)
            if signs is None:
                gradient = parametrization.with_equal_scaling(point, gradient)
            return distance / 2 + self._ridge(point), self._with_ridge(gradient, point)
        if far and self._is_double:
            products = self.tensor.read(self.products(point))[0]
            value = self.distance_from(point, products) / 2
        else:
            model, request = parametrization.components(point), self.products(point)
            is_there = far and parametrization.signs is None  # rounded, beside the tensor
            rows = request.factors if is_there else model.factors
            products, distance = self.tensor.read(request, SquaredDistance(model.weights, rows, far))
            value = distance / 2
        return value + self._ridge(point), self.gradient_from(point, products)

    @cached_property
    def _held(self) -> ObservedEntries | None:
        """The entries if they are observed in part, or few, in memory and in double precision."""
        if self.entries is not None or is_large(self.tensor.shape):
            return self.entries
        array = array_in_double_precision(self.tensor)
        return None if array is None else DenseEntries(array, None)

    def _gradient(self, point: Array, products: Sequence[Array]) -> Array:
        xp = array_namespace(point)
        parametrization, order = self.parametrization, self.tensor.order
        if parametrization.signs is None:
            factors = parametrization.expand(point)
            grams = [factor.T @ conjugate(factor) for factor in factors]
            pairs = zip(factors, products, strict=True)
            parts = [factor @ product_without(grams, [m]) - product for m, (factor, product) in enumerate(pairs)]
            return parametrization.with_equal_scaling(point, parametrization.accumulate(parts))
        gram = (xp.matrix_transpose(point) @ conjugate(point)) ** (order - 1)
        return order * parametrization.signs * ((point * parametrization.signs) @ gram - products[0])

    def curvature(self, point: Array) -> CurvatureOperator:
        """Return the Gauss-Newton matrix at a point, without ridges and constraints."""
        if self.entries is not None:
            return WeightedGaussNewtonOperator(self.parametrization, point, self.entries)
        return GaussNewtonOperator(self.parametrization, point)

    def mean_information(self, components: FactoredTensor) -> float:
        return self.problem.data.mean_share

    @cached_property
    def expected_share(self) -> float | None:
        """Mean weight of all entries, missing ones included, if steps may rely on it; None otherwise.

        Such a share of the matrix of the complete tensor is the expectation of the Gauss-Newton matrix if entries are
        missing at random. If they are p unknowns and n entries, of which a share q is missing, the two differ by about
        2 sqrt(p q / n), the edge of the Marchenko-Pastur law, which must be at most a fifth. Wherever entries are
        missing, a share of at least half of the largest weight is not less than half of the matrix in any direction, so
        that steps do not overshoot the minimum of the model by more than the distance to it.
        """
        if self.entries is None or self.tensor.is_partial:
            return None
        share = self.problem.data.mean_share
        missing = 1 - share / self.entries.largest_weight()
        n_needed = PER_UNKNOWN * self.problem.n_parameters * missing
        return (
            share if missing <= 0.5 and n_needed <= self.problem.numbers_per_entry * self.problem.n_observed else None
        )

    def residual(self, components: FactoredTensor) -> Tensor:
        """Return the tensor minus components, times the weights of entries; zero at missing entries."""
        if self.entries is not None:
            return self.entries.residual(components)
        entries = self.tensor.to_dense()
        there = components.changed(
            lambda factor, _: to_namespace(factor, entries), to_namespace(components.weights, entries)
        )
        return DenseTensor.of(entries - there.to_dense(), symmetric=self.tensor.symmetric)

    def second_derivative(self, point: Array, gradient: Array) -> CurvatureOperator:
        """Return the second derivative, with ridges, on the unknowns that constraints leave free."""
        residual = self.residual(self.parametrization.components(point))
        share = self.expected_share
        known = None if share is None else GaussNewtonOperator(self.parametrization, point, multiple=share)
        return self.restricted(HessianOperator(known or self.curvature(point), residual), gradient)

    def squared_residual(self, components: FactoredTensor, value: float | None = None) -> float:
        return self.distance(components) if value is None or self.penalties else 2 * value

    def terms(self, components: FactoredTensor, n: int = N_TERMS, residual: Tensor | None = None) -> Terms:
        residual = self.residual(components) if residual is None else residual
        return [term.on_host() for term in distinct_terms(residual, n, self.problem.constraints)]

    def linearized(self, components: FactoredTensor) -> Problem:
        return self.problem

    def solve_mode(self, factors: Sequence[Array], mode: int) -> Array:
        """Return the best factor of one mode for given factors of the others, under its constraint."""
        xp = array_namespace(factors[0])
        constraint = self._constraints[mode]
        gram, product = self._equations(factors, mode)
        if self.penalties:
            gram = gram + majorants(self.penalties, factors, mode) * identity(gram.shape[-1], gram)
        if constraint is not None and constraint.penalty_degree:
            sizes = others_of([xp.linalg.vector_norm(factor, axis=0) for factor in factors], mode)
            return constraint.solve_penalized(gram, product, factors[mode], sizes)
        if constraint is not None:
            return constraint.solve(gram, product, factors[mode])
        if gram.ndim == 3:
            return solve_rows(gram, product)
        return xp.matrix_transpose(solve_semidefinite(gram, xp.matrix_transpose(product)))

    def solve_weights(self, factors: Sequence[Array]) -> Array:
        """Return the best weights for given factors."""
        xp = array_namespace(factors[0])
        gram, product = self._equations(factors, 0)
        others = conjugate(factors[0])
        outer = others[:, :, None] * factors[0][:, None, :]
        return solve_semidefinite(xp.sum(outer * gram, axis=0), xp.sum(others * product, axis=0))

    def _equations(self, factors: Sequence[Array], mode: int) -> tuple[Array, Array]:
        """Return the normal equations of the factor of a mode: one Gram matrix for all rows, or one for each."""
        if self.entries is None:
            there = [to_namespace(conjugate(factor), self.tensor.reference) for factor in factors]
            return hadamard_gram(factors, [mode]), to_namespace(self.tensor.mttkrp(there, mode), factors[0])
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
