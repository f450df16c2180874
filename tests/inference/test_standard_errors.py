"""Standard errors and intervals under noise of every kind."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

import codiag
from assertions import assert_same_to_rounding
from benchmarks.noise_kinds import NOISES, spectra
from codiag.inference import (
    ModeCovariance,
    NoiseModel,
    RangeLinearization,
    gain_covariances,
    simulated_errors,
)

pytestmark = pytest.mark.filterwarnings("ignore::codiag.ConvergenceWarning")


SHAPE = (8, 10, 9)


def jacobian(factors):
    """Return the derivative of all entries by all unknowns of the modes, row by row."""
    columns = []
    for mode, factor in enumerate(factors):
        for row in range(factor.shape[0]):
            for component in range(factor.shape[1]):
                parts = [other[:, component] for other in factors]
                parts[mode] = np.eye(factor.shape[0])[row]
                columns.append(np.einsum("i,j,k->ijk", *parts).ravel())
    return np.stack(columns, axis=1)


def fitted(kind="white", seed=0, **stated):
    return codiag.factorize(spectra(kind, shape=SHAPE, seed=seed)[2], 2, rng=0, **stated)


def covariances():
    """Return the covariance of noise in each mode, as matrices and as they are given."""
    rng = np.random.default_rng(1)
    fibres, deviations = rng.standard_normal((10, 30)), np.linspace(1, 2, 10)
    known = [
        ModeCovariance(np.linspace(1, 2, 8) ** 2),
        ModeCovariance.of_fibres(fibres, deviations),
        ModeCovariance(np.ones(9)),
    ]
    return [own.product(np.eye(own.diagonal.size)) for own in known], known


def sandwich(factors, covariance, observed=None):
    """Return the errors of unit columns and of weights, relative, by matrices of all unknowns and entries."""
    derivative, rank = jacobian(factors), factors[0].shape[1]
    seen = slice(None) if observed is None else observed.ravel()
    derivative, covariance = derivative[seen], covariance[seen][:, seen]
    inverse = np.linalg.pinv(derivative.T @ derivative, rcond=1e-10)
    middle = derivative.T @ covariance @ derivative
    whole, taken = inverse @ middle @ inverse, np.sum(inverse * middle)
    taken = min(taken, derivative.shape[0] / 2)  # beyond which it is not corrected for
    n_entries, n_parameters = derivative.shape[0], rank * (sum(factor.shape[0] for factor in factors) - 2)
    scale = (n_entries - n_parameters) / (n_entries - taken)
    errors, slopes, start = [], np.zeros((rank, whole.shape[0])), 0
    for factor in factors:
        part = slice(start, start + factor.size)
        block = whole[part, part].reshape(*factor.shape, *factor.shape)
        found = np.empty(factor.shape)
        for r in range(rank):
            length = np.linalg.norm(factor[:, r])
            across = np.eye(factor.shape[0]) - np.outer(factor[:, r], factor[:, r]) / length**2
            found[:, r] = np.sqrt(scale * np.diag(across @ block[:, r, :, r] @ across)) / length
            slopes[r, start + r : start + factor.size : rank] = factor[:, r] / length**2
        errors.append(found)
        start += factor.size
    return errors, np.sqrt(scale * np.einsum("rp,pq,rq->r", slopes, whole, slopes))


@pytest.mark.parametrize("kind", ["variances", "separable", "gain"])
def test_errors_in_ranges_are_those_of_the_whole_sandwich(kind):
    """From small matrices, those of all unknowns and all entries."""
    ranges = RangeLinearization.of(fitted()._components)
    model = np.einsum("ir,jr,kr->ijk", *ranges.factors)
    if kind == "variances":
        variances = np.random.default_rng(0).gamma(2.0, size=SHAPE)
        spread, covariance = ranges.independent(variances), np.diag(variances.ravel())
    elif kind == "separable":
        matrices, known = covariances()
        spread, covariance = ranges.separable(known), np.kron(np.kron(*matrices[:2]), matrices[2])
    else:
        spread = ranges.separable_sum(gain_covariances(ranges.factors, 0))
        draws = np.einsum("ijk,jl,km->ijklm", model, np.eye(10), np.eye(9)).reshape(720, -1)
        covariance = draws @ draws.T
    errors, weights = ranges.errors(spread)
    expected, expected_weights = sandwich(ranges.factors, covariance)
    for one, other in zip(errors, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-3 * np.max(other))
    np.testing.assert_allclose(weights, expected_weights, rtol=1e-3)


@pytest.mark.parametrize("is_solved_directly", [True, False])
@pytest.mark.parametrize("kind", ["variances", "correlated", "gain", "holes"])
def test_drawn_noise_has_the_errors_of_the_sandwich(kind, is_solved_directly, monkeypatch):
    """A thousand draws know each error to 2 %."""
    monkeypatch.setattr("codiag.inference._simulation.N_DRAWS", 1000)
    if not is_solved_directly:
        monkeypatch.setattr("codiag.inference._simulation.MOST_UNKNOWNS", 0)
    observed = np.random.default_rng(0).random(SHAPE) > 0.3 if kind == "holes" else None
    fit = fitted(mask=observed)
    factors = [np.asarray(factor) for factor in fit.factors]
    factors[0] = factors[0] * np.asarray(fit.weights)
    model, (matrices, known) = np.einsum("ir,jr,kr->ijk", *factors), covariances()
    noise_model = NoiseModel(scales=(np.linspace(1, 2, 8), None, np.linspace(2, 1, 9)), shape=SHAPE)
    if kind == "correlated":
        noise_model = NoiseModel(correlated=(1,), shape=SHAPE)
        covariance = np.kron(np.kron(*matrices[:2]), matrices[2])
    elif kind == "gain":
        noise_model = NoiseModel(gain=1, shape=SHAPE)
        fibres = np.einsum("ijk,il,km->ijklm", model, np.eye(8), np.eye(9)).reshape(720, -1)
        covariance = fibres @ fibres.T / np.mean(model**2)
    else:
        variances = noise_model.relative_deviations(model) ** 2
        seen = np.ones(SHAPE, dtype=bool) if observed is None else observed
        covariance = np.diag(variances.ravel() / np.mean(variances[seen]))
    found, found_weights = simulated_errors(fit, fit._data, noise_model, known)
    expected, expected_weights = sandwich(factors, covariance, observed)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(np.mean(one / other), 1, atol=0.05)
    np.testing.assert_allclose(found_weights, expected_weights, rtol=0.1)


def test_white_noise_has_the_errors_of_first_order_theory():
    fit = fitted()
    assert str(fit.noise_model).startswith("white")
    np.testing.assert_allclose(
        fit.standard_errors, fit.noise_model.standard_deviation * fit._sensitivity.factors, rtol=1e-12
    )


def coverage(kind, n_draws, **stated):
    """Return the share of entries, and of weights, in their intervals of 90 %."""
    held, weighed = [], []
    for seed in range(n_draws):
        factors, weights, tensor = spectra(kind, seed=100 + seed)
        if stated.get("weights") == "most":
            observed = np.random.default_rng(seed).random(tensor.shape) > 0.2
            fit = codiag.factorize(tensor, 2, weights=observed, rng=0)
        else:
            fit = codiag.factorize(tensor, 2, rng=0, **stated)
        likeness = np.prod([np.abs(one.T @ two) for one, two in zip(fit.factors, factors, strict=True)], axis=0)
        order = linear_sum_assignment(-likeness)[1]
        found = fit.conf_int(0.9)
        for factor, truth, (low, high) in zip(fit.factors, factors, found.factors, strict=True):
            true = truth[:, order] * np.sign(np.sum(factor * truth[:, order], axis=0))
            held.append(np.mean((low <= true) & (true <= high)))
        weighed.append(np.mean((found.weights[0] <= weights[order]) & (weights[order] <= found.weights[1])))
    return float(np.mean(held)), float(np.mean(weighed))


@pytest.mark.slow
@pytest.mark.parametrize("stated", [{}, {"weights": "most"}, {"constraints": "nonnegative"}], ids=str)
@pytest.mark.parametrize("kind", NOISES)
def test_intervals_of_90_percent_hold_the_truth_in_about_90(kind, stated):
    entries, weights = coverage(kind, 10, **stated)
    assert 0.83 < entries < 0.97
    assert weights > 0.6  # of twenty


def test_white_errors_would_be_too_small():
    """The noise of the test above is such that ignoring its kind matters."""
    held = []
    for seed in range(6):
        fit = codiag.factorize(spectra("smooth along one mode", seed=seed)[2], 2, rng=0)
        ratio = fit.entry_standard_errors[0] / (fit.noise_model.standard_deviation * fit._sensitivity.entries[0])
        held.append(float(np.median(ratio)))
    assert min(held) > 1.4


def test_weights_are_freed_of_their_bias():
    """Noise as large as the signal makes fitted weights larger than the true ones, and intervals allow for that."""
    held = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        factors = [rng.standard_normal((size, 2)) for size in (12, 15, 18)]
        clean = np.einsum("ir,jr,kr->ijk", *factors)
        noise = rng.standard_normal(clean.shape)
        fit = codiag.factorize(clean + 1.5 * noise * np.linalg.norm(clean) / np.linalg.norm(noise), 2, rng=0)
        matching = codiag.match_components(fit, factors)
        low, high = fit.conf_int(0.9).weights
        truth = np.prod([np.linalg.norm(factor, axis=0) for factor in factors], axis=0)
        order = matching.permutation
        held.append((low[order] <= truth) & (truth <= high[order]))
        assert np.all(fit.weights[order] > (low[order] + high[order]) / 2)
    assert np.mean(held) > 0.8


def test_intervals_of_counts_that_are_zero_end_where_a_count_might_come_from():
    """A row without counts may have three in expectation, 95 % of the time; first-order errors would be near zero."""
    rng = np.random.default_rng(0)
    factors = [rng.gamma(2.0, size=(size, 1)) for size in (10, 12, 14)]
    counts = rng.poisson(np.einsum("ir,jr,kr->ijk", *factors)).astype(float)
    counts[3] = 0
    fit = codiag.factorize(counts, 1, loss="poisson", rng=0)
    high = fit.conf_int(0.9).factors[0][1][3, 0]
    expected = high * fit.weights[0] * fit.factors[1].sum() * fit.factors[2].sum()  # counts in the row
    assert 2.2 < expected < 3.2


def test_intervals_of_zeros_end_where_they_could_be_without_bounds():
    _, _, tensor = spectra("white")
    fit = codiag.factorize(tensor, 2, constraints="nonnegative", rng=0)
    low, high = fit.conf_int().factors[1]
    at_bound = fit.factors[1] == 0
    assert at_bound.any()
    assert np.all(low >= 0)
    assert np.all(high[at_bound] > 0)


@pytest.mark.parametrize("kind", ["proportional", "smooth along two"])
@pytest.mark.parametrize("constraints", [None, "nonnegative"])
def test_files_and_pickles_keep_the_errors(kind, constraints, tmp_path):
    _, _, tensor = spectra(kind)
    fit = codiag.factorize(tensor, 2, constraints=constraints, rng=0)
    fit.save(tmp_path / "fit.npz")
    for again in (codiag.Factorization.load(tmp_path / "fit.npz"), pickle.loads(pickle.dumps(fit)), fit.drop_data()):
        assert str(again.noise_model) == str(fit.noise_model)
        assert_same_to_rounding(again.standard_errors, fit.standard_errors)
        assert_same_to_rounding(again.weight_standard_errors, fit.weight_standard_errors)
    bare = fit.drop_data()
    assert not bare.problem.has_data
    bare.save(tmp_path / "bare.npz")
    assert (tmp_path / "bare.npz").stat().st_size < (tmp_path / "fit.npz").stat().st_size
    without = codiag.Factorization.load(tmp_path / "bare.npz")
    assert str(without.diagnose()).splitlines()[0] == str(fit.diagnose()).splitlines()[0]
    assert_same_to_rounding(without.standard_errors, fit.standard_errors)


def test_unexamined_noise_is_called_so():
    fit = codiag.Factorization(np.ones(1), (np.ones((2, 1)),) * 3, 0.1, True, _norm=1.0)
    assert str(fit.noise_model) == "taken to be white: the residual was not examined"


def test_levels_are_shares():
    with pytest.raises(ValueError, match="^level must"):
        fitted().conf_int(90)
