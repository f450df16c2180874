"""Sources with different spectra, from covariances of a recording with itself some samples later."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from codiag._checks import UndeterminedError, as_number
from codiag.diagonalize import Diagonalizer
from codiag.models.sources._base import Separation, Whitening
from codiag.models.sources._lagged import LEADING, LaggedSums
from codiag.models.sources._likelihood import Segment, scale_variances, transformed
from codiag.models.sources._recordings import Recordings, samples_of_part
from codiag.models.sources._second_order import SecondOrder, Stack
from codiag.parts import Parts, as_parts, is_matrix

FLOOR = 0.1
"""White noise that is added to a source's spectrum before its inverse filters the source, as a share of its variance.
Simulated: autoregressive sources lose nothing, and lines in the spectrum, such as sinusoids, do not rule the filter."""
GRID = 4096
"""Frequencies at which spectra of autoregressive models are taken."""


class SOBI(SecondOrder[Stack, LaggedSums]):
    r"""Sources with different spectra: joint diagonalization of lagged covariances, and a likelihood to polish it.

    Channels :math:`x_t = A s_t + \mu` mix independent sources. Their covariances with what follows l samples later,
    :math:`C_l = A\, \mathrm{diag}(r_1(l), \dots, r_k(l))\, A^\top`, have the mixing in common: it is found by whitening
    and orthogonal joint diagonalization (second-order blind identification, SOBI). Steps of the Gaussian likelihood
    follow, in which every source has the spectrum of an autoregression fitted to it, and are kept for the pairs of
    sources where they promise errors that are clearly smaller.

    **Needs** sources whose autocorrelations differ; any distribution, Gaussian too. **Costs** about :math:`4 n d^2`
    operations for covariances of all lags together, by Fourier transforms, then work on matrices of the size of the
    components. **Guarantees** the same sources from every seed, and of Gaussian autoregressions of no more lags than
    are used at most an eighth more than the least error that is possible in large samples. **Fails** where two sources
    have the same spectrum, which `unresolved_` says.

    Parameters
    ----------
    n_components : int, optional
        Number of sources; the leading principal components are then unmixed. By default as many as channels, or as
        these are independent, whatever unit each of them has.
    lags : int or sequence of int
        Lags in samples: so many from one on, but at most half of the longest recording, or those listed.
    polish : int
        Steps of the likelihood at most, which use the lags from one on as far as none is left out; zero is joint
        diagonalization alone.
    diagonalizer : Diagonalizer, optional
        What diagonalizes the covariances; by default `codiag.diagonalize.OrthogonalNewton` to its fixed point. One that
        is not orthogonal, such as `codiag.diagonalize.UWEDGE`, does not trust whitening more than other covariances.
    random_state : int, optional
        Seed of the start; the answer does not depend on it where the data determines it.

    Attributes
    ----------
    components_ : array of shape (n_components, n_channels)
        The unmixing: sources are ``(X - mean_) @ components_.T``, with unit variance, those that explain most variance
        of the channels first.
    mixing_ : array of shape (n_channels, n_components)
        Its pseudo-inverse; the largest entry of each column is positive.
    mixing_standard_errors_ : array of shape (n_channels, n_components)
        Of the entries of the mixing, for independent stationary sources, within the space of the principal components.
    unresolved_ : list of pairs of int
        Sources that the data does not tell apart.
    whitening_ : array of shape (n_components, n_channels)
        What turns channels to principal components of unit variance: where all are kept, those of channels divided by
        their standard deviations.
    mean_ : array of shape (n_channels,)
        Mean of each channel.
    explained_variance_ : array of shape (n_components,)
        Squared norms of the columns of the mixing.
    converged_ : bool
        Whether the last iteration reached its tolerance.
    n_iter_ : int
        Sweeps of the diagonalizer and steps of the likelihood.
    n_components_, n_features_in_ : int
        Numbers of sources and of channels.

    See Also
    --------
    JADE : Sources that are not Gaussian.
    NSS : Sources whose variances change.
    codiag.metrics.minimum_distance : Compare an unmixing with the true one.

    Notes
    -----
    An array of three axes holds epochs, (n_epochs, n_channels, n_times), as MNE has them; a list holds recordings of
    any lengths, (n_samples, n_channels) each. No product is formed across the border of two epochs or recordings. The
    chunks of a dask array, the parts of an iterator and those given to `partial_fit` follow each other: the answer is
    that of one array, to rounding, but for standard errors, which then take sources to be Gaussian autoregressions.

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
    >>> mixed = mixed_signals(10_000, ["sinusoid", "autoregressive", "square", "bursts"], seed=0)
    >>> model = SOBI(lags=20).fit(mixed.channels)
    >>> minimum_distance(model.components_, mixed.mixing) < 0.1, model.unresolved_
    (True, [])
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        lags: int | Sequence[int] = 50,
        polish: int = 50,
        diagonalizer: Diagonalizer | None = None,
        random_state: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.lags = lags
        self.polish = polish
        self.diagonalizer = diagonalizer
        self.random_state = random_state

    def _parts_of(self, data: Any) -> Parts | None:
        """Return data in parts that follow each other, or None where it is at hand."""
        at_hand = isinstance(data, list | tuple) or getattr(data, "ndim", 2) == 3
        return None if at_hand else as_parts(data, is_matrix)

    def _sums_of_parts(self, parts: Parts) -> LaggedSums:
        sums: LaggedSums = parts.reduce(_sums_of_part, self._max_lag())
        return sums

    def _sums_over(self, samples: np.ndarray, before: LaggedSums | None) -> LaggedSums:
        if before is not None and before.pairs.size != self._max_lag() + 1:
            raise ValueError(f"lags must be as they were, up to {before.pairs.size - 1}; got {self.lags}. Begin anew")
        return LaggedSums.over(samples, self._max_lag(), open=True)

    def _separated_sums(self, sums: LaggedSums) -> tuple[Separation, Whitening]:
        found = sums.finish()
        whitening = Whitening.of(found.mean, found.matrices[0], self.n_components, found.n)
        matrices = whitening.of_products(found.matrices)
        leading = Recordings([(sums.head[:LEADING] - found.mean) @ whitening.rows.T], "list")
        return self._separated_stack(self._lag_stack(matrices, found.n, found.n), None, leading), whitening

    def _separated(self, whitened: Recordings) -> Separation:
        longest = max(array.shape[0] for array in whitened.arrays)
        lags = self._kept_lags(longest)
        sums = [LaggedSums.over(array, int(lags[-1])) for array in whitened.arrays]
        total = sums[0]
        for other in sums[1:]:
            total.merge(other)
        stack = self._lag_stack(total.finish().matrices, whitened.n_samples, longest)
        return self._separated_stack(stack, whitened, whitened.leading(LEADING))

    def _kept_lags(self, longest: int) -> np.ndarray:
        """Return the lags in ascending order, those that a recording of so many samples allows."""
        if longest < 2:
            raise UndeterminedError("X must hold samples that follow each other; every recording is a single one")
        if isinstance(self.lags, int | np.integer):
            return np.arange(1, min(self.lags, max(1, longest // 2)) + 1)
        lags = np.unique(np.asarray(self.lags))
        if lags[-1] >= longest:
            raise UndeterminedError(
                f"lags must be below {longest}, the number of samples of the longest recording; got {lags[-1]}"
            )
        return lags

    def _max_lag(self) -> int:
        """Return the largest lag, where the number of samples is not known yet."""
        return int(self.lags if isinstance(self.lags, int | np.integer) else max(self.lags))

    def _lag_stack(self, matrices: np.ndarray, n: int, longest: int) -> Stack:
        """Return covariances of whitened channels at the lags that are used, with zero, and what polishing needs."""
        lags = self._kept_lags(longest)
        return Stack(matrices[: lags[-1] + 1], np.concatenate([[0], lags]), n)

    def check_parameters(self) -> None:
        """Raise unless parameters are what they must be.

        Examples
        --------
        >>> from codiag.models import SOBI
        >>> SOBI().check_parameters()
        >>> SOBI(lags=0).check_parameters()  # refused
        Traceback (most recent call last):
            ...
        ValueError: lags must be positive; got 0
        """
        super().check_parameters()
        lags: Any = self.lags
        if not (isinstance(lags, list | tuple | range) or getattr(lags, "ndim", 0) == 1):
            lags = [lags]
        if len(lags) == 0:
            raise ValueError("lags must hold one lag or more; got none")
        for lag in lags:
            as_number("lags", lag, integer=True)

    def _scores(self, autocovariances: np.ndarray, stack: Stack) -> np.ndarray:
        """Return the coefficients of the lags in the inverse filter of every source, (k, n_lags)."""
        order = stack.n_consecutive
        filters = np.zeros(autocovariances.shape).T
        filters[:, : order + 1] = inverse_spectra(autocovariances[: order + 1].T, FLOOR)
        return filters

    def _segments(
        self, sources: Recordings | None, filters: np.ndarray, stack: Stack, own: np.ndarray
    ) -> Iterator[Segment]:
        """Yield Fourier transforms of sources, or of models of them, and of what filters make of these."""
        if sources is None:
            transform = np.sqrt(stack.n) * self._model_spectra(own)  # whose squares are n times the density
            yield Segment.filtered(transform, _response(filters, GRID), stack.n, GRID)
            return
        responses: dict[int, np.ndarray] = {}
        for samples in sources.pieces():
            transform, length = transformed(samples)
            if length not in responses:
                responses = {length: _response(filters, length)}
            yield Segment.filtered(transform, responses[length], samples.shape[0], length)

    def _own_variances(self, sources: Recordings | None, stack: Stack, own: np.ndarray) -> np.ndarray:
        if sources is not None:
            return scale_variances(sources.arrays)
        spectra = np.abs(self._model_spectra(own)) ** 2
        weights = np.full(spectra.shape[0], 2.0)
        weights[[0, -1]] = 1.0
        variances: np.ndarray = (weights @ spectra**2) / GRID / (2 * stack.n)
        return variances

    def _model_spectra(self, own: np.ndarray) -> np.ndarray:
        """Return roots of the spectral densities of autoregressions with these autocovariances, (n_lags, k)."""
        return 1 / np.sqrt(_response(inverse_spectra(own.T, 1e-6), GRID))


def _sums_of_part(part: Any, max_lag: int) -> LaggedSums:
    return LaggedSums.over(samples_of_part(part), max_lag, open=True)


def inverse_spectra(autocovariances: np.ndarray, floor: float) -> np.ndarray:
    r"""Return rows g with :math:`1 / f(\omega) = \sum_l g_l \cos(l \omega)`, f the spectra of autoregressions.

    They have the given autocovariances, (k, n_lags), with white noise added: predictors are found by Levinson's
    recursion for all sources together.
    """
    scale = autocovariances[:, :1]
    values = autocovariances / scale
    values[:, 0] += floor
    n_lags = values.shape[1]
    predictors, errors = np.zeros_like(values), values[:, :1].copy()
    predictors[:, 0] = 1
    for order in range(1, n_lags):
        missed = np.sum(predictors[:, :order] * values[:, order:0:-1], axis=1, keepdims=True)
        reflections = -missed / errors
        predictors[:, : order + 1] += reflections * predictors[:, order::-1]
        errors *= 1 - reflections**2
    power = np.abs(np.fft.rfft(predictors, n=2 * n_lags, axis=1)) ** 2
    inverse: np.ndarray = np.fft.irfft(power, n=2 * n_lags, axis=1)[:, :n_lags] / (errors * scale)
    inverse[:, 1:] *= 2
    return inverse


def _response(filters: np.ndarray, length: int) -> np.ndarray:
    r"""Return :math:`\sum_l g_l \cos(l \omega)` at the frequencies of a transform, (n_frequencies, k).

    Lags beyond the length of the transform count as those that are left of them, at whose cosines they have the same.
    """
    padded = np.zeros((-(-filters.shape[1] // length) * length, filters.shape[0]))
    padded[: filters.shape[1]] = filters.T
    return np.real(np.fft.rfft(padded.reshape(-1, length, filters.shape[0]).sum(axis=0), axis=0))
