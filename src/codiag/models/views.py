"""Mixtures by moments: whatever three independent views of the same samples have in common."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import logsumexp
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from codiag._validation import as_number, check_seed
from codiag.models.base import by_weight, warn_if_hidden, weakest
from codiag.models.mixture import log_densities
from codiag.models.view_moments import ViewMoments, estimate_views
from codiag.tensors import CrossMomentTensor


class MultiviewMixture(BaseEstimator):
    r"""A mixture seen from three sides that are independent given the component.

    The cross moment of the views, :math:`\sum_h \pi_h A_h \otimes B_h \otimes C_h`, is factorized as it is: nothing is
    symmetrised, nothing is whitened.

    Parameters
    ----------
    n_components : int
        Number of components.
    method : Method or str, optional
        How the moment is factorized; by default `codiag.methods.Auto`. Methods for orthogonal factors (`OJD`, `TPM`)
        take the classical route: two views are mapped to the third, and the second moment whitens.
    polish : int
        Steps of expectation maximization afterwards, which take the noise of every view for white and Gaussian; zero is
        the pure method of moments, which takes it for nothing.
    random_state : int, optional
        Seed; the answer does not depend on it where the data determines it.

    Attributes
    ----------
    means_ : list of three arrays of shape (n_components, n_features)
        The mean of every view, given the component.
    weights_ : array of shape (n_components,)
        Largest first.
    variances_ : array of shape (3,)
        The variance of the noise in every view, a feature's mean.
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

    def __init__(
        self, n_components: int = 2, *, method: Any = None, polish: int = 0, random_state: int | None = None
    ) -> None:
        self.n_components = n_components
        self.method = method
        self.polish = polish
        self.random_state = random_state

    def fit(self, X: Any, y: object = None) -> MultiviewMixture:  # noqa: N803
        """Estimate the mixture from three views, a sequence of arrays or sparse matrices (n, d) of the same samples."""
        as_number("n_components", self.n_components, integer=True)
        as_number("polish", self.polish, integer=True, zero=True)
        check_seed("random_state", self.random_state)
        views = list(X)
        if len(views) != 3:
            raise ValueError(f"X must be three views of the same samples; got {len(views)}")
        moment = CrossMomentTensor(*views)
        smallest = sorted(moment.shape)[1]
        if self.n_components > smallest:
            raise ValueError(
                f"n_components must be at most {smallest}, the second smallest view; got {self.n_components}"
            )
        moments = ViewMoments(moment)
        size, noise = _correlation(moments, self.n_components)
        warn_if_hidden(size, noise, self.n_components)
        weights, means, fit = estimate_views(moments, self.n_components, self.method, self.random_state)
        order = by_weight(weights)
        self.diagnostics_ = {
            "weakest_correlation": size,
            "sampling_noise": noise,
            "relative_error": fit.relative_error,
            "weights_sum": float(weights.sum()),
            "core_errors": fit.standard_errors[:, order],
            "converged": fit.converged,
        }
        means, weights = [mean[order] for mean in means], weights[order] / weights.sum()
        variances = _view_variances(moment, means, weights)
        for _ in range(self.polish):
            shares = _shares(moment.views, means, weights, variances)
            means, weights, variances = _em_step(moment.views, shares)
        self.means_, self.weights_, self.variances_ = means, weights, variances
        return self

    def predict_proba(self, X: Any) -> np.ndarray:  # noqa: N803
        """Return the probability of each component for each sample, its noise taken for white and Gaussian."""
        check_is_fitted(self)
        return _shares(CrossMomentTensor(*X).views, self.means_, self.weights_, self.variances_)

    def predict(self, X: Any) -> np.ndarray:  # noqa: N803
        """Return the most probable component of each sample."""
        return np.argmax(self.predict_proba(X), axis=1)


def _correlation(moments: ViewMoments, k: int) -> tuple[float, float]:
    """Return the k-th singular value of the pairs of the two largest views, and its sampling noise."""
    _, left, right = sorted(range(3), key=lambda mode: moments.shape[mode])
    halves = [moments.pairs(left, right, part) for part in (slice(0, None, 2), slice(1, None, 2))]
    return weakest(moments.pairs(left, right), halves, k)


def _dense(view: Any) -> np.ndarray:
    return view.toarray() if sparse.issparse(view) else np.asarray(view)


def _view_variances(moment: CrossMomentTensor, means: list[np.ndarray], weights: np.ndarray) -> np.ndarray:
    """Return what is left of each view's mean square once the means are explained, a feature."""
    left = []
    for view, mean in zip(moment.views, means, strict=True):
        squares = view.power(2) if sparse.issparse(view) else view**2
        total = float(np.sum(squares.T @ moment.weights))
        left.append((total - float(weights @ np.sum(mean**2, axis=1))) / mean.shape[1])
    floor = 1e-3 * np.mean(np.abs(left)) + 1e-300
    return np.maximum(left, floor)


def _shares(views: Any, means: list[np.ndarray], weights: np.ndarray, variances: np.ndarray) -> np.ndarray:
    joint = np.log(weights)
    for view, mean, variance in zip(views, means, variances, strict=True):
        joint = joint + log_densities(_dense(view), mean, np.full(weights.size, variance))
    return np.exp(joint - logsumexp(joint, axis=1, keepdims=True))


def _em_step(views: Any, shares: np.ndarray) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
    mass = shares.sum(axis=0) + 1e-10
    means, variances = [], []
    for view in views:
        mean = np.asarray((view.T @ shares) / mass).T
        squares = view.power(2) if sparse.issparse(view) else view**2
        left = float(squares.sum()) - float(mass @ np.sum(mean**2, axis=1))
        means.append(mean)
        variances.append(max(left / (shares.shape[0] * mean.shape[1]), 1e-300))
    return means, mass / mass.sum(), np.array(variances)
