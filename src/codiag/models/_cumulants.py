"""Fourth cumulants of whitened samples, contracted with directions: never an array of the fourth power of the size."""

from __future__ import annotations

import numpy as np

from codiag._array import blocks
from codiag.diagonalize import Diagonalizer, Jacobi

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
    samples: np.ndarray,
    start: np.ndarray,
    diagonalizer: Diagonalizer,
    max_rounds: int,
    seed: int | None,
    tol: float = TOLERANCE,
) -> tuple[np.ndarray, int, bool]:
    """Diagonalize cumulants along directions, then along what was found, until that is the same: rows, rounds, whether.

    Along the sources themselves k matrices say to first order all that the k (k + 1) / 2 of all pairs would. After the
    first round they are those of the sources found so far, from which Jacobi's rotations begin.
    """
    rotation = diagonalizer(projected_cumulants(samples, start), seed=seed).inverse
    unit = np.eye(rotation.shape[0])
    for count in range(2, max_rounds + 1):
        change = Jacobi(tol=tol, max_sweeps=4)(projected_cumulants(samples @ rotation.T, unit)).inverse
        rotation = change @ rotation
        if np.max(np.abs(change - np.rint(change))) < tol:  # but for their order and signs
            return rotation, count, True
    return rotation, max_rounds, False
