"""What white noise would leave in a residual of which the fit has taken most degrees of freedom, by simulation."""

from __future__ import annotations

import math

import numpy as np

from codiag._array import double, to_host
from codiag._problem import Problem
from codiag.methods.least_squares._objective import LeastSquares
from codiag.methods.least_squares._residual import FLIPS, NORMAL_QUANTILE, largest_square
from codiag.metrics._core_consistency import known_entries
from codiag.tensors import DenseTensor, FactoredTensor, symmetrize
from codiag.theory._restricted_sensitivity import Unknowns

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
    roots = known_entries(problem).astype(np.float64)
    if problem.observed is not None:
        roots = np.sqrt(to_host(problem.observed).astype(np.float64) * roots)
    range_of, rng = _range(known, problem, roots), np.random.default_rng(0)
    drawn = []
    for _ in range(FLIPS):
        noise = rng.standard_normal(known.shape)
        noise = (symmetrize(noise) if problem.symmetric is True else noise) * (roots > 0)
        left = noise.ravel() - range_of @ (range_of.T @ noise.ravel())
        drawn.append(_share(roots * left.reshape(known.shape)))
    residual = to_host(LeastSquares(problem).left_over(components).to_dense())
    bound = float(np.mean(drawn) + NORMAL_QUANTILE * np.std(drawn, ddof=1))
    return _share(residual) / bound if bound > 0 else 0.0


def _share(residual: np.ndarray) -> float:
    """Return the square of the largest singular value of an unfolding, relative to the energy."""
    energy = float(np.sum(residual**2))
    return largest_square(DenseTensor.of(residual, symmetric=False)) / energy if energy > 0 else 0.0


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
