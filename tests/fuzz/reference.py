"""Least squares written a second time, plainly and for small arrays only: what fits are held against."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

LETTERS = "abcdefgh"


def composed(weights: np.ndarray, factors: Sequence[np.ndarray]) -> np.ndarray:
    """Return the array that components add up to, in double precision."""
    letters = LETTERS[: len(factors)]
    terms = ",".join(f"{letter}z" for letter in letters)
    arrays = [np.asarray(array, dtype=np.float64) for array in (weights, *factors)]
    return np.einsum(f"z,{terms}->{letters}", *arrays, optimize=len(factors) > 3)


def khatri_rao(factors: Sequence[np.ndarray]) -> np.ndarray:
    """Return the columnwise Kronecker product, the first factor varying slowest."""
    product = factors[0]
    for factor in factors[1:]:
        product = (product[:, None, :] * factor[None, :, :]).reshape(-1, factor.shape[1])
    return product


def unfolded(entries: np.ndarray, mode: int) -> np.ndarray:
    """Return the matrix with one mode as rows, the others as columns in their order."""
    return np.moveaxis(entries, mode, 0).reshape(entries.shape[mode], -1)


def sweep(entries: np.ndarray, factors: list[np.ndarray]) -> list[np.ndarray]:
    """Solve for every factor in turn, the others fixed."""
    for mode in range(entries.ndim):
        product = khatri_rao([factor for other, factor in enumerate(factors) if other != mode])
        factors[mode] = np.linalg.lstsq(product, unfolded(entries, mode).T, rcond=1e-12)[0].T
    return factors


def error_of(entries: np.ndarray, factors: Sequence[np.ndarray]) -> float:
    """Return the relative error of factors without weights."""
    left = entries - composed(np.ones(factors[0].shape[1]), factors)
    return float(np.linalg.norm(left) / np.linalg.norm(entries))


def best_als(entries: np.ndarray, rank: int, rng: np.random.Generator, n_starts: int = 3, n_sweeps: int = 60) -> float:
    """Return the least relative error of plain alternating least squares from random starts."""
    best = 1.0
    for _ in range(n_starts):
        factors = [rng.standard_normal((size, rank)) for size in entries.shape]
        before = np.inf
        for _ in range(n_sweeps):
            factors = sweep(entries, factors)
            error = error_of(entries, factors)
            if before - error < 1e-5:
                break
            before = error
        best = min(best, error)
    return best


class Point(NamedTuple):
    """Components without weights; with signs, one factor stands for all modes."""

    factors: list[np.ndarray]
    signs: np.ndarray | None
    order: int

    @classmethod
    def of(cls, weights: np.ndarray, factors: Sequence[np.ndarray], symmetric: bool) -> Point:
        """Spread the weights of a fit over its modes."""
        order, sizes = len(factors), np.abs(weights) ** (1 / len(factors))
        if symmetric:
            return cls([np.asarray(factors[0], dtype=np.float64) * sizes], np.where(weights < 0, -1.0, 1.0), order)
        scaled = [np.asarray(factor, dtype=np.float64) * sizes for factor in factors]
        scaled[0] = scaled[0] * np.where(weights < 0, -1.0, 1.0)
        return cls(scaled, None, order)

    def modes(self) -> list[np.ndarray]:
        """Return a factor for every mode."""
        return self.factors if self.signs is None else self.factors * self.order

    def residual(self, entries: np.ndarray) -> np.ndarray:
        """Return what the components leave over."""
        signs = np.ones(self.factors[0].shape[1]) if self.signs is None else self.signs
        return entries - composed(signs, self.modes())

    def jacobian(self) -> np.ndarray:
        """Return the derivatives of all entries, (entries, unknowns)."""
        modes, blocks = self.modes(), []
        for mode, factor in enumerate(modes):
            others = khatri_rao([other for place, other in enumerate(modes) if place != mode])
            shape = [other.shape[0] for place, other in enumerate(modes) if place != mode]
            block = np.einsum("xa,ri->xrai", np.eye(factor.shape[0]), others)
            block = np.moveaxis(block.reshape(factor.shape[0], *shape, *factor.shape), 0, mode)
            blocks.append(block.reshape(-1, factor.size))
        if self.signs is None:
            return np.concatenate(blocks, axis=1)
        return sum(blocks) * np.tile(self.signs, self.factors[0].shape[0])

    def moved(self, step: np.ndarray) -> Point:
        """Return the point a step away."""
        ends = np.cumsum([factor.size for factor in self.factors])[:-1]
        parts = zip(self.factors, np.split(step, ends), strict=True)
        return self._replace(factors=[factor + part.reshape(factor.shape) for factor, part in parts])

    def shaken(self, size: float, rng: np.random.Generator) -> Point:
        """Return a point nearby, every entry moved by this share of the largest column, or of one if all are small."""
        scale = max(1.0, *(np.linalg.norm(factor, axis=0).max() / np.sqrt(factor.shape[0]) for factor in self.factors))
        return self._replace(factors=[f + size * scale * rng.standard_normal(f.shape) for f in self.factors])


def descend(entries: np.ndarray, point: Point, n_steps: int, *, exact: bool = True) -> tuple[Point, float]:
    """Take so many steps of Levenberg and Marquardt; return where they end, and half the squared distance there.

    Where they need not be exact, by normal equations, which is faster.
    """
    residual = point.residual(entries)
    value, damping = float(np.sum(residual**2)) / 2, 1e-4
    for _ in range(n_steps):
        jacobian = point.jacobian()
        scales = np.sqrt(np.sum(jacobian**2, axis=0))
        scales = np.maximum(scales, 1e-8 * scales.max() + 1e-300)
        for _ in range(6):
            trial = point.moved(_step(jacobian, residual.ravel(), damping, scales, exact))
            left = trial.residual(entries)
            after = float(np.sum(left**2)) / 2
            if after < value:
                break
            damping *= 10
        else:
            return point, value
        point, residual, value, damping = trial, left, after, max(damping / 5, 1e-12)
    return point, value


def _step(jacobian: np.ndarray, residual: np.ndarray, damping: float, scales: np.ndarray, exact: bool) -> np.ndarray:
    if not exact:
        gram = jacobian.T @ jacobian + np.diag(max(damping, 1e-9) * scales**2 + 1e-12 * scales.max() ** 2 + 1e-300)
        return np.linalg.solve(gram, jacobian.T @ residual)
    system = np.concatenate([jacobian, np.diag(np.sqrt(damping) * scales)])
    return np.linalg.lstsq(system, np.concatenate([residual, np.zeros(scales.size)]), rcond=None)[0]
