"""Standard errors under constraints, with missing entries and with weights, and rows that are hardly observed."""

from __future__ import annotations

import pickle
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import codiag
from codiag.constraints import Fixed, NonNegative, Ridge
from codiag.tensors import FactoredTensor, SparseTensor

sys.path.insert(0, str(Path(__file__).parents[2]))
intervals = pytest.importorskip(
    "benchmarks.intervals", reason="the simulation lies beside the tests, in the repository"
)


def tensor(seed=0, noise=0.01, shape=(6, 7, 8), rank=3):
    """Return a noisy tensor, and the positive factors in it."""
    rng = np.random.default_rng(seed)
    factors = [rng.uniform(0.2, 1, (size, rank)) for size in shape]
    return FactoredTensor(np.ones(rank), factors).to_dense() + noise * rng.standard_normal(shape), factors


def mask(seed=0, share=0.6, shape=(6, 7, 8)):
    return np.random.default_rng(seed).random(shape) < share


@pytest.mark.parametrize("name", intervals.CASES)
def test_intervals_hold_the_truth_as_often_as_they_say(name):
    """Some 800 entries of ten draws: a share of 90 % is known to two or three points, root mean squares to 7 %."""
    found = intervals.coverage(intervals.CASES[name], 10)
    assert 0.85 <= found.covered <= 0.95
    assert found.ratio == pytest.approx(1, abs=0.15)


def test_weights_that_are_inverse_variances_reach_the_weighted_oracle():
    found = intervals.weighted_errors(5)
    assert np.all(found.weighted <= 1.05 * found.oracle)
    assert np.all(found.weighted < found.unweighted)


@pytest.mark.parametrize(
    "known", [{"weights": np.full((6, 7, 8), 3.0)}, {"constraints": Ridge(0.0)}], ids=["weights", "ridge"]
)
def test_what_says_nothing_changes_no_standard_error(known):
    entries, _ = tensor()
    plain, fit = (codiag.factorize(entries, 3, rng=0, **said) for said in ({}, known))
    assert_allclose(fit.standard_errors, plain.standard_errors, rtol=1e-5)
    for own, expected in zip(fit.entry_standard_errors, plain.entry_standard_errors, strict=True):
        assert_allclose(own, expected, rtol=1e-4)
    assert (fit._norm, fit.noise_model.standard_deviation) == pytest.approx(
        (plain._norm, plain.noise_model.standard_deviation)
    )
    assert_allclose(fit._sensitivity.unique_contributions, plain._sensitivity.unique_contributions, rtol=1e-4)


def test_symmetric_tensors_have_the_noise_of_their_different_entries():
    factor = tensor(shape=(7, 7, 7))[1][0]
    clean = FactoredTensor(np.ones(3), [factor] * 3).to_dense()
    errors = codiag.tensors.symmetrize(0.01 * np.random.default_rng(1).standard_normal(clean.shape))
    plain, fit = (
        codiag.factorize(clean + errors, 3, symmetric=True, rng=0, **said)
        for said in ({}, {"weights": np.full(clean.shape, 2.0)})
    )
    assert fit._symmetric
    assert fit.noise_model.standard_deviation == pytest.approx(plain.noise_model.standard_deviation, rel=1e-6)
    assert_allclose(fit.standard_errors, plain.standard_errors, rtol=1e-5)


def test_squares_of_entries_add_up_to_those_of_columns():
    fit = codiag.factorize(tensor()[0], 3, rng=0)
    assert [own.shape for own in fit.entry_standard_errors] == [factor.shape for factor in fit.factors]
    sums = [np.sum(own**2, axis=0) for own in fit.entry_standard_errors]
    assert_allclose(np.sqrt(sums), fit.standard_errors)


def test_what_constraints_hold_does_not_move():
    entries, factors = tensor()
    factors[1][:3, 0] = 0
    entries = FactoredTensor(np.ones(3), factors).to_dense() - 0.02  # below zero where the model cannot follow
    fit = codiag.factorize(entries, 3, constraints=[Fixed(factors[0]), NonNegative(), None], rng=0)
    assert np.all(fit.standard_errors[0] == 0)
    held = fit.factors[1] == 0
    assert held.any()
    assert np.all(fit.entry_standard_errors[1][held] == 0)
    assert np.all(fit.entry_standard_errors[1][~held] > 0)
    assert fit._sensitivity.n_parameters == pytest.approx(np.count_nonzero(~held) + 8 * 3 - 3)


def test_entries_are_counted():
    entries, _ = tensor()
    observed = mask()
    weights = np.where(observed, 0.5, 0.0)
    coords = np.argwhere(observed).T
    listed = SparseTensor(coords, entries[tuple(coords)], entries.shape, absent="missing")
    assert codiag.factorize(entries, 3, rng=0).problem.n_observed == entries.size
    assert codiag.factorize(entries, 3, weights=weights, rng=0).problem.n_observed == observed.sum()
    assert codiag.factorize(np.where(observed, entries, np.nan), 3, rng=0).problem.n_observed == observed.sum()
    assert codiag.factorize(listed, 3, rng=0).problem.n_observed == observed.sum()


def test_relative_error_is_over_what_was_observed():
    entries, _ = tensor(noise=0.02)
    weights = np.where(mask(), np.random.default_rng(1).random(entries.shape), 0)
    fit = codiag.factorize(entries, 3, weights=weights, rng=0)
    gaps = entries - fit.to_tensor()
    weights /= np.mean(weights[weights > 0])
    assert fit._norm == pytest.approx(np.sqrt(np.sum(weights * entries**2)))
    assert fit.relative_error == pytest.approx(np.sqrt(np.sum(weights * gaps**2)) / fit._norm)
    degrees_of_freedom = np.count_nonzero(weights) - 3 * (6 + 7 + 8 - 2)
    assert fit.noise_model.standard_deviation == pytest.approx(fit.relative_error * fit._norm / degrees_of_freedom**0.5)


def hardly_observed():
    """Return a tensor of which one row was never observed, and another by fewer entries than components."""
    entries, _ = tensor()
    observed = mask()
    observed[2] = False
    observed[:, 5] = False
    observed[0, 5, 0] = observed[1, 5, 3] = True
    return entries, observed


@pytest.mark.parametrize("constraints", [None, "nonnegative"])
def test_rows_that_are_not_determined_are_named(constraints):
    entries, observed = hardly_observed()
    fit = codiag.factorize(entries, 3, weights=observed, constraints=constraints, rng=0)
    diagnosis = fit.diagnose()
    # Of three non-negative entries, one at zero leaves two for two equations.
    is_open = constraints is None or np.all(fit.factors[1][5] > 0)
    assert fit._sensitivity.undetermined == ((), (5,) if is_open else (), ())
    assert np.all(np.isnan(fit.factors[0][2]))
    assert np.all(np.isnan(fit.entry_standard_errors[0][2]))
    assert np.all(fit.entry_standard_errors[0][[0, 1, 3, 4, 5]] < 0.1)
    assert np.all(fit.standard_errors[[0, 2]] < 0.1)
    assert "Nothing was observed at index 2 of mode 0" in str(diagnosis)
    if is_open:
        assert diagnosis.verdicts == ("not determined",) * 3
        assert "index 5 of mode 1" in diagnosis.components["reason"][0]
        assert "Ridge" in str(diagnosis)


@pytest.mark.parametrize("constraints", [None, "nonnegative"])
@pytest.mark.parametrize("symmetric", [False, (0, 1)])
def test_slices_that_were_never_observed_change_nothing_else(constraints, symmetric):
    rng = np.random.default_rng(4)
    first = rng.random((8, 2))
    tensor = np.einsum("ir,jr,kr->ijk", first, first, rng.random((9, 2))) + 0.01 * rng.standard_normal((8, 8, 9))
    stated = {"constraints": constraints, "symmetric": symmetric, "rng": 0}
    whole, part = tensor.copy(), np.delete(tensor, 4, axis=2)
    whole[:, :, 4] = np.nan
    if symmetric:
        whole[1], whole[:, 1] = np.nan, np.nan
        part = np.delete(np.delete(part, 1, axis=0), 1, axis=1)
    fit, other = (codiag.factorize(entries, 2, **stated) for entries in (whole, part))
    rows = [[1] if symmetric else []] * 2 + [[4]]
    for mode, gone in enumerate(rows):
        assert np.flatnonzero(np.isnan(fit.factors[mode][:, 0])).tolist() == gone
        for ours, theirs in ((fit.factors, other.factors), (fit.entry_standard_errors, other.entry_standard_errors)):
            assert_allclose(np.delete(ours[mode], gone, axis=0), theirs[mode], rtol=1e-7, atol=1e-8)
    assert_allclose(fit.standard_errors, other.standard_errors, rtol=1e-7)
    assert_allclose(fit.weights, other.weights, rtol=1e-8)
    assert fit.diagnose().verdicts == other.diagnose().verdicts
    assert np.isnan(fit.to_tensor()[:, :, 4]).all()
    assert np.isfinite(fit.transform(np.nan_to_num(whole[:, :, :], nan=0.5)[0:1], 0)).all()


def test_a_ridge_makes_errors_finite_but_not_small():
    """Of a row that was never observed, all that is known is what the ridge says: its standard deviation."""
    entries, observed = hardly_observed()
    noise, deviation = 0.01, 0.7
    strength = (noise / deviation) ** 2
    fit = codiag.factorize(entries, 3, weights=observed, constraints=Ridge(strength), rng=0)
    assert fit._sensitivity.undetermined == ((), (), ())
    assert np.all(np.isfinite(fit.standard_errors))
    sizes = fit.weights ** (1 / 3)  # equal strengths divide the size of components evenly
    assert_allclose(
        fit.entry_standard_errors[0][2], fit.noise_model.standard_deviation / strength**0.5 / sizes, rtol=1e-6
    )


def test_errors_of_many_unknowns_are_those_of_few_to_the_draws(monkeypatch):
    """By draws of the noise in place of matrices of all unknowns; rows that are not determined stay so."""
    entries, observed = hardly_observed()
    stated = [{"weights": observed}, {"mask": mask()}, {"mask": mask(), "constraints": "nonnegative"}]
    few = [codiag.factorize(entries, 3, **known, rng=0) for known in stated]
    errors = [(fit.standard_errors, fit.weight_standard_errors) for fit in few]
    monkeypatch.setattr("codiag.inference._sensitivity.MOST_UNKNOWNS", 10)
    monkeypatch.setattr("codiag.inference._simulation.MOST_UNKNOWNS", 10)
    many = [codiag.factorize(entries, 3, **known, rng=0) for known in stated]
    assert np.all(np.isinf(many[0].standard_errors[1]))
    assert many[0]._sensitivity.undetermined == ((), (5,), ())
    for fit, (factors, weights) in zip(many[1:], errors[1:], strict=True):
        assert_allclose(fit.standard_errors, factors, rtol=0.4)
        assert np.mean(fit.standard_errors / factors) == pytest.approx(1, abs=0.15)
        assert np.mean(fit.weight_standard_errors / weights) == pytest.approx(1, abs=0.3)
        assert set(fit.diagnose().verdicts) <= {"determined", "roughly determined"}


@pytest.mark.parametrize("copied", ["saved", "pickled"])
def test_copies_keep_what_was_computed_from_the_problem(copied, tmp_path):
    entries, observed = hardly_observed()
    fit = codiag.factorize(entries, 3, weights=observed, rng=0)
    if copied == "saved":
        fit.save(tmp_path / "fit.npz")
        codiag.Factorization.load(tmp_path / "fit.npz").save(tmp_path / "again.npz")
        other = codiag.Factorization.load(tmp_path / "again.npz")
    else:
        other = pickle.loads(pickle.dumps(fit))
    assert other.problem is not None
    assert (other.problem.n_observed, other.noise_model.standard_deviation) == (
        fit.problem.n_observed,
        fit.noise_model.standard_deviation,
    )
    assert_array_equal(other.standard_errors, fit.standard_errors)
    assert_array_equal(other.entry_standard_errors[1], fit.entry_standard_errors[1])
    assert str(other.diagnose()) == str(fit.diagnose())


def test_numbers_that_are_not_finite_are_saved(tmp_path):
    fit = codiag.Factorization(np.ones(1), (np.ones((2, 1)),) * 3, np.nan, False, _norm=np.inf)
    fit.save(tmp_path / "fit.npz")
    other = codiag.Factorization.load(tmp_path / "fit.npz")
    assert np.isnan(other.relative_error)
    assert np.isinf(other._norm)
    assert other.problem.n_observed == 8


@pytest.mark.filterwarnings("ignore::codiag.ConvergenceWarning")
def test_components_of_next_to_no_weight_have_no_error_that_is_known():
    tensor, observed = np.zeros((4, 4, 6)), np.ones((4, 4, 6), bool)
    tensor[0, 0, [1, 3]], observed[0, 0, 0] = [-1, 1], False
    fit = codiag.factorize(tensor, 2, constraints="orthogonal", weights=observed, rng=0)
    for weight in (1e-100, 1e-290):
        assert np.isinf(replace(fit, weights=np.array([np.sqrt(2), weight]))._sensitivity.weights[1])
