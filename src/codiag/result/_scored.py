"""The result of a fit by a loss other than least squares."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from codiag._arrays import array_namespace, to_host
from codiag.least_squares import GeneralizedObjective, LeastSquares, noise_excess
from codiag.losses import Loss
from codiag.problem import Problem
from codiag.tensors import FactoredTensor, is_large

TOLERATED, N_ERRORS = 0.1, 4
"""Deviation of the dispersion from one that changes errors by a twentieth, and standard errors beyond chance."""


@dataclass(frozen=True)
class Deviance:
    """How well components fit under a loss.

    Attributes
    ----------
    loss : Loss
        With all numbers that were estimated.
    total : float
        Deviance of the components.
    null : float
        Deviance of the mean of all entries.
    dispersion : float
        Variance of entries around the fit over the variance that the loss says; NaN if no entry is to spare.
    dispersion_error : float
        Its standard error.
    """

    loss: Loss
    total: float
    null: float
    dispersion: float
    dispersion_error: float

    @property
    def has_right_variance(self) -> bool:
        """Whether entries scatter as the loss says, to a tenth or to what can be told; also if it does not say."""
        return not self.loss.states_variance or abs(self.dispersion - 1) <= max(
            TOLERATED, N_ERRORS * self.dispersion_error
        )

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
    return Deviance(objective.loss, objective.distance(components), 2 * objective.null_value, dispersion, error)


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


def linearized(problem: Problem, components: FactoredTensor) -> Problem | None:
    """Return the weighted least squares around a fit, for its errors; None if it is too large."""
    if is_large(problem.tensor.shape):
        return None
    return GeneralizedObjective(problem).linearized(components)


def excess_of(problem: Problem, components: FactoredTensor) -> float | None:
    """Return how far standardized residuals stand out of noise; None if the tensor is large, or entries are few."""
    if is_large(problem.tensor.shape) or 2 * problem.n_parameters > problem.n_independent:
        return None
    residual = GeneralizedObjective(problem).residual(components)
    xp = array_namespace(residual.reference)
    if not bool(xp.all(xp.isfinite(residual.to_dense()))):
        return None
    return noise_excess(problem, residual)
