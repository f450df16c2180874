r"""What sampling alone shows of a second moment, beside the components that are there.

With signs :math:`\epsilon_s` that are drawn at random and balance, :math:`\sum_s \epsilon_s a_s b_s^\top / n` has the
distribution of the error of the mean :math:`\sum_s a_s b_s^\top / n` to first order, whatever the order of the samples
and whatever they have in common. A component is shown where the moment is well above that, beside stronger ones.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator, svds

N_DRAWS = 4
"""Draws of signs to average over: norms of random matrices vary little."""
SMALL = 500
"""Sides up to which singular values are found by a dense decomposition."""


def random_signs(n: int, n_blocks: int | None = None) -> np.ndarray:
    """Return signs (draws, n) of sum zero, or one; where neighbours depend on each other, of one sign in a block."""
    blocks = np.arange(n) if n_blocks is None else np.arange(n) * min(n_blocks, n) // max(n, 1)
    count = int(blocks[-1]) + 1 if n else 0
    balanced = np.where(np.arange(count) % 2 == 0, 1.0, -1.0)
    rng = np.random.default_rng(0)
    return np.stack([rng.permutation(balanced)[blocks] for _ in range(N_DRAWS)])


def weakest_direction(mean: Any, errors: Sequence[Any], k: int) -> tuple[float, float]:
    """Return the k-th singular value of a matrix, and the mean size of errors beside the k - 1 stronger directions.

    Matrices are dense or sparse. Two matrices that are alike in size say that the k-th direction may be sampling alone.
    """
    left, sizes, right = _leading(mean, k)
    return float(sizes[k - 1]), float(
        np.mean([norm_beside(error, left[:, : k - 1], right[:, : k - 1]) for error in errors])
    )


def norm_beside(matrix: Any, left: np.ndarray, right: np.ndarray, n_steps: int = 10) -> float:
    """Return the operator norm of a matrix between the complements of orthonormal columns, by powers where large."""

    def beside(columns: np.ndarray, vector: np.ndarray) -> np.ndarray:
        return vector - columns @ (columns.T @ vector)

    if max(matrix.shape) <= SMALL and not isinstance(matrix, LinearOperator):
        inside = beside(left, matrix @ beside(right, np.eye(matrix.shape[1])))
        return float(np.linalg.norm(inside, 2))
    vector = beside(right, np.random.default_rng(0).standard_normal(matrix.shape[1]))
    size = 0.0
    for _ in range(n_steps):
        length = float(np.linalg.norm(vector))
        if length == 0:
            return 0.0
        image = beside(left, matrix @ (vector / length))
        size = float(np.linalg.norm(image))
        vector = beside(right, matrix.T @ image)
    return size


def warn_if_hidden(size: float, noise: float, k: int) -> None:
    """Warn where the weakest component of the second moment is no larger than what sampling alone would show."""
    if k > 1 and size < 2 * noise:
        warnings.warn(
            f"n_components={k} may be more than the data shows: the last singular value of the second moment "
            f"is {size:.2g}, sampling noise {noise:.2g}; ask for fewer, or give more data",
            UserWarning,
            stacklevel=3,
        )


def _leading(matrix: Any, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the leading singular vectors and values of a matrix: (m, k), (k,) and (n, k)."""
    if max(matrix.shape) <= SMALL:
        left, sizes, right = np.linalg.svd(matrix @ np.eye(matrix.shape[1]), full_matrices=False)
        return left[:, :k], sizes[:k], right[:k].T
    left, sizes, right = svds(matrix, k=k, v0=np.random.default_rng(0).standard_normal(min(matrix.shape)))
    order = np.argsort(-sizes)
    return left[:, order], sizes[order], right[order].T
