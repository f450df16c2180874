"""Sparse tensors of counts and of zeros and ones, whose zeros are not visited."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import codiag
from codiag.constraints import Ridge
from codiag.least_squares import objective_of
from codiag.losses import Bernoulli
from codiag.tensors import SparseTensor, is_large
from tests.losses.test_counts import means

SHAPE = (150, 150, 100)


@pytest.fixture(scope="module")
def drawn():
    """Return a sparse tensor of ones, coordinates of held-out ones, and of zeros."""
    assert is_large(SHAPE)
    rng = np.random.default_rng(0)
    factors = [rng.gamma(0.3, size=(size, 3)) + 1e-4 for size in SHAPE]
    counts = np.stack(
        [np.concatenate([rng.choice(len(f), 4000, p=f[:, r] / f[:, r].sum()) for r in range(3)]) for f in factors]
    )
    ones = rng.permutation(np.unique(counts, axis=1).T)
    zeros = np.stack([rng.integers(size, size=3000) for size in SHAPE], axis=1)
    return SparseTensor(ones[1000:].T, np.ones(len(ones) - 1000), SHAPE), ones[:1000], zeros


def area(scores, others):
    return np.mean(scores[:, None] > others) + np.mean(scores[:, None] == others) / 2


def test_rates_are_meant_if_zeros_are_too_many(drawn):
    tensor = drawn[0]
    assert codiag.Problem(tensor, 1, loss="bernoulli").loss.link == "rate"
    assert codiag.Problem(np.eye(4)[:, :, None], 1, loss="bernoulli").loss.link == "logit"
    with pytest.raises(ValueError, match="Bernoulli needs all entries"):
        codiag.Problem(tensor, 1, loss=Bernoulli())


def test_held_out_ones_are_ranked_better_than_by_degrees(drawn):
    tensor, ones, zeros = drawn
    fit = codiag.factorize(tensor, 3, loss="bernoulli", rng=0)
    sums = [np.bincount(tensor.coords[mode], minlength=size) + 0.5 for mode, size in enumerate(SHAPE)]
    by_degrees = [np.prod([sums[mode][one[:, mode]] for mode in range(3)], axis=0) for one in (ones, zeros)]
    assert area(fit.predict(ones), fit.predict(zeros)) > area(*by_degrees) + 0.02


def test_the_loss_of_a_sparse_tensor_is_that_of_all_entries(drawn):
    tensor, _, _ = drawn
    components = codiag.factorize(tensor, 2, loss="poisson", rng=0)._components
    objective = objective_of(codiag.Problem(tensor, 2, loss="bernoulli"))
    whole = Bernoulli("rate").value(np.asarray(tensor.to_dense()), np.asarray(components.to_dense()))
    assert_allclose(objective.distance(components), 2 * np.sum(whole))


@pytest.mark.parametrize("loss", ["poisson", "bernoulli"])
def test_ridges_end_where_the_gradient_vanishes(drawn, loss):
    free = codiag.factorize(drawn[0], 2, loss=loss, rng=0)
    bound = codiag.factorize(drawn[0], 2, loss=loss, constraints=Ridge(2.0), rng=0)
    assert np.all(bound.weights < free.weights)
    assert all(np.min(factor) >= 0 for factor in bound.factors)
    objective = objective_of(codiag.Problem(drawn[0], 2, loss=loss, constraints=Ridge(2.0)))
    assert objective.is_multiplicative
    point = objective.parametrization.vectorize(bound._components)
    value, gradient = objective.value_and_gradient(point)
    assert np.sqrt(np.sum(point * np.abs(gradient)) / value) < 0.02


@pytest.mark.parametrize("loss", ["poisson", "negative_binomial", Bernoulli("odds"), Bernoulli("rate"), "bernoulli"])
def test_a_ridge_goes_with_every_loss(loss):
    ones = (np.random.default_rng(0).random((9, 8, 7)) < 0.3).astype(float)
    free, bound = (codiag.factorize(ones, 1, loss=loss, constraints=rule, rng=0) for rule in (None, Ridge(3.0)))
    assert bound.weights[0] < free.weights[0]


def test_the_rank_is_chosen_by_events_that_are_held_out(drawn):
    choice = codiag.choose_rank(drawn[0], range(1, 6), loss="poisson", rng=0)
    assert choice.rank == 3
    assert "improves the prediction of events" in choice.reason


def test_a_table_of_counts_may_be_sparse():
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    factors = means((5, 6, 7), 1)
    counts = np.random.default_rng(1).poisson(0.3 * np.einsum("ir,jr,kr->ijk", *factors))
    listed = np.argwhere(counts > 0)
    table = pandas.DataFrame(listed, columns=["a", "b", "c"]).assign(n=counts[counts > 0])
    problem = codiag.Problem(table, 1, loss="poisson")
    assert problem.data.squared_norm == np.sum(counts.astype(float) ** 2)
    assert problem.n_observed == np.prod(problem.tensor.shape)
