r"""Which judges are correlated: clusters by the similarity of votes, as many as make all votes most probable.

The search begins only if some pair agrees more, given class and difficulty of items, than all pairs together let
expect of the largest, or if two are copies. Judges are then joined by average linkage of the correlations of their
votes. These are larger within a cluster than between clusters of the same accuracy, whatever the classes, which are not
known yet; two good judges of different clusters may agree as often. Therefore linkage only proposes partitions, one for
each number of joins. For each of these the model of `_cluster_model` is fitted to a sample of the items, and the one of
the largest evidence is taken. This is the log-likelihood, corrected for how much less probable the expected votes of
judges and clusters are on average over all confusion matrices than with the fitted ones (Cheeseman and Stutz 1996), and
less the logarithm of the number of sets of judges of its size for each cluster, among which it was chosen. Confusion
matrices are distributed around that of the average judge, so that two judges with the same votes are rather one of them
twice than two who know the truth.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import numpy as np
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import squareform
from scipy.special import gammaln, xlogy

from codiag.models.crowd import Votes
from codiag.models.jury._cluster_model import clusters_of, count_cells, run_clusters
from codiag.models.jury._dependence import (
    Pairs,
    correlations,
    is_correlated,
    own_frequencies,
    residual_correlations,
    views_of,
)

MOST_TASKS = 1000
"""Size of the sample of items by which partitions are compared; a bound on the time."""
MOST_WORKERS = 120
"""Largest number of judges that are joined; those with the strongest correlations, if there are more."""
MAX_ITER, TOL = 20, 1e-5
"""Limits of the fits by which partitions are compared."""


def as_clusters(clusters: Any, workers: np.ndarray) -> np.ndarray:
    """Return the number of the cluster of each judge, -1 for none, from names of clusters by judge."""
    if isinstance(clusters, Mapping):
        strange = [name for name in clusters if name not in set(workers.tolist())]
        if strange:
            raise ValueError(f"clusters must be of judges who voted; got {strange[0]!r}")
        names = [clusters.get(worker) for worker in workers.tolist()]
    else:
        names = list(clusters)
        if len(names) != workers.size:
            raise ValueError(f"clusters must give the cluster of each of {workers.size} judges; got {len(names)}")
    sizes = Counter(name for name in names if name is not None)
    numbers = {name: number for number, name in enumerate(name for name, size in sizes.items() if size > 1)}
    return np.array([numbers.get(name, -1) for name in names])


def find_clusters(votes: Votes, copies: list[tuple[int, int]], rng: np.random.Generator) -> np.ndarray:
    """Return the number of the cluster of each judge, in the order of their first judges, -1 for those without one."""
    alone = np.full(votes.workers.size, -1)
    suspects = _suspects(votes, alone, copies, rng)
    if suspects.size < 2 or votes.classes.size == 1:
        return alone
    sample = sample_tasks(votes, rng)
    levels = list(_partitions(correlations(votes, own_frequencies(votes)), suspects, votes.workers.size))

    @cache
    def evidence(level: int) -> float:
        return cluster_evidence(sample, levels[level])

    best = max(sorted({int(level) for level in np.linspace(0, len(levels) - 1, 12)}), key=evidence)
    while (nearby := max(_neighbours(best, len(levels)), key=evidence)) != best:
        best = nearby
    return as_clusters([None if number < 0 else number for number in levels[best].tolist()], votes.workers)


def _neighbours(level: int, n_levels: int) -> list[int]:
    return [each for each in (level, level - 1, level + 1) if 0 <= each < n_levels]


def _suspects(votes: Votes, alone: np.ndarray, copies: list[tuple[int, int]], rng: np.random.Generator) -> np.ndarray:
    """Return the judges who may be in a cluster: none if no pair is correlated."""
    run = run_clusters(votes, alone, votes.shares, MAX_ITER, TOL)
    pairs = residual_correlations(votes, run.model.by_state(), run.states, rng)
    correlated = is_correlated(pairs)
    if not np.any(correlated) and not copies:
        return np.empty(0, dtype=np.int64)
    if votes.workers.size <= MOST_WORKERS:
        return np.arange(votes.workers.size)
    order = np.argsort(-(pairs.values * np.sqrt(pairs.shared))[correlated], kind="stable")
    named = np.stack([pairs.first[correlated][order], pairs.second[correlated][order]], axis=1).ravel()
    named = np.concatenate([np.array(copies, dtype=np.int64).ravel(), named])
    return np.sort(named[np.sort(np.unique(named, return_index=True)[1])][:MOST_WORKERS])


def sample_tasks(votes: Votes, rng: np.random.Generator) -> Votes:
    """Return the votes on a random sample of the items; all of them if they are few."""
    if votes.tasks.size <= MOST_TASKS:
        return votes
    chosen = np.zeros(votes.tasks.size, dtype=bool)
    chosen[rng.permutation(votes.tasks.size)[:MOST_TASKS]] = True
    return votes.of_tasks(chosen)


def _partitions(pairs: Pairs, workers: np.ndarray, n_workers: int) -> Iterator[np.ndarray]:
    """Yield the cluster of each judge, from nobody in a cluster to all of these in one, by average linkage.

    All judges in one cluster are left out: its answer would be the truth.
    """
    distances = 1 - np.nan_to_num(pairs.among(workers), nan=-1.0)
    np.fill_diagonal(distances, 0.0)
    group = np.arange(workers.size)
    cluster = np.full(n_workers, -1)
    yield cluster
    for place, (one, other) in enumerate(linkage(squareform(distances, checks=False), "average")[:, :2]):
        group[(group == one) | (group == other)] = workers.size + place
        _, numbers = np.unique(group, return_inverse=True)
        cluster = cluster.copy()
        cluster[workers] = np.where(group >= workers.size, numbers - np.sum(np.unique(group) < workers.size), -1)
        if np.any(cluster != 0):
            yield cluster


def cluster_shares(votes: Votes, cluster: np.ndarray) -> np.ndarray:
    """Return the shares of the classes among the votes on each item, if a cluster has one vote, (items, classes)."""
    n_tasks, n_workers, k = votes.tasks.size, cluster.size, votes.classes.size
    view = views_of(cluster)[votes.worker]
    _, place, sizes = np.unique(votes.task * (2 * n_workers) + view, return_inverse=True, return_counts=True)
    places = votes.task * k + votes.label
    counts = np.bincount(places, 1 / sizes[place], n_tasks * k).reshape(-1, k) + 1e-2
    return votes.with_known(counts / counts.sum(axis=1, keepdims=True))


def cluster_evidence(votes: Votes, cluster: np.ndarray) -> float:
    """Return the logarithm of the probability of votes with these clusters, less that of choosing these clusters."""
    n_workers, sizes = cluster.size, np.bincount(cluster[cluster >= 0])
    run = run_clusters(votes, cluster, cluster_shares(votes, cluster), MAX_ITER, TOL)
    cells = count_cells(votes, clusters_of(votes, cluster), run.model, run.states, run.answers)
    matrices = np.concatenate([cells.own + cells.followed, cells.answers])
    pooled = np.sum(matrices, axis=0) + 1
    pooled /= pooled.sum(axis=0)
    # how closely judges may resemble the average judge, in votes: the most probable
    price = max(_price(matrices, strength * pooled) for strength in 2.0 ** np.arange(1, 10))
    follows = np.stack([part.sum(axis=(1, 2))[cluster >= 0] for part in (cells.followed, cells.own)], axis=1)
    price += float(np.sum(_log_average(follows, np.array([0.5, 0.5])) - _log_largest(follows)))
    choices = gammaln(n_workers + 1) - gammaln(sizes + 1) - gammaln(n_workers - sizes + 1)
    return run.log_likelihood + price - float(np.sum(choices))


def _price(matrices: np.ndarray, alpha: np.ndarray) -> float:
    """Return how much less probable votes (judges, given, true) are on average than with their own frequencies.

    With equal chances, the matrix of a judge has columns with Dirichlet distributions of these parameters, or one
    accuracy with the Beta distribution that they have together, and uniform wrong labels.
    """
    k = alpha.shape[0]
    right, total = np.einsum("wcc->w", matrices), matrices.sum(axis=(1, 2))
    both = np.array([np.trace(alpha), alpha.sum() - np.trace(alpha)]) / k
    coins = _log_average(np.stack([right, total - right], axis=1), both) - (total - right) * np.log(max(k - 1, 1))
    columns = _log_average(matrices, alpha).sum(axis=1)
    largest = _log_largest(matrices).sum(axis=1)
    return float(np.sum(np.logaddexp(columns, coins) - np.log(2) - largest))


def _log_average(counts: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """Return the log-probability of counts along axis 1, on average over a Dirichlet distribution."""
    prior = np.broadcast_to(alpha if counts.ndim == 2 else alpha[None], counts.shape)
    totals, added = counts.sum(axis=1), prior.sum(axis=1)
    return np.sum(gammaln(counts + prior) - gammaln(prior), axis=1) + gammaln(added) - gammaln(added + totals)


def _log_largest(counts: np.ndarray) -> np.ndarray:
    """Return the log-probability of counts along axis 1 with their own frequencies."""
    return np.sum(xlogy(counts, counts / np.maximum(counts.sum(axis=1, keepdims=True), 1e-300)), axis=1)
