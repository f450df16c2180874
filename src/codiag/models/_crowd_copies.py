r"""Workers who copy from each other: pairs that agree more often than their tasks and confusion matrices explain.

Given the votes of all others on a task, the labels of workers i and j have the probability
:math:`p = \sum_c q_c C_i[l, c] C_j[m, c]` where they vote independently, and, where one copies,
:math:`p^* = 1[l = m] \sum_c q_c (C_i[l, c] + C_j[l, c]) / 2`. With :math:`s = p^* / p - 1`, copying on a share
:math:`\rho` of the tasks has the likelihood ratio :math:`1 + \rho s`, whose mean is one without copying. Tasks that are
hard for everybody make all pairs agree in their mistakes: as if they copied on a share :math:`\rho_0`, that of all
pairs together. The product of :math:`(1 + \rho s) / (1 + \rho_0 s)` over the shared tasks has a mean of at most one for
a pair that copies on no larger share (as the ratio is concave in s), so that by Markov's inequality it exceeds
:math:`m / \alpha` for any of m honest pairs with a probability of at most :math:`\alpha`, at any number of tasks.
Confusion matrices are taken for known.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from codiag.models._crowd_em import CrowdModel, Prior, Run, Start, log_joint, run_em
from codiag.models._votes import Votes

ALPHA = 0.05
"""The probability, at most, that any pair is named that does not copy."""
RATES = np.array([0.05, 0.1, 0.2, 0.4, 0.7, 0.95])
"""Shares of copied tasks whose likelihood ratios are averaged."""
FEWEST = 5
"""Tasks that a pair must share to be examined."""
MOST_CELLS = 5 * 10**6
"""Numbers that are held at once: beyond it, only every second, third, ... task is looked at."""
ROUNDS, TOL = 50, 1e-5
"""Of expectation maximization with confusion matrices, where the run has one accuracy a worker."""
MOST_COMMON = 0.9
"""The largest share of copied tasks that all pairs together may seem to have."""


class Copies(NamedTuple):
    """Pairs of workers who copy from each other.

    Attributes
    ----------
    pairs : array of shape (n_pairs, 2)
        Places of the workers, the smaller first; the most certain pair first.
    shared, agreed, expected : arrays of shape (n_pairs,)
        Tasks that both voted on, those on which they agree, and on how many they would if they voted independently.
    p_values : array of shape (n_pairs,)
        Bounds of the probability that any honest pair seems to copy as much, over all pairs that were examined.
    """

    pairs: np.ndarray
    shared: np.ndarray
    agreed: np.ndarray
    expected: np.ndarray
    p_values: np.ndarray


class Meetings(NamedTuple):
    """Two workers on one task: the task, the workers and the labels they gave, a row each."""

    task: np.ndarray
    first: np.ndarray
    second: np.ndarray
    label: np.ndarray
    other: np.ndarray


def find_copies(votes: Votes, run: Run, *, one_coin: bool = False) -> Copies:
    """Return the pairs of workers who copy from each other.

    Workers with a bias for the same label agree by that alone. Where the run gives each one accuracy for all classes,
    a run from there that does not is asked instead.
    """
    if one_coin:
        run = run_em(votes, Start(run.classes), Prior(np.full((1, 1), 0.5), 0.5, None, one_coin=False), ROUNDS, TOL)
    met = meetings(votes)
    scores, agreement = _scores(votes, run.model, met)
    names, place, shared = np.unique(
        met.first * votes.workers.size + met.second, return_inverse=True, return_counts=True
    )
    examined = shared >= FEWEST
    common = common_rate(scores)
    base = np.log1p(common * scores)
    logs = [np.bincount(place, np.log1p(rate * scores) - base) for rate in RATES if rate > common]
    if not logs or not np.any(examined):
        return Copies(np.empty((0, 2), dtype=np.int64), *(np.empty(0) for _ in range(4)))
    evidence = np.logaddexp.reduce(logs, axis=0) - np.log(len(logs))
    bounds = np.exp(np.minimum(np.log(np.sum(examined)) - evidence, 0))
    found = np.flatnonzero(examined & (bounds <= ALPHA))
    found = found[np.argsort(-evidence[found], kind="stable")]
    agreed, expected = np.bincount(place, met.label == met.other), np.bincount(place, agreement)
    pairs = np.stack(np.divmod(names[found], votes.workers.size), axis=1)
    return Copies(pairs, shared[found], agreed[found], expected[found], bounds[found])


def meetings(votes: Votes) -> Meetings:
    """Return all pairs of workers on all tasks, by the first vote of each; on some tasks where these would be many."""
    first = np.unique(votes.task * votes.workers.size + votes.worker, return_index=True)[1]  # in the order of tasks
    sizes = np.bincount(votes.task[first], minlength=votes.tasks.size)
    starts = np.cumsum(sizes) - sizes
    step = 1 + int(np.sum(sizes * (sizes - 1) / 2)) * votes.classes.size // MOST_CELLS
    looked = np.arange(0, votes.tasks.size, step)
    left, right = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
    for size in np.unique(sizes[looked]):
        begin = starts[looked[sizes[looked] == size], None]
        one, other = np.triu_indices(size, 1)
        left.append((begin + one).ravel())
        right.append((begin + other).ravel())
    one, other = first[np.concatenate(left)], first[np.concatenate(right)]
    return Meetings(votes.task[one], votes.worker[one], votes.worker[other], votes.label[one], votes.label[other])


def _scores(votes: Votes, model: CrowdModel, met: Meetings) -> tuple[np.ndarray, np.ndarray]:
    """Return s of every meeting, and the probability that two agree who vote independently."""
    k = model.shares.size
    strength = (votes.votes_of_workers[:, None] * model.shares)[:, None]
    confusions = (strength * model.confusions + 1 / k) / (strength + 1)  # of one more task a class: none is impossible
    logs = np.log(confusions)
    rest = log_joint(votes, CrowdModel(confusions, model.shares))[met.task]
    rest -= logs[met.first, met.label] + logs[met.second, met.other]
    others = np.exp(rest - rest.max(axis=1, keepdims=True))
    others /= others.sum(axis=1, keepdims=True)
    if votes.gold is not None:
        others = votes.held(np.zeros((votes.tasks.size, k)))[met.task] + others * (votes.gold[met.task, None] < 0)
    one, other = confusions[met.first, met.label], confusions[met.second, met.other]
    apart = np.sum(others * one * other, axis=1)
    copied = np.where(met.label == met.other, np.sum(others * (one + other), axis=1) / 2, 0.0)
    agreement = sum(np.sum(others * confusions[met.first, c] * confusions[met.second, c], axis=1) for c in range(k))
    return copied / apart - 1, np.asarray(agreement)


def common_rate(scores: np.ndarray) -> float:
    """Return the share of copied tasks under which all meetings together are most probable."""
    low, high = 0.0, MOST_COMMON
    if np.sum(scores) <= 0:
        return low
    for _ in range(12):
        middle = (low + high) / 2
        low, high = (middle, high) if np.sum(scores / (1 + middle * scores)) > 0 else (low, middle)
    return high


def with_shared_votes(votes: Votes, copies: Copies) -> Votes:
    """Return votes in which like votes on a task, of workers who copy from each other, share the weight of one."""
    size = votes.workers.size
    links = sparse.coo_array((np.ones(len(copies.pairs)), copies.pairs.T), shape=(size, size))
    groups = connected_components(links, directed=False)[1]
    like = (votes.task * size + groups[votes.worker]) * votes.classes.size + votes.label
    place, counts = np.unique(like, return_inverse=True, return_counts=True)[1:]
    # A worker who votes twice on a task counts twice, as everywhere: only votes of others share a weight.
    own = np.unique(like * size + votes.worker, return_inverse=True, return_counts=True)
    return replace(votes, weights=own[2][own[1]] / counts[place])
