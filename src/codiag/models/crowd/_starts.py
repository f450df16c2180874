r"""Starts of expectation maximization: from moments, from given confusion matrices, or from the majority vote.

Moments are taken over partitions of the workers into three groups. Let :math:`x_g` be the votes of group g on a task, a
count for every class. If labels are missing at random,
:math:`E[x_1 \otimes x_2 \otimes x_3] = \sum_c \pi_c F_{1c} \otimes F_{2c} \otimes F_{3c}`. Results differ between
partitions, so several are averaged.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import linear_sum_assignment
from scipy.special import softmax

from codiag._checks import RankDeficientError
from codiag.methods import Method
from codiag.models.base import (
    ViewMoments,
    common_order,
    leading_range,
    mixture_weights,
    start_from_views,
    weakest_direction,
)
from codiag.models.crowd._em import CrowdModel, Prior, Start, as_numbers, expect, log_joint, one_coin
from codiag.models.crowd._votes import MOST_CELLS, Votes

OTHERS = np.array([[1, 2], [0, 2], [0, 1]])
"""For each group of workers, the other two."""
MakeViews = Callable[[Votes, np.ndarray], tuple[list[np.ndarray], slice]]
"""From votes and groups to three views of every task, and the tasks that were not used to choose the views."""


def random_groups(votes: Votes, rng: np.random.Generator) -> np.ndarray:
    """Assign the workers, in random order, to three groups: each to the group that has the fewest votes so far."""
    sizes = votes.votes_of_workers
    groups = np.zeros(sizes.size, dtype=np.int64)
    order = rng.permutation(sizes.size)
    totals = [0, 0, 0]
    for place, size in zip(order.tolist(), sizes[order].tolist(), strict=True):
        group = totals.index(min(totals))
        groups[place] = group
        totals[group] += size
    return groups


def estimate_crowd(
    votes: Votes, n_partitions: int, method: Method | None, rng: np.random.Generator
) -> CrowdModel | None:
    """Return confusion matrices averaged over partitions of the workers; None if moments do not determine them.

    The votes of a group on a task are added up, which requires that most workers use labels in the same sense. If that
    does not separate the classes, views are the leading directions of the votes of each group, which do not require it.
    """
    n_shared = int(np.sum(votes.votes_of_tasks >= 3))  # an upper bound for all partitions
    # a bound on memory
    if votes.workers.size < 3 or not 1 < votes.classes.size <= min(100, n_shared):
        return None
    most = max(3, MOST_CELLS // (votes.workers.size * votes.classes.size**2))
    groups = [random_groups(votes, rng) for _ in range(min(n_partitions, most))]
    random_state = int(rng.integers(2**31))
    for make_views in (_added_votes, _leading_votes):
        results = [_estimate_partition(votes, partition, make_views, method, random_state) for partition in groups]
        estimates = [result for result in results if result is not None]
        if 2 * len(estimates) >= len(groups):
            return _averaged(votes, estimates)
    return None


def _averaged(votes: Votes, estimates: list[tuple[np.ndarray, float]]) -> CrowdModel:
    """Return the mean over partitions, weighted by the square of the strength of the weakest class, classes named."""
    k, sizes = votes.classes.size, votes.votes_of_workers
    # a bound on the cost
    busiest = np.argsort(-sizes, kind="stable")[:2000]
    roots = np.sqrt(sizes[busiest])[:, None, None]
    orders = common_order([(roots * confusions[busiest]).reshape(-1, k) for confusions, _ in estimates])
    total = sum(strength**2 for _, strength in estimates)
    mean = np.zeros((sizes.size, k, k))
    for (confusions, strength), order in zip(estimates, orders, strict=True):
        mean += strength**2 / total * confusions[..., order]
    typical = np.average(mean, axis=0, weights=sizes)
    shares = mixture_weights(typical, np.bincount(votes.label, minlength=k) / votes.label.size)
    names = linear_sum_assignment(-typical * shares)[1]  # the assignment under which most votes are right
    if votes.known_class is not None:
        known, same = votes.known_class >= 0, np.eye(k)
        probabilities = softmax(log_joint(votes, CrowdModel(mean, shares))[known], axis=1)
        scores = same[votes.known_class[known]].T @ probabilities  # known tasks of each class, by class of the model
        # To exchange two classes takes three known tasks: if labels are right for six tasks in seven, three
        # contradictions are left to chance once in 200.
        names = linear_sum_assignment(-1.5 * same[names] - scores)[1]
    return CrowdModel(mean[..., names], shares[names])


def _estimate_partition(
    votes: Votes, groups: np.ndarray, make_views: MakeViews, method: Method | None, rng: Any
) -> tuple[np.ndarray, float] | None:
    """Return confusion matrices (workers, given, true), classes in any order, and the strength of the weakest class."""
    k = votes.classes.size
    views, unused = make_views(votes, groups)
    strength, noise = _weakest_pair([view[unused] for view in views], k)
    if not strength > max(noise, 1e-9):
        return None
    try:
        weights, means = start_from_views(ViewMoments(views), k, method, rng)
        confusions = _worker_confusions(votes, groups, views, means, weights / weights.sum())
    except (RankDeficientError, np.linalg.LinAlgError):
        return None
    return (confusions, strength) if np.all(np.isfinite(confusions)) else None


def _added_votes(votes: Votes, groups: np.ndarray) -> tuple[list[np.ndarray], slice]:
    """Return for every group its votes on each task, a count for every class, over the root of its mean."""
    k = votes.classes.size
    cells = (votes.task * 3 + groups[votes.worker]) * k + votes.label
    counts = np.bincount(cells, minlength=votes.tasks.size * 3 * k).astype(np.float64).reshape(-1, 3, k)
    # Variances of counts are proportional to their means: division by the roots of the means makes them equal.
    counts /= np.sqrt(counts.mean(axis=0) + 1 / votes.tasks.size)
    return [np.ascontiguousarray(counts[:, group]) for group in range(3)], slice(None)


def _leading_votes(votes: Votes, groups: np.ndarray) -> tuple[list[np.ndarray], slice]:
    """Return for every group its votes on each task, in the directions correlated with the votes of the other groups.

    Directions are chosen by every other task, so that the remaining tasks show whether they are more than noise.
    """
    k = votes.classes.size
    totals = np.asarray(votes.counts.sum(axis=0)).ravel()
    scaled = sparse.csr_array(votes.counts / np.sqrt(np.maximum(totals, 1) / votes.tasks.size))
    sides = [scaled[:, np.repeat(groups == group, k)] for group in range(3)]
    views = []
    for side, (first, second) in zip(sides, OTHERS, strict=True):
        half, others = side[::2], sparse.hstack([sides[first][::2], sides[second][::2]]).tocsr()

        def multiply(vectors: np.ndarray, half: Any = half, others: Any = others) -> np.ndarray:
            return half.T @ (others @ (others.T @ (half @ vectors)))

        views.append(side @ leading_range(multiply, side.shape[1], k, random_state=0))
    return views, slice(1, None, 2)


def _weakest_pair(views: list[np.ndarray], k: int) -> tuple[float, float]:
    """Return the least of the k-th singular values of pairs of views, and the value that sampling alone would give."""
    together = np.hstack(views)
    halves = []
    for part in (together[::2], together[1::2]):
        products = (part.T @ part / max(part.shape[0], 1)).reshape(3, k, 3, k)
        halves.append(products[[0, 1, 2], :, [1, 2, 0]])
    pairs = (halves[0] + halves[1]) / 2
    least = int(np.argmin(np.linalg.svd(pairs, compute_uv=False)[:, k - 1]))
    return weakest_direction(pairs[least], [(halves[0][least] - halves[1][least]) / 2], k)


def _worker_confusions(
    votes: Votes, groups: np.ndarray, views: list[np.ndarray], means: list[np.ndarray], shares: np.ndarray
) -> np.ndarray:
    r"""Return :math:`C_i = E[z_i x_o^\top] (\mathrm{diag}(\pi) F_o^\top)^+`, o the two groups worker i is not in."""
    k, others = votes.classes.size, OTHERS[groups]
    products = (votes.by_worker @ np.hstack(views)).reshape(-1, k, 3, k)  # worker, given, group, view
    outside = products[np.arange(groups.size)[:, None], :, others].transpose(0, 2, 1, 3).reshape(-1, k, 2 * k)
    stacked = np.stack(means)[OTHERS].transpose(0, 2, 1, 3).reshape(3, k, 2 * k)  # group, true, views of the others
    inverses = np.linalg.pinv(shares[:, None] * stacked)
    confusions = outside @ inverses[groups] / np.maximum(votes.votes_of_workers, 1)[:, None, None]
    confusions = np.maximum(confusions, 1e-6)
    return confusions / confusions.sum(axis=1, keepdims=True)


def start_from_given(votes: Votes, init: Any, prior: Prior) -> Start:
    """Start from confusion matrices of the user."""
    k, n_workers = votes.classes.size, votes.workers.size
    confusions = as_numbers("init", init)
    shape = (n_workers, k, k)
    if confusions.shape != shape or np.any(confusions < 0) or not np.allclose(confusions.sum(axis=1), 1):
        raise ValueError(
            f"init must contain a matrix for each of {n_workers} workers, {shape}, given label by true "
            f"class, with columns of sum one; got shape {confusions.shape}"
        )
    return _start(votes, CrowdModel(confusions, np.full(k, 1 / k)), prior, "given")


def start_from_moments(
    votes: Votes, n_partitions: int, method: Method | None, rng: np.random.Generator, prior: Prior
) -> Start:
    """Start from moments over partitions of the workers; from the majority if these do not determine the crowd."""
    model = estimate_crowd(votes, n_partitions, method, rng)
    return Start(votes.shares) if model is None else _start(votes, model, prior, "moments")


def _start(votes: Votes, model: CrowdModel, prior: Prior, init: str) -> Start:
    """Return a start with the shares of the prior, if these are given, and with one coin, if the prior has it."""
    confusions = one_coin(model.confusions) if prior.one_coin else model.confusions
    model = CrowdModel(confusions, model.shares if prior.shares is None else prior.shares)
    return Start(expect(votes, model)[0], model, init)
