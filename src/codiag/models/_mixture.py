"""Mixtures of spherical Gaussians by moments."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from codiag._validation import as_number
from codiag.models._base import as_seed
from codiag.models._sampling_noise import random_signs, warn_if_hidden, weakest_direction
from codiag.models._second_moment import by_weight, check_second_moment, diagnostics, factorize_core, reordered
from codiag.tensors import MomentTensor, SymmetricOuterTensor

NARROWEST = 1e-8
"""The least variance of a Gaussian, relative to the mean variance of the features: densities are to be numbers."""

Parameters = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Means (k, d), weights (k,) and variances (k,)."""


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
        The variance of each Gaussian, in every direction; at least 1e-8 of the mean variance of the features, also
        where samples coincide.
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
        seed = as_seed(self.random_state)
        with np.errstate(over="ignore", invalid="ignore"):  # sums of finite numbers may not be finite
            samples = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        _check_size(samples, self.n_components)
        centre, scale = origin_and_unit(samples)
        inside = (samples - centre) / scale
        found, diagnosis = estimate_gaussians(inside, self.n_components, self.method, seed)
        for _ in range(self.polish):
            found = _em_step(inside, *found)
        means, weights, variances = found
        order = by_weight(weights)
        self.means_, self.weights_ = means[order] * scale + centre, weights[order]
        self.covariances_ = variances[order] * scale**2
        self.diagnostics_ = reordered(diagnosis, order)
        self.labels_ = np.argmax(self._log_joint(samples), axis=1)
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
        return self._log_joint(validate_data(self, X, dtype=np.float64, reset=False))

    def _log_joint(self, samples: np.ndarray) -> np.ndarray:
        return log_densities(samples, self.means_, self.covariances_) + np.log(self.weights_)


def _check_size(samples: np.ndarray, k: int) -> None:
    n, d = samples.shape
    if k > d:
        raise ValueError(
            f"n_components must be at most {d}, the number of features, since means are to be linearly independent; "
            f"got {k}"
        )
    if k > n:
        raise ValueError(f"n_components must be at most {n}, the number of samples; got {k}")


def origin_and_unit(samples: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the mean of samples and how far they reach from it, the unit in which moments of all orders are numbers.

    A power of two, so that nothing is rounded.
    """
    largest = float(np.max(np.abs(samples)))
    if largest > 1e152:
        raise ValueError(f"X must hold numbers whose squares are numbers, below 1e152; the largest is {largest:.0e}")
    centre = samples.mean(axis=0)
    reach = float(np.max(np.abs(samples - centre)))
    if reach <= 1e-15 * largest:
        raise ValueError(
            "X must hold samples that differ; all of them are the same, and a Gaussian around them would have no width"
        )
    if reach < 1e-151:
        raise ValueError(
            f"X must hold samples whose variances are numbers; they reach {reach:.0e} from their mean. Divide X by that"
        )
    return centre, float(2.0 ** np.round(np.log2(reach)))


def estimate_gaussians(samples: np.ndarray, k: int, method: Any, seed: int | None) -> tuple[Parameters, dict[str, Any]]:
    """Return means (k, d), weights, variances, and diagnostics, from centred samples by moments alone.

    Where the origin lies makes no difference: samples are moved in a direction in which the means do not differ, which
    makes these linearly independent.
    """
    n, d = samples.shape
    values, vectors = np.linalg.eigh(samples.T @ samples / n)
    floor = NARROWEST * float(np.mean(values))
    if k == 1:
        return (np.zeros((1, d)), np.ones(1), np.array([np.mean(values)])), _of_one(values[::-1])
    quiet = vectors[:, : d - k + 1]
    noise = float(np.mean(np.maximum(values[: d - k + 1], 0)))
    offset = np.sqrt(values[-1]) * quiet[:, 0]
    moved = samples + offset
    second = moved.T @ moved / n - noise * np.eye(d)
    values, vectors = np.linalg.eigh(second)
    values, basis = values[::-1], vectors[:, ::-1][:, :k]
    check_second_moment(values, k, "n_components")
    size, spread = weakest_direction(second, [(moved.T * signs) @ moved / n for signs in random_signs(n)], k)
    warn_if_hidden(size, spread, k)
    shift = moved.T @ np.mean((samples @ quiet) ** 2, axis=1) / n  # sum_i pi_i sigma_i^2 mu_i
    moment = MomentTensor(moved) - SymmetricOuterTensor(np.eye(d), shift)
    fit = factorize_core(moment, basis, values, method, seed)
    directions = basis @ np.asarray(fit.factors[0])
    # T = sum_i pi_i |mu_i|^3 u_i^(x3) and M2 = sum_i pi_i |mu_i|^2 u_i u_i^T, so lengths are ratios of weights.
    inverse = np.linalg.pinv(directions)
    squares = np.maximum(np.einsum("ia,ab,ib->i", inverse, second, inverse), 1e-12 * values[0])
    means = (directions * (np.asarray(fit.weights) / squares)).T
    raw_weights = np.linalg.lstsq(means.T, offset, rcond=None)[0]
    weights = np.maximum(raw_weights, 1e-6)
    raw = np.linalg.lstsq(means.T, shift, rcond=None)[0] / weights
    variances = np.maximum(np.clip(raw, 0.05 * noise, 20 * noise), floor)
    clipped = float(np.sum(weights - raw_weights) + np.sum(np.abs(variances - raw)) / np.sum(variances))
    found = diagnostics(values, k, spread, fit, clipped, np.arange(k))
    back = means - np.outer(means @ quiet[:, 0], quiet[:, 0])  # in this direction the means do not differ
    return (back, weights / weights.sum(), variances), found


def _of_one(values: np.ndarray) -> dict[str, Any]:
    """Return diagnostics of one Gaussian, whose mean and variance are those of the samples: nothing is uncertain."""
    return {
        "second_moment": values[:2].tolist(),
        "second_moment_gap": 1.0,
        "sampling_noise": 0.0,
        "relative_error": 0.0,
        "clipped_mass": 0.0,
        "core_errors": None,
        "converged": True,
    }


def log_densities(samples: np.ndarray, means: np.ndarray, variances: np.ndarray) -> np.ndarray:
    """Return the logarithm of each Gaussian's density at each sample."""
    origin, scale = means.mean(axis=0), np.sqrt(np.max(variances))
    inside, centres, widths = (samples - origin) / scale, (means - origin) / scale, variances / scale**2
    squares = np.sum(inside**2, axis=1)[:, None] - 2 * inside @ centres.T + np.sum(centres**2, axis=1)
    logarithms = np.log(2 * np.pi) + 2 * np.log(scale) + np.log(widths)
    return -0.5 * (np.maximum(squares, 0) / widths + samples.shape[1] * logarithms)


def _em_step(samples: np.ndarray, means: np.ndarray, weights: np.ndarray, variances: np.ndarray) -> Parameters:
    joint = log_densities(samples, means, variances) + np.log(weights)
    shares = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
    mass = shares.sum(axis=0) + 1e-10
    means = (shares.T @ samples) / mass[:, None]
    # Squares of distances are differences of squares, precise since samples are centred and of unit size.
    squares = shares.T @ np.sum(samples**2, axis=1) / mass - np.sum(means**2, axis=1)
    floor = NARROWEST * np.mean(np.var(samples, axis=0))
    return means, mass / mass.sum(), np.maximum(squares / samples.shape[1], floor)
