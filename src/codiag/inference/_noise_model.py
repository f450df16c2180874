r"""The noise model of a fit: variances and correlations of the noise, as the residual shows them.

The noise of an entry has the standard deviation :math:`\sigma f(|\mu|) \prod_m s_m`, where :math:`\mu` is the entry of
the fit and :math:`s_m` a scale for its index in mode m. Divided by that, noise may be correlated along modes, or be one
multiple of the fit for all indices of a mode, as by the gain of a detector. What is not significant is left out.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy

from codiag._arrays import to_host
from codiag._text import ReprMixin, listed
from codiag.problem import Problem

LEVEL = 1e-3
"""Probability with which white noise is taken for noise that is not."""

MOST_BINS, PER_BIN = 20, 100
"""Groups of entries with fits of similar size, at most, and entries of each, at least."""

MOST_SAMPLED = 2**17
"""Entries, at most, from which the noise model is estimated: variances are then known to half a per cent."""

CLEAR, LAST = 3.3, 2.0
"""Standard deviations that the correlation of neighbours must exceed, and that of entries further apart."""


@dataclass(frozen=True, eq=False, repr=False)
class NoiseModel(ReprMixin):
    """The noise of a fit: its standard deviation, where it is larger, and its correlations; print it to read it.

    Attributes
    ----------
    sizes, deviations : arrays of shape (n,), or None
        Absolute values of the fit, in ascending order, and the deviations of the noise there, relative to others.
    scales : tuple of arrays of shape (d_m,), or None
        Mode by mode, relative deviations of the noise by index; None if they do not differ.
    correlated : tuple of int
        The modes along which noise is correlated.
    gain : int or None
        A mode for all indices of which the noise is one multiple of the fit, as by the gain of a detector.
    shape : tuple of int
        Shape of the residual.
    standard_deviation : float
        Of the noise of an entry of mean weight; NaN without residual degrees of freedom.
    description : str
        The model in words.

    See Also
    --------
    codiag.Factorization.noise_model : Has one.

    Examples
    --------
    >>> import numpy as np
    >>> import codiag
    >>> a, b, c = (np.random.default_rng(size).random((size, 2)) for size in (9, 8, 7))
    >>> noise = 0.01 * np.random.default_rng(0).standard_normal((9, 8, 7))
    >>> model = codiag.factorize(np.einsum("ir,jr,kr->ijk", a, b, c) + noise, 2, rng=0).noise_model
    >>> round(model.standard_deviation, 3), model.is_white
    (0.01, True)
    """

    sizes: np.ndarray | None = None
    deviations: np.ndarray | None = None
    scales: tuple[np.ndarray | None, ...] = ()
    correlated: tuple[int, ...] = ()
    gain: int | None = None
    shape: tuple[int, ...] = ()
    standard_deviation: float = math.nan
    description: str = ""

    def __str__(self) -> str:
        return self.description or self.in_words([f"mode {mode}" for mode in range(len(self.shape))])

    @classmethod
    def white(cls, shape: tuple[int, ...]) -> NoiseModel:
        """Return that of white noise."""
        return cls(scales=(None,) * len(shape), shape=shape)

    @property
    def is_white(self) -> bool:
        """Whether noise has the same variance everywhere, and no correlations."""
        return self.is_independent and self.sizes is None and all(scale is None for scale in self.scales)

    @property
    def is_independent(self) -> bool:
        """Whether the noise of different entries is independent."""
        return not self.correlated and self.gain is None

    @property
    def tied_modes(self) -> tuple[int, ...]:
        """Modes along which entries are not independent: those with correlations, and that of a gain."""
        return tuple(sorted({*self.correlated, *(() if self.gain is None else (self.gain,))}))

    def relative_deviations(self, model: np.ndarray) -> np.ndarray:
        """Return the deviation of the noise of every entry, given the fit, up to a common factor."""
        found = np.ones(model.shape)
        if self.sizes is not None and self.deviations is not None:
            found *= np.interp(np.abs(model), self.sizes, self.deviations)
        for mode, scale in enumerate(self.scales):
            if scale is not None:
                found *= along(scale, mode, model.ndim)
        return found

    def product_scales(self, model: np.ndarray) -> list[np.ndarray]:
        """Return the nearest deviations that are products over modes, of mean square one in each."""
        logarithms, found = np.log(self.relative_deviations(model)), []
        for mode in range(model.ndim):
            others = tuple(axis for axis in range(model.ndim) if axis != mode)
            scale = np.exp(np.mean(logarithms, axis=others) - np.mean(logarithms))
            found.append(scale / np.sqrt(np.mean(scale**2)))
        return found

    def product_deviations(self, model: np.ndarray) -> np.ndarray:
        """Return the deviations that are products over modes, in the shape of the tensor."""
        return np.asarray(functools.reduce(np.multiply.outer, self.product_scales(model)))

    def in_words(self, names: Sequence[str]) -> str:
        """Say what noise is like, given names of the modes."""
        said = []
        if self.sizes is not None and self.deviations is not None:
            grows = self.deviations[-1] > self.deviations[0]
            said.append(f"variances that {'grow' if grows else 'fall'} with the signal")
        varying = [names[mode] for mode, scale in enumerate(self.scales) if scale is not None]
        if varying:
            said.append(f"a scale for each index of {listed(varying)}")
        if self.correlated:
            said.append(f"correlated along {listed([names[mode] for mode in self.correlated])}")
        if self.gain is not None:
            said.append(f"relative errors that all indices of {names[self.gain]} share")
        return ", ".join(said) if said else "white: the same variance in all entries, and no correlations"


def root_mean_square(values: np.ndarray) -> float:
    """Return the root of the mean square, whose squares may be no numbers."""
    largest = max(float(np.max(np.abs(values))), 1e-300)
    return largest * math.sqrt(float(np.mean((values / largest) ** 2)))


def weights_of(problem: Problem) -> np.ndarray | None:
    """Return the weights of entries as an array, zero for missing ones; None if all count equally."""
    if problem.entries is None:
        return None
    weights = problem.observed_mask() if problem.weights is None else to_host(problem.weights)
    return np.asarray(weights, dtype=np.float64)


def along(values: np.ndarray, mode: int, order: int) -> np.ndarray:
    """Return values by index of a mode in a shape that broadcasts against a tensor."""
    return values.reshape([-1 if axis == mode else 1 for axis in range(order)])


def estimate_noise_model(
    residual: np.ndarray,
    model: np.ndarray,
    mask: np.ndarray | None = None,
    n_copies: float = 1.0,
    ordered: Sequence[bool] | None = None,
) -> NoiseModel:
    """Estimate the noise model from a residual, multiplied by the roots of weights, if there are any.

    Mean absolute values are compared, which rare large errors hardly change.

    Parameters
    ----------
    residual, model : arrays of the same shape
        What a fit leaves, and the fit.
    mask : array of bool of the same shape, optional
        Which entries count; by default all.
    n_copies : float
        How often each entry is there, if modes share a factor; correlations are not estimated then.
    ordered : sequence of bool, optional
        Whether the indices of each mode are in an order, so that there are neighbours; by default all are.
    """
    mask = np.ones(residual.shape, dtype=bool) if mask is None else mask
    white = NoiseModel.white(residual.shape)
    n_bins = min(MOST_BINS, int(np.count_nonzero(mask)) // PER_BIN)
    if n_bins < 3 or not np.any(residual[mask]):
        return white
    residual, order = np.where(mask, residual, 0.0), residual.ndim
    lags = [lags_of(residual, mask.astype(np.float64), mode) for mode in range(order)]
    inflation = n_copies * math.prod(1 + 2 * float(np.sum(own**2)) for own in lags)
    places = _sampled(mask)
    values, sizes_of = np.abs(residual.ravel()[places]), np.abs(model.ravel()[places])
    indices = np.unravel_index(places, residual.shape)
    bins, sizes = _bins_of(sizes_of, n_bins)
    deviations: np.ndarray | None = None
    scales: list[np.ndarray | None] = [None] * order
    groups = {mode: index for mode, index in enumerate(indices) if places.size >= 10 * residual.shape[mode]}
    for _ in range(3):
        deviations = _group_means(values / _products(scales, indices), bins, sizes.size, inflation)
        by_size = 1.0 if deviations is None else np.interp(sizes_of, sizes, deviations)
        for mode, index in groups.items():
            others = [None if other == mode else scale for other, scale in enumerate(scales)]
            relative = values / (by_size * _products(others, indices))
            scales[mode] = _group_means(relative, index, residual.shape[mode], inflation)
    found = replace(white, sizes=None if deviations is None else sizes, deviations=deviations, scales=tuple(scales))
    if n_copies > 1:
        return found
    expected = mask if found.is_white else np.where(mask, found.relative_deviations(model), 0.0)
    modes = [mode for mode in range(order) if ordered is None or ordered[mode]]
    # What is correlated along one mode counts less often along the others.
    squares = [1 + 2 * float(np.sum(own**2)) for own in lags]
    rest = [math.sqrt(math.prod(squares[:mode] + squares[mode + 1 :])) for mode in range(order)]
    return replace(found, correlated=tuple(m for m in modes if lags_of(residual, expected * 1.0, m, rest[m]).size > 0))


def _sampled(mask: np.ndarray) -> np.ndarray:
    """Return the numbers of observed entries, a random part of them if they are many."""
    places = np.flatnonzero(mask)
    if places.size <= MOST_SAMPLED:
        return places
    return places[np.random.default_rng(0).integers(places.size, size=MOST_SAMPLED)]


def _products(scales: Sequence[np.ndarray | None], indices: Sequence[np.ndarray]) -> np.ndarray | float:
    """Return the products of the scales of entries."""
    return math.prod(scale[index] for scale, index in zip(scales, indices, strict=True) if scale is not None)


def _bins_of(values: np.ndarray, n_bins: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the number of the bin of each entry, and the mean value in each bin; but for ties, all are as large."""
    edges = np.quantile(values, np.linspace(0, 1, n_bins + 1)[1:-1])
    bins = np.searchsorted(edges, values)
    counts = np.bincount(bins, minlength=n_bins)
    means = np.bincount(bins, values, n_bins)[counts > 0] / counts[counts > 0]
    return np.maximum(np.cumsum(counts > 0) - 1, 0)[bins], means


def _group_means(values: np.ndarray, groups: np.ndarray, n_groups: int, inflation: float) -> np.ndarray | None:
    """Return the mean of each group relative to that of all; None if they differ no more than by chance."""
    counts = np.bincount(groups, minlength=n_groups)
    means = np.bincount(groups, values, n_groups) / np.maximum(counts, 1)
    total, spread = float(np.mean(values)), float(np.var(values))
    if total == 0 or spread == 0 or np.count_nonzero(counts) < 2:
        return None
    statistic = float(np.sum(counts * (means - total) ** 2)) / spread / inflation
    if statistic < scipy.special.chdtri(np.count_nonzero(counts) - 1, LEVEL):
        return None
    floor = total / math.sqrt(values.size)  # no group is without noise
    return np.where(counts > 0, np.maximum(means, floor) / total, 1.0)


def lags_of(residual: np.ndarray, deviations: np.ndarray, mode: int, inflation: float = 1.0) -> np.ndarray:
    """Return the correlations along a mode, by distance, up to the first that is not significant.

    Products of residuals are compared with those of the deviations of noise. Residuals are not divided by deviations:
    where there is hardly any noise, they are the error of the fit, which is correlated. Chance is larger by an
    inflation of standard deviations if noise is correlated along other modes.
    """
    size = residual.shape[mode]
    most = size // 4
    if most < 1:
        return np.zeros(0)
    one, other = (np.moveaxis(array, mode, 0).reshape(size, -1) for array in (residual, deviations))
    step = max(residual.size // MOST_SAMPLED, 1)  # so many fibres in one
    one, other = one[:, ::step], other[:, ::step]
    if not np.any(one):
        return np.zeros(0)
    one, other = one / np.max(np.abs(one)), other / np.max(np.abs(other))
    total = float(np.sum(one**2))
    products, expected, squares = (_lagged_products(values, most) for values in (one, other, one**2))
    spreads = np.sqrt(np.maximum(squares[1:], 1e-12 * squares[0]))
    bounds = np.where(np.arange(most) == 0, CLEAR, LAST) * spreads * inflation
    n_clear = int(np.argmin(np.append(products[1:] >= bounds, False)))
    there = expected[1 : n_clear + 1]
    ratios = products[1 : n_clear + 1] * float(np.sum(other**2)) / np.where(there > 0, there * total, np.inf)
    return np.asarray(ratios)


def _lagged_products(values: np.ndarray, most: int) -> np.ndarray:
    """Return the sums of products of rows 0, 1, ..., `most` apart, by Fourier transforms."""
    length = 2 ** (values.shape[0] + most - 1).bit_length()
    spectrum = np.sum(np.abs(np.fft.rfft(values, length, axis=0)) ** 2, axis=1)
    return np.fft.irfft(spectrum, length)[: most + 1]
