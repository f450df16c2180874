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
from codiag.selection._draws import excess_over_draws
from codiag.tensors._first_look import is_large
from codiag.theory._diagnosis import CANCELLING, cancelling_pairs, congruences, largest_noise_term, whole_norm


def flaw_of(fit: Factorization, below: Factorization | None = None) -> str:
    """Return what is wrong with the components of a fit, in a few words, or nothing.

    What the least of them is worth, all others having moved to make up for it, is known to first order from the fit
    alone, and exactly from one of a lower rank, where that is given: it leaves so much more.
    """
    if is_degenerate(fit):
        return "components cancel"
    if not math.isfinite(fit.noise):
        return "no entries to spare"
    if not _is_determined(fit):
        return "not determined"
    least, worth = largest_noise_term(fit) ** 2, fit.sensitivity.worth
    # What is worth NaN was not computed, and is not held against the rank.
    if np.any(worth <= least) or (below is not None and _mean_gain(fit, below) <= least):
        return "fits noise"
    return ""


def _is_determined(fit: Factorization) -> bool:
    """Tell whether the data determines all components, but for rows of which too little was observed."""
    for errors, rows in zip(fit.sensitivity.entries, fit.sensitivity.undetermined, strict=True):
        others = np.delete(errors, rows, axis=0)
        if others.size == 0 or np.any(np.isinf(others)):
            return False
    return True


def _mean_gain(fit: Factorization, below: Factorization) -> float:
    """Return by how much each further component lowers the squared distance."""
    squares = [(one.relative_error * one.norm) ** 2 for one in (fit, below)]
    return (squares[1] - squares[0]) / (fit.rank - below.rank)


def is_degenerate(fit: Factorization) -> bool:
    """Tell whether some components of a fit cancel each other."""
    weights = np.abs(to_host(fit.weights).astype(np.float64))
    return bool(weights.max() > CANCELLING * whole_norm(fit) or cancelling_pairs(weights, congruences(fit)))


def is_sound(fit: Factorization, below: Factorization | None = None) -> bool:
    """Tell whether nothing is wrong with the components of a fit."""
    return not flaw_of(fit, below)


def residual_excess(fit: Factorization, problem: Problem) -> float:
    """Return how far a residual stands out of noise, also where `Factorization` leaves that out; NaN if not known."""
    if fit.residual_excess is not None:
        return fit.residual_excess
    if is_large(problem.tensor.shape):
        return math.nan
    if fit.relative_error < 1e3 * epsilon(problem.tensor.reference):
        return 0.0
    if not problem.asks or 2 * problem.n_parameters > problem.n_entries:
        return excess_over_draws(fit.tensor, problem)
    objective = LeastSquares(problem)
    if problem.entries is None and not problem.shared:
        return noise_excess(objective.residual(fit.tensor))
    return excess_over_flips(objective.left_over(fit.tensor), shared_group(problem))
