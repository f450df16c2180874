r"""Standard errors under the noise that a residual shows.

To first order least squares moves the unknowns by :math:`(J^\top J)^+ J^\top e`, whose covariance is the sandwich
:math:`(J^\top J)^+ J^\top \Sigma J (J^\top J)^+`. Free components of a complete tensor are treated in the ranges of the
factors (`RangeLinearization`), those with constraints or missing entries by draws of the noise (`simulated_errors`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from codiag._arrays import to_double, to_host
from codiag.inference._noise_model import NoiseModel, estimate_noise_model, root_mean_square, weights_of
from codiag.inference._sandwich import Errors, ModeCovariance, RangeLinearization
from codiag.inference._separation import separations, undetermined_pairs
from codiag.inference._simulation import simulated_errors
from codiag.inference._whitened import whitened_errors
from codiag.least_squares import hadamard_gram
from codiag.problem import Problem
from codiag.result import given_covariances

if TYPE_CHECKING:
    from codiag.result import Factorization

LITTLE = 0.003
"""Share of parameters in entries up to which a fit takes away too little of the noise to correct for."""

IN_RANGE = 0.5
"""Share of the residual that is a multiple of the fit in each fibre, from which noise is a gain that fibres share."""


@dataclass(frozen=True, eq=False)
class UnitErrors:
    """Standard errors relative to `Factorization.noise`.

    Attributes
    ----------
    entries : tuple of arrays of shape (d_m, rank)
        Of the entries of unit factors.
    weights : array of shape (rank,)
    separations : array of shape (n_modes, rank, rank)
        Distances of the columns of two components in standard errors.
    """

    entries: tuple[np.ndarray, ...]
    weights: np.ndarray
    separations: np.ndarray


def residual_of(fit: Factorization, problem: Problem) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Return the residual times the roots of the weights, the fit, and the weights; zeros for missing entries."""
    model = to_double(to_host(fit._components.to_dense()))
    residual, weights = to_double(to_host(problem.tensor.to_dense())) - model, weights_of(problem)
    return residual if weights is None else residual * np.sqrt(weights), model, weights


def noise_model_of(fit: Factorization) -> NoiseModel | None:
    """Return the noise model of a fit, from its residual; None if the tensor is not at hand."""
    problem = fit._data
    if problem is None or problem.tensor.shape != fit.shape or 2 * problem.n_parameters > problem.n_independent:
        return None
    if problem.numbers_per_entry > 1:
        return None  # complex noise is not examined: it is taken to be circular and white
    is_known = fit._deviance is not None and fit._deviance.has_right_variance
    if is_known or fit._is_exact:
        return NoiseModel.white(fit.shape)
    residual, model, weights = residual_of(fit, problem)
    residual = residual / 2.0 ** np.frexp(np.max(np.abs(residual)))[1]  # so that fourth powers are numbers
    if problem.n_parameters > LITTLE * problem.n_independent:  # as large as if the fit did not follow entries
        residual = residual / np.sqrt(1 - _leverages(fit, problem, weights))
    labels, mask = problem.labels, None if weights is None else weights > 0
    ordered = None if labels is None else labels.are_ordered
    n_copies = problem.n_observed / problem.n_independent
    found = estimate_noise_model(residual, model, mask, n_copies, ordered)
    return found if n_copies > 1 else replace(found, gain=shared_gain(residual, model))


def _leverages(fit: Factorization, problem: Problem, weights: np.ndarray | None) -> np.ndarray:
    r"""Return how far the fit follows the noise of each entry, to the blocks of single modes of the hat matrix.

    With the row z of the columnwise Kronecker product of all factors but one, they are the sum over modes of
    :math:`z^\top \Gamma_m^{-1} z`, scaled to the number of parameters.
    """
    factors = [np.asarray(to_host(factor), dtype=np.float64) for factor in fit._components.factors]
    order, found = len(factors), np.zeros(fit.shape)
    for mode in range(order):
        values, vectors = np.linalg.eigh(hadamard_gram(factors, [mode]))
        kept = values > 1e-9 * values[-1]
        turned = vectors[:, kept] / np.sqrt(values[kept])
        operands: list[Any] = [turned, [order, order + 1]]
        others = [other for other in range(order) if other != mode]
        for other in others:
            operands += [factors[other], [other, order]]
        rows = np.einsum(*operands, [*others, order + 1], optimize=True)
        found += np.expand_dims(np.sum(rows**2, axis=-1), mode)
    found = found if weights is None else found * weights
    return np.clip(found * (problem.n_parameters / max(float(np.sum(found)), 1e-300)), 0.0, 0.9)


def shared_gain(residual: np.ndarray, model: np.ndarray) -> int | None:
    """Return the mode in whose fibres the residual is mostly a multiple of the fit; None without such a mode."""
    total, model = float(np.sum(residual**2)), model / max(float(np.max(np.abs(model))), 1e-300)
    for mode, size in enumerate(model.shape):
        products, squares = np.sum(residual * model, axis=mode), np.sum(model**2, axis=mode)
        explained = float(np.sum(products**2 / np.where(squares > 0, squares, np.inf)))
        if explained > max(IN_RANGE, 2 / size) * total:
            return mode
    return None


def described_noise_model(fit: Factorization) -> NoiseModel:
    """Return the noise model of a fit, white if the residual was not examined, with its scale and a description."""
    known = fit._noise_model or NoiseModel.white(fit.shape)
    return replace(known, standard_deviation=fit._noise, description=noise_in_words(fit))


def noise_in_words(fit: Factorization) -> str:
    """Say for which noise the errors of a fit are valid."""
    if given_covariances(fit) is not None:
        return "that of the covariances that were given"
    names = fit._labels.names
    if fit._deviance is not None and fit._deviance.has_right_variance:
        return f"that of {fit.problem.loss!r}"
    if fit._deviance is not None:
        found = fit._noise_model
        more = "" if found is None or found.is_white else f"; beyond that {found.in_words(names)}"
        return f"{fit.deviance.dispersion:.2g} times the variance of {fit.problem.loss!r}{more}"
    if fit._noise_model is None:
        return "taken to be white: the residual was not examined"
    return fit._noise_model.in_words(names)


def noise_errors(fit: Factorization) -> UnitErrors:
    """Return standard errors for noise of unit variance with the variances and correlations of the residual.

    Noise is taken to be white if the residual was not examined, or is white. Covariances that were given are taken as
    they are. Components that the data does not separate have infinite errors (`undetermined_pairs`).
    """
    entries, weights = whitened_errors(fit) or _sandwich_errors(fit)
    observed = [~np.isnan(to_host(factor)) for factor in fit.factors]
    entries, weights = [np.where(*pair, np.nan) for pair in zip(observed, entries, strict=True)], weights.copy()
    factors = [np.nan_to_num(to_double(to_host(factor))) for factor in fit._components.factors]
    apart, sizes = separations(fit, factors), np.abs(to_double(to_host(fit.weights)))
    for pair, modes in undetermined_pairs(fit, factors, apart):
        for r, s in (pair, pair[::-1]):
            # A part of the other component, up to its weight, may have joined this one.
            ratio = float(sizes[s] / sizes[r]) if sizes[s] < 0.3 * sizes[r] and fit._noise > 0 else math.inf
            weights[r] = math.hypot(weights[r], ratio * sizes[s] / fit._noise) if ratio < math.inf else math.inf
            for mode in modes:
                mixed = ratio * np.abs(factors[mode][:, s]) / fit._noise if ratio < math.inf else math.inf
                entries[mode][:, r] = np.hypot(entries[mode][:, r], mixed)
    return UnitErrors(tuple(entries), weights, apart)


def _sandwich_errors(fit: Factorization) -> Errors:
    """Return the errors for the noise that the residual shows."""
    known, noise_model = fit._sensitivity, fit._noise_model
    white = list(known.entries), known.weights
    is_white = noise_model is None or noise_model.is_white
    is_known = not any(np.all(np.isnan(errors)) for errors in known.entries)
    problem = fit._data
    if problem is None or (is_white and is_known):
        return white
    noise_model = noise_model or NoiseModel.white(fit.shape)
    ranges = RangeLinearization.of(fit._components) if fit._restricted is None else None
    if ranges is not None:
        entries, relative = _errors_in_ranges(ranges, fit, problem, noise_model)
    else:
        model = np.asarray(to_host(fit._components.to_dense()), dtype=np.float64)
        covariances = _mode_covariances(fit, problem, noise_model, model)
        entries, relative = simulated_errors(fit, problem, noise_model, covariances)
    weights = np.abs(to_host(fit.weights)) * relative
    kept = [np.where(np.isinf(old), old, new) for old, new in zip(known.entries, entries, strict=True)]
    return kept, np.where(np.isinf(known.weights), known.weights, weights)


def _errors_in_ranges(
    ranges: RangeLinearization, fit: Factorization, problem: Problem, noise_model: NoiseModel
) -> Errors:
    model = np.asarray(to_host(fit._components.to_dense()), dtype=np.float64)
    if noise_model.is_independent:
        variances = noise_model.relative_deviations(model) ** 2
        return ranges.errors(ranges.independent(variances / np.mean(variances)))
    if noise_model.gain is not None:
        size = root_mean_square(model) ** (1 / ranges.order)
        unit = [factor / size for factor in ranges.factors]
        return ranges.errors(ranges.separable_sum(gain_covariances(unit, noise_model.gain)))
    return ranges.errors(ranges.separable(_mode_covariances(fit, problem, noise_model, model)))


def gain_covariances(factors: list[np.ndarray], gain: int) -> list[list[ModeCovariance]]:
    r"""Return the terms of the covariance of :math:`\mu_{ijk} z_{jk}`: a Kronecker product for each two components."""
    rank = factors[0].shape[1]
    return [
        [
            ModeCovariance(0 * factor[:, r], factor[:, [r]], factor[:, [s]])
            if mode == gain
            else ModeCovariance(factor[:, r] * factor[:, s])
            for mode, factor in enumerate(factors)
        ]
        for r in range(rank)
        for s in range(rank)
    ]


def _mode_covariances(
    fit: Factorization, problem: Problem, noise_model: NoiseModel, model: np.ndarray
) -> list[ModeCovariance]:
    r"""Return a covariance for each mode, from the fibres of the residual along modes with correlations.

    A fit takes :math:`p - (d_m - q_m) k` of the :math:`q_m n_m` degrees of freedom of noise in the range of a factor,
    and k of the :math:`n_m` in each direction out of it, where :math:`n_m` is the number of fibres.
    """
    residual, _, weights = residual_of(fit, problem)
    scales, covariances = noise_model.product_scales(model), list[ModeCovariance]()
    residual = residual / noise_model.product_deviations(model)
    n_seen = 1.0 if weights is None else np.count_nonzero(weights) / weights.size
    for mode, (scale, factor) in enumerate(zip(scales, fit._components.factors, strict=True)):
        if mode not in noise_model.correlated:
            covariances.append(ModeCovariance(scale**2))
            continue
        fibres = np.moveaxis(residual, mode, 0).reshape(scale.size, -1)
        basis = np.linalg.qr(np.asarray(to_host(factor), dtype=np.float64))[0]
        size, n_fibres = basis.shape[1], n_seen * fibres.shape[1]
        taken = (problem.n_parameters - (scale.size - size) * fit.rank) / (size * n_fibres)
        inside = basis @ (basis.T @ fibres)
        outside = (fibres - inside) / math.sqrt(max(1 - fit.rank / n_fibres, 0.5))
        covariances.append(ModeCovariance.of_fibres(inside / math.sqrt(max(1 - taken, 0.1)) + outside, scale))
    return covariances
