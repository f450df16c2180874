"""The strongest rank-one terms of many tensors at once, with as much search for each."""

from __future__ import annotations

import numpy as np

from codiag._arrays import adjoint, conjugate
from codiag.least_squares._tolerances import TINY

N_PAIRS = 4
"""Starts from singular vectors of the unfoldings."""

N_SWEEPS, N_LAST = 6, 10
"""Sweeps from all starts, and from the best one of each tensor."""


def strongest_terms(stack: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return the strongest rank-one term of each of a stack of tensors, by power iterations: weight and unit columns.

    Iterations begin at leading singular vectors of the unfoldings, and at the largest entry. All tensors are searched
    alike, so that their weights can be compared: of noise, they are a few per cent below the largest ones.

    Parameters
    ----------
    stack : array of shape (n, d_0, d_1, ...)

    Returns
    -------
    weights : array of shape (n,)
    factors : list of arrays of shape (n, d_m)
    """
    n, sizes = stack.shape[0], stack.shape[1:]
    sides = [
        np.ascontiguousarray(np.moveaxis(stack, mode + 1, 1)).reshape(n, size, -1) for mode, size in enumerate(sizes)
    ]
    corner = np.unravel_index(np.argmax(np.abs(stack).reshape(n, -1), axis=1), sizes)
    factors = []
    for side, row in zip(sides, corner, strict=True):
        axis = np.zeros((n, side.shape[1], 1), stack.dtype)
        axis[np.arange(n), row] = 1
        factors.append(np.concatenate([_singular_vectors(side), axis], axis=2))
    for _ in range(N_SWEEPS):
        weights = _sweep(sides, factors)
    best = np.argmax(weights, axis=1)[:, None, None]
    factors = [np.take_along_axis(factor, best, axis=2) for factor in factors]
    for _ in range(N_LAST):
        weights = _sweep(sides, factors)
    return weights[:, 0], [factor[:, :, 0] for factor in factors]


def _singular_vectors(side: np.ndarray) -> np.ndarray:
    """Return leading left singular vectors of unfoldings (n, d, e); if there are too few, the last one again."""
    _, rows, columns = side.shape
    if rows <= columns:
        found = np.linalg.eigh(side @ adjoint(side))[1][:, :, : -N_PAIRS - 1 : -1]
    else:
        found = side @ np.linalg.eigh(adjoint(side) @ side)[1][:, :, : -N_PAIRS - 1 : -1]
        found = found / (np.linalg.norm(found, axis=1, keepdims=True) + TINY)
    return np.concatenate([found, *[found[:, :, -1:]] * (N_PAIRS - found.shape[2])], axis=2)


def _sweep(sides: list[np.ndarray], factors: list[np.ndarray]) -> np.ndarray:
    """Improve each mode in turn, in place, and return the weights."""
    weights = np.zeros(factors[0].shape[::2])
    for mode, side in enumerate(sides):
        others = [conjugate(factor) for other, factor in enumerate(factors) if other != mode]
        rows = others[0]
        for other in others[1:]:
            rows = (rows[:, :, None, :] * other[:, None, :, :]).reshape(rows.shape[0], -1, rows.shape[2])
        image = side @ rows
        weights = np.linalg.norm(image, axis=1)
        factors[mode] = image / (weights[:, None, :] + TINY)
    return weights
