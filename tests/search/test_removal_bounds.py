"""Lower bounds of what components are worth, which spare steps if there are many."""

from __future__ import annotations

import numpy as np
import pytest

import codiag
from codiag.least_squares import ROUGH, minimize
from codiag.search import WEAK_RATIO, LocalMinimum, objectives_without, removal_rise_bounds
from codiag.synthetic import unit_factor
from codiag.tensors import FactoredTensor, symmetrize


@pytest.fixture(scope="module")
def end():
    """A minimum with 55 components of a symmetric tensor of order four with noise, most of which stand out."""
    rng = np.random.default_rng(0)
    truth = FactoredTensor(rng.standard_normal(55), [unit_factor(12, 55, rng)] * 4, symmetric=True)
    clean, noise = truth.to_dense(), symmetrize(rng.standard_normal((12,) * 4))
    entries = clean + 1e-3 * np.linalg.norm(clean) / np.linalg.norm(noise) * noise
    problem = codiag.Problem(entries, 55, symmetric=True)
    return LocalMinimum(problem, minimize(problem, truth, ROUGH))


def test_no_rise_is_below_its_bound(end):
    bounds = removal_rise_bounds(end.problem, end.result.components)
    rises = objectives_without(end.problem, end.result.components) - end.objective
    assert np.all(bounds > 0)
    assert np.all(bounds <= rises)
    assert np.median(rises / bounds) < 1000


def test_only_worths_in_doubt_are_computed(end, monkeypatch):
    """All decisions are the same as with all steps."""
    computed = []

    def counted(problem, components, chosen=None):
        computed.append(range(components.rank) if chosen is None else chosen)
        return objectives_without(problem, components, chosen)

    monkeypatch.setattr("codiag.search._local_minimum.objectives_without", counted)
    contributions = LocalMinimum(end.problem, end.result).contributions
    assert sum(map(len, computed)) < 30
    monkeypatch.setattr(
        "codiag.search._contributions.removal_rise_bounds", lambda _, components: np.zeros(components.rank)
    )
    exact = LocalMinimum(end.problem, end.result).contributions
    assert len(computed[-1]) == 55
    for level in (1, WEAK_RATIO, WEAK_RATIO**2):
        np.testing.assert_array_equal(contributions > level, exact > level)


def test_there_is_no_bound_if_scales_may_move_between_modes():
    rng = np.random.default_rng(1)
    components = FactoredTensor(np.ones(3), [unit_factor(5, 3, rng) for _ in range(3)])
    problem = codiag.Problem(components.to_dense() + 1e-3 * rng.standard_normal((5, 5, 5)), 3, symmetric=False)
    np.testing.assert_array_equal(removal_rise_bounds(problem, components), 0)


def test_few_components_need_no_bound(monkeypatch):
    def refused(*_):
        raise AssertionError("a bound costs more than the steps")

    monkeypatch.setattr("codiag.search._contributions.removal_rise_bounds", refused)
    planted = codiag.synthetic.noisy_tensor((6,) * 3, 4, symmetric=True, noise=1e-2, rng=0)
    problem = codiag.Problem(planted.tensor, 4, symmetric=True)
    start = FactoredTensor(planted.weights, planted.factors, symmetric=True)
    assert np.min(LocalMinimum(problem, minimize(problem, start, ROUGH)).contributions) > 0
