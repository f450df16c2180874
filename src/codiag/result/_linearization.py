"""A fit under a loss: its deviance, and the weighted least squares around it, for its errors."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from codiag._arrays import to_host
from codiag.least_squares import NEGLIGIBLE, GeneralizedObjective, LeastSquares
from codiag.problem import Problem
from codiag.tensors import FactoredTensor, is_large

if TYPE_CHECKING:
    from codiag.result._factorization import Factorization

TOLERATED, N_ERRORS = 0.1, 4
"""Deviation of the dispersion from one that changes errors by a twentieth, and standard errors beyond chance."""


@dataclass(frozen=True)
class Deviance:
    """The deviance of a fit: twice its loss, for least squares the residual sum of squares.

    Attributes
    ----------
    total : float
        Deviance of the fit, over the observed entries.
    null : float
        Deviance of the mean of all entries; for least squares the squared norm.
    dispersion : float
        Variance of entries around the fit over the variance under the loss: 1 if the loss is right. Standard errors are
        multiplied by its root. NaN for least squares, and without residual degrees of freedom.
    dispersion_error : float
        Its standard error.
    fixed_dispersion : bool
        Whether the loss states the variance, as that of Poisson counts does.

    See Also
    --------
    codiag.Factorization.deviance : Has one.

    Examples
    --------
    >>> import numpy as np
    >>> import codiag
    >>> counts = np.random.default_rng(1).poisson(5.0, size=(12, 13, 14))
    >>> 0.9 < codiag.factorize(counts, 1, loss="poisson", rng=0).deviance.dispersion < 1.1
    True
    """

    total: float
    null: float
    dispersion: float = math.nan
    dispersion_error: float = math.nan
    fixed_dispersion: bool = False

    @property
    def has_right_variance(self) -> bool:
        """Whether the dispersion is 1, to a tenth or to four standard errors; also if the loss does not state it."""
        tolerated = max(TOLERATED, N_ERRORS * self.dispersion_error)
        return not self.fixed_dispersion or abs(self.dispersion - 1) <= tolerated

    @property
    def explained(self) -> float:
        """Share of the null deviance that components explain; NaN if that is zero."""
        return 1 - self.total / self.null if self.null > 0 else math.nan


def deviance_of(problem: Problem, components: FactoredTensor) -> Deviance:
    """Return the deviance of components, and the dispersion of the entries."""
    objective = GeneralizedObjective(problem)
    n_bound = 0
    for mode, factor in enumerate(components.factors):
        rule = None if problem.constraints is None else problem.constraints[mode]
        n_bound += int(np.sum(to_host(factor) == 0)) if rule is not None and rule.is_cone else 0
    share = 1 - _n_certain(objective, components) / problem.n_observed
    spare = problem.n_independent * share - max(problem.n_parameters - n_bound, 0)
    squares = objective.squared_residual(components) * problem.n_independent / problem.n_observed
    dispersion = squares / spare if spare > 0 else math.nan
    error = objective.squared_residual_error(components) / max(spare, 1)
    total, null = objective.distance(components), 2 * objective.null_value
    return Deviance(total, null, dispersion, error, objective.loss.fixed_dispersion)


def _n_certain(objective: GeneralizedObjective, components: FactoredTensor) -> int:
    """Return how many listed entries have a mean of zero, and so no variance: counts where all components are zero."""
    if not objective.loss.needs_nonnegative or objective.listed.has_zeros:
        return 0
    model = to_host(objective.model(components))
    known = np.ones(model.shape) if objective.listed.weights is None else to_host(objective.listed.weights)
    return int(np.count_nonzero((model <= NEGLIGIBLE * float(np.mean(model))) & (known > 0)))


def relative_error_of(problem: Problem, components: FactoredTensor) -> tuple[float, float]:
    """Return the distance of the means of entries from them, relative to their norm, and this norm."""
    plain = LeastSquares(problem.with_loss(None))
    objective = GeneralizedObjective(problem)
    if objective.listed.has_zeros:
        return math.sqrt(plain.distance(components) / plain.squared_norm), math.sqrt(plain.squared_norm)
    gap = objective.listed.values - objective.loss.mean(objective.model(components))
    distance = objective.listed.total(gap**2)
    norm = math.sqrt(plain.squared_norm / problem.data.mean_weight)
    return math.sqrt(distance / plain.squared_norm), norm


def has_few_entries(problem: Problem) -> bool:
    """Return whether the tensor of a problem is in memory, and not large."""
    return problem.tensor.holds_entries and not is_large(problem.tensor.shape)


def kept(problem: Problem) -> Problem:
    """Return the problem as a result refers to it: without data if its tensor is large, or not in memory.

    With constraints, missing entries or covariances errors depend on the data, which are kept all the same; those of a
    large tensor under another loss are not, since it cannot be linearized.
    """
    is_generalized = problem.loss is not None and not problem.loss.has_covariance
    is_needed = bool(problem.required_features) and not (is_generalized and is_large(problem.tensor.shape))
    return problem if is_needed or has_few_entries(problem) else problem.drop_data()


def linearization_of(fit: Factorization) -> Problem | None:
    """Return the weighted least squares whose errors are those of a fit, to first order; None without the data."""
    problem = fit.problem
    if not problem.has_data:
        return None
    if problem.loss is None:
        return problem
    if fit._entry_weights is not None:
        return problem.with_weights(problem.tensor, fit._entry_weights)
    if problem.loss.has_covariance:
        return problem.with_loss(None)
    return GeneralizedObjective(problem).linearized(fit._components)
