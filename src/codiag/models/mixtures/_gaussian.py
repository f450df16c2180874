"""Mixtures of spherical Gaussians by moments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any, ClassVar, cast

import numpy as np
from scipy.special import logsumexp, softmax
from sklearn.base import DensityMixin, clone
from sklearn.cluster import KMeans
from sklearn.utils.validation import check_is_fitted, validate_data

from codiag._arrays import is_dask
from codiag._checks import RankDeficientError, as_generator, as_number
from codiag.methods import Method
from codiag.models.base import (
    CORE_METHOD,
    MomentModel,
    PartialFit,
    as_seed,
    n_starts,
    optional,
    positive_integer,
    sum_over_rows,
    warn_caller,
)
from codiag.models.mixtures._gaussian_em import EMSums, em_sums, from_em_sums, log_densities, log_likelihood
from codiag.models.mixtures._gaussian_moments import (
    MAX_FEATURES,
    Gaussians,
    LocatedMoments,
    Location,
    Samples,
    gaussian_moments,
    sums_of_samples,
)
from codiag.result import Factorization

MomentsOf = Callable[..., LocatedMoments]
"""From a number of Gaussians, and whether to free moments of one variance per feature, to moments."""

Estimate = tuple[Gaussians, Factorization | None, LocatedMoments]
"""Gaussians, the factorization of their moment, and the moments."""


class SphericalGaussianMixture(DensityMixin, PartialFit, MomentModel[LocatedMoments, Gaussians]):
    r"""A mixture of spherical Gaussians by the method of moments of Hsu & Kakade (2013).

    Means must be linearly independent, k at most the number of features. With :math:`\bar\sigma^2` the mean of the
    smallest eigenvalues of the covariance and :math:`\tilde m = \sum_i \pi_i \sigma_i^2 \mu_i`,

    .. math:: E[x x^\top] - \bar\sigma^2 I = \sum_i \pi_i \mu_i \mu_i^\top, \quad
        E[x^{\otimes 3}] - (\tilde m \otimes I + \dots) = \sum_i \pi_i \mu_i^{\otimes 3}.

    Parameters
    ----------
    n_components : int, optional
        Number of Gaussians. None for at most the number of eigenvalues of the second moment that are at least twice as
        large as sampling noise; up to there, the number of least `bic`.
    method : Method or str, optional
        Method that factorizes the moment; by default `codiag.methods.Auto`.
    covariance_type : {"spherical", "diag"}
        What expectation maximization estimates: one variance per Gaussian, or one per Gaussian and feature. With "diag"
        there are two starts, and the one with the greater likelihood after the steps is kept: moments of spherical
        Gaussians, and moments freed of one variance per feature. The latter come from the second moment by principal
        factors; entries of the third moment in which a feature occurs twice are corrected as if all Gaussians had these
        variances. Moments alone are biased then, so that `max_iter` must be positive.
    max_iter : int
        Largest number of steps of expectation maximization after the moments, which end when the log-likelihood would
        rise by less than 0.01; zero is the pure method of moments. Of fewer than 16,000 samples, and if more than 40
        steps are allowed, they also start from clusters of k-means, up to eight times, and the most likely result is
        kept.
    random_state : int, optional
        Seed; the estimate does not depend on it if the data determines the Gaussians.

    Attributes
    ----------
    means_ : array of shape (n_components, n_features)
        Mean of each Gaussian.
    weights_ : array of shape (n_components,)
        Weight of each Gaussian, largest first.
    covariances_ : array of shape (n_components,), or (n_components, n_features) with "diag"
        The variance of each Gaussian, in every direction, or along each feature; at least 1e-8 of the mean variance of
        the features.
    n_components_ : int
        Number of Gaussians.
    diagnostics_ : Diagnostics
        How well the data determines the model: ``relative_error``, ``converged``, ``core_errors``, ``clipped_mass``,
        ``second_moment`` (its leading eigenvalues), ``second_moment_gap`` and ``sampling_noise``.
    n_features_in_ : int
        Number of features.

    See Also
    --------
    MultiviewMixture : Three independent views of each sample.
    HiddenMarkov : Sequences of symbols.
    codiag.tensors.MomentTensor : The moment that is factorized.

    Notes
    -----
    **Assumptions.** An array of shape (n, n_features), Gaussians with the same variance in every direction, and no more
    of them than features.

    **Complexity.** A few passes over the samples, :math:`O(n d^2)`, then work on a core of k x k x k; a pass,
    :math:`O(n d k)`, for each step of expectation maximization.

    **Guarantees.** Errors proportional to :math:`1 / \sqrt n` if the model is right; the same estimate from every seed.

    **Limitations.** Fails if Gaussians are not spherical, or if means are so close that sampling noise hides their
    second moment, which a warning says.

    `fit` also takes a dask array: sums of products of samples are formed block by block, where the blocks are, in two
    passes, and every step of expectation maximization is one more. `partial_fit` adds chunks, by moments alone; it
    stores the third moment, the cube of the number of features, which may be up to 256. Both estimates equal that of
    one array to rounding. `jackknife_standard_errors` estimates standard errors.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.models import SphericalGaussianMixture
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(m, 1, (500, 3)) for m in ([8, 0, 0], [0, 8, 0])])
    >>> SphericalGaussianMixture(2, random_state=0).fit(X).means_.round().astype(int).tolist() in (
    ...     [[8, 0, 0], [0, 8, 0]], [[0, 8, 0], [8, 0, 0]])
    True
    """

    default_method: ClassVar[Method] = CORE_METHOD
    parameter_rules = MomentModel.parameter_rules | {"n_components": optional(positive_integer)}
    unbounded: ClassVar[frozenset[str]] = frozenset({"means_", "covariances_"})

    def __init__(
        self,
        n_components: int | None = 2,
        *,
        method: Any = None,
        covariance_type: str = "spherical",
        max_iter: int = 500,
        random_state: int | None = None,
    ) -> None:
        super().__init__(n_components, method=method, max_iter=max_iter, random_state=random_state)
        self.covariance_type = covariance_type

    def check_parameters(self) -> None:
        """Raise unless parameters are valid.

        Examples
        --------
        >>> from codiag.models import SphericalGaussianMixture
        >>> SphericalGaussianMixture().check_parameters()
        >>> SphericalGaussianMixture(covariance_type="full").check_parameters()  # refused
        Traceback (most recent call last):
            ...
        ValueError: covariance_type must be "spherical" or "diag"; got 'full'
        """
        super().check_parameters()
        if self.covariance_type not in ("spherical", "diag"):
            raise ValueError(f'covariance_type must be "spherical" or "diag"; got {self.covariance_type!r}')
        if self.covariance_type == "diag" and self.max_iter == 0:
            raise ValueError(
                'max_iter must be positive with covariance_type="diag", since moments alone give one variance for each '
                "Gaussian; got 0"
            )

    def _fit(self, data: Any) -> tuple[Warning, ...]:
        """Do the work of `fit` without issuing warnings, and return them.

        Parameters
        ----------
        data : array of shape (n, n_features), or a dask array
            As for `fit`.

        Returns
        -------
        tuple of Warning
            The warnings of `fit`.
        """
        self.check_parameters()
        moments_of: MomentsOf = cache(self.moments_function(data))
        k = self.n_components
        if k is None:
            k, moments = self._detectable(moments_of)
            k = self._number_of_least_bic(moments_of, k, moments.samples)
        self._seen = None
        return self._set(*self._best_start(moments_of, k))

    def _number_of_least_bic(self, moments_of: MomentsOf, most: int, samples: Samples) -> int:
        """Return the number of Gaussians, from 1 to `most`, with the least BIC after steps of EM."""
        trial = clone(self).set_params(max_iter=max(self.max_iter, 10))
        criteria = []
        for k in range(1, most + 1):
            components = trial._best_start(moments_of, k)[0]
            n_parameters = components.means.size + components.covariances.size + k - 1
            criteria.append(n_parameters * np.log(samples.sums.n) - 2 * _log_likelihood(components, samples))
        return 1 + int(np.argmin(criteria))

    def _best_start(self, moments_of: MomentsOf, k: int) -> Estimate:
        """Return an estimate of k Gaussians; with one variance per feature, the more likely result of two starts."""
        estimates: list[Estimate] = []
        for by_feature in (True, False) if self.covariance_type == "diag" and k > 1 else (False,):
            try:
                moments = moments_of(k, by_feature)
            except RankDeficientError:
                if by_feature or estimates:
                    continue
                raise
            estimates.append((*self._components_of(moments), moments))
        if len(estimates) == 1:
            return estimates[0]
        return max(estimates, key=lambda estimate: _log_likelihood(estimate[0], estimate[2].samples))

    def moments_function(self, data: Any) -> MomentsOf:
        """Return a function from a number of Gaussians to moments of samples (n, n_features), an array or of dask."""
        if is_dask(data):
            self.n_features_in_ = data.shape[1]
        else:
            data = self._as_samples(data, first=True, least=2)
        return self._moments_of(Samples.of(data))

    def _moments_of(self, samples: Samples) -> MomentsOf:
        def moments_of(k: int, by_feature: bool = self.covariance_type == "diag") -> LocatedMoments:
            _check_size(samples.sums.n, samples.mean.size, k)
            return gaussian_moments(samples, k, self._resolved_method(), by_feature=by_feature)

        return moments_of

    def _as_samples(self, raw: Any, *, first: bool, least: int) -> np.ndarray:
        """Return samples as an array of doubles, with at least `least` rows."""
        with np.errstate(over="ignore", invalid="ignore"):  # sums of finite numbers may overflow
            return validate_data(self, raw, reset=first, dtype=np.float64, ensure_min_samples=least)

    def _with_chunk(self, seen: Samples | None, raw: Any) -> Samples:
        """Return the sums with samples added."""
        if self.covariance_type == "diag":
            raise ValueError(
                'covariance_type must be "spherical" for partial_fit, which has moments alone; got "diag". Call fit'
            )
        rows = self._as_samples(raw, first=seen is None, least=1)
        if rows.shape[1] > MAX_FEATURES:
            raise ValueError(
                f"X must have at most {MAX_FEATURES} features for partial_fit, since its third moment is stored; got "
                f"{rows.shape[1]}. Call fit, or reduce the features before"
            )
        location = Location.of(rows) if seen is None else seen.location
        sums = sums_of_samples(rows, location, with_triples=True)
        return Samples(location, sums if seen is None else seen.sums + sums)

    def _estimate_seen(self, seen: Samples) -> tuple[Warning, ...]:
        """Estimate the model from sums alone."""
        return self.estimate(self._moments_of(seen)(cast("int", self.n_components)))

    def parameters(self, fit: Factorization, moments: LocatedMoments) -> Gaussians:
        """Return means, weights and variances, in the unit of the moments."""
        components = moments.parameters(fit)
        return replace(components, means=components.means + moments.samples.mean)

    def _refine(self, components: Gaussians, moments: LocatedMoments) -> Gaussians:
        """Return the Gaussians in the unit of the data, after steps of EM if samples can be read."""
        if self.covariance_type == "diag":
            variances = np.repeat(components.covariances[:, None], components.means.shape[1], axis=1)
            components = replace(components, covariances=variances)
        if moments.samples.data is not None:
            components = super()._refine(components, moments)
        center, unit = moments.samples.location
        diagnostics = components.diagnostics
        if "log_likelihood" in diagnostics:
            level = diagnostics.log_likelihood - moments.samples.sums.n * center.size * np.log(unit)
            diagnostics = diagnostics.extended(log_likelihood=float(level))
        return replace(
            components,
            means=components.means * unit + center,
            covariances=components.covariances * unit**2,
            diagnostics=diagnostics,
        )

    def em_step(self, components: Gaussians, moments: LocatedMoments) -> Gaussians:
        """Return the Gaussians after one step of expectation maximization, in the unit of the moments."""
        model = components.means, components.covariances, components.weights
        sums = sum_over_rows(em_sums, moments.samples.data, moments.samples.location, *model)
        means, variances, weights = from_em_sums(sums, moments.floor)
        diagnostics = components.diagnostics.extended(log_likelihood=sums.log_likelihood)
        return replace(components, means=means, weights=weights, covariances=variances, diagnostics=diagnostics)

    def _more_starts(self, components: Gaussians, moments: LocatedMoments) -> list[Gaussians]:
        """Return the Gaussians of clusters of k-means, for samples in memory."""
        if is_dask(moments.samples.data):
            return []
        samples, rng = moments.samples.location.inside(moments.samples.data), as_generator(as_seed(self.random_state))
        states = rng.integers(2**31, size=n_starts(samples.shape[0])).tolist()
        return [self._of_clusters(components, moments, samples, random_state) for random_state in states]

    def _of_clusters(
        self, components: Gaussians, moments: LocatedMoments, samples: np.ndarray, random_state: int
    ) -> Gaussians:
        """Return the Gaussians of the clusters of k-means from one start."""
        k = components.weights.size
        labels = KMeans(k, n_init=1, random_state=random_state).fit(samples).labels_
        shares = np.eye(k)[labels]
        squares = shares.T @ (np.sum(samples**2, axis=1) if components.covariances.ndim == 1 else samples**2)
        sums = EMSums(shares.sum(axis=0), shares.T @ samples, squares, 0.0)
        means, variances, weights = from_em_sums(sums, moments.floor)
        return replace(components, means=means, weights=weights, covariances=variances)

    def fit_predict(self, X: Any, y: object = None) -> np.ndarray:  # noqa: N803
        """Fit and return the most probable Gaussian of each sample.

        Parameters
        ----------
        X : array of shape (n, n_features)
            The samples.
        y : ignored
            Not used; there for the interface of scikit-learn.

        Returns
        -------
        array of shape (n,)
            The Gaussians.

        See Also
        --------
        SphericalGaussianMixture.predict : For new samples.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.models import SphericalGaussianMixture
        >>> rng = np.random.default_rng(0)
        >>> X = np.concatenate([rng.normal(mean, 1, (500, 3)) for mean in ([8, 0, 0], [0, 8, 0])])
        >>> SphericalGaussianMixture(2, random_state=0).fit_predict(X).shape
        (1000,)
        """
        warn_caller(self._fit(X))
        return self.predict(X)

    def predict_proba(self, X: Any) -> np.ndarray:  # noqa: N803
        """Return the probability of each Gaussian for each sample.

        Parameters
        ----------
        X : array of shape (n, n_features)
            The samples.

        Returns
        -------
        array of shape (n, n_components)
            The probabilities, with rows of sum one.

        See Also
        --------
        SphericalGaussianMixture.predict : The most probable Gaussian.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.models import SphericalGaussianMixture
        >>> rng = np.random.default_rng(0)
        >>> X = np.concatenate([rng.normal(mean, 1, (500, 3)) for mean in ([8, 0, 0], [0, 8, 0])])
        >>> model = SphericalGaussianMixture(2, random_state=0).fit(X)
        >>> model.predict_proba(X).shape
        (1000, 2)
        """
        return softmax(self._joint(X), axis=1)

    def predict(self, X: Any) -> np.ndarray:  # noqa: N803
        """Return the most probable Gaussian of each sample.

        Parameters
        ----------
        X : array of shape (n, n_features)
            The samples.

        Returns
        -------
        array of shape (n,)
            The Gaussians.

        See Also
        --------
        SphericalGaussianMixture.predict_proba : The probability of each Gaussian.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.models import SphericalGaussianMixture
        >>> rng = np.random.default_rng(0)
        >>> X = np.concatenate([rng.normal(mean, 1, (500, 3)) for mean in ([8, 0, 0], [0, 8, 0])])
        >>> model = SphericalGaussianMixture(2, random_state=0).fit(X)
        >>> model.predict(X).shape
        (1000,)
        """
        return np.argmax(self._joint(X), axis=1)

    def score_samples(self, X: Any) -> np.ndarray:  # noqa: N803
        """Return the log-likelihood of each sample.

        Parameters
        ----------
        X : array of shape (n, n_features)
            The samples.

        Returns
        -------
        array of shape (n,)
            The log-likelihoods.

        See Also
        --------
        SphericalGaussianMixture.score : Their mean.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.models import SphericalGaussianMixture
        >>> rng = np.random.default_rng(0)
        >>> X = np.concatenate([rng.normal(mean, 1, (500, 3)) for mean in ([8, 0, 0], [0, 8, 0])])
        >>> model = SphericalGaussianMixture(2, random_state=0).fit(X)
        >>> model.score_samples(X).shape
        (1000,)
        """
        return logsumexp(self._joint(X), axis=1)

    def score(self, X: Any, y: object = None) -> float:  # noqa: N803
        """Return the mean log-likelihood of a sample.

        Parameters
        ----------
        X : array of shape (n, n_features)
            The samples.
        y : ignored
            Not used; there for the interface of scikit-learn.

        Returns
        -------
        float
            The mean.

        See Also
        --------
        SphericalGaussianMixture.score_samples : One for each sample.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.models import SphericalGaussianMixture
        >>> rng = np.random.default_rng(0)
        >>> X = np.concatenate([rng.normal(mean, 1, (500, 3)) for mean in ([8, 0, 0], [0, 8, 0])])
        >>> model = SphericalGaussianMixture(2, random_state=0).fit(X)
        >>> bool(np.isclose(model.score(X), model.score_samples(X).mean()))
        True
        """
        return float(np.mean(self.score_samples(X)))

    def bic(self, X: Any) -> float:  # noqa: N803
        r"""Return Schwarz's criterion for these samples, :math:`p \log n - 2 \log L`; lower is better.

        Parameters
        ----------
        X : array of shape (n, n_features)
            The samples.

        Returns
        -------
        float
            The criterion.

        See Also
        --------
        SphericalGaussianMixture.aic : Penalizes Gaussians less.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.models import SphericalGaussianMixture
        >>> rng = np.random.default_rng(0)
        >>> X = np.concatenate([rng.normal(mean, 1, (500, 3)) for mean in ([8, 0, 0], [0, 8, 0])])
        >>> model = SphericalGaussianMixture(2, random_state=0).fit(X)
        >>> model.bic(X) < SphericalGaussianMixture(1, random_state=0).fit(X).bic(X)
        True
        """
        likelihoods = self.score_samples(X)
        return float(self._n_parameters() * np.log(likelihoods.size) - 2 * np.sum(likelihoods))

    def aic(self, X: Any) -> float:  # noqa: N803
        r"""Return Akaike's criterion for these samples, :math:`2 p - 2 \log L`; lower is better.

        Parameters
        ----------
        X : array of shape (n, n_features)
            The samples.

        Returns
        -------
        float
            The criterion.

        See Also
        --------
        SphericalGaussianMixture.bic : Penalizes Gaussians more.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.models import SphericalGaussianMixture
        >>> rng = np.random.default_rng(0)
        >>> X = np.concatenate([rng.normal(mean, 1, (500, 3)) for mean in ([8, 0, 0], [0, 8, 0])])
        >>> model = SphericalGaussianMixture(2, random_state=0).fit(X)
        >>> model.aic(X) < SphericalGaussianMixture(1, random_state=0).fit(X).aic(X)
        True
        """
        return float(2 * self._n_parameters() - 2 * np.sum(self.score_samples(X)))

    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """Draw samples, and return their Gaussians; samples are sorted by Gaussian, as in scikit-learn.

        Parameters
        ----------
        n_samples : int
            Number of samples.
        random_state : int, optional
            Seed; by default that of the model.

        Returns
        -------
        X : array of shape (n_samples, n_features)
            The samples.
        y : array of shape (n_samples,)
            The Gaussian of each sample.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.models import SphericalGaussianMixture
        >>> rng = np.random.default_rng(0)
        >>> X = np.concatenate([rng.normal(mean, 1, (500, 3)) for mean in ([8, 0, 0], [0, 8, 0])])
        >>> model = SphericalGaussianMixture(2, random_state=0).fit(X)
        >>> drawn, labels = model.sample(10, random_state=0)
        >>> drawn.shape, labels.shape
        ((10, 3), (10,))
        """
        check_is_fitted(self)
        as_number("n_samples", n_samples, integer=True)
        rng = as_generator(self.random_state if random_state is None else random_state, "random_state")
        labels = np.repeat(np.arange(self.weights_.size), rng.multinomial(n_samples, self.weights_))
        widths = np.sqrt(self.covariances_).reshape(self.weights_.size, -1)
        noise = rng.standard_normal((n_samples, self.means_.shape[1]))
        return self.means_[labels] + widths[labels] * noise, labels

    def _n_parameters(self) -> int:
        """Return the number of free parameters."""
        return self.means_.size + self.covariances_.size + self.weights_.size - 1

    def to_sklearn(self) -> Any:
        """Return a fitted ``sklearn.mixture.GaussianMixture`` with covariances of the same type and these parameters.

        Returns
        -------
        sklearn.mixture.GaussianMixture
            The model, fitted.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.models import SphericalGaussianMixture
        >>> rng = np.random.default_rng(0)
        >>> X = np.concatenate([rng.normal(mean, 1, (500, 3)) for mean in ([8, 0, 0], [0, 8, 0])])
        >>> model = SphericalGaussianMixture(2, random_state=0).fit(X)
        >>> model.to_sklearn().predict(X).shape
        (1000,)
        """
        from sklearn.mixture import GaussianMixture

        check_is_fitted(self)
        means, weights, variances = self.means_.copy(), self.weights_.copy(), self.covariances_.copy()
        start = {"weights_init": weights, "means_init": means, "precisions_init": 1 / variances}
        model = GaussianMixture(self.n_components_, covariance_type=self.covariance_type, **start)
        model.means_, model.weights_, model.covariances_ = means, weights, variances
        model.precisions_ = 1 / self.covariances_
        model.precisions_cholesky_ = np.sqrt(model.precisions_)
        model.converged_, model.n_iter_, model.lower_bound_ = True, 0, -np.inf
        model.n_features_in_ = self.n_features_in_
        return model

    def _joint(self, X: Any) -> np.ndarray:  # noqa: N803
        check_is_fitted(self)
        samples = validate_data(self, X, dtype=np.float64, reset=False)
        return log_densities(samples, self.means_, self.covariances_) + np.log(self.weights_)


def _check_size(n: int, d: int, k: int) -> None:
    if k > d:
        raise ValueError(
            f"n_components must be at most {d}, the number of features, since means are to be linearly independent; "
            f"got {k}"
        )
    if k > n:
        raise RankDeficientError(f"n_components must be at most {n}, the number of samples; got {k}")


def _log_likelihood(components: Gaussians, samples: Samples) -> float:
    """Return the log-likelihood of samples that can be read again."""
    model = components.means, components.covariances, components.weights
    return float(sum_over_rows(log_likelihood, samples.data, *model))
