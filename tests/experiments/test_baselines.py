"""The paper's baselines: each finds what it is made for, and fails where theory says."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

import codiag
from assertions import assert_same_factors
from cases import DIAGONALIZERS, METHODS
from codiag.diagonalize import QRJ1D, UWEDGE, Jacobi, OrthogonalNewton, TwoSided
from codiag.methods import NOJD, OJD
from codiag.synthetic import noisy_tensor, unit_factor
from codiag.tensors import FactoredTensor
from experiments.estimators.doubled import symmetrized
from experiments.estimators.givens import Givens
from experiments.estimators.slices import SD2, Lathauwer
from experiments.simulated import orthogonal_model


def name_of(method):
    return type(method).__name__


@pytest.mark.parametrize("method", [Givens(), SD2(), Lathauwer()], ids=name_of)
def test_made_for(method):
    problem = orthogonal_model(12, 12, noise=0.0, seed=0)
    fit = codiag.factorize(problem.tensor, 12, method=method, symmetric=True, rng=0)
    assert_same_factors(fit, problem, 1e-6)
    assert sum(stage.flops for stage in fit.history) > 0


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("method", [SD2(), Lathauwer()], ids=name_of)
def test_free_factors_without_noise(method, symmetric):
    problem = noisy_tensor((12, 12, 12), 12, symmetric=symmetric, rng=0)
    fit = codiag.factorize(problem.tensor, 12, method=method, symmetric=symmetric, rng=0)
    assert_same_factors(fit, problem, 1e-6)


@pytest.mark.filterwarnings("ignore::codiag.ConvergenceWarning")
def test_givens_needs_orthogonal_factors():
    factor = unit_factor(10, 10, 3)
    tensor = FactoredTensor(np.linspace(1, 2, 10), [factor] * 3).to_dense()
    fit = codiag.factorize(tensor, 10, method=Givens(), symmetric=True, rng=0)
    assert codiag.factor_error(fit, [factor] * 3) > 0.1


def test_two_projections_are_unstable():
    """Where many projections at once are not: the paper's point."""
    problem = orthogonal_model(30, 30, noise=0.01, seed=0)
    errors = [
        codiag.factor_error(codiag.factorize(problem.tensor, 30, method=method, symmetric=True, rng=0), problem)
        for method in (SD2(), "ojd1")
    ]
    assert errors[0] > 3 * errors[1]


def test_lathauwer_finds_more_components_than_two_modes_measure():
    problem = noisy_tensor((6, 6, 20), 9, rng=0)
    assert_same_factors(codiag.factorize(problem.tensor, 9, method=Lathauwer(), rng=0), problem, 1e-6)


@pytest.mark.parametrize(
    ("method", "shape", "rank", "words"),
    [
        (Lathauwer(), (50, 50, 50), 50, "needs a system"),
        (Lathauwer(max_bytes=1e4), (6, 6, 6), 5, "above max_bytes=10000"),
        (Lathauwer(), (3, 3, 4), 5, "^rank must"),
        (SD2(), (3, 4, 5), 5, "^rank must"),
        (Givens(), (4, 4, 4), 2, "Givens is for"),
    ],
)
def test_what_is_refused(method, shape, rank, words):
    with pytest.raises(ValueError, match=words):
        codiag.factorize(np.random.default_rng(0).standard_normal(shape), rank, method=method)


def test_tensors_of_lower_rank_are_refused():
    entry = np.zeros((4, 5, 6))
    entry[1, 2, 3] = 1
    for tensor, method in ((np.ones((3, 5, 3)), Lathauwer()), (entry, SD2(n_pairs=1))):
        with pytest.raises(ValueError, match="^rank must"):
            codiag.factorize(tensor, 3, method=method, rng=0)


def test_givens_refuses_a_range_with_more_directions_than_components():
    tensor = np.zeros((4, 4, 4))
    for place in permutations(range(3)):
        tensor[place] = 1
    with pytest.raises(ValueError, match="^tensor must"):
        codiag.factorize(tensor, 2, method=Givens(), symmetric=True, rng=0)


def test_givens_needs_room():
    with pytest.raises(ValueError, match="^rank must"):
        codiag.factorize(noisy_tensor((3, 3, 3), 2, symmetric=True, rng=0).tensor, 4, method=Givens(), symmetric=True)


@pytest.mark.parametrize("diagonalizer", [Jacobi(), TwoSided()], ids=["orthogonal", "two-sided"])
def test_lathauwer_needs_free_symmetric_diagonalizers(diagonalizer):
    with pytest.raises(ValueError, match="symmetric diagonalizer with"):
        Lathauwer(diagonalizer=diagonalizer)


def test_reduction_to_twice_the_size_finds_the_orthogonal_minimizer():
    """The paper's reduction and the two-sided steps minimize the same energy."""
    stack = DIAGONALIZERS["TwoSided orthogonal"].stack(7, 9, noise=0.02)
    direct = DIAGONALIZERS["TwoSided orthogonal"].exactly(stack.matrices, rng=0)
    for method in (Jacobi(tol=1e-11), OrthogonalNewton(statistical_tol=1e-12, tol=1e-11)):
        reduced = symmetrized(method)(stack.matrices, rng=0)
        assert_same_factors(reduced, (direct.factor, direct.right_factor), 1e-7)
        again = symmetrized(method)(stack.matrices, init=(direct.inverse, direct.right_inverse), rng=0)
        assert_same_factors(again, (direct.factor, direct.right_factor), 1e-7)


@pytest.mark.parametrize(
    ("method", "case", "tol"),
    [
        (OJD(diagonalizer=symmetrized(Jacobi())), "ojd1", 1e-7),
        (NOJD(diagonalizer=symmetrized(QRJ1D(max_sweeps=2000))), "nojd1", 1e-4),
    ],
    ids=["orthogonal", "free"],
)
def test_asymmetric_tensors_through_doubled_matrices(method, case, tol):
    problem = METHODS[case].problem((5, 6, 7), 4, symmetric=False)
    assert_same_factors(codiag.factorize(problem.tensor, 4, method=method, rng=0), problem, tol)


def test_what_cannot_be_doubled_is_refused():
    with pytest.raises(ValueError, match="degenerate for UWEDGE"):
        symmetrized(UWEDGE())
