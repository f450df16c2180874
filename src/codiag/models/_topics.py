"""Topics from word counts, by moments: one topic a document, or a mixture of them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from codiag._validation import as_number
from codiag.models._base import as_seed, check_alpha
from codiag.models._sampling_noise import noise_of, random_signs, warn_if_hidden
from codiag.models._second_moment import (
    by_weight,
    check_second_moment,
    diagnostics,
    factorize_core,
    leading_range,
    reordered,
)
from codiag.models._simplex import mixture_weights, on_simplex
from codiag.models._text import em_step, log_likelihood, topic_log_likelihood, topic_mixtures, topic_posteriors
from codiag.models._word_statistics import WordStatistics, frequency_roots
from codiag.tensors import DenseTensor, WordPairs, word_frequencies
from codiag.tensors._words import as_counts

INPUT: dict[str, Any] = {"accept_sparse": "csr", "dtype": np.float64, "ensure_non_negative": True}
"""What scikit-learn is to make of counts."""

Products = Callable[[np.ndarray], np.ndarray]
"""Products of a symmetric matrix with columns."""


class LatentDirichlet(TransformerMixin, BaseEstimator):
    r"""Latent Dirichlet allocation by the method of moments: no random starts, no local optima.

    With :math:`\alpha_0` the sum of the Dirichlet parameters, the moments

    .. math:: M_2 = (\alpha_0 + 1) E_2 - \alpha_0 E_1 E_1^\top, \quad
        M_3 = \tfrac12 (\alpha_0 + 1) (\alpha_0 + 2) E_3 - \tfrac12 \alpha_0 (\alpha_0 + 1) (E_2 \otimes E_1 + \dots)
        + \alpha_0^2 E_1^{\otimes 3}

    of the unbiased word moments are :math:`\sum_i \frac{\alpha_i}{\alpha_0} \mu_i^{\otimes 2}` and
    :math:`\sum_i \frac{\alpha_i}{\alpha_0} \mu_i^{\otimes 3}`: the topics are the factors. Nothing of size words x
    words is ever formed.

    Parameters
    ----------
    n_components : int
        Number of topics.
    alpha_0 : float
        Sum of the Dirichlet parameters: how mixed documents are. Zero means one topic each.
    method : Method or str, optional
        How the moment is factorized; by default `codiag.methods.Auto`.
    polish : int
        Steps of expectation maximization on the likelihood afterwards: they lower the perplexity of real text, and pull
        topics towards each document's own words. Zero is the pure method of moments, which is consistent.
    random_state : int, optional
        Seed; the answer does not depend on it where the data determines it.

    Attributes
    ----------
    components_ : array of shape (n_components, words)
        The topics, rows of sum one, the most frequent first.
    weights_ : array of shape (n_components,)
        Expected share of each topic.
    doc_topic_prior_ : array of shape (n_components,)
        The Dirichlet parameters, of sum `alpha_0` but for a floor that keeps every topic possible.
    diagnostics_ : dict
        Eigenvalues of the second moment and the sampling noise beside them, relative error of the fit, mass clipped
        away.
    n_features_in_ : int
        Number of words.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.models import LatentDirichlet
    >>> rng = np.random.default_rng(0)
    >>> topics = rng.dirichlet(np.full(8, 0.3), 2)
    >>> mixtures = rng.dirichlet([0.5, 0.5], 2000)
    >>> counts = np.array([rng.multinomial(30, mixture @ topics) for mixture in mixtures])
    >>> model = LatentDirichlet(2, random_state=0).fit(counts)
    >>> model.components_.shape, model.transform(counts[:3]).shape
    ((2, 8), (3, 2))
    """

    def __init__(
        self,
        n_components: int = 10,
        *,
        alpha_0: float = 1.0,
        method: Any = None,
        polish: int = 5,
        random_state: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.alpha_0 = alpha_0
        self.method = method
        self.polish = polish
        self.random_state = random_state

    def fit(self, X: Any, y: object = None) -> LatentDirichlet:  # noqa: N803
        """Estimate the topics from counts of shape (documents, words)."""
        self._check_parameters()
        counts = self._checked(X, reset=True)
        if not np.any(np.asarray(counts.sum(axis=1)) >= 3):
            raise ValueError(f"X must hold documents of three words or more; all {counts.shape[0]} have fewer")
        width = min(self.n_components + 2, counts.shape[1])
        basis = range_of_pairs(counts, width, self._mixing(), as_seed(self.random_state))
        self._estimate(WordStatistics.empty(basis).plus(counts))
        noise = pair_noise(counts, self._mixing(), basis[:, : self.n_components])
        self.diagnostics_["sampling_noise"] = noise
        warn_if_hidden(
            self.diagnostics_["second_moment"][self.n_components - 1], noise, self.n_components, stacklevel=3
        )
        self._keep(*self._polished(counts, self.components_, self.weights_))
        return self

    def partial_fit(self, X: Any, y: object = None) -> LatentDirichlet:  # noqa: N803
        """Add documents to those seen so far and estimate again, by moments alone.

        The first chunk fixes the basis, three times as wide as there are topics; what chunks there are, and in which
        order they come, makes no other difference.
        """
        self._check_parameters()
        counts = self._checked(X, reset=not hasattr(self, "_statistics"))
        basis = getattr(self, "basis_", None)
        if basis is None:
            width = min(3 * self.n_components, counts.shape[1])
            basis = range_of_pairs(counts, width, self._mixing(), as_seed(self.random_state))
        if self.n_components > basis.shape[1]:
            raise ValueError(
                f"n_components must be at most {basis.shape[1]}, the width of the basis that the first chunk has "
                f"fixed; got {self.n_components}. Fit anew"
            )
        self._estimate(getattr(self, "_statistics", WordStatistics.empty(basis)).plus(counts))
        return self

    def _estimate(self, statistics: WordStatistics) -> None:
        topics, weights, found = estimate_topics(
            statistics, self.n_components, self._mixing(), self.method, as_seed(self.random_state)
        )
        self._statistics, self.basis_, self.diagnostics_ = statistics, statistics.basis, found
        self._keep(topics, weights)

    def _keep(self, topics: np.ndarray, weights: np.ndarray) -> None:
        order = by_weight(weights)
        self.components_, self.weights_ = topics[order], weights[order]
        self.diagnostics_ = reordered(self.diagnostics_, order)
        self.doc_topic_prior_ = np.maximum(self._mixing() * self.weights_, 1e-2 / self.n_components)

    def _polished(
        self, counts: sparse.csr_array, topics: np.ndarray, weights: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        if self.polish == 0:
            return topics, weights
        mixtures = topic_mixtures(counts, topics, self.doc_topic_prior_, n_steps=4)
        for _ in range(self.polish):
            topics, mixtures = em_step(counts, topics, mixtures, self.doc_topic_prior_, smoothing=1e-2)
        return topics, np.mean(mixtures, axis=0)

    def transform(self, X: Any) -> np.ndarray:  # noqa: N803
        """Return the mixture of topics of each document, rows of sum one."""
        check_is_fitted(self)
        counts = as_counts(validate_data(self, X, reset=False, **INPUT), "X")
        return topic_mixtures(counts, self.components_, self.doc_topic_prior_, n_steps=20)

    def score(self, X: Any, y: object = None) -> float:  # noqa: N803
        """Return the log-likelihood of the words, given the mixtures that `transform` finds."""
        return log_likelihood(as_counts(X, "X"), self.transform(X), self.components_)

    def perplexity(self, X: Any) -> float:  # noqa: N803
        """Return the exponential of minus the mean log-likelihood of a word."""
        return float(np.exp(-self.score(X) / max(as_counts(X, "X").sum(), 1)))

    def top_words(self, vocabulary: Sequence[str] | np.ndarray, n: int = 10) -> list[list[str]]:
        """Return the most probable words of every topic."""
        check_is_fitted(self)
        as_number("n", n, integer=True)
        if isinstance(vocabulary, str) or not hasattr(vocabulary, "__len__"):
            raise TypeError(f"vocabulary must be the {self.n_features_in_} words, a sequence; got {vocabulary!r}")
        if len(vocabulary) != self.n_features_in_:
            raise ValueError(f"vocabulary must have {self.n_features_in_} words, as in fit; got {len(vocabulary)}")
        return [[str(vocabulary[word]) for word in np.argsort(-topic)[:n]] for topic in self.components_]

    def get_feature_names_out(self, input_features: object = None) -> np.ndarray:
        """Return names for the columns of `transform`."""
        check_is_fitted(self)
        return np.array([f"{type(self).__name__.lower()}{i}" for i in range(self.n_components)], dtype=object)

    def to_sklearn(self) -> Any:
        """Return a fitted ``sklearn.decomposition.LatentDirichletAllocation`` with these topics."""
        from sklearn.decomposition import LatentDirichletAllocation

        check_is_fitted(self)
        prior = float(np.mean(self.doc_topic_prior_))
        model = LatentDirichletAllocation(self.n_components, doc_topic_prior=min(prior, 1.0), random_state=0)
        model.fit(np.ones((1, self.n_features_in_)))
        model.doc_topic_prior_ = prior  # which fit refuses above one, and the rest of the model does not
        scale = 1e4  # pseudo-counts: high enough for the expectation to be the topics
        model.components_ = scale * self.components_ + 1e-3
        mean = model.components_ / model.components_.sum(axis=1, keepdims=True)
        model.exp_dirichlet_component_ = mean
        return model

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.input_tags.sparse = True
        return tags

    def _mixing(self) -> float:
        return float(self.alpha_0)

    def _checked(self, raw: Any, *, reset: bool) -> sparse.csr_array:
        """Return counts, with warnings of what they say nothing about."""
        counts = as_counts(validate_data(self, raw, reset=reset, **INPUT), "X")
        if self.n_components > counts.shape[1]:
            raise ValueError(
                f"n_components must be at most {counts.shape[1]}, the number of words; got {self.n_components}"
            )
        lengths = np.asarray(counts.sum(axis=1))
        short = int(np.sum(lengths < 3))
        if short:
            warnings.warn(
                f"{short} of {counts.shape[0]} documents have fewer than three words and count for lower moments only",
                UserWarning,
                stacklevel=3,
            )
        if not np.array_equal(counts.data, np.rint(counts.data)):
            warnings.warn(
                "X is not of whole numbers: moments are unbiased for counts of words, not for shares or tf-idf weights",
                UserWarning,
                stacklevel=3,
            )
        return counts

    def _check_parameters(self) -> None:
        as_number("n_components", self.n_components, integer=True)
        as_number("polish", self.polish, integer=True, zero=True)
        check_alpha(self.alpha_0)
        as_seed(self.random_state)


class SingleTopic(LatentDirichlet):
    r"""The single topic model by moments: every document is about one topic.

    Then :math:`E_3 = \sum_i w_i \mu_i^{\otimes 3}`. Parameters and attributes are those of
    `LatentDirichlet` with `alpha_0` zero.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.models import SingleTopic
    >>> rng = np.random.default_rng(0)
    >>> topics = rng.dirichlet(np.full(8, 0.3), 2)
    >>> counts = np.array([rng.multinomial(10, topics[i]) for i in rng.integers(0, 2, 1000)])
    >>> SingleTopic(2, random_state=0).fit(counts).weights_.round(1).tolist()
    [0.5, 0.5]
    """

    def __init__(
        self, n_components: int = 10, *, method: Any = None, polish: int = 0, random_state: int | None = None
    ) -> None:
        super().__init__(n_components, alpha_0=0.0, method=method, polish=polish, random_state=random_state)

    def transform(self, X: Any) -> np.ndarray:  # noqa: N803
        """Return the probability of each topic for each document, rows of sum one."""
        check_is_fitted(self)
        counts = as_counts(validate_data(self, X, reset=False, **INPUT), "X")
        return topic_posteriors(counts, self.components_, self.weights_)

    def score(self, X: Any, y: object = None) -> float:  # noqa: N803
        """Return the log-likelihood of the documents, each about one topic, in the order of their words."""
        check_is_fitted(self)
        counts = as_counts(validate_data(self, X, reset=False, **INPUT), "X")
        return topic_log_likelihood(counts, self.components_, self.weights_)

    def to_sklearn(self) -> Any:
        """Refuse: scikit-learn has no model of one topic a document."""
        raise NotImplementedError("scikit-learn has no model of one topic a document; use LatentDirichlet")

    def predict(self, X: Any) -> np.ndarray:  # noqa: N803
        """Return the most probable topic of each document."""
        return np.argmax(self.transform(X), axis=1)

    def _polished(
        self, counts: sparse.csr_array, topics: np.ndarray, weights: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        for _ in range(self.polish):
            posterior = topic_posteriors(counts, topics, weights)
            raw = (counts.T @ posterior).T + 1e-2
            topics, weights = raw / raw.sum(axis=1, keepdims=True), posterior.mean(axis=0)
        return topics, weights

    def _mixing(self) -> float:
        return 0.0


def range_of_pairs(counts: sparse.csr_array, k: int, alpha_0: float, seed: int | None) -> np.ndarray:
    """Return a basis (words, k) of the range of the second moment of topics.

    The leading eigenvectors, with words divided by the roots of their frequencies: moments of words have variances in
    proportion to their means, and so nearly equal ones.
    """
    mean = word_frequencies(counts)
    roots = frequency_roots(mean, counts.shape[0])
    multiply = _scaled_pairs(counts, alpha_0, mean, roots)
    return leading_range(multiply, counts.shape[1], k, 0 if seed is None else seed) / roots[:, None]


def pair_noise(counts: sparse.csr_array, alpha_0: float, basis: np.ndarray) -> float:
    """Return what sampling alone would show of the last of k leading directions (words, k) of the second moment.

    The influence of a document with pairs P and shares f of words is (alpha_0 + 1) P - alpha_0 (f m^T + m f^T - m m^T).
    """
    mean = word_frequencies(counts)
    roots = frequency_roots(mean, counts.shape[0])
    directions = np.linalg.qr(roots[:, None] * basis)[0]
    inner = mean / roots
    errors = []
    for signs in random_signs(counts.shape[0]):
        parts = [(counts[signs == sign], sign * np.mean(signs == sign)) for sign in (1.0, -1.0)]
        products = [(_scaled_pairs(part, 0.0, mean, roots), share) for part, share in parts if part.shape[0]]
        shares = sum(share * word_frequencies(part) for part, share in parts if part.shape[0]) / roots

        def multiply(columns: np.ndarray, products: Any = products, shares: Any = shares, sign: Any = signs) -> Any:
            pairs = sum(share * product(columns) for product, share in products)
            ends = np.multiply.outer(shares - np.mean(sign) * inner, inner @ columns)
            return (alpha_0 + 1) * pairs - alpha_0 * (ends + np.multiply.outer(inner, shares @ columns))

        errors.append(LinearOperator((roots.size,) * 2, matvec=multiply, rmatvec=multiply, dtype=np.float64))
    return noise_of(errors, directions, directions)


def _scaled_pairs(counts: sparse.csr_array, alpha_0: float, mean: np.ndarray, roots: np.ndarray) -> Products:
    """Return products with the second moment of topics, words divided by the roots of frequencies."""
    pairs = WordPairs(counts)

    def multiply(columns: np.ndarray) -> np.ndarray:
        inside = (columns.T / roots).T
        image = (alpha_0 + 1) * (pairs @ inside) - alpha_0 * np.multiply.outer(mean, mean @ inside)
        return (image.T / roots).T

    return multiply


def estimate_topics(
    statistics: WordStatistics, k: int, alpha_0: float, method: Any, seed: int | None
) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    r"""Return topics (k, words), their weights and diagnostics, from sums over documents alone.

    With :math:`P = \Omega^\top \mu` from the factors and :math:`M_2 \Omega = \mu\, \mathrm{diag}(w) P^\top`, topics
    are :math:`M_2 \Omega\, (P^\top)^+`, up to a scale that their sum fixes.
    """
    mean, second, square, third = statistics.moments(alpha_0)
    values, vectors = np.linalg.eigh(square)
    values, inner = values[::-1], vectors[:, ::-1][:, :k]
    check_second_moment(values, k, "n_components")
    fit = factorize_core(DenseTensor(third, symmetric=True), inner, values, method, seed)
    directions = inner @ np.asarray(fit.factors[0])
    # One topic is what words are like on average; of several, none need be.
    columns, clipped = on_simplex(mean[:, None] if k == 1 else second @ np.linalg.pinv(directions.T))
    weights = mixture_weights(columns, mean)
    order = by_weight(weights)
    noise = statistics.noise(alpha_0, inner)
    return columns.T[order], weights[order], diagnostics(values, k, noise, fit, clipped, order)
