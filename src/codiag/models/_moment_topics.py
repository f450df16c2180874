"""Topics by moments of words, whatever the model: what documents of one topic and of mixtures have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from codiag._factorization import Factorization
from codiag._parts import Parts, as_parts, is_matrix
from codiag._validation import as_number
from codiag.methods import Method
from codiag.models._base import as_seed
from codiag.models._sampling_noise import hidden_component, is_hidden
from codiag.models._second_moment import CORE_METHOD
from codiag.models._summed import SummedModel
from codiag.models._sums import Blocks
from codiag.models._topic_moments import TopicMoments, Topics, pair_noise, range_of_pairs
from codiag.models._topic_parts import (
    INPUT,
    N_SPARE,
    as_matrix,
    range_of_parts,
    read_corpus,
    sums_of_part,
    sums_of_parts,
)
from codiag.models._word_statistics import WordStatistics
from codiag.tensors._words import as_counts


class MomentTopics(TransformerMixin, SummedModel[TopicMoments, Topics]):
    """Topics by moments of words: what models of one topic a document, and of mixtures of topics, have in common."""

    default_method: ClassVar[Method] = CORE_METHOD
    optional: ClassVar[frozenset[str]] = frozenset({"n_components"})
    alpha_0: float
    """Sum of the Dirichlet parameters of the mixtures, zero where a document has one topic."""

    def moments(self, data: Any) -> TopicMoments:
        """Return the moments of counts of words, of shape (documents, words), sparse or dense, or in parts."""
        parts = as_parts(data, is_matrix)
        if parts is not None:
            return self._of_iterator(parts) if parts.once else self._of_parts(parts)
        counts = self._checked_part(data, first=True)
        self._check_blocks(counts.shape[0], "documents")
        if not np.any(np.asarray(counts.sum(axis=1)) >= 3):
            raise ValueError(f"X must hold documents of three words or more; all {counts.shape[0]} have fewer")
        k, alpha_0 = self.n_asked(), float(self.alpha_0)
        basis = range_of_pairs(counts, min(k + N_SPARE, counts.shape[1]), alpha_0, as_seed(self.random_state))
        blocks = Blocks.of(WordStatistics.empty(basis), counts, self.n_blocks)
        found = self._moments_of(blocks.total())
        noise = pair_noise(counts, alpha_0, basis[:, :k])
        size = float(found.values[k - 1])
        found = replace(found, hides_component=is_hidden(size, noise, k))
        complaints = (*_about_counts(counts), *hidden_component(size, noise, k))
        return replace(found, noise=noise, counts=counts, blocks=blocks, complaints=complaints)

    def _of_parts(self, parts: Parts) -> TopicMoments:
        """Return the moments of parts that can be read again: a pass for frequencies, some for the basis, one more."""
        self._check_blocks(parts.n_parts, "parts")
        corpus = read_corpus(parts)
        self._check_words(corpus.n_words)
        self.n_features_in_ = corpus.n_words
        basis = range_of_parts(parts, corpus, self.n_asked(), float(self.alpha_0), as_seed(self.random_state))
        return replace(self._of_blocks(sums_of_parts(parts, basis, self.n_blocks)), parts=parts)

    def _of_iterator(self, parts: Parts) -> TopicMoments:
        """Return the moments of parts that can be read once, of which the first fixes the basis."""
        self._check_reads(parts)
        self._check_blocks(None, "parts")
        bases: list[np.ndarray] = []

        def sums_of(part: Any, place: int) -> Blocks:
            counts = self._checked_part(as_matrix(part), first=place == 0)
            if place == 0:
                bases.append(self._first_basis(counts))
            return sums_of_part(counts, bases[0], self.n_blocks, place)

        return self._of_blocks(parts.reduce(sums_of, numbered=True))

    def _of_blocks(self, blocks: Blocks) -> TopicMoments:
        """Return the moments of sums over all documents."""
        self._check_blocks(blocks.n_parts, "parts")
        sums, k = blocks.total(), self.n_asked()
        if not sums.n_documents[2]:
            raise ValueError(f"X must hold documents of three words or more; all {sums.n_seen} have fewer")
        found = self._moments_of(sums)
        noise = sums.noise(float(self.alpha_0), found.inner)
        told = _about(sums.n_seen, sums.n_seen - int(sums.n_documents[2]), whole=sums.n_broken == 0)
        size = float(found.values[k - 1])
        found = replace(found, hides_component=is_hidden(size, noise, k))
        complaints = (*told, *hidden_component(size, noise, k))
        return replace(found, noise=noise, blocks=blocks, complaints=complaints)

    def _checked_part(self, raw: Any, *, first: bool) -> sparse.csr_array:
        """Return counts of no fewer words than topics: the one matrix that all moments and steps read."""
        counts = as_counts(validate_data(self, raw, reset=first, **INPUT), "X")
        self._check_words(counts.shape[1])
        return counts

    def _empty_sums(self, part: sparse.csr_array) -> WordStatistics:
        """Return sums in a basis that documents show, three times as wide as there are topics."""
        return WordStatistics.empty(self.basis_ if hasattr(self, "basis_") else self._first_basis(part))

    def _moments_of(self, sums: WordStatistics, like: TopicMoments | None = None) -> TopicMoments:
        """Return the moments of topics that sums over documents make."""
        width = sums.basis.shape[1]
        if self.n_asked() > width:
            raise ValueError(
                f"n_components must be at most {width}, the width of the basis that the first chunk has fixed; got "
                f"{self.n_asked()}. Fit anew"
            )
        orthogonal = self.strategy().needs_orthogonal
        return TopicMoments.of(sums, self.n_asked(), float(self.alpha_0), orthogonal=orthogonal)

    def _moments_of_chunk(self, blocks: Blocks, part: sparse.csr_array) -> TopicMoments:
        """Return the moments after documents were added."""
        found = self._moments_of(blocks.total())
        noise = found.statistics.noise(float(self.alpha_0), found.inner)
        return replace(found, noise=noise, blocks=blocks, complaints=_about_counts(part))

    def parameters(self, fit: Factorization, moments: TopicMoments) -> Topics:
        """Return topics and their weights."""
        return moments.parameters(fit)

    def polished(self, components: Topics, moments: TopicMoments) -> Topics:
        """Return topics after steps of expectation maximization, where all documents are at hand, or can be read."""
        if self.polish and moments.counts is not None:
            return self._after_steps(components, moments.counts)
        return self._after_passes(components, moments.parts) if self.polish and moments.parts else components

    def keep(self, components: Topics, moments: TopicMoments) -> None:
        """Keep the basis of the sums, too, and what mixtures are like."""
        super().keep(components, moments)
        self.doc_topic_prior_ = self._prior(components.weights)
        self.basis_ = moments.statistics.basis

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
        return np.array([f"{type(self).__name__.lower()}{i}" for i in range(self.n_components_)], dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.input_tags.sparse = True
        return tags

    @abstractmethod
    def _after_steps(self, components: Topics, counts: sparse.csr_array) -> Topics:
        """Return topics after `polish` steps of expectation maximization."""

    @abstractmethod
    def _after_passes(self, components: Topics, parts: Parts) -> Topics:
        """Return the same, from documents in parts, which are read again for each step."""

    @abstractmethod
    def _shares(self, counts: sparse.csr_array) -> np.ndarray:
        """Return what `transform` does."""

    @abstractmethod
    def _log_likelihood(self, counts: sparse.csr_array) -> float:
        """Return what `score` does."""

    def _first_basis(self, counts: sparse.csr_array) -> np.ndarray:
        width = min(3 * self.n_asked(), counts.shape[1])
        return range_of_pairs(counts, width, float(self.alpha_0), as_seed(self.random_state))

    def _prior(self, weights: np.ndarray) -> np.ndarray:
        return np.maximum(self.alpha_0 * weights, 1e-2 / weights.size)

    def _known(self, raw: Any) -> sparse.csr_array:
        """Return counts of the words that were there in `fit`."""
        check_is_fitted(self)
        return as_counts(validate_data(self, raw, reset=False, **INPUT), "X")

    def _check_words(self, n_words: int) -> None:
        if self.n_asked() > n_words:
            raise ValueError(f"n_components must be at most {n_words}, the number of words; got {self.n_asked()}")


def _about_counts(counts: sparse.csr_array) -> tuple[str, ...]:
    """Return what a user must be told of counts: what they say nothing about."""
    short = int(np.sum(np.asarray(counts.sum(axis=1)) < 3))
    return _about(counts.shape[0], short, whole=np.array_equal(counts.data, np.rint(counts.data)))


def _about(n_documents: int, n_short: int, *, whole: bool) -> tuple[str, ...]:
    told: list[str] = []
    if n_short:
        told.append(
            f"{n_short} of {n_documents} documents have fewer than three words and count for lower moments only"
        )
    if not whole:
        told.append(
            "X is not of whole numbers: moments are unbiased for counts of words, not for shares or tf-idf weights"
        )
    return tuple(told)
