"""Separation of sources by second moments: lagged covariances, or covariances of windows of time."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, Self, TypeVar

import numpy as np

from codiag._arrays import adjoint
from codiag.diagonalize import Diagonalizer, OrthogonalNewton
from codiag.models.base import PartialFit, as_seed
from codiag.models.sources._base import (
    BlindSources,
    Recordings,
    Separation,
    Whitening,
    as_recordings,
    check_orientation,
    from_mne,
    summable,
)
from codiag.models.sources._likelihood import (
    Coefficients,
    Segment,
    rotation_coefficients,
    score_coefficients,
    score_step,
    share_variances,
    squared_gaps,
)
from codiag.parts import Parts

N_REFITS = 5
"""Number of likelihood steps in which scores are fitted again; they are fixed afterwards, so that steps converge."""
TOLERANCE = 1e-12
"""Largest entry of a likelihood step at which the iteration ends."""
GAIN = 0.8
"""Predicted variance of a pair of sources with likelihood steps, relative to that without, up to which steps are kept.
Simulated with mixtures of eight kinds of sources: if less is gained, as for two sinusoids, model errors cost more."""


@dataclass(frozen=True, eq=False)
class Stack:
    """Second moments of whitened channels, (n_matrices, k, k)."""

    matrices: np.ndarray
    used: np.ndarray  # indices of the matrices to diagonalize; the first is the covariance of all samples
    n: int  # number of samples

    @property
    def is_complex(self) -> bool:
        """Whether channels are complex: real parts of second moments are then followed by imaginary parts."""
        return bool(np.iscomplexobj(self.matrices))

    @property
    def n_consecutive(self) -> int:
        """Number of used indices 1, 2, ... before the first gap."""
        used = self.used[: (self.used.size + 1) // 2] if self.is_complex else self.used
        gaps = np.flatnonzero(np.diff(used) != 1)
        return int(gaps[0]) if gaps.size else used.size - 1

    def noise(self, diagonals: np.ndarray) -> np.ndarray:
        """Return the variance of an autocovariance of each source: the sum of the squares of all over n (Bartlett).

        That of a complex one is divided between its real and its imaginary part.
        """
        n_parts = 2 if self.is_complex else 1
        variances: np.ndarray = (1 + 2 * np.sum(diagonals[1:] ** 2, axis=0)) / (n_parts * self.n)
        return variances


class SecondSums(Protocol):
    """Sums over samples from which second moments follow."""

    @property
    def n_channels(self) -> int:
        """Number of channels."""

    def merge(self, other: Any) -> Self:
        """Add the sums of the samples that follow, and return these."""


S = TypeVar("S", bound=Stack)
T = TypeVar("T", bound=SecondSums)


class SecondOrder(PartialFit, BlindSources, Generic[S, T]):
    """Whitening, joint diagonalization of second moments, and steps of a Gaussian likelihood."""

    def learn(self, data: Any) -> tuple[Warning, ...]:
        """Do the work of `fit` without issuing warnings, and return them.

        Parameters
        ----------
        data : array of shape (n_samples, n_channels) or (n_epochs, n_channels, n_times), list of recordings, MNE object
            As for `fit`, or in consecutive parts.

        Returns
        -------
        tuple of Warning
            The warnings of `fit`.

        Examples
        --------
        >>> from codiag.models import SOBI
        >>> from codiag.synthetic import mixed_signals
        >>> channels = mixed_signals(2000, ["sinusoid", "autoregressive"], seed=0).channels
        >>> SOBI(lags=20).learn(channels)
        ()
        """
        self._seen: T | None = None
        data = from_mne(data)
        check_orientation(data)
        parts = self._parts_of(data)
        if parts is None:
            return super().learn(data)
        self.check_parameters()
        sums = self._sums_of_parts(parts)
        self.n_features_in_ = sums.n_channels
        return self._keep(*self._separated_sums(sums))

    def _with_chunk(self, seen: T | None, raw: Any) -> T:
        """Return the sums with the samples that follow added."""
        recordings = as_recordings(self, raw, first=seen is None, least=1)
        if recordings.form != "array":
            raise ValueError("X must be samples that follow those before, (n_samples, n_channels), for partial_fit")
        sums = self._sums_over(summable(recordings.arrays[0]), seen)
        return sums if seen is None else copy.copy(seen).merge(sums)

    def _estimate_seen(self, seen: T) -> tuple[Warning, ...]:
        """Separate the sources from sums alone."""
        return self._keep(*self._separated_sums(seen))

    @abstractmethod
    def _parts_of(self, data: Any) -> Parts | None:
        """Return data in parts, or None if it is in memory."""

    @abstractmethod
    def _sums_of_parts(self, parts: Parts) -> T:
        """Return the sums over all parts."""

    @abstractmethod
    def _sums_over(self, samples: np.ndarray, before: T | None) -> T:
        """Return the sums over samples, (n, d), to be merged with those before."""

    @abstractmethod
    def _separated_sums(self, sums: T) -> tuple[Separation, Whitening]:
        """Return the separation of sources from sums over channels, and the whitening."""

    @abstractmethod
    def _scores(self, own: np.ndarray, stack: S) -> np.ndarray:
        """Return the coefficients (k, n) of the matrices in the scores of sources with second moments `own` (n, k)."""

    @abstractmethod
    def _segments(
        self, sources: Recordings | None, filters: np.ndarray, stack: S, own: np.ndarray
    ) -> Iterator[Segment]:
        """Yield Fourier transforms of sources and their scores."""

    @abstractmethod
    def _own_variances(self, sources: Recordings | None, stack: S, own: np.ndarray) -> np.ndarray:
        """Return the variance of half the mean square of each source."""

    def _separated_stack(self, stack: S, whitened: Recordings | None, leading: Recordings | None = None) -> Separation:
        """Return the joint diagonalization of the stack, with likelihood steps for pairs that these improve.

        Pairs are chosen by variances that models of the sources predict, and by variances on the leading samples, in
        case these models are wrong. Streams have both, so that their estimate is the same. The variances returned are
        computed from the whitened recordings, if they are in memory.
        """
        unmixing, n_steps, converged, orthogonal = self._diagonalized(stack)
        scores = _orthogonal if orthogonal else _free
        if self.max_iter == 0 or unmixing.shape[0] == 1:
            return self._separation(stack, whitened, unmixing, scores, n_steps, converged)
        chosen = np.full(unmixing.shape, True)
        for samples in [None] if leading is None else [None, leading]:
            before = self._separation(stack, samples, unmixing, scores, n_steps, converged).pair_variances
            after = self._separation(stack, samples, unmixing, self._scored, n_steps, converged).pair_variances
            chosen &= after <= GAIN * before
        unmixing, n_more, settled = self._polished(stack, unmixing, chosen)
        rest = n_steps + n_more, converged and settled
        plain = self._separation(stack, whitened, unmixing, scores, *rest)
        scored = self._separation(stack, whitened, unmixing, self._scored, *rest)
        return replace(scored, variances=np.where(chosen, scored.variances, plain.variances))

    def _separation(
        self,
        stack: S,
        whitened: Recordings | None,
        unmixing: np.ndarray,
        scores: Callable[[np.ndarray, S], tuple[np.ndarray, Coefficients]],
        n_steps: int,
        converged: bool,
    ) -> Separation:
        """Return the separation by an unmixing that solves the equations of given scores, with its variances."""
        unmixing, matrices = _unit(unmixing, stack.matrices)
        own = np.einsum("lii->li", matrices).real
        sources = None
        if whitened is not None:
            sources = Recordings([array @ unmixing.T for array in whitened.arrays], whitened.form)
        filters, coefficients = scores(own, stack)
        variances = share_variances(self._segments(sources, filters, stack, own), coefficients)
        np.fill_diagonal(variances, self._own_variances(sources, stack, own))
        used = own[stack.used]
        return Separation(
            unmixing=unmixing,
            converged=converged,
            n_steps=n_steps,
            variances=variances,
            resolved=_resolved(used, stack.noise(used)),
        )

    def _scored(self, own: np.ndarray, stack: S) -> tuple[np.ndarray, Coefficients]:
        """Return the scores of the likelihood, and the coefficients of their errors."""
        filters = self._scores(own, stack)
        return filters, score_coefficients(filters @ own)

    def _diagonalized(self, stack: S) -> tuple[np.ndarray, int, bool, bool]:
        """Return the inverse factor of the stack, the number of sweeps, whether they converged, and if orthogonal."""
        if stack.matrices.shape[1] == 1:
            return np.eye(1), 0, True, True
        method: Diagonalizer = self.diagonalizer or OrthogonalNewton(tol=1e-13, statistical_tol=0.0)
        fit = method(stack.matrices[stack.used], seed=as_seed(self.random_state))
        return fit.inverse, fit.n_sweeps, fit.converged, method.orthogonal

    def _polished(self, stack: S, unmixing: np.ndarray, chosen: np.ndarray) -> tuple[np.ndarray, int, bool]:
        """Return the unmixing after likelihood steps for chosen pairs, their number, and whether they converged.

        To first order, pairs do not depend on each other.
        """
        filters = np.empty(0)
        for step in range(self.max_iter):
            unmixing, matrices = _unit(unmixing, stack.matrices)
            own = np.einsum("lii->li", matrices).real
            filters = self._scores(own, stack) if step < N_REFITS else filters
            correlations = np.einsum("il,lij->ij", filters, matrices, optimize=True)
            shares = score_step(correlations, filters @ own, chosen)
            unmixing = np.linalg.solve(np.eye(shares.shape[0]) + shares, unmixing)
            if np.max(np.abs(shares)) < TOLERANCE:
                return unmixing, step + 1, True
        return unmixing, self.max_iter, False


def _orthogonal(own: np.ndarray, stack: Stack) -> tuple[np.ndarray, Coefficients]:
    """Return the scores of orthogonal joint diagonalization after whitening, and the coefficients of their errors."""
    return _at_used(own, stack), rotation_coefficients(own[stack.used])


def _free(own: np.ndarray, stack: Stack) -> tuple[np.ndarray, Coefficients]:
    """Return the scores of least squares for every pair, and the coefficients of their errors."""
    used = own[stack.used]
    return _at_used(own, stack), score_coefficients(used.T @ used)


def _at_used(own: np.ndarray, stack: Stack) -> np.ndarray:
    """Return the diagonals of the matrices that are diagonalized as coefficients (k, n), zero for the others."""
    filters = np.zeros_like(own.T)
    filters[:, stack.used] = own[stack.used].T
    return filters


def _unit(unmixing: np.ndarray, matrices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the unmixing scaled so that sources have unit variance, and the matrices of the sources."""
    rows = unmixing / np.sqrt(np.einsum("ij,jk,ik->i", unmixing, matrices[0], unmixing.conj()).real)[:, None]
    return rows, rows @ matrices @ adjoint(rows)


def _resolved(diagonals: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """Return the share of the gap between the diagonals of two sources that sampling noise does not explain.

    Sources are directions in which noise differs most. The root of the gap that noise explains is the root of its
    expected energy plus twice the root of the number of sources, found by simulation of identical sources.
    """
    count, k = diagonals.shape
    explained = (np.sqrt(count - 1) + 2 * np.sqrt(k)) ** 2 * (noise[:, None] + noise)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.nan_to_num(np.maximum(1 - explained / squared_gaps(diagonals), 0))
