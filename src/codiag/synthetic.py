"""Random problems whose answer is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np

Seed = int | Sequence[int] | np.random.Generator | None


@dataclass(frozen=True, eq=False)
class Stack:
    """Matrices with common factors, and what they were made from."""

    matrices: np.ndarray  # (n, d, d')
    factor: np.ndarray  # (d, k)
    right_factor: np.ndarray  # (d', k), the same array as `factor` where the matrices are symmetric
    diagonals: np.ndarray  # (n, k)


def orthonormal_factor(size: int, rank: int, seed: Seed = None) -> np.ndarray:
    """Return `rank` orthonormal columns, uniformly distributed."""
    columns, triangle = np.linalg.qr(np.random.default_rng(seed).standard_normal((size, rank)))
    return columns * np.sign(np.diag(triangle))


def unit_factor(size: int, rank: int, seed: Seed = None) -> np.ndarray:
    """Return `rank` columns, each uniform on the sphere: badly conditioned where the rank is close to the size."""
    return _unit(np.random.default_rng(seed).standard_normal((size, rank)))


def mild_factor(size: int, rank: int, seed: Seed = None, *, spread: float = 0.3) -> np.ndarray:
    """Return orthonormal columns plus `spread` times random unit ones, rescaled: not orthogonal, well conditioned."""
    rng = np.random.default_rng(seed)
    return _unit(orthonormal_factor(size, rank, rng) + spread * unit_factor(size, rank, rng))


def matrix_stack(
    factor: np.ndarray,
    n_matrices: int,
    *,
    right_factor: np.ndarray | None = None,
    noise: float = 0.0,
    seed: Seed = None,
) -> Stack:
    """Return matrices U diag(d_l) U^T with Gaussian diagonals, plus noise of this standard deviation in each entry.

    The noise is symmetric, with twice the variance on the diagonal; with a `right_factor` V the matrices are
    U diag(d_l) V^T and the noise has independent entries.
    """
    rng = np.random.default_rng(seed)
    diagonals = rng.standard_normal((n_matrices, factor.shape[1]))
    right = factor if right_factor is None else right_factor
    errors = rng.standard_normal((n_matrices, factor.shape[0], right.shape[0]))
    if right is factor:
        errors = (errors + errors.transpose(0, 2, 1)) / np.sqrt(2)
    matrices = (factor * diagonals[:, None, :]) @ right.T + noise * errors
    return Stack(matrices, factor, right, diagonals)


def projection_stack(
    factor: np.ndarray, weights: np.ndarray, n_projections: int, *, noise: float = 0.0, seed: Seed = None
) -> Stack:
    """Return projections along random unit vectors of sum_i w_i u_i (x) u_i (x) u_i + noise, R symmetrised Gaussian."""
    rng = np.random.default_rng(seed)
    size = factor.shape[0]
    directions = _unit(rng.standard_normal((size, n_projections)))
    gaussian = rng.standard_normal((size, size, size))
    symmetric = sum(gaussian.transpose(axes) for axes in permutations(range(3))) / 6
    diagonals = (directions.T @ factor) * weights
    matrices = (factor * diagonals[:, None, :]) @ factor.T + noise * np.moveaxis(symmetric @ directions, 2, 0)
    return Stack(matrices, factor, factor, diagonals)


def _unit(columns: np.ndarray) -> np.ndarray:
    return columns / np.linalg.norm(columns, axis=0)
