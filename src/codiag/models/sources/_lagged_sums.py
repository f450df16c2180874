"""Covariances of recordings with themselves some samples later, as sums over samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy import fft

from codiag._arrays import BLOCK, adjoint, few_threads
from codiag.models.base import MomentSums
from codiag.models.sources._base import samples_of_part

MIN_TRANSFORM = 1024
"""Least length of transforms; shorter ones spend more time on the overlap of windows than they save."""
N_LEADING = 2**13
"""Number of first samples that are kept, to test predictions of autoregressive models."""
MAX_ENTRIES = 2**30
"""Largest number of entries of all covariances together, 8 GiB."""


class LaggedCovariances(NamedTuple):
    """The mean of samples, and their covariances with those up to the largest lag later, as Hermitian matrices."""

    n: int
    mean: np.ndarray  # (d,)
    matrices: np.ndarray  # (max_lag + 1, d, d), or (2 max_lag + 1, d, d) if complex; the first is the covariance


@dataclass(eq=False)
class LaggedSums(MomentSums):
    r"""Sums of the symmetric parts of :math:`x_t x_{t+l}^\top` for all lags l up to the largest, around an origin.

    If samples are complex, sums of :math:`x_{t+l} x_t^H`, which are not Hermitian: their Hermitian and their skew parts
    have different sums.

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
        if np.iscomplexobj(self.products) != np.iscomplexobj(other.products):
            raise ValueError("X must be real in all parts, or complex in all; got parts of both kinds")
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
        covariances = self._around(mean)[0] / n
        return LaggedCovariances(n, mean, hermitian_parts(covariances) if np.iscomplexobj(covariances) else covariances)

    def _around(self, origin: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return the sums around another origin."""
        shift = self.origin - origin
        if not np.any(shift):
            return self.products, self.early, self.late, self.pairs
        pairs = self.pairs[:, None]
        if np.iscomplexobj(shift):
            ends = self.late[:, :, None] * shift.conj() + shift[:, None] * self.early.conj()[:, None, :]
        else:
            half = (self.early + self.late)[:, :, None] * (shift / 2)
            ends = half + half.transpose(0, 2, 1)
        products = self.products + ends + pairs[:, :, None] * np.outer(shift, shift.conj())
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

    If samples are complex, return :math:`\sum_t x_{t+l} x_t^H`, the transform of the whole spectral matrices.
    """
    n = samples.shape[0]
    step = max(MIN_TRANSFORM, 4 * max_lag) - 2 * max_lag
    starts = list(range(0, max(n - max_lag, 1), step))
    products = _within_windows(samples, starts, step + max_lag if len(starts) > 1 else n, max_lag)
    if len(starts) > 1:
        products -= _within_windows(samples, starts[1:], max_lag, max_lag)
    return products


def hermitian_parts(matrices: np.ndarray) -> np.ndarray:
    r"""Return :math:`(C_l + C_l^H) / 2` for all lags, then :math:`(C_l - C_l^H) / 2i` for all but lag zero.

    If :math:`C_l = A\, \mathrm{diag}(r(l))\, A^H`, these are :math:`A\, \mathrm{diag}(\mathrm{Re}\, r)\, A^H` and
    :math:`A\, \mathrm{diag}(\mathrm{Im}\, r)\, A^H`.
    """
    others = adjoint(matrices)
    return np.concatenate([(matrices + others) / 2, (matrices - others)[1:] / 2j])


def _within_windows(samples: np.ndarray, starts: list[int], width: int, max_lag: int) -> np.ndarray:
    """Return symmetrized products of samples within windows of one width, (max_lag + 1, d, d)."""
    if np.iscomplexobj(samples):
        return _within_complex_windows(samples, starts, width, max_lag)
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


def _within_complex_windows(samples: np.ndarray, starts: list[int], width: int, max_lag: int) -> np.ndarray:
    """Return products of complex samples with the conjugates of those before, within windows of one width."""
    d = samples.shape[1]
    length = fft.next_fast_len(width + max_lag)
    spectrum = np.zeros((length, d, d), dtype=samples.dtype)
    group = max(1, BLOCK // (2 * length * d))
    for first in range(0, len(starts), group):
        windows = _windows(samples, starts[first : first + group], width, length)
        transforms = np.moveaxis(fft.fft(windows, axis=1), 0, 2)  # (length, d, n_windows)
        with few_threads(transforms.shape[2] * d * d):
            spectrum += transforms @ adjoint(transforms)
    return np.asarray(fft.ifft(spectrum, axis=0))[: max_lag + 1]


def _windows(samples: np.ndarray, starts: list[int], width: int, length: int) -> np.ndarray:
    """Return windows of samples, (n_windows, length, d), zero beyond the width and the end of the recording."""
    windows = np.zeros((len(starts), length, samples.shape[1]), dtype=samples.dtype)
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


def sums_of_part(part: Any, max_lag: int) -> LaggedSums:
    """Return the sums over a part of a stream."""
    return LaggedSums.over(samples_of_part(part, allow_complex=True), max_lag, open=True)
