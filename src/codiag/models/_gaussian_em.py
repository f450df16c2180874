"""Steps of expectation maximization for Gaussians whose covariances are diagonal, or multiples of the identity."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_array

from codiag._parts import is_matrix
from codiag.models._sums import Totals

ROWS = 2048
"""Samples that are worked on together, so that what is computed of them stays in the cache of a processor."""


def log_densities(samples: np.ndarray, means: np.ndarray, variances: np.ndarray) -> np.ndarray:
    """Return the logarithm of each Gaussian's density at each sample; variances (k,), or (k, d) by feature."""
    origin, scale = means.mean(axis=0), np.sqrt(np.max(variances))
    inside, centers, widths = (samples - origin) / scale, (means - origin) / scale, variances / scale**2
    if variances.ndim == 1:
        squares = np.sum(inside**2, axis=1)[:, None] - 2 * inside @ centers.T + np.sum(centers**2, axis=1)
        distances, logarithms = np.maximum(squares, 0) / widths, samples.shape[1] * np.log(widths)
    else:
        shifted = centers / widths
        squares = inside**2 @ (1 / widths).T - 2 * inside @ shifted.T + np.sum(shifted * centers, axis=1)
        distances, logarithms = np.maximum(squares, 0), np.sum(np.log(widths), axis=1)
    return -0.5 * (distances + logarithms + samples.shape[1] * (np.log(2 * np.pi) + 2 * np.log(scale)))


def em_sums(samples: np.ndarray, means: np.ndarray, variances: np.ndarray, weights: np.ndarray) -> Totals:
    """Return what expectation maximization sums: the mass of Gaussians, and samples and squares by their shares."""
    k, d = means.shape
    mass, totals, squares = np.zeros(k), np.zeros((k, d)), np.zeros(variances.shape)
    for first in range(0, samples.shape[0], ROWS):
        rows = samples[first : first + ROWS]
        shares = log_densities(rows, means, variances) + np.log(weights)
        np.exp(shares - shares.max(axis=1, keepdims=True), out=shares)
        shares /= shares.sum(axis=1, keepdims=True)
        mass += shares.sum(axis=0)
        totals += shares.T @ rows
        squares += shares.T @ (np.sum(rows**2, axis=1) if variances.ndim == 1 else rows**2)
    return Totals(mass, totals, squares)


def from_em_sums(sums: Totals, floor: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return means, variances and weights after one step of expectation maximization."""
    mass, totals, squares = sums.values
    mass = mass + 1e-10
    means = totals / mass[:, None]
    # Squares of distances are differences of squares, precise since samples are centered and of unit size.
    if squares.ndim == 1:
        spread = (squares / mass - np.sum(means**2, axis=1)) / means.shape[1]
    else:
        spread = squares / mass[:, None] - means**2
    return means, np.maximum(spread, floor), mass / mass.sum()


def em_sums_of_part(part: Any, center: np.ndarray, unit: float, *parameters: np.ndarray) -> Totals:
    """Return what expectation maximization sums over a part of the samples, in the unit of the moments."""
    return em_sums((samples_of(part) - center) / unit, *parameters)


def samples_of(part: Any) -> np.ndarray:
    """Return a part as an array of doubles; the parts of a bag are lists of arrays."""
    return check_array(as_rows(part), dtype=np.float64, input_name="X")


def as_rows(part: Any) -> Any:
    """Return a part as one array, where it is a list of arrays."""
    listed_rows = isinstance(part, list | tuple) and all(is_matrix(rows) for rows in part)
    return np.concatenate(part) if listed_rows else part
