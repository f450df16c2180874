"""Sources whose variances change with time, from covariances of windows of time."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from codiag._checks import UndeterminedError, as_number
from codiag.diagonalize import Diagonalizer
from codiag.models.sources._base import Recordings, Separation, Whitening, rank_advice, samples_of_part
from codiag.models.sources._likelihood import Segment, scale_variances, transformed
from codiag.models.sources._second_order import SecondOrder, Stack
from codiag.parts import Parts, as_parts, is_matrix

LEAST_VARIANCE = 0.01
"""Least variance of a source in a window, relative to its mean variance; windows of silence get a bounded weight."""
MIN_SAMPLES = 4
"""Least number of samples of a window per component. Eigenvalues of a covariance of so few are between a quarter and
nine quarters of the true ones (Marchenko and Pastur); with no more samples than components it is singular."""
MAX_ENTRIES = 2**24
"""Largest number of entries of the covariances of a stream, 128 MiB; beyond, neighboring windows are joined."""
MIN_WINDOWS = 64
"""Number of windows of a stream that are kept for any number of channels."""


@dataclass(frozen=True, eq=False)
class WindowStack(Stack):
    """The covariance of all samples, then those of windows, each times the window's length over the mean length."""

    shares: np.ndarray  # lengths of windows over their mean

    @classmethod
    def of(cls, products: np.ndarray, counts: np.ndarray, n_channels: int) -> WindowStack:
        """Return the covariances of windows, from products around zero and numbers of samples."""
        n = int(counts.sum())
        if counts.size < 2:
            advice = rank_advice(n, n_channels)
            raise UndeterminedError(
                f"X must contain two windows or more, since one covariance does not separate sources; got 1, of {n} "
                f"samples. A window has at least {MIN_SAMPLES} samples per component: shorter epochs, parts and "
                f"recordings are joined with their neighbors{advice and f'. {advice}'}"
            )
        covariances = products * (counts.size / n)
        used = np.arange(counts.size + 1)
        return cls(np.concatenate([[covariances.mean(axis=0)], covariances]), used, n, counts * (counts.size / n))

    def noise(self, diagonals: np.ndarray) -> np.ndarray:
        """Return the variance of the variance of a window, for Gaussian samples, averaged over windows."""
        variances: np.ndarray = 2 * np.mean(diagonals[1:] ** 2, axis=0) * self.shares.size / self.n
        return variances


@dataclass(eq=False)
class WindowSums:
    """Numbers, means and products of the samples of windows; merging concatenates them.

    While the last window has fewer samples than `least`, the samples that follow are added to it.
    """

    least: int  # number of samples that a window needs
    counts: np.ndarray  # (n_windows,)
    means: np.ndarray  # (n_windows, d)
    products: np.ndarray  # (n_windows, d, d), around the means

    @classmethod
    def over(cls, samples: np.ndarray, n_windows: int, least: int) -> Self:
        """Return the sums over consecutive samples, (n, d)."""
        windows = _cut(samples, n_windows, least)
        means = [window.mean(axis=0) for window in windows]
        centered = [window - mean for window, mean in zip(windows, means, strict=True)]
        counts = np.array([len(window) for window in windows])
        return cls(least, counts, np.stack(means), np.stack([window.T @ window for window in centered]))

    @property
    def n_channels(self) -> int:
        """Number of channels."""
        return self.means.shape[1]

    def merge(self, other: Self) -> Self:
        """Add sums over the samples that follow to these, and return these."""
        if other.n_channels != self.n_channels:
            raise ValueError(
                f"X must have as many channels in every part; got {self.n_channels}, then {other.n_channels}"
            )
        border = self.counts.size
        for name in ("counts", "means", "products"):
            setattr(self, name, np.concatenate([getattr(self, name), getattr(other, name)]))
        self.least = max(self.least, other.least)
        starts = border - 1 + _starts(self.counts[border - 1 :], self.least)
        return self._group(np.concatenate([np.arange(border - 1), starts]))._lengthen()

    def closed(self) -> Self:
        """Return these sums, with a last window that is too short joined to the one before it."""
        last = self.counts.size - 1
        return copy.copy(self)._group(np.arange(last)) if last and self.counts[last] < self.least else self

    def finish(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the mean of all samples, and the products of every window around it."""
        mean = self.counts @ self.means / self.counts.sum()
        offsets = self.means - mean
        return mean, self.products + self.counts[:, None, None] * offsets[:, :, None] * offsets[:, None, :]

    def _lengthen(self) -> Self:
        """Join neighboring windows, and double the samples that a window needs, while there are too many windows."""
        most = max(MAX_ENTRIES // self.n_channels**2, MIN_WINDOWS)
        if self.counts.size <= most:
            return self
        starts = np.arange(self.counts.size)
        while starts.size > most // 2:
            self.least *= 2
            starts = _starts(self.counts, self.least)
        return self._group(starts)

    def _group(self, starts: np.ndarray) -> Self:
        """Join the windows from each of the starts up to the next, and return these sums."""
        if starts.size == self.counts.size:
            return self
        counts = np.add.reduceat(self.counts, starts)
        means = np.add.reduceat(self.counts[:, None] * self.means, starts) / counts[:, None]
        offsets = self.means - np.repeat(means, np.diff([*starts, self.counts.size]), axis=0)
        around = self.products + self.counts[:, None, None] * offsets[:, :, None] * offsets[:, None, :]
        self.counts, self.means, self.products = counts, means, np.add.reduceat(around, starts)
        return self


def _starts(counts: np.ndarray, least: int) -> np.ndarray:
    """Return the first indices of groups of neighboring windows that have at least `least` samples together."""
    starts, size = [0], 0
    for index, count in enumerate(counts):
        if size >= least:
            starts.append(index)
            size = 0
        size += int(count)
    return np.array(starts)


class NSS(SecondOrder[WindowStack, WindowSums]):
    r"""Sources whose variances change: joint diagonalization of covariances of windows, then maximum likelihood.

    Channels :math:`x_t = A s_t + \mu` mix independent sources. The covariances of windows of time,
    :math:`C_b = A\, \mathrm{diag}(\sigma_{1b}^2, \dots, \sigma_{kb}^2)\, A^\top`, have the mixing in common: it is
    found by whitening and orthogonal joint diagonalization (nonstationary source separation, NSS-JD). Steps of a
    Gaussian likelihood follow, the criterion of Pham and Cardoso. They are kept for the pairs of sources for which they
    predict clearly smaller errors.

    **Needs** sources whose variances change differently from window to window; any distribution. **Costs** one pass
    over the data of :math:`2 n d^2` operations, then work on matrices of the size of the components. **Guarantees** the
    same sources from every seed. For Gaussian sources that are white in every window, errors in large samples are at
    most an eighth above the least possible. **Fails** if the variances of two sources are proportional; they are then
    listed in `unresolved_`.

    Parameters
    ----------
    n_components : int, optional
        Number of sources; as many leading principal components are unmixed. By default the number of linearly
        independent channels, whatever their units.
    n_windows : int
        Number of windows of equal length into which every recording is cut; fewer if windows would have less than four
        samples per component. An epoch is one window. Shorter ones are joined with the samples that follow.
    max_iter : int
        Largest number of steps of the likelihood; zero is joint diagonalization alone.
    diagonalizer : Diagonalizer, optional
        Diagonalizer of the covariances; by default `codiag.diagonalize.OrthogonalNewton` until its fixed point.
    random_state : int, optional
        Seed of the start; the estimate does not depend on it if the data determines the sources.

    Attributes
    ----------
    components_ : array of shape (n_components, n_channels)
        The unmixing: sources are ``(X - mean_) @ components_.T``, with unit variance over all samples, sorted by the
        variance of the channels that they explain, largest first.
    mixing_ : array of shape (n_channels, n_components)
        Its pseudo-inverse; the largest entry of each column is positive.
    mixing_standard_errors_ : array of shape (n_channels, n_components)
        Standard errors of the mixing, for independent sources, within the space of the principal components.
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
    SOBI : Sources with different spectra.
    JADE : Sources that are not Gaussian.
    codiag.metrics.minimum_distance : Compare an unmixing with the true one.

    Notes
    -----
    An array of three axes is one of epochs, (n_epochs, n_channels, n_times), as in MNE; a list has recordings of any
    lengths, (n_samples, n_channels) each. The parts of an iterator, those that a function without arguments yields and
    those given to `partial_fit` are recordings, too, of which only covariances of windows are kept, up to 128 MiB;
    beyond, windows get longer. Standard errors then assume white Gaussian sources in every window. The estimate is that
    of `fit` of a list of the parts, up to the borders of windows that short parts share.

    References
    ----------
    S. Choi and A. Cichocki, "Blind separation of nonstationary sources in noisy mixtures", Electron. Lett. 36(9), 2000.
    D.-T. Pham and J.-F. Cardoso, "Blind separation of instantaneous mixtures of nonstationary sources", IEEE Trans.
    Signal Process. 49(9), 2001.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.metrics import minimum_distance
    >>> from codiag.models import NSS
    >>> rng = np.random.default_rng(0)
    >>> loud = np.repeat(rng.uniform(0.2, 2, (10, 3)), 1000, axis=0)
    >>> mixing = rng.standard_normal((3, 3))
    >>> model = NSS(n_windows=10).fit((loud * rng.standard_normal((10_000, 3))) @ mixing.T)
    >>> minimum_distance(model.components_, mixing) < 0.1, model.unresolved_
    (True, [])
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        n_windows: int = 20,
        max_iter: int = 50,
        diagonalizer: Diagonalizer | None = None,
        random_state: int | None = None,
    ) -> None:
        super().__init__(n_components, max_iter=max_iter, diagonalizer=diagonalizer, random_state=random_state)
        self.n_windows = n_windows

    def check_parameters(self) -> None:
        """Raise unless parameters are valid.

        Examples
        --------
        >>> from codiag.models import NSS
        >>> NSS().check_parameters()
        >>> NSS(n_windows=0).check_parameters()  # refused
        Traceback (most recent call last):
            ...
        ValueError: n_windows must be at least 2, since one covariance does not separate sources; got 0
        """
        super().check_parameters()
        as_number("n_windows", self.n_windows, integer=True, zero=True)
        if self.n_windows < 2:
            raise ValueError(
                f"n_windows must be at least 2, since one covariance does not separate sources; got {self.n_windows}"
            )

    def _parts_of(self, data: Any) -> Parts | None:
        """Return data that can only be read part by part; other data is in memory."""
        return as_parts(data, is_matrix) if isinstance(data, Iterator) or callable(data) else None

    def _sums_of_parts(self, parts: Parts) -> WindowSums:
        sums: WindowSums = parts.reduce(_sums_of_part, self.n_windows, self.n_components)
        return sums

    def _sums_over(self, samples: np.ndarray, before: WindowSums | None) -> WindowSums:
        return WindowSums.over(samples, self.n_windows, _least(samples.shape[1], self.n_components))

    def _separated_sums(self, sums: WindowSums) -> tuple[Separation, Whitening]:
        sums = sums.closed()
        mean, products = sums.finish()
        n = int(sums.counts.sum())
        whitening = Whitening.of(mean, products.sum(axis=0) / n, self.n_components, n)
        stack = WindowStack.of(whitening.of_products(products), sums.counts, sums.n_channels)
        return self._separated_stack(stack, None), whitening

    def _separated(self, whitened: Recordings) -> Separation:
        windows = self._windows(whitened)
        products = np.stack([window.T @ window for window in windows])
        stack = WindowStack.of(products, np.array([len(window) for window in windows]), self.n_features_in_)
        return self._separated_stack(stack, Recordings(windows, "list"))

    def _windows(self, recordings: Recordings) -> list[np.ndarray]:
        """Return the windows of recordings; a single recording is cut into at least two, however short it is."""
        least = _least(self.n_features_in_, self.n_components)
        arrays, n_windows = recordings.arrays, 1 if recordings.form == "epochs" else self.n_windows
        if len(arrays) == 1 and n_windows > 1:
            return _cut(arrays[0], n_windows, min(least, max(1, arrays[0].shape[0] // 2)))
        lengths = np.array([len(window) for array in arrays for window in _cut(array, n_windows, least)])
        starts = _starts(lengths, least)
        if starts.size > 1 and lengths[starts[-1] :].sum() < least:
            starts = starts[:-1]
        return np.split(np.concatenate(arrays), np.cumsum(lengths)[starts[1:] - 1])

    def _scores(self, own: np.ndarray, stack: WindowStack) -> np.ndarray:
        variances = own[1:] / stack.shares[:, None]
        scores = np.zeros(own.shape).T
        scores[:, 1:] = 1 / np.maximum(variances, LEAST_VARIANCE * own[0]).T / stack.shares.size
        return scores

    def _segments(
        self, sources: Recordings | None, filters: np.ndarray, stack: WindowStack, own: np.ndarray
    ) -> Iterator[Segment]:
        factors = filters[:, :1] + filters[:, 1:] * stack.shares.size
        if sources is None:  # white Gaussians, whose spectrum is constant
            counts = stack.shares * (stack.n / stack.shares.size)
            for count, energy, factor in zip(counts, own[1:] * (stack.n / stack.shares.size), factors.T, strict=True):
                yield Segment.filtered(np.sqrt(np.maximum(energy, 0))[None], factor, int(np.rint(count)), 1)
            return
        for samples, factor in zip(sources.arrays, factors.T, strict=True):
            transform, length = transformed(samples)
            yield Segment.filtered(transform, factor, samples.shape[0], length)

    def _own_variances(self, sources: Recordings | None, stack: WindowStack, own: np.ndarray) -> np.ndarray:
        if sources is not None:
            return scale_variances(sources.arrays)
        squares: np.ndarray = own[1:] ** 2 / stack.shares[:, None]
        return squares.mean(axis=0) / (2 * stack.n)


def _least(n_channels: int, n_components: int | None) -> int:
    """Return the number of samples that a window needs."""
    return MIN_SAMPLES * int(min(n_channels, n_components or n_channels))


def _cut(samples: np.ndarray, n_windows: int, least: int) -> list[np.ndarray]:
    """Return a recording cut into `n_windows` windows of equal length, or fewer of at least `least` samples."""
    return np.array_split(samples, min(n_windows, max(1, samples.shape[0] // least)))


def _sums_of_part(part: Any, n_windows: int, n_components: int | None) -> WindowSums:
    samples = samples_of_part(part)
    return WindowSums.over(samples, n_windows, _least(samples.shape[1], n_components))
