"""Blind separation of sources: what the estimators share, from recordings to components in one order and sign."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted

from codiag._arrays import largest_signs
from codiag._checks import ConvergenceWarning, UndeterminedError
from codiag.diagonalize import Diagonalizer, check_method
from codiag.models.frame import Model
from codiag.models.sources._recordings import Recordings, as_recordings, rank_advice

UNRESOLVED = 0.3
"""Standard error of the share of one source in another from which on the two are not told apart, as in
`codiag.Diagonalization.unresolved`."""

DUST = 1e-13
"""Size of a channel, relative to the largest, up to which it is what rounding has left of zeros."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Separation:
    """What separates whitened recordings, and what that is worth."""

    unmixing: np.ndarray  # (k, k): sources are its product with whitened samples
    converged: bool
    n_steps: int
    variances: np.ndarray  # (k, k): of the share of source i in column j of the mixing, in units of their columns
    resolved: np.ndarray  # (k, k): share of the gap between two sources that sampling does not explain
    described: dict[str, np.ndarray] = field(default_factory=dict)  # what else is learned of each source

    @property
    def pair_variances(self) -> np.ndarray:
        """The sums of the variances of the shares of two sources in each other, (k, k), zero on the diagonal."""
        shares = self.variances - np.diag(np.diag(self.variances))
        return shares + shares.T


@dataclass(frozen=True, eq=False)
class Whitening:
    """Principal components of unit variance."""

    mean: np.ndarray  # (d,)
    rows: np.ndarray  # (k, d): whitened samples are their product with centered ones
    columns: np.ndarray  # (d, k): their pseudo-inverse
    n: int  # samples they are of

    @classmethod
    def of(cls, mean: np.ndarray, covariance: np.ndarray, k: int | None, n: int) -> Whitening:
        """Return the leading principal components, by default as many as the covariance has.

        By default, as many as there are independent channels in a unit of its own each: units may differ by large
        factors, as those of electric and magnetic sensors do, and all components together span the same in any unit.
        """
        sizes = np.sqrt(np.maximum(np.diag(covariance), 0))
        some = sizes > np.maximum(DUST * np.max(sizes), 64 * np.finfo(float).eps * np.abs(mean))
        if not np.any(some):
            raise UndeterminedError(
                "X must hold samples that differ, by more than rounding does; they are all the same"
            )
        units = np.where(some, sizes, 1) if k is None else np.full(sizes.size, np.max(sizes))
        values, vectors = np.linalg.eigh(np.where(np.outer(some, some), covariance, 0) / np.outer(units, units))
        values, vectors = values[::-1], vectors[:, ::-1]
        rank = int(np.sum(values > values[0] * 10 * max(n, values.size) * np.finfo(float).eps))
        if k is not None and k > rank:
            limit = "channels" if rank == values.size else "independent channels, which recordings have"
            raise UndeterminedError(f"n_components must be at most {rank}, the number of {limit}; got {k}")
        kept = rank if k is None else k
        vectors, roots = vectors[:, :kept], np.sqrt(values[:kept])
        vectors = vectors * largest_signs(vectors)
        return cls(mean, (vectors / roots).T / units, (vectors * roots) * units[:, None], n)

    def of_products(self, products: np.ndarray) -> np.ndarray:
        """Return symmetric products of channels, (n, d, d), as those of components, symmetric beyond rounding."""
        found = self.rows @ products @ self.rows.T
        return (found + found.transpose(0, 2, 1)) / 2


class BlindSources(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Model):
    """Sources that channels mix: the base of estimators that find them without knowing how."""

    optional: ClassVar[frozenset[str]] = frozenset({"n_components"})

    n_components: int | None
    polish: int
    diagonalizer: Diagonalizer | None
    random_state: Any

    def learn(self, data: Any) -> tuple[Warning, ...]:
        """Do the work of `fit`, silently, and return what is to be warned of.

        Parameters
        ----------
        data : array of shape (n_samples, n_channels) or (n_epochs, n_channels, n_times), or list of recordings
            As users give it to `fit`.

        Returns
        -------
        tuple of Warning
            What `fit` warns of.

        Examples
        --------
        >>> from codiag.models import JADE
        >>> from codiag.synthetic import mixed_signals
        >>> channels = mixed_signals(2000, ["uniform", "laplace"], seed=0).channels
        >>> JADE().learn(channels)
        ()
        """
        self.check_parameters()
        recordings = as_recordings(self, data, first=True)
        mean, centered = recordings.centered()
        covariance = sum(array.T @ array for array in centered.arrays) / centered.n_samples
        whitening = Whitening.of(mean, covariance, self.n_components, centered.n_samples)
        whitened = Recordings([array @ whitening.rows.T for array in centered.arrays], centered.form)
        return self._keep(self._separated(whitened), whitening)

    def check_parameters(self) -> None:
        """Raise unless parameters are what they must be."""
        super().check_parameters()
        if self.diagonalizer is not None and not check_method(self.diagonalizer).symmetric:
            raise ValueError(
                "diagonalizer must be one for symmetric matrices, like OrthogonalNewton() or UWEDGE(); got "
                f"{self.diagonalizer!r}"
            )

    def _separated(self, whitened: Recordings) -> Separation:
        """Return what separates recordings of uncorrelated channels with unit variance."""
        raise NotImplementedError(f"{type(self).__name__} must implement _separated(whitened)")

    def _keep(self, found: Separation, whitening: Whitening) -> tuple[Warning, ...]:
        """Set learned attributes, in the order of the variance that components explain, and say what is to be told."""
        mixing = whitening.columns @ np.linalg.inv(found.unmixing)
        strength = np.sum(mixing**2, axis=0)
        order = np.argsort(-strength, kind="stable")
        signs = largest_signs(mixing[:, order])
        variances = found.variances[np.ix_(order, order)]
        self.mean_, self.whitening_ = whitening.mean, whitening.rows
        self.mixing_ = mixing[:, order] * signs
        self.components_ = (found.unmixing @ whitening.rows)[order] * signs[:, None]
        self.explained_variance_ = strength[order]
        self.n_components_ = order.size
        self.mixing_standard_errors_ = np.sqrt(self.mixing_**2 @ variances)
        self.unresolved_ = _unresolved(variances, found.resolved[np.ix_(order, order)])
        self.converged_, self.n_iter_ = found.converged, found.n_steps
        for name, values in found.described.items():
            setattr(self, name, values[order])
        advice = rank_advice(whitening.n, whitening.mean.size)
        told: tuple[Warning, ...] = (UserWarning(advice),) if advice else ()
        if found.converged:
            return told
        text = f"{type(self).__name__} did not converge in {found.n_steps} steps; the best iterate is kept"
        return (*told, ConvergenceWarning(text))

    def transform(self, X: Any) -> Any:  # noqa: N803
        """Return the sources of recordings, of unit variance where these are those of `fit`.

        Parameters
        ----------
        X : array of shape (n_samples, n_channels) or (n_epochs, n_channels, n_times), or list of recordings
            The recordings.

        Returns
        -------
        array of shape (n_samples, n_components) or (n_epochs, n_components, n_times), or list of arrays
            The sources, in the layout of the recordings.

        See Also
        --------
        SOBI.inverse_transform : The way back.

        Examples
        --------
        >>> from codiag.models import SOBI
        >>> from codiag.synthetic import mixed_signals
        >>> channels = mixed_signals(2000, ["sinusoid", "autoregressive"], seed=0).channels
        >>> model = SOBI(lags=20).fit(channels)
        >>> model.transform(channels).std(axis=0).round(6).tolist()
        [1.0, 1.0]
        """
        check_is_fitted(self)
        recordings = as_recordings(self, X, first=False, least=1)
        return recordings.mapped(lambda samples: (samples - self.mean_) @ self.components_.T)

    def inverse_transform(self, X: Any) -> Any:  # noqa: N803
        """Return the recordings that sources are mixed to.

        Parameters
        ----------
        X : array of shape (n_samples, n_components) or (n_epochs, n_components, n_times), or list of arrays
            Sources; those set to zero are taken out of the recordings.

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
        >>> channels = mixed_signals(2000, ["sinusoid", "autoregressive"], seed=0).channels
        >>> model = SOBI(lags=20).fit(channels)
        >>> sources = model.transform(channels)
        >>> np.allclose(model.inverse_transform(sources), channels)
        True
        """
        check_is_fitted(self)
        if isinstance(X, list | tuple) and X and all(getattr(one, "ndim", 0) == 2 for one in X):
            return [self.inverse_transform(one) for one in X]
        sources = check_array(X, allow_nd=True, dtype=np.float64, input_name="X")
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
    """Return the pairs of sources whose share in each other is uncertain once their gap is freed of sampling noise."""
    with np.errstate(divide="ignore", invalid="ignore"):
        errors = np.sqrt(variances / resolved)
    uncertain = ~(errors < UNRESOLVED)
    return [(int(i), int(j)) for i, j in np.argwhere(np.triu(uncertain | uncertain.T, 1))]
