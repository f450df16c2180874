"""Mixtures of spherical Gaussians by moments."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from codiag._validation import as_number, check_seed
from codiag.models.base import (
    by_weight,
    check_second_moment,
    diagnostics,
    factorize_core,
    warn_if_hidden,
    weakest,
)
from codiag.tensors import MomentTensor, PlacementTensor


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
        check_seed("random_state", self.random_state)
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
        means, weights, variances = self.means_.copy(), self.weights_.copy(), self.covariances_.copy()
        start = {"weights_init": weights, "means_init": means, "precisions_init": 1 / variances}
        model = GaussianMixture(self.n_components, covariance_type="spherical", **start)
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


def estimate_gaussians(
    samples: np.ndarray, k: int, method: Any, seed: int | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
    """Return means (k, d), weights, variances and diagnostics, from samples by moments alone.

    Where the origin lies makes no difference: samples are centred, and moved in a direction in which the means do not
    differ, which makes them linearly independent.
    """
    n, d = samples.shape
    average = samples.mean(axis=0)
    centred = samples - average
    values, vectors = np.linalg.eigh(centred.T @ centred / n)
    quiet = vectors[:, : d - k + 1]
    noise = float(np.mean(values[: d - k + 1]))
    offset = np.sqrt(max(values[-1], 1e-300)) * quiet[:, 0]
    moved = centred + offset
    second = moved.T @ moved / n - noise * np.eye(d)
    values, vectors = np.linalg.eigh(second)
    values, basis = values[::-1], vectors[:, ::-1][:, :k]
    check_second_moment(values, k, "n_components")
    halves = [part.T @ part / max(part.shape[0], 1) for part in (moved[::2], moved[1::2])]
    size, spread = weakest(second, halves, k)
    warn_if_hidden(size, spread, k)
    shift = moved.T @ np.mean((centred @ quiet) ** 2, axis=1) / n  # sum_i pi_i sigma_i^2 mu_i
    moment = MomentTensor(moved) - PlacementTensor(np.eye(d), shift)
    fit = factorize_core(moment, basis, values, method, seed)
    directions = basis @ np.asarray(fit.factors[0])
    # T = sum_i pi_i |mu_i|^3 u_i^(x3) and M2 = sum_i pi_i |mu_i|^2 u_i u_i^T, so lengths are ratios of weights.
    inverse = np.linalg.pinv(directions)
    squares = np.maximum(np.einsum("ia,ab,ib->i", inverse, second, inverse), 1e-300)
    means = (directions * (np.asarray(fit.weights) / squares)).T
    raw_weights = np.linalg.lstsq(means.T, offset, rcond=None)[0]
    weights = np.maximum(raw_weights, 1e-6)
    raw = np.linalg.lstsq(means.T, shift, rcond=None)[0] / weights
    variances = np.clip(raw, 0.05 * noise, 20 * noise)
    clipped = float(np.sum(weights - raw_weights) + np.sum(np.abs(variances - raw)) / np.sum(variances))
    order = by_weight(weights)
    found = diagnostics(values, k, spread, fit, clipped, order)
    return (means - offset + average)[order], (weights / weights.sum())[order], variances[order], found


def log_densities(samples: np.ndarray, means: np.ndarray, variances: np.ndarray) -> np.ndarray:
    """Return the logarithm of each Gaussian's density at each sample."""
    origin = means.mean(axis=0)
    samples, means = samples - origin, means - origin
    squares = np.sum(samples**2, axis=1)[:, None] - 2 * samples @ means.T + np.sum(means**2, axis=1)
    return -0.5 * (squares / variances + samples.shape[1] * np.log(2 * np.pi * variances))


def _em_step(
    samples: np.ndarray, means: np.ndarray, weights: np.ndarray, variances: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    joint = log_densities(samples, means, variances) + np.log(weights)
    shares = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
    mass = shares.sum(axis=0) + 1e-10
    means = (shares.T @ samples) / mass[:, None]
    origin = samples.mean(axis=0)  # squares of distances are differences of squares, best near zero
    squares = shares.T @ np.sum((samples - origin) ** 2, axis=1) / mass - np.sum((means - origin) ** 2, axis=1)
    floor = 1e-8 * np.mean(np.var(samples, axis=0)) + 1e-300
    return means, mass / mass.sum(), np.maximum(squares / samples.shape[1], floor)
