"""How large the terms of noise are, and which components, or terms of a residual, are no more than that."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from codiag._arrays import adjoint, double, is_complex, squared_magnitudes, to_host
from codiag.least_squares import (
    BRIEF,
    CONCENTRATION,
    TINY,
    LeastSquares,
    distinct_terms,
    largest_term_of_unit_noise,
    minimize,
)
from codiag.problem import groups_of, interior
from codiag.search import DOUBTFUL
from codiag.tensors import DenseTensor

if TYPE_CHECKING:
    from codiag.result import Factorization

ROUNDING = 1e-12
"""Rounding errors in the energy that a component explains, as noise relative to the norm of the tensor."""


MOSTLY = 0.5
"""Share of the energy of a component in one entry, from which it may be the error of that entry."""

REPLICATES = 0.85
"""Cosine from which two factors count as similar: Lorenzo-Seva and ten Berge, Methodology 2, 2006."""

LEAST_ROWS = 8
"""Rows of a mode whose halves are compared, if there is one with as many."""

N_DRAWS = 4
"""Draws of correlated noise that show how alike halves of it are."""


def replication_of(fit: Factorization) -> float:
    """Return how alike the strongest terms of the residual are in two halves of the data.

    The halves are samples of a mode along which noise is not correlated, if there is one. Correlated noise is alike by
    chance, which draws of it show and which does not count. NaN if the residual passes for white noise, or was not
    examined.
    """
    problem = fit._data
    if problem is None or problem.tensor.shape != fit.shape or not (fit._residual_excess or 0.0) > 1:
        return math.nan
    residual = double(to_host(LeastSquares(problem).residual(fit.tensor).to_dense()))
    is_correlated = [lags.size > 0 for lags in _correlations(fit)]
    mode = min(range(residual.ndim), key=lambda mode: (residual.shape[mode] < LEAST_ROWS, is_correlated[mode], mode))
    n_rows = residual.shape[mode]
    if n_rows < 2:
        return math.nan
    order = np.arange(n_rows) if is_correlated[mode] else np.random.default_rng(0).permutation(n_rows)
    rows = np.array_split(order, 2)
    found, scatter = _likeness(residual, mode, rows), fit._scatter
    if scatter is None or not scatter.is_correlated or not scatter.explains_residual or not found >= REPLICATES:
        return found
    model, rng = to_host(fit.tensor.to_dense()), np.random.default_rng(0)
    drawn = [_likeness(scatter.draw(model, rng) * (residual != 0), mode, rows) for _ in range(N_DRAWS)]
    chance = min(float(np.nanmean(drawn)), REPLICATES)
    return (found - chance) / (1 - chance)


def _likeness(residual: np.ndarray, mode: int, rows: Sequence[np.ndarray]) -> float:
    """Return how much of the strongest term of each half is in the two strongest directions of the other: a cosine."""
    tensors = [DenseTensor.of(np.take(residual, half, axis=mode), symmetric=False) for half in rows]
    if not all(tensor.squared_norm() > 0 for tensor in tensors):
        return math.nan
    others = [other for other in range(residual.ndim) if other != mode]
    cosines = []
    for one, two in (tensors, tensors[::-1]):
        term = distinct_terms(one, 1)[0]  # of several that are as strong, a mixture
        for other in others:
            span = two.leading_eigenpairs(other, min(2, two.shape[other]))[1]
            cosines.append(float(np.linalg.norm(adjoint(span) @ term.factors[other])))
    return math.prod(cosines) ** (1 / len(cosines))


def _correlations(fit: Factorization) -> tuple[np.ndarray, ...]:
    return (np.zeros(0),) * len(fit.shape) if fit._scatter is None else fit._scatter.correlations


def largest_noise_term(fit: Factorization) -> float:
    """Return the weight that the largest rank-one term of the noise of a fit exceeds in one of a thousand cases.

    NaN where the noise is not known.
    """
    noise = max(fit.noise, ROUNDING * fit.norm) if math.isfinite(fit.noise) else math.nan
    groups = groups_of(bool(fit.symmetric), len(fit.shape)) if fit._restricted is None else fit._restricted.groups
    return noise * max(largest_white_term(fit, groups), largest_term_of_coloured_noise(fit))


def largest_white_term(fit: Factorization, groups: Sequence[tuple[int, ...]]) -> float:
    """Return the same for white noise whose entries have unit mean squared magnitude, real or complex."""
    n_numbers = 2 if is_complex(fit.factors[0]) else 1
    return largest_term_of_unit_noise(fit.shape, groups, n_numbers) / math.sqrt(n_numbers)


def largest_term_of_coloured_noise(fit: Factorization) -> float:
    r"""Return the same for the noise that the residual shows, of unit variance in the mean; zero if that is white.

    It is zero, too, if the residual is more than noise of that kind, or contains a component that was missed.

    If :math:`C_m` are the covariances of the modes and :math:`\lambda_m` their largest eigenvalues, the mean is at most
    :math:`\sum_m (\mathrm{tr}\, C_m \prod_{n \ne m} \lambda_n)^{1/2}` (Chevet), and the deviation at most
    :math:`(\prod_m \lambda_m)^{1/2}`.
    """
    scatter = fit._scatter
    if scatter is None or scatter.is_white or not scatter.explains_residual or fit._residual_replication >= REPLICATES:
        return 0.0
    covariances = scatter.covariances(to_host(fit.tensor.to_dense()))
    largest = np.array([np.linalg.eigvalsh(covariance)[-1] for covariance in covariances])
    traces = np.array([np.trace(covariance) for covariance in covariances])
    return float((np.sum(np.sqrt(traces / largest)) + CONCENTRATION) * np.sqrt(np.prod(largest)))


def superfluous_of(fit: Factorization) -> tuple[int, ...]:
    """Return the components that are worth no more than the largest rank-one term of noise would be.

    Under a loss, entries have variances that differ by orders of magnitude, and none of them is typical. There the
    square of a weight over its standard error, which is a lower bound of the worth in variances, is compared, too, and
    at last the deviance of the fit without the component.
    """
    if fit.rank == 1 or not math.isfinite(fit.noise):
        return ()
    is_superfluous = fit._sensitivity.worth <= largest_noise_term(fit) ** 2
    if fit._goodness is not None:
        groups = groups_of(bool(fit.symmetric), len(fit.shape)) if fit._restricted is None else fit._restricted.groups
        ratios = np.abs(to_host(fit.weights)) / np.maximum(fit.weight_standard_errors, TINY)
        is_superfluous &= ~(ratios > largest_white_term(fit, groups))
        limit = fit.dispersion * largest_white_term(fit, groups) ** 2
        return tuple(int(i) for i in np.flatnonzero(is_superfluous) if not deviance_without(fit, int(i)) > limit)
    return tuple(int(i) for i in np.flatnonzero(is_superfluous))


def deviance_without(fit: Factorization, i: int) -> float:
    """Return by how much the deviance of a fit under a loss grows without a component, the others being refitted.

    Far from the fit, as where a model of counts vanishes, a deviance is not nearly quadratic, and what it is worth by
    its curvature at the fit says little. NaN if the tensor was not kept.
    """
    if fit.problem is None or fit._goodness is None or fit.problem.tensor.shape != fit.shape:
        return math.nan
    problem = fit.problem.with_rank(fit.rank - 1).in_double_precision()
    others = fit.tensor.columns([other for other in range(fit.rank) if other != i])
    ended = minimize(problem, interior(others, problem.constraints), BRIEF)
    return 2 * ended.objective - fit._goodness.total


def outliers_of(fit: Factorization) -> dict[int, tuple[int, ...]]:
    """Return the components that are the error of one entry, with the index of that entry.

    Such a component has most of its energy there, or no more than noise elsewhere, and is no larger than errors of
    other entries are.
    """
    if fit._data is None or fit.rank == 1 or fit._data.tensor.shape != fit.shape or not fit.noise > 0:
        return {}
    factors, weights = [to_host(factor) for factor in fit.tensor.factors], np.abs(to_host(fit.weights))
    shares = np.prod([np.max(squared_magnitudes(factor), axis=0) for factor in factors], axis=0)
    noise_term = fit.noise * largest_white_term(fit, fit._data.groups)
    is_single = (shares > MOSTLY) | (np.sqrt(np.maximum(1 - shares, 0.0)) * weights < noise_term)
    if not is_single.any():
        return {}
    largest = float(np.max(np.abs(to_host(LeastSquares(fit._data).residual(fit.tensor).to_dense()))))
    entries = np.sqrt(shares) * weights
    found = np.flatnonzero(is_single & (entries < DOUBTFUL * largest) & (entries > DOUBTFUL * fit.noise))
    return {int(i): tuple(int(np.argmax(np.abs(factor[:, i]))) for factor in factors) for i in found}
