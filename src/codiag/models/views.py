"""Mixtures by moments: whatever three independent views of the same samples have in common."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import logsumexp
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from codiag._validation import as_number
from codiag.factorization import Factorization
from codiag.factorize import as_method, factorize
from codiag.methods import OJD, TPM
from codiag.models.base import by_weight, factorize_core, warn_if_hidden, weakest
from codiag.models.mixture import log_densities
from codiag.tensors import CrossMomentTensor, DenseTensor, symmetrize


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
        views = list(X)
        if len(views) != 3:
            raise ValueError(f"X must be three views of the same samples; got {len(views)}")
        moment = CrossMomentTensor(*views)
        smallest = sorted(moment.shape)[1]
        if self.n_components > smallest:
            raise ValueError(
                f"n_components must be at most {smallest}, the second smallest view; got {self.n_components}"
            )
        size, noise = _correlation(moment, self.n_components)
        warn_if_hidden(size, noise, self.n_components)
        weights, means, fit = estimate_views(moment, self.n_components, self.method, self.random_state)
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


def estimate_views(
    moment: CrossMomentTensor, k: int, method: Any, seed: int | None
) -> tuple[np.ndarray, list[np.ndarray], Factorization]:
    """Return weights (k,), means (k, d) of every view and the fit they come from, by moments alone."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the diagnostics say what the fit is worth
        if isinstance(as_method(method), OJD | TPM):
            return _classical(moment, k, method, seed)
        fit = factorize(moment, k, method=method, symmetric=False, seed=seed)
    units = [np.asarray(factor) for factor in fit.factors]
    return *multiview_parameters(moment, units, np.asarray(fit.weights)), fit


def _classical(
    moment: CrossMomentTensor, k: int, method: Any, seed: int | None
) -> tuple[np.ndarray, list[np.ndarray], Factorization]:
    r"""Map two views to the third, :math:`\tilde a = E[c b^\top] E[a b^\top]^+ a`, and factorize a symmetric moment."""
    maps = [
        _pairs(moment, 2, 1) @ _pseudo_inverse(_pairs(moment, 0, 1), k),
        _pairs(moment, 2, 0) @ _pseudo_inverse(_pairs(moment, 1, 0), k),
    ]
    second = maps[0] @ _pairs(moment, 0, 1) @ maps[1].T
    values, vectors = np.linalg.eigh((second + second.T) / 2)
    values, basis = values[::-1], vectors[:, ::-1][:, :k]
    core = moment.compress(maps[0].T @ basis, maps[1].T @ basis, basis).to_dense()
    fit = factorize_core(DenseTensor(symmetrize(core), symmetric=True), np.eye(k), values, method, seed)
    inside = np.asarray(fit.factors[0])
    inverse = np.linalg.pinv(inside)
    squares = np.maximum(np.einsum("ia,a,ia->i", inverse, values[:k], inverse), 1e-300)
    lengths = np.asarray(fit.weights) / squares
    weights = squares / lengths**2
    last = basis @ (inside * lengths)
    others = [_pairs(moment, mode, 2) @ np.linalg.pinv(last.T) / weights for mode in range(2)]
    return weights, [columns.T for columns in (*others, last)], fit


def _pseudo_inverse(matrix: np.ndarray, k: int) -> np.ndarray:
    """Return the pseudo-inverse of the nearest matrix of rank k."""
    left, sizes, right = np.linalg.svd(matrix, full_matrices=False)
    return (right[:k].T / sizes[:k]) @ left[:, :k].T


def multiview_parameters(
    moment: CrossMomentTensor, units: list[np.ndarray], sizes: np.ndarray
) -> tuple[np.ndarray, list[np.ndarray]]:
    r"""Return weights (k,) and means (k, d) of every view, from unit factors and their sizes.

    For the two largest views b and c, :math:`E[b c^\top] = \sum_h \pi_h B_h C_h^\top` and the means
    :math:`E[b] = \sum_h \pi_h B_h` give :math:`\pi`; the rest follows from the sizes.
    """
    first, second, third = sorted(range(3), key=lambda mode: moment.shape[mode])
    inverse = {mode: np.linalg.pinv(units[mode]) for mode in (second, third)}
    pairs = _pairs(moment, second, third)
    masses = {mode: inverse[mode] @ np.asarray(moment.views[mode].T @ moment.weights) for mode in (second, third)}
    cross = np.diag(inverse[second] @ pairs @ inverse[third].T)
    weights = np.maximum(masses[second] * masses[third] / cross, 1e-9)
    lengths = {second: masses[second] / weights, third: masses[third] / weights, first: sizes / cross}
    return weights, [(units[mode] * lengths[mode]).T for mode in range(3)]


def _pairs(moment: CrossMomentTensor, left: int, right: int, part: slice = slice(None)) -> np.ndarray:
    """Return the mean of b c^T over samples, or over some of them."""
    weights = moment.weights[part] / np.sum(moment.weights[part])
    product = moment.views[left][part].T @ _scaled(moment.views[right][part], weights)
    return product.toarray() if sparse.issparse(product) else np.asarray(product)


def _scaled(view: Any, weights: np.ndarray) -> Any:
    return view.multiply(weights[:, None]).tocsr() if sparse.issparse(view) else view * weights[:, None]


def _correlation(moment: CrossMomentTensor, k: int) -> tuple[float, float]:
    """Return the k-th singular value of the pairs of the two largest views, and its sampling noise."""
    _, left, right = sorted(range(3), key=lambda mode: moment.shape[mode])
    halves = [_pairs(moment, left, right, part) for part in (slice(0, None, 2), slice(1, None, 2))]
    return weakest(_pairs(moment, left, right), halves, k)


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
