"""Sources with different spectra, from covariances of a recording with itself some samples later."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy import fft

from codiag._arrays import BLOCK, few_threads
from codiag._checks import UndeterminedError, as_number
from codiag.diagonalize import Diagonalizer
from codiag.models.frame import MomentSums, merged
from codiag.models.sources._base import Recordings, Separation, Whitening, samples_of_part
from codiag.models.sources._likelihood import Segment, cosine_response, inverse_spectra, scale_variances, transformed
from codiag.models.sources._second_order import SecondOrder, Stack
from codiag.parts import Parts, as_parts, is_matrix

MIN_TRANSFORM = 1024
"""Least length of transforms; shorter ones spend more time on the overlap of windows than they save."""
N_LEADING = 2**13
"""Number of first samples that are kept, to test predictions of autoregressive models."""
MAX_ENTRIES = 2**30
"""Largest number of entries of all covariances together, 8 GiB."""
SPECTRAL_FLOOR = 0.1
"""White noise added to the spectrum of a source before it is inverted, relative to its variance. In simulations,
autoregressive sources lose nothing, and lines in the spectrum, such as sinusoids, do not dominate the filter."""
N_FREQUENCIES = 4096
"""Length of the transform at which spectra of autoregressive models are evaluated."""


class LaggedCovariances(NamedTuple):
    """The mean of samples, and their symmetrized covariances with those up to the largest lag later."""

    n: int
    mean: np.ndarray  # (d,)
    matrices: np.ndarray  # (max_lag + 1, d, d); the first is the covariance


@dataclass(eq=False)
class LaggedSums(MomentSums):
    r"""Sums of the symmetric parts of :math:`x_t x_{t+l}^\top` for all lags l up to the largest, around an origin.

    If they are `open`, merged sums are over consecutive parts of one recording: products across the border are formed
    from the last samples of one part and the first of the other, so that the sums equal those of the whole recording.
    If they are not open, merged sums are over separate recordings.
    """

    constant: ClassVar[frozenset[str]] = frozenset({"open"})

    open: bool
    origin: np.ndarray  # (d,)
    products: np.ndarray  # (max_lag + 1, d, d)
    early: np.ndarray  # (max_lag + 1, d): sums of x_t
    late: np.ndarray  # (max_lag + 1, d): sums of x_{t+l}
    pairs: np.ndarray  # (max_lag + 1,): numbers of pairs
    head: np.ndarray  # (at most max_lag or N_LEADING, d): the first samples
    tail: np.ndarray  # (at most max_lag, d): the last ones

    @classmethod
    def over(cls, samples: np.ndarray, max_lag: int, *, open: bool = False) -> Self:  # noqa: A002
        """Return the sums over one recording, (n, d), around its mean."""
        d = samples.shape[1]
        if (max_lag + 1) * d**2 > MAX_ENTRIES:
            raise ValueError(
                f"lags must be at most {MAX_ENTRIES // d**2 - 1} with {d} channels, of whose covariances there may be "
                f"{MAX_ENTRIES * 8 // 2**30} GiB; got {max_lag}"
            )
        origin = samples.mean(axis=0)
        totals = _totals(samples - origin, max_lag)
        ends = (samples[: max(max_lag, N_LEADING)], samples[samples.shape[0] - min(max_lag, samples.shape[0]) :])
        return cls(open, origin, *totals, *(end.copy() for end in ends))

    @property
    def size(self) -> int:
        """Number of samples."""
        return int(self.pairs[0])

    @property
    def n_channels(self) -> int:
        """Number of channels."""
        return self.origin.size

    def of(self, part: np.ndarray) -> Self:
        """Return the sums over a part alone."""
        return type(self).over(part, self.pairs.size - 1, open=self.open)

    def merge(self, other: Self) -> Self:
        """Add other sums to these, of the samples that follow if they are open, and return these."""
        if self.open != other.open or self.products.shape != other.products.shape:
            shapes = [f"{len(sums.pairs) - 1} lags of {sums.origin.size} channels" for sums in (self, other)]
            raise ValueError(f"X must have as many channels in every part; got {shapes[0]}, then {shapes[1]}")
        totals = [self._around(self.origin), other._around(self.origin)]
        max_lag = self.pairs.size - 1
        if self.open:
            ends = self.tail - self.origin, other.head[:max_lag] - self.origin
            totals.append(_totals(np.concatenate(ends), max_lag))
            totals += [tuple(-total for total in _totals(end, max_lag)) for end in ends]
            n_head = max(max_lag, N_LEADING)
            head = self.head if self.size >= n_head else np.concatenate([self.head, other.head])[:n_head]
            both = np.concatenate([self.tail, other.tail])
            tail = other.tail if other.size >= max_lag else both[max(both.shape[0] - max_lag, 0) :]
            self.head, self.tail = head, tail
        self.products, self.early, self.late, self.pairs = (
            sum(parts[1:], parts[0]) for parts in zip(*totals, strict=True)
        )
        return self

    def finish(self) -> LaggedCovariances:
        """Return the mean and the covariances, divided by the number of samples for every lag."""
        n = self.size
        mean = self.origin + self.early[0] / n
        return LaggedCovariances(n, mean, self._around(mean)[0] / n)

    def _around(self, origin: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return the sums around another origin."""
        shift = self.origin - origin
        if not np.any(shift):
            return self.products, self.early, self.late, self.pairs
        pairs = self.pairs[:, None]
        ends = (self.early + self.late)[:, :, None] * (shift / 2)
        products = self.products + ends + ends.transpose(0, 2, 1) + pairs[:, :, None] * np.outer(shift, shift)
        return products, self.early + pairs * shift, self.late + pairs * shift, self.pairs


def _totals(samples: np.ndarray, max_lag: int) -> tuple[np.ndarray, ...]:
    """Return products, early and late sums, and numbers of pairs for every lag."""
    n, d = samples.shape
    total, ends = samples.sum(axis=0), min(max_lag, n)
    zeros = np.zeros((max_lag + 1 - ends, d))  # lags as long as the recording have no pairs
    first, last = (np.cumsum(part, axis=0) for part in (samples[:ends], samples[n - ends :][::-1]))
    early = np.concatenate([total[None], total - last, zeros])[: max_lag + 1]
    late = np.concatenate([total[None], total - first, zeros])[: max_lag + 1]
    pairs = np.maximum(n - np.arange(max_lag + 1), 0.0)
    return lagged_products(samples, max_lag), early, late, pairs


def lagged_products(samples: np.ndarray, max_lag: int) -> np.ndarray:
    r"""Return :math:`\sum_t (x_t x_{t+l}^\top + x_{t+l} x_t^\top) / 2` for every lag, by spectra of windows.

    Windows overlap by the largest lag, so that every pair lies within one window, or within two and their overlap,
    whose products are subtracted. The Fourier transform of the symmetric part of products within a window is the real
    part of its spectral matrices, a product of real matrices: about :math:`3 n d^2` operations for all lags together.
    """
    n = samples.shape[0]
    step = max(MIN_TRANSFORM, 4 * max_lag) - 2 * max_lag
    starts = list(range(0, max(n - max_lag, 1), step))
    products = _within_windows(samples, starts, step + max_lag if len(starts) > 1 else n, max_lag)
    if len(starts) > 1:
        products -= _within_windows(samples, starts[1:], max_lag, max_lag)
    return products


def _within_windows(samples: np.ndarray, starts: list[int], width: int, max_lag: int) -> np.ndarray:
    """Return symmetrized products of samples within windows of one width, (max_lag + 1, d, d)."""
    d = samples.shape[1]
    length = fft.next_fast_len(width + max_lag, real=True)
    spectrum = np.zeros((length // 2 + 1, d, d))
    group = max(1, BLOCK // (2 * length * d))
    for first in range(0, len(starts), group):
        chosen = starts[first : first + group]
        transforms = np.moveaxis(fft.rfft(_windows(samples, chosen, width, length), axis=1), 0, 1)
        parts = np.concatenate([transforms.real, transforms.imag], axis=1)
        with few_threads(parts.shape[1] * d * d):
            spectrum += np.matmul(parts.transpose(0, 2, 1), parts)
    cosines = _inverse_cosines(length, max_lag)
    return (cosines @ spectrum.reshape(spectrum.shape[0], -1)).reshape(-1, d, d)


def _windows(samples: np.ndarray, starts: list[int], width: int, length: int) -> np.ndarray:
    """Return windows of samples, (n_windows, length, d), zero beyond the width and the end of the recording."""
    windows = np.zeros((len(starts), length, samples.shape[1]))
    for window, start in zip(windows, starts, strict=True):
        inside = samples[start : start + width]
        window[: inside.shape[0]] = inside
    return windows


def _inverse_cosines(length: int, max_lag: int) -> np.ndarray:
    """Return the inverse transform of a real and even spectrum, up to a lag, as a matrix (max_lag + 1, n_freq)."""
    twice = np.full(length // 2 + 1, 2.0)  # positive and negative frequencies
    twice[0] = 1.0
    if length % 2 == 0:
        twice[-1] = 1.0
    turns = np.outer(np.arange(max_lag + 1), np.arange(twice.size)) % length
    cosines: np.ndarray = np.cos(2 * np.pi / length * turns) * (twice / length)
    return cosines


class SOBI(SecondOrder[Stack, LaggedSums]):
    r"""Sources with different spectra: joint diagonalization of lagged covariances, then maximum likelihood.

    Channels :math:`x_t = A s_t + \mu` mix independent sources. Their covariances at lag l,
    :math:`C_l = A\, \mathrm{diag}(r_1(l), \dots, r_k(l))\, A^\top`, have the mixing in common: it is found by whitening
    and orthogonal joint diagonalization (second-order blind identification, SOBI). Steps of a Gaussian likelihood
    follow, in which every source has the spectrum of an autoregression fitted to it. They are kept for the pairs of
    sources for which they predict clearly smaller errors.

    **Needs** sources whose autocorrelations differ; their distributions may be Gaussian. **Costs** about
    :math:`4 n d^2` operations for covariances of all lags together, by Fourier transforms, then work on matrices of the
    size of the components. **Guarantees** the same sources from every seed. For Gaussian autoregressions of no more
    lags than are used, errors in large samples are at most an eighth above the least possible. **Fails** if two sources
    have the same spectrum; they are then listed in `unresolved_`.

    Parameters
    ----------
    n_components : int, optional
        Number of sources; as many leading principal components are unmixed. By default the number of linearly
        independent channels, whatever their units.
    lags : int or sequence of int
        Lags in samples: 1, 2, ... up to this number, but at most half of the longest recording; or a list of lags.
    max_iter : int
        Largest number of steps of the likelihood, which use the consecutive lags from one on; zero is joint
        diagonalization alone.
    diagonalizer : Diagonalizer, optional
        Diagonalizer of the covariances; by default `codiag.diagonalize.OrthogonalNewton` until its fixed point. One
        that is not orthogonal, such as `codiag.diagonalize.UWEDGE`, gives lag zero no more weight than other lags.
    random_state : int, optional
        Seed of the start; the estimate does not depend on it if the data determines the sources.

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
        Number of sweeps of the diagonalizer plus steps of the likelihood.
    n_components_, n_features_in_ : int
        Numbers of sources and of channels.

    See Also
    --------
    JADE : Sources that are not Gaussian.
    NSS : Sources whose variances change.
    codiag.metrics.minimum_distance : Compare an unmixing with the true one.

    Notes
    -----
    An array of three axes is one of epochs, (n_epochs, n_channels, n_times), as in MNE; a list has recordings of any
    lengths, (n_samples, n_channels) each. No products are formed across the border of two epochs or recordings. The
    chunks of a dask array, the parts of an iterator and those given to `partial_fit` are consecutive: the estimate is
    that of one array, to rounding, except for standard errors, which then assume Gaussian autoregressions.

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
        max_iter: int = 50,
        diagonalizer: Diagonalizer | None = None,
        random_state: int | None = None,
    ) -> None:
        super().__init__(n_components, max_iter=max_iter, diagonalizer=diagonalizer, random_state=random_state)
        self.lags = lags

    def _parts_of(self, data: Any) -> Parts | None:
        """Return data in consecutive parts, or None if it is in memory."""
        in_memory = isinstance(data, list | tuple) or getattr(data, "ndim", 2) == 3
        return None if in_memory else as_parts(data, is_matrix)

    def _sums_of_parts(self, parts: Parts) -> LaggedSums:
        sums: LaggedSums = parts.reduce(_sums_of_part, self._max_lag())
        return sums

    def _sums_over(self, samples: np.ndarray, before: LaggedSums | None) -> LaggedSums:
        if before is not None and before.pairs.size != self._max_lag() + 1:
            raise ValueError(f"lags must be as they were, up to {before.pairs.size - 1}; got {self.lags}. Begin anew")
        return LaggedSums.over(samples, self._max_lag(), open=True)

    def _separated_sums(self, sums: LaggedSums) -> tuple[Separation, Whitening]:
        n, mean, covariances = sums.finish()
        whitening = Whitening.of(mean, covariances[0], self.n_components, n)
        leading = Recordings([(sums.head[:N_LEADING] - mean) @ whitening.rows.T], "list")
        stack = self._lag_stack(whitening.of_products(covariances), n, n)
        return self._separated_stack(stack, None, leading), whitening

    def _separated(self, whitened: Recordings) -> Separation:
        longest = max(array.shape[0] for array in whitened.arrays)
        max_lag = int(self._used_lags(longest)[-1])
        sums = merged([LaggedSums.over(array, max_lag) for array in whitened.arrays])
        stack = self._lag_stack(sums.finish().matrices, whitened.n_samples, longest)
        return self._separated_stack(stack, whitened, whitened.leading(N_LEADING))

    def _used_lags(self, longest: int) -> np.ndarray:
        """Return the lags in ascending order, below the length of the longest recording."""
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
        """Return the largest lag before the number of samples is known."""
        return int(self.lags if isinstance(self.lags, int | np.integer) else max(self.lags))

    def _lag_stack(self, matrices: np.ndarray, n: int, longest: int) -> Stack:
        """Return covariances of whitened channels up to the largest lag, to diagonalize at lag zero and used lags."""
        lags = self._used_lags(longest)
        return Stack(matrices[: lags[-1] + 1], np.concatenate([[0], lags]), n)

    def check_parameters(self) -> None:
        """Raise unless parameters are valid.

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
        filters[:, : order + 1] = inverse_spectra(autocovariances[: order + 1].T, SPECTRAL_FLOOR)
        return filters

    def _segments(
        self, sources: Recordings | None, filters: np.ndarray, stack: Stack, own: np.ndarray
    ) -> Iterator[Segment]:
        """Yield Fourier transforms of sources, or of autoregressive models of them, and of their filtered versions."""
        if sources is None:
            transform = np.sqrt(stack.n) * self._model_spectra(own)  # the squares are n times the density
            yield Segment.filtered(transform, cosine_response(filters, N_FREQUENCIES), stack.n, N_FREQUENCIES)
            return
        responses: dict[int, np.ndarray] = {}
        for samples in sources.pieces():
            transform, length = transformed(samples)
            if length not in responses:
                responses = {length: cosine_response(filters, length)}
            yield Segment.filtered(transform, responses[length], samples.shape[0], length)

    def _own_variances(self, sources: Recordings | None, stack: Stack, own: np.ndarray) -> np.ndarray:
        if sources is not None:
            return scale_variances(sources.arrays)
        spectra = np.abs(self._model_spectra(own)) ** 2
        weights = np.full(spectra.shape[0], 2.0)
        weights[[0, -1]] = 1.0
        variances: np.ndarray = (weights @ spectra**2) / N_FREQUENCIES / (2 * stack.n)
        return variances

    def _model_spectra(self, own: np.ndarray) -> np.ndarray:
        """Return roots of the spectral densities of autoregressions with these autocovariances, (n_freq, k)."""
        return 1 / np.sqrt(cosine_response(inverse_spectra(own.T, 1e-6), N_FREQUENCIES))


def _sums_of_part(part: Any, max_lag: int) -> LaggedSums:
    return LaggedSums.over(samples_of_part(part), max_lag, open=True)
