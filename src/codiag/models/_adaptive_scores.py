"""Scores of distributions that are not known, fitted in the span of a few functions."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from codiag._array import blocks


class Basis(NamedTuple):
    """Functions of a source and their derivatives, (n_functions, n, k) each."""

    values: np.ndarray
    slopes: np.ndarray


N_FUNCTIONS = 5
IN_CACHE = 64 * N_FUNCTIONS
"""Entries to count for a sample and source, so that the functions of a block of samples stay in the cache."""
RIDGE = 1e-2
"""Added to the correlations of the functions: those of a source with two values are all the same."""


def basis(sources: np.ndarray) -> Basis:
    """Return the identity, the square, and the three nonlinearities of FastICA: cube, tanh and the Gaussian's."""
    squares, bent = sources**2, np.tanh(sources)
    bell = np.exp(-squares / 2)
    values = np.stack([sources, squares, sources * squares, bent, sources * bell])
    slopes = np.stack([np.ones_like(sources), 2 * sources, 3 * squares, 1 - bent**2, (1 - squares) * bell])
    return Basis(values, slopes)


def fitted_scores(sources: np.ndarray) -> np.ndarray:
    r"""Return coefficients of the basis for each source of unit variance, (n_functions, k).

    Those that minimize :math:`E[\varphi(s)^2] - 2 E[\varphi'(s)]`, the distance to the score :math:`-(\log p)'` of the
    source's density up to a constant, which needs no density (Pham & Garat, 1997).
    """
    n, k = sources.shape
    grams, slopes, means = (
        np.zeros((k, N_FUNCTIONS, N_FUNCTIONS)),
        np.zeros((k, N_FUNCTIONS)),
        np.zeros((k, N_FUNCTIONS)),
    )
    for rows in blocks(n, IN_CACHE * k):
        some = basis(sources[rows])
        values = np.moveaxis(some.values, 2, 0)
        grams += values @ values.transpose(0, 2, 1)
        means += values.sum(axis=2)
        slopes += some.slopes.sum(axis=1).T
    means, slopes = means / n, slopes / n
    centered = grams / n - means[:, :, None] * means[:, None, :]
    sizes = np.sqrt(np.maximum(np.einsum("kii->ki", centered), RIDGE * np.einsum("kii->ki", grams) / n))
    scaled = centered / (sizes[:, :, None] * sizes[:, None, :]) + RIDGE * np.eye(N_FUNCTIONS)
    coefficients: np.ndarray = (np.linalg.solve(scaled, (slopes / sizes)[:, :, None])[:, :, 0] / sizes).T
    return coefficients


def scored(sources: np.ndarray, coefficients: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the scores of samples and their slopes, (n, k) each."""
    values, slopes = (np.einsum("fnk,fk->nk", part, coefficients) for part in basis(sources))
    return values, slopes
