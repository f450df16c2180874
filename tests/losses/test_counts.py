"""Counts, dense and sparse, with few of them and with more than the mean says."""

from __future__ import annotations

import math

import numpy as np
import pytest

import codiag
from codiag.diagnosis import deviance_without
from codiag.least_squares import GeneralizedObjective, Limits, minimize
from codiag.losses import Bernoulli, NegativeBinomial, Poisson
from codiag.problem import interior
from codiag.synthetic import count_events
from codiag.tensors import FactoredTensor, SparseTensor

SHAPE = (130, 130, 130)  # more than two million entries: its zeros are not visited


@pytest.fixture(scope="module")
def events():
    return count_events(SHAPE, 3, n_events=30_000, rng=0)


def means(shape, rank, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.gamma(2.0, size=(size, rank)) for size in shape]


def test_events_are_counted(events):
    """Row sums of the counts are those of the model, to five standard deviations of a Poisson count."""
    expected = FactoredTensor(events.weights, events.factors)
    totals = np.prod([factor.sum(axis=0) for factor in events.factors], axis=0) * events.weights
    assert events.tensor.values.sum() == 30_000
    assert totals.sum() == pytest.approx(30_000)
    counted = np.bincount(events.tensor.coords[0], events.tensor.values, minlength=130)
    mean = expected.factors[0] @ (totals / expected.factors[0].sum(axis=0))
    assert np.all(np.abs(counted - mean) < 5 * np.sqrt(mean) + 1)


def test_sparse_counts_have_the_loss_of_all_entries(events):
    sparse = GeneralizedObjective(codiag.Problem(events.tensor, 3, loss="poisson"))
    dense = GeneralizedObjective(codiag.Problem(events.tensor.to_dense(), 3, loss="poisson"))
    assert sparse.listed.has_zeros
    assert not dense.listed.has_zeros
    factors = [factor + 0.01 for factor in events.factors]
    point = sparse.parametrization.vectorize(FactoredTensor(events.weights, factors))
    (value, gradient), (other, slopes) = (objective.value_and_gradient(point) for objective in (sparse, dense))
    assert value == pytest.approx(other, rel=1e-12)
    np.testing.assert_allclose(gradient, slopes, atol=1e-10 * np.max(np.abs(slopes)))
    assert sparse.null_value == pytest.approx(dense.null_value, rel=1e-12)
    components = FactoredTensor(events.weights, factors)
    assert sparse.squared_residual(components) == pytest.approx(dense.squared_residual(components), rel=1e-10)


def test_sparse_counts_are_fitted_as_from_the_truth(events):
    fit = codiag.factorize(events.tensor, 3, loss="poisson", rng=0)
    problem = codiag.Problem(events.tensor, 3, loss="poisson")
    truth = interior(FactoredTensor(events.weights, events.factors), problem.constraints)
    best = minimize(problem, truth, Limits())
    assert fit.converged
    assert fit.deviance.total / 2 <= best.objective + problem.n_parameters * 1e-3
    assert codiag.factor_error(fit, events) <= 1.02 * codiag.factor_error(best.components, events)
    assert any(stage.name == "multiplicative steps" for stage in fit.history)
    assert np.all(np.isnan(fit.standard_errors))


def test_multiplicative_steps_never_go_up(events):
    problem, values = codiag.Problem(events.tensor, 3, loss="poisson"), []

    class Record:
        stopped = False

        def __call__(self, components, objective):
            values.append(objective)
            return False

    rng = np.random.default_rng(1)
    start = FactoredTensor(np.ones(3), [rng.gamma(2.0, size=(130, 3)) for _ in range(3)])
    minimize(problem, start, Limits(max_iter=40, callback=Record()))
    assert np.all(np.diff(values) <= 1e-12 * values[0])


def test_sums_of_a_fit_are_those_of_the_counts():
    """At the optimum of Poisson's loss with positive factors, row sums of the model are those of the counts."""
    factors = means((12, 13, 14), 2)
    counts = Poisson().sample(np.einsum("ir,jr,kr->ijk", *factors), np.random.default_rng(0))
    fit = codiag.factorize(counts, 2, loss="poisson", rng=0)
    model = fit.to_tensor()
    for mode in range(3):
        others = tuple(axis for axis in range(3) if axis != mode)
        np.testing.assert_allclose(model.sum(axis=others), counts.sum(axis=others), rtol=1e-4)


def test_poisson_does_not_depend_on_units():
    factors = means((12, 13, 14), 2)
    counts = Poisson().sample(np.einsum("ir,jr,kr->ijk", *factors), np.random.default_rng(0))
    fit, scaled = (codiag.factorize(scale * counts, 2, loss="poisson", rng=0) for scale in (1.0, 0.25))
    np.testing.assert_allclose(scaled.weights, fit.weights / 4, rtol=1e-6)
    assert scaled.deviance.total == pytest.approx(fit.deviance.total / 4)
    assert scaled.deviance.dispersion == pytest.approx(fit.deviance.dispersion / 4)
    np.testing.assert_allclose(scaled.standard_errors, fit.standard_errors, rtol=1e-3)


def test_small_sparse_counts_are_those_of_the_array():
    factors = means((12, 13, 14), 2)
    counts = Poisson().sample(np.einsum("ir,jr,kr->ijk", *factors) / 10, np.random.default_rng(0))
    listed = SparseTensor(np.argwhere(counts).T, counts[counts > 0], counts.shape)
    for loss in ("poisson", NegativeBinomial(0.1)):
        fit, other = (codiag.factorize(tensor, 2, loss=loss, rng=0) for tensor in (counts, listed))
        np.testing.assert_allclose(other.weights, fit.weights, rtol=1e-6)


def test_overdispersion_is_said_and_measured():
    factors = means((20, 21, 22), 2)
    model = np.einsum("ir,jr,kr->ijk", *factors)
    rng = np.random.default_rng(0)
    counts = rng.negative_binomial(model / 2, 1 / 3).astype(float)  # of variance three times the mean
    fit = codiag.factorize(counts, 2, loss="poisson", rng=0)
    assert fit.deviance.dispersion == pytest.approx(3, rel=0.1)
    assert "The dispersion is" in str(fit.diagnose())
    plain = codiag.factorize(Poisson().sample(model, rng), 2, loss="poisson", rng=0)
    assert str(plain.noise_model) == "that of Poisson(link='identity')"
    assert np.median(fit.standard_errors / plain.standard_errors) == pytest.approx(3**0.5, rel=0.15)


@pytest.mark.parametrize(
    ("loss", "options", "message"),
    [
        ("poisson", {"constraints": [None, "nonnegative", None]}, "^constraints must"),
        ("poisson", {"constraints": "orthogonal"}, "^constraints must"),
        ("poisson", {"method": "als"}, "ALS cannot take constraints and loss|ALS cannot take loss"),
        ("bernoulli", {}, "^tensor must"),
        ("counts", {}, "^loss must"),
        (Poisson, {}, "did you forget"),
    ],
)
def test_what_does_not_go_is_said(loss, options, message):
    counts = np.random.default_rng(0).poisson(3.0, size=(5, 6, 7)).astype(float)
    with pytest.raises((TypeError, ValueError), match=message):
        codiag.factorize(counts, 2, loss=loss, rng=0, **options)


def test_negative_counts_are_refused():
    with pytest.raises(ValueError, match="^tensor must"):
        codiag.factorize(-np.ones((3, 4, 5)), 1, loss="poisson")


def test_large_sparse_tensors_of_other_losses_are_refused(events):
    with pytest.raises(ValueError, match="is too large"):
        codiag.factorize(events.tensor, 3, loss=NegativeBinomial(0.1))


def test_counts_that_were_fitted_by_least_squares_are_noticed():
    factors = means((20, 21, 22), 2)
    counts = Poisson().sample(np.einsum("ir,jr,kr->ijk", *factors), np.random.default_rng(0))
    said = "loss='poisson' may be better"
    assert said in str(codiag.factorize(counts, 2, rng=0).diagnose())
    assert said not in str(codiag.factorize(counts + 0.5, 2, rng=0).diagnose())
    assert said not in str(codiag.factorize(counts, 2, loss="poisson", rng=0).diagnose())


def test_binary_data_that_was_fitted_by_least_squares_is_noticed():
    odds = np.einsum("ir,jr,kr->ijk", *means((12, 14, 15), 2))
    binary = Bernoulli("odds").sample(odds, np.random.default_rng(0))
    said = "loss='bernoulli' models their probabilities"
    plain = str(codiag.factorize(binary, 2, rng=0).diagnose())
    assert said in plain
    assert "poisson" not in plain
    assert said not in str(codiag.factorize(2 * binary, 2, rng=0).diagnose())
    assert said not in str(codiag.factorize(binary, 2, loss=Bernoulli("odds"), rng=0).diagnose())


def test_cells_where_the_model_vanishes_do_not_spoil_errors():
    """A row without counts has a model of zero, and leaves the errors of all others as they are without it."""
    factors = means((12, 13, 14), 2)
    counts = Poisson().sample(np.einsum("ir,jr,kr->ijk", *factors), np.random.default_rng(0))
    counts[3] = 0
    fit = codiag.factorize(counts, 2, loss="poisson", rng=0)
    rest = codiag.factorize(np.delete(counts, 3, axis=0), 2, loss="poisson", rng=0)
    assert np.all(fit.factors[0][3] == 0)
    np.testing.assert_allclose(fit.standard_errors, rest.standard_errors, rtol=0.1)
    assert not any(fit._sensitivity.undetermined)


def test_components_far_above_their_standard_errors_are_not_superfluous():
    """Variances of sparse counts differ by orders of magnitude, so that none is typical of the noise."""
    rng = np.random.default_rng(1)
    factors = [rng.gamma(0.15, 1, (size, 3)) + 1e-4 for size in (30, 20, 12)]
    factors = [factor / factor.sum(axis=0) for factor in factors]
    counts = rng.poisson(4000 * np.einsum("r,ir,jr,kr->ijk", [0.4, 0.35, 0.25], *factors))
    fit = codiag.factorize(counts.astype(float), 3, loss="poisson", rng=0)
    assert codiag.factor_error(fit, factors) < 0.05
    assert np.sum(fit.diagnose().components["significance"] > 1) >= 2


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_what_a_component_of_sparse_counts_is_worth_is_its_deviance(seed):
    """Most cells have no event: the curvature at the fit says little about the fit without a component."""
    rng = np.random.default_rng(seed)
    model = np.einsum("ir,jr,kr->ijk", *[rng.gamma(0.5, size=(size, 2)) for size in (18, 20, 22)])
    counts = rng.poisson(model * 0.08 / model.mean()).astype(float)
    lower, fit, higher = (codiag.factorize(counts, rank, loss="poisson", rng=0) for rank in (1, 2, 3))
    rise = lower.deviance.total - fit.deviance.total
    assert min(deviance_without(fit, i) for i in range(2)) == pytest.approx(rise, rel=1e-3)
    assert np.all(fit.diagnose().components["significance"] > 1)
    assert not higher.diagnose().is_supported
    assert math.isnan(deviance_without(fit.drop_data(), 0))


def test_counts_that_a_table_does_not_list_are_zeros():
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    factors = means((6, 7, 8), 1)
    counts = Poisson().sample(np.einsum("ir,jr,kr->ijk", *factors), np.random.default_rng(0))
    listed = np.argwhere(counts > 0)
    table = pandas.DataFrame(listed, columns=["place", "hour", "day"]).assign(n=counts[counts > 0])
    assert len(table) < counts.size
    zeros = codiag.io.labelled_tensor(table, absent="zero")
    fit, expected = (codiag.factorize(each, 1, loss="poisson", rng=0) for each in (table, zeros))
    np.testing.assert_allclose(fit.weights, expected.weights)
    np.testing.assert_allclose(fit.transform(table, mode=0), fit.factors[0] * fit.weights, rtol=1e-4)
    assert codiag.choose_rank(table, range(1, 2), loss="poisson", rng=0).fits[1].problem.n_observed == counts.size
    missing = codiag.factorize(table, 1, rng=0)
    assert missing.problem.n_observed == len(table)
