"""Sources with different spectra, from covariances of a recording with itself some samples later."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Self

import numpy as np
from scipy.linalg import solve_toeplitz

from codiag._parts import Parts, as_parts, is_matrix
from codiag._validation import as_number
from codiag.diagonalize import Diagonalizer
from codiag.models._base import warn_caller
from codiag.models._lagged_sums import LaggedSums
from codiag.models._recordings import Recordings, as_recordings
from codiag.models._score_steps import Segment, scale_variances, transformed
from codiag.models._second_order import SecondOrder, Stack
from codiag.models._sources import Separation, Whitening

FLOOR = 0.1
"""White noise that is added to a source's spectrum before its inverse filters the source, as a share of its variance.
Simulated: autoregressive sources lose nothing, and lines in the spectrum, such as sinusoids, do not rule the filter."""
GRID = 4096
"""Frequencies at which spectra of autoregressive models are taken."""


class SOBI(SecondOrder[Stack]):
    r"""Sources with different spectra: joint diagonalization of lagged covariances, and a likelihood to polish it.

    Channels :math:`x_t = A s_t + \mu` mix independent sources. Their covariances with what follows l samples later,
    :math:`C_l = A\, \mathrm{diag}(r_1(l), \dots, r_k(l))\, A^\top`, have the mixing in common: it is found by whitening
    and orthogonal joint diagonalization (second-order blind identification, SOBI). Steps of the Gaussian likelihood
    follow, in which every source has the spectrum of an autoregression fitted to it, and are kept where they promise
    the smaller errors.

    **Needs** sources whose autocorrelations differ; any distribution, Gaussian too. **Costs** about :math:`4 n d^2`
    operations for covariances of all lags together, by Fourier transforms, then work on matrices of the size of the
    components. **Guarantees** the same sources from every seed, and of Gaussian autoregressions of no more lags than
    are used the least error that is possible in large samples. **Fails** where two sources have the same spectrum,
    which `unresolved_` says.

    Parameters
    ----------
    n_components : int, optional
        Number of sources; the leading principal components are then unmixed. By default as many as channels, or as
        these are independent.
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
        What turns channels to principal components of unit variance.
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

    def learn(self, data: Any) -> tuple[Warning, ...]:
        """Do the work of `fit`, silently, and return what is to be warned of.

        Parameters
        ----------
        data : array of shape (n_samples, n_channels) or (n_epochs, n_channels, n_times), or list of recordings
            As users give it to `fit`, or in parts that follow each other.

        Returns
        -------
        tuple of Warning
            What `fit` warns of.

        Examples
        --------
        >>> from codiag.models import SOBI
        >>> from codiag.synthetic import mixed_signals
        >>> channels = mixed_signals(2000, ["sinusoid", "autoregressive"], seed=0).channels
        >>> SOBI(lags=20).learn(channels)
        ()
        """
        self._seen: LaggedSums | None = None
        parts = None if isinstance(data, list | tuple) else as_parts(data, is_matrix)
        return super().learn(data) if parts is None else self._learn_parts(parts)

    def _learn_parts(self, parts: Parts) -> tuple[Warning, ...]:
        self.check_parameters()
        sums = parts.reduce(_sums_of_part, int(self._wanted_lags()[-1]))
        self.n_features_in_ = sums.origin.size
        return self._learn_sums(sums)

    def partial_fit(self, X: Any, y: object = None) -> Self:  # noqa: N803
        """Add samples that follow those seen so far, and estimate again; after `fit` of one array, begin anew.

        Parameters
        ----------
        X : array of shape (n_samples, n_channels)
            However a recording is cut, the answer is that of the whole, to rounding.
        y : ignored
            Not used; there for the interface of scikit-learn.

        Returns
        -------
        self
            The model.

        Examples
        --------
        >>> from codiag.models import SOBI
        >>> from codiag.synthetic import mixed_signals
        >>> channels = mixed_signals(2000, ["sinusoid", "autoregressive"], seed=0).channels
        >>> model = SOBI(lags=20)
        >>> for chunk in (channels[:900], channels[900:]):
        ...     model = model.partial_fit(chunk)
        >>> model.components_.shape
        (2, 2)
        """
        warn_caller(self.learn_more(X))
        return self

    def learn_more(self, data: Any) -> tuple[Warning, ...]:
        """Do the work of `partial_fit`, silently, and return what is to be warned of.

        Parameters
        ----------
        data : array of shape (n_samples, n_channels)
            The samples.

        Returns
        -------
        tuple of Warning
            What `partial_fit` warns of.

        Examples
        --------
        >>> from codiag.models import SOBI
        >>> from codiag.synthetic import mixed_signals
        >>> channels = mixed_signals(2000, ["sinusoid", "autoregressive"], seed=0).channels
        >>> SOBI(lags=20).learn_more(channels)
        ()
        """
        self.check_parameters()
        before = getattr(self, "_seen", None)
        recordings = as_recordings(self, data, first=before is None, least=1 if before is not None else 2)
        if recordings.form != "array":
            raise ValueError("X must be samples that follow those before, (n_samples, n_channels), for partial_fit")
        max_lag = int(self._wanted_lags()[-1])
        sums = LaggedSums.over(recordings.arrays[0], max_lag, open=True)
        if before is not None:
            if before.pairs.size != max_lag + 1:
                raise ValueError(
                    f"lags must be as they were, up to {before.pairs.size - 1}; got {self.lags}. Begin anew"
                )
            sums = before.merged(sums)
        told = self._learn_sums(sums)
        self._seen = sums
        return told

    def _learn_sums(self, sums: LaggedSums) -> tuple[Warning, ...]:
        found = sums.finish()
        whitening = Whitening.of(found.mean, found.matrices[0], self.n_components, found.n)
        matrices = whitening.rows @ found.matrices @ whitening.rows.T
        return self._keep(self._separated_stack(self._lag_stack(matrices, found.n, found.n), None), whitening)

    def _separated(self, whitened: Recordings) -> Separation:
        longest = max(array.shape[0] for array in whitened.arrays)
        lags = self._kept_lags(longest)
        sums = [LaggedSums.over(array, int(lags[-1])) for array in whitened.arrays]
        total = sums[0]
        for other in sums[1:]:
            total.merge(other)
        stack = self._lag_stack(total.finish().matrices, whitened.n_samples, longest)
        return self._separated_stack(stack, whitened)

    def _wanted_lags(self) -> np.ndarray:
        """Return the lags in ascending order."""
        if isinstance(self.lags, int | np.integer):
            return np.arange(1, self.lags + 1)
        return np.unique(np.asarray(self.lags))

    def _kept_lags(self, longest: int) -> np.ndarray:
        """Return the lags that a recording of so many samples allows."""
        lags = self._wanted_lags()
        if isinstance(self.lags, int | np.integer):
            return lags[: max(1, longest // 2)]
        if lags[-1] >= longest:
            raise ValueError(
                f"lags must be below {longest}, the number of samples of the longest recording; got {lags[-1]}"
            )
        return lags

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
        if isinstance(self.lags, int | np.integer | float | str) or self.lags is None:
            as_number("lags", self.lags, integer=True)
            return
        for lag in self.lags:
            as_number("lags", lag, integer=True)
        if len(self.lags) == 0:
            raise ValueError("lags must hold one lag or more; got none")

    def _scores(self, autocovariances: np.ndarray, stack: Stack) -> np.ndarray:
        """Return the coefficients of the lags in the inverse filter of every source, (k, n_lags)."""
        order = stack.n_consecutive
        filters = np.zeros(autocovariances.shape).T
        for row, values in zip(filters, autocovariances.T, strict=True):
            row[: order + 1] = inverse_spectrum(values[: order + 1], FLOOR)
        return filters

    def _segments(
        self, sources: Recordings | None, filters: np.ndarray, stack: Stack, own: np.ndarray
    ) -> Iterator[Segment]:
        """Yield Fourier transforms of sources, or of models of them, and of what filters make of these."""
        if sources is None:
            spectra = self._model_spectra(own)
            yield Segment(spectra, spectra * _response(filters, GRID), stack.n, GRID)
            return
        responses: dict[int, np.ndarray] = {}
        for samples in sources.pieces():
            transform, length = transformed(samples)
            if length not in responses:
                responses = {length: _response(filters, length)}
            yield Segment(transform, transform * responses[length], samples.shape[0], length)

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
        filters = np.stack([inverse_spectrum(values, 1e-6) for values in own.T])
        return 1 / np.sqrt(_response(filters, GRID))


def _sums_of_part(part: Any, max_lag: int) -> LaggedSums:
    from sklearn.utils.validation import check_array

    return LaggedSums.over(check_array(part, dtype=np.float64, input_name="X"), max_lag, open=True)


def inverse_spectrum(autocovariances: np.ndarray, floor: float) -> np.ndarray:
    r"""Return g with :math:`1 / f(\omega) = \sum_l g_l \cos(l \omega)`, f the spectrum of the autoregression.

    It has the given autocovariances up to the last lag, with white noise added.
    """
    values = autocovariances / autocovariances[0]
    values[0] += floor
    if values.size == 1:
        return 1 / values / autocovariances[0]
    predictor = np.concatenate([[1.0], -solve_toeplitz(values[:-1], values[1:])])
    whitened = np.correlate(predictor, predictor, "full")[predictor.size - 1 :] / (predictor @ values)
    whitened[1:] *= 2
    inverse: np.ndarray = whitened / autocovariances[0]
    return inverse


def _response(filters: np.ndarray, length: int) -> np.ndarray:
    r"""Return :math:`\sum_l g_l \cos(l \omega)` at the frequencies of a transform, (n_frequencies, k)."""
    padded = np.zeros((length, filters.shape[0]))
    padded[: filters.shape[1]] = filters.T
    return np.real(np.fft.rfft(padded, axis=0))
