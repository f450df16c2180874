"""Blind source separation: whitening, and the base class of the estimators."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from codiag._arrays import adjoint, conjugate, largest_signs, squared_magnitudes
from codiag._checks import ConvergenceWarning, RankDeficientError
from codiag.diagonalize import Diagonalizer, check_method
from codiag.models.base import Model, optional, positive_integer
from codiag.models.sources._likelihood import score_step
from codiag.models.sources._recordings import Recordings, as_recordings, as_sources

TOLERANCE = 1e-11
"""Largest entry of a likelihood step at which the iteration ends."""


class Errors(NamedTuple):
    """How well sources are separated."""

    variances: np.ndarray  # (k, k): of the share of source i in column j of the mixing, in units of their columns
    resolved: np.ndarray  # (k, k): share of the gap between two sources that sampling noise does not explain


class Whitening(NamedTuple):
    """Principal components of unit variance."""

    mean: np.ndarray  # (d,)
    rows: np.ndarray  # (k, d): whitened samples are their product with centered ones
    columns: np.ndarray  # (d, k): their pseudo-inverse

    @classmethod
    def of(cls, recordings: Recordings, k: int | None) -> Whitening:
        """Return the k leading principal components, by default as many as there are independent channels.

        By default channels are first divided by their standard deviations: their units may differ by large factors, as
        those of electric and magnetic sensors do, and all components together span the same space in any unit.
        """
        n = recordings.n_samples
        with np.errstate(over="ignore", invalid="ignore"):
            mean = np.asarray(sum(array.sum(axis=0) for array in recordings.arrays)) / n
            centered = [array - mean for array in recordings.arrays]
            covariance = np.asarray(sum(array.T @ conjugate(array) for array in centered)) / n
        if not np.all(np.isfinite(covariance)):
            raise ValueError("X must contain numbers whose squares are finite; some are too large. Divide it")
        sizes = np.sqrt(np.maximum(np.diag(covariance).real, 0))
        varying = sizes > np.maximum(1e-13 * np.max(sizes), 64 * np.finfo(float).eps * np.abs(mean))
        if not np.any(varying):
            raise RankDeficientError(
                "X must contain samples that differ, by more than rounding does; they are all the same"
            )
        units = np.where(varying, sizes, 1) if k is None else np.full(sizes.size, np.max(sizes))
        values, vectors = np.linalg.eigh(np.where(np.outer(varying, varying), covariance, 0) / np.outer(units, units))
        values, vectors = values[::-1], vectors[:, ::-1]
        rank = int(np.sum(values > values[0] * 10 * n * np.finfo(float).eps))
        if k is not None and k > rank:
            raise RankDeficientError(
                f"n_components must be at most {rank}, the number of independent channels; got {k}"
            )
        k = rank if k is None else k
        vectors, roots = vectors[:, :k], np.sqrt(values[:k])
        vectors = vectors * conjugate(largest_signs(vectors))
        return cls(mean, adjoint(vectors / roots) / units, (vectors * roots) * units[:, None])


def _is_orthogonal(name: str, value: Any) -> None:
    if not check_method(value).orthogonal:
        raise ValueError(f"{name} must be an orthogonal one, like Jacobi(); got {value!r}")


class BlindSources(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Model):
    """Base of estimators of sources that are mixed linearly by an unknown matrix."""

    parameter_rules = Model.parameter_rules | {
        "n_components": optional(positive_integer),
        "diagonalizer": optional(_is_orthogonal),
    }
    takes_complex: ClassVar[bool] = False

    def __init__(
        self,
        n_components: int | None = None,
        *,
        max_iter: int = 100,
        diagonalizer: Diagonalizer | None = None,
        random_state: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.max_iter = max_iter
        self.diagonalizer = diagonalizer
        self.random_state = random_state

    def _fit(self, data: Any) -> tuple[Warning, ...]:
        """Do the work of `fit` without issuing warnings, and return them.

        Parameters
        ----------
        data : array of shape (n_samples, n_channels) or (n_epochs, n_channels, n_times), list of recordings, MNE object
            As for `fit`.

        Returns
        -------
        tuple of Warning
            The warnings of `fit`.

        Examples
        --------
        >>> from codiag.models import JADE
        >>> from codiag.synthetic import mixed_signals
        >>> channels = mixed_signals(2000, ["uniform", "laplace"], rng=0).channels
        >>> JADE()._fit(channels)
        ()
        """
        self.check_parameters()
        recordings = as_recordings(self, data, first=True)
        recordings.check_number()
        whitening = Whitening.of(recordings, self.n_components)
        whitened = recordings.mapped(lambda samples: (samples - whitening.mean) @ whitening.rows.T)
        statistics = self._statistics(whitened)
        rotation, n_sweeps, found = self._rotated(statistics) if whitening.rows.shape[0] > 1 else (np.eye(1), 0, True)
        unmixing, n_steps, settled = self._likelihood_steps(statistics, rotation)
        unmixing, statistics = self._of_sources(statistics, unmixing)
        errors = self._errors(whitened.mapped(lambda samples: samples @ unmixing.T), statistics)
        self._set_attributes(unmixing, whitening, errors)
        self.converged_, self.n_iter_ = found and settled, n_sweeps + n_steps
        if self.converged_:
            return ()
        return (
            ConvergenceWarning(
                f"{type(self).__name__} did not converge in {self.n_iter_} steps; the last is kept. Pairs of sources "
                "in unresolved_ are not separated by the data"
            ),
        )

    def _statistics(self, whitened: Recordings) -> Any:
        """Return what the separation is computed from."""
        raise NotImplementedError(f"{type(self).__name__} must implement _statistics(whitened)")

    def _rotated(self, statistics: Any) -> tuple[np.ndarray, int, bool]:
        """Return a rotation by joint diagonalization, the number of its steps, and whether it converged."""
        raise NotImplementedError(f"{type(self).__name__} must implement _rotated(statistics)")

    def _of_sources(self, statistics: Any, unmixing: np.ndarray) -> tuple[np.ndarray, Any]:
        """Return the unmixing scaled so that sources have unit variance, and the statistics of these sources."""
        raise NotImplementedError(f"{type(self).__name__} must implement _of_sources(statistics, unmixing)")

    def _scores(self, sources: Any) -> np.ndarray:
        """Return coefficients of the scores of sources, given the statistics of these."""
        raise NotImplementedError(f"{type(self).__name__} must implement _scores(sources)")

    def _correlated(self, sources: Any, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return correlations of scores with sources, and their derivatives with respect to the mixing, (k, k) each."""
        raise NotImplementedError(f"{type(self).__name__} must implement _correlated(sources, scores)")

    def _errors(self, recordings: Recordings, sources: Any) -> Errors:
        """Return how well sources are separated, given their recordings and statistics."""
        raise NotImplementedError(f"{type(self).__name__} must implement _errors(recordings, sources)")

    def _likelihood_steps(self, statistics: Any, unmixing: np.ndarray) -> tuple[np.ndarray, int, bool]:
        """Return the unmixing after likelihood steps, their number, and whether they converged."""
        scores = np.empty(0)
        for step in range(self.max_iter):
            unmixing, sources = self._of_sources(statistics, unmixing)
            # scores are fixed afterwards, so that steps converge
            scores = self._scores(sources) if step < 5 else scores
            shares = score_step(*self._correlated(sources, scores))
            unmixing = np.linalg.solve(np.eye(shares.shape[0]) + shares, unmixing)
            if np.max(np.abs(shares)) < TOLERANCE:
                return unmixing, step + 1, True
        return unmixing, self.max_iter, self.max_iter == 0

    def _set_attributes(self, unmixing: np.ndarray, whitening: Whitening, errors: Errors) -> None:
        """Set learned attributes, sources sorted by the variance they explain."""
        mixing = whitening.columns @ np.linalg.inv(unmixing)
        strength = np.sum(squared_magnitudes(mixing), axis=0)
        order = np.argsort(-strength, kind="stable")
        signs = largest_signs(mixing[:, order])
        variances = errors.variances[np.ix_(order, order)]
        self.mean_, self.whitening_ = whitening.mean, whitening.rows
        self.mixing_ = mixing[:, order] * conjugate(signs)
        self.components_ = (unmixing @ whitening.rows)[order] * signs[:, None]
        self.explained_variance_ = strength[order]
        self.n_components_ = order.size
        self.mixing_standard_errors_ = np.sqrt(squared_magnitudes(self.mixing_) @ variances)
        self.unresolved_ = _unresolved(variances, errors.resolved[np.ix_(order, order)])

    def transform(self, X: Any) -> Any:  # noqa: N803
        """Return the sources of recordings; those of the recordings of `fit` have unit variance.

        Parameters
        ----------
        X : array of shape (n_samples, n_channels) or (n_epochs, n_channels, n_times), list of recordings, MNE object
            The recordings. ``Raw`` of MNE is an array of shape (n_samples, n_channels) here.

        Returns
        -------
        array of shape (n_samples, n_components) or (n_epochs, n_components, n_times), or list of arrays
            The sources, in the layout of the recordings.

        See Also
        --------
        SOBI.inverse_transform : From sources to recordings.

        Examples
        --------
        >>> from codiag.models import SOBI
        >>> from codiag.synthetic import mixed_signals
        >>> channels = mixed_signals(2000, ["sinusoid", "autoregressive"], rng=0).channels
        >>> model = SOBI(lags=20).fit(channels)
        >>> model.transform(channels).std(axis=0).round(6).tolist()
        [1.0, 1.0]
        """
        check_is_fitted(self)
        recordings = as_recordings(self, X, first=False, least=1)
        return recordings.mapped(lambda samples: (samples - self.mean_) @ self.components_.T).in_form()

    def inverse_transform(self, X: Any) -> Any:  # noqa: N803
        """Return the recordings that are mixtures of given sources.

        Parameters
        ----------
        X : array of shape (n_samples, n_components) or (n_epochs, n_components, n_times), or list of arrays
            Sources; those set to zero are removed from the recordings.

        Returns
        -------
        array of shape (n_samples, n_channels) or (n_epochs, n_channels, n_times), or list of arrays
            The recordings, in the layout of the sources.

        See Also
        --------
        SOBI.transform : The sources of recordings.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.models import SOBI
        >>> from codiag.synthetic import mixed_signals
        >>> channels = mixed_signals(2000, ["sinusoid", "autoregressive"], rng=0).channels
        >>> model = SOBI(lags=20).fit(channels)
        >>> sources = model.transform(channels)
        >>> np.allclose(model.inverse_transform(sources), channels)
        True
        """
        check_is_fitted(self)
        if isinstance(X, list | tuple) and X and all(getattr(array, "ndim", 0) == 2 for array in X):
            return [self.inverse_transform(array) for array in X]
        sources = as_sources(X)
        axis = 1 if sources.ndim == 2 else -2
        if sources.ndim not in (2, 3) or sources.shape[axis] != self.n_components_:
            raise ValueError(
                f"X must have shape (n_samples, {self.n_components_}) or (n_epochs, {self.n_components_}, n_times), "
                f"the sources; got {sources.shape}"
            )
        if sources.ndim == 2:
            return sources @ self.mixing_.T + self.mean_
        return self.mixing_ @ sources + self.mean_[:, None]

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.transformer_tags.preserves_dtype = ["float64"]
        return tags


def _unresolved(variances: np.ndarray, resolved: np.ndarray) -> list[tuple[int, int]]:
    """Return the pairs of sources whose shares in each other have large standard errors.

    Variances are computed from gaps between sources as estimated, and corrected for the sampling noise in these gaps.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        errors = np.sqrt(variances / resolved)
    # as in `codiag.Diagonalization.unresolved`
    uncertain = ~(errors < 0.3)
    return [(int(i), int(j)) for i, j in np.argwhere(np.triu(uncertain | uncertain.T, 1))]
