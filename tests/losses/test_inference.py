"""Inference under a loss: intervals, coefficients of new samples, files, the rank."""

from __future__ import annotations

import numpy as np
import pytest

import codiag
from cases import LOSSES
from codiag.least_squares import GeneralizedObjective, Log
from codiag.losses import Bernoulli, Huber, NegativeBinomial, Poisson
from codiag.models import CP
from codiag.starts import WarmStart
from codiag.tensors import FactoredTensor

SHAPE = (19, 18, 17)
BUT_GAUSSIAN = pytest.mark.parametrize(
    "case", [case for name, case in LOSSES.items() if name != "gaussian"], ids=[n for n in LOSSES if n != "gaussian"]
)


@BUT_GAUSSIAN
def test_coefficients_of_the_data_are_those_of_the_fit(case):
    fit = codiag.factorize(case.tensor(case.factors(SHAPE, 2)), 2, loss=case.loss, rng=0)
    for mode in (0, 2):
        found = fit.transform(case.tensor(case.factors(SHAPE, 2)), mode=mode)
        np.testing.assert_allclose(found, fit.factors[mode] * fit.weights, atol=2e-3 * np.max(np.abs(found)))


def test_coefficients_of_new_counts_minimize_the_loss():
    case = LOSSES["poisson"]
    factors = case.factors(SHAPE, 2)
    fit = codiag.factorize(case.tensor(factors), 2, loss=case.loss, rng=0)
    new = case.tensor([factors[0][:5], *factors[1:]], seed=3)
    new[0, 0, 0] = np.nan
    rows = fit.transform(new)
    model = np.einsum("ir,jr,kr->ijk", rows, *fit.factors[1:])
    slopes = np.where(np.isnan(new), 0, 1 - np.nan_to_num(new) / model)
    gradient = np.einsum("ijk,jr,kr->ir", slopes, *fit.factors[1:])
    assert np.all(rows >= 0)
    assert np.max(np.abs(gradient * rows)) < 1e-3 * np.nansum(new)


@BUT_GAUSSIAN
def test_files_keep_deviance_and_errors(case, tmp_path):
    fit = codiag.factorize(case.tensor(case.factors(SHAPE, 2)), 2, loss=case.loss, rng=0)
    fit.save(tmp_path / "fit.npz")
    own = case.loss if case is LOSSES["exponential"] else None  # not codiag's own
    read = codiag.Factorization.load(tmp_path / "fit.npz", loss=own)
    np.testing.assert_allclose(read.standard_errors, fit.standard_errors)
    assert repr(read.problem.loss) == repr(fit.problem.loss)
    assert (read.deviance, read.deviance.dispersion) == (fit.deviance, fit.deviance.dispersion)
    new = case.tensor(case.factors(SHAPE, 2), seed=1)[:3]
    np.testing.assert_allclose(read.transform(new), fit.transform(new), rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("missing", [0.0, 0.3], ids=["complete", "incomplete"])
@pytest.mark.parametrize("name", ["poisson", "poisson, log", "negative binomial", "huber", "exponential"])
def test_intervals_hold(name, missing):
    """Nine of ten intervals of factors hold, to 4 of 100, over 12 draws of 108 entries each."""
    case, shape, held = LOSSES[name], SHAPE, []
    factors = case.factors(shape, 2)
    unit = [factor / np.linalg.norm(factor, axis=0) for factor in factors]
    for seed in range(12):
        tensor = case.tensor(factors, seed)
        tensor[np.random.default_rng(seed).random(shape) < missing] = np.nan
        fit = codiag.factorize(tensor, 2, loss=case.loss, rng=0)
        matched = codiag.match_components(fit, unit)
        order = [int(np.argmax(np.abs(to.T @ fit.factors[0])[r])) for r in range(2) for to in unit[:1]]
        signs = [np.sign(np.sum(factor[:, order] * to, axis=0)) for factor, to in zip(fit.factors, unit, strict=True)]
        for mode, (low, high) in enumerate(fit.conf_int(0.9).factors):
            low, high = low[:, order] * signs[mode], high[:, order] * signs[mode]
            low, high = np.minimum(low, high), np.maximum(low, high)
            free = fit.factors[mode][:, order] != 0
            held.append(((low <= unit[mode]) & (unit[mode] <= high))[free])
        assert matched is not None
    assert np.mean(np.concatenate(held)) == pytest.approx(0.9, abs=0.04)


def test_outliers_do_not_move_factors_under_huber():
    planted = codiag.synthetic.noisy_tensor((20, 21, 22), 3, noise=0.1, rng=0)
    noise = 0.1 * np.linalg.norm(planted.tensor) / np.sqrt(planted.tensor.size)
    rng = np.random.default_rng(0)
    spoiled = np.where(rng.random(planted.tensor.shape) < 0.02, 50 * noise * rng.standard_normal(), planted.tensor)
    clean = codiag.factor_error(codiag.factorize(planted.tensor, 3, rng=0), planted)
    plain = codiag.factor_error(codiag.factorize(spoiled, 3, rng=0), planted)
    fit = codiag.factorize(spoiled, 3, loss="huber", rng=0)
    assert codiag.factor_error(fit, planted) < 1.2 * clean < plain


def test_numbers_that_are_left_open_are_estimated():
    case = LOSSES["negative binomial"]
    fit = codiag.factorize(case.tensor(case.factors(SHAPE, 2)), 2, loss=NegativeBinomial(), rng=0)
    assert fit.problem.loss.dispersion == pytest.approx(0.3, rel=0.15)
    assert fit.deviance.dispersion == pytest.approx(1.0, abs=1e-3)
    noisy = codiag.synthetic.noisy_tensor(SHAPE, 2, noise=0.1, rng=0).tensor
    fit = codiag.factorize(noisy, 2, loss="huber", rng=0)
    assert fit.problem.loss.scale == pytest.approx(
        1.345 * codiag.factorize(noisy, 2, rng=0).noise_model.standard_deviation, rel=0.05
    )


@pytest.mark.slow
def test_the_rank_of_counts():
    case = LOSSES["poisson"]
    counts = case.tensor(case.factors((15, 16, 17), 3))
    choice = codiag.choose_rank(counts, range(1, 6), loss="poisson", rng=0)
    assert choice.rank == 3
    assert "at rank 4, component" in choice.reason
    assert "not significant" in choice.reason
    assert choice.fit.problem.loss is not None
    assert codiag.factorize(counts, "auto", loss="poisson", rng=0).rank == 3


@pytest.mark.slow
def test_ranks_of_counts_start_from_each_other_and_end_soon_beyond_the_best():
    case = LOSSES["poisson"]
    choice = codiag.choose_rank(case.tensor(case.factors((15, 16, 17), 2)), loss="poisson", rng=0)
    assert choice.rank == 2
    assert choice.fit.converged
    assert max(choice.fits) == 4  # two ranks add nothing
    errors = choice.table["relative_error"]
    assert np.all(np.diff(errors) < 0)  # a rank that starts from the one below fits better


@BUT_GAUSSIAN
def test_components_are_joined_by_one_along_which_the_loss_falls(case):
    tensor = case.tensor(case.factors(SHAPE, 3))
    fit = codiag.factorize(tensor, 2, loss=case.loss, rng=0)
    problem = codiag.Problem(tensor, 3, loss=fit.problem.loss)
    joined = next(WarmStart(components=fit._components).generate(problem, np.random.default_rng(0), Log()))
    assert joined.rank == 3
    lengths = np.array([0, 1e-3, 1.0])
    parts = [joined.changed(lambda factor, _: factor, joined.weights * np.array([1, 1, length])) for length in lengths]
    values = [GeneralizedObjective(problem).distance(part) for part in parts]
    assert values[2] < values[1] < values[0]


def test_the_model_of_scikit_learn_takes_a_loss():
    case = LOSSES["bernoulli, odds"]
    factors = case.factors(SHAPE, 2)
    tensor = case.tensor(factors)
    model = CP(2, loss=Bernoulli("odds"), random_state=0).fit(tensor)
    assert model.score(tensor) == pytest.approx(model.decomposition_.deviance.explained, abs=1e-4)
    means = model.inverse_transform(model.transform(tensor[:4]))
    assert np.all((means >= 0) & (means <= 1))


def test_symmetric_counts_share_a_factor():
    factor = np.random.default_rng(0).gamma(2.0, size=(12, 2))
    model = FactoredTensor(np.ones(2), [factor] * 3).to_dense()
    drawn = Poisson().sample(model, np.random.default_rng(0))
    counts = codiag.tensors.symmetrize(drawn)
    fit = codiag.factorize(counts, 2, loss="poisson", symmetric=True, rng=0)
    assert fit.converged
    assert fit._symmetric
    assert codiag.factor_error(fit, [factor] * 3) < 0.1


def test_huber_of_data_without_outliers_is_least_squares():
    planted = codiag.synthetic.noisy_tensor((9, 8, 7), 2, noise=0.01, rng=0)
    plain = codiag.factorize(planted.tensor, 2, rng=0)
    fit = codiag.factorize(planted.tensor, 2, loss=Huber(100 * plain.noise_model.standard_deviation), rng=0)
    np.testing.assert_allclose(fit.weights, plain.weights, rtol=1e-6)
    np.testing.assert_allclose(fit.standard_errors, plain.standard_errors, rtol=1e-3)


@pytest.mark.parametrize("size", [1.0, 100.0])
def test_outliers_that_would_make_a_component_do_not_change_the_fit(size):
    """Entries of one fiber, up to ten thousand times the others: least squares begins with them."""
    planted = codiag.synthetic.noisy_tensor((12, 13, 14), 2, noise=0.02, rng=0)
    spoiled = planted.tensor.copy()
    spoiled[0, 0, :3] += size
    clean, robust, plain = (
        codiag.factor_error(codiag.factorize(tensor, 2, loss=loss, rng=0), planted)
        for tensor, loss in ((planted.tensor, None), (spoiled, "huber"), (spoiled, None))
    )
    assert robust < 1.2 * clean < plain / 5
