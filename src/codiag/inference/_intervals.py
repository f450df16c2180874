"""Confidence intervals of a fit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from codiag._arrays import is_complex, to_host
from codiag._text import described
from codiag.inference._noise_model import weights_of
from codiag.least_squares import NEGLIGIBLE
from codiag.tensors import khatri_rao

if TYPE_CHECKING:
    from codiag.result import Factorization

N_ROUNDS = 12
"""Fixed-point steps for the end of an interval, each of which halves the error if the variance is linear."""


@dataclass(frozen=True, eq=False, repr=False)
class ConfidenceIntervals:
    """Confidence intervals of a fit.

    Attributes
    ----------
    factors : tuple of pairs of arrays of shape (d_m, rank)
        Mode by mode, the lower and the upper ends for the entries of the factors.
    weights : pair of arrays of shape (rank,)
        The same for the weights.

    See Also
    --------
    codiag.Factorization.conf_int : Returns one.
    Bootstrap.conf_int : The same from refits.

    Examples
    --------
    >>> import codiag
    >>> tensor = codiag.synthetic.noisy_tensor((9, 8, 7), 2, noise=0.01, rng=0).tensor
    >>> low, high = codiag.factorize(tensor, 2, rng=0).conf_int().factors[0]
    >>> low.shape, bool((low <= high).all())
    ((9, 2), True)
    """

    factors: tuple[tuple[np.ndarray, np.ndarray], ...]
    weights: tuple[np.ndarray, np.ndarray]

    def __repr__(self) -> str:
        ends = ", ".join(f"{low:.4g} to {high:.4g}" for low, high in zip(*self.weights, strict=True))
        sizes = "; ".join(described(low) for low, _ in self.factors)
        return f"ConfidenceIntervals(weights: {ends}; factors, low and high: {sizes})"


def intervals(fit: Factorization, level: float) -> ConfidenceIntervals:
    """Return confidence intervals of a fit.

    Those of entries at a bound end there, and at what they could be if they were free. What is cut off at bounds makes
    weights uncertain, too: they have the larger of their errors with and without bounds.
    """
    if is_complex(fit.factors[0]):
        raise ValueError(
            "intervals are of real factors; those of this fit are complex. fit.entry_standard_errors are the root mean "
            "squared magnitudes of the errors of entries, and fit.weight_standard_errors hold for the weights, which "
            "are real"
        )
    times = NormalDist().inv_cdf((1 + level) / 2)
    found, errors_of_weights, free = [], fit.weight_standard_errors, None
    for mode, (factor, errors) in enumerate(zip(map(to_host, fit.factors), fit.entry_standard_errors, strict=True)):
        low, high = factor - times * errors, factor + times * errors
        rule = None if fit.problem.constraints is None else fit.problem.constraints[mode]
        if rule is not None and rule.is_cone:
            free = free or _without_signs(fit)
            spread = np.where(factor == 0, free.entry_standard_errors[mode], errors)
            low, high = np.maximum(low, 0.0), np.where(factor == 0, times * spread, high)
            if fit._deviance is not None and fit._data is not None:
                width = _score_widths(fit, mode, times, spread)
                high = np.where(factor == 0, width, np.maximum(high, factor + width))
            errors_of_weights = np.maximum(errors_of_weights, free.weight_standard_errors)
        found.append((low, high))
    center, wide = _without_bias(fit), times * errors_of_weights
    return ConfidenceIntervals(tuple(found), (center - wide, center + wide))


def _score_widths(fit: Factorization, mode: int, times: float, errors: np.ndarray) -> np.ndarray:
    r"""Return how far entries may lie above the estimate of a non-negative factor under a loss, by Wilson's score.

    The variance of an entry is that at the end of its interval, where the model is larger: a count of mean zero has
    none at the estimate. The others are taken to be as uncertain, relative to it, as they are at the estimate.
    """
    problem = fit.problem.in_double_precision()
    loss, dispersion = problem.loss, fit.deviance.dispersion
    assert loss is not None
    arrays = [to_host(problem.tensor.to_dense()), to_host(fit._components.to_dense())]
    data, model = (np.moveaxis(array.astype(np.float64), mode, 0).reshape(errors.shape[0], -1) for array in arrays)
    counted = weights_of(problem)
    counted = np.ones(data.shape) if counted is None else np.moveaxis(counted, mode, 0).reshape(data.shape)
    factors = [to_host(factor) for factor in fit._components.factors]
    slopes = np.asarray(khatri_rao([factor for other, factor in enumerate(factors) if other != mode])) * to_host(
        fit.weights
    )
    found = np.empty(errors.shape)
    for r in range(fit.rank):
        slope = np.abs(slopes[:, r])

        def information(width: np.ndarray, slope: np.ndarray = slope) -> np.ndarray:
            values = loss.fisher_information(data, model + width[:, None] * slope)
            return np.nansum(np.where(slope > 0, counted * slope**2 * values, 0.0), axis=1)

        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            alone = dispersion / information(np.zeros(errors.shape[0]))
            inflation, width = np.ones(errors.shape[0]), np.full(errors.shape[0], float(np.max(factors[mode][:, r])))
            for n in range(2 * N_ROUNDS):
                width = times * np.sqrt(inflation * dispersion / information(width))
                if n == N_ROUNDS:  # at a model of zero, variances say nothing
                    is_known = alone > NEGLIGIBLE * dispersion / information(width)
                    inflation = np.where(is_known, errors[:, r] ** 2 / alone, 1.0)
                    inflation = np.clip(np.nan_to_num(inflation, nan=1.0), 1.0, 100.0)
        found[:, r] = np.where(np.isfinite(errors[:, r]), np.nan_to_num(width, posinf=0.0), errors[:, r])
    return found


def _without_bias(fit: Factorization) -> np.ndarray:
    r"""Return the weights without the bias of their squares, :math:`w^2 \sum_m s_m^2` to first order.

    A fit turns unit factors towards the noise, by :math:`s_m`, their standard errors, and gains as much as the true
    ones would lose.
    """
    shares = np.sum(np.nan_to_num(fit.standard_errors, posinf=0.0) ** 2, axis=0)
    return np.asarray(to_host(fit.weights) * np.sqrt(np.maximum(1 - shares, 0.0)))


def _without_signs(fit: Factorization) -> Factorization:
    """Return a fit as if its factors could have any sign, with the same noise."""
    around = fit._linearization
    if around is None:
        return fit
    rules = tuple(None if rule is None or rule.is_cone else rule for rule in around.constraints or ())
    rules_left = rules if any(rules) else None
    free = replace(fit, problem=fit.problem.with_constraints(rules_left))
    known = {"_linearization": around.with_constraints(rules_left), "_noise_model": fit._noise_model}
    vars(free).update(known, _noise=fit._noise)
    return free
