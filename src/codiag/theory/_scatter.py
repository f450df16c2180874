r"""How noise scatters: where it is larger, and how far it is correlated, as a residual shows it.

The noise of an entry has the standard deviation :math:`\sigma f(|\mu|) \prod_m s_m`, where :math:`\mu` is the entry of
the fit and :math:`s_m` a scale for its index in mode m. Divided by that, noise is correlated along each mode by itself,
as a function of the distance of two indices. Everything that is not significant is left out: white noise has no
scatter.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy

from codiag._text import Described
from codiag.tensors import multiplied

LEVEL = 1e-3
"""Probability with which white noise is taken for noise that is not."""

MOST_BINS, PER_BIN = 20, 100
"""Groups of entries with fits of similar size, at most, and entries of each, at least."""

ROUNDS = 3
"""Rounds in which sizes of the fit and indices of each mode are given their scales, in turn."""

RANGE = 4
"""Correlations over more than this part of a mode, one in four, are no longer those of noise."""

CLEAR, LAST = 3.3, 2.0
"""Standard deviations that the correlation of neighbours must exceed, and that of entries further apart."""


@dataclass(frozen=True, eq=False, repr=False)
class Scatter(Described):
    """Relative deviations of noise, and its correlations.

    Attributes
    ----------
    sizes, deviations : arrays of shape (n,), or None
        Absolute values of the fit, in ascending order, and the deviations of the noise there, relative to others.
    scales : tuple of arrays of shape (d_m,), or None
        Mode by mode, relative deviations of the noise by index; None if they do not differ.
    correlations : tuple of arrays
        Mode by mode, correlations of the noise of entries one, two, ... indices apart.
    explains_residual : bool
        Whether such noise leaves such a residual: no direction of it is stronger than in draws.
    shape : tuple of int
        Shape of the residual.
    """

    sizes: np.ndarray | None = None
    deviations: np.ndarray | None = None
    scales: tuple[np.ndarray | None, ...] = ()
    correlations: tuple[np.ndarray, ...] = ()
    explains_residual: bool = True
    shape: tuple[int, ...] = ()

    @classmethod
    def white(cls, shape: tuple[int, ...]) -> Scatter:
        """Return that of white noise."""
        return cls(scales=(None,) * len(shape), correlations=(np.zeros(0),) * len(shape), shape=shape)

    @property
    def is_white(self) -> bool:
        """Whether noise has the same variance everywhere, and no correlations."""
        return self.sizes is None and all(scale is None for scale in self.scales) and not self.is_correlated

    @property
    def is_correlated(self) -> bool:
        """Whether noise is correlated along a mode."""
        return any(correlation.size for correlation in self.correlations)

    @property
    def is_structure(self) -> bool:
        """Whether what is left is correlated over so much of a mode that it is hardly noise."""
        return any(lags.size >= max(size // RANGE, 2) for lags, size in zip(self.correlations, self.shape, strict=True))

    def relative_deviations(self, model: np.ndarray) -> np.ndarray:
        """Return the deviation of the noise of every entry, given the fit, up to a common factor."""
        found = np.ones(model.shape)
        if self.sizes is not None and self.deviations is not None:
            found *= np.interp(np.abs(model), self.sizes, self.deviations)
        for mode, scale in enumerate(self.scales):
            if scale is not None:
                found *= _along(scale, mode, model.ndim)
        return found

    def draw(self, model: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Draw noise for every entry of a fit, up to a common factor."""
        noise = rng.standard_normal(model.shape)
        if not self.is_correlated:
            return noise * self.relative_deviations(model)
        roots = []
        for covariance in self.covariances(model):
            values, vectors = np.linalg.eigh(covariance)
            roots.append(vectors * np.sqrt(np.maximum(values, 0.0)))
        return multiplied(noise, roots)

    def covariances(self, model: np.ndarray) -> list[np.ndarray]:
        """Return a covariance of the noise for each mode, the variance of an entry being one in the mean.

        Deviations that depend on the fit are replaced by the nearest ones that are products over modes.
        """
        return [
            scale * _as_correlation(self.correlations[mode], scale.size) * scale[:, None]
            for mode, scale in enumerate(self._product_scales(model))
        ]

    def product_deviations(self, model: np.ndarray) -> np.ndarray:
        """Return the deviations that are products over modes, in the shape of the tensor."""
        return np.asarray(functools.reduce(np.multiply.outer, self._product_scales(model)))

    def _product_scales(self, model: np.ndarray) -> list[np.ndarray]:
        logarithms, found = np.log(self.relative_deviations(model)), []
        for mode in range(model.ndim):
            others = tuple(axis for axis in range(model.ndim) if axis != mode)
            scale = np.exp(np.mean(logarithms, axis=others) - np.mean(logarithms))
            found.append(scale / np.sqrt(np.mean(scale**2)))
        return found

    def in_words(self, names: Sequence[str]) -> str:
        """Say what noise is like, given names of the modes."""
        said = []
        if self.sizes is not None and self.deviations is not None:
            grows = self.deviations[-1] > self.deviations[0]
            said.append(f"variances that {'grow' if grows else 'fall'} with the signal")
        varying = [names[mode] for mode, scale in enumerate(self.scales) if scale is not None]
        if varying:
            said.append(f"a scale for each index of {_listed(varying)}")
        for mode, correlation in enumerate(self.correlations):
            if correlation.size:
                said.append(f"correlated over {correlation.size + 1} neighbours of {names[mode]}")
        return ", ".join(said) if said else "white: the same variance in all entries, and no correlations"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _along(values: np.ndarray, mode: int, order: int) -> np.ndarray:
    """Return values by index of a mode in a shape that broadcasts against a tensor."""
    return values.reshape([-1 if axis == mode else 1 for axis in range(order)])


def _as_correlation(lags: np.ndarray, size: int) -> np.ndarray:
    """Return a correlation matrix from correlations by distance, without its negative eigenvalues."""
    row = np.zeros(size)
    row[0], row[1 : lags.size + 1] = 1.0, lags[: size - 1]
    values, vectors = np.linalg.eigh(scipy.linalg.toeplitz(row))
    matrix = (vectors * np.maximum(values, 0.0)) @ vectors.T
    scale = np.sqrt(np.diagonal(matrix))
    return np.asarray(matrix / scale / scale[:, None])


def estimate_scatter(
    residual: np.ndarray, model: np.ndarray, observed: np.ndarray | None = None, n_copies: float = 1.0
) -> Scatter:
    """Find out how noise scatters from a residual, multiplied by the roots of weights, if there are any.

    Mean absolute values are compared, which rare large errors hardly change.

    Parameters
    ----------
    residual, model : arrays of the same shape
        What a fit leaves, and the fit.
    observed : array of bool of the same shape, optional
        Which entries count; by default all.
    n_copies : float
        How often each entry is there, if modes share a factor; correlations are not estimated then.
    """
    mask = np.ones(residual.shape, dtype=bool) if observed is None else observed
    white = Scatter.white(residual.shape)
    n_bins = min(MOST_BINS, int(np.count_nonzero(mask)) // PER_BIN)
    if n_bins < 3 or not np.any(residual[mask]):
        return white
    residual = np.where(mask, residual, 0.0)
    inflation = n_copies * _inflation(_correlations(residual, mask.astype(np.float64)))
    bins, sizes = _bins_of(np.abs(model), mask, n_bins)
    n_bins = sizes.size
    deviations: np.ndarray | None = None
    scales: list[np.ndarray | None] = [None] * residual.ndim
    for _ in range(ROUNDS):
        scaled = Scatter(scales=tuple(scales)).relative_deviations(model)
        deviations = _group_means(np.abs(residual) / scaled, mask, bins, n_bins, inflation)
        for mode in range(residual.ndim):
            others = tuple(None if other == mode else scale for other, scale in enumerate(scales))
            known = Scatter(sizes, deviations, others).relative_deviations(model)
            index = np.broadcast_to(_along(np.arange(residual.shape[mode]), mode, residual.ndim), residual.shape)
            scales[mode] = _group_means(np.abs(residual) / known, mask, index, residual.shape[mode], inflation)
    found = replace(white, sizes=None if deviations is None else sizes, deviations=deviations, scales=tuple(scales))
    if n_copies > 1:
        return found
    correlations = _correlations(residual, np.where(mask, found.relative_deviations(model), 0.0))
    return replace(found, correlations=correlations)


def _bins_of(values: np.ndarray, mask: np.ndarray, n_bins: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the number of the bin of each entry, and the mean value in each bin; but for ties, all are as large."""
    edges = np.quantile(values[mask], np.linspace(0, 1, n_bins + 1)[1:-1])
    bins = np.searchsorted(edges, values)
    counts = np.bincount(bins[mask], minlength=n_bins)
    means = np.bincount(bins[mask], values[mask], n_bins)[counts > 0] / counts[counts > 0]
    return np.maximum(np.cumsum(counts > 0) - 1, 0)[bins], means


def _group_means(
    values: np.ndarray, mask: np.ndarray, groups: np.ndarray, n_groups: int, inflation: float
) -> np.ndarray | None:
    """Return the mean of each group relative to that of all; None if they differ no more than by chance."""
    values, groups = values[mask], groups[mask]
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


def _correlations(residual: np.ndarray, deviations: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return the correlations along each mode, by distance, up to the first that is not significant.

    Products of residuals are compared with those of the deviations of noise. Residuals are not divided by deviations:
    where there is hardly any noise, they are the error of the fit, which is correlated.
    """
    return tuple(
        _lags(np.moveaxis(residual, mode, 0), np.moveaxis(deviations, mode, 0)) for mode in range(residual.ndim)
    )


def _lags(residual: np.ndarray, deviations: np.ndarray) -> np.ndarray:
    found: list[float] = []
    for lag in range(1, residual.shape[0] // RANGE + 1):
        products = residual[lag:] * residual[:-lag]
        spread = math.sqrt(float(np.sum(products**2)))
        if spread == 0 or float(np.sum(products)) < (LAST if found else CLEAR) * spread:
            break
        found.append(_correlation(residual, deviations, lag))
    return np.array(found)


def _correlation(residual: np.ndarray, deviations: np.ndarray, lag: int) -> float:
    """Return the correlation of entries so many indices apart along the first mode; zero where none is observed."""
    expected = float(np.sum(deviations[lag:] * deviations[:-lag])) * float(np.sum(residual**2))
    products = float(np.sum(residual[lag:] * residual[:-lag])) * float(np.sum(deviations**2))
    return products / expected if expected > 0 else 0.0


def correlations_at(residuals: Sequence[np.ndarray], deviations: np.ndarray, mode: int, n_lags: int) -> np.ndarray:
    """Return mean correlations of residuals along a mode, of entries up to so many indices apart."""
    apart, lags = np.moveaxis(deviations, mode, 0), range(1, n_lags + 1)
    turned = [np.moveaxis(residual, mode, 0) for residual in residuals]
    return np.array([np.mean([_correlation(one, apart, lag) for one in turned]) for lag in lags])


def _inflation(correlations: Sequence[np.ndarray]) -> float:
    """Return by how much correlations inflate the variance of mean absolute values, which have their squares."""
    return math.prod(1 + 2 * float(np.sum(lags**2)) for lags in correlations)
