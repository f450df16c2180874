"""Alternating least squares in its plainest form, to compare with: random start, pseudo-inverse, nothing else."""

from __future__ import annotations

import numpy as np


def relative_error(tensor: np.ndarray, factors: list[np.ndarray]) -> float:
    letters = "abcdefgh"[: tensor.ndim]
    model = np.einsum(",".join(f"{letter}z" for letter in letters) + "->" + letters, *factors)
    return float(np.linalg.norm(tensor - model) / np.linalg.norm(tensor))


def sweep(tensor: np.ndarray, factors: list[np.ndarray]) -> list[np.ndarray]:
    """Solve for one factor after the other, all but the last at unit length."""
    factors = list(factors)
    for mode in range(tensor.ndim):
        others = [factor for other, factor in enumerate(factors) if other != mode]
        columns, gram = others[0], others[0].T @ others[0]
        for factor in others[1:]:
            columns = (columns[:, None, :] * factor[None, :, :]).reshape(-1, factor.shape[1])
            gram = gram * (factor.T @ factor)
        unfolded = np.moveaxis(tensor, mode, 0).reshape(tensor.shape[mode], -1)
        factors[mode] = unfolded @ columns @ np.linalg.pinv(gram)
        if mode < tensor.ndim - 1:
            lengths = np.linalg.norm(factors[mode], axis=0)
            factors[mode] = factors[mode] / np.where(lengths > 0, lengths, 1)
    return factors


def best_of(tensor: np.ndarray, rank: int, n_starts: int, seed: int, n_sweeps: int = 200) -> float:
    """Return the least relative error of several random starts."""
    rng = np.random.default_rng(seed)
    errors = []
    for _ in range(n_starts):
        factors, error, before = [rng.standard_normal((size, rank)) for size in tensor.shape], np.inf, np.inf
        for _ in range(n_sweeps):
            factors = sweep(tensor, factors)
            before, error = error, relative_error(tensor, factors)
            if before - error < 1e-9:
                break
        errors.append(error)
    return min(errors)
