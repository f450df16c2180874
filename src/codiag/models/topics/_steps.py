"""Collapsed variational steps that start from the topics of moments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from codiag._arrays import is_dask
from codiag.models.base import RowSums, sum_over_rows
from codiag.models.topics._posteriors import (
    PriorSums,
    TopicCounts,
    WordPosteriors,
    estimated_prior,
    estimated_word_prior,
    topic_posteriors,
)
from codiag.models.topics._word_moments import counts_of_block

WORD_PRIOR = 0.1
"""Initial Dirichlet parameter of topics."""
TOLERANCE = 1e-3
"""Steps end once the mean log-probability of a word, given all others, changes by less in two steps; divided by one
minus the momentum, which makes steps longer."""
MAX_POSTERIOR_BYTES = 2**30
"""Largest size of posteriors, in double precision, that are kept between steps; those of larger corpora are computed
again in every step."""


class Start(NamedTuple):
    """The initial state of steps."""

    topics: np.ndarray  # (k, words)
    prior: np.ndarray  # (k,): Dirichlet parameters of mixtures
    has_fixed_sum: bool  # whether the sum of these parameters is kept

    @classmethod
    def of(cls, topics: np.ndarray, prior: np.ndarray, mean: np.ndarray, *, has_fixed_sum: bool) -> Start:
        """Return topics by moments, mixed with one percent of the mean of documents, so that no probability is zero."""
        return cls(0.99 * topics + 0.01 * mean, (prior + prior.mean()) / 2, has_fixed_sum)

    def posteriors(self, counts: sparse.csr_array) -> WordPosteriors:
        """Return the posteriors of documents for these topics."""
        return WordPosteriors(counts, self.prior.size).initialized(self.topics, self.prior)


@dataclass(frozen=True, eq=False)
class StepSums(RowSums):
    """Sums over documents after a step."""

    words: np.ndarray  # (k, words): numbers of words of topics
    mixtures: np.ndarray  # (k,): of the expected mixtures
    likelihood: float  # log-probability of words, each given all others
    n_words: float
    n_documents: int
    priors: PriorSums | float  # zero if priors are not to be estimated


SumsAfter = Callable[[Sequence[TopicCounts], bool], StepSums]
"""From the states before each step, and whether priors are to be estimated, to sums over documents after the steps."""


class Refined(NamedTuple):
    """Topics after steps: their final state, the mean mixture, and the number of steps."""

    counts: TopicCounts
    weights: np.ndarray
    n_steps: int


def refined(documents: Any, start: Start, n_steps: int) -> Refined:
    """Return topics after `n_steps` steps, or fewer if they converge.

    A dask array is read once for each step. Posteriors are not kept then, but computed again from the states before all
    steps so far, so that memory does not grow with documents; and so they are if there would be too many of them.
    """
    n_rows = None
    if not is_dask(documents):
        n_bytes = 8 * start.prior.size * documents.nnz
        if n_bytes <= MAX_POSTERIOR_BYTES:
            return _refined(_in_memory(documents, start), start, n_steps)
        n_rows = max(1, MAX_POSTERIOR_BYTES * documents.shape[0] // (8 * n_bytes))

    def after(history: Sequence[TopicCounts], with_priors: bool) -> StepSums:
        return sum_over_rows(_sums_of_block, documents, start, history, with_priors, n_rows=n_rows)

    return _refined(after, start, n_steps)


def _in_memory(counts: sparse.csr_array, start: Start) -> SumsAfter:
    posteriors = start.posteriors(counts)

    def after(history: Sequence[TopicCounts], with_priors: bool) -> StepSums:
        likelihood = posteriors.step(history[-1]) if history else 0.0
        return _sums(posteriors, likelihood, history[-1].prior if history else start.prior, with_priors)

    return after


def _refined(after: SumsAfter, start: Start, n_steps: int) -> Refined:
    prior, word_prior, means = start.prior, WORD_PRIOR, [-np.inf, -np.inf]
    history: list[TopicCounts] = []
    sums = after(history, False)
    before = sums.words
    for step in range(1, n_steps + 1):
        words = np.maximum(sums.words + WordPosteriors.max_momentum * (sums.words - before), 0)
        history.append(TopicCounts(words, prior, word_prior))
        before = sums.words
        with_priors = step & (step - 1) == 0  # after 1, 2, 4, 8, ... steps: priors converge with the posteriors
        sums = after(history, with_priors)
        if isinstance(sums.priors, PriorSums):
            prior = estimated_prior(sums.priors, prior)
            prior = prior * (start.prior.sum() / prior.sum()) if start.has_fixed_sum else prior
            word_prior = estimated_word_prior(sums.priors.log_absent, sums.words, word_prior)
        means.append(sums.likelihood / max(sums.n_words, 1))
        tolerance = TOLERANCE / (1 - float(WordPosteriors.momentum_of(sums.n_words / max(sums.n_documents, 1))))
        if not with_priors and np.all(np.abs(np.diff(means[-3:])) < tolerance):
            break
    return Refined(TopicCounts(sums.words, prior, word_prior), sums.mixtures / sums.n_documents, len(history))


def _sums_of_block(block: Any, start: Start, history: Sequence[TopicCounts], with_priors: bool) -> StepSums:
    posteriors = start.posteriors(counts_of_block(block, start.topics.shape[1]))
    likelihood, prior = 0.0, start.prior
    for state in history:
        likelihood, prior = posteriors.step(state), state.prior
    return _sums(posteriors, likelihood, prior, with_priors)


def _sums(posteriors: WordPosteriors, likelihood: float, prior: np.ndarray, with_priors: bool) -> StepSums:
    words, weights, lengths = posteriors.words(), posteriors.weights(prior), posteriors.lengths
    priors = posteriors.prior_sums() if with_priors else 0.0
    return StepSums(words, weights, likelihood, float(lengths.sum()), lengths.size, priors)


@dataclass(frozen=True, eq=False)
class SingleTopicSums(RowSums):
    """Expected numbers of words (k, words) and of documents (k,) of topics, if documents have a single one."""

    words: np.ndarray
    documents: np.ndarray


def single_topic_sums(block: Any, topics: np.ndarray, weights: np.ndarray) -> SingleTopicSums:
    """Return the sums of a step of expectation maximization over a block of documents."""
    counts = counts_of_block(block, topics.shape[1])
    posteriors = topic_posteriors(counts, topics, weights)
    return SingleTopicSums((counts.T @ posteriors).T, posteriors.sum(axis=0))
