"""Matrices that have no factors in common: the answer is the lowest fixed point, whatever the seed."""

from __future__ import annotations

import numpy as np
import pytest

import codiag
from codiag._arrays import Extrapolation
from codiag.diagonalize import UWEDGE, Jacobi, MatrixStack, OrthogonalNewton, TwoSided, shear_step
from codiag.synthetic import matrix_stack, mild_factor, unit_factor
from reference.uwedge import plain_uwedge, scale_free_criterion


def covariances(seed: int, n: int = 20, size: int = 6) -> np.ndarray:
    samples = np.random.default_rng(seed).standard_normal((n, size, 2 * size))
    return samples @ samples.transpose(0, 2, 1) / (2 * size)


@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(4, 12))])
def test_free_factors_are_as_good_as_those_of_the_plain_iteration(seed):
    matrices = covariances(seed)
    expected = scale_free_criterion(plain_uwedge(matrices), matrices)
    for start in range(5):
        found = codiag.joint_diagonalize(matrices, rng=start).inverse
        assert scale_free_criterion(found, matrices) < 1.001 * expected


def test_acceleration_leaves_a_saddle():
    """x' = -x, y' = +0.2 y: plain steps leave the origin along y, and a secant method would go back to it."""
    point, path = np.array([[1.0], [1e-3]]), Extrapolation()
    for _ in range(40):
        point = point + path.step(np.array([[-0.9], [0.2]]) * point)
    assert abs(point[1, 0]) > 1
    point, path = np.array([[1.0], [1e-3]]), Extrapolation()
    for _ in range(40):
        point = point + path.step(np.array([[-0.9], [0.2]]) * point, avoid_saddles=False)
    assert abs(point[1, 0]) < 1e-6


def test_acceleration_still_cures_overshooting():
    """A plain step multiplies the distance by -1.4 here: not a saddle, and no reason to do without acceleration."""
    point, path = np.array([[1.0], [1.0]]), Extrapolation()
    for _ in range(8):
        point = point + path.step(np.array([[-2.4], [-0.5]]) * point)
    assert np.max(np.abs(point)) < 1e-6


@pytest.mark.parametrize("kind", ["free", "orthogonal", "two-sided", "two-sided orthogonal"])
def test_small_noise_needs_one_start(kind, monkeypatch):
    """Theory promises that the end is the only one, and nothing else is tried."""
    method = {
        "free": UWEDGE(),
        "orthogonal": OrthogonalNewton(),
        "two-sided": TwoSided(),
        "two-sided orthogonal": TwoSided(orthogonal=True),
    }[kind]
    monkeypatch.setattr(type(method), "_restarts", lambda *_: pytest.fail("one start was enough"))
    factor = (
        np.linalg.qr(np.random.default_rng(0).standard_normal((12, 12)))[0]
        if "orth" in kind
        else mild_factor(12, 12, 0)
    )
    method(matrix_stack(factor, 12, noise=0.01, rng=1).matrices, rng=0)


@pytest.mark.parametrize("seed", range(4))
def test_the_rate_of_contraction_is_not_underestimated(seed):
    """Where the theory says that steps contract, the derivative of the step has a spectral radius below that rate."""
    matrices = matrix_stack(unit_factor(8, 8, seed), 12, noise=3e-3, rng=seed).matrices
    core, probe = MatrixStack(matrices), np.ones(8)
    point = UWEDGE(statistical_tol=0.0)(matrices, rng=0).inverse
    at = shear_step(core, point, probe)
    columns = []
    for i, j in np.argwhere(~np.eye(8, dtype=bool)):
        shift = np.zeros((8, 8))
        shift[i, j] = 1e-6
        moved = shear_step(core, np.linalg.solve(np.eye(8) - shift, at.point), probe)
        columns.append(((moved.move - at.move + shift) / 1e-6)[~np.eye(8, dtype=bool)])
    assert np.max(np.abs(np.linalg.eigvals(np.array(columns).T))) < at.contraction


@pytest.mark.parametrize("seed", range(8))
def test_orthogonal_factors_do_not_depend_on_the_seed_and_reach_jacobi(seed):
    matrices = covariances(seed)
    found = [OrthogonalNewton()(matrices, rng=start).off_diagonal for start in range(4)]
    assert max(found) < 1.001 * Jacobi()(matrices).off_diagonal
    assert max(found) < 1.001 * min(found)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("orthogonal", [True, False])
def test_two_sided_factors_do_not_depend_on_the_seed(seed, orthogonal):
    matrices = np.abs(np.random.default_rng(seed).standard_normal((20, 5, 5)))
    found = []
    for start in range(4):
        fit = TwoSided(orthogonal=orthogonal)(matrices, rng=start)
        energy = np.sum((fit.inverse @ matrices @ fit.right_inverse.T) ** 2, axis=0)
        sizes = np.ones(5) if orthogonal else np.sqrt(np.diag(energy))
        found.append(np.sum((energy - np.diag(np.diag(energy))) / np.outer(sizes, sizes)))
    assert max(found) < 1.005 * min(found)
