"""Standard errors and intervals under noise of every kind."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

import codiag
from benchmarks.noise_kinds import NOISES, spectra
from codiag.theory import Linearization, Scatter

pytestmark = pytest.mark.filterwarnings("ignore::codiag.ConvergenceWarning")


def jacobian(linear):
    """Return the derivative of all entries by all unknowns of the modes, column by column."""
    factors, columns = linear.factors, []
    for mode, factor in enumerate(factors):
        for row in range(factor.shape[0]):
            for component in range(factor.shape[1]):
                parts = [other[:, component] for other in factors]
                parts[mode] = np.eye(factor.shape[0])[row]
                columns.append(np.einsum("i,j,k->ijk", *parts).ravel())
    return np.stack(columns, axis=1)


def fitted(kind="white", seed=0, **stated):
    tensor = spectra(kind, shape=(8, 10, 9), seed=seed)[2]
    return codiag.factorize(tensor, 2, seed=0, **stated)


@pytest.mark.parametrize("holes", [False, True], ids=["complete", "holes"])
def test_variances_make_the_middle_of_the_sandwich(holes):
    rng = np.random.default_rng(0)
    observed = rng.random((8, 10, 9)) > 0.3 if holes else None
    linear = Linearization.of(fitted(observed=observed))
    scatter = Scatter(
        scales=(np.linspace(1, 2, 8), None, np.linspace(2, 1, 9)), correlations=(np.zeros(0),) * 3, shape=(8, 10, 9)
    )
    weights = np.ones((8, 10, 9)) if observed is None else observed.astype(float)
    variances = scatter.relative_deviations(linear.model) ** 2
    variances = weights * variances * weights.sum() / np.sum(weights * variances)
    derivative = jacobian(linear)
    np.testing.assert_allclose(
        linear.meat(scatter), derivative.T @ (variances.ravel()[:, None] * derivative), rtol=1e-8
    )


def test_correlations_make_the_middle_of_the_sandwich():
    linear = Linearization.of(fitted())
    scatter = Scatter(
        scales=(np.linspace(1, 2, 8), None, None), correlations=(np.zeros(0), np.array([0.4]), np.array([0.7, 0.3]))
    )
    covariances = scatter.covariances(linear.model)
    whole = np.kron(np.kron(covariances[0], covariances[1]), covariances[2])
    derivative = jacobian(linear)
    np.testing.assert_allclose(linear.meat(scatter), derivative.T @ whole @ derivative, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("symmetric", [False, True], ids=["free", "symmetric"])
def test_leverages_are_the_diagonal_of_the_projection(symmetric):
    """They sum to the number of parameters."""
    planted = codiag.synthetic.noisy_tensor((8, 8, 8), 2, noise=0.05, symmetric=symmetric, seed=0)
    fit = codiag.factorize(planted.tensor, 2, seed=0)
    found = Linearization.of(fit).leverages()
    assert found.sum() == pytest.approx(fit._sensitivity.n_parameters, rel=1e-6)
    if not symmetric:
        derivative = jacobian(Linearization.of(fit))
        projection = derivative @ np.linalg.pinv(derivative)
        np.testing.assert_allclose(found.ravel(), np.diag(projection), atol=1e-9)


def test_white_noise_has_the_errors_of_first_order_theory():
    fit = fitted()
    assert fit.noise_model.startswith("white")
    np.testing.assert_allclose(fit.standard_errors, fit.noise * fit._sensitivity.factors, rtol=1e-12)


def coverage(kind, n_draws, **stated):
    """Return the share of entries, and of weights, in their intervals of 90 %."""
    held, weighed = [], []
    for seed in range(n_draws):
        factors, weights, tensor = spectra(kind, seed=100 + seed)
        if stated.get("observed") == "most":
            observed = np.random.default_rng(seed).random(tensor.shape) > 0.2
            fit = codiag.factorize(tensor, 2, observed=observed, seed=0)
        else:
            fit = codiag.factorize(tensor, 2, seed=0, **stated)
        likeness = np.prod([np.abs(one.T @ two) for one, two in zip(fit.factors, factors, strict=True)], axis=0)
        order = linear_sum_assignment(-likeness)[1]
        found = fit.intervals(0.9)
        for factor, truth, (low, high) in zip(fit.factors, factors, found.factors, strict=True):
            true = truth[:, order] * np.sign(np.sum(factor * truth[:, order], axis=0))
            held.append(np.mean((low <= true) & (true <= high)))
        weighed.append(np.mean((found.weights[0] <= weights[order]) & (weights[order] <= found.weights[1])))
    return float(np.mean(held)), float(np.mean(weighed))


@pytest.mark.slow
@pytest.mark.parametrize("stated", [{}, {"observed": "most"}, {"constraints": "nonnegative"}], ids=str)
@pytest.mark.parametrize("kind", NOISES)
def test_intervals_of_90_percent_hold_the_truth_in_about_90(kind, stated):
    entries, weights = coverage(kind, 10, **stated)
    assert 0.83 < entries < 0.97
    assert weights > 0.6  # of twenty


def test_white_errors_would_be_too_small():
    """The noise of the test above is such that ignoring its kind matters."""
    held = []
    for seed in range(6):
        fit = codiag.factorize(spectra("smooth along one mode", seed=seed)[2], 2, seed=0)
        ratio = fit.entry_standard_errors[0] / (fit.noise * fit._sensitivity.entries[0])
        held.append(float(np.median(ratio)))
    assert min(held) > 1.4


def test_correlations_are_those_of_the_noise_and_not_of_what_a_fit_leaves():
    """A fit follows smooth noise, whose residual is less correlated: 0.28 two channels apart, where noise has 0.37."""
    found = []
    for seed in range(6):
        fit = codiag.factorize(spectra("smooth along two", (10, 22, 18), 3, seed=seed)[2], 3, seed=0)
        found += [lags[1] for lags in fit._scatter.correlations[1:]]
    assert np.mean(found) == pytest.approx(np.exp(-1.0), abs=0.04)


def test_intervals_of_zeros_end_where_they_could_be_without_bounds():
    _, _, tensor = spectra("white")
    fit = codiag.factorize(tensor, 2, constraints="nonnegative", seed=0)
    low, high = fit.intervals().factors[1]
    at_bound = fit.factors[1] == 0
    assert at_bound.any()
    assert np.all(low >= 0)
    assert np.all(high[at_bound] > 0)


@pytest.mark.parametrize("kind", ["proportional", "smooth along two"])
@pytest.mark.parametrize("constraints", [None, "nonnegative"])
def test_files_and_pickles_keep_the_errors(kind, constraints, tmp_path):
    _, _, tensor = spectra(kind)
    fit = codiag.factorize(tensor, 2, constraints=constraints, seed=0)
    fit.save(tmp_path / "fit.npz")
    for again in (codiag.Factorization.load(tmp_path / "fit.npz"), pickle.loads(pickle.dumps(fit)), fit.drop_data()):
        assert again.noise_model == fit.noise_model
        np.testing.assert_array_equal(again.standard_errors, fit.standard_errors)
        np.testing.assert_array_equal(again.weight_standard_errors, fit.weight_standard_errors)
    bare = fit.drop_data()
    assert bare.problem is None
    bare.save(tmp_path / "bare.npz")
    assert (tmp_path / "bare.npz").stat().st_size < (tmp_path / "fit.npz").stat().st_size / 2
    without = codiag.Factorization.load(tmp_path / "bare.npz")
    assert str(without.diagnose()).splitlines()[0] == str(fit.diagnose()).splitlines()[0]
    np.testing.assert_array_equal(without.standard_errors, fit.standard_errors)


def test_unexamined_noise_is_called_so():
    fit = codiag.Factorization(np.ones(1), (np.ones((2, 1)),) * 3, 0.1, 1.0, True)
    assert fit.noise_model == "taken to be white: the residual was not examined"


def test_levels_are_shares():
    with pytest.raises(ValueError, match="^level must"):
        fitted().intervals(90)


@pytest.mark.parametrize("kind", NOISES)
def test_the_right_rank_is_told_so_whatever_the_noise(kind):
    """No component is called undetermined, and no other rank is advised."""
    _, _, tensor = spectra(kind)
    told = codiag.factorize(tensor, 2, seed=0).diagnose()
    assert told.verdicts == ("well", "well")
    assert "try rank" not in str(told)


@pytest.mark.parametrize("kind", NOISES)
def test_a_component_that_is_missing_or_too_many_is_told_whatever_the_noise(kind):
    _, _, tensor = spectra(kind, rank=3, shape=(20, 30, 25))
    few, many = (codiag.factorize(tensor, rank, seed=0).diagnose() for rank in (2, 4))
    assert few.replicated > 0.85
    assert "a component is missing; try rank 3" in str(few)
    assert "try rank 3" in str(many)
    assert "not" in many.verdicts


def test_an_outlier_is_no_component():
    _, _, tensor = spectra("white", rank=1)
    tensor[3, 4, 5] += 20 * (tensor[0] - tensor[0].mean()).std()
    tensor[1, 2, 3] -= 18 * (tensor[0] - tensor[0].mean()).std()
    told = codiag.factorize(tensor, 2, seed=0).diagnose()
    assert "one entry, at (3, 4, 5)" in told.reasons[1] or "one entry, at (1, 2, 3)" in told.reasons[1]
