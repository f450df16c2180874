"""Samples drawn again."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

import codiag
from assertions import assert_same_to_rounding
from benchmarks.noise_kinds import NOISES, spectra
from codiag._checks import as_generator
from codiag.constraints import Ridge
from codiag.inference import part_of
from codiag.least_squares import Limits, minimize, unit_components
from codiag.losses import Gaussian, Huber
from codiag.tensors import FactoredTensor


def fitted(kind="white", seed=0, **stated):
    factors, _, tensor = spectra(kind, shape=(20, 22, 18), seed=seed)
    return factors, codiag.factorize(tensor, 2, rng=0, **stated)


@pytest.mark.slow
@pytest.mark.parametrize("kind", NOISES)
def test_bootstrap_intervals_hold_the_truth_whatever_the_noise_within_a_sample(kind):
    held = []
    for seed in range(6):
        factors, fit = fitted(kind, seed)
        likeness = np.prod([np.abs(one.T @ two) for one, two in zip(fit.factors, factors, strict=True)], axis=0)
        order = linear_sum_assignment(-likeness)[1]
        for mode, (low, high) in enumerate(fit.bootstrap(n=60, rng=0).conf_int(0.9).factors):
            true = factors[mode][:, order] * np.sign(np.sum(fit.factors[mode] * factors[mode][:, order], axis=0))
            held += [np.mean((low <= true) & (true <= high))] if mode > 0 else []
    assert 0.8 < np.mean(held) < 0.98


def agree_with_theory(fit, found):
    """Return whether standard errors of refits are those of first-order theory, in the median over entries."""
    ratios = [found.entry_standard_errors[mode] / fit.entry_standard_errors[mode] for mode in (1, 2)]
    return all(0.8 < np.median(ratio[np.isfinite(ratio)]) < 1.25 for ratio in ratios)


def test_bootstrap_agrees_with_theory_for_white_noise():
    _, fit = fitted()
    found = fit.bootstrap(rng=0)
    assert agree_with_theory(fit, found)
    assert np.isnan(found.entry_standard_errors[0]).all()


@pytest.mark.parametrize("covariance", ["given", "modes"])
def test_bootstrap_of_a_covariance_refits_with_the_same_one(covariance):
    """Without it standard errors are four times as large."""
    rng = np.random.default_rng(2)
    places = np.abs(np.subtract.outer(np.arange(15), np.arange(15)))
    matrices = [np.diag(np.geomspace(0.01, 4, 30)), np.diag(np.geomspace(0.05, 2, 14)), 0.1 * np.exp(-places / 2)]
    matrices[2] = 0.1 * np.eye(15) if covariance == "modes" else matrices[2]  # correlations are left to error bars
    factors = [rng.random((len(matrix), 2)) for matrix in matrices]
    noise = np.einsum("ijk,ai,bj,ck->abc", rng.standard_normal((30, 14, 15)), *map(np.linalg.cholesky, matrices))
    tensor = np.einsum("ir,jr,kr->ijk", *factors) + 0.3 * noise
    loss = Gaussian("modes" if covariance == "modes" else matrices)
    fit = codiag.factorize(tensor, 2, loss=loss, rng=0)
    assert fit.problem.loss is loss
    assert agree_with_theory(fit, fit.bootstrap(n=50, rng=0))


@pytest.mark.parametrize("loss", ["poisson", Huber(1.0)])
def test_bootstrap_of_a_loss_refits_under_it(loss):
    rng = np.random.default_rng(0)
    means = np.einsum("ir,jr,kr->ijk", *[3 * rng.random((size, 2)) for size in (30, 12, 10)])
    tensor = rng.poisson(means) if loss == "poisson" else means + rng.standard_t(2, size=means.shape)
    fit = codiag.factorize(tensor, 2, loss=loss, rng=0)
    found = fit.bootstrap(n=40, rng=0)
    assert agree_with_theory(fit, found)
    part = part_of(fit.problem, {0: np.arange(30)})
    assert part.loss is fit.problem.loss


@pytest.mark.parametrize("stated", [{"constraints": "nonnegative"}, {"weights": "most"}], ids=str)
def test_refits_keep_constraints_and_missing_entries(stated):
    _, _, tensor = spectra("white", shape=(20, 22, 18))
    if "weights" in stated:
        stated = {"weights": np.random.default_rng(0).random(tensor.shape) > 0.2}
    fit = codiag.factorize(tensor, 2, rng=0, **stated)
    found = fit.bootstrap(n=10, rng=0)
    ratios = [
        np.median(found.factors[mode].std(axis=0) / fit.entry_standard_errors[mode].clip(1e-9)) for mode in (1, 2)
    ]
    assert all(0.4 < ratio < 2.5 for ratio in ratios)
    if "constraints" in stated:
        assert all(np.all(found.factors[mode] >= 0) for mode in (1, 2))
        assert np.all(found.conf_int().factors[1][0] >= 0)


@pytest.mark.parametrize("stated", [{}, {"constraints": "nonnegative"}, {"constraints": {1: "nonnegative"}}], ids=str)
@pytest.mark.parametrize("kind", ["complete", "missing", "weighted"])
@pytest.mark.parametrize("mode", [0, 2])
def test_resamples_that_are_swept_together_are_refitted_as_each_by_itself(stated, kind, mode):
    rng = np.random.default_rng(0)
    factors = [rng.random((size, 2)) for size in (9, 8, 7)]
    tensor = np.einsum("ir,jr,kr->ijk", *factors) + 0.05 * rng.standard_normal((9, 8, 7))
    if kind == "missing":
        tensor[rng.random(tensor.shape) < 0.2] = np.nan
    if kind == "weighted":
        stated = stated | {"weights": rng.random(tensor.shape) + 0.1}
    fit = codiag.factorize(tensor, 2, rng=0, **stated)
    found, numbers, size = fit.bootstrap(mode=mode, n=5, rng=0), as_generator(0, apart=True), tensor.shape[mode]
    for place in range(5):
        rows = np.sort(numbers.integers(size, size=size))
        kept = [factor[rows] if other == mode else factor for other, factor in enumerate(fit.factors)]
        start = FactoredTensor(fit.weights, kept, symmetric=False)
        alone = unit_components(minimize(part_of(fit.problem, {mode: rows}), start, Limits(tol=1e-9)).components)
        np.testing.assert_allclose(found.weights[place], np.abs(alone.weights), rtol=1e-3)
        for other in {0, 1, 2} - {mode}:
            signs = np.sign(np.sum(alone.factors[other] * fit.factors[other], axis=0))
            np.testing.assert_allclose(found.factors[other][place], signs * alone.factors[other], atol=1e-3)


@pytest.mark.parametrize("stated", [{"constraints": "orthogonal"}, {"constraints": Ridge(1.0)}], ids=str)
def test_what_sweeps_do_not_minimize_is_refitted_one_by_one(stated):
    rng = np.random.default_rng(0)
    bases = [np.linalg.qr(rng.standard_normal((size, 2)))[0] for size in (9, 8, 7)]
    tensor = np.einsum("r,ir,jr,kr->ijk", [9.0, 5.0], *bases) + 0.05 * rng.standard_normal((9, 8, 7))
    fit = codiag.factorize(tensor, 2, rng=0, **stated)
    found = fit.bootstrap(n=30, rng=0)
    assert np.all(np.abs(found.weights.mean(axis=0) / fit.weights - 1) < 0.2)
    if stated["constraints"] == "orthogonal":
        for mode in (1, 2):
            assert np.max(np.abs(np.sum(found.factors[mode][:, :, 0] * found.factors[mode][:, :, 1], axis=1))) < 1e-8


def test_complex_resamples():
    rng = np.random.default_rng(0)
    factors = [rng.standard_normal((size, 2)) + 1j * rng.standard_normal((size, 2)) for size in (9, 8, 7)]
    tensor = np.einsum("ir,jr,kr->ijk", *factors) + 0.01 * rng.standard_normal((9, 8, 7))
    fit = codiag.factorize(tensor, 2, rng=0)
    found = fit.bootstrap(n=20, rng=0)
    assert np.all(found.weight_standard_errors < 0.2 * fit.weights)
    for mode in (1, 2):
        np.testing.assert_allclose(
            found.factors[mode], np.broadcast_to(fit.factors[mode], found.factors[mode].shape), atol=0.02
        )


@pytest.mark.slow
def test_the_same_seed_gives_the_same_draws_in_any_number_of_processes():
    _, fit = fitted()
    one, two = (fit.bootstrap(n=6, rng=3, n_jobs=n_jobs) for n_jobs in (1, 2))
    assert_same_to_rounding(one.factors[1], two.factors[1])


def test_what_cannot_be_resampled_is_refused(tmp_path):
    _, fit = fitted()
    with pytest.raises(ValueError, match="^mode must"):
        fit.bootstrap(mode=3)
    with pytest.raises(ValueError, match="^fit must"):
        fit.drop_data().bootstrap()
    covariance = np.eye(20) + 0.1
    correlated = codiag.factorize(fit.problem.tensor.to_dense(), 2, loss=Gaussian([covariance, None, None]), rng=0)
    with pytest.raises(ValueError, match="^mode must be one of independent samples"):
        correlated.bootstrap()
    stack = np.einsum("ir,jr,kr->ijk", *[np.random.default_rng(0).random((size, 2)) for size in (5, 5, 6)])
    partly = codiag.factorize(stack + stack.transpose(1, 0, 2), 2, symmetric=(0, 1), rng=0)
    with pytest.raises(ValueError, match="mode 0 shares its factor"):
        partly.bootstrap()
    refits = partly.bootstrap(mode=2, n=3, rng=0)
    np.testing.assert_array_equal(refits.factors[0], refits.factors[1])


def test_bands_are_those_of_the_refits():
    pytest.importorskip("matplotlib")
    _, fit = fitted()
    assert len(fit.bootstrap(n=5, rng=0).plot().axes) == len(fit.plot().axes)


def test_resamples_are_shown_as_standard_errors_of_components():
    _, fit = fitted()
    found = fit.bootstrap(n=20, rng=0)
    title, heading, *rows = str(found).splitlines()
    assert title.startswith("Bootstrap: 20 refits of 20 samples of mode 0")
    assert heading.split() == ["component", "weight", "+-", "mode", "1", "mode", "2"]
    errors = found.entry_standard_errors
    for component, row in enumerate(rows):
        shown = [float(cell) for cell in row.split()]
        columns = [np.linalg.norm(errors[mode][:, component]) for mode in (1, 2)]
        expected = [component, fit.weights[component], found.weight_standard_errors[component], *columns]
        np.testing.assert_allclose(shown, expected, rtol=0.06)
    assert found._repr_html_().count("<tr>") == 3
    assert repr(found) == str(found)


def test_no_result_is_shown_as_all_of_its_numbers():
    _, fit = fitted()
    matching = codiag.match_components(fit, fit)
    for result in (
        fit.bootstrap(n=3, rng=0),
        fit.conf_int(),
        fit._noise_model,
        fit._sensitivity,
        matching,
        fit.diagnose(),
    ):
        assert "array(" not in repr(result)
        assert len(repr(result)) < 500


def test_phases_of_complex_refits_are_those_of_the_fit():
    """Standard deviations of refits are then those of theory; with phases left over they are half as large again."""
    rng = np.random.default_rng(0)
    factors = [rng.standard_normal((size, 2)) + 1j * rng.standard_normal((size, 2)) for size in (40, 8, 9)]
    factors = [factor / np.linalg.norm(factor, axis=0) for factor in factors]
    clean = np.einsum("r,ir,jr,kr->ijk", [3.0, 2.0], *factors)
    noise = rng.standard_normal(clean.shape) + 1j * rng.standard_normal(clean.shape)
    fit = codiag.factorize(clean + 0.01 * noise, 2, rng=0)
    drawn = fit.bootstrap(mode=0, n=60, rng=0).factors[1]
    np.testing.assert_allclose(np.linalg.norm(np.std(drawn, axis=0), axis=0), fit.standard_errors[1], rtol=0.15)
