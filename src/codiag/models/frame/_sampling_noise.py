r"""What sampling alone shows of a second moment, beside the components that are there.

With signs :math:`\epsilon_s` drawn at random, :math:`\sum_s \epsilon_s a_s b_s^\top / n` has the distribution of the
error of the mean :math:`\sum_s a_s b_s^\top / n` to first order, whatever the order of the samples. A component is
shown where the moment is well above that error: along its own direction, and where no component is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator, svds

N_DRAWS = 8
"""Draws of signs to average over."""
SEED = 0x5160
"""Of the signs: not one by which users shuffle their samples, since signs that follow these are not random."""
SMALL = 500
"""Sides up to which singular values are found by a dense decomposition."""


def random_signs(n: int) -> np.ndarray:
    """Return signs (draws, n)."""
    return np.random.default_rng(SEED).choice([-1.0, 1.0], (N_DRAWS, n))


def random_bits(start: int, n: int) -> np.ndarray:
    """Return a random bit for each of n samples from number `start` on: the same whatever parts they come in."""
    mixed = (np.arange(start, start + n, dtype=np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    # Twice: after one round, bits at regular distances, one for each block of equal parts, follow a pattern.
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (mixed >> np.uint64(63)).astype(bool)


def weakest_direction(mean: Any, errors: Sequence[Any], k: int) -> tuple[float, float]:
    """Return the k-th singular value of a matrix, and what sampling alone would show, from draws of its error.

    Matrices are dense or sparse. A value no larger than the noise says that the direction may be sampling alone.
    """
    left, sizes, right = _leading(mean, k)
    return float(sizes[k - 1]), noise_of(errors, left, right)


def noise_of(errors: Sequence[Any], left: np.ndarray, right: np.ndarray) -> float:
    """Return the error along the last of k orthonormal directions, or beside all of them, whichever is larger.

    The former, in the mean square, is that of the size itself. The latter is the operator norm where there are no
    components, and what a further one would be taken for. Between the two, errors turn directions and add no size.
    """
    own = [float(left[:, -1] @ (error @ right[:, -1])) for error in errors]
    spare = min(left.shape[0], right.shape[0]) - left.shape[1]
    if spare <= 0:
        return float(np.sqrt(np.mean(np.square(own))))
    some = errors if spare < N_DRAWS else errors[: N_DRAWS // 2]  # norms of small matrices vary most
    beside = np.mean([norm_beside(error, left, right) for error in some])
    # One more direction is searched than is left beside them.
    return float(max(np.sqrt(np.mean(np.square(own))), beside * _usual_norm(spare + 1) / _usual_norm(spare)))


def _usual_norm(m: int) -> float:
    """Return the mean operator norm of m x m normal variables: its limit, corrected at m = 1, to 3 % for all m."""
    return 2 * float(np.sqrt(m)) - 1.2 * m ** (-1 / 6)


def norm_beside(matrix: Any, left: np.ndarray, right: np.ndarray, n_steps: int = 5) -> float:
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


def weakest(mean: np.ndarray, halves: Sequence[np.ndarray], k: int) -> tuple[float, float]:
    """Return the k-th singular value of a matrix, and what sampling adds to directions as weak as that one.

    The latter from the difference of estimates by halves of the data, beside the k - 1 stronger directions.
    """
    left, sizes, right = np.linalg.svd(mean)
    gap = (halves[0] - halves[1]) / 2
    return float(sizes[k - 1]), norm_beside(gap, left[:, : k - 1], right[: k - 1].T)


def is_hidden(size: float, noise: float, k: int) -> bool:
    """Return whether the weakest of k components is no larger than sampling alone would show."""
    return k > 1 and size < 2 * noise


def hidden_component(size: float, noise: float, k: int) -> tuple[str, ...]:
    """Return what a user must be told where the weakest of k components is no larger than sampling alone would show."""
    if not is_hidden(size, noise, k):
        return ()
    return (
        f"n_components={k} may be more than the data shows: the last singular value of the second moment "
        f"is {size:.2g}, sampling noise {noise:.2g}; ask for fewer, or give more data",
    )


def _leading(matrix: Any, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the leading singular vectors and values of a matrix: (m, k), (k,) and (n, k)."""
    if max(matrix.shape) <= SMALL:
        left, sizes, right = np.linalg.svd(matrix @ np.eye(matrix.shape[1]), full_matrices=False)
        return left[:, :k], sizes[:k], right[:k].T
    left, sizes, right = svds(matrix, k=k, v0=np.random.default_rng(0).standard_normal(min(matrix.shape)))
    order = np.argsort(-sizes)
    return left[:, order], sizes[order], right[order].T
