"""Traps of this field, each of which caught somebody's code in a run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import codiag
from assertions import assert_same_factors
from cases import DIAGONALIZERS, SYMMETRIC
from codiag._checks import RankDeficientError
from codiag.diagonalize import UWEDGE, JDi, OrthogonalNewton, pencil_start, random_combinations
from codiag.synthetic import matrix_stack, mild_factor, orthonormal_factor, unit_factor
from simulated import projection_stack

EXCHANGE = np.array([[[0.0, 1.0], [1.0, 0.0]], [[0.0, 2.0], [2.0, 0.0]]])


@pytest.mark.parametrize("name", SYMMETRIC)
def test_empty_diagonals_are_no_solution(name):
    """0.5 atan2(toff, ton + hypot) is 0/0 here, and returns the identity as converged."""
    fit = SYMMETRIC[name].method(EXCHANGE, rng=0)
    assert fit.off_diagonal < 1e-20
    np.testing.assert_allclose(np.sort(np.abs(fit.diagonals)), [[1, 1], [2, 2]], atol=1e-9)


@pytest.mark.parametrize("name", ["UWEDGE", "JDi", "QRJ1D", "LUJ1D"])
def test_proportional_diagonals_are_reported(name):
    """Any scaling of one factor against the other diagonalizes the exchange matrices: free factors are not unique."""
    assert SYMMETRIC[name].method(EXCHANGE, rng=0).unresolved == ((0, 1),)


@pytest.mark.parametrize("name", SYMMETRIC)
def test_equal_diagonals_are_reported_and_do_not_keep_an_iteration_moving(name):
    """Any basis of the pair's plane diagonalizes if the factors are orthonormal; if they are free, by no means any."""
    case = SYMMETRIC[name]
    stack = case.stack(6, 7)
    diagonals = stack.diagonals.copy()
    diagonals[:, 4] = diagonals[:, 1]
    matrices = (stack.factor * diagonals[:, None, :]) @ stack.factor.T
    fit = case.method((matrices + matrices.transpose(0, 2, 1)) / 2, rng=0)
    assert fit.converged
    assert fit.off_diagonal < (1e-12 if case.slow else 1e-20)
    if case.slow:
        pytest.skip("linear convergence stops where the two still differ by more than rounding")
    assert len(fit.unresolved) == 1
    i, j = fit.unresolved[0]
    ratio = fit.diagonals[:, i] / fit.diagonals[:, j]
    np.testing.assert_allclose(ratio, ratio[0], atol=1e-9)
    assert np.all(np.isinf(fit.standard_errors[[i, j]]))
    assert np.all(np.delete(fit.standard_errors, [i, j]) < 1e-8)


@pytest.mark.parametrize("name", DIAGONALIZERS)
def test_identities_are_diagonal_and_nothing_else_is_known(name):
    fit = DIAGONALIZERS[name].method(np.stack([np.eye(3)] * 3), rng=0)
    assert fit.converged
    assert fit.off_diagonal < 1e-25
    assert fit.unresolved == ((0, 1), (0, 2), (1, 2))
    assert np.all(np.isinf(fit.standard_errors))


@pytest.mark.parametrize("factors", [(1, 1, 1, 1), (1, 2, -3), (1, 0)])
def test_multiples_of_one_matrix_are_diagonalized(factors):
    """The pencil is a multiple of the identity, and its eigenvectors say nothing."""
    matrix = np.random.default_rng(1).standard_normal((6, 6))
    matrix = matrix + matrix.T
    fit = UWEDGE()([factor * matrix for factor in factors], rng=0)
    assert fit.converged
    assert fit.off_diagonal < 1e-8


@pytest.mark.slow
def test_two_matrices_without_a_real_pencil():
    """Complex pairs of the pencil are a fixed point of the steps, with opposite diagonals, and no solution."""
    for seed in range(10):
        matrices = np.random.default_rng(seed).standard_normal((2, 5, 5))
        matrices = matrices + matrices.transpose(0, 2, 1)
        fit, baseline = UWEDGE()(matrices, rng=0), JDi()(matrices)  # such pairs need not have a minimizer
        assert not fit.converged or fit.off_diagonal < 1.5 * baseline.off_diagonal + 1e-12


def test_pairs_that_noise_drowns_are_reported():
    stack = matrix_stack(orthonormal_factor(6, 6, rng=0), 10, rng=1)
    diagonals = stack.diagonals.copy()
    diagonals[:, 4] = diagonals[:, 1] + 1e-5
    noise = matrix_stack(np.zeros((6, 1)), 10, noise=1e-3, rng=2).matrices
    clean = (stack.factor * diagonals[:, None, :]) @ stack.factor.T
    fit = OrthogonalNewton()((clean + clean.transpose(0, 2, 1)) / 2 + noise, rng=0)
    assert len(fit.unresolved) == 1


def test_well_separated_components_are_resolved():
    for name in ("OrthogonalNewton", "UWEDGE", "TwoSided"):
        case = DIAGONALIZERS[name]
        assert case.method(case.stack(8, 10, noise=1e-3).matrices, rng=0).unresolved == ()


@pytest.mark.parametrize("noise", [1e-9, 1e-11])
@pytest.mark.parametrize("name", SYMMETRIC)
def test_off_diagonal_energy_is_true_far_below_the_rounding_of_the_total(name, noise):
    """Total minus diagonal is exactly zero here; fixed thresholds would stop the iteration before."""
    case = SYMMETRIC[name]
    if case.slow:
        pytest.skip("steps of 1e-8 are its tolerance")
    size, n = 8, 10
    fit = case.method(case.stack(size, n, noise=noise).matrices, rng=0)
    expected = noise**2 * size * (size - 1) * (n - (1 if case.orthogonal else 2))
    # n is small and mild factors amplify the noise: a factor of three is enough to tell it from rounding.
    assert expected / 3 < fit.off_diagonal < 3 * expected


def test_complex_pencil_eigenpairs_are_repaired():
    """At this noise a third of the eigenvalues of the start come in complex pairs."""
    stack = matrix_stack(unit_factor(40, 40, rng=0), 40, noise=1e-3, rng=1)
    first, second = random_combinations(stack.matrices, np.random.default_rng(0), 2)
    assert np.iscomplex(np.linalg.eigvals(np.linalg.solve(second, first))).sum() >= 8
    fit = UWEDGE()(stack.matrices, rng=0)
    baseline = JDi()(stack.matrices)
    assert fit.converged
    assert codiag.factor_error(fit, stack.factor) < 1.2 * codiag.factor_error(baseline, stack.factor)


def test_singular_combinations_are_drawn_again(monkeypatch):
    """A start against a singular combination is impossible; another draw is not."""
    stack = matrix_stack(mild_factor(4, 4, rng=0), 5, rng=1)
    draws = iter(
        [
            np.stack([np.eye(4), np.zeros((4, 4))]),
            random_combinations(stack.matrices, np.random.default_rng(1), 2),
        ]
    )
    monkeypatch.setattr("codiag.diagonalize._starts.random_combinations", lambda *_: next(draws))
    left, _ = pencil_start(stack.matrices, np.random.default_rng(0))
    assert_same_factors(np.linalg.inv(left), stack.factor, 1e-8)


def test_single_precision_rotations_do_not_drift():
    """Products of many Cayley transforms leave orthogonality in float32 unless they are brought back."""
    stack = projection_stack(orthonormal_factor(40, 40, rng=0), np.ones(40), 40, noise=0.05, seed=1)
    fit = OrthogonalNewton()(stack.matrices.astype(np.float32), rng=0)
    assert fit.n_sweeps > 10
    assert np.abs(fit.factor.T @ fit.factor - np.eye(40)).max() < 2e-6


@pytest.mark.parametrize("name", DIAGONALIZERS)
@pytest.mark.parametrize("matrix", [np.ones((3, 3)), np.diag([1.0, 0, 0])], ids=["constant", "one-hot"])
def test_a_rank_above_that_of_the_matrices_is_refused_or_gives_numbers(name, matrix):
    method = replace(DIAGONALIZERS[name].method, rank=3)
    try:
        fit = method(np.stack([matrix, 2 * matrix]), rng=0)
    except RankDeficientError as error:
        assert "rank must be at most 1" in str(error) or not method.symmetric  # noqa: PT017
    else:
        assert np.all(np.isfinite(fit.factor))
        assert np.all(np.isfinite(fit.residuals))


@pytest.mark.parametrize("weight", [1e299, 1e-299])
def test_weights_whose_products_overflow_or_vanish_are_refused(weight):
    matrices = matrix_stack(unit_factor(3, 3, rng=0), 4, noise=0.1, rng=1).matrices
    with pytest.raises(ValueError, match="sample_weight times"):
        codiag.joint_diagonalize(matrices * weight**0.1, sample_weight=np.full(4, weight))
