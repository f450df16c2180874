"""A fit under a loss: its deviance, and the weighted least squares around it, for its errors."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from codiag._arrays import array_namespace, to_host
from codiag.least_squares import GeneralizedObjective, LeastSquares, noise_excess
from codiag.problem import Problem
from codiag.tensors import FactoredTensor, is_large

if TYPE_CHECKING:
    from codiag.result._factorization import Factorization

TOLERATED, N_ERRORS = 0.1, 4
"""Deviation of the dispersion from one that changes errors by a twentieth, and standard errors beyond chance."""


@dataclass(frozen=True)
class Deviance:
    """How well components fit under a loss.

    Attributes
    ----------
    total : float
        Deviance of the components.
    null : float
        Deviance of the mean of all entries.
    dispersion : float
        Variance of entries around the fit over the variance that the loss says; NaN if no entry is to spare.
    dispersion_error : float
        Its standard error.
    states_variance : bool
        Whether the loss says what the variance is.
    """

    total: float
    null: float
    dispersion: float
    dispersion_error: float
    states_variance: bool

    @property
    def has_right_variance(self) -> bool:
        """Whether entries scatter as the loss says, to a tenth or to what can be told; also if it does not say."""
        tolerated = max(TOLERATED, N_ERRORS * self.dispersion_error)
        return not self.states_variance or abs(self.dispersion - 1) <= tolerated

    @property
    def explained(self) -> float:
        """Share of the deviance of the mean that components explain."""
        return 1 - self.total / self.null if self.null > 0 else math.nan


def deviance_of(problem: Problem, components: FactoredTensor) -> Deviance:
    """Return the deviance of components, and how far entries scatter around them."""
    objective = GeneralizedObjective(problem)
    n_bound = 0
    for mode, factor in enumerate(components.factors):
        rule = None if problem.constraints is None else problem.constraints[mode]
        n_bound += int(np.sum(to_host(factor) == 0)) if rule is not None and rule.is_one_sided else 0
    spare = problem.n_independent - max(problem.n_parameters - n_bound, 0)
    squares = objective.squared_residual(components) * problem.n_independent / problem.n_observed
    dispersion = squares / spare if spare > 0 else math.nan
    error = objective.squared_residual_error(components) / max(spare, 1)
    total, null = objective.distance(components), 2 * objective.null_value
    return Deviance(total, null, dispersion, error, objective.loss.states_variance)


def relative_error_of(problem: Problem, components: FactoredTensor) -> tuple[float, float]:
    """Return the distance of the means of entries from them, relative to their norm, and this norm."""
    plain = LeastSquares(problem.with_loss(None))
    objective = GeneralizedObjective(problem)
    if objective.cells.has_zeros:
        return math.sqrt(plain.distance(components) / plain.squared_norm), math.sqrt(plain.squared_norm)
    gap = objective.cells.values - objective.loss.mean(objective.model(components))
    distance = objective.cells.total(gap**2)
    norm = math.sqrt(plain.squared_norm / problem.data.mean_weight)
    return math.sqrt(distance / plain.squared_norm), norm


def has_few_entries(problem: Problem) -> bool:
    """Return whether the tensor of a problem is in memory, and not large."""
    return problem.tensor.holds_entries and not is_large(problem.tensor.shape)


def kept(problem: Problem) -> Problem | None:
    """Return the problem as a result refers to it: None if its tensor is large, or not in memory.

    With constraints, missing entries or covariances errors depend on it, and it is kept all the same; a large one under
    another loss is not, since it cannot be linearized.
    """
    is_scored = problem.loss is not None and not problem.loss.has_covariance
    is_needed = bool(problem.required_features) and not (is_scored and is_large(problem.tensor.shape))
    return problem if is_needed or has_few_entries(problem) else None


def linearization_of(fit: Factorization) -> Problem | None:
    """Return the weighted least squares whose errors are those of a fit, to first order; None without its problem."""
    problem = fit.problem
    if problem is None or problem.loss is None:
        return problem
    if fit._entry_weights is not None:
        return problem.with_weights(problem.tensor, fit._entry_weights)
    if problem.loss.has_covariance:
        return problem.with_loss(None)
    return GeneralizedObjective(problem).linearized(fit.tensor)


def excess_of(problem: Problem, components: FactoredTensor) -> float | None:
    """Return how far standardized residuals stand out of noise; None if the tensor is large, or entries are few."""
    if is_large(problem.tensor.shape) or 2 * problem.n_parameters > problem.n_independent:
        return None
    residual = GeneralizedObjective(problem).residual(components)
    xp = array_namespace(residual.reference)
    if not bool(xp.all(xp.isfinite(residual.to_dense()))):
        return None
    return noise_excess(problem, residual)
