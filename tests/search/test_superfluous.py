"""More components than the data hold: distinguished from weak ones, and fitted one at a time."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import codiag
from codiag.least_squares import Limits, minimize
from codiag.problem import Problem
from codiag.reduction import Reduction
from codiag.search import LocalMinimum, refit_surplus
from codiag.synthetic import unit_factor
from codiag.tensors import FactoredTensor
from experiments.fitting import silent_fit

NOISE = 5e-4
"""Standard deviation of an entry; the largest term of so much noise has a weight of about 0.005 here."""


def planted(weakest=1.0, *, symmetric=False, shape=(12, 13, 14)):
    """Return four components, and a tensor of these with noise."""
    rng = np.random.default_rng(0)
    factors = [unit_factor(13, 4, rng)] * 3 if symmetric else [unit_factor(size, 4, rng) for size in shape]
    components = FactoredTensor(np.array([2.0, 1.5, 1.2, weakest]), factors, symmetric=symmetric)
    noise = rng.standard_normal([factor.shape[0] for factor in factors])
    if symmetric:
        noise = sum(noise.transpose(axes) for axes in itertools.permutations(range(3))) / 6
    return components, components.to_dense() + NOISE * noise


def end_of(tensor, rank):
    """Return the fit of a tensor as an end of the search on the whole tensor."""
    fit, problem = silent_fit(tensor, rank, seed=0), Problem(tensor, rank)
    return LocalMinimum(problem, minimize(problem, fit._components, Limits()))


def grown_from(end):
    whole = Reduction.identity(end.problem)
    return refit_surplus(end, whole, whole)


@pytest.mark.parametrize(("rank", "weakest", "expected"), [(4, 1.0, False), (6, 1.0, True), (4, 0.02, False)])
def test_surplus_components_are_distinguished_from_weak_ones(rank, weakest, expected):
    assert end_of(planted(weakest)[1], rank).has_surplus is expected


@pytest.mark.parametrize(("rank", "weakest"), [(4, 1.0), (4, 0.02), (5, 0.02)], ids=["none", "weak", "weak and more"])
def test_nothing_is_grown_if_outstanding_components_leave_more_than_noise(rank, weakest):
    assert grown_from(end_of(planted(weakest)[1], rank)) is None


def test_surplus_components_are_grown_from_noise():
    end = end_of(planted()[1], 6)
    grown = grown_from(end)
    assert grown.problem.rank == grown.result.components.rank == 6
    assert grown.objective < 1.01 * end.objective


def test_noise_alone_has_no_outstanding_components():
    assert grown_from(end_of(np.random.default_rng(0).standard_normal((8, 9, 10)), 3)) is None


def test_surplus_components_of_tensors_that_are_not_small_are_grown():
    fit = silent_fit(planted(shape=(22, 23, 24))[1], 6, seed=0)
    assert any("fit noise" in stage.name for stage in fit.history)


@pytest.mark.parametrize("symmetric", [False, True], ids=["free", "symmetric"])
def test_too_high_a_rank_leaves_the_components_where_they_are(symmetric):
    truth, tensor = planted(symmetric=symmetric)
    right, wrong = (codiag.factorize(tensor, rank, symmetric=symmetric, rng=0) for rank in (4, 6))
    assert wrong.converged
    assert wrong.relative_error < right.relative_error
    first = FactoredTensor(wrong.weights[:4], [factor[:, :4] for factor in wrong.factors], symmetric=symmetric)
    errors = [codiag.factor_error(found, truth.factors) for found in (right, first)]
    assert errors[1] < 1.5 * errors[0]
    told = wrong.diagnose()
    assert set(told.verdicts[:4]) == {"determined"}
    assert set(told.verdicts[4:]) == {"not determined"}
    assert told.advised_rank in (4, None)
