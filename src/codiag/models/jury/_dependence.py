r"""What judges have in common beyond the states of items: correlations of votes, effective votes, and exact copies.

A vote of judge i on item t is a vector with a one at its label. From it the distribution that is expected of this judge
is subtracted, given the state of the item, which is its class and difficulty, or its quality. The correlation of two
judges is the sum of products of what remains over the items they share, divided by the geometric mean of the sums of
expected squares; squares as they are would be small where all votes happen to be right, and correlations of few items
too large. Given the states it is zero for judges who vote independently, and :math:`\rho^2` for two who follow a common
answer with probability :math:`\rho`.

A vote carries the weight :math:`1 / \sum_j r_{ij}` over the votes j on the same item, with :math:`r_{ii} = 1`. The sum
of these weights is the number of independent votes with the same variance of their mean (Kish 1965), if all
correlations are equal: :math:`m / (1 + (m - 1) r)`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from codiag.models.crowd import Votes

UNLIKELY = 0.01
"""Probability that some pair is taken for correlated, or for copies, although all judges are independent."""


class Pairs(NamedTuple):
    """Pairs of judges: their indices (the smaller first), correlations, and numbers of shared items."""

    first: np.ndarray
    second: np.ndarray
    values: np.ndarray
    shared: np.ndarray

    def among(self, workers: np.ndarray) -> np.ndarray:
        """Return a symmetric matrix of some judges: one on the diagonal, NaN for pairs that are not compared."""
        places = np.full(max(self.first.max(initial=0), self.second.max(initial=0), workers.max(initial=0)) + 1, -1)
        places[workers] = np.arange(workers.size)
        first, second = places[self.first], places[self.second]
        known = (first >= 0) & (second >= 0)
        matrix = np.full((workers.size, workers.size), np.nan)
        matrix[first[known], second[known]] = matrix[second[known], first[known]] = self.values[known]
        np.fill_diagonal(matrix, 1.0)
        return matrix


def views_of(cluster: np.ndarray) -> np.ndarray:
    """Return the view that each judge is part of: a cluster, by its number, or the judge alone, from n_workers on."""
    return np.where(cluster >= 0, cluster, cluster.size + np.arange(cluster.size))


def own_frequencies(votes: Votes) -> np.ndarray:
    """Return what is expected of every vote (votes, classes) if no class is known: the labels of its judge."""
    n_workers, k = votes.workers.size, votes.classes.size
    counts = np.bincount(votes.worker * k + votes.label, minlength=n_workers * k).reshape(-1, k)
    return (counts / np.maximum(counts.sum(axis=1, keepdims=True), 1))[votes.worker]


def correlations(votes: Votes, expected: np.ndarray) -> Pairs:
    """Return the correlations of all pairs who share enough items; `expected` of every vote is (votes, classes)."""
    n_tasks, n_workers, k = votes.tasks.size, votes.workers.size, votes.classes.size
    remainder = (votes.label[:, None] == np.arange(k)) - expected
    rows, columns = np.repeat(votes.worker, k), (votes.task[:, None] * k + np.arange(k)).ravel()
    remainders = sparse.csr_array((remainder.ravel(), (rows, columns)), shape=(n_workers, n_tasks * k))
    places = votes.worker, votes.task
    present = sparse.csr_array((np.ones(votes.label.size), places), shape=(n_workers, n_tasks))
    present.data[:] = 1
    squares = sparse.csr_array((1 - np.sum(expected**2, axis=1), places), shape=(n_workers, n_tasks))
    first, second, shared = _shared_pairs(present)
    norms, products = squares @ present.T, remainders @ remainders.T
    norm = np.sqrt(np.maximum(norms[first, second] * norms[second, first], 1e-300))
    return Pairs(first, second, np.clip(products[first, second] / norm, -1, 1), shared)


def _shared_pairs(present: sparse.csr_array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the pairs, the smaller index first, that share enough items, and how many."""
    shared = (present @ present.T).tocoo()
    first, second = (np.asarray(place, dtype=np.int64) for place in (shared.row, shared.col))
    enough = (first < second) & (shared.data >= 5)
    return first[enough], second[enough], shared.data[enough]


def residual_correlations(votes: Votes, by_state: np.ndarray, states: np.ndarray, rng: np.random.Generator) -> Pairs:
    """Return correlations given the states of items, averaged over draws with these probabilities (items, states).

    `by_state` is the probability of every vote, (workers, labels, states).
    """
    sums, drawn = np.cumsum(states, axis=1), []
    for _ in range(5):
        state = np.sum(sums < rng.random((len(sums), 1)) * sums[:, -1:], axis=1)
        pairs = correlations(votes, by_state[votes.worker, :, state[votes.task]])
        drawn.append(pairs.values)
    return pairs._replace(values=np.mean(drawn, axis=0))


def is_correlated(pairs: Pairs) -> np.ndarray:
    """Return which pairs correlate more than the largest of so many would if all judges were independent."""
    limit = np.sqrt(2 * np.log(max(pairs.values.size, 1) / UNLIKELY))  # the normal tail at most
    return pairs.values * np.sqrt(pairs.shared) > limit


def find_copies(votes: Votes) -> list[tuple[int, int]]:
    """Return the pairs of judges who gave the same labels to all items they share, and to too many for chance.

    With p the share of items on which one of the two agrees with the others, the larger one of both, they agree on n
    items by chance with a probability of about :math:`p^n`.
    """
    n_workers, k = votes.workers.size, votes.classes.size
    given = [sparse.csr_array(votes.by_worker[label::k]) for label in range(k)]
    agree = sum(part @ part.T for part in given)
    present = sum(given)
    first, second, shared = _shared_pairs(sparse.csr_array(present))
    same = agree[first, second]
    totals, agreed = (
        np.bincount(first, part, n_workers) + np.bincount(second, part, n_workers) for part in (shared, same)
    )
    copies = []
    for place in np.flatnonzero(same >= shared):
        one, other, n = first[place], second[place], shared[place]
        rates = [(agreed[who] - n) / (totals[who] - n) for who in (one, other) if totals[who] > n]
        if rates and max(rates) ** n < UNLIKELY / first.size:
            copies.append((int(one), int(other)))
    return copies


class Dependence(NamedTuple):
    """Correlations of pairs, the weight of the votes of each judge in the mean, and effective votes on an item."""

    pairs: Pairs
    weights: np.ndarray
    votes: float


def measure_dependence(votes: Votes, pairs: Pairs, cluster: np.ndarray) -> Dependence:
    """Return the effective number of votes, and their weights.

    Judges of a cluster, by its number, -1 for none, have its mean correlation.
    """
    inside = (cluster[pairs.first] == cluster[pairs.second]) & (cluster[pairs.first] >= 0)
    places, sizes = cluster[pairs.first[inside]], pairs.shared[inside]
    n_clusters = int(cluster.max(initial=-1)) + 1
    totals = np.bincount(places, sizes * pairs.values[inside], n_clusters)
    within = np.clip(totals / np.maximum(np.bincount(places, sizes, n_clusters), 1), 0, 1)
    view = views_of(cluster)[votes.worker]
    _, place, counts = np.unique(votes.task * (2 * cluster.size) + view, return_inverse=True, return_counts=True)
    repeats = counts[place.ravel()]
    weights = 1 / (1 + (repeats - 1) * np.append(within, 1.0)[cluster[votes.worker]])  # a repeated vote is one
    mean = np.bincount(votes.worker, weights, cluster.size) / np.maximum(votes.votes_of_workers, 1)
    return Dependence(pairs, mean, float(weights.sum() / votes.tasks.size))
