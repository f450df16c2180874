"""Predictions of topic models: shares of topics in documents, likelihoods, and the most probable words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import logsumexp
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from codiag._checks import as_number
from codiag.models.base import Model, products_at
from codiag.models.topics._posteriors import topic_log_joint, topic_mixtures
from codiag.models.topics._word_moments import INPUT, as_counts


class TopicScores(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Model):
    """Predictions of latent Dirichlet allocation; a model of single topics overrides `_shares`, `_log_likelihood`."""

    def transform(self, X: Any) -> np.ndarray:  # noqa: N803
        """Return the share of each topic in each document, rows of sum one.

        Parameters
        ----------
        X : array or sparse matrix of shape (documents, words)
            Counts, as in `fit`, in memory.

        Returns
        -------
        array of shape (documents, n_components)
            The shares.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.models import SingleTopic
        >>> rng = np.random.default_rng(0)
        >>> topics = np.array([[0.5, 0.4, 0.1, 0.0], [0.0, 0.1, 0.4, 0.5]])
        >>> counts = np.array([rng.multinomial(10, topics[i]) for i in rng.integers(0, 2, 500)])
        >>> model = SingleTopic(2, random_state=0).fit(counts)
        >>> model.transform(counts[:3]).shape
        (3, 2)
        """
        return self._shares(self._counts(X))

    def score(self, X: Any, y: object = None) -> float:  # noqa: N803
        """Return the log-likelihood of documents, as sequences of words.

        Parameters
        ----------
        X : array or sparse matrix of shape (documents, words)
            Counts, as in `fit`, in memory.
        y : ignored
            Not used; there for the interface of scikit-learn.

        Returns
        -------
        float
            The log-likelihood.

        See Also
        --------
        LatentDirichlet.perplexity : The same per word.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.models import SingleTopic
        >>> rng = np.random.default_rng(0)
        >>> topics = np.array([[0.5, 0.4, 0.1, 0.0], [0.0, 0.1, 0.4, 0.5]])
        >>> counts = np.array([rng.multinomial(10, topics[i]) for i in rng.integers(0, 2, 500)])
        >>> model = SingleTopic(2, random_state=0).fit(counts)
        >>> model.score(counts) < 0
        True
        """
        return self._log_likelihood(self._counts(X))

    def perplexity(self, X: Any) -> float:  # noqa: N803
        """Return the exponential of minus the mean log-likelihood of a word.

        Parameters
        ----------
        X : array or sparse matrix of shape (documents, words)
            Counts, as in `fit`, in memory.

        Returns
        -------
        float
            At least one; lower is better.

        See Also
        --------
        LatentDirichlet.score : The log-likelihood.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.models import SingleTopic
        >>> rng = np.random.default_rng(0)
        >>> topics = np.array([[0.5, 0.4, 0.1, 0.0], [0.0, 0.1, 0.4, 0.5]])
        >>> counts = np.array([rng.multinomial(10, topics[i]) for i in rng.integers(0, 2, 500)])
        >>> model = SingleTopic(2, random_state=0).fit(counts)
        >>> 1 < model.perplexity(counts) < 4
        True
        """
        counts = self._counts(X)
        return float(np.exp(-self._log_likelihood(counts) / max(float(counts.sum()), 1)))

    def top_words(self, vocabulary: Sequence[str] | np.ndarray | None = None, n: int = 10) -> list[list[str]]:
        """Return the most probable words of every topic.

        Parameters
        ----------
        vocabulary : sequence of str, optional
            The word of every column of the counts; by default the columns of the data frame that was fitted.
        n : int
            Number of words of each topic.

        Returns
        -------
        list of lists of str
            Words by topic, the most probable first.

        See Also
        --------
        codiag.reports.topics_report : A page with these words.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.models import SingleTopic
        >>> rng = np.random.default_rng(0)
        >>> topics = np.array([[0.5, 0.4, 0.1, 0.0], [0.0, 0.1, 0.4, 0.5]])
        >>> counts = np.array([rng.multinomial(10, topics[i]) for i in rng.integers(0, 2, 500)])
        >>> model = SingleTopic(2, random_state=0).fit(counts)
        >>> sorted(model.top_words(["bread", "milk", "ball", "goal"], n=2))
        [['bread', 'milk'], ['goal', 'ball']]
        """
        check_is_fitted(self)
        as_number("n", n, integer=True)
        if vocabulary is None:
            vocabulary = getattr(self, "feature_names_in_", None)
        if vocabulary is None:
            raise ValueError(
                f"vocabulary must be the {self.n_features_in_} words, unless the model was fitted to a data frame with "
                "words for columns; got None"
            )
        if isinstance(vocabulary, str) or not hasattr(vocabulary, "__len__"):
            raise TypeError(f"vocabulary must be the {self.n_features_in_} words, a sequence; got {vocabulary!r}")
        if len(vocabulary) != self.n_features_in_:
            raise ValueError(f"vocabulary must have {self.n_features_in_} words, as in fit; got {len(vocabulary)}")
        return [[str(vocabulary[word]) for word in np.argsort(-topic)[:n]] for topic in self.components_]

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.input_tags.sparse = True
        return tags

    def _shares(self, counts: sparse.csr_array) -> np.ndarray:
        """Return the shares (documents, k) of topics in documents."""
        return topic_mixtures(counts, self.components_, self.doc_topic_prior_, n_steps=20)

    def _log_likelihood(self, counts: sparse.csr_array) -> float:
        """Return the log-likelihood of documents."""
        return log_likelihood(counts, self._shares(counts), self.components_)

    def _counts(self, raw: Any) -> sparse.csr_array:
        """Return counts, with the words of `fit`."""
        check_is_fitted(self)
        return as_counts(validate_data(self, raw, reset=False, **INPUT), "X")


def at_entries(left: np.ndarray, right: np.ndarray, counts: sparse.csr_array) -> np.ndarray:
    """Return the entries of ``left @ right`` at the non-zero entries of the counts."""
    rows = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
    return products_at(left, np.ascontiguousarray(right.T), rows, counts.indices)


def log_likelihood(counts: sparse.csr_array, mixtures: np.ndarray, topics: np.ndarray) -> float:
    """Return the log-likelihood of all words, given mixtures (documents, k) with rows of sum one."""
    return float(np.sum(counts.data * np.log(np.maximum(at_entries(mixtures, topics, counts), 1e-300))))


def topic_log_likelihood(counts: sparse.csr_array, topics: np.ndarray, weights: np.ndarray) -> float:
    """Return the log-likelihood of documents about a single topic each."""
    return float(np.sum(logsumexp(topic_log_joint(counts, topics, weights), axis=1)))
