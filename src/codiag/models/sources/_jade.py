"""Sources that are not Gaussian, from fourth cumulants, and a likelihood with scores fitted to each source."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from codiag._arrays import blocks
from codiag.diagonalize import Diagonalizer, Jacobi, OrthogonalNewton
from codiag.models.base import as_seed
from codiag.models.sources._base import TOLERANCE, BlindSources, Errors
from codiag.models.sources._likelihood import (
    Coefficients,
    Transforms,
    scale_variances,
    score_coefficients,
    share_variances,
    transformed,
)
from codiag.models.sources._recordings import Recordings

N_FUNCTIONS = 5
"""Number of functions in whose span scores are fitted."""
ENTRIES_PER_SAMPLE = 64 * N_FUNCTIONS
"""Entries that a sample of a source is counted as when blocks are sized, so that the functions of a block fit into the
cache."""
RIDGE = 1e-2
"""Added to the correlation matrix of the functions, which is singular for a source with two values."""


class Basis(NamedTuple):
    """Functions of a source and their derivatives, (n_functions, n, k) each."""

    values: np.ndarray
    slopes: np.ndarray


def basis(sources: np.ndarray) -> Basis:
    """Return the identity, the square, and the three nonlinearities of FastICA: cube, tanh and the Gaussian's."""
    squares, tanh = sources**2, np.tanh(sources)
    bell = np.exp(-squares / 2)
    values = np.stack([sources, squares, sources * squares, tanh, sources * bell])
    slopes = np.stack([np.ones_like(sources), 2 * sources, 3 * squares, 1 - tanh**2, (1 - squares) * bell])
    return Basis(values, slopes)


def fitted_scores(sources: np.ndarray) -> np.ndarray:
    r"""Return coefficients of the basis for each source of unit variance, (n_functions, k).

    They minimize :math:`E[\varphi(s)^2] - 2 E[\varphi'(s)]`, up to a constant the squared distance to the score
    :math:`-(\log p)'` of the source's density p, which need not be known (Pham & Garat, 1997).
    """
    n, k = sources.shape
    grams = np.zeros((k, N_FUNCTIONS, N_FUNCTIONS))
    slopes, means = np.zeros((2, k, N_FUNCTIONS))
    for rows in blocks(n, ENTRIES_PER_SAMPLE * k):
        functions = basis(sources[rows])
        values = np.moveaxis(functions.values, 2, 0)
        grams += values @ values.transpose(0, 2, 1)
        means += values.sum(axis=2)
        slopes += functions.slopes.sum(axis=1).T
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


def projected_cumulants(samples: np.ndarray, directions: np.ndarray) -> np.ndarray:
    r"""Return :math:`\mathrm{cum}(u^\top x, u^\top x, x, x)` for each unit row u, of white samples (n, k).

    That is :math:`E[(u^\top x)^2 x x^\top] - I - 2 u u^\top`: sums over samples of weighted outer products.
    """
    n, k = samples.shape
    moments = np.zeros((directions.shape[0], k, k))
    for rows in blocks(n, k * k):
        part = samples[rows]
        weights = part @ directions.T
        for moment, weight in zip(moments, weights.T, strict=True):
            scaled = part * weight[:, None]
            moment += scaled.T @ scaled
    return moments / n - np.eye(k) - 2 * directions[:, :, None] * directions[:, None, :]


def plug_in_rotation(
    samples: np.ndarray, start: np.ndarray, diagonalizer: Diagonalizer, rng: int | None
) -> tuple[np.ndarray, int, bool]:
    """Return the rotation that diagonalizes cumulants along its own rows, the number of rounds, and if it converged.

    The first round takes the rows of `start`, every other round the rows of the rotation so far. To first order, k
    matrices along the sources determine as much as the k (k + 1) / 2 matrices of all pairs.
    """
    rotation = diagonalizer(projected_cumulants(samples, start), rng=rng).inverse
    unit = np.eye(rotation.shape[0])
    for count in range(2, 26):
        change = Jacobi(tol=TOLERANCE, max_sweeps=4)(projected_cumulants(samples @ rotation.T, unit)).inverse
        rotation = change @ rotation
        if np.max(np.abs(change - np.rint(change))) < TOLERANCE:  # up to order and signs
            return rotation, count, True
    return rotation, 25, False


class JADE(BlindSources):
    r"""Sources that are not Gaussian: joint diagonalization of fourth cumulants, then maximum likelihood.

    Channels :math:`x_t = A s_t + \mu` mix independent sources. For whitened channels the matrices
    :math:`\mathrm{cum}(u^\top x, u^\top x, x, x) = \sum_i \kappa_i (u^\top a_i)^2 a_i a_i^\top` are diagonalized by the
    same rotation (joint approximate diagonalization of eigenmatrices, JADE). They are formed for k directions u, first
    random ones, then the current sources, until these converge; to first order this is JADE with all k (k + 1) / 2
    matrices. Steps of a likelihood follow, with scores fitted to each source in the span of a few functions.

    Parameters
    ----------
    n_components : int, optional
        Number of sources; as many leading principal components are unmixed. By default the number of linearly
        independent channels, whatever their units.
    max_iter : int
        Largest number of steps of the likelihood; zero is joint diagonalization alone.
    diagonalizer : Diagonalizer, optional
        Orthogonal diagonalizer of the cumulants along the first directions; by default
        `codiag.diagonalize.OrthogonalNewton`. Later rounds are small rotations.
    random_state : int, optional
        Seed of the first directions; the estimate does not depend on it if the data determines the sources.

    Attributes
    ----------
    components_ : array of shape (n_components, n_channels)
        The unmixing: sources are ``(X - mean_) @ components_.T``, with unit variance, sorted by the variance of the
        channels that they explain, largest first.
    mixing_ : array of shape (n_channels, n_components)
        Its pseudo-inverse; the largest entry of each column is positive.
    mixing_standard_errors_ : array of shape (n_channels, n_components)
        Standard errors of the mixing, for independent stationary sources, within the space of the principal components.
    unresolved_ : list of pairs of int
        Pairs of sources that the data does not separate.
    whitening_ : array of shape (n_components, n_channels)
        From channels to principal components of unit variance; if all are kept, those of channels divided by their
        standard deviations.
    mean_ : array of shape (n_channels,)
        Mean of each channel.
    explained_variance_ : array of shape (n_components,)
        Squared norms of the columns of the mixing.
    converged_ : bool
        Whether the last iteration reached its tolerance.
    n_iter_ : int
        Number of rounds of joint diagonalization plus steps of the likelihood.
    n_components_, n_features_in_ : int
        Numbers of sources and of channels.

    See Also
    --------
    SOBI : Sources with different spectra.
    codiag.metrics.minimum_distance : Compare an unmixing with the true one.

    Notes
    -----
    **Assumptions.** Sources of which at most one is Gaussian; samples may be dependent.

    **Complexity.** :math:`2 n k^3` operations for each of a few rounds, and memory for :math:`k^3` numbers and the
    whitened samples.

    **Guarantees.** The same sources from every seed, if kurtosis separates them.

    **Limitations.** Fails if two sources have nearly no kurtosis; they are then listed in `unresolved_`. Likelihood
    steps may still separate them, but their start does not.

    An array of three axes is one of epochs, (n_epochs, n_channels, n_times), as in MNE; a list has recordings of any
    lengths, (n_samples, n_channels) each. The order of samples matters only for standard errors.

    References
    ----------
    J.-F. Cardoso and A. Souloumiac, "Blind beamforming for non-Gaussian signals", IEE Proc. F 140(6), 1993.
    J. Miettinen, S. Taskinen, K. Nordhausen and H. Oja, "Fourth moments and independent component analysis", Statist.
    Sci. 30(3), 2015.

    Examples
    --------
    >>> from codiag.metrics import minimum_distance
    >>> from codiag.models import JADE
    >>> from codiag.synthetic import mixed_signals
    >>> mixed = mixed_signals(10_000, ["uniform", "laplace", "square", "bursts"], rng=0)
    >>> model = JADE().fit(mixed.channels)
    >>> minimum_distance(model.components_, mixed.mixing) < 0.1, model.unresolved_
    (True, [])
    """

    def _statistics(self, whitened: Recordings) -> np.ndarray:
        """Return all samples, (n, k)."""
        return np.concatenate(whitened.arrays)

    def _rotated(self, statistics: np.ndarray) -> tuple[np.ndarray, int, bool]:
        """Return the rotation that diagonalizes the cumulants along its own rows."""
        k = statistics.shape[1]
        rng = as_seed(self.random_state)
        start = np.linalg.qr(np.random.default_rng(rng).standard_normal((k, k)))[0]
        return plug_in_rotation(statistics, start, self.diagonalizer or OrthogonalNewton(), rng)

    def _of_sources(self, statistics: np.ndarray, unmixing: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        sources = statistics @ unmixing.T
        sizes = np.std(sources, axis=0)
        return unmixing / sizes[:, None], sources / sizes

    def _scores(self, sources: np.ndarray) -> np.ndarray:
        return fitted_scores(sources)

    def _correlated(self, sources: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        r"""Return :math:`E[\varphi_i(s_i) s_j]` and its derivatives :math:`R_{ij}` with respect to the mixing."""
        n, k = sources.shape
        correlations, slopes = np.zeros((k, k)), np.zeros(k)
        for rows in blocks(n, ENTRIES_PER_SAMPLE * k):
            values, slope = scored(sources[rows], scores)
            correlations += values.T @ sources[rows]
            slopes += slope.sum(axis=0)
        ratios = np.tile(slopes[:, None] / n, (1, k))
        np.fill_diagonal(ratios, np.diag(correlations) / n)
        return correlations / n, ratios

    def _errors(self, recordings: Recordings, sources: np.ndarray) -> Errors:
        """Return variances, and which sources are resolved.

        Sources are directions in which samples are least Gaussian, also by chance. The gap between sources that chance
        explains was simulated for 2 to 5 Gaussians; its root grows as the root of the number of functions times the
        number of directions.
        """
        n, k = sources.shape
        kurtosis = np.mean(sources**4, axis=0) - 3
        if self.max_iter:
            scores = fitted_scores(sources)
            ratios = self._correlated(sources, scores)[1]
            coefficients = score_coefficients(ratios)
            gaps = ratios * ratios.T - np.outer(np.diag(ratios), np.diag(ratios))
            explained = 2 / n * (2 * np.sqrt((N_FUNCTIONS - 1) * k) + np.sqrt(2)) ** 2
            explained *= 1 + explained / 4  # gaps are products of two values of Fisher information less one
            explained = np.inf if n <= 2 * (N_FUNCTIONS + k) else explained
        else:
            scores = None
            coefficients = _cumulant_coefficients(kurtosis)
            gaps = kurtosis[:, None] ** 2 + kurtosis**2
            explained = 48 / n * (2 * np.sqrt(k) + np.sqrt(2)) ** 2
        variances = share_variances(_transforms(recordings, scores), coefficients)
        np.fill_diagonal(variances, scale_variances(recordings.arrays))
        with np.errstate(divide="ignore", invalid="ignore"):
            return Errors(variances, np.nan_to_num(np.maximum(1 - explained / np.maximum(gaps, 0), 0)))


def _cumulant_coefficients(kurtosis: np.ndarray) -> Coefficients:
    """Return the coefficients of means of cubes of sources times other sources, after whitening."""
    own, other = kurtosis[:, None], kurtosis[None, :]
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = 1 / (own**2 + other**2)
        gamma = 0.5 + scale * (own * (3 + own / 2) - other * (3 + other / 2))
        return Coefficients.of(-own * scale, other * scale, gamma)


def _transforms(recordings: Recordings, coefficients: np.ndarray | None) -> Iterator[Transforms]:
    """Yield Fourier transforms of sources and of their scores: cubes, unless coefficients of a basis are given."""
    for samples in recordings.pieces():
        scores = samples**3 if coefficients is None else scored(samples, coefficients)[0]
        transform, length = transformed(samples)
        yield Transforms(transform, transformed(scores - scores.mean(axis=0))[0], samples.shape[0], length)
