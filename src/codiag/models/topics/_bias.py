"""The bias of topics after collapsed steps, from corpora that are simulated from them, and error bars that hold it.

Steps take shares of words for independent, and their estimates have a bias that more documents do not remove. The same
estimate of corpora whose truth is known, since they were drawn from the estimated model, shows it (parametric
bootstrap).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from codiag.models.frame import Totals, nearest_order
from codiag.models.topics._moments import Topics
from codiag.models.topics._parts import counts_of
from codiag.parts import Parts

N_CORPORA = 5
"""Corpora that are simulated; their own scatter is taken off the bias that they show."""
MOST_DOCUMENTS, MOST_WORDS = 20_000, 1000
"""The most documents of a simulated corpus, and words of a document of it: the bias of longer documents is smaller."""
BY_MOMENTS = frozenset({"components", "weights"})
"""What moments estimate, too."""


def lengths_of(documents: sparse.csr_array | Parts) -> np.ndarray:
    """Return how many documents have 0, 1, 2, ... words, the last of them as many or more."""
    found = documents.reduce(_lengths) if isinstance(documents, Parts) else _lengths(documents)
    return np.asarray(found.values[0])


def _lengths(part: Any) -> Totals:
    lengths = np.rint(np.asarray(counts_of(part).sum(axis=1)).ravel())
    return Totals(np.bincount(np.minimum(lengths, MOST_WORDS).astype(np.intp), minlength=MOST_WORDS + 1))


def simulated_counts(found: Topics, numbers: np.ndarray, rng: np.random.Generator) -> sparse.csr_array:
    """Return documents (documents, words) of topics, as many of each length as given, or as the most are in all."""
    lengths = np.repeat(np.arange(numbers.size), numbers)
    if lengths.size > MOST_DOCUMENTS:
        lengths = rng.choice(lengths, MOST_DOCUMENTS, replace=False)
    of_topics = rng.multinomial(lengths, rng.dirichlet(found.doc_topic_prior, lengths.size))
    rows, words = [], []
    for topic, probabilities in zip(of_topics.T, found.components, strict=True):
        rows.append(np.repeat(np.arange(lengths.size), topic))
        ladder = np.cumsum(probabilities)
        words.append(np.searchsorted(ladder[:-1] / ladder[-1], rng.random(rows[-1].size), side="right"))
    places = np.concatenate(rows), np.concatenate(words)
    return sparse.coo_array((np.ones(places[0].size), places), shape=(lengths.size, found.components.shape[1])).tocsr()


class Estimated(NamedTuple):
    """Topics by moments alone, which have no bias where `alpha_0` is right, and after steps."""

    moments: Topics
    steps: Topics


def with_bias(
    errors: dict[str, Any], found: Estimated, simulated: Sequence[Estimated], share: float = 1.0
) -> dict[str, Any]:
    """Return standard errors of what steps have found, root mean squares of which their bias is a part.

    Its square is the larger of two that are known without bias: by how much the steps miss what corpora are simulated
    from, and by how much they differ from moments, beyond what these corpora show of the scatter of either; these have
    a `share` of the documents. Without such corpora it is not known, and errors are NaN.
    """
    if not simulated:
        return {name: np.full(np.shape(error), np.nan)[()] for name, error in errors.items()}
    start = found.moments.reordered(nearest_order(found.steps, found.moments))
    pairs = [[one.reordered(nearest_order(found.steps, one)) for one in pair] for pair in simulated]
    total = {}
    for name, error in errors.items():
        value = getattr(found.steps, name)
        moments, steps = (
            np.stack([np.asarray(getattr(one, name)) for one in side]) for side in zip(*pairs, strict=True)
        )
        missed = (steps.mean(axis=0) - value) ** 2 - np.var(steps, axis=0, ddof=1) / len(steps)
        if name in BY_MOMENTS:
            apart = (value - getattr(start, name)) ** 2 - share * np.var(steps - moments, axis=0, ddof=1)
            missed = np.maximum(missed, apart)
        total[name] = np.sqrt(np.asarray(error) ** 2 + np.maximum(missed, 0))[()]
    return total
