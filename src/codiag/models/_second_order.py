"""Sources told apart by second moments: lagged covariances, or covariances of stretches of time."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from codiag.diagonalize import Diagonalizer, OrthogonalNewton
from codiag.models._base import as_seed
from codiag.models._recordings import Recordings
from codiag.models._score_steps import (
    Coefficients,
    Segment,
    rotation_coefficients,
    score_coefficients,
    score_step,
    share_variances,
    squared_gaps,
)
from codiag.models._sources import BlindSources, Separation

REFITS = 5
"""Steps of the likelihood at which scores are fitted again, before they stay."""
TOLERANCE = 1e-11
"""Largest entry of a step of the likelihood at which it ends."""


@dataclass(frozen=True, eq=False)
class Stack:
    """Second moments of whitened channels, (n_matrices, k, k), the ones to diagonalize, and the number of samples."""

    matrices: np.ndarray
    places: np.ndarray  # of those to diagonalize; the first is the covariance of all
    n: int

    @property
    def n_consecutive(self) -> int:
        """How many of the places follow each other from the first on."""
        gaps = np.flatnonzero(np.diff(self.places) != 1)
        return int(gaps[0]) if gaps.size else self.places.size - 1

    def noise(self, diagonals: np.ndarray) -> np.ndarray:
        """Return the variance of an autocovariance of each source: the sum of the squares of all over n (Bartlett)."""
        variances: np.ndarray = (1 + 2 * np.sum(diagonals[1:] ** 2, axis=0)) / self.n
        return variances


S = TypeVar("S", bound=Stack)


class SecondOrder(BlindSources, Generic[S]):
    """Whitening, joint diagonalization of second moments, and steps of a Gaussian likelihood."""

    @abstractmethod
    def _scores(self, own: np.ndarray, stack: S) -> np.ndarray:
        """Return coefficients of the matrices that make the scores of sources with these second moments, (k, n)."""

    @abstractmethod
    def _segments(
        self, sources: Recordings | None, filters: np.ndarray, stack: S, own: np.ndarray
    ) -> Iterator[Segment]:
        """Yield Fourier transforms of sources and their scores."""

    @abstractmethod
    def _own_variances(self, sources: Recordings | None, stack: S, own: np.ndarray) -> np.ndarray:
        """Return the variance of half the mean square of each source."""

    def _separated_stack(self, stack: S, whitened: Recordings | None) -> Separation:
        """Return what diagonalizes the stack, and its worth, by whitened recordings where they are at hand."""
        unmixing, n_steps, converged, orthogonal = self._diagonalized(stack)
        polished = self._polished(stack, unmixing)
        if polished is not None:
            unmixing, n_steps = polished[0], n_steps + polished[1]
            converged = converged and polished[2]
        unmixing, matrices = _unit(unmixing, stack.matrices)
        own = np.einsum("lii->li", matrices)
        used = own[stack.places]
        filters = np.zeros(own.shape).T
        if polished is None:
            filters[:, stack.places] = used.T
            coefficients = rotation_coefficients(used) if orthogonal else score_coefficients(used.T @ used)
        else:
            filters = self._scores(own, stack)
            coefficients = score_coefficients(filters @ own)
        variances = self._variances(stack, whitened, unmixing, own, filters, coefficients)
        return Separation(
            unmixing=unmixing,
            converged=converged,
            n_steps=n_steps,
            variances=variances,
            resolved=_resolved(used, stack.noise(used)),
        )

    def _diagonalized(self, stack: S) -> tuple[np.ndarray, int, bool, bool]:
        """Return inverse factors of the stack, the sweeps they took, and whether these converged and are orthogonal."""
        if stack.matrices.shape[1] == 1:
            return np.eye(1), 0, True, True
        method: Diagonalizer = self.diagonalizer or OrthogonalNewton(tol=1e-12, statistical_tol=0.0)
        fit = method(stack.matrices[stack.places], seed=as_seed(self.random_state))
        return fit.inverse, fit.n_sweeps, fit.converged, method.orthogonal

    def _polished(self, stack: S, unmixing: np.ndarray) -> tuple[np.ndarray, int, bool] | None:
        """Return the unmixing after steps of the likelihood, or None where none is taken."""
        if self.polish == 0 or unmixing.shape[0] == 1:
            return None
        filters = np.empty(0)
        for step in range(self.polish):
            unmixing, matrices = _unit(unmixing, stack.matrices)
            own = np.einsum("lii->li", matrices)
            filters = self._scores(own, stack) if step < REFITS else filters
            correlations = np.einsum("il,lij->ij", filters, matrices, optimize=True)
            shares = score_step(correlations, filters @ own)
            unmixing = np.linalg.solve(np.eye(shares.shape[0]) + shares, unmixing)
            if np.max(np.abs(shares)) < TOLERANCE:
                return unmixing, step + 1, True
        return unmixing, self.polish, False

    def _variances(
        self,
        stack: S,
        whitened: Recordings | None,
        unmixing: np.ndarray,
        own: np.ndarray,
        filters: np.ndarray,
        coefficients: Coefficients,
    ) -> np.ndarray:
        sources = None if whitened is None else Recordings([one @ unmixing.T for one in whitened.arrays], whitened.form)
        variances = share_variances(self._segments(sources, filters, stack, own), coefficients)
        np.fill_diagonal(variances, self._own_variances(sources, stack, own))
        return variances


def _unit(unmixing: np.ndarray, matrices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the unmixing with rows that give unit variance, and the matrices of the sources."""
    rows = unmixing / np.sqrt(np.einsum("ij,jk,ik->i", unmixing, matrices[0], unmixing))[:, None]
    return rows, rows @ matrices @ rows.T


def _resolved(diagonals: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """Return the share of the gap between the diagonals of two sources that noise of sampling does not explain.

    Sources are directions chosen among many, in which noise differs most: the root of what it explains is that of its
    expected energy and twice that of the number of sources, as simulated with sources that are all alike.
    """
    count, k = diagonals.shape
    explained = (np.sqrt(count - 1) + 2 * np.sqrt(k)) ** 2 * (noise[:, None] + noise)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.nan_to_num(np.maximum(1 - explained / squared_gaps(diagonals), 0))
