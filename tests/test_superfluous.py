"""More components than the data hold: told from weak ones, and fitted one at a time."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import codiag
from codiag.problem import Problem
from codiag.search import has_superfluous, regrown
from codiag.synthetic import unit_factor
from codiag.tensors import FactoredTensor

NOISE = 5e-4
"""Standard deviation of an entry; the largest term of so much noise has a weight of about 0.005 here."""


def planted(weakest=1.0, *, symmetric=False):
    """Return four components, and a tensor of these with noise."""
    rng = np.random.default_rng(0)
    factors = [unit_factor(13, 4, rng)] * 3 if symmetric else [unit_factor(size, 4, rng) for size in (12, 13, 14)]
    components = FactoredTensor(np.array([2.0, 1.5, 1.2, weakest]), factors, symmetric=symmetric)
    noise = rng.standard_normal([factor.shape[0] for factor in factors])
    if symmetric:
        noise = sum(noise.transpose(axes) for axes in itertools.permutations(range(3))) / 6
    return components, components.to_dense() + NOISE * noise


def end_of(tensor, rank):
    """Return a fit, its components, and how far they are from the tensor."""
    fit = codiag.factorize(tensor, rank, seed=0)
    components = FactoredTensor(fit.weights, list(fit.factors), symmetric=fit.symmetric)
    return fit, components, (fit.relative_error * fit.norm) ** 2


@pytest.mark.parametrize(("rank", "weakest", "expected"), [(4, 1.0, False), (6, 1.0, True), (4, 0.02, False)])
def test_superfluous_components_are_told_from_weak_ones(rank, weakest, expected):
    tensor = planted(weakest)[1]
    _, components, left = end_of(tensor, rank)
    assert has_superfluous(Problem(tensor, rank), components, left) is expected


@pytest.mark.parametrize(("rank", "weakest"), [(4, 1.0), (4, 0.02), (5, 0.02)], ids=["none", "weak", "weak and more"])
def test_nothing_grows_anew_beyond_components_that_leave_more_than_noise(rank, weakest):
    tensor = planted(weakest)[1]
    _, components, left = end_of(tensor, rank)
    assert regrown(Problem(tensor, rank), components, left) is None


def test_noise_alone_has_no_components_to_begin_with():
    tensor = np.random.default_rng(0).standard_normal((8, 9, 10))
    _, components, left = end_of(tensor, 3)
    assert regrown(Problem(tensor, 3), components, left) is None


@pytest.mark.parametrize("symmetric", [False, True], ids=["free", "symmetric"])
def test_too_high_a_rank_leaves_the_components_where_they_are(symmetric):
    truth, tensor = planted(symmetric=symmetric)
    right, wrong = (codiag.factorize(tensor, rank, seed=0) for rank in (4, 6))
    assert any("stand out" in stage.name for stage in wrong.stages)
    assert wrong.converged
    assert wrong.relative_error < right.relative_error
    first = FactoredTensor(wrong.weights[:4], [factor[:, :4] for factor in wrong.factors], symmetric=symmetric)
    errors = [codiag.factor_error(found, truth.factors) for found in (right, first)]
    assert errors[1] < 1.5 * errors[0]
    assert wrong.diagnose().superfluous == (4, 5)
    assert "try rank 4" in str(wrong.diagnose())
