"""Densities of Gaussians with spherical or diagonal covariances, and expectation maximization."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from codiag.models.base import RowSums, sum_over_rows
from codiag.models.mixtures._gaussian_moments import Location


def log_densities(samples: np.ndarray, means: np.ndarray, variances: np.ndarray) -> np.ndarray:
    """Return the log-density (n, k) of each Gaussian at each sample; variances (k,), or (k, d) by feature."""
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


@dataclass(frozen=True, eq=False)
class EMSums(RowSums):
    """Sums of an EM step: of the probabilities of Gaussians, and of samples and squares times these."""

    mass: np.ndarray  # (k,)
    totals: np.ndarray  # (k, d)
    squares: np.ndarray  # (k,), or (k, d) by feature
    log_likelihood: float  # of the parameters before the step


def em_sums(samples: np.ndarray, location: Location, *model: np.ndarray) -> EMSums:
    """Return the sums of an EM step over samples, in the unit of a location; `model` are means, variances, weights."""
    # blocks whose arrays fit into the cache of a processor
    return sum_over_rows(_em_sums, location.inside(np.asarray(samples, dtype=np.float64)), *model, n_rows=2048)


def _em_sums(rows: np.ndarray, means: np.ndarray, variances: np.ndarray, weights: np.ndarray) -> EMSums:
    joint = log_densities(rows, means, variances) + np.log(weights)
    levels = logsumexp(joint, axis=1)
    shares = np.exp(joint - levels[:, None])
    squares = shares.T @ (np.sum(rows**2, axis=1) if variances.ndim == 1 else rows**2)
    return EMSums(shares.sum(axis=0), shares.T @ rows, squares, float(levels.sum()))


def from_em_sums(sums: EMSums, floor: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return means, variances and weights after one step of expectation maximization."""
    mass = sums.mass + 1e-10
    means = sums.totals / mass[:, None]
    # Differences of squares are precise, since samples are centered and of unit size.
    if sums.squares.ndim == 1:
        variances = (sums.squares / mass - np.sum(means**2, axis=1)) / means.shape[1]
    else:
        variances = sums.squares / mass[:, None] - means**2
    return means, np.maximum(variances, floor), mass / mass.sum()


def log_likelihood(samples: np.ndarray, means: np.ndarray, variances: np.ndarray, weights: np.ndarray) -> float:
    """Return the log-likelihood of samples."""
    joint = log_densities(np.asarray(samples, dtype=np.float64), means, variances) + np.log(weights)
    return float(np.sum(logsumexp(joint, axis=1)))
