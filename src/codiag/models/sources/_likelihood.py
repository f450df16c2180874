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
from typing import Any, NamedTuple, Self

import numpy as np
from scipy import fft

from codiag._arrays import adjoint, few_threads, squared_magnitudes

PADDING = 1024
"""Number of zeros after a recording before its transform, so that its end and its start are not correlated."""


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


class Segment(NamedTuple):
    """Products of Fourier transforms of sources and their scores over a piece of time, (n_frequencies, k) each."""

    sources: np.ndarray  # squares of the transforms of sources
    cross: np.ndarray  # transforms of scores times the conjugates of those; real if scores are filtered sources
    scores: np.ndarray  # squares of the transforms of scores
    n: int  # number of samples
    length: int  # length of the transform

    @classmethod
    def of(cls, sources: np.ndarray, scores: np.ndarray, n: int, length: int) -> Self:
        """Return the products of transforms."""
        return cls(_squares(sources), scores * np.conj(sources), _squares(scores), n, length)

    @classmethod
    def filtered(cls, sources: np.ndarray, response: np.ndarray, n: int, length: int) -> Self:
        """Return the products if scores are sources filtered with a real response."""
        squares = _squares(sources)
        cross = squares * response
        return cls(squares, cross, cross * response, n, length)


def _squares(transforms: np.ndarray) -> np.ndarray:
    """Return squares of absolute values."""
    squares: np.ndarray = transforms.real**2 + transforms.imag**2
    return squares


def score_coefficients(ratios: np.ndarray) -> Coefficients:
    r"""Return the coefficients that solve the two equations of each pair, given the matrix of :math:`R_{ij}`."""
    own = np.diag(ratios)
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = 1 / (ratios * ratios.T - np.outer(own, own))
        return Coefficients.of(ratios.T * scale, -own[:, None] * scale, np.zeros_like(scale))


def score_step(correlations: np.ndarray, ratios: np.ndarray, chosen: Any = True, longest: float = 0.5) -> np.ndarray:
    r"""Return H from :math:`y_{ij}` and :math:`R_{ij}` for chosen pairs, scaled to entries of at most `longest`."""
    alpha, beta, _ = score_coefficients(ratios)
    step = np.where(chosen, alpha * correlations + beta * adjoint(correlations), 0)
    size = float(np.max(np.abs(step), initial=0.0))
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


def share_variances(segments: Iterable[Segment], coefficients: Coefficients) -> np.ndarray:
    """Return the variance of the share of each source in the other columns of the mixing, (k, k)."""
    total, n_samples = np.zeros_like(coefficients.alpha), 0
    with few_threads(total.size):  # products of long and thin matrices gain nothing from a second thread
        for segment in segments:
            total += _summed_variances(segment, coefficients)
            n_samples += segment.n
    variances = np.maximum(total, 0) / n_samples**2
    np.fill_diagonal(variances, 0)
    return variances


def _summed_variances(segment: Segment, coefficients: Coefficients) -> np.ndarray:
    """Return the variances of sums over one segment."""
    sources, cross, scores, n, length = segment
    alpha, beta, gamma = coefficients
    twice = np.full((sources.shape[0], 1), 1.0)
    if sources.shape[0] < length:  # positive frequencies stand for negative ones, too
        twice[1 : (length + 1) // 2] = 2.0
    weighted, real = sources * twice, np.ascontiguousarray(cross.real)
    scored, mixed = scores.T @ weighted, real.T @ (real * twice)
    if np.iscomplexobj(cross):
        imaginary = np.ascontiguousarray(cross.imag)
        mixed -= imaginary.T @ (imaginary * twice)
    total = alpha**2 * scored + beta**2 * scored.T + 2 * alpha * beta * mixed
    if np.any(gamma):
        half = real.T @ weighted
        total += gamma**2 * (sources.T @ weighted) + 2 * gamma * (alpha * half + beta * half.T)
    variances: np.ndarray = total / (length * n)
    return variances


def transformed(samples: np.ndarray) -> tuple[np.ndarray, int]:
    """Return the Fourier transform of samples, (n, k), and its length, with zeros appended against wrapping around."""
    n = samples.shape[0]
    length = fft.next_fast_len(n + min(n, PADDING), real=True)
    transform = fft.fft if np.iscomplexobj(samples) else fft.rfft
    return transform(samples, n=length, axis=0), length


def scale_variances(recordings: list[np.ndarray]) -> np.ndarray:
    """Return the variance of half the mean square of every source, which is that of its scale.

    From differences of means over neighboring batches, since slow changes are no sampling error. Correlations between
    batches are lost, which makes the variance too small by a term inverse to their width; two widths remove that term.
    """
    total, n = np.zeros(recordings[0].shape[1]), sum(len(sources) for sources in recordings)
    for sources in recordings:
        width = max(1, int(np.sqrt(len(sources))))
        batches = sources[: len(sources) // width * width].reshape(-1, width, total.size)
        means = np.einsum("bwk,bwk->bk", batches, batches.conj()).real / width
        pairs = (means[: len(means) // 2 * 2 : 2] + means[1::2]) / 2
        narrow, wide = (_batch_variances(x, size, means) for x, size in ((means, width), (pairs, 2 * width)))
        total += np.maximum(2 * wide - narrow, wide) * len(sources)
    return total / (2 * n) ** 2


def _batch_variances(means: np.ndarray, width: int, narrow: np.ndarray) -> np.ndarray:
    """Return the variance of the mean square, times the number of samples, from means over batches of one width."""
    if len(means) < 2:
        return 2 * np.mean(narrow, axis=0) ** 2  # that of independent Gaussians
    variances: np.ndarray = np.mean(np.diff(means, axis=0) ** 2, axis=0) / 2 * width
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
