r"""What workers have in common beyond the classes: correlations of their votes, and how many votes these are worth.

A vote of worker i on task t is a vector with a one at its label. From it the distribution that is expected of this
worker is subtracted: that of all votes of the worker, or, if the class is known, the column of the confusion matrix.
The correlation of two workers is the sum of products of what remains over the tasks they share, divided by the
geometric mean of the sums of expected squares; squares as they are would be small where all votes happen to be right,
and correlations of few tasks too large. Given the classes it is zero for workers who vote independently, and
:math:`\rho^2` for two who follow a common answer with probability :math:`\rho`.

A vote carries the weight :math:`1 / \sum_j r_{ij}` over the votes j on the same task, with :math:`r_{ii} = 1`. The sum
of these weights is the number of independent votes with the same variance of their mean (Kish 1965), if all
correlations are equal: :math:`m / (1 + (m - 1) r)`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from codiag.models.crowd._votes import Votes, views_of

MOST_CELLS = 2 * 10**7
"""Numbers in the dense array of remainders up to which it is formed; a bound on memory."""
MOST_PRODUCTS = 2 * 10**7
"""Products of two votes on a task and label above which only a sample of the tasks is used; a bound on the time."""
DRAWS = 10
"""Draws of the classes, and of weights of the tasks, over which correlations are averaged."""
MOST_SHOWN = 3000
"""Number of workers up to which the matrix of their correlations is dense; a bound on memory."""
LEAST_SHARED = 5
"""Number of shared tasks from which a pair is compared (chosen by experience)."""


class Correlations(NamedTuple):
    """Pairs of workers: their indices (the smaller first), correlations, and numbers of shared tasks."""

    first: np.ndarray
    second: np.ndarray
    values: np.ndarray
    shared: np.ndarray

    def among(self, workers: np.ndarray) -> np.ndarray:
        """Return a symmetric matrix of some workers: one on the diagonal, NaN for pairs that are not compared."""
        places = np.full(max(self.first.max(initial=0), self.second.max(initial=0), workers.max(initial=0)) + 1, -1)
        places[workers] = np.arange(workers.size)
        first, second = places[self.first], places[self.second]
        known = (first >= 0) & (second >= 0)
        matrix = np.full((workers.size, workers.size), np.nan)
        matrix[first[known], second[known]] = matrix[second[known], first[known]] = self.values[known]
        np.fill_diagonal(matrix, 1.0)
        return matrix

    def matrix(self, n_workers: int) -> np.ndarray | sparse.csr_array:
        """Return the same of all workers; a sparse matrix of the pairs that are compared if workers are many."""
        if n_workers <= MOST_SHOWN:
            return self.among(np.arange(n_workers))
        alone, ones = np.arange(n_workers), np.ones(n_workers)
        rows, columns = np.append(self.first, self.second), np.append(self.second, self.first)
        entries = np.concatenate([self.values, self.values, ones])
        places = np.append(rows, alone), np.append(columns, alone)
        return sparse.csr_array((entries, places), shape=(n_workers, n_workers))


def own_frequencies(votes: Votes) -> np.ndarray:
    """Return what is expected of every vote (votes, classes) if no class is known: the labels of its worker."""
    n_workers, k = votes.workers.size, votes.classes.size
    counts = np.bincount(votes.worker * k + votes.label, minlength=n_workers * k).reshape(-1, k)
    return (counts / np.maximum(counts.sum(axis=1, keepdims=True), 1))[votes.worker]


def given_classes(votes: Votes, confusions: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Return what is expected of every vote (votes, classes) if the classes of the tasks are known."""
    return confusions[votes.worker, :, truth[votes.task]]


def draw_classes(classes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return a class for every task, drawn with these probabilities (tasks, classes)."""
    sums = np.cumsum(classes, axis=1)
    return np.minimum(np.sum(sums < rng.random((len(sums), 1)) * sums[:, -1:], axis=1), classes.shape[1] - 1)


def correlations(votes: Votes, expected: np.ndarray, weights: np.ndarray | None = None) -> Correlations:
    """Return the correlations of all pairs of workers who share enough tasks.

    `expected` is what is expected of every vote, (votes, classes); `weights` of the tasks, by default equal.
    """
    tasks = np.ones(votes.tasks.size) if weights is None else weights
    votes, expected, tasks = _sampled(votes, expected, tasks)
    n_tasks, n_workers, k = votes.tasks.size, votes.workers.size, votes.classes.size
    remainder = (votes.label[:, None] == np.arange(k)) - expected
    remainder *= np.sqrt(tasks[votes.task])[:, None]
    variances = tasks[votes.task] * (1 - np.sum(expected**2, axis=1))
    rows, columns = np.repeat(votes.worker, k), (votes.task[:, None] * k + np.arange(k)).ravel()
    remainders = sparse.csr_array((remainder.ravel(), (rows, columns)), shape=(n_workers, n_tasks * k))
    places = votes.worker, votes.task
    present = sparse.csr_array((np.ones(votes.label.size), places), shape=(n_workers, n_tasks))
    present.data[:] = 1
    squares = sparse.csr_array((variances, places), shape=(n_workers, n_tasks))
    first, second, shared = _pairs(_products(present, present))
    norms = _products(squares, present)
    products = _entries(_products(remainders, remainders), first, second)
    values = products / np.sqrt(np.maximum(_entries(norms, first, second) * _entries(norms, second, first), 1e-300))
    return Correlations(first, second, np.clip(values, -1, 1), shared)


def _products(left: sparse.csr_array, right: sparse.csr_array) -> np.ndarray | sparse.csr_array:
    if left.shape[0] * left.shape[1] <= MOST_CELLS:
        return np.asarray(left.toarray() @ right.toarray().T)
    return sparse.csr_array(left @ right.T)


def _pairs(shared: np.ndarray | sparse.csr_array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the pairs, the smaller index first, that share enough tasks, and how many."""
    first, second = (np.asarray(place, dtype=np.int64) for place in shared.nonzero())
    sizes = _entries(shared, first, second)
    enough = (first < second) & (sizes >= LEAST_SHARED)
    return first[enough], second[enough], sizes[enough]


def _entries(matrix: np.ndarray | sparse.csr_array, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    return np.asarray(matrix[rows, columns]).ravel() if rows.size else np.empty(0)


def _sampled(votes: Votes, expected: np.ndarray, weights: np.ndarray) -> tuple[Votes, np.ndarray, np.ndarray]:
    """Return the same for a random sample of the tasks, all of them unless there are too many pairs."""
    sizes = np.bincount(votes.task, minlength=votes.tasks.size).astype(np.float64)
    cost = float(np.sum(sizes**2)) * votes.classes.size
    if votes.workers.size * votes.tasks.size * votes.classes.size <= MOST_CELLS or cost <= MOST_PRODUCTS:
        return votes, expected, weights
    rng = np.random.default_rng(0)
    chosen = rng.random(votes.tasks.size) < MOST_PRODUCTS / cost
    return votes.of_tasks(chosen), expected[chosen[votes.task]], weights[chosen]


def vote_weights(votes: Votes, family: np.ndarray, within: np.ndarray, common: float) -> np.ndarray:
    """Return the weight that every vote carries, at most one.

    Workers of a family, by its number (workers,), -1 for none, have the correlation `within` (families,), and all
    others have `common`.
    """
    view = views_of(family)[votes.worker]
    sizes = np.bincount(votes.task, minlength=votes.tasks.size)[votes.task]
    _, place, counts = np.unique(votes.task * (2 * family.size) + view, return_inverse=True, return_counts=True)
    alike = counts[place.ravel()]
    inside = np.append(within, 1.0)[family[votes.worker]]  # repeated votes of a worker alone are one
    return np.minimum(1 / np.maximum(1 + (alike - 1) * inside + (sizes - alike) * common, 1e-12), 1.0)


class Dependence(NamedTuple):
    """How workers depend on each other, given the classes.

    Attributes
    ----------
    pairs : Correlations
        Correlations, shrunk towards those of the family or of all.
    within : array of shape (n_families,)
        Mean correlation in each family.
    common : float
        Mean correlation of workers of different families.
    votes, interval : float and array of shape (2,)
        Effective votes on a task, in the mean over tasks, and an interval of these.
    weights : array of shape (n_workers,)
        Mean weight of the votes of each worker.
    """

    pairs: Correlations
    within: np.ndarray
    common: float
    votes: float
    interval: np.ndarray
    weights: np.ndarray


def measure_dependence(
    votes: Votes, confusions: np.ndarray, classes: np.ndarray, family: np.ndarray, rng: np.random.Generator
) -> Dependence:
    """Return the dependence of workers, from draws of the classes (tasks, classes) and of weights of the tasks."""
    n_workers = votes.workers.size
    drawn, blocks_drawn, effective = [], [], []
    for _ in range(DRAWS):
        truth = draw_classes(classes, rng)
        pairs = correlations(votes, given_classes(votes, confusions, truth), rng.exponential(size=truth.size))
        drawn.append(pairs.values)
        blocks_drawn.append(_block_means(pairs, family))
        weights = vote_weights(votes, family, *blocks_drawn[-1])
        effective.append(weights.sum() / votes.tasks.size)
    pairs = pairs._replace(values=np.mean(drawn, axis=0))
    within, common = (
        np.mean([each[0] for each in blocks_drawn], axis=0),
        float(np.mean([each[1] for each in blocks_drawn])),
    )
    weights = vote_weights(votes, family, within, common)
    by_worker = np.bincount(votes.worker, weights, n_workers) / np.maximum(votes.votes_of_workers, 1)
    mean = weights.sum() / votes.tasks.size
    spread = 1.645 * np.std(effective)
    interval = np.clip([mean - spread, mean + spread], 0, votes.label.size / votes.tasks.size)
    return Dependence(_shrunk(pairs, family), within, common, float(mean), interval, by_worker)


def _block_means(pairs: Correlations, family: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the mean correlation in each family and between families, by the numbers of shared tasks, at least 0."""
    inside = (family[pairs.first] == family[pairs.second]) & (family[pairs.first] >= 0)
    n_families = int(family.max(initial=-1)) + 1
    places, sizes = family[pairs.first[inside]], pairs.shared[inside]
    totals = np.bincount(places, sizes * pairs.values[inside], n_families)
    within = totals / np.maximum(np.bincount(places, sizes, n_families), 1)
    outside = pairs.shared[~inside]
    common = float(outside @ pairs.values[~inside] / max(outside.sum(), 1))
    return np.clip(within, 0, 1), min(max(common, 0.0), 1.0)


def _shrunk(pairs: Correlations, family: np.ndarray) -> Correlations:
    """Return correlations closer to the mean of their family, or of all others, the fewer tasks a pair shares."""
    inside = (family[pairs.first] == family[pairs.second]) & (family[pairs.first] >= 0)
    group, values = np.where(inside, family[pairs.first], -1), pairs.values.copy()
    for number in np.unique(group):
        some = group == number
        noise = 1 / pairs.shared[some]
        center = np.average(values[some], weights=pairs.shared[some])
        spread = max(float(np.average((values[some] - center) ** 2 - noise, weights=pairs.shared[some])), 0.0)
        values[some] = center + spread / (spread + noise) * (values[some] - center)
    return pairs._replace(values=values)
