from __future__ import annotations

import numpy as np
import pytest

from assertions import assert_unit_columns
from codiag.synthetic import matrix_stack, mild_factor, orthonormal_factor, projection_stack, unit_factor


@pytest.mark.parametrize("make", [orthonormal_factor, unit_factor, mild_factor])
def test_factors_have_unit_columns_and_follow_the_seed(make):
    factor = make(7, 4, seed=3)
    assert factor.shape == (7, 4)
    assert_unit_columns(factor, 1e-14)
    np.testing.assert_array_equal(factor, make(7, 4, seed=3))
    assert not np.allclose(factor, make(7, 4, seed=4))


def test_orthonormal_columns_are_orthonormal_and_mild_ones_well_conditioned():
    np.testing.assert_allclose(
        orthonormal_factor(6, 4, seed=0).T @ orthonormal_factor(6, 4, seed=0), np.eye(4), atol=1e-14
    )
    assert np.linalg.cond(mild_factor(50, 50, seed=0)) < 4
    assert np.linalg.cond(unit_factor(50, 50, seed=0)) > 20


def test_noise_has_the_stated_size():
    symmetric = matrix_stack(np.zeros((30, 1)), 200, noise=0.1, seed=0).matrices
    np.testing.assert_array_equal(symmetric, symmetric.transpose(0, 2, 1))
    off = symmetric[:, *np.triu_indices(30, 1)]
    assert np.std(off) == pytest.approx(0.1, rel=0.02)
    assert np.std(np.diagonal(symmetric, axis1=1, axis2=2)) == pytest.approx(0.1 * np.sqrt(2), rel=0.03)
    free = matrix_stack(np.zeros((30, 1)), 200, right_factor=np.zeros((20, 1)), noise=0.1, seed=0).matrices
    assert free.shape == (200, 30, 20)
    assert np.std(free) == pytest.approx(0.1, rel=0.02)


def test_projections_are_contractions_of_one_tensor():
    factor, weights = orthonormal_factor(5, 5, seed=0), np.arange(1.0, 6.0)
    stack = projection_stack(factor, weights, 40, seed=1)
    np.testing.assert_allclose(stack.matrices, (factor * stack.diagonals[:, None, :]) @ factor.T, atol=1e-14)
    noisy = projection_stack(factor, weights, 40, noise=0.1, seed=1)
    difference = (noisy.matrices - stack.matrices).reshape(40, -1)
    assert np.linalg.matrix_rank(difference) == 5  # forty projections of a tensor with five slices
    np.testing.assert_allclose(noisy.matrices, noisy.matrices.transpose(0, 2, 1))
