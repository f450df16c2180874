"""Collapsed variational posteriors of topics, and the Dirichlet parameters they imply."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Self

import numpy as np
from scipy import sparse
from scipy.special import psi, softmax

from codiag.models.base import RowSums

BLOCK_SIZE = 2**17
"""Entries times topics of a block of documents; a few arrays of this size fit into the cache of a core."""
N_WHOLE = 32
"""Number of histogram knots at the integers 0, 1, ...; further knots are spaced geometrically."""
KNOTS = np.concatenate([np.arange(float(N_WHOLE)), np.geomspace(N_WHOLE, 1e9, 100)])
"""Knots of histograms of numbers of words, whose size does not depend on the number of documents."""
MIN_PRIOR, MAX_PRIOR = 1e-4, 1e4
"""Bounds of Dirichlet parameters. Below, one word decides the whole mixture; above, all mixtures are alike."""


class TopicCounts(NamedTuple):
    """The state of a step: numbers of words of topics, and the parameters of both Dirichlet priors."""

    words: np.ndarray  # (k, words)
    prior: np.ndarray  # (k,): of mixtures
    word_prior: float  # of topics, the same for all words

    @property
    def topics(self) -> np.ndarray:
        """The expected topics (k, words), rows of sum one."""
        raw = self.words + self.word_prior
        return raw / raw.sum(axis=1, keepdims=True)


@dataclass(frozen=True, eq=False)
class PriorSums(RowSums):
    """Sums over documents from which the parameters of both Dirichlet distributions are estimated."""

    topic_histogram: np.ndarray  # (k, knots): of the numbers of words of a topic in a document
    length_histogram: np.ndarray  # (1, knots): of the numbers of words of a document
    log_absent: np.ndarray  # (k, words): log-probabilities that a topic has no occurrence of a word


class WordPosteriors:
    r"""The posterior probability of every topic for every entry of the counts, (entries, k), and sums of it.

    A collapsed variational step of zeroth order (CVB0; Asuncion et al., 2009) makes the probability of topic k for an
    entry of document d and word w proportional to

    .. math:: (n_{dk} - g + \alpha_k)\, \frac{n_{wk} - g + \beta}{n_k - g + V \beta},

    with n the expected numbers of words before the step and g the probability of the entry itself: one word is left
    out. The sum over topics, divided by the length of the document minus one plus the sum of :math:`\alpha`, is the
    probability of that word given all others. Numbers may be extrapolated from the last two steps; those of all other
    words are then kept from becoming negative.

    Parameters
    ----------
    counts : csr_array of shape (documents, words)
        Not copied.
    k : int
        Number of topics.
    """

    max_momentum: ClassVar[float] = 0.5
    """Multiple m of the last change by which numbers of words are extrapolated. Slow directions, whose change shrinks
    little from step to step, converge 1 / (1 - m) times as fast. A direction diverges only if its factor from step to
    step is outside -1 / (1 + 2 m) and 1. If n words of a document follow each other there is a factor of -1 / (n - 1),
    so that m must be below (n - 2) / 2; as these may be few of the words, momentum is at most a sixteenth of that."""

    def __init__(self, counts: sparse.csr_array, k: int) -> None:
        self.counts = counts
        self.dtype = np.dtype(np.float32 if counts.data.max(initial=0) <= 1e6 else np.float64)
        self.numbers = counts.data.astype(self.dtype)
        self.fractions = np.minimum(self.numbers, 1)[:, None] if np.any(counts.data < 1) else None
        self.lengths = np.asarray(counts.sum(axis=1)).ravel()
        self.posterior = np.zeros((counts.nnz, k), self.dtype)
        self.in_documents = np.zeros((counts.shape[0], k), self.dtype)  # numbers of words of topics
        self.in_documents_before = self.in_documents
        self.momentum = self.momentum_of(self.lengths).astype(self.dtype)[:, None]
        self.blocks = list(blocks_of(counts, BLOCK_SIZE // k))
        self.height = max((entries.stop - entries.start for _, entries in self.blocks), default=0)
        self.repeats = np.diff(counts.indptr)
        places, (n, n_words) = np.arange(counts.nnz + 1, dtype=counts.indices.dtype), counts.shape
        self.by_document = sparse.csr_array((self.numbers, places[:-1], counts.indptr), (n, counts.nnz))
        self.by_word = sparse.csc_array((self.numbers, counts.indices, places), (n_words, counts.nnz))

    @classmethod
    def momentum_of(cls, lengths: np.ndarray | float) -> np.ndarray:
        """Return the momentum of documents of given lengths."""
        return np.clip((np.asarray(lengths) - 2) / 32, 0, cls.max_momentum)

    def initialized(self, topics: np.ndarray, prior: np.ndarray, n_steps: int = 7) -> Self:
        """Compute posteriors for fixed topics (k, words), and return this; poor mixtures would spoil the topics."""
        inside = np.ascontiguousarray(topics.T, dtype=self.dtype)
        least = self._rows_of(prior)
        for step in range(n_steps):
            before = self._extrapolated(prior)
            for rows, entries in self.blocks:
                raw = np.repeat(before[rows], self.repeats[rows], axis=0)
                raw -= self._of_one_word(entries)
                np.maximum(raw, least[: len(raw)], out=raw)
                raw *= np.take(inside, self.counts.indices[entries], axis=0, mode="clip")
                self._normalize(raw, entries)
            self._count()
            if step == 0:  # there were no posteriors before, and so no change to extrapolate
                self.in_documents_before = self.in_documents
        self.in_documents_before = self.in_documents
        return self

    def step(self, state: TopicCounts) -> float:
        """Update the posteriors, and return the sum of log-probabilities of words, each given all others."""
        before = self._extrapolated(state.prior)
        words = np.ascontiguousarray((state.words + state.word_prior).T, dtype=self.dtype)
        sums = self._rows_of((state.words + state.word_prior).sum(axis=1))
        least, least_words = self._rows_of(state.prior), self._rows_of(state.word_prior)
        likelihood = -float(self.lengths @ np.log(np.maximum(self.lengths - 1, 0) + np.sum(state.prior)))
        for rows, entries in self.blocks:
            of_one_word, n = self._of_one_word(entries), entries.stop - entries.start
            raw = np.repeat(before[rows], self.repeats[rows], axis=0)
            raw -= of_one_word
            np.maximum(raw, least[:n], out=raw)
            factor = np.take(words, self.counts.indices[entries], axis=0, mode="clip")
            factor -= of_one_word
            np.maximum(factor, least_words[:n], out=factor)
            raw *= factor
            np.subtract(sums[:n], of_one_word, out=factor)
            raw /= factor
            likelihood += self._normalize(raw, entries)
        self._count()
        return likelihood

    def words(self) -> np.ndarray:
        """Return the expected numbers of words of topics, (k, words)."""
        return np.asarray(self.by_word @ self.posterior, dtype=np.float64).T

    def weights(self, prior: np.ndarray) -> np.ndarray:
        """Return the expected mixtures of topics, (k,), summed over documents."""
        scale = 1 / (self.lengths + prior.sum())
        return scale @ self.in_documents.astype(np.float64) + prior * scale.sum()

    def mixtures(self, prior: np.ndarray) -> np.ndarray:
        """Return the expected mixtures of topics (documents, k), rows of sum one."""
        raw = self.in_documents.astype(np.float64) + prior
        return raw / raw.sum(axis=1, keepdims=True)

    def prior_sums(self) -> PriorSums:
        """Return the sums from which priors are estimated, as if posteriors of different entries were independent."""
        logs = np.log(1 - np.minimum(self.posterior, self.dtype.type(1 - 1e-6)))
        topics = expected_histogram((self.by_document @ logs).T, self.in_documents.T)
        return PriorSums(topics, histogram(self.lengths[None]), (self.by_word @ logs).T)

    def _extrapolated(self, prior: np.ndarray) -> np.ndarray:
        """Return the numbers of words of topics in documents, extrapolated, plus the prior."""
        change = self.in_documents - self.in_documents_before
        numbers: np.ndarray = (self.in_documents + self.momentum * change + prior).astype(self.dtype)
        return numbers

    def _rows_of(self, row: np.ndarray | float) -> np.ndarray:
        """Return a row repeated to the height of a block: faster than broadcasting."""
        return np.full((self.height, self.in_documents.shape[1]), row, self.dtype)

    def _count(self) -> None:
        """Update the numbers of words of topics in documents."""
        self.in_documents_before, self.in_documents = self.in_documents, self.by_document @ self.posterior

    def _normalize(self, raw: np.ndarray, entries: slice) -> float:
        """Store unnormalized posteriors of some entries, and return the sum of the logarithms of their totals."""
        sums = np.maximum(raw @ np.ones(raw.shape[1], self.dtype), self.dtype.type(1e-30))
        np.multiply(raw, (1 / sums)[:, None], out=self.posterior[entries])
        return float(self.counts.data[entries] @ np.log(sums))

    def _of_one_word(self, entries: slice) -> np.ndarray:
        """Return the posteriors of one word of every entry, or of less if the count is below one."""
        posterior = self.posterior[entries]
        return posterior if self.fractions is None else posterior * self.fractions[entries]


def blocks_of(counts: sparse.csr_array, n_entries: int) -> Iterator[tuple[slice, slice]]:
    """Yield rows of documents with about `n_entries` entries, and these entries; empty documents may be left out."""
    pointers, start = counts.indptr, 0
    while start < pointers.size - 1:
        stop = int(np.searchsorted(pointers, pointers[start] + max(n_entries, 1), side="right")) - 1
        stop = max(stop, start + 1)
        if pointers[stop] > pointers[start]:
            yield slice(start, stop), slice(int(pointers[start]), int(pointers[stop]))
        start = stop


def topic_mixtures(counts: sparse.csr_array, topics: np.ndarray, prior: np.ndarray, n_steps: int) -> np.ndarray:
    """Return the expected mixtures of topics (documents, k), rows of sum one, after collapsed steps."""
    mixtures = np.tile(prior / prior.sum(), (counts.shape[0], 1))
    for rows, _ in blocks_of(counts, 32 * BLOCK_SIZE // prior.size):
        mixtures[rows] = WordPosteriors(counts[rows], prior.size).initialized(topics, prior, n_steps).mixtures(prior)
    return mixtures


def topic_posteriors(counts: sparse.csr_array, topics: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the probability (documents, k) of each topic for documents about a single topic."""
    return softmax(topic_log_joint(counts, topics, weights), axis=1)


def topic_log_joint(counts: sparse.csr_array, topics: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the joint log-probabilities (documents, k) of topics and documents about a single topic."""
    return counts @ np.log(np.maximum(topics, 1e-300)).T + np.log(np.maximum(weights, 1e-300))


def histogram(values: np.ndarray, weights: np.ndarray | float = 1.0) -> np.ndarray:
    """Return histograms (rows, knots) of numbers (rows, n), each divided linearly between its two nearest knots."""
    inside = np.minimum(values, KNOTS[-1])
    low = inside.astype(np.intp)  # the first knots are the integers
    large = inside >= N_WHOLE
    low[large] = np.minimum(np.searchsorted(KNOTS, inside[large], side="right") - 1, KNOTS.size - 2)
    above = (inside - KNOTS[low]) / (KNOTS[low + 1] - KNOTS[low])
    bins = low + KNOTS.size * np.arange(len(values))[:, None]
    size = KNOTS.size * len(values)
    lower = np.bincount(bins.ravel(), (weights * (1 - above)).ravel(), minlength=size)
    upper = np.bincount(bins.ravel() + 1, (weights * above).ravel(), minlength=size)
    return (lower + upper).reshape(len(values), -1)


def expected_histogram(log_absent: np.ndarray, means: np.ndarray) -> np.ndarray:
    """Return expected histograms of random numbers (rows, n), given their means and log-probabilities of zero.

    Numbers other than zero are replaced by their conditional mean. Means alone would be misleading: a topic with half a
    word in every document has no word in half of them, and is much more variable than its mean.
    """
    present = np.maximum(-np.expm1(log_absent), 1e-12)
    return histogram(np.maximum(means / present, 1), present)


def estimated_prior(sums: PriorSums, prior: np.ndarray) -> np.ndarray:
    """Return the Dirichlet parameters (k,) of mixtures, after fixed-point steps (Minka, 2000) from the given ones."""
    for _ in range(10):
        total = _digamma_sums(sums.length_histogram, np.array([prior.sum()]))[0]
        ratios = _digamma_sums(sums.topic_histogram, prior) / max(total, 1e-300)
        prior = np.clip(prior * ratios, MIN_PRIOR, MAX_PRIOR)
    return prior


def estimated_word_prior(log_absent: np.ndarray, words: np.ndarray, parameter: float) -> float:
    """Return the Dirichlet parameter of topics, from numbers of words and log-probabilities of zero, (k, words)."""
    numbers = expected_histogram(log_absent, words).sum(axis=0, keepdims=True)
    totals, n_words = histogram(words.sum(axis=1)[None]), words.shape[1]
    for _ in range(10):
        total = n_words * _digamma_sums(totals, np.array([n_words * parameter]))[0]
        inside = _digamma_sums(numbers, np.array([parameter]))[0]
        parameter = float(np.clip(parameter * inside / max(total, 1e-300), MIN_PRIOR, MAX_PRIOR))
    return parameter


def _digamma_sums(histograms: np.ndarray, parameters: np.ndarray) -> np.ndarray:
    """Return for each row, with parameter a, the sum of digamma(n + a) - digamma(a) over its numbers n."""
    terms = psi(KNOTS[1:] + parameters[:, None]) - psi(parameters)[:, None]
    sums: np.ndarray = np.sum(histograms[:, 1:] * terms, axis=1)
    return sums
