"""What makes components identifiable, and what a fit says about its own."""

from __future__ import annotations

import numpy as np
import pytest

import codiag
from codiag.diagnosis import factor_condition, incoherence, kruskal_condition, kruskal_rank, uniqueness_moduli
from codiag.synthetic import noisy_tensor, unit_factor
from codiag.tensors import FactoredTensor


def test_what_makes_factors_identifiable():
    factor = np.linalg.cholesky(0.7 * np.eye(5) + 0.3).T  # cosines of 0.3
    assert incoherence(factor) == pytest.approx(0.3)
    assert factor_condition(np.eye(4)[:, :3]) == pytest.approx(1)
    assert kruskal_rank(factor) == 5
    twins = np.column_stack([np.eye(3), [1.0, 1.0, 0.0]])
    assert kruskal_rank(twins) == 2
    assert kruskal_rank(np.column_stack([np.eye(3), [2.0, 0.0, 0.0]])) == 1
    assert kruskal_condition([unit_factor(4, 5, seed) for seed in range(3)])
    assert not kruskal_condition([unit_factor(2, 4, seed) for seed in range(3)])
    assert kruskal_condition([unit_factor(size, 2, size) for size in (2, 2, 2)])  # 6 = 2 * 2 + 2, just enough
    assert not kruskal_condition([unit_factor(4, 4, 0), unit_factor(4, 4, 1), np.ones((3, 4))])  # 9 < 2 * 4 + 2


def test_many_columns_are_not_called_dependent_without_a_test():
    """Kruskal ranks of generic columns are 20, and 60 >= 2 * 25 + 2; more subsets than anybody would test."""
    factors = [unit_factor(20, 25, seed) for seed in range(3)]
    assert kruskal_rank(factors[0]) is None
    assert kruskal_condition(factors) is None
    assert kruskal_condition([unit_factor(5, 25, seed) for seed in range(3)]) is False  # 15 at most
    tensor = FactoredTensor(np.ones(25), factors).to_dense()
    fit = codiag.factorize(tensor, 25, method=codiag.methods.NLS(init=(np.ones(25), factors)), rng=0)
    assert "Kruskal" not in str(fit.diagnose())


def test_columns_are_compared_by_the_hermitian_product():
    orthogonal = np.array([[1, 1], [1j, -1j]])
    assert incoherence(orthogonal) == pytest.approx(0)
    assert uniqueness_moduli(orthogonal) == pytest.approx(np.eye(2))


def test_a_fit_says_which_components_to_trust():
    good = codiag.factorize(noisy_tensor((8, 9, 10), 3, noise=1e-3, rng=0).tensor, 3, rng=0).diagnose()
    assert str(good) == "3 of 3 components are determined."
    assert good.unique

    rng = np.random.default_rng(0)
    sides = [unit_factor(size, 3, rng) for size in (10, 11, 12)]
    weak = FactoredTensor(np.array([5.0, 4.0, 0.05]), sides).to_dense() + 0.01 * rng.standard_normal((10, 11, 12))
    told = codiag.factorize(weak, 3, rng=0).diagnose()
    assert told.verdicts == ("determined", "determined", "not determined")
    assert "Component 3 is not determined: not significant" in str(told)

    for side in sides:
        side[:, 1] = side[:, 0] + 0.15 * side[:, 1]
        side[:, 1] /= np.linalg.norm(side[:, 1])
    similar = FactoredTensor(np.array([2.0, 2.0, 2.0]), sides).to_dense() + 0.004 * rng.standard_normal((10, 11, 12))
    told = codiag.factorize(similar, 3, rng=0).diagnose()
    assert np.max(told.pairs["congruence"]) > 0.9
    assert max(told.modes["condition"]) > 5
