r"""Starts of expectation maximization: from moments, from given confusion matrices, or from the majority vote.

Moments are taken over partitions of the workers into three groups. Let :math:`x_g` be the votes of group g on a task, a
count for every class. If labels are missing at random,
:math:`E[x_1 \otimes x_2 \otimes x_3] = \sum_c \pi_c F_{1c} \otimes F_{2c} \otimes F_{3c}`. Results differ between
partitions, so several are averaged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import linear_sum_assignment
from scipy.special import softmax

from codiag._checks import UndeterminedError, as_generator
from codiag.methods import Method
from codiag.models.crowd._em import CrowdModel, Prior, Start, as_numbers, expect, log_joint, one_coin
from codiag.models.crowd._votes import MOST_CELLS, Votes, views_of
from codiag.models.base import (
    Diagnostics,
    ViewSums,
    common_order,
    leading_range,
    mixture_weights,
    start_from_views,
    weakest,
)

LEAST_ENTRY = 1e-6
"""The least entry of a confusion matrix from moments, before columns are divided by their sums."""
MOST_COMPARED = 2000
"""Number of workers, those with most votes, by whom classes are matched between partitions; a bound on the cost."""
MOST_CLASSES = 100
"""Largest number of classes for which third moments are formed; a bound on memory."""
GOLD_CREDIT = 1.5
"""Number of known classes that the usual name of a class outweighs. To exchange two classes takes three known tasks: if
labels are right for six tasks in seven, three contradictions are left to chance once in 200."""
OTHERS = np.array([[1, 2], [0, 2], [0, 1]])
"""For each group of workers, the other two."""
MakeViews = Callable[[Votes, np.ndarray], tuple[list[np.ndarray], slice]]
"""From votes and groups to three views of every task, and the tasks that were not used to choose the views."""


class CrowdMoments(NamedTuple):
    """Confusion matrices (workers, given, true), their standard deviation over partitions, and class shares."""

    confusions: np.ndarray
    spread: np.ndarray
    shares: np.ndarray
    n_partitions: int


def random_groups(votes: Votes, rng: np.random.Generator, family: np.ndarray | None = None) -> np.ndarray:
    """Assign the workers, in random order, to three groups: each to the group that has the fewest votes so far.

    Workers of one family, by these numbers, are in one group; -1 is none.
    """
    alone = np.full(votes.workers.size, -1)
    _, view = np.unique(views_of(alone if family is None else family), return_inverse=True)
    sizes = np.bincount(view, votes.votes_of_workers)
    groups = np.zeros(sizes.size, dtype=np.int64)
    order = rng.permutation(sizes.size)
    totals = [0.0, 0.0, 0.0]
    for place, size in zip(order.tolist(), sizes[order].tolist(), strict=True):
        group = totals.index(min(totals))
        groups[place] = group
        totals[group] += size
    return groups[view]


def as_groups(
    votes: Votes, groups: Any, n_partitions: int, random_state: Any, family: np.ndarray | None = None
) -> np.ndarray:
    """Return partitions of the workers (n_partitions, n_workers): those of the user, or random ones by families."""
    n_workers = votes.workers.size
    if groups is None:
        rng = as_generator(random_state, "random_state")
        return np.stack([random_groups(votes, rng, family) for _ in range(n_partitions)])
    given = np.atleast_2d(as_numbers("groups", groups))
    if given.ndim != 2 or given.shape[1] != n_workers or not np.all(np.isin(given, (0, 1, 2))):
        raise ValueError(f"groups must contain 0, 1 or 2 for each of {n_workers} workers; got shape {np.shape(groups)}")
    return given.astype(np.int64)


def estimate_crowd(votes: Votes, groups: np.ndarray, method: Method | None, seed: Any) -> CrowdMoments | str:
    """Return confusion matrices averaged over partitions (n_partitions, n_workers), or the reason why there are none.

    The votes of a group on a task are added up, which requires that most workers use labels in the same sense. If that
    does not separate the classes, views are the leading directions of the votes of each group, which do not require it.
    """
    if votes.workers.size < 3:
        return f"it takes three workers, and there are {votes.workers.size}"
    if votes.classes.size > MOST_CLASSES:
        return f"it takes at most {MOST_CLASSES} classes, and there are {votes.classes.size}"
    n_shared = int(np.sum(np.bincount(votes.task) >= 3))  # an upper bound for all partitions
    if n_shared < votes.classes.size:
        return _too_few(n_shared, votes.classes.size)
    groups = groups[: max(3, MOST_CELLS // (votes.workers.size * votes.classes.size**2))]
    for make_views in (_added_votes, _leading_votes):
        results = [_estimate_partition(votes, partition, make_views, method, seed) for partition in groups]
        estimates = [result for result in results if not isinstance(result, str)]
        if 2 * len(estimates) >= len(groups):
            return _averaged(votes, estimates)
    return next(result for result in results if isinstance(result, str))


def _too_few(n_tasks: int, k: int) -> str:
    return f"only {n_tasks} tasks have votes from three groups of workers, fewer than the {k} classes"


def _averaged(votes: Votes, estimates: list[tuple[np.ndarray, float]]) -> CrowdMoments:
    """Return the mean over partitions, weighted by the square of the strength of the weakest class, classes named."""
    k, sizes = votes.classes.size, votes.votes_of_workers
    busiest = np.argsort(-sizes, kind="stable")[:MOST_COMPARED]
    roots = np.sqrt(sizes[busiest])[:, None, None]
    orders = common_order([(roots * confusions[busiest]).reshape(-1, k) for confusions, _ in estimates])
    total = sum(strength**2 for _, strength in estimates)
    aligned = [
        (strength**2 / total, confusions[..., order])
        for (confusions, strength), order in zip(estimates, orders, strict=True)
    ]
    mean = sum((part * confusions for part, confusions in aligned), np.zeros((sizes.size, k, k)))
    spread = np.sqrt(sum((part * (confusions - mean) ** 2 for part, confusions in aligned), np.zeros_like(mean)))
    typical = np.average(mean, axis=0, weights=sizes)
    shares = mixture_weights(typical, np.bincount(votes.label, minlength=k) / votes.label.size)
    names = linear_sum_assignment(-typical * shares)[1]  # the assignment under which most votes are right
    if votes.gold is not None:
        names = named_by_gold(votes.gold, softmax(log_joint(votes, CrowdModel(mean, shares)), axis=1), names)
    return CrowdMoments(mean[..., names], spread[..., names], shares[names], len(estimates))


def named_by_gold(gold: np.ndarray, probabilities: np.ndarray, names: np.ndarray) -> np.ndarray:
    """Return the class of the model that has each name: as in `names`, unless enough known classes contradict.

    `probabilities` of the classes of the model (tasks, classes) are those without the known classes.
    """
    same = np.eye(names.size)
    scores = same[gold[gold >= 0]].T @ probabilities[gold >= 0]  # known tasks of each class, by class of the model
    credit = GOLD_CREDIT * same[names]  # for each class, so that exchanging two costs twice as much
    return np.asarray(linear_sum_assignment(-credit - scores)[1])


def _estimate_partition(
    votes: Votes, groups: np.ndarray, make_views: MakeViews, method: Method | None, seed: Any
) -> tuple[np.ndarray, float] | str:
    """Return confusion matrices (workers, given, true), classes in any order, and the strength of the weakest class."""
    k = votes.classes.size
    if np.unique(groups).size < 3:
        return "a group of workers is empty"
    views, unused = make_views(votes, groups)
    n_complete = int(np.sum(np.all([view.any(axis=1) for view in views], axis=0)))
    if n_complete < k:
        return _too_few(n_complete, k)
    strength, noise = _weakest_pair([view[unused] for view in views], k)
    if not strength > max(noise, 1e-9):
        return (
            f"votes do not separate {k} classes: the weakest has strength {strength:.2g}, and chance alone {noise:.2g}"
        )
    try:
        sums = ViewSums.empty(k, k, k).update((np.ones(votes.tasks.size), *views))
        weights, means = start_from_views(sums.finish(), k, method, seed)
        confusions = _worker_confusions(votes, groups, views, means, weights / weights.sum())
    except (UndeterminedError, np.linalg.LinAlgError) as error:
        return f"their third moment has no {k} components: {error}"
    if not np.all(np.isfinite(confusions)):
        return f"their third moment has no {k} components"
    return confusions, strength


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

        views.append(side @ leading_range(multiply, side.shape[1], k, seed=0))
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
    return weakest(pairs[least], [half[least] for half in halves], k)


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
    confusions = np.maximum(confusions, LEAST_ENTRY)
    return confusions / confusions.sum(axis=1, keepdims=True)


def start_from_majority(votes: Votes, reason: str | None = None) -> Start:
    """Start from the shares of the votes on each task; `reason` says why the start is not from moments.

    If known classes contradict the majority, they decide which class a label denotes.
    """
    classes = votes.with_known(replace(votes, gold=None).shares[:, labels_of_classes(votes)])
    return Start(classes, diagnostics=Diagnostics(init="majority", reason=reason))


def labels_of_classes(votes: Votes) -> np.ndarray:
    """Return the label that denotes each class: that of its name, unless known classes contradict the majority."""
    names = np.arange(votes.classes.size)
    if votes.gold is None:
        return names
    shares = replace(votes, gold=None).shares
    largest = shares == shares.max(axis=1, keepdims=True)
    return named_by_gold(votes.gold, largest / largest.sum(axis=1, keepdims=True), names)


def start_from_given(votes: Votes, init: Any, labels: np.ndarray, prior: Prior) -> Start:
    """Start from confusion matrices of the user, in which label ``labels[c]`` is label c of these votes."""
    k, n_workers = votes.classes.size, votes.workers.size
    confusions = as_numbers("init", init)
    shape = (n_workers, k, k)
    if confusions.shape != shape or np.any(confusions < 0) or not np.allclose(confusions.sum(axis=1), 1):
        raise ValueError(
            f"init must contain a matrix for each of {n_workers} workers, {shape}, given label by true "
            f"class, with columns of sum one; got shape {confusions.shape}"
        )
    model = _model(confusions[:, labels], np.full(k, 1 / k), prior)
    return Start(expect(votes, model)[0], model, diagnostics=Diagnostics(init="given"))


def start_from_moments(votes: Votes, groups: np.ndarray, method: Method | None, seed: Any, prior: Prior) -> Start:
    """Start from moments over partitions of the workers; from the majority if these do not determine the crowd."""
    moments = estimate_crowd(votes, groups, method, seed)
    if isinstance(moments, str):
        return start_from_majority(votes, moments)
    model = _model(moments.confusions, moments.shares, prior)
    diagnostics = Diagnostics(init="moments", n_partitions=moments.n_partitions)
    return Start(expect(votes, model)[0], model, moments.spread, diagnostics)


def _model(confusions: np.ndarray, shares: np.ndarray, prior: Prior) -> CrowdModel:
    """Return a model with the shares of the prior, if these are given, and with one coin, if the prior has it."""
    return CrowdModel(
        one_coin(confusions) if prior.one_coin else confusions, shares if prior.shares is None else prior.shares
    )
