"""Matrices with different factors on the two sides."""

from __future__ import annotations

import numpy as np
import pytest

import codiag
from assertions import assert_same_factors
from cases import DIAGONALIZERS
from codiag.diagonalize import TwoSided
from codiag.synthetic import matrix_stack, mild_factor, orthonormal_factor, unit_factor

TWO_SIDED = [name for name, case in DIAGONALIZERS.items() if not case.symmetric]


@pytest.mark.parametrize("name", TWO_SIDED)
@pytest.mark.parametrize("shape", [(4, 9), (9, 4), (6, 7)])
def test_rectangular_matrices(name, shape):
    case = DIAGONALIZERS[name]
    make = orthonormal_factor if case.orthogonal else unit_factor
    stack = matrix_stack(make(shape[0], 3, rng=1), 7, right_factor=make(shape[1], 3, rng=2), rng=3)
    fit = case.method(stack.matrices, rng=0)
    assert (fit.factor.shape, fit.right_factor.shape) == ((shape[0], 3), (shape[1], 3))
    assert_same_factors(fit, (stack.factor, stack.right_factor), 1e-6)
    np.testing.assert_allclose(fit.reconstruct(), stack.matrices, atol=1e-6)


@pytest.mark.parametrize("orthogonal", [True, False])
def test_full_rank_of_a_rectangle_is_its_smaller_side(orthogonal):
    make = orthonormal_factor if orthogonal else mild_factor
    stack = matrix_stack(make(5, 5, rng=1), 8, right_factor=make(9, 5, rng=2), noise=1e-5, rng=3)
    fit = TwoSided(orthogonal=orthogonal)(stack.matrices, rng=0)
    assert fit.factor.shape == (5, 5)
    assert_same_factors(fit, (stack.factor, stack.right_factor), 1e-3)


def test_transposed_matrices_exchange_the_sides():
    case = DIAGONALIZERS["TwoSided"]
    matrices = case.stack(6, 8, noise=1e-3).matrices
    fit = case.exactly(matrices, rng=0)
    mirrored = case.exactly(matrices.transpose(0, 2, 1), rng=0)
    assert_same_factors(mirrored, (fit.right_factor, fit.factor), 1e-7)
    assert_same_factors(fit.transposed(), (fit.right_factor, fit.factor), 0)


def test_symmetric_matrices_have_the_same_factors_on_both_sides():
    stack = matrix_stack(mild_factor(6, 6, rng=1), 8, rng=2)
    fit = TwoSided()(stack.matrices, rng=0)
    assert_same_factors(fit, (stack.factor, stack.factor), 1e-9)


def test_hard_problems_converge():
    """Random unit columns on both sides, condition numbers in the hundreds: unguarded steps run away here."""
    for seed in range(3):
        stack = matrix_stack(
            unit_factor(50, 50, rng=seed), 50, right_factor=unit_factor(50, 50, rng=seed + 10), noise=1e-3, rng=seed
        )
        fit = TwoSided(max_sweeps=1000)(stack.matrices, rng=0)
        assert fit.converged
        assert codiag.factor_error(fit, (stack.factor, stack.right_factor)) < 0.15
