"""Tensors with noise of several kinds, for benchmarks and tests of what depends on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from scipy.ndimage import gaussian_filter1d

KERNEL = 1.0
"""Width of the kernel along which noise is smooth: entries h apart have the correlation exp(-h^2 / 4)."""


def _poisson(rng: np.random.Generator, clean: np.ndarray, level: float) -> np.ndarray:
    scale = np.sum(clean) / (level**2 * np.sum(clean**2))
    return rng.poisson(clean * scale) / scale - clean


NOISES: Mapping[str, Callable[[np.random.Generator, np.ndarray, float], np.ndarray]] = {
    "white": lambda rng, clean, _: rng.standard_normal(clean.shape),
    "proportional": lambda rng, clean, _: rng.standard_normal(clean.shape) * clean,
    "Poisson": _poisson,
    "smooth along one mode": lambda rng, clean, _: gaussian_filter1d(rng.standard_normal(clean.shape), KERNEL, axis=2),
    "smooth along two": lambda rng, clean, _: gaussian_filter1d(
        gaussian_filter1d(rng.standard_normal(clean.shape), KERNEL, axis=2), KERNEL, axis=1
    ),
    "a scale for each sample": lambda rng, clean, _: (
        np.exp(rng.standard_normal((clean.shape[0], 1, 1))) * rng.standard_normal(clean.shape)
    ),
    "Student": lambda rng, clean, _: rng.standard_t(2.5, clean.shape),
}
"""By name: noise for a tensor of positive entries, at some level."""


def curves(rng: np.random.Generator, size: int, rank: int) -> np.ndarray:
    """Return bell curves, one after the other."""
    centers = (np.linspace(0.15, 0.85, rank) + rng.uniform(-0.05, 0.05, rank)) * size
    return np.exp(-0.5 * ((np.arange(size)[:, None] - centers) / (rng.uniform(0.08, 0.2, rank) * size)) ** 2)


def spectra(
    kind: str, shape: tuple[int, int, int] = (16, 22, 18), rank: int = 2, level: float = 0.05, seed: int = 0
) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
    """Return unit factors, weights, and a tensor of them with noise of a kind, a share of its norm."""
    rng = np.random.default_rng(seed)
    factors = [rng.gamma(2.0, 1.0, (shape[0], rank)), *(curves(rng, size, rank) for size in shape[1:])]
    clean = np.einsum("ir,jr,kr->ijk", *factors)
    noise = NOISES[kind](rng, clean, level)
    noise = noise * level * np.linalg.norm(clean) / np.linalg.norm(noise)
    weights = np.prod([np.linalg.norm(factor, axis=0) for factor in factors], axis=0)
    return [factor / np.linalg.norm(factor, axis=0) for factor in factors], weights, clean + noise
