"""No run is led astray. Fewer trials than in benchmarks/RESULTS.md, the same problems."""

from __future__ import annotations

import numpy as np
import pytest

import codiag
from codiag.diagonalize import UWEDGE, Jacobi, JDi, OrthogonalNewton
from codiag.synthetic import matrix_stack, mild_factor, orthonormal_factor, unit_factor
from simulated import projection_stack

NOISES = [1e-6, 1e-3, 1e-2, 5e-2]


def orthogonal_problem(model, size, noise, rng):
    factor = orthonormal_factor(size, size, rng)
    if model == "spectra":
        return matrix_stack(factor, size, noise=noise, rng=rng)
    if model == "equal weights":
        return projection_stack(factor, np.ones(size), size, noise=noise, seed=rng)
    return projection_stack(factor, rng.standard_normal(size) ** 2, 5, noise=noise, seed=rng)


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("model", ["spectra", "equal weights", "squared weights"])
def test_orthogonal_default_ends_at_the_best_off(model, noise):
    for trial in range(5):
        matrices = orthogonal_problem(model, 15, noise, np.random.default_rng([trial, 15])).matrices
        baseline = Jacobi(max_sweeps=500)(matrices).off_diagonal
        assert OrthogonalNewton()(matrices, rng=trial).off_diagonal < 1.001 * baseline


@pytest.mark.slow
@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("make", [mild_factor, unit_factor])
def test_free_default_is_as_near_the_truth_as_the_most_patient_method(make, noise):
    for trial in range(4):
        rng = np.random.default_rng([trial, 20])
        stack = matrix_stack(make(20, 20, rng), 20, noise=noise, rng=rng)
        baseline = codiag.factor_error(JDi()(stack.matrices), stack.factor)
        assert codiag.factor_error(UWEDGE()(stack.matrices, rng=trial), stack.factor) < 2 * baseline
