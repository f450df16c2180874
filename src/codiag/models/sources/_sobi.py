"""Sources with different spectra, from covariances of a recording with itself some samples later."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy import fft

from codiag._arrays import BLOCK, adjoint, few_threads
from codiag._checks import RankDeficientError, as_number
from codiag.diagonalize import Diagonalizer, OrthogonalNewton
from codiag.models.base import as_seed
from codiag.models.sources._base import BlindSources, Errors
from codiag.models.sources._likelihood import (
    Transforms,
    cosine_response,
    inverse_spectra,
    joined_parts,
    rotation_coefficients,
    scale_variances,
    score_coefficients,
    separate_parts,
    share_variances,
    squared_gaps,
    transformed,
)
from codiag.models.sources._recordings import Recordings

SPECTRAL_FLOOR = 0.1
"""White noise added to the spectrum of a source before it is inverted, relative to its variance. In simulations,
autoregressive sources lose nothing, and lines in the spectrum, such as sinusoids, do not dominate the filter."""


def lagged_covariances(recordings: Sequence[np.ndarray], max_lag: int) -> np.ndarray:
    r"""Return covariances of centered samples with those up to `max_lag` later, as Hermitian matrices.

    If samples are real, symmetric parts of :math:`C_l = \frac1n \sum_t x_{t+l} x_t^\top`, (max_lag + 1, d, d). If they
    are complex, :math:`(C_l + C_l^H) / 2` for all lags, then :math:`(C_l - C_l^H) / 2i` for all but lag zero: the real
    and the imaginary parts of autocovariances of sources with this mixing.
    """
    products = sum(_lagged_products(samples, max_lag) for samples in recordings)
    matrices = np.asarray(products) / sum(len(samples) for samples in recordings)
    parts = (matrices + adjoint(matrices)) / 2
    if not np.iscomplexobj(parts):
        return parts
    return np.concatenate([parts, (matrices - adjoint(matrices))[1:] / 2j])


def _lagged_products(samples: np.ndarray, max_lag: int) -> np.ndarray:
    """Return sums of products of samples with earlier ones, by spectra of windows, for all lags together.

    The samples of a window are multiplied with the earlier ones of its first part; these parts follow each other.
    """
    n, d = samples.shape
    # shorter ones spend more time on the overlap of windows than they save
    length = fft.next_fast_len(min(max(1024, 4 * max_lag), n + max_lag), real=True)
    step = length - max_lag
    forth, back = (fft.fft, fft.ifft) if np.iscomplexobj(samples) else (fft.rfft, fft.irfft)
    starts, padded = np.arange(0, n, step), np.concatenate([samples, np.zeros((length, d))])
    spectrum: Any = 0
    for some in np.array_split(starts, -(-n * d // BLOCK)):
        windows = padded[some[:, None] + np.arange(length)]  # (n_windows, length, d)
        late, early = (np.moveaxis(forth(part, n=length, axis=1), 0, 2) for part in (windows, windows[:, :step]))
        with few_threads(some.size * d * d):
            spectrum += late @ adjoint(early)
    products: np.ndarray = back(spectrum, n=length, axis=0)[: max_lag + 1]
    return products


class Stack(NamedTuple):
    """Lagged covariances, (n_matrices, k, k), real and then imaginary parts if samples are complex."""

    matrices: np.ndarray
    used: np.ndarray  # indices of the matrices to diagonalize; the first is the covariance
    n: int  # number of samples

    @property
    def own(self) -> np.ndarray:
        """The diagonals, (n_matrices, k): autocovariances, if these are the covariances of sources."""
        return np.einsum("lii->li", self.matrices).real


def _check_lags(name: str, value: Any) -> None:
    lags = value if isinstance(value, list | tuple | range) or getattr(value, "ndim", 0) == 1 else [value]
    if len(lags) == 0:
        raise ValueError(f"{name} must contain one lag or more; got none")
    for lag in lags:
        as_number(name, lag, integer=True)


class SOBI(BlindSources):
    r"""Sources with different spectra: joint diagonalization of lagged covariances, then maximum likelihood.

    Channels :math:`x_t = A s_t + \mu` mix independent sources. Their covariances at lag l,
    :math:`C_l = A\, \mathrm{diag}(r_1(l), \dots, r_k(l))\, A^\top`, have the mixing in common: it is found by whitening
    and orthogonal joint diagonalization (second-order blind identification, SOBI). Steps of a Gaussian likelihood
    follow, in which every source has the spectrum of an autoregression fitted to it.

    Complex recordings, such as radio signals, have complex sources and :math:`C_l = A\, \mathrm{diag}(r(l))\, A^H` with
    complex autocovariances. Their Hermitian and their skew parts are diagonalized by a unitary matrix, so that sources
    at opposite frequencies are separated, too.

    Parameters
    ----------
    n_components : int, optional
        Number of sources; as many leading principal components are unmixed. By default the number of linearly
        independent channels, whatever their units.
    lags : int or sequence of int
        Lags in samples: 1, 2, ... up to this number, but at most half of the longest recording; or a list of lags.
    max_iter : int
        Largest number of steps of the likelihood, which use all lags up to the largest; zero is joint diagonalization
        alone. It is as good if spectra have lines, as those of sinusoids, which are no autoregressions.
    diagonalizer : Diagonalizer, optional
        Orthogonal diagonalizer of the covariances; by default `codiag.diagonalize.OrthogonalNewton` until its fixed
        point.
    random_state : int, optional
        Seed of the start; the estimate does not depend on it if the data determines the sources.

    Attributes
    ----------
    components_ : array of shape (n_components, n_channels)
        The unmixing: sources are ``(X - mean_) @ components_.T``, with unit variance, sorted by the variance of the
        channels that they explain, largest first.
    mixing_ : array of shape (n_channels, n_components)
        Its pseudo-inverse; the largest entry of each column is positive, or real and positive if it is complex.
    mixing_standard_errors_ : array of shape (n_channels, n_components)
        Standard errors of the mixing, for independent stationary sources, within the space of the principal components.
        If it is complex, roots of mean squared magnitudes of errors, for phases of columns that fit best.
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
        Number of sweeps of the diagonalizer plus steps of the likelihood.
    n_components_, n_features_in_ : int
        Numbers of sources and of channels.

    See Also
    --------
    JADE : Sources that are not Gaussian.
    codiag.metrics.minimum_distance : Compare an unmixing with the true one.

    Notes
    -----
    **Assumptions.** Sources whose autocorrelations differ; their distributions may be Gaussian.

    **Complexity.** About :math:`4 n d^2` operations for covariances of all lags together, by Fourier transforms, then
    work on matrices of the size of the components.

    **Guarantees.** The same sources from every seed. For Gaussian autoregressions of no more lags than are used, errors
    in large samples are at most an eighth above the least possible.

    **Limitations.** Fails if two sources have the same spectrum; they are then listed in `unresolved_`.

    An array of three axes is one of epochs, (n_epochs, n_channels, n_times), as in MNE; a list has recordings of any
    lengths, (n_samples, n_channels) each. No products are formed across the border of two epochs or recordings.

    References
    ----------
    A. Belouchrani, K. Abed-Meraim, J.-F. Cardoso and E. Moulines, "A blind source separation technique using
    second-order statistics", IEEE Trans. Signal Process. 45(2), 1997.
    D.-T. Pham and P. Garat, "Blind separation of mixture of independent sources through a quasi-maximum likelihood
    approach", IEEE Trans. Signal Process. 45(7), 1997.

    Examples
    --------
    >>> from codiag.metrics import minimum_distance
    >>> from codiag.models import SOBI
    >>> from codiag.synthetic import mixed_signals
    >>> mixed = mixed_signals(10_000, ["sinusoid", "autoregressive", "square", "bursts"], rng=0)
    >>> model = SOBI(lags=20).fit(mixed.channels)
    >>> minimum_distance(model.components_, mixed.mixing) < 0.1, model.unresolved_
    (True, [])
    """

    takes_complex: ClassVar[bool] = True
    parameter_rules = BlindSources.parameter_rules | {"lags": _check_lags}

    def __init__(
        self,
        n_components: int | None = None,
        *,
        lags: int | Sequence[int] = 50,
        max_iter: int = 50,
        diagonalizer: Diagonalizer | None = None,
        random_state: int | None = None,
    ) -> None:
        super().__init__(n_components, max_iter=max_iter, diagonalizer=diagonalizer, random_state=random_state)
        self.lags = lags

    def _used_lags(self, longest: int) -> np.ndarray:
        """Return the lags in ascending order, below the length of the longest recording."""
        if longest < 2:
            raise RankDeficientError("X must contain samples that follow each other; every recording is a single one")
        if isinstance(self.lags, int | np.integer):
            return np.arange(1, min(self.lags, max(1, longest // 2)) + 1)
        lags = np.unique(np.asarray(self.lags))
        if lags[-1] >= longest:
            raise RankDeficientError(
                f"lags must be below {longest}, the number of samples of the longest recording; got {lags[-1]}"
            )
        return lags

    def _statistics(self, whitened: Recordings) -> Stack:
        """Return covariances of whitened channels up to the largest lag, to diagonalize at lag zero and used lags."""
        lags = self._used_lags(max(len(array) for array in whitened.arrays))
        matrices = lagged_covariances(whitened.arrays, lags[-1])
        imaginary = lags[-1] + lags if np.iscomplexobj(matrices) else lags[:0]
        return Stack(matrices, np.concatenate([[0], lags, imaginary]), whitened.n_samples)

    def _rotated(self, statistics: Stack) -> tuple[np.ndarray, int, bool]:
        method: Diagonalizer = self.diagonalizer or OrthogonalNewton(tol=1e-13, statistical_tol=0.0)
        fit = method(statistics.matrices[statistics.used], rng=as_seed(self.random_state))
        return fit.inverse, fit.n_sweeps, fit.converged

    def _of_sources(self, statistics: Stack, unmixing: np.ndarray) -> tuple[np.ndarray, Stack]:
        variances = np.einsum("ij,jk,ik->i", unmixing, statistics.matrices[0], unmixing.conj()).real
        rows = unmixing / np.sqrt(variances)[:, None]
        return rows, statistics._replace(matrices=rows @ statistics.matrices @ adjoint(rows))

    def _scores(self, sources: Stack) -> np.ndarray:
        """Return the coefficients of the lags in the inverse filter of every source, (k, n_matrices)."""
        values = joined_parts(sources.own.T, np.iscomplexobj(sources.matrices))
        return separate_parts(inverse_spectra(values, SPECTRAL_FLOOR))

    def _correlated(self, sources: Stack, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.einsum("il,lij->ij", scores, sources.matrices, optimize=True), scores @ sources.own

    def _errors(self, recordings: Recordings, sources: Stack) -> Errors:
        own = sources.own
        if self.max_iter:
            filters = self._scores(sources)
            coefficients = score_coefficients(filters @ own)
        else:
            filters = np.where(np.isin(np.arange(len(own)), sources.used), own.T, 0)
            coefficients = rotation_coefficients(own[sources.used])
        is_complex = np.iscomplexobj(sources.matrices)
        variances = share_variances(_transforms(recordings, joined_parts(filters, is_complex)), coefficients)
        np.fill_diagonal(variances, scale_variances(recordings.arrays))
        return Errors(variances, _resolved(own[sources.used], sources.n * (2 if is_complex else 1)))


def _transforms(recordings: Recordings, filters: np.ndarray) -> Iterator[Transforms]:
    """Yield Fourier transforms of sources and of their filtered versions."""
    for samples in recordings.pieces():
        transform, length = transformed(samples)
        yield Transforms(transform, transform * cosine_response(filters, length), samples.shape[0], length)


def _resolved(diagonals: np.ndarray, n: int) -> np.ndarray:
    """Return the share of the gap between the autocovariances of two sources that sampling noise does not explain.

    The variance of an autocovariance is the sum of the squares of all over n (Bartlett). Sources are directions in
    which noise differs most. The root of the gap that noise explains is the root of its expected energy plus twice the
    root of the number of sources, found by simulation of identical sources.
    """
    count, k = diagonals.shape
    noise = (1 + 2 * np.sum(diagonals[1:] ** 2, axis=0)) / n
    explained = (np.sqrt(count - 1) + 2 * np.sqrt(k)) ** 2 * (noise[:, None] + noise)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.nan_to_num(np.maximum(1 - explained / squared_gaps(diagonals), 0))
