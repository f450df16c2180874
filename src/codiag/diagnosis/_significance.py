r"""Whether components, and terms of a residual, exceed noise as it is: parallel analysis by random sign flips.

Signs of the entries of a residual are flipped at random. Sizes stay where they are, so that heavy tails, single large
entries and variances that differ by entry, sensor or sample are all in the flipped copies; a component is not. Where
noise is correlated along a mode, entries are first expressed in the principal directions of the residual along it,
which leaves rank-one terms as they are and noise uncorrelated.

References
----------
D. Hong, Y. Sheng and E. Dobriban, "Selecting the number of components in PCA via random signflips", arXiv:2012.02985.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import TYPE_CHECKING

import numpy as np
import scipy

from codiag._arrays import adjoint, conjugate, to_double, to_host
from codiag.inference import along, lags_of, residual_of, shared_gain
from codiag.least_squares import NEGLIGIBLE, GeneralizedObjective, strongest_terms
from codiag.tensors import DenseTensor, with_random_signs

if TYPE_CHECKING:
    from codiag.result import Factorization

N_FLIPS, FEW_FLIPS = 12, 4
"""Flipped copies, at most, and so many at once, after which it is looked whether more would change the answer."""

LEVEL = 0.01
"""Probability with which a term of noise is taken for a component."""

TIED_MARGIN = 1.2
"""By what a component must exceed noise with correlations, whose directions are estimated from the residual."""

MOST_ENTRIES = 2**17
"""Entries on which sign flips are tried first; of a larger tensor, some indices of its longest modes."""


@dataclass(frozen=True, eq=False)
class SignFlips:
    """Copies of a residual with random signs.

    Attributes
    ----------
    residual : array
        As large as noise is of which a fit has taken nothing away.
    weights : array, or None
        Roots of the weights of entries, by which terms are multiplied, too.
    scales : list of arrays
        Mode by mode, by what the residual was divided.
    bases : list of arrays, or None
        Mode by mode, the directions in which the residual is expressed; those of the cosine transform have no columns.
    shared : tuple of int
        Modes that share a factor: signs are symmetric in them.
    rows : list of arrays of int, or slices
        Mode by mode, the indices that are taken.
    """

    residual: np.ndarray
    weights: np.ndarray | None
    scales: Sequence[np.ndarray]
    bases: Sequence[np.ndarray | None]
    shared: tuple[int, ...]
    rows: Sequence[np.ndarray | slice]

    @classmethod
    def of(cls, fit: Factorization) -> SignFlips | None:
        """Return those of a fit; None without its entries, or residual degrees of freedom."""
        problem = fit._data
        if problem is None or problem.tensor.shape != fit.shape or not fit._noise > 0:
            return None
        residual, _, weights = residual_of(fit, problem)
        weights = None if weights is None else np.sqrt(weights / problem.data.mean_weight)
        size = float(np.linalg.norm(residual))
        if not size > 0:
            return None
        n_seen = np.count_nonzero(np.abs(residual) > NEGLIGIBLE * size)  # where all components are zero, so is noise
        factor, noise_model = fit._noise * math.sqrt(n_seen) / size, fit._noise_model
        residual = factor * (residual if fit._deviance is None else _deviance_residual(fit, residual))
        scales = [np.ones(d) for d in fit.shape]
        if noise_model is not None:
            scales = [one if scale is None else scale for one, scale in zip(scales, noise_model.scales, strict=True)]
        for mode, scale in enumerate(scales):
            residual = residual / along(scale, mode, residual.ndim)
        bases: list[np.ndarray | None] = [None] * residual.ndim
        if noise_model is not None and noise_model.tied_modes:
            rest = _without_missed(residual)
            for mode in _still_tied(rest, fit, noise_model.tied_modes):
                basis = _principal_directions(rest, mode)
                bases[mode], residual = basis, _turned(residual, mode, basis)
        shared = () if any(basis is not None for basis in bases) else _symmetric_modes(residual)
        return cls(residual, weights, scales, bases, shared, [slice(None)] * residual.ndim)

    @cached_property
    def part(self) -> SignFlips:
        """The same on some indices of the longest modes, drawn at random, if entries are many; tied modes are whole."""
        shape, rng, rows = list(self.residual.shape), np.random.default_rng(0), list(self.rows)
        free = [mode for mode, basis in enumerate(self.bases) if basis is None and mode not in self.shared]
        while math.prod(shape) > MOST_ENTRIES and any(shape[mode] > 16 for mode in free):
            mode = max(free, key=lambda mode: shape[mode])
            size = max(MOST_ENTRIES * shape[mode] // math.prod(shape), shape[mode] // 2, 16)
            rows[mode] = np.sort(rng.permutation(self.residual.shape[mode])[:size])
            shape[mode] = size
        if shape == list(self.residual.shape):
            return self
        place = np.ix_(*[np.arange(self.residual.shape[m])[chosen] for m, chosen in enumerate(rows)])
        weights = None if self.weights is None else self.weights[place]
        return replace(self, residual=self.residual[place], weights=weights, rows=rows)

    @cached_property
    def strongest(self) -> float:
        """The weight of the strongest term of the residual."""
        return self._strongest(self.residual)

    @cached_property
    def bound(self) -> float:
        """What the strongest term of the flipped residual exceeds with the probability `LEVEL`."""
        return self._bound(self.residual, self.strongest)

    @property
    def residual_ratio(self) -> float:
        """The weight of the strongest term of the residual, relative to the largest that noise may have."""
        return self.strongest / self.bound / self._margin

    @property
    def _margin(self) -> float:
        return 1.0 if all(basis is None for basis in self.bases) else TIED_MARGIN

    def ratio(self, size: float, factors: Sequence[np.ndarray]) -> float:
        """Return the weight of a rank-one term relative to the largest that noise may have; at most one if it is noise.

        It is none if it exceeds the terms of flipped copies of the residual that contain it, too: if it is a single
        large entry, or heavy tails are, it is in all of them. They are not drawn where the flipped term, by itself,
        shows that they would change nothing, or the term exceeds one of the residual that is none of noise.
        """
        term = self._term(factors)
        length = float(np.linalg.norm(term))
        size, term = size * length, term / max(length, 1e-300)
        lower = size / (self.bound + 1.2 * size * _flipped_norm(term))  # 1.2: a constant that is typical
        if lower > 1 or size < self.bound / 2 or (size > self.strongest and self.residual_ratio > 1):
            return size / self.bound
        joined = self.residual + size * term
        weight = min(size, self._strongest(joined))
        ratio = weight / self._bound(joined, weight) / self._margin
        return size / self.bound if ratio > 1 else ratio

    def _term(self, factors: Sequence[np.ndarray]) -> np.ndarray:
        """Return a term of unit weight as the residual is expressed."""
        taken = zip(factors, self.scales, self.rows, strict=True)
        term = np.asarray(reduce(np.multiply.outer, [(factor / scale)[rows] for factor, scale, rows in taken]))
        term = term if self.weights is None else term * self.weights
        for mode, basis in enumerate(self.bases):
            term = term if basis is None else _turned(term, mode, basis)
        return term

    def _bound(self, entries: np.ndarray, weight: float) -> float:
        """Return what the strongest term of flipped copies exceeds with the probability `LEVEL`."""
        rng, drawn = np.random.default_rng(0), list[float]()
        while len(drawn) < N_FLIPS:
            n = max(1, min(FEW_FLIPS, N_FLIPS - len(drawn), 2**22 // entries.size))
            copies = np.stack([self._flipped(entries, rng) for _ in range(n)])
            drawn += strongest_terms(copies)[0].tolist()
            bound, error = _quantile(drawn)
            if len(drawn) >= FEW_FLIPS and abs(weight - bound) > 3 * error:
                break
        return _quantile(drawn)[0]

    def _flipped(self, entries: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return np.asarray(with_random_signs(DenseTensor.of(entries, symmetric=False), rng, self.shared).to_dense())

    def _strongest(self, entries: np.ndarray) -> float:
        return float(strongest_terms(entries[None])[0][0])


def _quantile(drawn: Sequence[float]) -> tuple[float, float]:
    """Return the quantile 1 - LEVEL of a further draw, by Student's distribution, and its standard error.

    Searches differ by half a per cent, so that the spread is no less.
    """
    n, mean = len(drawn), float(np.mean(drawn))
    spread = max(float(np.std(drawn, ddof=1)) if n > 1 else 0.0, 0.005 * mean)
    times = float(scipy.special.stdtrit(max(n - 1, 1), 1 - LEVEL))
    return mean + times * spread * math.sqrt(1 + 1 / n), spread * math.sqrt(1 / n + times**2 / (2 * n))


def _without_missed(residual: np.ndarray) -> np.ndarray:
    """Return a residual without its five strongest terms, which may be components that were missed."""
    for _ in range(5):
        (weight,), columns = strongest_terms(residual[None])
        residual = residual - weight * reduce(np.multiply.outer, [column[0] for column in columns])
    return residual


def _still_tied(rest: np.ndarray, fit: Factorization, tied: Sequence[int]) -> list[int]:
    """Return the modes along which noise is correlated, from what is left without components that were missed.

    Along one mode at least, noise is taken to be independent: else nothing could be told from it.
    """
    model, ones = to_double(to_host(fit._components.to_dense())), np.ones(rest.shape)
    gain = shared_gain(rest, model)
    sizes = {mode: float(np.sum(lags_of(rest, ones, mode)[:1])) for mode in tied}
    found = [mode for mode in tied if sizes[mode] > 0 or mode == gain]
    return sorted(found, key=lambda mode: -sizes[mode])[: rest.ndim - 1]


def _symmetric_modes(entries: np.ndarray) -> tuple[int, ...]:
    """Return the modes whose exchange leaves a tensor as it is, to rounding, whether that was stated or not."""
    size = float(np.max(np.abs(entries)))
    for first in range(entries.ndim - 1):
        equal = [first]
        for second in range(first + 1, entries.ndim):
            if entries.shape[second] == entries.shape[first]:
                gap = np.max(np.abs(entries - np.swapaxes(entries, first, second)))
                equal += [second] if gap <= 1e-9 * size else []
        if len(equal) > 1:
            return tuple(equal)
    return ()


def _flipped_norm(term: np.ndarray) -> float:
    """Return about how large rank-one terms of a tensor with random signs can be: the largest row and column norms.

    Y. Seginer, "The expected norm of random matrices", Combinatorics, Probability and Computing 9(2), 2000.
    """
    squares, bounds = np.abs(term) ** 2, []
    for mode in range(term.ndim):
        side = np.moveaxis(squares, mode, 0).reshape(term.shape[mode], -1)
        bounds.append(math.sqrt(float(np.max(np.sum(side, axis=1)))) + math.sqrt(float(np.max(np.sum(side, axis=0)))))
    return min(bounds)


def _principal_directions(entries: np.ndarray, mode: int) -> np.ndarray:
    """Return the principal directions of a tensor along a mode; no columns if fibres are too few to show them."""
    size = entries.shape[mode]
    side = np.moveaxis(entries, mode, 0).reshape(size, -1)
    return np.linalg.eigh(side @ adjoint(side))[1] if 2 * size <= side.shape[1] else np.zeros((size, 0))


def _turned(entries: np.ndarray, mode: int, basis: np.ndarray) -> np.ndarray:
    """Return a tensor in the coordinates of an orthonormal basis along a mode: cosines if that has no columns."""
    if basis.shape[1] == 0:
        return np.asarray(scipy.fft.dct(entries, axis=mode, norm="ortho"))
    return np.moveaxis(np.tensordot(conjugate(basis), entries, (0, mode)), 0, mode)


def _deviance_residual(fit: Factorization, residual: np.ndarray) -> np.ndarray:
    """Return deviance residuals in the unit of Pearson's, whose tails are far longer where means are nearly zero.

    P. McCullagh and J. A. Nelder, "Generalized Linear Models", second edition, 1989, section 2.4.
    """
    assert fit._data is not None
    objective = GeneralizedObjective(fit.problem)
    if objective.listed.values.shape != residual.shape:
        return residual
    halves = to_host(objective.loss.value(objective.listed.values, objective.model(fit._components)))
    sizes = np.sqrt(2 * np.where(residual == 0, 0.0, halves) / fit._data.data.mean_weight)
    return np.where(np.isfinite(sizes), np.sign(residual) * sizes, residual)
