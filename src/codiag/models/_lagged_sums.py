"""Covariances of a recording with itself some samples later, as sums that add up over parts."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Self

import numpy as np
from scipy import fft

from codiag._array import BLOCK
from codiag._threads import few_threads
from codiag.models._sums import MomentSums

SHORTEST = 1024
"""Samples that are transformed at a time, at least: shorter transforms waste more on the overlap than they save."""


class LaggedCovariances(NamedTuple):
    """The mean of samples, and their symmetrized covariances with those up to the largest lag later."""

    n: int
    mean: np.ndarray  # (d,)
    matrices: np.ndarray  # (max_lag + 1, d, d); the first is the covariance


@dataclass(eq=False)
class LaggedSums(MomentSums):
    r"""Sums :math:`\sum_t x_t x_{t+l}^\top` for all lags l up to the largest, around an origin.

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
    head: np.ndarray  # (at most max_lag, d): the first samples
    tail: np.ndarray  # (at most max_lag, d): the last ones

    @classmethod
    def over(cls, samples: np.ndarray, max_lag: int, *, open: bool = False) -> Self:  # noqa: A002
        """Return the sums over one recording, (n, d), around its mean."""
        origin = samples.mean(axis=0)
        totals = _totals(samples - origin, max_lag)
        ends = (samples[:max_lag], samples[samples.shape[0] - min(max_lag, samples.shape[0]) :])
        return cls(open, origin, *totals, *(end.copy() for end in ends))

    @property
    def size(self) -> int:
        """How many samples there were."""
        return int(self.pairs[0])

    def of(self, part: np.ndarray) -> Self:
        """Return the sums over a part alone."""
        return type(self).over(part, self.pairs.size - 1, open=self.open)

    def merge(self, other: Self) -> Self:
        """Add other sums to these, of samples that follow where they are open, and return these."""
        if self.open != other.open or self.products.shape != other.products.shape:
            raise ValueError("sums must be of as many channels and lags, and both or none open, to be merged")
        totals = [self._around(self.origin), other._around(self.origin)]
        max_lag = self.pairs.size - 1
        if self.open:
            ends = self.tail - self.origin, other.head - self.origin
            totals.append(_totals(np.concatenate(ends), max_lag))
            totals += [tuple(-total for total in _totals(end, max_lag)) for end in ends]
            head = self.head if self.size >= max_lag else np.concatenate([self.head, other.head])[:max_lag]
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
        products = self._around(mean)[0] / n
        return LaggedCovariances(n, mean, (products + products.transpose(0, 2, 1)) / 2)

    def _around(self, origin: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return the sums around another origin."""
        shift = self.origin - origin
        if not np.any(shift):
            return self.products, self.early, self.late, self.pairs
        pairs = self.pairs[:, None]
        products = self.products + self.early[:, :, None] * shift + shift[:, None] * self.late[:, None, :]
        products = products + pairs[:, :, None] * np.outer(shift, shift)
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
    r"""Return :math:`\sum_t x_t x_{t+l}^\top` for every lag, by cross-spectra of overlapping segments.

    A segment, zero after its first samples, times the same segment with what follows it, frequency by frequency: about
    :math:`4 n d^2` operations for all lags together, of which products in the time domain take two lags' worth.
    """
    n, d = samples.shape
    length = fft.next_fast_len(max(SHORTEST, 4 * max_lag) if n > SHORTEST else n + max_lag, real=True)
    step = length - max_lag
    spectrum = np.zeros((length // 2 + 1, d, d), dtype=np.complex128)
    for segments in _segments(samples, step, length):
        alone = segments.copy()
        alone[:, step:] = 0
        first, later = (np.moveaxis(fft.rfft(one, axis=1), 0, 1) for one in (alone, segments))
        with few_threads(first.shape[1] * d * d):
            spectrum += np.matmul(np.conj(first).transpose(0, 2, 1), later)
    products: np.ndarray = fft.irfft(spectrum, n=length, axis=0)[: max_lag + 1]
    return products


def _segments(samples: np.ndarray, step: int, length: int) -> Iterator[np.ndarray]:
    """Yield groups of segments that begin every so many samples, (n_segments, length, d), zero beyond the end."""
    n, d = samples.shape
    starts = range(0, n, step)
    group = max(1, BLOCK // (length * d))
    for place in range(0, len(starts), group):
        some = starts[place : place + group]
        segments = np.zeros((len(some), length, d))
        for segment, start in zip(segments, some, strict=True):
            inside = samples[start : start + length]
            segment[: inside.shape[0]] = inside
        yield segments
