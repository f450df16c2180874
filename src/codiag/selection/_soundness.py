"""Whether the components of a fit are more than noise, and what they leave is not."""

from __future__ import annotations

import math

import numpy as np

from codiag._array import epsilon, to_host
from codiag._factorization import Factorization
from codiag._problem import Problem
from codiag.methods.least_squares._growth import shared_group
from codiag.methods.least_squares._objective import LeastSquares
from codiag.methods.least_squares._residual import excess_over_flips, noise_excess
from codiag.tensors._first_look import is_large
from codiag.theory._diagnosis import CANCELLING, cancelling_pairs, congruences, largest_noise_term, whole_norm


def flaw_of(fit: Factorization) -> str:
    """Return what is wrong with the components of a fit, in a few words, or nothing."""
    if is_degenerate(fit):
        return "components cancel"
    if not math.isfinite(fit.noise):
        return "no entries to spare"
    if math.isinf(float(np.max(fit.sensitivity.factors))):
        return "not determined"
    # What is worth NaN was not computed, and is not held against the rank.
    if np.any(fit.sensitivity.worth <= largest_noise_term(fit) ** 2):
        return "fits noise"
    return ""


def is_degenerate(fit: Factorization) -> bool:
    """Tell whether some components of a fit cancel each other."""
    weights = np.abs(to_host(fit.weights).astype(np.float64))
    return bool(weights.max() > CANCELLING * whole_norm(fit) or cancelling_pairs(weights, congruences(fit)))


def is_sound(fit: Factorization) -> bool:
    """Tell whether nothing is wrong with the components of a fit."""
    return not flaw_of(fit)


def residual_excess(fit: Factorization, problem: Problem) -> float:
    """Return how far a residual stands out of noise, also where `Factorization` leaves that out; NaN if not known."""
    if fit.residual_excess is not None:
        return fit.residual_excess
    scarce = 2 * problem.n_parameters > problem.n_entries
    if scarce or not problem.asks or is_large(problem.tensor.shape):
        return math.nan
    if fit.relative_error < 1e3 * epsilon(problem.tensor.reference):
        return 0.0
    objective = LeastSquares(problem)
    if problem.entries is None and not problem.shared:
        return noise_excess(objective.residual(fit.tensor))
    return excess_over_flips(objective.left_over(fit.tensor), shared_group(problem))
