"""Least squares written a second time, plainly and for small arrays only: what fits are held against."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def composed(weights: np.ndarray, factors: Sequence[np.ndarray]) -> np.ndarray:
    """Return the array that components add up to, in double precision."""
    letters = "abcdefgh"[: len(factors)]
    terms = ",".join(f"{letter}z" for letter in letters)
    arrays = [np.asarray(array, dtype=np.float64) for array in (weights, *factors)]
    return np.einsum(f"z,{terms}->{letters}", *arrays, optimize=len(factors) > 3)


def khatri_rao(factors: Sequence[np.ndarray]) -> np.ndarray:
    """Return the columnwise Kronecker product, the first factor varying slowest."""
    product = factors[0]
    for factor in factors[1:]:
        product = (product[:, None, :] * factor[None, :, :]).reshape(-1, factor.shape[1])
    return product


def residual(entries: np.ndarray, factors: Sequence[np.ndarray]) -> np.ndarray:
    """Return what factors without weights leave over."""
    return entries - composed(np.ones(factors[0].shape[1]), factors)


def sweep(entries: np.ndarray, factors: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Solve for every factor in turn, the others fixed."""
    factors = list(factors)
    for mode in range(entries.ndim):
        product = khatri_rao([factor for other, factor in enumerate(factors) if other != mode])
        unfolded = np.moveaxis(entries, mode, -1).reshape(-1, entries.shape[mode])
        factors[mode] = np.linalg.lstsq(product, unfolded, rcond=1e-12)[0].T
    return factors


def best_als(entries: np.ndarray, rank: int, rng: np.random.Generator) -> float:
    """Return the least error of plain alternating least squares from three random starts."""
    best = np.inf
    for _ in range(3):
        factors = [rng.standard_normal((size, rank)) for size in entries.shape]
        before = np.inf
        for _ in range(60):
            factors = sweep(entries, factors)
            error = float(np.linalg.norm(residual(entries, factors)))
            if before - error < 1e-5:
                break
            before = error
        best = min(best, error)
    return best


def jacobian(factors: Sequence[np.ndarray]) -> np.ndarray:
    """Return the derivatives of all entries, (entries, unknowns)."""
    blocks = []
    for mode, factor in enumerate(factors):
        others = [other for place, other in enumerate(factors) if place != mode]
        block = np.einsum("xa,ri->xrai", np.eye(factor.shape[0]), khatri_rao(others))
        block = block.reshape(factor.shape[0], *(other.shape[0] for other in others), *factor.shape)
        blocks.append(np.moveaxis(block, 0, mode).reshape(-1, factor.size))
    return np.concatenate(blocks, axis=1)


def descend(entries: np.ndarray, factors: Sequence[np.ndarray], n_steps: int) -> float:
    """Return half the squared residual after so many steps of Levenberg and Marquardt."""
    left, damping = residual(entries, factors), 1e-4
    value = float(np.sum(left**2)) / 2
    ends = np.cumsum([factor.size for factor in factors])[:-1]
    for _ in range(n_steps):
        derivatives = jacobian(factors)
        scales = np.sqrt(np.sum(derivatives**2, axis=0))
        scales = np.maximum(scales, 1e-8 * scales.max() + 1e-300)
        for _ in range(6):
            system = np.concatenate([derivatives, np.diag(np.sqrt(damping) * scales)])
            step = np.linalg.lstsq(system, np.concatenate([left.ravel(), np.zeros(scales.size)]), rcond=None)[0]
            parts = zip(factors, np.split(step, ends), strict=True)
            trial = [factor + part.reshape(factor.shape) for factor, part in parts]
            after = float(np.sum(residual(entries, trial) ** 2)) / 2
            if after < value:
                break
            damping *= 10
        else:
            return value
        factors, left, value, damping = trial, residual(entries, trial), after, max(damping / 5, 1e-12)
    return value
