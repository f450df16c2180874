"""Random problems whose answer is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from codiag.tensors import FactoredTensor, symmetrize

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
    symmetric = symmetrize(rng.standard_normal((size, size, size)))
    diagonals = (directions.T @ factor) * weights
    matrices = (factor * diagonals[:, None, :]) @ factor.T + noise * np.moveaxis(symmetric @ directions, 2, 0)
    return Stack(matrices, factor, factor, diagonals)


@dataclass(frozen=True, eq=False)
class Problem:
    """A noisy tensor, and the components it was made from."""

    tensor: np.ndarray
    weights: np.ndarray  # (k,)
    factors: tuple[np.ndarray, ...]  # (d_m, k), unit columns; one and the same array where symmetric


def noisy_tensor(
    shape: Sequence[int], rank: int, *, symmetric: bool = False, noise: float = 0.0, seed: Seed = None
) -> Problem:
    r"""Return a tensor with unit factors uniform on the sphere and weights N(0, 1), plus Gaussian noise.

    The noise R, symmetrised where the tensor is symmetric, is scaled to :math:`\|\epsilon R\| = \epsilon \|T\|`.
    """
    rng = np.random.default_rng(seed)
    factors = tuple(unit_factor(size, rank, rng) for size in (shape[:1] if symmetric else shape))
    factors = factors * len(shape) if symmetric else factors
    weights = rng.standard_normal(rank)
    clean = FactoredTensor(weights, factors).to_dense()
    errors = rng.standard_normal(tuple(shape))
    errors = symmetrize(errors) if symmetric else errors
    return Problem(clean + noise * np.linalg.norm(clean) / np.linalg.norm(errors) * errors, weights, factors)


def nonorthogonal_model(size: int, rank: int, *, noise: float, seed: Seed = None) -> Problem:
    r"""Return a tensor of the authors' non-orthogonal experiments.

    Unit factors uniform on the sphere, weights that are squared Gaussians, and :math:`\epsilon` times independent
    Gaussian entries, not symmetrised: factorize it with ``symmetric=True``.
    """
    rng = np.random.default_rng(seed)
    factors = (unit_factor(size, rank, rng),) * 3
    weights = rng.standard_normal(rank) ** 2
    clean = FactoredTensor(weights, factors).to_dense()
    return Problem(clean + noise * rng.standard_normal(clean.shape), weights, factors)


def orthogonal_model(size: int, rank: int, *, noise: float, seed: Seed = None) -> Problem:
    r"""Return a tensor of the authors' orthogonal experiments.

    Orthonormal factors, weights that are squared Gaussians, and :math:`\epsilon` times another tensor with orthonormal
    factors, of unit weights.
    """
    rng = np.random.default_rng(seed)
    factors, errors = ((orthonormal_factor(size, rank, rng),) * 3 for _ in range(2))
    weights = rng.standard_normal(rank) ** 2
    clean = FactoredTensor(weights, factors).to_dense()
    return Problem(clean + noise * FactoredTensor(np.ones(rank), errors).to_dense(), weights, factors)


def _unit(columns: np.ndarray) -> np.ndarray:
    return columns / np.linalg.norm(columns, axis=0)
