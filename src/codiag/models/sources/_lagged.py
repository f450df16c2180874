"""Covariances of a recording with itself some samples later, as sums that add up over parts."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Self

import numpy as np
from scipy import fft

from codiag._arrays import BLOCK, few_threads
from codiag.models.frame import MomentSums

SHORTEST = 1024
"""Length of transforms, at least: shorter ones waste more on the overlap of windows than they save."""

LEADING = 2**13
"""First samples that are kept as they are, for what models of them do not say."""

MOST = 2**30
"""Entries of all covariances together, at most."""


class LaggedCovariances(NamedTuple):
    """The mean of samples, and their symmetrized covariances with those up to the largest lag later."""

    n: int
    mean: np.ndarray  # (d,)
    matrices: np.ndarray  # (max_lag + 1, d, d); the first is the covariance


@dataclass(eq=False)
class LaggedSums(MomentSums):
    r"""Sums of the symmetric parts of :math:`x_t x_{t+l}^\top` for all lags l up to the largest, around an origin.

    Where they are `open`, sums that are merged are of samples that follow those before: products across the border are
    formed from the last samples of the one and the first of the other, so that however a recording is cut into parts,
    the sums are those of the whole. Sums that are not open are of recordings of their own.
    """

    constant: ClassVar[frozenset[str]] = frozenset({"open"})

    open: bool
    origin: np.ndarray  # (d,)
    products: np.ndarray  # (max_lag + 1, d, d)
    early: np.ndarray  # (max_lag + 1, d): sums of x_t
    late: np.ndarray  # (max_lag + 1, d): sums of x_{t+l}
    pairs: np.ndarray  # (max_lag + 1,): how many there are
    head: np.ndarray  # (at most max_lag or LEADING, d): the first samples
    tail: np.ndarray  # (at most max_lag, d): the last ones

    @classmethod
    def over(cls, samples: np.ndarray, max_lag: int, *, open: bool = False) -> Self:  # noqa: A002
        """Return the sums over one recording, (n, d), around its mean."""
        d = samples.shape[1]
        if (max_lag + 1) * d**2 > MOST:
            raise ValueError(
                f"lags must be at most {MOST // d**2 - 1} with {d} channels, of whose covariances there may be "
                f"{MOST * 8 // 2**30} GiB; got {max_lag}"
            )
        origin = samples.mean(axis=0)
        totals = _totals(samples - origin, max_lag)
        ends = (samples[: max(max_lag, LEADING)], samples[samples.shape[0] - min(max_lag, samples.shape[0]) :])
        return cls(open, origin, *totals, *(end.copy() for end in ends))

    @property
    def size(self) -> int:
        """How many samples there were."""
        return int(self.pairs[0])

    @property
    def n_channels(self) -> int:
        """How many channels there are."""
        return self.origin.size

    def of(self, part: np.ndarray) -> Self:
        """Return the sums over a part alone."""
        return type(self).over(part, self.pairs.size - 1, open=self.open)

    def merge(self, other: Self) -> Self:
        """Add other sums to these, of samples that follow where they are open, and return these."""
        if self.open != other.open or self.products.shape != other.products.shape:
            shapes = [f"{len(sums.pairs) - 1} lags of {sums.origin.size} channels" for sums in (self, other)]
            raise ValueError(f"X must have as many channels in every part; got {shapes[0]}, then {shapes[1]}")
        totals = [self._around(self.origin), other._around(self.origin)]
        max_lag = self.pairs.size - 1
        if self.open:
            ends = self.tail - self.origin, other.head[:max_lag] - self.origin
            totals.append(_totals(np.concatenate(ends), max_lag))
            totals += [tuple(-total for total in _totals(end, max_lag)) for end in ends]
            kept = max(max_lag, LEADING)
            head = self.head if self.size >= kept else np.concatenate([self.head, other.head])[:kept]
            both = np.concatenate([self.tail, other.tail])
            tail = other.tail if other.size >= max_lag else both[max(both.shape[0] - max_lag, 0) :]
            self.head, self.tail = head, tail
        self.products, self.early, self.late, self.pairs = (
            sum(parts[1:], parts[0]) for parts in zip(*totals, strict=True)
        )
        return self

    def merged(self, other: Self) -> Self:
        """Return these sums and others that follow, of which none is changed."""
        return copy.copy(self).merge(other)

    def finish(self) -> LaggedCovariances:
        """Return the mean and the covariances, divided by the number of samples whatever the lag."""
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
    """Return products, early and late sums and numbers of pairs for every lag."""
    n, d = samples.shape
    total, ends = samples.sum(axis=0), min(max_lag, n)
    zeros = np.zeros((max_lag + 1 - ends, d))  # of lags as long as the recording there is no pair
    first, last = (np.cumsum(part, axis=0) for part in (samples[:ends], samples[n - ends :][::-1]))
    early = np.concatenate([total[None], total - last, zeros])[: max_lag + 1]
    late = np.concatenate([total[None], total - first, zeros])[: max_lag + 1]
    pairs = np.maximum(n - np.arange(max_lag + 1), 0.0)
    return lagged_products(samples, max_lag), early, late, pairs


def lagged_products(samples: np.ndarray, max_lag: int) -> np.ndarray:
    r"""Return :math:`\sum_t (x_t x_{t+l}^\top + x_{t+l} x_t^\top) / 2` for every lag, by spectra of windows.

    Windows overlap by the largest lag: every pair lies within one of them, or within two and their overlap, whose
    products are taken off again. The symmetric part of products within a window has the real part of its spectral
    matrices for a transform, a product of real matrices: about :math:`3 n d^2` operations for all lags together.
    """
    n = samples.shape[0]
    step = max(SHORTEST, 4 * max_lag) - 2 * max_lag
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
    for place in range(0, len(starts), group):
        some = starts[place : place + group]
        transforms = fft.rfft(_windows(samples, some, width, length), axis=1)
        parts = np.empty((spectrum.shape[0], 2 * len(some), d))
        for turn, part in enumerate((transforms.real, transforms.imag)):
            parts[:, turn * len(some) : (turn + 1) * len(some)] = np.moveaxis(part, 0, 1)
        with few_threads(parts.shape[1] * d * d):
            spectrum += np.matmul(parts.transpose(0, 2, 1), parts)
    cosines = _inverse_cosines(length, max_lag)
    return (cosines @ spectrum.reshape(spectrum.shape[0], -1)).reshape(-1, d, d)


def _windows(samples: np.ndarray, starts: list[int], width: int, length: int) -> np.ndarray:
    """Return samples from some places on, (n_windows, length, d), zero beyond the width and the end."""
    found = np.zeros((len(starts), length, samples.shape[1]))
    for window, start in zip(found, starts, strict=True):
        inside = samples[start : start + width]
        window[: inside.shape[0]] = inside
    return found


def _inverse_cosines(length: int, max_lag: int) -> np.ndarray:
    """Return the matrix of the inverse transform of a real and even spectrum, up to a lag, (max_lag + 1, n_freq)."""
    twice = np.full(length // 2 + 1, 2.0)  # frequencies that stand for their negatives, too
    twice[0] = 1.0
    if length % 2 == 0:
        twice[-1] = 1.0
    turns = np.outer(np.arange(max_lag + 1), np.arange(twice.size)) % length
    cosines: np.ndarray = np.cos(2 * np.pi / length * turns) * (twice / length)
    return cosines
