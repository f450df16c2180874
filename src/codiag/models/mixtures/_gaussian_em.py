"""Densities of Gaussians with spherical or diagonal covariances: expectation maximization, scores and labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import logsumexp, softmax
from sklearn.utils.validation import check_is_fitted, validate_data

from codiag._checks import as_generator, as_number
from codiag.models.base import Model, RowSums, sum_over_rows
from codiag.models.mixtures._gaussian_moments import Location


def log_densities(samples: np.ndarray, means: np.ndarray, variances: np.ndarray) -> np.ndarray:
    """Return the log-density (n, k) of each Gaussian at each sample; variances (k,), or (k, d) by feature."""
    origin, scale = means.mean(axis=0), np.sqrt(np.max(variances))
    inside, centers, widths = (samples - origin) / scale, (means - origin) / scale, variances / scale**2
    if variances.ndim == 1:
        squares = np.sum(inside**2, axis=1)[:, None] - 2 * inside @ centers.T + np.sum(centers**2, axis=1)
        distances, logarithms = np.maximum(squares, 0) / widths, samples.shape[1] * np.log(widths)
    else:
        shifted = centers / widths
        squares = inside**2 @ (1 / widths).T - 2 * inside @ shifted.T + np.sum(shifted * centers, axis=1)
        distances, logarithms = np.maximum(squares, 0), np.sum(np.log(widths), axis=1)
    return -0.5 * (distances + logarithms + samples.shape[1] * (np.log(2 * np.pi) + 2 * np.log(scale)))


@dataclass(frozen=True, eq=False)
class EMSums(RowSums):
    """Sums of an EM step: of the probabilities of Gaussians, and of samples and squares times these."""

    mass: np.ndarray  # (k,)
    totals: np.ndarray  # (k, d)
    squares: np.ndarray  # (k,), or (k, d) by feature


def em_sums(samples: np.ndarray, location: Location, *model: np.ndarray) -> EMSums:
    """Return the sums of an EM step over samples, in the unit of a location; `model` are means, variances, weights."""
    # blocks whose arrays fit into the cache of a processor
    return sum_over_rows(_em_sums, location.inside(np.asarray(samples, dtype=np.float64)), *model, n_rows=2048)


def _em_sums(rows: np.ndarray, means: np.ndarray, variances: np.ndarray, weights: np.ndarray) -> EMSums:
    shares = softmax(log_densities(rows, means, variances) + np.log(weights), axis=1)
    squares = shares.T @ (np.sum(rows**2, axis=1) if variances.ndim == 1 else rows**2)
    return EMSums(shares.sum(axis=0), shares.T @ rows, squares)


def from_em_sums(sums: EMSums, floor: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return means, variances and weights after one step of expectation maximization."""
    mass = sums.mass + 1e-10
    means = sums.totals / mass[:, None]
    # Differences of squares are precise, since samples are centered and of unit size.
    if sums.squares.ndim == 1:
        variances = (sums.squares / mass - np.sum(means**2, axis=1)) / means.shape[1]
    else:
        variances = sums.squares / mass[:, None] - means**2
    return means, np.maximum(variances, floor), mass / mass.sum()


def log_likelihood(samples: np.ndarray, means: np.ndarray, variances: np.ndarray, weights: np.ndarray) -> float:
    """Return the log-likelihood of samples."""
    joint = log_densities(np.asarray(samples, dtype=np.float64), means, variances) + np.log(weights)
    return float(np.sum(logsumexp(joint, axis=1)))


class GaussianScores(Model):
    """Scores, labels and samples of a model that has `means_`, `weights_` and `covariances_`."""

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
