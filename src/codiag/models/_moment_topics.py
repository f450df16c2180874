"""Topics by moments of words, whatever the model: what documents of one topic and of mixtures have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from codiag._factorization import Factorization
from codiag._validation import as_number
from codiag.methods import Method
from codiag.models._base import MomentModel, as_seed, warn_caller
from codiag.models._sampling_noise import hidden_component
from codiag.models._second_moment import CORE_METHOD
from codiag.models._topic_moments import TopicMoments, Topics, pair_noise, range_of_pairs
from codiag.models._word_statistics import WordStatistics
from codiag.tensors._words import as_counts

INPUT: dict[str, Any] = {"accept_sparse": "csr", "dtype": np.float64, "ensure_non_negative": True}
"""What scikit-learn is to make of counts."""


class MomentTopics(TransformerMixin, MomentModel[TopicMoments, Topics]):
    """Topics by moments of words: what models of one topic a document, and of mixtures of topics, have in common."""

    default_method: ClassVar[Method] = CORE_METHOD
    alpha_0: float
    """Sum of the Dirichlet parameters of the mixtures, zero where a document has one topic."""

    def moments(self, data: Any) -> TopicMoments:
        """Return the moments of counts of words, of shape (documents, words), sparse or dense."""
        counts = self._checked(data, reset=True)
        if not np.any(np.asarray(counts.sum(axis=1)) >= 3):
            raise ValueError(f"X must hold documents of three words or more; all {counts.shape[0]} have fewer")
        k, alpha_0 = self.n_components, float(self.alpha_0)
        basis = range_of_pairs(counts, min(k + 2, counts.shape[1]), alpha_0, as_seed(self.random_state))
        found = self._moments_of(WordStatistics.empty(basis).plus(counts))
        noise = pair_noise(counts, alpha_0, basis[:, :k])
        complaints = (*_about_counts(counts), *hidden_component(float(found.values[k - 1]), noise, k))
        return replace(found, noise=noise, counts=counts, complaints=complaints)

    def partial_fit(self, X: Any, y: object = None) -> Self:  # noqa: N803
        """Add documents to those seen so far and estimate again, by moments alone.

        The first chunk fixes the basis, three times as wide as there are topics; what chunks there are, and in which
        order they come, makes no other difference.

        Parameters
        ----------
        X : array or sparse matrix of shape (documents, words)
        y : ignored

        Returns
        -------
        self
        """
        self.check_parameters()
        counts = self._checked(X, reset=not hasattr(self, "_statistics"))
        basis = getattr(self, "basis_", None)
        if basis is None:
            width = min(3 * self.n_components, counts.shape[1])
            basis = range_of_pairs(counts, width, float(self.alpha_0), as_seed(self.random_state))
        if self.n_components > basis.shape[1]:
            raise ValueError(
                f"n_components must be at most {basis.shape[1]}, the width of the basis that the first chunk has "
                f"fixed; got {self.n_components}. Fit anew"
            )
        found = self._moments_of(getattr(self, "_statistics", WordStatistics.empty(basis)).plus(counts))
        noise = found.statistics.noise(float(self.alpha_0), found.inner)
        warn_caller(self.estimate(replace(found, noise=noise, complaints=_about_counts(counts))))
        return self

    def parameters(self, fit: Factorization, moments: TopicMoments) -> Topics:
        """Return topics and their weights."""
        return moments.parameters(fit)

    def polished(self, components: Topics, moments: TopicMoments) -> Topics:
        """Return topics after steps of expectation maximization, where all documents are at hand."""
        if moments.counts is None or self.polish == 0:
            return components
        return self._after_steps(components, moments.counts)

    def keep(self, components: Topics, moments: TopicMoments) -> None:
        """Keep the sums over documents, too, to which `partial_fit` adds."""
        super().keep(components, moments)
        self.doc_topic_prior_ = self._prior(components.weights)
        self._statistics, self.basis_ = moments.statistics, moments.statistics.basis

    def transform(self, X: Any) -> np.ndarray:  # noqa: N803
        """Return the share of each topic in each document, rows of sum one.

        Parameters
        ----------
        X : array or sparse matrix of shape (documents, words)

        Returns
        -------
        array of shape (documents, n_components)
        """
        return self._shares(self._known(X))

    def score(self, X: Any, y: object = None) -> float:  # noqa: N803
        """Return the log-likelihood of the documents of X, of shape (documents, words), in the order of their words.

        Parameters
        ----------
        X : array or sparse matrix of shape (documents, words)
            Counts.
        y : ignored

        Returns
        -------
        float
        """
        return self._log_likelihood(self._known(X))

    def perplexity(self, X: Any) -> float:  # noqa: N803
        """Return the exponential of minus the mean log-likelihood of a word of X, of shape (documents, words).

        Parameters
        ----------
        X : array or sparse matrix of shape (documents, words)
            Counts.

        Returns
        -------
        float
        """
        counts = self._known(X)
        return float(np.exp(-self._log_likelihood(counts) / max(counts.sum(), 1)))

    def top_words(self, vocabulary: Sequence[str] | np.ndarray, n: int = 10) -> list[list[str]]:
        """Return the most probable words of every topic.

        Parameters
        ----------
        vocabulary : sequence of str
            The word of every column of the counts.
        n : int
            How many of each topic.

        Returns
        -------
        list of lists of str
        """
        check_is_fitted(self)
        as_number("n", n, integer=True)
        if isinstance(vocabulary, str) or not hasattr(vocabulary, "__len__"):
            raise TypeError(f"vocabulary must be the {self.n_features_in_} words, a sequence; got {vocabulary!r}")
        if len(vocabulary) != self.n_features_in_:
            raise ValueError(f"vocabulary must have {self.n_features_in_} words, as in fit; got {len(vocabulary)}")
        return [[str(vocabulary[word]) for word in np.argsort(-topic)[:n]] for topic in self.components_]

    def get_feature_names_out(self, input_features: object = None) -> np.ndarray:
        """Return names for the columns of `transform`.

        Parameters
        ----------
        input_features : ignored

        Returns
        -------
        array of str, shape (n_components,)
        """
        check_is_fitted(self)
        return np.array([f"{type(self).__name__.lower()}{i}" for i in range(self.n_components)], dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.input_tags.sparse = True
        return tags

    @abstractmethod
    def _after_steps(self, components: Topics, counts: sparse.csr_array) -> Topics:
        """Return topics after `polish` steps of expectation maximization."""

    @abstractmethod
    def _shares(self, counts: sparse.csr_array) -> np.ndarray:
        """Return what `transform` does."""

    @abstractmethod
    def _log_likelihood(self, counts: sparse.csr_array) -> float:
        """Return what `score` does."""

    def _moments_of(self, statistics: WordStatistics) -> TopicMoments:
        orthogonal = self.strategy().needs_orthogonal
        return TopicMoments.of(statistics, self.n_components, float(self.alpha_0), orthogonal=orthogonal)

    def _prior(self, weights: np.ndarray) -> np.ndarray:
        return np.maximum(self.alpha_0 * weights, 1e-2 / self.n_components)

    def _known(self, raw: Any) -> sparse.csr_array:
        """Return counts of the words that were there in `fit`."""
        check_is_fitted(self)
        return as_counts(validate_data(self, raw, reset=False, **INPUT), "X")

    def _checked(self, raw: Any, *, reset: bool) -> sparse.csr_array:
        """Return counts of no fewer words than topics: the one matrix that all moments and steps read."""
        counts = as_counts(validate_data(self, raw, reset=reset, **INPUT), "X")
        if self.n_components > counts.shape[1]:
            raise ValueError(
                f"n_components must be at most {counts.shape[1]}, the number of words; got {self.n_components}"
            )
        return counts


def _about_counts(counts: sparse.csr_array) -> tuple[str, ...]:
    """Return what a user must be told of counts: what they say nothing about."""
    told = []
    short = int(np.sum(np.asarray(counts.sum(axis=1)) < 3))
    if short:
        told.append(
            f"{short} of {counts.shape[0]} documents have fewer than three words and count for lower moments only"
        )
    if not np.array_equal(counts.data, np.rint(counts.data)):
        told.append(
            "X is not of whole numbers: moments are unbiased for counts of words, not for shares or tf-idf weights"
        )
    return tuple(told)
