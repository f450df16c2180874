"""Sweeps of a batch under a loss."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import codiag
from codiag.least_squares import objective_of
from codiag.losses import Bernoulli, Poisson
from codiag.starts import LossBatch
from codiag.tensors import FactoredTensor


def drawn(loss, n_members=3):
    rng = np.random.default_rng(0)
    one_sided = loss.needs_nonnegative
    planted = [rng.gamma(1.0, size=(size, 2)) if one_sided else rng.standard_normal((size, 2)) for size in (6, 7, 8)]
    entries = loss.sample(np.einsum("ir,jr,kr->ijk", *planted), rng)
    factors = [rng.random((n_members, size, 2)) - (0.0 if one_sided else 0.5) for size in entries.shape]
    return entries, factors, (one_sided,) * 3


@pytest.mark.parametrize("loss", [Poisson(), Poisson("log"), Bernoulli(), Bernoulli("odds")], ids=str)
def test_sweeps_lower_the_loss_of_every_member(loss):
    """The objective is half the deviance of the factors, and falls far below that of the mean."""
    entries, factors, one_sided = drawn(loss)
    weights = np.where(np.random.default_rng(1).random(entries.shape) < 0.8, 1.0, 0.0)
    batch = LossBatch(entries, factors, one_sided, loss, weights)
    before = batch.objectives
    after = batch.sweep(30)
    assert np.all(after < before)
    problem = codiag.Problem(np.where(weights > 0, entries, np.nan), 2, loss=loss)
    for place in range(3):
        components = FactoredTensor(np.ones(2), batch.member(place), symmetric=False)
        np.testing.assert_allclose(objective_of(problem, components).distance(components) / 2, after[place], rtol=1e-9)
        assert after[place] < objective_of(problem).null_value
        assert not one_sided[0] or all(np.all(factor >= 0) for factor in batch.member(place))


def test_a_member_ends_at_the_same_point_alone():
    entries, factors, one_sided = drawn(Poisson())
    together = LossBatch(entries, factors, one_sided, Poisson())
    together.sweep(5)
    together.select([1])
    alone = LossBatch(entries, [factor[1:2] for factor in factors], one_sided, Poisson())
    np.testing.assert_allclose(alone.sweep(15), together.sweep(10), rtol=1e-9)


def test_saturated_entries_do_not_throw_a_member_off():
    """A slice of ones has no best finite logits; others are fitted as without it."""
    entries, factors, one_sided = drawn(Bernoulli())
    entries[3] = 1.0
    batch = LossBatch(entries, factors, one_sided, Bernoulli())
    values = [batch.sweep(10) for _ in range(6)]
    assert all(np.all(later <= sooner) for sooner, later in pairwise(values))
    assert max(np.max(np.abs(factor)) for factor in batch.member(0)) < 1e6
