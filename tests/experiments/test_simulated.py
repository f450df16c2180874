"""The tensors of the paper's experiments have the noise that its text, its scripts or its theory say."""

from __future__ import annotations

import numpy as np
import pytest

from assertions import assert_unit_columns
from experiments.simulated import operator_norm, paper_tensor


def unfolded_rank(tensor):
    return int(np.linalg.matrix_rank(tensor.reshape(tensor.shape[0], -1), tol=1e-9 * np.linalg.norm(tensor)))


def noise_of(model, size, rank, *, orthogonal, seed):
    noisy, clean = (
        paper_tensor(size, rank, orthogonal=orthogonal, noise=eps, model=model, seed=seed) for eps in (1.0, 0.0)
    )
    return noisy.tensor - clean.tensor, noisy


@pytest.mark.parametrize("rank", [3, 12])
def test_the_authors_orthogonal_noise_has_full_rank_and_squared_gaussian_weights(rank):
    norms, squares, weights = [], [], []
    for seed in range(200):
        noise, problem = noise_of("authors", 12, rank, orthogonal=True, seed=seed)
        assert unfolded_rank(noise) == 12  # whatever the rank of the tensor
        sizes = np.linalg.svd(noise.reshape(12, -1), compute_uv=False)  # of orthogonal components: their weights
        norms.append(sizes.mean())
        squares.append((sizes**2).mean())
        weights.append(problem.weights)
        np.testing.assert_allclose(problem.factors[0].T @ problem.factors[0], np.eye(rank), atol=1e-12)
    assert np.mean(norms) == pytest.approx(1, rel=0.1)  # E[n^2] of a Gaussian n, and E[n^4]: nothing is scaled
    assert np.mean(squares) == pytest.approx(3, rel=0.25)
    assert np.min(weights) >= 0
    assert np.mean(weights) == pytest.approx(1, rel=0.15)
    assert np.mean(np.square(weights)) == pytest.approx(3, rel=0.3)


def test_the_authors_other_noise_has_independent_gaussian_entries():
    noise, problem = noise_of("authors", 30, 5, orthogonal=False, seed=0)
    assert np.std(noise) == pytest.approx(1, rel=0.02)
    assert not np.allclose(noise, noise.transpose(1, 0, 2))
    assert unfolded_rank(noise) == 30
    assert np.all(problem.weights >= 0)
    assert_unit_columns(problem.factors[0], 1e-14)


@pytest.mark.parametrize("orthogonal", [True, False])
def test_the_noise_of_the_text_has_gaussian_entries_and_weights(orthogonal):
    noise, _ = noise_of("text", 30, 5, orthogonal=orthogonal, seed=0)
    assert np.std(noise) == pytest.approx(1, rel=0.02)
    assert unfolded_rank(noise) == 30
    weights = np.concatenate(
        [paper_tensor(6, 6, orthogonal=orthogonal, noise=0, model="text", seed=s).weights for s in range(300)]
    )
    assert np.mean(weights) == pytest.approx(0, abs=0.1)
    assert np.var(weights) == pytest.approx(1, rel=0.1)


def test_the_noise_of_the_theory_is_symmetric_and_of_unit_operator_norm():
    noise, _ = noise_of("theory", 8, 4, orthogonal=True, seed=0)
    np.testing.assert_allclose(noise, noise.transpose(2, 0, 1), atol=1e-14)
    assert operator_norm(noise, seed=1) == pytest.approx(1, rel=1e-3)
