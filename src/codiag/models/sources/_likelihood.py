r"""Likelihood steps and standard errors of a separation of sources by scores.

Every separation here makes some score :math:`z_i` of source i, a filtered, rescaled or nonlinear version of it,
uncorrelated with all other sources :math:`s_j`. If sources are still mixed by I + H, to first order

.. math:: y_{ij} = E[z_i s_j] = H_{ij} R_{ij} + H_{ji} R_{ii},

two equations for each pair. If sources are complex, :math:`y_{ij} = E[z_i \bar s_j]`, and :math:`\bar H_{ji}` stands in
place of :math:`H_{ji}`; scores are then filtered sources with a real response. Sampling errors of y are errors of the
mixing: the estimate is A (I + G) with

.. math:: G_{ij} = \alpha_{ij} \overline{z_i s_j} + \beta_{ij} \overline{s_i z_j} + \gamma_{ij} \overline{s_i s_j}.

For independent sources the variance of such means is a sum of products of two autocovariances, one of each source: a
product of spectra (Bartlett, 1946), which the product of their periodograms estimates without bias.

References
----------
D.-T. Pham and P. Garat, "Blind separation of mixture of independent sources through a quasi-maximum likelihood
approach", IEEE Trans. Signal Process. 45(7), 1997.
J. Miettinen, K. Illner, K. Nordhausen, H. Oja, S. Taskinen and F. J. Theis, "Separation of uncorrelated stationary time
series using autocovariance matrices", J. Time Ser. Anal. 37(3), 2016.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from scipy import fft

from codiag._arrays import adjoint, few_threads, squared_magnitudes


class Coefficients(NamedTuple):
    """Coefficients (k, k) of three means of products in the errors of the shares of source i in column j."""

    alpha: np.ndarray
    beta: np.ndarray
    gamma: np.ndarray

    @classmethod
    def of(cls, *parts: np.ndarray) -> Coefficients:
        """Return coefficients with zeros for pairs that are not determined, and on the diagonals."""
        others = ~np.eye(parts[0].shape[0], dtype=bool)
        return cls(*(np.where(np.isfinite(part) & others, part, 0.0) for part in parts))


class Transforms(NamedTuple):
    """Fourier transforms of sources and of their scores over a piece of time, (n_frequencies, k) each."""

    sources: np.ndarray
    scores: np.ndarray
    n: int  # number of samples
    length: int  # length of the transform


def score_coefficients(ratios: np.ndarray) -> Coefficients:
    r"""Return the coefficients that solve the two equations of each pair, given the matrix of :math:`R_{ij}`."""
    own = np.diag(ratios)
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = 1 / (ratios * ratios.T - np.outer(own, own))
        return Coefficients.of(ratios.T * scale, -own[:, None] * scale, np.zeros_like(scale))


def score_step(correlations: np.ndarray, ratios: np.ndarray, longest: float = 0.5) -> np.ndarray:
    r"""Return H from :math:`y_{ij}` and :math:`R_{ij}`, scaled to entries of at most `longest`."""
    alpha, beta, _ = score_coefficients(ratios)
    step: np.ndarray = alpha * correlations + beta * adjoint(correlations)
    size = float(np.max(np.abs(step)))
    return step if size <= longest else step * (longest / size)


def rotation_coefficients(diagonals: np.ndarray) -> Coefficients:
    r"""Return the coefficients of orthogonal joint diagonalization after whitening, for diagonals (n, k) of matrices.

    The score of a source is the combination of the matrices' operations with the source's diagonal as coefficients.
    """
    energy = np.sum(diagonals**2, axis=0)
    gaps = squared_gaps(diagonals)
    with np.errstate(divide="ignore", invalid="ignore"):
        alpha = -1 / gaps
        gamma = 0.5 + (energy[:, None] - energy[None, :]) / (2 * gaps)
    return Coefficients.of(alpha, -alpha, gamma)


def squared_gaps(diagonals: np.ndarray) -> np.ndarray:
    """Return the squared distances between the diagonals of components, (k, k)."""
    return np.stack([np.sum((diagonals - column[:, None]) ** 2, axis=0) for column in diagonals.T])


def share_variances(pieces: Iterable[Transforms], coefficients: Coefficients) -> np.ndarray:
    """Return the variance of the share of each source in the other columns of the mixing, (k, k)."""
    total, n_samples = np.zeros_like(coefficients.alpha), 0
    with few_threads(total.size):  # products of long and thin matrices gain nothing from a second thread
        for piece in pieces:
            total += _summed_variances(piece, coefficients)
            n_samples += piece.n
    return np.maximum(total, 0) / n_samples**2


def _summed_variances(piece: Transforms, coefficients: Coefficients) -> np.ndarray:
    """Return the variances of sums over one piece."""
    squares, scores = squared_magnitudes(piece.sources), squared_magnitudes(piece.scores)
    cross = piece.scores * piece.sources.conj()
    alpha, beta, gamma = coefficients
    twice = np.ones((squares.shape[0], 1))
    if squares.shape[0] < piece.length:  # positive frequencies stand for negative ones, too
        twice[1 : (piece.length + 1) // 2] = 2.0
    weighted = squares * twice
    scored, mixed = scores.T @ weighted, (cross.T @ (cross * twice)).real
    total = alpha**2 * scored + beta**2 * scored.T + 2 * alpha * beta * mixed
    if np.any(gamma):
        half = cross.real.T @ weighted
        total += gamma**2 * (squares.T @ weighted) + 2 * gamma * (alpha * half + beta * half.T)
    variances: np.ndarray = total / (piece.length * piece.n)
    return variances


def transformed(samples: np.ndarray) -> tuple[np.ndarray, int]:
    """Return the Fourier transform of samples, (n, k), and its length, with zeros appended against wrapping around."""
    n = samples.shape[0]
    # zeros, so that the end of a recording and its start are not correlated
    length = fft.next_fast_len(n + min(n, 1024), real=True)
    transform = fft.fft if np.iscomplexobj(samples) else fft.rfft
    return transform(samples, n=length, axis=0), length


def scale_variances(recordings: list[np.ndarray]) -> np.ndarray:
    """Return the variance of half the mean square of every source, which is that of its scale, by means of batches."""
    squares = np.concatenate([squared_magnitudes(sources) for sources in recordings])
    width = max(1, int(np.sqrt(len(squares))))
    batches = squares[: len(squares) // width * width].reshape(-1, width, squares.shape[1])
    variances: np.ndarray = batches.mean(axis=1).var(axis=0, ddof=1) / (4 * len(batches))
    return variances


def inverse_spectra(autocovariances: np.ndarray, floor: float) -> np.ndarray:
    r"""Return rows g with :math:`1 / f(\omega) = \sum_l g_l \cos(l \omega)`, f the spectra of autoregressions.

    They have the given autocovariances, (k, n_lags), with white noise of variance `floor` added. Predictors are
    computed by Levinson's recursion for all sources together. If autocovariances are complex, g is, and
    :math:`1 / f(\omega) = \mathrm{Re} \sum_l g_l e^{-i l \omega}`.
    """
    scale = autocovariances[:, :1].real
    values = autocovariances / scale
    values[:, 0] += floor
    n_lags = values.shape[1]
    predictors, errors = np.zeros_like(values), values[:, :1].real.copy()
    predictors[:, 0] = 1
    for order in range(1, n_lags):
        residuals = np.sum(predictors[:, :order] * values[:, order:0:-1], axis=1, keepdims=True)
        reflections = -residuals / errors
        predictors[:, : order + 1] += reflections * predictors[:, order::-1].conj()
        errors *= 1 - squared_magnitudes(reflections)
    forth, back = (np.fft.fft, np.fft.ifft) if np.iscomplexobj(values) else (np.fft.rfft, np.fft.irfft)
    power = np.abs(forth(predictors, n=2 * n_lags, axis=1)) ** 2
    inverse: np.ndarray = back(power, n=2 * n_lags, axis=1)[:, :n_lags] / (errors * scale)
    inverse[:, 1:] *= 2
    return inverse


def cosine_response(filters: np.ndarray, length: int) -> np.ndarray:
    r"""Return :math:`\sum_l g_l \cos(l \omega)` at the frequencies of a transform, (n_frequencies, k).

    If coefficients are complex, return :math:`\mathrm{Re} \sum_l g_l e^{-i l \omega}` at all frequencies. Lags beyond
    the length of the transform are reduced modulo the length, at which cosines are equal.
    """
    padded = np.zeros((-(-filters.shape[1] // length) * length, filters.shape[0]), dtype=filters.dtype)
    padded[: filters.shape[1]] = filters.T
    transform = np.fft.fft if np.iscomplexobj(filters) else np.fft.rfft
    return np.real(transform(padded.reshape(-1, length, filters.shape[0]).sum(axis=0), axis=0))


def joined_parts(values: np.ndarray, is_complex: bool) -> np.ndarray:
    """Return complex values (k, n_lags + 1) from their real parts, and imaginary parts from lag one on; or as is."""
    if not is_complex:
        return values
    n_lags = values.shape[1] // 2
    joined = values[:, : n_lags + 1].astype(complex)
    joined[:, 1:] += 1j * values[:, n_lags + 1 :]
    return joined


def separate_parts(values: np.ndarray) -> np.ndarray:
    """Return the inverse of `joined_parts`: real parts, then imaginary parts from lag one on, if values are complex."""
    return np.hstack([values.real, values[:, 1:].imag]) if np.iscomplexobj(values) else values
