"""Collapsed variational steps that start from the topics of moments, and the bias of the topics that they end with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
from scipy import sparse

from codiag.models.base import Totals, nearest_order
from codiag.models.topics._moments import Topics
from codiag.models.topics._posteriors import (
    DocumentPosteriors,
    PriorSums,
    TopicCounts,
    WordPosteriors,
    estimated_prior,
    estimated_word_prior,
)
from codiag.models.topics._word_moments import Documents, counts_of
from codiag.parts import Parts, as_parts, is_matrix

WORD_PRIOR = 0.1
"""Initial Dirichlet parameter of topics."""
MEAN_SHARE = 0.01
"""Weight of the mean of all documents in the initial topics; topics by moments give some words probability zero."""
TOLERANCE = 1e-3
"""Steps end once the mean log-probability of a word, given all others, changes by less in two steps; divided by one
minus the momentum, which makes steps longer."""
MAX_POSTERIOR_BYTES = 2**30
"""Largest size of posteriors that are kept between steps; those of larger corpora are computed again in every step."""
N_SIMULATED = 5
"""Number of simulated corpora from which the bias of steps is estimated."""
MAX_SIMULATED_DOCUMENTS, MAX_SIMULATED_WORDS = 20_000, 1000
"""Largest number of documents of a simulated corpus, and of words of a document; the bias is smaller in longer ones."""
OF_MOMENTS = frozenset({"components", "weights"})
"""Parameters that moments estimate without steps."""

Posteriors = WordPosteriors | DocumentPosteriors


class Start(NamedTuple):
    """The initial state of steps."""

    kind: type[Posteriors]
    topics: np.ndarray  # (k, words)
    prior: np.ndarray  # (k,): Dirichlet parameters of mixtures
    has_fixed_sum: bool  # whether the sum of these parameters is kept

    @classmethod
    def of(
        cls, kind: type[Posteriors], topics: np.ndarray, prior: np.ndarray, mean: np.ndarray, *, has_fixed_sum: bool
    ) -> Start:
        """Return topics by moments, mixed with the mean of documents so that no probability is zero."""
        return cls(kind, (1 - MEAN_SHARE) * topics + MEAN_SHARE * mean, (prior + prior.mean()) / 2, has_fixed_sum)

    def posteriors(self, counts: sparse.csr_array) -> Posteriors:
        """Return the posteriors of documents for these topics."""
        return self.kind(counts, self.prior.size).initialized(self.topics, self.prior)


class StepSums(NamedTuple):
    """Sums over documents after a step."""

    words: np.ndarray  # (k, words): numbers of words of topics
    documents: np.ndarray  # (k,): numbers of documents
    likelihood: float  # log-probability of words, each given all others
    n_words: float
    n_documents: int


SumsAfter = Callable[[Sequence[TopicCounts], bool], tuple[StepSums, PriorSums | None]]
"""From the states before each step, and whether priors are to be estimated, to sums over documents after the steps."""


class Polished(NamedTuple):
    """Topics after steps: their final state, the mean mixture, and the number of steps."""

    counts: TopicCounts
    weights: np.ndarray
    n_steps: int


def polished(documents: Documents, start: Start, n_steps: int, *, settle: bool = True) -> Polished:
    """Return topics after `n_steps` steps, or fewer if `settle` and they converge.

    Documents in parts are read once for each step. Posteriors are not kept then, but computed again from the states
    before all steps so far, so that memory does not grow with documents.
    """
    if isinstance(documents, Parts):
        parts = documents
    else:
        n_bytes = start.kind.n_bytes(documents, start.prior.size)
        if n_bytes <= MAX_POSTERIOR_BYTES:
            return _polished(_in_memory(documents, start), start, n_steps, settle)
        parts = _as_parts(documents, max(1, MAX_POSTERIOR_BYTES * documents.shape[0] // (8 * n_bytes)))

    def after(history: Sequence[TopicCounts], with_priors: bool) -> tuple[StepSums, PriorSums | None]:
        return _named(parts.reduce(_sums_of_part, start, history, with_priors))

    return _polished(after, start, n_steps, settle)


def _in_memory(counts: sparse.csr_array, start: Start) -> SumsAfter:
    posteriors = start.posteriors(counts)

    def after(history: Sequence[TopicCounts], with_priors: bool) -> tuple[StepSums, PriorSums | None]:
        likelihood = posteriors.step(history[-1]) if history else 0.0
        return _named(_sums(posteriors, likelihood, history[-1].prior if history else start.prior, with_priors))

    return after


def _polished(after: SumsAfter, start: Start, n_steps: int, settle: bool) -> Polished:
    prior, word_prior, means = start.prior, WORD_PRIOR, [-np.inf, -np.inf]
    history: list[TopicCounts] = []
    sums, _ = after(history, False)
    before = sums.words
    for step in range(1, n_steps + 1):
        words = np.maximum(sums.words + start.kind.max_momentum * (sums.words - before), 0)
        history.append(TopicCounts(words, sums.documents, prior, word_prior))
        before = sums.words
        with_priors = step & (step - 1) == 0  # after 1, 2, 4, 8, ... steps: priors converge with the posteriors
        sums, prior_sums = after(history, with_priors)
        if prior_sums is not None:
            prior = estimated_prior(prior_sums, prior)
            prior = prior * (start.prior.sum() / prior.sum()) if start.has_fixed_sum else prior
            word_prior = estimated_word_prior(prior_sums.log_absent, sums.words, word_prior)
        means.append(sums.likelihood / max(sums.n_words, 1))
        tolerance = TOLERANCE / (1 - float(start.kind.momentum_of(sums.n_words / max(sums.n_documents, 1))))
        if settle and not with_priors and np.all(np.abs(np.diff(means[-3:])) < tolerance):
            break
    counts = TopicCounts(sums.words, sums.documents, prior, word_prior)
    return Polished(counts, sums.documents / sums.n_documents, len(history))


def _sums_of_part(part: Any, start: Start, history: Sequence[TopicCounts], with_priors: bool) -> Totals:
    posteriors = start.posteriors(counts_of(part, start.topics.shape[1]))
    likelihood, prior = 0.0, start.prior
    for state in history:
        likelihood, prior = posteriors.step(state), state.prior
    return _sums(posteriors, likelihood, prior, with_priors)


def _sums(posteriors: Posteriors, likelihood: float, prior: np.ndarray, with_priors: bool) -> Totals:
    lengths = posteriors.lengths
    sums = StepSums(posteriors.words(), posteriors.weights(prior), likelihood, float(lengths.sum()), lengths.size)
    return Totals(*sums, *(posteriors.prior_sums() if with_priors else ()))


def _named(totals: Totals) -> tuple[StepSums, PriorSums | None]:
    n = len(StepSums._fields)
    return StepSums(*totals.values[:n]), PriorSums(*totals.values[n:]) if totals.values[n:] else None


def _as_parts(counts: sparse.csr_array, n_rows: int) -> Parts:
    """Return documents in parts of `n_rows` documents."""

    def rows() -> Iterator[sparse.csr_array]:
        for start in range(0, counts.shape[0], n_rows):
            yield counts[start : start + n_rows]

    return cast("Parts", as_parts(rows, is_matrix))


class Estimated(NamedTuple):
    """Topics by moments alone, which have no bias if `alpha_0` is right, and after steps."""

    moments: Topics
    steps: Topics


def lengths_of(documents: Documents) -> np.ndarray:
    """Return the numbers of documents of 0, 1, 2, ... words; the last is that of `MAX_SIMULATED_WORDS` or more."""
    totals = documents.reduce(_lengths_of_part) if isinstance(documents, Parts) else _lengths(documents)
    return np.asarray(totals.values[0])


def _lengths(counts: sparse.csr_array) -> Totals:
    lengths = np.minimum(np.rint(np.asarray(counts.sum(axis=1)).ravel()), MAX_SIMULATED_WORDS)
    return Totals(np.bincount(lengths.astype(np.intp), minlength=MAX_SIMULATED_WORDS + 1))


def _lengths_of_part(part: Any) -> Totals:
    return _lengths(counts_of(part))


def simulated_counts(topics: Topics, numbers: np.ndarray, rng: np.random.Generator) -> sparse.csr_array:
    """Return documents (documents, words) drawn from topics: `numbers` of each length, or a sample of these."""
    lengths = np.repeat(np.arange(numbers.size), numbers)
    if lengths.size > MAX_SIMULATED_DOCUMENTS:
        lengths = rng.choice(lengths, MAX_SIMULATED_DOCUMENTS, replace=False)
    of_topics = rng.multinomial(lengths, rng.dirichlet(topics.doc_topic_prior, lengths.size))
    rows, words = [], []
    for number, probabilities in zip(of_topics.T, topics.components, strict=True):
        rows.append(np.repeat(np.arange(lengths.size), number))
        ladder = np.cumsum(probabilities)
        words.append(np.searchsorted(ladder[:-1] / ladder[-1], rng.random(rows[-1].size), side="right"))
    entries = np.concatenate(rows), np.concatenate(words)
    shape = lengths.size, topics.components.shape[1]
    return sparse.coo_array((np.ones(entries[0].size), entries), shape=shape).tocsr()


def with_bias(
    errors: dict[str, Any], estimate: Estimated, simulated: Sequence[Estimated], share: float = 1.0
) -> dict[str, Any]:
    """Return root mean square errors of topics after steps, whose estimates have a bias that more data does not remove.

    The squared bias is the larger of two unbiased estimates: the squared error of steps on corpora simulated from the
    topics (parametric bootstrap), and the squared difference between steps and moments, each minus the variance that
    simulated corpora show. These have a `share` of the documents. Without simulated corpora errors are NaN.
    """
    if not simulated:
        return {name: np.full(np.shape(error), np.nan)[()] for name, error in errors.items()}
    start = estimate.moments.reordered(nearest_order(estimate.steps, estimate.moments))
    pairs = [[topics.reordered(nearest_order(estimate.steps, topics)) for topics in pair] for pair in simulated]
    total = {}
    for name, error in errors.items():
        value = getattr(estimate.steps, name)
        moments, steps = (
            np.stack([np.asarray(getattr(topics, name)) for topics in side]) for side in zip(*pairs, strict=True)
        )
        squared_bias = (steps.mean(axis=0) - value) ** 2 - np.var(steps, axis=0, ddof=1) / len(steps)
        if name in OF_MOMENTS:
            difference = (value - getattr(start, name)) ** 2 - share * np.var(steps - moments, axis=0, ddof=1)
            squared_bias = np.maximum(squared_bias, difference)
        total[name] = np.sqrt(np.asarray(error) ** 2 + np.maximum(squared_bias, 0))[()]
    return total
