"""Words of documents, shared out to topics by collapsed variational steps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Self

import numpy as np
from scipy import sparse

from codiag.models._topic_priors import Presence, numbers_of, random_numbers_of

N_STARTING_STEPS = 10
"""Steps with topics fixed, in which documents find their mixtures: from poorer ones, good topics would get worse."""
SINGLE_PRECISION = 1e6
"""The largest count up to which shares of words are kept in single precision."""
BLOCK = 2**17
"""Entries times topics that are worked on at once: a few arrays of so many numbers fit the cache of a core."""
KEPT = 2**22
"""The same where shares are not needed any longer than for some documents."""
LEAST, MOST_SURE = 1e-30, 1 - 1e-6
"""Bounds of numbers that are divided by, and of shares whose complement a logarithm is taken of."""


class TopicCounts(NamedTuple):
    """What a step reads: how much belongs to topics, and the parameters of both Dirichlet distributions."""

    words: np.ndarray  # (k, words): numbers of words
    documents: np.ndarray  # (k,): of documents
    prior: np.ndarray  # (k,): of mixtures
    word_prior: float  # of topics, the same for all words

    @property
    def topics(self) -> np.ndarray:
        """The expected topics (k, words), rows of sum one."""
        raw = self.words + self.word_prior
        return raw / raw.sum(axis=1, keepdims=True)


class SharedWords:
    r"""The share of every topic in every word of every document, (k, entries), and sums of them over documents.

    A collapsed variational step to zeroth order (Asuncion et al., 2009) makes the share of topic k in an entry of
    document d and word w proportional to

    .. math:: (n_{dk} - g + \alpha_k)\, \frac{n_{wk} - g + \beta}{n_k - g + V \beta},

    with n the numbers of words before the step and g the share of the entry itself, of which one word is left out. The
    sum over topics, over the length of the document less one plus all :math:`\alpha`, is the probability of that word
    given all others.

    Parameters
    ----------
    counts : csr_array of shape (documents, words)
        Read where it is.
    k : int
        Number of topics.
    """

    def __init__(self, counts: sparse.csr_array, k: int) -> None:
        self.counts = counts
        self.dtype = _precision(counts)
        self.numbers = counts.data.astype(self.dtype)
        self.repeats = bool(np.any(counts.data != 1))
        self.fractions = np.minimum(self.numbers, 1) if np.any(counts.data < 1) else None
        self.lengths = np.asarray(counts.sum(axis=1)).ravel()
        self.shares = np.zeros((k, counts.nnz), self.dtype)
        self.mixed = np.zeros((k, counts.shape[0]), self.dtype)  # numbers of words of topics in documents

    @staticmethod
    def bytes_kept(counts: sparse.csr_array, k: int) -> int:
        """Return how much memory shares take."""
        return int(_precision(counts).itemsize * k * counts.nnz)

    def started(self, topics: np.ndarray, prior: np.ndarray, n_steps: int = N_STARTING_STEPS) -> Self:
        """Share out words by topics (k, words) that do not change, and return this."""
        inside = topics.astype(self.dtype)
        for _ in range(n_steps):
            before = self._documents(prior)
            for rows, entries in self._blocks():
                raw = self._repeated(before, rows)
                raw -= self._own(entries)
                raw *= np.take(inside, self.counts.indices[entries], axis=1, mode="clip")
                self._replace(raw, rows, entries)
        return self

    def step(self, known: TopicCounts) -> float:
        """Share out words anew, and return the log-probability of words, each given all others."""
        before, total = self._documents(known.prior), float(np.sum(known.prior))
        words = (known.words + known.word_prior).astype(self.dtype)
        sums = (known.words + known.word_prior).sum(axis=1).astype(self.dtype)[:, None]
        found = -float(self.lengths @ np.log(np.maximum(self.lengths - 1, 0) + total))
        for rows, entries in self._blocks():
            own = self._own(entries)
            raw = self._repeated(before, rows)
            raw -= own
            factor = np.take(words, self.counts.indices[entries], axis=1, mode="clip")
            factor -= own
            raw *= factor
            np.subtract(sums, own, out=factor)
            raw /= factor
            found += float(self._replace(raw, rows, entries))
        return found

    def words(self) -> np.ndarray:
        """Return how many words belong to topics, (k, words)."""
        indices, n_words = self.counts.indices.astype(np.intp), self.counts.shape[1]  # once, not for every topic
        return np.stack([np.bincount(indices, self._counted(row), minlength=n_words) for row in self.shares])

    def weights(self, prior: np.ndarray) -> np.ndarray:
        """Return the expected mixtures of topics, (k,), summed over documents."""
        scale = 1 / (self.lengths + prior.sum())
        return self.mixed.astype(np.float64) @ scale + prior * scale.sum()

    def mixtures(self, prior: np.ndarray) -> np.ndarray:
        """Return the expected mixture of topics (documents, k) of each document, rows of sum one."""
        raw = self.mixed.T.astype(np.float64) + prior
        return raw / raw.sum(axis=1, keepdims=True)

    def presence(self) -> Presence:
        """Return what the priors are estimated from: how often topics are there, as if shares were independent."""
        absent = np.zeros(self.mixed.shape)
        words = np.zeros((self.mixed.shape[0], self.counts.shape[1]))
        used, starts = self._used(slice(0, self.counts.shape[0]))
        for topic, row in enumerate(self.shares):
            logs = self._counted(np.log(1 - np.minimum(row, self.dtype.type(MOST_SURE))))
            words[topic] = np.bincount(self.counts.indices, logs, minlength=words.shape[1])
            if used.size:
                absent[topic, used] = np.add.reduceat(logs, starts)
        return Presence(random_numbers_of(absent, self.mixed), numbers_of(self.lengths[None]), words)

    def _documents(self, prior: np.ndarray) -> np.ndarray:
        return (self.mixed + prior[:, None]).astype(self.dtype)

    def _repeated(self, documents: np.ndarray, rows: slice) -> np.ndarray:
        """Return columns (k, entries) of documents, one for each of their entries."""
        return np.repeat(documents[:, rows], np.diff(self.counts.indptr[rows.start : rows.stop + 1]), axis=1)

    def _replace(self, raw: np.ndarray, rows: slice, entries: slice) -> float:
        """Make raw numbers the shares of some documents, and return the logarithms of what they sum to, summed."""
        sums = np.maximum(raw.sum(axis=0), self.dtype.type(LEAST))
        np.multiply(raw, 1 / sums, out=self.shares[:, entries])
        used, starts = self._used(rows)
        counted = self._counted(self.shares[:, entries], entries)
        self.mixed[:, rows.start + used] = np.add.reduceat(counted, starts, axis=1)
        return float(self.counts.data[entries] @ np.log(sums))

    def _own(self, entries: slice) -> np.ndarray:
        """Return the shares of one word of every entry, or of less where there is less than one."""
        shares = self.shares[:, entries]
        return shares if self.fractions is None else shares * self.fractions[entries]

    def _counted(self, shares: np.ndarray, entries: slice = slice(None)) -> np.ndarray:
        """Return shares of entries, (..., entries), times the numbers of words there."""
        return shares * self.numbers[entries] if self.repeats else shares

    def _used(self, rows: slice) -> tuple[np.ndarray, np.ndarray]:
        """Return which documents have words, and where these begin."""
        pointers = self.counts.indptr[rows.start : rows.stop + 1]
        used = np.flatnonzero(np.diff(pointers))
        return used, pointers[used] - pointers[0]

    def _blocks(self) -> Iterator[tuple[slice, slice]]:
        return blocks_of(self.counts, BLOCK // self.shares.shape[0])


def _precision(counts: sparse.csr_array) -> np.dtype[Any]:
    """Return the precision that shares are kept in."""
    return np.dtype(np.float32 if counts.data.max(initial=0) <= SINGLE_PRECISION else np.float64)


def blocks_of(counts: sparse.csr_array, n_entries: int) -> Iterator[tuple[slice, slice]]:
    """Yield documents with about so many entries, and these; documents without words are in none or any."""
    pointers, start = counts.indptr, 0
    while start < pointers.size - 1:
        stop = int(np.searchsorted(pointers, pointers[start] + max(n_entries, 1), side="right")) - 1
        stop = max(stop, start + 1)
        if pointers[stop] > pointers[start]:
            yield slice(start, stop), slice(int(pointers[start]), int(pointers[stop]))
        start = stop


def topic_mixtures(counts: sparse.csr_array, topics: np.ndarray, prior: np.ndarray, n_steps: int) -> np.ndarray:
    """Return the expected mixture of topics (documents, k) of each document, rows of sum one, by collapsed steps."""
    mixtures = np.tile(prior / prior.sum(), (counts.shape[0], 1))
    for rows, _ in blocks_of(counts, KEPT // prior.size):
        mixtures[rows] = SharedWords(counts[rows], prior.size).started(topics, prior, n_steps).mixtures(prior)
    return mixtures
