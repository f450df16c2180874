r"""Clusters of correlated judges, and items that are hard for all: a model of votes, fitted by EM.

An item has a class c and a difficulty g: with probability g a judge guesses, whatever the item is, so that given both a
judge who has the confusion matrix C gives label l with the probability :math:`(1 - g) C[l, c] + g / k`. Difficulties
are on a grid, with shares that are estimated for every class. All judges find the same items hard, which correlates
their votes given the class, although they vote independently.

The judges of a cluster share a second answer z to every item, which has a confusion matrix A of its own. Judge i
follows it with the probability :math:`\rho_i`, and votes by :math:`C_i` otherwise. With the matrices :math:`A^g` and
:math:`C_i^g` on items of difficulty g, the votes :math:`v_i` of a cluster on an item have the probability

.. math:: \sum_z A^g[z, c] \prod_i (\rho_i 1[v_i = z] + (1 - \rho_i) C_i^g[v_i, c]),

and those of different clusters are independent given the class and the difficulty. Copiers are a cluster with
:math:`\rho` near one. With :math:`b_i[l] = \log(1 + \rho_i / ((1 - \rho_i) C_i^g[l, c]))` the logarithm of a term is
:math:`\log A^g[z, c] + \sum_i \log((1 - \rho_i) C_i^g[v_i, c]) + \sum_{i: v_i = z} b_i[z]`, so that a step costs as
much as one for independent judges, and :math:`k^2` numbers for each difficulty, cluster and item.

A state is a pair of class and difficulty; arrays by state have the difficulties of the first class first.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from codiag.models.crowd import Votes, one_coin

GUESSES = np.array([0.0, 0.4, 0.8])
"""Grid of difficulties: the probability that a judge guesses."""
FIRST_SHARES = np.array([0.6, 0.3, 0.1])
"""Shares of the difficulties that steps begin with."""
ADDED = 0.5
"""Votes added to every cell of a confusion matrix, and items added to every state."""


class Cluster(NamedTuple):
    """The votes of a cluster: its judges, the items they voted on, and for each label their votes (items, judges)."""

    workers: np.ndarray
    tasks: np.ndarray
    counts: list[sparse.csr_array]


class ClusterModel(NamedTuple):
    """Judges, clusters and shares of the states.

    Attributes
    ----------
    own : array of shape (n_workers, n_classes, n_classes)
        Confusion matrices of votes that follow no cluster and are no guesses, given label by true class.
    follows : array of shape (n_workers,)
        Probability to follow the answer of the cluster; zero for judges without one.
    answers : array of shape (n_clusters, n_classes, n_classes)
        Confusion matrices of the answers of clusters.
    shares : array of shape (n_states,)
        The shares of the states.
    cluster : array of int, shape (n_workers,)
        The cluster of each judge; -1 for judges without one.
    """

    own: np.ndarray
    follows: np.ndarray
    answers: np.ndarray
    shares: np.ndarray
    cluster: np.ndarray

    def by_state(self) -> np.ndarray:
        """Return the probability of every vote in each state, (workers, labels, states)."""
        follows = self.follows[:, None, None]
        followed = self.answers[self.cluster] if len(self.answers) else self.own
        return _by_state(follows * followed + (1 - follows) * self.own)

    def states(self, votes: Votes) -> np.ndarray:
        """Return the probabilities of the states of items, (items, states)."""
        return expect_clusters(votes, clusters_of(votes, self.cluster), self)[0]

    def classes(self, states: np.ndarray) -> np.ndarray:
        """Return probabilities of the classes (items, classes) from those of the states."""
        return states.reshape(len(states), -1, GUESSES.size).sum(axis=2)

    def drawn(self, rng: np.random.Generator) -> ClusterModel:
        """Return the model itself: all that is uncertain in it are the items it was fitted to."""
        return self


class JuryRun(NamedTuple):
    """A model, the probabilities of states (items, states) and of answers, and the objective by step.

    `answers` has for each cluster the probability of its answer, given votes and state: (items, states, answer).
    """

    model: Any  # of clusters, or of ordered labels
    states: np.ndarray
    answers: list[np.ndarray]
    log_likelihood: float
    history: list[float]
    converged: bool


class ExpectedVotes(NamedTuple):
    """Expected votes that are no guesses, by class: of judges themselves, of clusters, and those that follow them."""

    own: np.ndarray
    answers: np.ndarray
    followed: np.ndarray


def clusters_of(votes: Votes, cluster: np.ndarray) -> list[Cluster]:
    """Return the votes of each cluster; `cluster` has its number for every judge, -1 for none."""
    k, found = votes.classes.size, []
    for number in range(int(cluster.max(initial=-1)) + 1):
        workers = np.flatnonzero(cluster == number)
        counts = [sparse.csr_array(votes.counts[:, workers * k + label]) for label in range(k)]
        tasks = np.unique(np.concatenate([part.nonzero()[0] for part in counts]))
        found.append(Cluster(workers, tasks, [sparse.csr_array(part[tasks]) for part in counts]))
    return found


def _by_state(matrices: np.ndarray) -> np.ndarray:
    """Return confusion matrices (..., given, true) on items of every difficulty, (..., given, states)."""
    k = matrices.shape[-1]
    mixed = matrices[..., None] * (1 - GUESSES) + GUESSES / k
    return mixed.reshape(*matrices.shape[:-1], k * GUESSES.size)


def _meant(cells: np.ndarray, matrices: np.ndarray) -> np.ndarray:
    """Return the expected votes that are no guesses (..., given, true), of votes (..., given, states)."""
    k = matrices.shape[-1]
    share = matrices[..., None] * (1 - GUESSES) / (matrices[..., None] * (1 - GUESSES) + GUESSES / k)
    return np.sum(cells.reshape(share.shape) * share, axis=-1)


def _trust(model: ClusterModel) -> np.ndarray:
    """Return the probability that a vote follows the cluster, if that has the same answer, (workers, given, states)."""
    follows = model.follows[:, None, None]
    return follows / (follows + (1 - follows) * _by_state(model.own))


def expect_clusters(
    votes: Votes, clusters: list[Cluster], model: ClusterModel
) -> tuple[np.ndarray, float, list[np.ndarray]]:
    """Return the probabilities of the states, the log-likelihood, and the probabilities of the answers of clusters."""
    n_states = model.shares.size
    own = np.log(np.maximum((1 - model.follows)[:, None, None] * _by_state(model.own), 1e-300))
    joint = votes.counts @ own.reshape(-1, n_states) + np.log(model.shares)
    bonus = -np.log1p(-np.minimum(_trust(model), 1 - 1e-6))
    answers = []
    for cluster, matrix in zip(clusters, _by_state(model.answers), strict=True):
        terms = np.stack([part @ bonus[cluster.workers, label] for label, part in enumerate(cluster.counts)], axis=2)
        terms += np.log(np.maximum(matrix, 1e-300)).T
        largest = terms.max(axis=2, keepdims=True)
        np.exp(terms - largest, out=terms)
        sums = terms.sum(axis=2, keepdims=True)
        answers.append(terms / sums)
        joint[cluster.tasks] += (largest + np.log(sums))[..., 0]
    if votes.known_class is not None:
        is_other = votes.known_class[:, None] != np.repeat(np.arange(votes.classes.size), GUESSES.size)
        joint[is_other & (votes.known_class >= 0)[:, None]] = -np.inf
    largest = joint.max(axis=1, keepdims=True)
    states = np.exp(joint - largest)
    sums = states.sum(axis=1, keepdims=True)
    return states / sums, float(np.sum(largest) + np.sum(np.log(sums))), answers


def count_cells(
    votes: Votes, clusters: list[Cluster], model: ClusterModel, states: np.ndarray, answers: list[np.ndarray]
) -> ExpectedVotes:
    """Return the expected votes, given the probabilities of the states and of the answers of clusters."""
    n_workers, k, n_states = *model.own.shape[:2], states.shape[1]
    total = (votes.by_worker @ states).reshape(n_workers, k, n_states)
    followed, of_clusters, trust = np.zeros_like(total), np.zeros((len(clusters), k, n_states)), _trust(model)
    for place, (cluster, answer) in enumerate(zip(clusters, answers, strict=True)):
        joint = states[cluster.tasks][:, :, None] * answer
        of_clusters[place] = joint.sum(axis=0).T
        for label, part in enumerate(cluster.counts):
            followed[cluster.workers, label] = trust[cluster.workers, label] * (part.T @ joint[:, :, label])
    own = _meant(np.maximum(total - followed, 0), model.own)
    followed = followed.reshape(n_workers, k, k, -1).sum(axis=3)
    return ExpectedVotes(own, _meant(of_clusters, model.answers), followed)


def _maximize(
    votes: Votes,
    clusters: list[Cluster],
    model: ClusterModel,
    states: np.ndarray,
    answers: list[np.ndarray],
    *,
    coin: bool,
) -> ClusterModel:
    cells = count_cells(votes, clusters, model, states, answers)
    followed = cells.followed.sum(axis=(1, 2))
    follows = np.clip((followed + 1) / (votes.votes_of_workers + 2), 1e-6, 1 - 1e-6)
    shares = states.sum(axis=0) + ADDED
    own, of_clusters = (_as_confusions(part + ADDED, coin=coin) for part in (cells.own, cells.answers))
    return ClusterModel(
        own, np.where(model.cluster >= 0, follows, 0.0), of_clusters, shares / shares.sum(), model.cluster
    )


def _as_confusions(cells: np.ndarray, *, coin: bool) -> np.ndarray:
    return one_coin(cells) if coin else cells / cells.sum(axis=1, keepdims=True)


def _log_density(model: ClusterModel) -> float:
    """Return the logarithm of the prior's density, up to a constant."""
    density = sum(ADDED * float(np.sum(np.log(part))) for part in (model.own, model.answers, model.shares))
    follows = model.follows[model.cluster >= 0]
    return density + float(np.sum(np.log(follows) + np.log1p(-follows)))


def _begin(votes: Votes, clusters: list[Cluster], cluster: np.ndarray) -> tuple[ClusterModel, list[np.ndarray]]:
    """Return a model that only says who may follow whom, and answers like the squared numbers of votes in clusters."""
    k, n_states = votes.classes.size, votes.classes.size * GUESSES.size
    even = np.full((1, k, k), 1 / k)
    follows = np.where(cluster >= 0, 0.5, 0.0)
    own, of_clusters = np.repeat(even, cluster.size, 0), np.repeat(even, len(clusters), 0)
    answers = []
    for each in clusters:
        counts = np.stack([np.asarray(part.sum(axis=1)).ravel() for part in each.counts], axis=1) + 0.1
        answers.append(np.repeat((counts**2 / np.sum(counts**2, axis=1, keepdims=True))[:, None], n_states, axis=1))
    return ClusterModel(own, follows, of_clusters, np.full(n_states, 1 / n_states), cluster), answers


def run_clusters(
    votes: Votes, cluster: np.ndarray, classes: np.ndarray, max_iter: int, tol: float, *, coin: bool = False
) -> JuryRun:
    """Alternate both steps, at most `max_iter` times, until the objective rises by less than `tol` per vote.

    `classes` are probabilities of the classes (items, classes) to begin with.
    """
    clusters, converged = clusters_of(votes, cluster), False
    history: list[float] = []
    model, answers = _begin(votes, clusters, cluster)
    states = (classes[:, :, None] * FIRST_SHARES).reshape(len(classes), -1)
    while len(history) < max_iter and not converged:
        model = _maximize(votes, clusters, model, states, answers, coin=coin)
        states, log_likelihood, answers = expect_clusters(votes, clusters, model)
        history.append((log_likelihood + _log_density(model)) / votes.label.size)
        converged = len(history) > 1 and history[-1] - history[-2] < tol
    return JuryRun(model, states, answers, log_likelihood, history, converged)
