"""Topics by moments of words, whatever the model: what documents of one topic and of mixtures have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, ClassVar, cast

import numpy as np
from scipy import sparse
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from codiag._checks import as_number
from codiag.methods import Method
from codiag.models.frame import (
    CORE_METHOD,
    BlockedModel,
    Blocks,
    PartsWithout,
    Totals,
    as_seed,
    block_of_rows,
    hidden_component,
    is_hidden,
    refuse_parts,
)
from codiag.models.topics._moments import TopicMoments, Topics, WordStatistics, pair_noise, range_of_pairs
from codiag.models.topics._parts import (
    INPUT,
    N_SPARE,
    TopicStream,
    as_matrix,
    check_pairs,
    range_of_parts,
    sums_of_parts,
    word_totals,
)
from codiag.models.topics._variational import Shared, Start, polished_counts, polished_parts
from codiag.models.topics._word_moments import as_counts
from codiag.parts import Parts, as_parts, is_matrix, listed
from codiag.result import Factorization

ALPHA_0 = 1.0
"""How mixed documents are taken to be by the moments, where that is to be estimated by the steps after them."""


class MomentTopics(TransformerMixin, BlockedModel[TopicMoments, Topics]):
    """Topics by moments of words: what models of one topic a document, and of mixtures of topics, have in common."""

    default_method: ClassVar[Method] = CORE_METHOD
    optional: ClassVar[frozenset[str]] = frozenset({"n_components", "alpha_0"})
    shared_out: ClassVar[type[Shared]]
    """What steps after the moments share out to topics."""
    alpha_0: float | None
    """Sum of the Dirichlet parameters of the mixtures, zero where a document has one topic; None to estimate it."""

    def moments(self, data: Any) -> TopicMoments:
        """Return the moments of counts of words, of shape (documents, words), sparse or dense, or in parts."""
        parts = as_parts(data, is_matrix)
        if parts is not None:
            return self._of_iterator(parts) if parts.once else self._of_parts(parts)
        counts = self._as_counts(data, first=True)
        self._check_blocks(counts.shape[0])
        return replace(self._of_counts(counts, steps=bool(self.polish)), counts=counts)

    def _of_counts(self, counts: sparse.csr_array, *, steps: bool) -> TopicMoments:
        """Return the moments of documents that are at hand; `steps` is whether others follow that use all words."""
        lengths = np.asarray(counts.sum(axis=1)).ravel()
        check_pairs(int(np.sum(lengths >= 2)), lengths.size)
        k, alpha_0 = self.n_asked(), self._mixing()
        basis = range_of_pairs(counts, min(k + N_SPARE, counts.shape[1]), alpha_0, as_seed(self.random_state))
        blocks = Blocks.of(WordStatistics.empty(basis), counts, self.n_blocks)
        found = self._moments_of(blocks.total())
        noise = pair_noise(counts, alpha_0, basis[:, :k])
        size = float(found.values[k - 1])
        found = replace(found, hides_component=is_hidden(size, noise, k))
        whole = np.array_equal(counts.data, np.rint(counts.data))
        about_counts = _complaints(lengths.size, int(np.sum(lengths < 3)), whole=whole, steps=steps)
        complaints = (*about_counts, *hidden_component(size, noise, k))
        seen = TopicStream(blocks=Blocks({0: found.statistics}))
        return replace(found, noise=noise, blocks=blocks, seen=seen, complaints=complaints)

    def _of_parts(self, parts: Parts) -> TopicMoments:
        """Return the moments of parts that can be read again: a pass for frequencies, some for the basis, one more."""
        corpus = word_totals(parts)
        self._check_blocks(corpus.n_documents)
        self._check_words(corpus.n_words)
        self.n_features_in_ = corpus.n_words
        basis = range_of_parts(parts, corpus, self.n_asked(), self._mixing(), as_seed(self.random_state))
        blocks = sums_of_parts(parts, basis, self.n_blocks)
        return replace(self._of_blocks(blocks, steps=bool(self.polish)), parts=parts)

    def _of_iterator(self, parts: Parts) -> TopicMoments:
        """Return the moments of parts that can be read once, of which the first ones fix the basis."""
        self._check_reads(parts)
        stream = TopicStream()

        def add(part: Any) -> Totals:
            nonlocal stream
            counts = self._as_counts(as_matrix(part), first=stream.is_empty)
            stream = self._with_part(stream, counts)
            return Totals(counts.shape[0])

        (n_documents,) = parts.reduce(add).values
        self._check_blocks(n_documents)
        found = self._moments_of_stream(stream)
        return replace(found, seen=TopicStream(blocks=Blocks({0: found.statistics}), n_basis=stream.n_basis))

    def _moments_of_stream(self, stream: TopicStream) -> TopicMoments:
        """Return the moments of documents that were read once; those that are kept make up a matrix."""
        if stream.blocks is None:
            return replace(self._of_counts(stream.documents(), steps=False), seen=stream)
        found = self._of_blocks(stream.blocks, steps=False)
        about_stream = stream.complaints(self.n_asked())
        return replace(found, seen=stream, complaints=(*found.complaints, *about_stream))

    def _of_blocks(self, blocks: Blocks, *, steps: bool) -> TopicMoments:
        """Return the moments of sums over all documents; `steps` is whether others follow that use all words."""
        sums, k = blocks.total(), self.n_asked()
        check_pairs(int(sums.n_documents[1]), sums.n_seen)
        found = self._moments_of(sums)
        noise = sums.noise(self._mixing(), found.inner)
        n_short = sums.n_seen - int(sums.n_documents[2])
        about_counts = _complaints(sums.n_seen, n_short, whole=sums.n_broken == 0, steps=steps)
        size = float(found.values[k - 1])
        found = replace(found, hides_component=is_hidden(size, noise, k))
        complaints = (*about_counts, *hidden_component(size, noise, k))
        seen = TopicStream(blocks=Blocks({0: sums}))
        return replace(found, noise=noise, blocks=blocks, seen=seen, complaints=complaints)

    def _as_counts(self, raw: Any, *, first: bool) -> sparse.csr_array:
        """Return counts of no fewer words than topics: the one matrix that all moments and steps read."""
        counts = as_counts(validate_data(self, raw, reset=first, **INPUT), "X")
        self._check_words(counts.shape[1])
        return counts

    def _checked_part(self, raw: Any, *, first: bool) -> sparse.csr_array:
        """Return a chunk of documents as counts."""
        refuse_parts(raw)
        return self._as_counts(raw, first=first)

    def _with_part(self, seen: TopicStream | None, part: sparse.csr_array) -> TopicStream:
        """Return what was seen with documents added."""
        stream = TopicStream() if seen is None else seen
        if stream.blocks is not None:
            self._check_same_blocks(stream.blocks)
        return stream.with_part(part, self.n_asked(), self._mixing(), as_seed(self.random_state), self.n_blocks)

    def _moments_of(self, sums: WordStatistics, like: TopicMoments | None = None) -> TopicMoments:
        """Return the moments of topics that sums over documents make."""
        width = sums.basis.shape[1]
        if self.n_asked() > width:
            raise ValueError(
                f"n_components must be at most {width}, the width of the basis that the first documents have fixed; "
                f"got {self.n_asked()}. Fit anew"
            )
        orthogonal = self.strategy().needs_orthogonal
        return TopicMoments.of(sums, self.n_asked(), self._mixing(), orthogonal=orthogonal)

    def _with_others(self, others: TopicMoments, whole: TopicMoments, block: int, found: Topics) -> TopicMoments:
        """Return moments without a block, with the documents of the others, and as many steps as there were."""
        if whole.counts is not None:
            kept = whole.counts[np.flatnonzero(block_of_rows(whole.counts.shape[0], self.n_blocks) != block)]
            return replace(others, counts=kept, n_steps=found.n_iter)
        if whole.parts is not None:
            parts = PartsWithout(whole.parts, as_matrix, self.n_blocks, block)
            return replace(others, parts=parts, n_steps=found.n_iter)
        return others

    def _moments_of_seen(self, seen: TopicStream, part: sparse.csr_array) -> TopicMoments:
        """Return the moments after documents were added."""
        return self._moments_of_stream(seen)

    def parameters(self, fit: Factorization | None, moments: TopicMoments) -> Topics:
        """Return topics and their weights."""
        return moments.parameters(fit)

    def polished(self, components: Topics, moments: TopicMoments) -> Topics:
        """Return topics after collapsed variational steps, where all documents are at hand, or can be read."""
        if not self.polish or (moments.counts is None and moments.parts is None):
            return components
        topics, prior = components.components, components.doc_topic_prior
        start = Start.of(self.shared_out, topics, prior, moments.mean, fixed_total=self.alpha_0 is not None)
        n_steps, settle = (self.polish, True) if moments.n_steps is None else (moments.n_steps, False)
        if moments.counts is not None:
            found = polished_counts(moments.counts, start, n_steps, settle=settle)
        else:
            found = polished_parts(cast("Parts", moments.parts), start, n_steps, settle=settle)
        return replace(
            components,
            components=found.counts.topics,
            weights=found.weights,
            doc_topic_prior=found.counts.prior,
            topic_word_prior=found.counts.word_prior,
            n_iter=found.n_steps,
        )

    def transform(self, X: Any) -> np.ndarray:  # noqa: N803
        """Return the share of each topic in each document, rows of sum one.

        Parameters
        ----------
        X : array or sparse matrix of shape (documents, words)
            Counts, or parts of them, as in `fit`.

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
        return np.concatenate(self._by_part(X, self._shares))

    def score(self, X: Any, y: object = None) -> float:  # noqa: N803
        """Return the log-likelihood of the documents of X, of shape (documents, words), in the order of their words.

        Parameters
        ----------
        X : array or sparse matrix of shape (documents, words)
            Counts, or parts of them, as in `fit`.
        y : ignored
            Not used; there for the interface of scikit-learn.

        Returns
        -------
        float
            The log-likelihood.

        See Also
        --------
        LatentDirichlet.perplexity : The same for a word.

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
        return float(sum(self._by_part(X, self._log_likelihood)))

    def perplexity(self, X: Any) -> float:  # noqa: N803
        """Return the exponential of minus the mean log-likelihood of a word of X, of shape (documents, words).

        Parameters
        ----------
        X : array or sparse matrix of shape (documents, words)
            Counts, or parts of them, as in `fit`.

        Returns
        -------
        float
            At least one, which is best.

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
        total, n_words = np.sum(self._by_part(X, self._likelihood_and_length), axis=0)
        return float(np.exp(-total / max(n_words, 1)))

    def top_words(self, vocabulary: Sequence[str] | np.ndarray | None = None, n: int = 10) -> list[list[str]]:
        """Return the most probable words of every topic.

        Parameters
        ----------
        vocabulary : sequence of str, optional
            The word of every column of the counts; by default the columns of the data frame that was fitted.
        n : int
            How many of each topic.

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

    def get_feature_names_out(self, input_features: object = None) -> np.ndarray:
        """Return names for the columns of `transform`.

        Parameters
        ----------
        input_features : ignored
            Not used; there for the interface of scikit-learn.

        Returns
        -------
        array of str, shape (n_components,)
            The names.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.models import SingleTopic
        >>> rng = np.random.default_rng(0)
        >>> topics = np.array([[0.5, 0.4, 0.1, 0.0], [0.0, 0.1, 0.4, 0.5]])
        >>> counts = np.array([rng.multinomial(10, topics[i]) for i in rng.integers(0, 2, 500)])
        >>> model = SingleTopic(2, random_state=0).fit(counts)
        >>> model.get_feature_names_out().tolist()
        ['singletopic0', 'singletopic1']
        """
        check_is_fitted(self)
        return np.array([f"{type(self).__name__.lower()}{i}" for i in range(self.n_components_)], dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.input_tags.sparse = True
        return tags

    @abstractmethod
    def _shares(self, counts: sparse.csr_array) -> np.ndarray:
        """Return what `transform` does."""

    @abstractmethod
    def _log_likelihood(self, counts: sparse.csr_array) -> float:
        """Return what `score` does."""

    def _mixing(self) -> float:
        """Return how mixed documents are taken to be by the moments."""
        return ALPHA_0 if self.alpha_0 is None else float(self.alpha_0)

    def _likelihood_and_length(self, counts: sparse.csr_array) -> tuple[float, float]:
        return self._log_likelihood(counts), float(counts.sum())

    def _by_part(self, raw: Any, function: Callable[[sparse.csr_array], Any]) -> list[Any]:
        """Return what a function gives for counts, or for those of every part."""
        check_is_fitted(self)
        parts = as_parts(raw, is_matrix)
        return [self._of_known(raw, function)] if parts is None else listed(parts, self._of_known, function)

    def _of_known(self, raw: Any, function: Callable[[sparse.csr_array], Any]) -> Any:
        """Return what a function gives for counts of the words that were there in `fit`."""
        return function(as_counts(validate_data(self, as_matrix(raw), reset=False, **INPUT), "X"))

    def _check_words(self, n_words: int) -> None:
        if self.n_asked() > n_words:
            raise ValueError(f"n_components must be at most {n_words}, the number of words; got {self.n_asked()}")


def _complaints(n_documents: int, n_short: int, *, whole: bool, steps: bool) -> tuple[str, ...]:
    """Return what a user must be told of counts: what they say nothing about."""
    complaints: list[str] = []
    if n_short == n_documents:
        complaints.append(
            f"all {n_documents} documents have fewer than three words: topics are found from pairs of words, which "
            "tell them apart only where every topic has words of its own"
        )
    elif n_short and not steps:
        complaints.append(
            f"{n_short} of {n_documents} documents have fewer than three words and count for lower moments only"
        )
    if not whole:
        complaints.append(
            "X is not of whole numbers: moments are unbiased for counts of words, not for shares or tf-idf weights"
        )
    return tuple(complaints)
