"""Mixtures by moments: whatever three independent views of the same samples have in common."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import logsumexp
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from codiag._validation import as_number, as_real_array
from codiag.models._base import as_seed
from codiag.models._mixture import NARROWEST, log_densities
from codiag.models._sampling_noise import random_signs, warn_if_hidden, weakest_direction
from codiag.models._second_moment import by_weight, component_errors, reordered
from codiag.models._view_moments import ViewMoments, estimate_views
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
        The variance of the noise in every view, a feature's mean; at least 1e-8 of the mean square of the view.
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
        seed = as_seed(self.random_state)
        views = _as_views(X)
        smallest = sorted(view.shape[1] for view in views)[1]
        for limit, what in ((smallest, "the second smallest view"), (views[0].shape[0], "the number of samples")):
            if self.n_components > limit:
                raise ValueError(f"n_components must be at most {limit}, {what}; got {self.n_components}")
        units = [_unit(view, place) for place, view in enumerate(views)]
        moment = CrossMomentTensor(*(view / unit for view, unit in zip(views, units, strict=True)))
        means, weights, variances, found = estimate_mixture(moment, self.n_components, self.method, seed)
        for _ in range(self.polish):
            shares = _shares(moment.views, means, weights, variances)
            means, weights, variances = _em_step(moment.views, shares)
        order = by_weight(weights)
        self.means_ = [mean[order] * unit for mean, unit in zip(means, units, strict=True)]
        self.weights_, self.variances_ = weights[order], variances * np.square(units)
        self.diagnostics_ = reordered(found, order)
        return self

    def predict_proba(self, X: Any) -> np.ndarray:  # noqa: N803
        """Return the probability of each component for each sample, its noise taken for white and Gaussian."""
        check_is_fitted(self)
        views = _as_views(X)
        expected, got = [mean.shape[1] for mean in self.means_], [view.shape[1] for view in views]
        if got != expected:
            raise ValueError(f"X must have views of {expected} features, as in fit; got {got}")
        return _shares(views, self.means_, self.weights_, self.variances_)

    def predict(self, X: Any) -> np.ndarray:  # noqa: N803
        """Return the most probable component of each sample."""
        return np.argmax(self.predict_proba(X), axis=1)


def estimate_mixture(
    moment: CrossMomentTensor, k: int, method: Any, seed: int | None
) -> tuple[list[np.ndarray], np.ndarray, np.ndarray, dict[str, Any]]:
    """Return means (k, d) of every view, weights, variances of the views and diagnostics, by moments alone."""
    moments = ViewMoments(moment)
    size, noise = _correlation(moments, k)
    if not size > 1e-15:
        raise ValueError(
            f"n_components={k} is more than the data determines: the views have fewer than {k} components in common; "
            "ask for fewer, or give more data"
        )
    warn_if_hidden(size, noise, k)
    weights, means, fit = estimate_views(moments, k, method, seed)
    found = {
        "weakest_correlation": size,
        "sampling_noise": noise,
        "relative_error": fit.relative_error,
        "weights_sum": float(weights.sum()),
        "core_errors": component_errors(fit, np.arange(k)),
        "converged": fit.converged,
    }
    if k == 1:  # one component is what samples are like on average
        means = [moments.mean(mode)[None] for mode in range(3)]
    weights = weights / weights.sum()
    return means, weights, _view_variances(moment, means, weights), found


def _as_views(raw: Any) -> list[Any]:
    """Return three views of the same samples as matrices of doubles, dense or sparse, or say what is wrong."""
    if sparse.issparse(raw) or not isinstance(raw, Iterable) or isinstance(raw, str | bytes | Mapping):
        raise TypeError(f"X must be three views of the same samples, a sequence of arrays; got {type(raw).__name__}")
    parts = list(raw)
    if len(parts) != 3:
        raise ValueError(f"X must be three views of the same samples; got {len(parts)}")
    views = [_as_view(part, place) for place, part in enumerate(parts)]
    lengths = [view.shape[0] for view in views]
    if len(set(lengths)) > 1:
        raise ValueError(f"views must have one row per sample, the same number each; got {lengths}")
    return views


def _as_view(raw: Any, place: int) -> Any:
    name = f"X[{place}]"
    if sparse.issparse(raw):
        if raw.dtype.kind not in "biuf":
            raise TypeError(f"{name} must hold real numbers; got {raw.dtype}")
        view = sparse.csr_array(raw, dtype=np.float64)
    else:
        view = np.asarray(as_real_array(raw, name, "use real and imaginary parts as separate columns"), np.float64)
    if view.ndim != 2 or 0 in view.shape:
        raise ValueError(f"{name} must have shape (n, d), one row per sample; got {view.shape}")
    entries = view.data if sparse.issparse(view) else view
    if not np.all(np.isfinite(entries)):
        raise ValueError(f"{name} must be finite; it holds NaN or infinite entries")
    return view


def _unit(view: Any, place: int) -> float:
    """Return the power of two nearest the largest entry, with which moments of all orders are numbers."""
    largest = float(abs(view).max())
    if not 1e-151 < largest < 1e152:
        reason = "it is zero everywhere" if largest == 0 else f"its largest is {largest:.0e}; divide it by that"
        raise ValueError(f"X[{place}] must have entries between 1e-151 and 1e152 in size: {reason}")
    return float(2.0 ** np.round(np.log2(largest)))


def _correlation(moments: ViewMoments, k: int) -> tuple[float, float]:
    """Return the k-th singular value of the pairs of the two largest views, and its sampling noise."""
    _, left, right = sorted(range(3), key=lambda mode: moments.shape[mode])
    first, second = moments.raw.views[left], moments.raw.views[right]
    errors = [
        _dense(
            first.T @ (second.multiply(signs[:, None]).tocsr() if sparse.issparse(second) else second * signs[:, None])
        )
        / signs.size
        for signs in random_signs(first.shape[0])
    ]
    return weakest_direction(moments.pairs(left, right), errors, k)


def _dense(view: Any) -> np.ndarray:
    return view.toarray() if sparse.issparse(view) else np.asarray(view)


def _view_variances(moment: CrossMomentTensor, means: list[np.ndarray], weights: np.ndarray) -> np.ndarray:
    """Return what is left of each view's mean square once the means are explained, a feature."""
    left, sizes = [], []
    for view, mean in zip(moment.views, means, strict=True):
        sizes.append(_mean_square(view))
        left.append(sizes[-1] - float(weights @ np.sum(mean**2, axis=1)) / mean.shape[1])
    return np.maximum(left, np.maximum(1e-3 * np.mean(np.abs(left)), NARROWEST * np.array(sizes)))


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
        size = _mean_square(view)
        left = size - float(mass @ np.sum(mean**2, axis=1)) / (shares.shape[0] * mean.shape[1])
        means.append(mean)
        variances.append(max(left, NARROWEST * size))
    return means, mass / mass.sum(), np.array(variances)


def _mean_square(view: Any) -> float:
    squares = view.power(2) if sparse.issparse(view) else view**2
    return float(squares.sum()) / (view.shape[0] * view.shape[1])
