"""Mixtures by moments: of spherical Gaussians, and of whatever three independent views have in common."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from codiag._validation import as_number
from codiag.factorize import factorize
from codiag.models.base import by_weight, check_second_moment, diagnostics, factorize_core
from codiag.tensors import CrossMomentTensor, MomentTensor, PlacementTensor


class SphericalGaussianMixture(DensityMixin, BaseEstimator):
    r"""A mixture of spherical Gaussians by the method of moments of Hsu & Kakade (2013).

    Means must be linearly independent, k at most the number of features. With :math:`\bar\sigma^2` the mean of the
    smallest eigenvalues of the covariance and :math:`\tilde m = \sum_i \pi_i \sigma_i^2 \mu_i`,

    .. math:: E[x x^\top] - \bar\sigma^2 I = \sum_i \pi_i \mu_i \mu_i^\top, \quad
        E[x^{\otimes 3}] - (\tilde m \otimes I + \dots) = \sum_i \pi_i \mu_i^{\otimes 3}.

    Parameters
    ----------
    n_components : int
        Number of Gaussians.
    method : Method or str, optional
        How the moment is factorized; by default `codiag.methods.Auto`.
    polish : int
        Steps of expectation maximization afterwards; zero is the pure method of moments.
    random_state : int, optional
        Seed; the answer does not depend on it where the data determines it.

    Attributes
    ----------
    means_ : array of shape (n_components, n_features)
    weights_ : array of shape (n_components,)
        Largest first.
    covariances_ : array of shape (n_components,)
        The variance of each Gaussian, in every direction.
    labels_ : array of shape (n,)
        The most probable Gaussian of each sample.
    diagnostics_ : dict
    n_features_in_ : int

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

    def __init__(
        self, n_components: int = 2, *, method: Any = None, polish: int = 10, random_state: int | None = None
    ) -> None:
        self.n_components = n_components
        self.method = method
        self.polish = polish
        self.random_state = random_state

    def fit(self, X: Any, y: object = None) -> SphericalGaussianMixture:  # noqa: N803
        """Estimate the mixture from samples of shape (n, features)."""
        as_number("n_components", self.n_components, integer=True)
        as_number("polish", self.polish, integer=True, zero=True)
        samples = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        if self.n_components > samples.shape[1]:
            raise ValueError(
                f"n_components must be at most {samples.shape[1]}, the number of features, since means are to be "
                f"linearly independent; got {self.n_components}"
            )
        means, weights, variances, found = estimate_gaussians(
            samples, self.n_components, self.method, self.random_state
        )
        for _ in range(self.polish):
            means, weights, variances = _em_step(samples, means, weights, variances)
        order = by_weight(weights)
        self.means_, self.weights_, self.covariances_ = means[order], weights[order], variances[order]
        self.diagnostics_ = found
        self.labels_ = np.argmax(log_densities(samples, self.means_, self.covariances_) + np.log(self.weights_), axis=1)
        return self

    def predict_proba(self, X: Any) -> np.ndarray:  # noqa: N803
        """Return the probability of each Gaussian for each sample."""
        joint = self._joint(X)
        return np.exp(joint - logsumexp(joint, axis=1, keepdims=True))

    def predict(self, X: Any) -> np.ndarray:  # noqa: N803
        """Return the most probable Gaussian of each sample."""
        return np.argmax(self._joint(X), axis=1)

    def fit_predict(self, X: Any, y: object = None) -> np.ndarray:  # noqa: N803
        """Fit and return the most probable Gaussian of each sample."""
        return self.fit(X).labels_

    def score_samples(self, X: Any) -> np.ndarray:  # noqa: N803
        """Return the log-likelihood of each sample."""
        return logsumexp(self._joint(X), axis=1)

    def score(self, X: Any, y: object = None) -> float:  # noqa: N803
        """Return the mean log-likelihood of a sample."""
        return float(np.mean(self.score_samples(X)))

    def to_sklearn(self) -> Any:
        """Return a fitted ``sklearn.mixture.GaussianMixture`` with spherical covariances and these parameters."""
        from sklearn.mixture import GaussianMixture

        check_is_fitted(self)
        model = GaussianMixture(self.n_components, covariance_type="spherical")
        model.means_, model.weights_, model.covariances_ = self.means_, self.weights_, self.covariances_
        model.precisions_ = 1 / self.covariances_
        model.precisions_cholesky_ = np.sqrt(model.precisions_)
        model.converged_, model.n_iter_, model.lower_bound_ = True, 0, -np.inf
        model.n_features_in_ = self.n_features_in_
        return model

    def _joint(self, X: Any) -> np.ndarray:  # noqa: N803
        check_is_fitted(self)
        samples = validate_data(self, X, dtype=np.float64, reset=False)
        return log_densities(samples, self.means_, self.covariances_) + np.log(self.weights_)


def estimate_gaussians(
    samples: np.ndarray, k: int, method: Any, seed: int | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
    """Return means (k, d), weights, variances and diagnostics, from samples by moments alone."""
    n, d = samples.shape
    mean = samples.mean(axis=0)
    centred = samples - mean
    values, vectors = np.linalg.eigh(centred.T @ centred / n)
    quiet = vectors[:, : d - k + 1]  # directions in which the means do not differ
    noise = float(np.mean(values[: d - k + 1]))
    second = samples.T @ samples / n - noise * np.eye(d)
    values, vectors = np.linalg.eigh(second)
    values, basis = values[::-1][: k + 1], vectors[:, ::-1][:, :k]
    check_second_moment(values, k, "n_components")
    shift = samples.T @ np.mean((centred @ quiet) ** 2, axis=1) / n  # sum_i pi_i sigma_i^2 mu_i
    moment = MomentTensor(samples) - PlacementTensor(np.eye(d), shift)
    fit = factorize_core(moment, basis, values, method, seed)
    directions = basis @ np.asarray(fit.factors[0])
    # T = sum_i pi_i |mu_i|^3 u_i^(x3) and M2 = sum_i pi_i |mu_i|^2 u_i u_i^T, so lengths are ratios of weights.
    inverse = np.linalg.pinv(directions)
    squares = np.maximum(np.einsum("ia,ab,ib->i", inverse, second, inverse), 1e-300)
    lengths = np.asarray(fit.weights) / squares
    means = (directions * lengths).T
    weights = np.maximum(np.linalg.lstsq(means.T, mean, rcond=None)[0], 1e-6)
    shares = np.linalg.lstsq(means.T, shift, rcond=None)[0]
    variances = np.clip(shares / weights, 0.05 * noise, 20 * noise)
    return means, weights / weights.sum(), variances, diagnostics(values, k, fit, 0.0)


def log_densities(samples: np.ndarray, means: np.ndarray, variances: np.ndarray) -> np.ndarray:
    """Return the logarithm of each Gaussian's density at each sample."""
    squares = np.sum(samples**2, axis=1)[:, None] - 2 * samples @ means.T + np.sum(means**2, axis=1)
    return -0.5 * (squares / variances + samples.shape[1] * np.log(2 * np.pi * variances))


def _em_step(
    samples: np.ndarray, means: np.ndarray, weights: np.ndarray, variances: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    joint = log_densities(samples, means, variances) + np.log(weights)
    shares = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
    mass = shares.sum(axis=0) + 1e-10
    means = (shares.T @ samples) / mass[:, None]
    squares = shares.T @ np.sum(samples**2, axis=1) / mass - np.sum(means**2, axis=1)
    return means, mass / mass.sum(), np.maximum(squares / samples.shape[1], 1e-10)


class MultiviewMixture(BaseEstimator):
    r"""A mixture seen from three sides that are independent given the component.

    The cross moment of the views, :math:`\sum_h \pi_h A_h \otimes B_h \otimes C_h`, is factorized as it is: nothing is
    symmetrised, nothing is whitened.

    Parameters
    ----------
    n_components : int
        Number of components.
    method : Method or str, optional
        How the moment is factorized; by default `codiag.methods.Auto`.
    random_state : int, optional
        Seed; the answer does not depend on it where the data determines it.

    Attributes
    ----------
    means_ : list of three arrays of shape (n_components, n_features)
        The mean of every view, given the component.
    weights_ : array of shape (n_components,)
        Largest first.
    diagnostics_ : dict

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.models import MultiviewMixture
    >>> rng = np.random.default_rng(0)
    >>> h = rng.integers(0, 2, 4000)
    >>> views = [np.array([[4.0, 0, 1], [0, 4, 1]])[h] + rng.normal(size=(4000, 3)) for _ in range(3)]
    >>> MultiviewMixture(2, random_state=0).fit(views).weights_.round(1).tolist()
    [0.5, 0.5]
    """

    def __init__(self, n_components: int = 2, *, method: Any = None, random_state: int | None = None) -> None:
        self.n_components = n_components
        self.method = method
        self.random_state = random_state

    def fit(self, X: Any, y: object = None) -> MultiviewMixture:  # noqa: N803
        """Estimate the mixture from three views, a sequence of arrays or sparse matrices (n, d) of the same samples."""
        as_number("n_components", self.n_components, integer=True)
        views = list(X)
        if len(views) != 3:
            raise ValueError(f"X must be three views of the same samples; got {len(views)}")
        moment = CrossMomentTensor(*views)
        smallest = sorted(moment.shape)[1]
        if self.n_components > smallest:
            raise ValueError(
                f"n_components must be at most {smallest}, the second smallest view; got {self.n_components}"
            )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the diagnostics say what the fit is worth
            fit = factorize(moment, self.n_components, method=self.method, symmetric=False, seed=self.random_state)
        units = [np.asarray(factor) for factor in fit.factors]
        averages = [np.asarray(view.T @ moment.weights) for view in moment.views]
        masses = [np.linalg.lstsq(unit, mean, rcond=None)[0] for unit, mean in zip(units, averages, strict=True)]
        # Each mass is pi times the length of the mean in its view, and the weight pi times all three lengths.
        product = masses[0] * masses[1] * masses[2] / np.asarray(fit.weights)
        weights = np.sqrt(np.maximum(product, 1e-12))
        order = by_weight(weights)
        self.means_ = [(unit * (mass / weights)).T[order] for unit, mass in zip(units, masses, strict=True)]
        self.weights_ = (weights / weights.sum())[order]
        self.diagnostics_ = {
            "relative_error": fit.relative_error,
            "weights_sum": float(weights.sum()),
            "standard_errors": fit.standard_errors,
            "converged": fit.converged,
        }
        return self
