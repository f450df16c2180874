"""Documents about one topic each, shared out to topics by collapsed variational steps."""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np
from scipy import sparse
from scipy.special import gammaln, logsumexp

from codiag.models._text import topic_posteriors
from codiag.models._topic_priors import Presence, numbers_of, random_numbers_of
from codiag.models._topic_shares import BLOCK, MOST_SURE, TopicCounts, blocks_of


class SharedDocuments:
    r"""The probability of every topic for every document, (documents, k), and sums of them.

    As `SharedWords`, with documents in place of words: the probability of topic k for document d is proportional to

    .. math:: (m_k - p + \alpha_k)\, \frac{\Gamma(n_k - c p + V \beta)}{\Gamma(n_k - c p + c + V \beta)}
        \prod_w \left(n_{wk} - c_w p + \beta + \tfrac12 (c_w - 1)\right)^{c_w},

    with m the numbers of documents of topics, n those of words, p the probability before the step, and c the words of
    the document, which is left out of what it is held against. The powers stand for rising factorials, which they are
    where words are not repeated, and to second order where they are.

    Parameters
    ----------
    counts : csr_array of shape (documents, words)
        Read where it is.
    k : int
        Number of topics.
    """

    most_momentum: ClassVar[float] = 0.0

    def __init__(self, counts: sparse.csr_array, k: int) -> None:
        self.counts = counts
        self.lengths = np.asarray(counts.sum(axis=1)).ravel()
        self.posterior = np.zeros((counts.shape[0], k))

    @staticmethod
    def momentum_of(lengths: np.ndarray | float) -> np.ndarray:
        """Return the momentum of documents of so many words: none, as their steps are few."""
        return np.zeros(np.shape(lengths))

    @staticmethod
    def bytes_kept(counts: sparse.csr_array, k: int) -> int:
        """Return how much memory probabilities take."""
        return 8 * k * int(counts.shape[0])

    def started(self, topics: np.ndarray, prior: np.ndarray) -> Self:
        """Find probabilities by topics (k, words) and weights in proportion to a prior, and return this."""
        self.posterior = topic_posteriors(self.counts, topics, prior / prior.sum())
        return self

    def step(self, known: TopicCounts) -> float:
        """Find probabilities anew, and return the log-probability of documents, each given all others."""
        own, lengths = self.posterior, self.lengths[:, None]
        rest = known.documents - own + known.prior
        sums = (known.words + known.word_prior).sum(axis=1) - lengths * own
        joint = np.log(np.maximum(rest, 1e-300)) + gammaln(sums) - gammaln(sums + lengths)
        words = known.words.T + known.word_prior
        for rows, entries in blocks_of(self.counts, BLOCK // own.shape[1]):
            pointers = self.counts.indptr[rows.start : rows.stop + 1]
            numbers = self.counts.data[entries, None]
            rest = words[self.counts.indices[entries]] - numbers * np.repeat(own[rows], np.diff(pointers), axis=0)
            logs = numbers * np.log(np.maximum(rest + np.maximum(numbers - 1, 0) / 2, known.word_prior))
            used = np.flatnonzero(np.diff(pointers))
            joint[rows.start + used] += np.add.reduceat(logs, pointers[used] - pointers[0], axis=0)
        found = logsumexp(joint, axis=1, keepdims=True)
        self.posterior = np.exp(joint - found)
        return float(np.sum(found - np.log(np.sum(known.documents + known.prior) - 1)))

    def words(self) -> np.ndarray:
        """Return how many words belong to topics, (k, words)."""
        found: np.ndarray = (self.counts.T @ self.posterior).T
        return found

    def weights(self, prior: np.ndarray) -> np.ndarray:
        """Return the probabilities of topics, (k,), summed over documents."""
        return np.sum(self.posterior, axis=0)

    def presence(self) -> Presence:
        """Return what the priors are estimated from; a document is one draw of a topic."""
        absent = np.log(1 - np.minimum(self.posterior, MOST_SURE))
        there = sparse.csr_array((np.ones(self.counts.nnz), self.counts.indices, self.counts.indptr), self.counts.shape)
        topics = random_numbers_of(absent.T, self.posterior.T)
        return Presence(topics, numbers_of(np.ones((1, self.lengths.size))), (there.T @ absent).T)
