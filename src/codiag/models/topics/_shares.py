"""Words of documents, shared out to topics by collapsed variational steps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy import sparse

from codiag.models.topics._priors import Presence, numbers_of, random_numbers_of

MOMENTUM = 0.5
"""The multiple of the last change that numbers of words are extrapolated by. Slow directions, along which a step moves
by little less than the one before, converge 1 / (1 - m) times as fast; no direction diverges whose factor from step to
step is between -1 / (1 + 2 m) and 1. Where n words of a document follow each other, there is a factor of -1 / (n - 1),
so that m must be less than (n - 2) / 2; as they may be few of its words, it is at most a sixteenth of that for all."""
N_STARTING_STEPS = 7
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
    r"""The share of every topic in every word of every document, (entries, k), and sums of them over documents.

    A collapsed variational step to zeroth order (Asuncion et al., 2009) makes the share of topic k in an entry of
    document d and word w proportional to

    .. math:: (n_{dk} - g + \alpha_k)\, \frac{n_{wk} - g + \beta}{n_k - g + V \beta},

    with n the numbers of words before the step and g the share of the entry itself, of which one word is left out. The
    sum over topics, over the length of the document less one plus all :math:`\alpha`, is the probability of that word
    given all others. Numbers may be extrapolated from the last two steps; those of all other words are then kept from
    becoming negative.

    Parameters
    ----------
    counts : csr_array of shape (documents, words)
        Read where it is.
    k : int
        Number of topics.
    """

    most_momentum: ClassVar[float] = MOMENTUM

    def __init__(self, counts: sparse.csr_array, k: int) -> None:
        self.counts = counts
        self.dtype = _precision(counts)
        self.numbers = counts.data.astype(self.dtype)
        self.fractions = np.minimum(self.numbers, 1)[:, None] if np.any(counts.data < 1) else None
        self.lengths = np.asarray(counts.sum(axis=1)).ravel()
        self.shares = np.zeros((counts.nnz, k), self.dtype)
        self.mixed = np.zeros((counts.shape[0], k), self.dtype)  # numbers of words of topics in documents
        self.mixed_before = self.mixed
        self.momentum = self.momentum_of(self.lengths).astype(self.dtype)[:, None]
        self.blocks = list(blocks_of(counts, BLOCK // k))
        self.height = max((entries.stop - entries.start for _, entries in self.blocks), default=0)
        self.repeats = np.diff(counts.indptr)
        large = list(blocks_of(counts, max(4 * counts.shape[1], BLOCK // k)))  # next to which sums by word are small
        most = max((entries.stop - entries.start for _, entries in large), default=0)
        places = np.arange(most + 1, dtype=counts.indices.dtype)
        self.summing = [_Summing.of(counts, self.numbers, places, *block) for block in large]

    @classmethod
    def momentum_of(cls, lengths: np.ndarray | float) -> np.ndarray:
        """Return the momentum of documents of so many words."""
        return np.clip((np.asarray(lengths) - 2) / 32, 0, cls.most_momentum)

    @staticmethod
    def bytes_kept(counts: sparse.csr_array, k: int) -> int:
        """Return how much memory shares take."""
        return int(_precision(counts).itemsize * k * counts.nnz)

    def started(self, topics: np.ndarray, prior: np.ndarray, n_steps: int = N_STARTING_STEPS) -> Self:
        """Share out words by topics (k, words) that do not change, and return this."""
        inside = np.ascontiguousarray(topics.T, dtype=self.dtype)
        least = self._filled(prior)
        for step in range(n_steps):
            before = self._ahead(prior)
            for rows, entries in self.blocks:
                raw = np.repeat(before[rows], self.repeats[rows], axis=0)
                raw -= self._own(entries)
                np.maximum(raw, least[: len(raw)], out=raw)
                raw *= np.take(inside, self.counts.indices[entries], axis=0, mode="clip")
                self._replace(raw, entries)
            self._mix()
            if step == 0:  # where there were no shares before, there is nothing to extrapolate
                self.mixed_before = self.mixed
        self.mixed_before = self.mixed
        return self

    def step(self, known: TopicCounts) -> float:
        """Share out words anew, and return the log-probability of words, each given all others."""
        before = self._ahead(known.prior)
        words = np.ascontiguousarray((known.words + known.word_prior).T, dtype=self.dtype)
        sums = self._filled((known.words + known.word_prior).sum(axis=1))
        least, least_words = self._filled(known.prior), self._filled(known.word_prior)
        found = -float(self.lengths @ np.log(np.maximum(self.lengths - 1, 0) + np.sum(known.prior)))
        for rows, entries in self.blocks:
            own, n = self._own(entries), entries.stop - entries.start
            raw = np.repeat(before[rows], self.repeats[rows], axis=0)
            raw -= own
            np.maximum(raw, least[:n], out=raw)
            factor = np.take(words, self.counts.indices[entries], axis=0, mode="clip")
            factor -= own
            np.maximum(factor, least_words[:n], out=factor)
            raw *= factor
            np.subtract(sums[:n], own, out=factor)
            raw /= factor
            found += self._replace(raw, entries)
        self._mix()
        return found

    def words(self) -> np.ndarray:
        """Return how many words belong to topics, (k, words)."""
        found = np.zeros(self.counts.shape[1:] + self.mixed.shape[1:])
        for block in self.summing:
            found += block.by_word @ self.shares[block.entries]
        return found.T

    def weights(self, prior: np.ndarray) -> np.ndarray:
        """Return the expected mixtures of topics, (k,), summed over documents."""
        scale = 1 / (self.lengths + prior.sum())
        return scale @ self.mixed.astype(np.float64) + prior * scale.sum()

    def mixtures(self, prior: np.ndarray) -> np.ndarray:
        """Return the expected mixture of topics (documents, k) of each document, rows of sum one."""
        raw = self.mixed.astype(np.float64) + prior
        return raw / raw.sum(axis=1, keepdims=True)

    def presence(self) -> Presence:
        """Return what the priors are estimated from: how often topics are there, as if shares were independent."""
        absent, words = np.zeros(self.mixed.shape), np.zeros(self.counts.shape[1:] + self.mixed.shape[1:])
        for block in self.summing:
            logs = np.log(1 - np.minimum(self.shares[block.entries], self.dtype.type(MOST_SURE)))
            absent[block.rows] = block.by_document @ logs
            words += block.by_word @ logs
        return Presence(random_numbers_of(absent.T, self.mixed.T), numbers_of(self.lengths[None]), words.T)

    def _ahead(self, prior: np.ndarray) -> np.ndarray:
        """Return numbers of words of topics in documents, extrapolated, and what the prior adds."""
        found: np.ndarray = (self.mixed + self.momentum * (self.mixed - self.mixed_before) + prior).astype(self.dtype)
        return found

    def _filled(self, row: np.ndarray | float) -> np.ndarray:
        """Return a row as often as a block has rows: faster than if it were broadcast."""
        return np.full((self.height, self.mixed.shape[1]), row, self.dtype)

    def _mix(self) -> None:
        """Count words of topics in documents anew."""
        self.mixed_before, self.mixed = self.mixed, np.zeros_like(self.mixed)
        for block in self.summing:
            self.mixed[block.rows] = block.by_document @ self.shares[block.entries]

    def _replace(self, raw: np.ndarray, entries: slice) -> float:
        """Make raw numbers the shares of some entries, and return the logarithms of what they sum to, summed."""
        sums = np.maximum(raw @ np.ones(raw.shape[1], self.dtype), self.dtype.type(LEAST))
        np.multiply(raw, (1 / sums)[:, None], out=self.shares[entries])
        return float(self.counts.data[entries] @ np.log(sums))

    def _own(self, entries: slice) -> np.ndarray:
        """Return the shares of one word of every entry, or of less where there is less than one."""
        shares = self.shares[entries]
        return shares if self.fractions is None else shares * self.fractions[entries]


class _Summing(NamedTuple):
    """How values (entries, k) of some documents are summed, as often as words occur."""

    rows: slice
    entries: slice
    by_document: sparse.csr_array  # (documents, entries)
    by_word: sparse.csc_array  # (words, entries)

    @classmethod
    def of(
        cls, counts: sparse.csr_array, numbers: np.ndarray, places: np.ndarray, rows: slice, entries: slice
    ) -> _Summing:
        """Sum so many words of each entry; `places` are 0, 1, ..., and shared by all."""
        starts, indices = counts.indptr[rows.start : rows.stop + 1] - entries.start, counts.indices[entries]
        own, n = numbers[entries], indices.size
        by_document = sparse.csr_array((own, places[:n], starts), (starts.size - 1, n))
        by_word = sparse.csc_array((own, indices, places[: n + 1]), (counts.shape[1], n))
        return cls(rows, entries, by_document, by_word)


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
