"""Parameters of Dirichlet distributions from numbers of words that are known in expectation.

Documents about one topic each, shared out to topics by collapsed variational steps.

Topics after collapsed variational steps that begin with those of moments, of one matrix or of parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy import sparse
from scipy.special import gammaln, logsumexp

from codiag.models.frame import Totals
from codiag.models.topics._likelihood import topic_posteriors
from codiag.models.topics._parts import counts_of
from codiag.models.topics._priors import (
    Presence,
    estimated_prior,
    estimated_word_prior,
    numbers_of,
    random_numbers_of,
)
from codiag.models.topics._shares import BLOCK, MOST_SURE, SharedWords, TopicCounts, blocks_of
from codiag.parts import Parts, as_parts, is_matrix


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


WORD_PRIOR = 0.1
"""The parameter of topics that steps begin with."""
MEAN_SHARE = 0.01
"""The share of the mean of all words in the topics that steps begin with: moments leave words out altogether."""
TOLERANCE = 1e-3
"""Steps end once the mean log-probability of a word, given all others, changes by less, twice in a row; or by as much
more as momentum makes steps longer."""
MOST_BYTES = 2**30
"""What is kept of shares from step to step; of larger corpora they are found again in each step."""

Shared = SharedWords | SharedDocuments
"""What is shared out to topics: words, or whole documents."""


class Start(NamedTuple):
    """What steps begin with."""

    kind: type[Shared]
    topics: np.ndarray  # (k, words)
    prior: np.ndarray  # (k,): parameters of mixtures
    fixed_total: bool  # whether these keep their sum

    @classmethod
    def of(
        cls, kind: type[Shared], topics: np.ndarray, prior: np.ndarray, mean: np.ndarray, *, fixed_total: bool
    ) -> Start:
        """Begin with topics by moments, softened: neither words nor topics are left out for good."""
        even = (prior + prior.mean()) / 2
        return cls(kind, (1 - MEAN_SHARE) * topics + MEAN_SHARE * mean, even, fixed_total)

    def shared(self, counts: sparse.csr_array) -> Shared:
        """Return documents shared out by these topics."""
        return self.kind(counts, self.prior.size).started(self.topics, self.prior)


class StepSums(NamedTuple):
    """Sums over documents after a step."""

    words: np.ndarray  # (k, words): how many words belong to topics
    documents: np.ndarray  # (k,): how many documents
    likelihood: float  # log-probability of words, each given all others
    n_words: float
    n_documents: int


SumsAfter = Callable[[Sequence[TopicCounts], bool], tuple[StepSums, Presence | None]]
"""What there is after steps that read the given counts: sums over documents, those for priors only where wanted."""


class Polished(NamedTuple):
    """Topics after steps: their counts and priors, the mean mixture, and the number of steps."""

    counts: TopicCounts
    weights: np.ndarray
    n_steps: int


def polished_counts(counts: sparse.csr_array, start: Start, n_steps: int, *, settle: bool = True) -> Polished:
    """Return topics after steps on documents that are at hand: so many, or until they settle."""
    n_bytes = start.kind.bytes_kept(counts, start.prior.size)
    if n_bytes > MOST_BYTES:
        n_each = max(1, MOST_BYTES * counts.shape[0] // (8 * n_bytes))
        parts = as_parts(lambda: _rows(counts, n_each), is_matrix)
        if parts is not None:
            return polished_parts(parts, start, n_steps, settle=settle)
    shared = start.shared(counts)

    def after(history: Sequence[TopicCounts], wanted: bool) -> tuple[StepSums, Presence | None]:
        likelihood = shared.step(history[-1]) if history else 0.0
        return _named(_sums(shared, likelihood, history[-1].prior if history else start.prior, wanted))

    return _polished(after, start, n_steps, settle)


def polished_parts(parts: Parts, start: Start, n_steps: int, *, settle: bool = True) -> Polished:
    """Return the same of documents in parts, which are read once for each step.

    Shares of words are not kept, but found again from all counts so far: memory does not grow with documents.
    """

    def after(history: Sequence[TopicCounts], wanted: bool) -> tuple[StepSums, Presence | None]:
        return _named(parts.reduce(_sums_of_part, start, history, wanted))

    return _polished(after, start, n_steps, settle)


def _polished(after: SumsAfter, start: Start, n_steps: int, settle: bool) -> Polished:
    prior, word_prior, means = start.prior, WORD_PRIOR, [-np.inf, -np.inf]
    history: list[TopicCounts] = []
    sums, found = after(history, False)
    before = sums.words
    for step in range(1, n_steps + 1):
        words = np.maximum(sums.words + start.kind.most_momentum * (sums.words - before), 0)
        history.append(TopicCounts(words, sums.documents, prior, word_prior))
        before = sums.words
        due = step & (step - 1) == 0  # after 1, 2, 4, 8, ... steps: priors settle with the shares they come from
        sums, found = after(history, due)
        if found is not None:
            prior = _with_total(estimated_prior(found, prior), start)
            word_prior = estimated_word_prior(found.absent, sums.words, word_prior)
        means.append(sums.likelihood / max(sums.n_words, 1))
        tolerance = TOLERANCE / (1 - float(start.kind.momentum_of(sums.n_words / max(sums.n_documents, 1))))
        if settle and not due and np.all(np.abs(np.diff(means[-3:])) < tolerance):
            break
    counts = TopicCounts(sums.words, sums.documents, prior, word_prior)
    return Polished(counts, sums.documents / sums.n_documents, len(history))


def _with_total(prior: np.ndarray, start: Start) -> np.ndarray:
    return prior * (start.prior.sum() / prior.sum()) if start.fixed_total else prior


def _sums_of_part(part: Any, start: Start, history: Sequence[TopicCounts], wanted: bool) -> Totals:
    shared = start.shared(counts_of(part, start.topics.shape[1]))
    likelihood, prior = 0.0, start.prior
    for known in history:
        likelihood, prior = shared.step(known), known.prior
    return _sums(shared, likelihood, prior, wanted)


def _sums(shared: Shared, likelihood: float, prior: np.ndarray, wanted: bool) -> Totals:
    lengths = shared.lengths
    found = StepSums(shared.words(), shared.weights(prior), likelihood, float(lengths.sum()), lengths.size)
    return Totals(*found, *(shared.presence() if wanted else ()))


def _named(totals: Totals) -> tuple[StepSums, Presence | None]:
    n = len(StepSums._fields)
    return StepSums(*totals.values[:n]), Presence(*totals.values[n:]) if totals.values[n:] else None


def _rows(counts: sparse.csr_array, n_each: int) -> Iterator[sparse.csr_array]:
    """Yield documents, some at a time."""
    for start in range(0, counts.shape[0], n_each):
        yield counts[start : start + n_each]
