r"""The objective of losses other than least squares: Fisher scoring is Gauss-Newton with weights that change.

At a point with the model :math:`\eta`, entry j has the curvature :math:`w_j` of its loss as a weight, and
:math:`-\ell'(x_j, \eta_j) / w_j` as a residual.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property

from codiag._arrays import Array, array_namespace, to_host
from codiag.least_squares._components import product_without
from codiag.least_squares._least_squares import LeastSquares
from codiag.least_squares._objective import Objective, Terms
from codiag.least_squares._operators import CurvatureOperator, WeightedGaussNewtonOperator
from codiag.least_squares._rank_one import N_TERMS, distinct_terms
from codiag.least_squares._tolerances import NEGLIGIBLE, TINY
from codiag.losses import Loss
from codiag.problem import Problem, interior
from codiag.tensors import FactoredTensor, Tensor, scaled_factors


class GeneralizedObjective(Objective):
    r"""Half the deviance of components, :math:`\sum_j o_j\, \ell(x_j, \eta_j)`, with ridges, for a problem with a loss.

    Zeros that a sparse tensor does not list have a loss of :math:`s \eta`, whose sum over all entries is a product of
    column sums.
    """

    is_quadratic = False

    def __init__(self, problem: Problem, start: FactoredTensor | None = None) -> None:
        super().__init__(problem, start)
        assert problem.loss is not None
        self.loss: Loss = problem.loss
        self.listed = problem.listed_entries
        self._slope = (self.loss.zero_gradient or 0.0) if self.listed.has_zeros else 0.0
        self.steps_name = "multiplicative steps" if self.is_multiplicative else "Fisher scoring"

    @property
    def noise_variance(self) -> float:
        """Unit of the loss per unit objective: one where the loss states variances, relative to that of the mean."""
        if self.loss.fixed_dispersion and self.null_value > 0:
            return 1 / self.null_value
        return LeastSquares(self.problem).noise_variance

    @property
    def is_multiplicative(self) -> bool:
        """Whether multiplicative steps apply: zeros are not listed, and each mode has its non-negative factor."""
        is_apart = self.parametrization.signs is None and not self.parametrization.shared
        return self.listed.has_zeros and is_apart and not self.all_fixed and not self.penalties

    @cached_property
    def squared_norm(self) -> float:
        """Twice the loss of the best constant model: what there is to explain."""
        return 2 * self.null_value

    @cached_property
    def null_model(self) -> float:
        """The sum of components that has the mean of the entries everywhere; NaN if all entries are equal."""
        n_listed = self.listed.total(0 * self.listed.values + 1)
        mean = self.listed.total(self.listed.values) / (self.listed.size if self.listed.has_zeros else n_listed)
        return self.loss.inverse_mean(mean) if self.listed.total((self.listed.values - mean) ** 2) > 0 else math.nan

    @cached_property
    def null_value(self) -> float:
        """Half the deviance of a model that has the mean of the entries everywhere; 0 if all entries are equal."""
        if math.isnan(self.null_model):
            return 0.0
        values = self.listed.values
        rest = self._slope * self.null_model * (self.listed.size - self.listed.total(0 * values + 1))
        return self.listed.total(self.loss.value(values, 0 * values + self.null_model)) + rest

    def model(self, components: FactoredTensor) -> Array:
        """Return the sum of components at the listed entries."""
        return self.listed.model(scaled_factors(components))

    def distance(self, components: FactoredTensor) -> float:
        """Return the deviance of components."""
        factors = scaled_factors(components)
        value = self.listed.total(self._terms(self.listed.values, self.listed.model(factors))[0])
        value += self._slope * self._background(factors) if self._slope else 0.0
        return 2 * value if value == value else math.inf

    def residual(self, components: FactoredTensor) -> Tensor:
        r"""Return standardized residuals, :math:`-\ell' / \sqrt w` with the information w, times roots of weights.

        Of exponential families these are Pearson's, of variance one if the loss is right.
        """
        return self.listed.tensor_of(self.standardized(components))

    def standardized(self, components: FactoredTensor) -> Array:
        """Return the same at the listed entries."""
        model = self.model(components)
        xp = array_namespace(model)
        residual = -self.loss.derivative(self.listed.values, model) / xp.sqrt(self._information(model))
        if self.listed.weights is not None:
            known = self.listed.weights > 0
            residual = xp.where(known, xp.sqrt(self.listed.weights) * residual, xp.zeros_like(residual))
        return residual

    def _information(self, model: Array) -> Array:
        """Return the information of the observed entries, at most a million times that at their mean.

        Where the model vanishes information is infinite, but says nothing: no entry of a factor that is not zero moves
        the model there.
        """
        xp, known = array_namespace(model), self.listed.values
        if self.listed.weights is not None:
            known = xp.where(self.listed.weights > 0, known, xp.full_like(model, math.nan))
        information = self.loss.fisher_information(known, model)
        if math.isnan(self.null_model):
            return information
        usual = self.loss.fisher_information(xp.ones_like(model), xp.full_like(model, self.null_model))
        return xp.where(information < usual / NEGLIGIBLE, information, usual / NEGLIGIBLE)

    def squared_residual_error(self, components: FactoredTensor) -> float:
        """Return the standard error of the sum of squares of standardized residuals, from their fourth powers."""
        residual = self.standardized(components)
        return math.sqrt(float(array_namespace(residual).sum(residual**4)))

    def squared_residual(self, components: FactoredTensor, value: float | None = None) -> float:
        """Return the sum of squares of standardized residuals; of a zero that is not listed, the square is its mean."""
        squares = self.residual(components)
        if not self.listed.has_zeros:
            return squares.squared_norm()
        factors = scaled_factors(components)
        return squares.squared_norm() + self._background(factors) - self.listed.total(self.listed.model(factors))

    def terms(self, components: FactoredTensor, n: int = N_TERMS, residual: Tensor | None = None) -> Terms:
        r"""Return the rank-one terms along which a loss falls fastest, as long as a step of Fisher scoring.

        Along a unit term z, that has the length :math:`-\sum_j \ell'_j z_j / \sum_j w_j z_j^2`.
        """
        if self.listed.has_zeros:  # the score of entries that are not listed would have to be formed
            return []
        model, found = self.model(components), []
        weights = self.listed.times_weights(self._information(model))
        score = self.listed.tensor_of(-self.listed.times_weights(self.loss.derivative(self.listed.values, model)))
        for term in distinct_terms(score, n, self.problem.constraints):
            information = weights * self.listed.model(term.factors) ** 2
            length = term.weights / (float(array_namespace(information).sum(information)) + TINY)
            found.append(interior(term.changed(lambda factor, _: factor, length), self.problem.constraints))
        return found

    def estimated(self, components: FactoredTensor) -> Problem:
        values, model = (to_host(part) for part in (self.listed.values, self.model(components)))
        if self.listed.weights is not None:
            known = to_host(self.listed.weights) > 0
            values, model = values[known], model[known]
        degrees_of_freedom = max(self.problem.n_observed - self.problem.n_parameters, 1)
        return self.problem.with_loss(self.loss.fit_dispersion(values.ravel(), model.ravel(), degrees_of_freedom))

    def linearized(self, components: FactoredTensor) -> Problem:
        r"""Return the weighted least squares that a step of Fisher scoring from components solves.

        Entries :math:`\eta - \ell' / w` have the information w as weights.
        """
        model = self.model(components)
        information = self._information(model)
        response = model - self.loss.derivative(self.listed.values, model) / information
        weights = self.listed.times_weights(information)
        return self.problem.with_weights(self.listed.tensor_of(response), weights)

    def value_and_gradient(self, point: Array, *, far: bool = False) -> tuple[float, Array]:
        """Return half the deviance and its gradient, in one pass over the entries."""
        factors = self.parametrization.expand(point)
        total, slopes = self.listed.visit(factors, self._terms)
        value = total + self._slope * self._background(factors) + self._ridge(point)
        if not math.isfinite(value):
            return math.inf, 0 * point
        if self._slope:
            slopes = [slope + self._slope * ones for slope, ones in zip(slopes, _products(factors), strict=True)]
        gradient = self.parametrization.accumulate(slopes)
        if self.parametrization.signs is None and not self.listed.has_zeros:
            gradient = self.parametrization.with_equal_scaling(point, gradient)
        return value, self._with_ridge(gradient, point)

    def _terms(self, values: Array, model: Array) -> tuple[Array, Array]:
        """Return the loss and its derivative, without the part that is summed over all entries."""
        value = self.loss.value(values, model) - self._slope * model
        return value, self.loss.derivative(values, model) - self._slope

    def value_and_ratios(self, point: Array) -> tuple[float, list[Array]]:
        """Return the objective, and what entries of factors are multiplied by in a step of counts, by mode."""
        factors = self.parametrization.factors(point)
        total, slopes = self.listed.visit(factors, self._terms)
        value = total + self._slope * self._background(factors) + self._ridge(point)
        ratios = [array_namespace(slope).where(slope < 0, -slope, 0 * slope) / self._slope for slope in slopes]
        return value if math.isfinite(value) else math.inf, ratios

    def _background(self, factors: Sequence[Array]) -> float:
        """Return the sum of the model over all entries of the tensor."""
        xp = array_namespace(factors[0])
        return float(xp.sum(xp.sum(factors[0], axis=0) * _products(factors)[0]))

    def curvature(self, point: Array) -> CurvatureOperator:
        """Return the Gauss-Newton matrix at a point, with the curvature of the loss as weights of entries."""
        model = self.listed.model(self.parametrization.expand(point))
        weights = self.listed.times_weights(self.loss.hessian_bound(self.listed.values, model))
        return WeightedGaussNewtonOperator(
            self.parametrization, point, self.listed.with_values(self.listed.values, weights)
        )

    def mean_information(self, components: FactoredTensor) -> float:
        """Return the information of entries, weighted by the squares of the model: where it vanishes, none counts."""
        model = self.model(components)
        total = float(array_namespace(model).sum(model**2))
        return self.listed.total(self._information(model) * model**2) / total if total > 0 else 0.0


def _products(factors: Sequence[Array]) -> list[Array]:
    """Return the products of the column sums of all modes but one, for each mode."""
    xp = array_namespace(factors[0])
    sums = [xp.sum(factor, axis=0) for factor in factors]
    return [product_without(sums, [mode]) for mode in range(len(sums))]


def objective_of(problem: Problem, start: FactoredTensor | None = None) -> Objective:
    """Return the objective of a problem: half the squared distance, or half the deviance of its loss."""
    return LeastSquares(problem, start) if problem.loss is None else GeneralizedObjective(problem, start)
