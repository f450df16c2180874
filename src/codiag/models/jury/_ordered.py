r"""Ordered classes: grades as thresholds on a quality that workers see with errors.

A task has a quality x with a standard normal distribution, and a cluster of workers has an error e of its own on every
task, normal as well. Worker i gives at most the grade c with probability
:math:`\Phi(\tau_{ic} - b_i x - d_i e)`. With k classes these are k + 1 numbers for each worker, where a confusion
matrix has k (k - 1), and quality varies within a class: what all workers find hard to grade is not taken for evidence.
Both x and e are summed over grids, and the numbers of workers follow from Fisher scoring on expected votes, one step
for each step of expectation maximization.

Worker i is in two minds between the grades c and c + 1 at the quality :math:`\tau_{ic} / b_i`. The classes themselves
are separated by the medians of these over the workers, each cluster with the weight of one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from codiag.models.crowd import Votes
from codiag.models.jury._cluster_model import Cluster, JuryRun, clusters_of
from codiag.models.jury._dependence import views_of

QUALITY = np.linspace(-3.0, 3.0, 21)
"""Grid of the quality of tasks."""
ERROR = np.linspace(-2.0, 2.0, 5)
"""Grid of the error of a cluster."""
SPREAD = 3.0
"""Standard deviation of thresholds and slopes in their prior, which keeps those of workers with few votes finite."""
LEAST = 1e-9
"""Least probability of a vote."""


def _normal_weights(grid: np.ndarray) -> np.ndarray:
    weights = np.exp(-(grid**2) / 2)
    return weights / weights.sum()


class OrderedModel(NamedTuple):
    """Thresholds (workers, classes - 1), slopes in quality and in the error of the cluster, and clusters of workers."""

    thresholds: np.ndarray
    slopes: np.ndarray
    errors: np.ndarray
    cluster: np.ndarray
    known_cuts: np.ndarray | None = None

    def probabilities(self) -> np.ndarray:
        """Return the probability of every vote (workers, labels, qualities, errors)."""
        seen = self.slopes[:, None, None] * QUALITY[:, None] + self.errors[:, None, None] * ERROR
        below = ndtr(self.thresholds[..., None, None] - seen[:, None])
        return np.maximum(np.diff(below, axis=1, prepend=0.0, append=1.0), LEAST)

    def by_state(self) -> np.ndarray:
        """Return the probability of every vote, whatever the error of the cluster, (workers, labels, qualities)."""
        return self.probabilities() @ _normal_weights(ERROR)

    def states(self, votes: Votes) -> np.ndarray:
        """Return the probabilities of the qualities of items, (items, qualities)."""
        return expect_ordered(votes, clusters_of(votes, self.cluster), self)[0]

    def cuts(self) -> tuple[np.ndarray, np.ndarray]:
        r"""Return the qualities that separate the classes, and their standard errors, (classes - 1,) each.

        They are medians over clusters of the medians over workers; the standard error of a median of normal variables
        is :math:`\sqrt{\pi / 2}` times that of the mean.
        """
        if self.known_cuts is not None:
            return self.known_cuts, np.zeros_like(self.known_cuts)
        able = self.slopes > 0
        view = views_of(self.cluster)[able]
        places = self.thresholds[able] / self.slopes[able, None]
        views = np.array([np.median(places[view == each], axis=0) for each in np.unique(view)])
        if len(views) == 0:
            return np.zeros(self.thresholds.shape[1]), np.ones(self.thresholds.shape[1])
        spread = np.std(views, axis=0, ddof=1) if len(views) > 1 else np.zeros(views.shape[1])
        return np.median(views, axis=0), np.sqrt(np.pi / 2 / len(views)) * spread

    def drawn(self, rng: np.random.Generator) -> OrderedModel:
        """Return the model with other cuts, drawn by their standard errors: few clusters tell where these are."""
        cuts, errors = self.cuts()
        return self._replace(known_cuts=np.maximum.accumulate(cuts + errors * rng.standard_normal(cuts.size)))

    def classes(self, states: np.ndarray) -> np.ndarray:
        """Return probabilities of the classes (items, classes) from those of the qualities (items, qualities).

        A quality stands for an interval of the grid, whose variance is added to those of the cuts.
        """
        cuts, errors = self.cuts()
        deviation = np.sqrt(errors**2 + (QUALITY[1] - QUALITY[0]) ** 2 / 12)
        below = ndtr((cuts[:, None] - QUALITY) / deviation[:, None])
        parts = np.maximum(np.diff(below, axis=0, prepend=0.0, append=1.0), 0)
        return states @ (parts / np.sum(parts, axis=0)).T


def run_ordered(
    votes: Votes, cluster: np.ndarray, max_iter: int, tol: float, model: OrderedModel | None = None
) -> JuryRun:
    """Fit the model by expectation maximization, until the log-likelihood rises by less than `tol` per vote."""
    clusters, converged = clusters_of(votes, cluster), False
    history: list[float] = []
    model = begin_ordered(votes, cluster) if model is None else model
    while len(history) < max_iter and not converged:
        quality, log_likelihood, counts = expect_ordered(votes, clusters, model)
        history.append(log_likelihood / votes.label.size)
        converged = len(history) > 1 and history[-1] - history[-2] < tol
        if not converged:
            model = maximize_ordered(model, counts)
    return JuryRun(model, quality, [], log_likelihood, history, converged)


def begin_ordered(votes: Votes, cluster: np.ndarray) -> OrderedModel:
    """Return workers with thresholds by the frequencies of their labels, and slopes of one."""
    n_workers, k = cluster.size, votes.classes.size
    cells = np.bincount(votes.worker * k + votes.label, minlength=n_workers * k).reshape(-1, k) + 0.5
    below = np.cumsum(cells, axis=1)[:, :-1] / cells.sum(axis=1, keepdims=True)
    errors = np.where(cluster >= 0, 1.0, 0.0)
    return OrderedModel(ndtri(below) * np.sqrt(2 + errors)[:, None], np.ones(n_workers), errors, cluster)


def expect_ordered(votes: Votes, clusters: list[Cluster], model: OrderedModel) -> tuple[np.ndarray, float, np.ndarray]:
    """Return the probabilities of qualities (tasks, qualities), the log-likelihood, and expected votes.

    Expected votes are by worker, label, quality and error of the cluster.
    """
    k = votes.classes.size
    logs = np.log(model.probabilities())
    n_grid, n_errors = logs.shape[2:]
    alone = model.cluster < 0
    singles = np.where(alone[:, None, None], logs[..., n_errors // 2], 0.0)
    joint = votes.counts @ singles.reshape(-1, n_grid) + np.log(_normal_weights(QUALITY))
    conditional = []
    for each in clusters:
        terms = sum(
            part @ logs[each.workers, label].reshape(-1, n_grid * n_errors) for label, part in enumerate(each.counts)
        )
        terms = np.asarray(terms).reshape(-1, n_grid, n_errors) + np.log(_normal_weights(ERROR))
        largest = terms.max(axis=2, keepdims=True)
        np.exp(terms - largest, out=terms)
        sums = terms.sum(axis=2, keepdims=True)
        conditional.append(terms / sums)
        joint[each.tasks] += (largest + np.log(sums))[..., 0]
    largest = joint.max(axis=1, keepdims=True)
    quality = np.exp(joint - largest)
    totals = quality.sum(axis=1, keepdims=True)
    quality /= totals
    if votes.known_class is not None:
        known = votes.known_class >= 0
        inside = model.classes(np.eye(n_grid)).T[votes.known_class[known]] + LEAST
        quality[known] *= inside
        quality /= quality.sum(axis=1, keepdims=True)
    counts = np.zeros((alone.size, k, n_grid, n_errors))
    counts[..., n_errors // 2] = (votes.by_worker @ quality).reshape(-1, k, n_grid) * alone[:, None, None]
    for each, terms in zip(clusters, conditional, strict=True):
        posterior = (quality[each.tasks][:, :, None] * terms).reshape(-1, n_grid * n_errors)
        for label, part in enumerate(each.counts):
            counts[each.workers, label] = (part.T @ posterior).reshape(-1, n_grid, n_errors)
    return quality, float(np.sum(largest) + np.sum(np.log(totals))), counts


def maximize_ordered(model: OrderedModel, counts: np.ndarray) -> OrderedModel:
    """Return the model after one step of Fisher scoring for every worker, halved until thresholds are in order."""
    n_workers, k = counts.shape[:2]
    nodes = counts.shape[2] * counts.shape[3]
    x, e = (np.repeat(QUALITY, ERROR.size), np.tile(ERROR, QUALITY.size))
    counts = counts.reshape(n_workers, k, nodes)
    seen = model.slopes[:, None] * x + model.errors[:, None] * e
    gaps = model.thresholds[..., None] - seen[:, None]
    density = np.pad(np.exp(-(gaps**2) / 2) / np.sqrt(2 * np.pi), [(0, 0), (1, 1), (0, 0)])
    chances = np.maximum(
        np.diff(np.pad(ndtr(gaps), [(0, 0), (1, 1), (0, 0)], constant_values=[(0, 0), (0, 1), (0, 0)]), axis=1), LEAST
    )
    slopes = np.zeros((n_workers, k + 1, k, nodes))  # of each probability, by threshold, slope and error
    for c in range(k - 1):
        slopes[:, c, c] = density[:, c + 1]
        slopes[:, c, c + 1] = -density[:, c + 1]
    along = -np.diff(density, axis=1)
    slopes[:, k - 1] = along * x
    slopes[:, k] = along * e * (model.cluster >= 0)[:, None, None]
    flat = slopes.reshape(n_workers, k + 1, k * nodes)
    score = np.einsum("wpn,wn->wp", flat, (counts / chances).reshape(n_workers, -1))
    scaled = flat * (counts.sum(axis=1, keepdims=True) / chances).reshape(n_workers, 1, -1)
    information = scaled @ np.swapaxes(flat, 1, 2)
    values = np.concatenate([model.thresholds, model.slopes[:, None], model.errors[:, None]], axis=1)
    information[:, range(k + 1), range(k + 1)] += 1 / SPREAD**2
    target = np.concatenate([np.zeros(k - 1), [1.0, 0.0]])
    step = np.linalg.solve(information, (score - (values - target) / SPREAD**2)[..., None])[..., 0]
    size = np.ones((n_workers, 1))
    for _ in range(20):
        moved = values + size * step
        wrong = np.any(np.diff(moved[:, : k - 1], axis=1) <= 0, axis=1)
        if not np.any(wrong):
            break
        size[wrong] /= 2
    moved[:, k] *= model.cluster >= 0
    return OrderedModel(moved[:, : k - 1], moved[:, k - 1], moved[:, k], model.cluster)
