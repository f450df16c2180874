"""Sources told apart by second moments: lagged covariances, or covariances of stretches of time."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, Self, TypeVar

import numpy as np

from codiag._checks import UndeterminedError
from codiag.diagonalize import Diagonalizer, OrthogonalNewton
from codiag.models.frame import as_seed, warn_caller
from codiag.models.sources._base import BlindSources, Separation, Whitening
from codiag.models.sources._likelihood import (
    Coefficients,
    Segment,
    rotation_coefficients,
    score_coefficients,
    score_step,
    share_variances,
    squared_gaps,
)
from codiag.models.sources._recordings import Recordings, as_recordings, summable
from codiag.parts import Parts

REFITS = 5
"""Steps of the likelihood at which scores are fitted again, before they stay."""
TOLERANCE = 1e-12
"""Largest entry of a step of the likelihood at which it ends."""
GAIN = 0.8
"""Variance that polishing must promise for a pair of sources to be kept, relative to that without. Simulated with eight
mixtures of kinds: where less is gained, as for two sinusoids, sources that do not fit their model cost more."""


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


class SecondSums(Protocol):
    """Sums over samples from which second moments follow."""

    @property
    def n_channels(self) -> int:
        """How many channels there are."""

    def merged(self, other: Any) -> Self:
        """Return these sums and others that follow, of which none is changed."""


S = TypeVar("S", bound=Stack)
T = TypeVar("T", bound=SecondSums)


class SecondOrder(BlindSources, Generic[S, T]):
    """Whitening, joint diagonalization of second moments, and steps of a Gaussian likelihood."""

    def learn(self, data: Any) -> tuple[Warning, ...]:
        """Do the work of `fit`, silently, and return what is to be warned of.

        Parameters
        ----------
        data : array of shape (n_samples, n_channels) or (n_epochs, n_channels, n_times), or list of recordings
            As users give it to `fit`, or in parts that follow each other.

        Returns
        -------
        tuple of Warning
            What `fit` warns of.

        Examples
        --------
        >>> from codiag.models import SOBI
        >>> from codiag.synthetic import mixed_signals
        >>> channels = mixed_signals(2000, ["sinusoid", "autoregressive"], seed=0).channels
        >>> SOBI(lags=20).learn(channels)
        ()
        """
        self._seen: T | None = None
        parts = self._parts_of(data)
        if parts is None:
            return super().learn(data)
        self.check_parameters()
        sums = self._sums_of_parts(parts)
        self.n_features_in_ = sums.n_channels
        return self._keep(*self._separated_sums(sums))

    def partial_fit(self, X: Any, y: object = None) -> Self:  # noqa: N803
        """Add samples that follow those seen so far, and estimate again; after `fit` of one array, begin anew.

        While there is too little data to determine the model, its sums are kept, and a warning says so.

        Parameters
        ----------
        X : array of shape (n_samples, n_channels)
            For `codiag.models.SOBI` however a recording is cut, the answer is that of the whole, to rounding; for
            `codiag.models.NSS` that of `fit` of a list of the parts, to the borders of blocks that short parts share.
        y : ignored
            Not used; there for the interface of scikit-learn.

        Returns
        -------
        self
            The model.

        Examples
        --------
        >>> from codiag.models import SOBI
        >>> from codiag.synthetic import mixed_signals
        >>> channels = mixed_signals(2000, ["sinusoid", "autoregressive"], seed=0).channels
        >>> model = SOBI(lags=20)
        >>> for chunk in (channels[:900], channels[900:]):
        ...     model = model.partial_fit(chunk)
        >>> model.n_components_
        2
        """
        warn_caller(self.learn_more(X))
        return self

    def learn_more(self, data: Any) -> tuple[Warning, ...]:
        """Do the work of `partial_fit`, silently, and return what is to be warned of.

        Parameters
        ----------
        data : array of shape (n_samples, n_channels)
            The samples.

        Returns
        -------
        tuple of Warning
            What `partial_fit` warns of.

        Examples
        --------
        >>> from codiag.models import SOBI
        >>> from codiag.synthetic import mixed_signals
        >>> channels = mixed_signals(2000, ["sinusoid", "autoregressive"], seed=0).channels
        >>> SOBI(lags=20).learn_more(channels)
        ()
        """
        self.check_parameters()
        before = getattr(self, "_seen", None)
        recordings = as_recordings(self, data, first=before is None, least=1)
        if recordings.form != "array":
            raise ValueError("X must be samples that follow those before, (n_samples, n_channels), for partial_fit")
        sums = self._sums_over(summable(recordings.arrays[0]), before)
        sums = sums if before is None else before.merged(sums)
        try:
            told = self._keep(*self._separated_sums(sums))
        except UndeterminedError as error:
            state = "as it was before" if self.__sklearn_is_fitted__() else "not fitted yet"
            told = (UserWarning(f"the model is {state}: {error}. What was seen is kept; partial_fit adds more"),)
        self._seen = sums
        return told

    def __sklearn_is_fitted__(self) -> bool:
        """Tell whether there are estimates: sums alone are none."""
        return hasattr(self, "components_")

    @abstractmethod
    def _parts_of(self, data: Any) -> Parts | None:
        """Return data in parts, or None where it is at hand."""

    @abstractmethod
    def _sums_of_parts(self, parts: Parts) -> T:
        """Return the sums over all parts."""

    @abstractmethod
    def _sums_over(self, samples: np.ndarray, before: T | None) -> T:
        """Return the sums over samples, (n, d), to be merged with those before."""

    @abstractmethod
    def _separated_sums(self, sums: T) -> tuple[Separation, Whitening]:
        """Return what separates the channels that sums are over, and what whitens them."""

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

    def _separated_stack(self, stack: S, whitened: Recordings | None, leading: Recordings | None = None) -> Separation:
        """Return what diagonalizes the stack, polished for the pairs of sources where that promises smaller errors.

        Which pairs is judged by models of sources, and by leading samples where these models may not hold: by nothing
        that streams do not have, too, so that their answer is the same. Variances are those of whitened recordings,
        where they are at hand.
        """
        found, n_steps, converged, orthogonal = self._diagonalized(stack)
        scores = _orthogonal if orthogonal else _free
        if self.polish == 0 or found.shape[0] == 1:
            return self._judged(stack, whitened, found, scores, n_steps, converged)
        chosen = np.full(found.shape, True)
        for samples in [None] if leading is None else [None, leading]:
            before = self._judged(stack, samples, found, scores, n_steps, converged).pair_variances
            after = self._judged(stack, samples, found, self._scored, n_steps, converged).pair_variances
            chosen &= after <= GAIN * before
        unmixing, more, settled = self._polished(stack, found, chosen)
        plain = self._judged(stack, whitened, unmixing, scores, n_steps + more, converged and settled)
        scored = self._judged(stack, whitened, unmixing, self._scored, n_steps + more, converged and settled)
        return replace(scored, variances=np.where(chosen, scored.variances, plain.variances))

    def _judged(
        self,
        stack: S,
        whitened: Recordings | None,
        unmixing: np.ndarray,
        scores: Callable[[np.ndarray, S], tuple[np.ndarray, Coefficients]],
        n_steps: int,
        converged: bool,
    ) -> Separation:
        """Return an unmixing that was found by scores, with the variances of its shares."""
        unmixing, matrices = _unit(unmixing, stack.matrices)
        own = np.einsum("lii->li", matrices)
        sources = None if whitened is None else Recordings([one @ unmixing.T for one in whitened.arrays], whitened.form)
        filters, coefficients = scores(own, stack)
        variances = share_variances(self._segments(sources, filters, stack, own), coefficients)
        np.fill_diagonal(variances, self._own_variances(sources, stack, own))
        used = own[stack.places]
        return Separation(
            unmixing=unmixing,
            converged=converged,
            n_steps=n_steps,
            variances=variances,
            resolved=_resolved(used, stack.noise(used)),
        )

    def _scored(self, own: np.ndarray, stack: S) -> tuple[np.ndarray, Coefficients]:
        """Return the scores of the likelihood and what they make of errors."""
        filters = self._scores(own, stack)
        return filters, score_coefficients(filters @ own)

    def _diagonalized(self, stack: S) -> tuple[np.ndarray, int, bool, bool]:
        """Return inverse factors of the stack, the sweeps they took, and whether these converged and are orthogonal."""
        if stack.matrices.shape[1] == 1:
            return np.eye(1), 0, True, True
        method: Diagonalizer = self.diagonalizer or OrthogonalNewton(tol=1e-13, statistical_tol=0.0)
        fit = method(stack.matrices[stack.places], seed=as_seed(self.random_state))
        return fit.inverse, fit.n_sweeps, fit.converged, method.orthogonal

    def _polished(self, stack: S, unmixing: np.ndarray, chosen: np.ndarray) -> tuple[np.ndarray, int, bool]:
        """Return the unmixing after steps of the likelihood for some pairs, how many, and whether they have ended.

        Pairs do not depend on each other to first order.
        """
        filters = np.empty(0)
        for step in range(self.polish):
            unmixing, matrices = _unit(unmixing, stack.matrices)
            own = np.einsum("lii->li", matrices)
            filters = self._scores(own, stack) if step < REFITS else filters
            correlations = np.einsum("il,lij->ij", filters, matrices, optimize=True)
            shares = score_step(correlations, filters @ own, chosen)
            unmixing = np.linalg.solve(np.eye(shares.shape[0]) + shares, unmixing)
            if np.max(np.abs(shares)) < TOLERANCE:
                return unmixing, step + 1, True
        return unmixing, self.polish, False


def _orthogonal(own: np.ndarray, stack: Stack) -> tuple[np.ndarray, Coefficients]:
    """Return the scores of whitening and orthogonal joint diagonalization, and what they make of errors."""
    return _at_places(own, stack), rotation_coefficients(own[stack.places])


def _free(own: np.ndarray, stack: Stack) -> tuple[np.ndarray, Coefficients]:
    """Return the scores of least squares for every pair, and what they make of errors."""
    used = own[stack.places]
    return _at_places(own, stack), score_coefficients(used.T @ used)


def _at_places(own: np.ndarray, stack: Stack) -> np.ndarray:
    """Return the diagonals of the matrices that are diagonalized as coefficients, (k, n)."""
    filters = np.zeros_like(own.T)
    filters[:, stack.places] = own[stack.places].T
    return filters


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
