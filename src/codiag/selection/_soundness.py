"""What white noise would leave in a residual of which the fit has taken most degrees of freedom, by simulation.

Whether the components of a fit are more than noise, and what they leave is not.
"""

from __future__ import annotations

import math

import numpy as np

from codiag._arrays import double, to_host
from codiag.least_squares import CANCELLING, N_FLIPS, NORMAL_QUANTILE, LeastSquares
from codiag.problem import Problem
from codiag.result import Factorization, cancelling_pairs, congruences, whole_norm
from codiag.tensors import DenseTensor, FactoredTensor, is_large, symmetrize
from codiag.theory import Unknowns, largest_noise_term

MOST_NUMBERS = 2**22
"""Of the derivative of the model by its unknowns, entries times unknowns, up to which it is formed: a second."""


def excess_over_draws(components: FactoredTensor, problem: Problem) -> float:
    r"""Return how many times the strongest direction of a residual exceeds what white noise would leave in any.

    To first order a fit takes of noise its part in the range of the derivative J of the model, and leaves the rest:
    noise is drawn, projected, and its largest squared singular value, relative to its energy, held against that of the
    residual: the mean over draws plus 3.1 standard deviations, which one of a thousand exceeds. This holds however few
    degrees of freedom are left. Unknowns that constraints do not leave free take nothing. NaN where J is too large.
    """
    known = components.changed(lambda factor, _: double(factor), double(components.weights))
    n_unknowns = known.rank * sum(known.shape)
    if n_unknowns * math.prod(known.shape) > MOST_NUMBERS:
        return math.nan
    roots = problem.observed_mask().astype(np.float64)
    if problem.observed is not None:
        roots = np.sqrt(to_host(problem.observed).astype(np.float64) * roots)
    range_of, rng = _range(known, problem, roots), np.random.default_rng(0)
    drawn = []
    for _ in range(N_FLIPS):
        noise = rng.standard_normal(known.shape)
        noise = (symmetrize(noise) if problem.symmetric is True else noise) * (roots > 0)
        left = noise.ravel() - range_of @ (range_of.T @ noise.ravel())
        drawn.append(_share(roots * left.reshape(known.shape)))
    residual = to_host(LeastSquares(problem).residual(components).to_dense())
    bound = float(np.mean(drawn) + NORMAL_QUANTILE * np.std(drawn, ddof=1))
    return _share(residual) / bound if bound > 0 else 0.0


def _share(residual: np.ndarray) -> float:
    """Return the square of the largest singular value of an unfolding, relative to the energy."""
    energy, mode = float(np.sum(residual**2)), int(np.argmax(residual.shape))
    return (
        float(DenseTensor.of(residual, symmetric=False).leading_eigenpairs(mode, 1)[0][0]) / energy
        if energy > 0
        else 0.0
    )


def _range(components: FactoredTensor, problem: Problem, roots: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis, (n, p), of how entries times roots of their weights move with the free unknowns."""
    unknowns = Unknowns.of(LeastSquares(problem, components), components)
    factors = [to_host(factor) for factor in components.factors]
    factors[0] = factors[0] * to_host(components.weights)
    order, columns = components.order, []
    for mode, places in enumerate(unknowns.places):
        parts = [factor[(None,) * other + (slice(None),) + (None,) * (order - 1 - other)]
                 for other, factor in enumerate(factors) if other != mode]  # fmt: skip
        rest = math.prod(parts[1:], start=parts[0])  # the mode itself has length one
        unit = np.eye(places.shape[0]).reshape((1,) * mode + (-1,) + (1,) * (order - 1 - mode) + (places.shape[0], 1))
        moves = (roots[..., None, None] * unit * rest[..., None, :]).reshape(roots.size, -1)
        columns.append(moves[:, unknowns.free.ravel()[places].ravel()])
    jacobian = np.concatenate(columns, axis=1)
    left, values, _ = np.linalg.svd(
        jacobian / np.maximum(np.linalg.norm(jacobian, axis=0), 1e-300), full_matrices=False
    )
    return left[:, values > 1e-10 * np.max(values, initial=0.0)]


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
    """Return how far a residual stands out of noise, also if few degrees of freedom remain; NaN if not computed."""
    if fit.residual_excess is not None:
        return fit.residual_excess
    return math.nan if is_large(problem.tensor.shape) else excess_over_draws(fit.tensor, problem)
