"""Fourth cumulants of whitened samples, contracted with directions: never an array of the fourth power of the size."""

from __future__ import annotations

import numpy as np

from codiag._array import blocks
from codiag.diagonalize import Diagonalizer

TOLERANCE = 1e-11
"""Change of the rotation at which directions and factors have become the same."""


def projected_cumulants(samples: np.ndarray, directions: np.ndarray) -> np.ndarray:
    r"""Return :math:`\mathrm{cum}(u^\top x, u^\top x, x, x)` for each unit row u, of white samples (n, k).

    That is :math:`E[(u^\top x)^2 x x^\top] - I - 2 u u^\top`: sums over samples of weighted outer products.
    """
    n, k = samples.shape
    moments = np.zeros((directions.shape[0], k, k))
    for rows in blocks(n, k * k):
        part = samples[rows]
        weights = part @ directions.T
        for moment, weight in zip(moments, weights.T, strict=True):
            scaled = part * weight[:, None]
            moment += scaled.T @ scaled
    return moments / n - np.eye(k) - 2 * directions[:, :, None] * directions[:, None, :]


def plug_in_rotation(
    samples: np.ndarray, start: np.ndarray, diagonalizer: Diagonalizer, max_rounds: int, seed: int | None
) -> tuple[np.ndarray, int, bool]:
    """Diagonalize cumulants along directions, then along what was found, until that is the same: rows, rounds, whether.

    Along the sources themselves k matrices say to first order all that the k (k + 1) / 2 of all pairs would.
    """
    rotation = start
    for count in range(1, max_rounds + 1):
        found = diagonalizer(projected_cumulants(samples, rotation), seed=seed).inverse
        agreement = found @ rotation.T
        rotation = found
        if np.max(np.abs(np.max(np.abs(agreement), axis=1) - 1)) < TOLERANCE:  # cosines: of the square of the change
            return rotation, count, True
    return rotation, max_rounds, False
