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

They are not where several workers copy one: expectation maximization may then take these for the truth, and honest
workers for ones that agree in their mistakes. So pairs are also found by the shares of the votes, in which no worker
has formed the truth, and expectation maximization is run with the like votes of such pairs sharing a weight. Of these
runs and the plain one, that is believed under which all votes, copied ones included, are most probable. Where one that
names none of the same pairs is nearly as probable, nobody is named: that some copy, and that they are right, are then
two explanations of the same votes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree

from codiag.models.crowd._em import CrowdModel, Prior, Run, Start, expect, log_joint, maximize, run_em
from codiag.models.crowd._votes import Votes

ALPHA = 0.05
"""The probability, at most, that any pair is named that does not copy."""
NEARLY = float(np.log(2 / ALPHA))
"""By how much more probable, in logarithms, pairs must make the votes than each of two rivals that name others: if
models were known, a wrong one would be so much more probable with a probability of at most `ALPHA`, by Markov."""
RATES = np.array([0.05, 0.1, 0.2, 0.4, 0.7, 0.95])
"""Shares of copied tasks whose likelihood ratios are averaged."""
FEWEST = 5
"""Tasks that a pair must share to be examined."""
MOST_CELLS = 5 * 10**6
"""Numbers that are held at once: beyond it, only some tasks, drawn at random, are looked at, then some workers."""
KEPT_TASKS = 200
"""Tasks that are looked at, at least, where there are so many, before workers are left out."""
PLAIN = Prior(np.full((1, 1), 0.5), 0.5, None, one_coin=False)
"""Of confusion matrices that are estimated for the sake of finding pairs."""
ROUNDS, TOL = 50, 1e-5
"""Of expectation maximization with confusion matrices, where the run has one accuracy a worker."""
SHOWN = 8
"""Workers that a message names at most."""
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
    evidence : array of shape (n_pairs,)
        The logarithm of how much more probable the votes of both are if one copies than if none does.
    """

    pairs: np.ndarray
    shared: np.ndarray
    agreed: np.ndarray
    expected: np.ndarray
    p_values: np.ndarray
    evidence: np.ndarray


class Examined(NamedTuple):
    """What is found of copies.

    Attributes
    ----------
    named : Copies
        Pairs that copy from each other; none where that is in doubt.
    believed : array of shape (n_pairs, 2)
        Those of the most probable explanation, in doubt or not.
    """

    named: Copies
    believed: np.ndarray


class Meetings(NamedTuple):
    """Two workers on one task: the task, the workers, the labels they gave and what these weigh, a row each."""

    task: np.ndarray
    first: np.ndarray
    second: np.ndarray
    label: np.ndarray
    other: np.ndarray
    weights: np.ndarray

    @classmethod
    def of(cls, votes: Votes, one: np.ndarray, other: np.ndarray) -> Meetings:
        """Return the meetings of votes, whose places are given."""
        weights = np.ones(votes.label.size) if votes.weights is None else votes.weights
        columns = votes.task[one], votes.worker[one], votes.worker[other], votes.label[one], votes.label[other]
        return cls(*columns, np.stack([weights[one], weights[other]]))


def examine(votes: Votes, run: Run, rerun: Callable[[Votes], Run], *, one_coin: bool = False) -> Examined:
    """Return the pairs of workers who copy from each other, by the run under which all votes are most probable.

    Rivals of the given run are those that `rerun` makes of votes in which suspects share a weight: all pairs that the
    shares of the votes suggest, and those of them with at least half of the greatest evidence.
    """
    judged = [_judged(votes, votes, run, one_coin=one_coin)]
    suspects = find_copies(votes, Run(maximize(votes, votes.shares, PLAIN), votes.shares, 0.0, [], True))
    for share in (0.0, 0.5):
        pairs = suspects.pairs[suspects.evidence >= share * np.max(suspects.evidence, initial=0.0)]
        if len(pairs) == 0 or (share > 0 and len(pairs) == len(suspects.pairs)):
            continue
        shared = with_shared_votes(votes, pairs)
        judged.append(_judged(votes, shared, rerun(shared), one_coin=one_coin))
    best, value = max(judged, key=lambda one: one[1])
    named = set(map(tuple, best.pairs.tolist()))
    rivals = [found for found, other in judged if value - other <= NEARLY and found is not best]
    in_doubt = any(named.isdisjoint(map(tuple, rival.pairs.tolist())) for rival in rivals)
    return Examined(_nobody() if in_doubt else best, best.pairs)


def _judged(votes: Votes, shared: Votes, run: Run, *, one_coin: bool) -> tuple[Copies, float]:
    """Return the pairs of a run with shared votes, and how probable it makes all votes, where those pairs copy.

    Workers who vote independently given the run explain the votes so well, and each pair that joins two groups of
    workers who copy adds its evidence.
    """
    if one_coin:  # workers with a bias for the same label agree by that alone
        run = run_em(shared, Start(run.classes), PLAIN, ROUNDS, TOL)
    copies, size = find_copies(shared, run), votes.workers.size
    places = tuple(copies.pairs.T.astype(np.int32))  # older versions of SciPy take no others
    links = sparse.csr_array((-copies.evidence, places), shape=(size, size))
    return copies, expect(votes, run.model)[1] - float(minimum_spanning_tree(links).sum())


def find_copies(votes: Votes, run: Run) -> Copies:
    """Return the pairs of workers who, by the confusion matrices of a run, copy from each other."""
    met, thinned = meetings(votes)
    joint = _joint(votes, run.model)
    scores, agreement = _scores(votes, joint, met)
    names, place, shared = np.unique(
        met.first * votes.workers.size + met.second, return_inverse=True, return_counts=True
    )
    examined = shared >= FEWEST
    common = common_rate(scores)
    base = np.log1p(common * scores)
    logs = [np.bincount(place, np.log1p(rate * scores) - base) for rate in RATES if rate > common]
    if not logs or not np.any(examined):
        return _nobody()
    evidence = np.logaddexp.reduce(logs, axis=0) - np.log(len(logs))
    gains = np.max(logs, axis=0) + np.bincount(place, base)
    bounds = np.exp(np.minimum(np.log(np.sum(examined)) - evidence, 0))
    found = np.flatnonzero(examined & (bounds <= ALPHA))
    found = found[np.argsort(-evidence[found], kind="stable")]
    pairs = np.stack(np.divmod(names[found], votes.workers.size), axis=1)
    agreed, expected = np.bincount(place, met.label == met.other), np.bincount(place, agreement)
    counted = shared[found], agreed[found], expected[found]
    if thinned:
        counted = _counted(votes, joint, pairs)
    return Copies(pairs, *counted, bounds[found], gains[found])


def _nobody() -> Copies:
    return Copies(np.empty((0, 2), dtype=np.int64), *(np.empty(0) for _ in range(5)))


def meetings(votes: Votes) -> tuple[Meetings, bool]:
    """Return all pairs of workers on all tasks, by the first vote of each, and whether some are left out.

    Where they would be many, tasks are drawn at random, and where these must not be fewer, workers. On fewer tasks than
    a pair must share there are none.
    """
    first = _first_votes(votes)  # in the order of tasks
    kept, rng, budget = first, np.random.default_rng(0), MOST_CELLS // votes.classes.size
    sizes = np.bincount(votes.task[first], minlength=votes.tasks.size)
    many = int(np.sum(sizes * (sizes - 1) // 2))
    if many > budget:
        n_looked = max(votes.tasks.size * budget // many, min(KEPT_TASKS, votes.tasks.size))
        looked = np.isin(np.arange(votes.tasks.size), rng.permutation(votes.tasks.size)[:n_looked])
        kept = first[looked[votes.task[first]]]
    rank, limit = rng.permutation(votes.workers.size), votes.workers.size
    while True:
        chosen = kept[rank[votes.worker[kept]] < limit]
        sizes = np.bincount(votes.task[chosen], minlength=votes.tasks.size)
        if limit <= 2 or np.sum(sizes * (sizes - 1) // 2) <= 2 * budget:  # tasks drawn may be larger than others
            break
        limit = int(0.8 * limit)
    enough = np.sum(sizes > 1) >= FEWEST
    one, other = _pairs(sizes if enough else np.zeros_like(sizes))
    return Meetings.of(votes, chosen[one], chosen[other]), chosen.size < first.size


def _first_votes(votes: Votes) -> np.ndarray:
    return np.unique(votes.task * votes.workers.size + votes.worker, return_index=True)[1]


def _pairs(sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return all pairs of places within consecutive stretches of these sizes."""
    starts = np.cumsum(sizes) - sizes
    left, right = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
    for size in np.unique(sizes):
        begin = starts[sizes == size, None]
        one, other = np.triu_indices(size, 1)
        left.append((begin + one).ravel())
        right.append((begin + other).ravel())
    return np.concatenate(left), np.concatenate(right)


def _counted(votes: Votes, joint: Joint, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return over all tasks how many pairs share, on how many they agree, and on how many they would by chance."""
    first = _first_votes(votes)
    first = first[np.argsort(votes.worker[first], kind="stable")]
    ends = np.searchsorted(votes.worker[first], np.arange(votes.workers.size + 1))
    counts = np.zeros((3, len(pairs)))
    for place, pair in enumerate(pairs.tolist()):
        one, other = (first[ends[worker] : ends[worker + 1]] for worker in pair)
        rows = np.intersect1d(votes.task[one], votes.task[other], assume_unique=True, return_indices=True)
        met = Meetings.of(votes, one[rows[1]], other[rows[2]])
        counts[:, place] = rows[0].size, np.sum(met.label == met.other), np.sum(_scores(votes, joint, met)[1])
    return counts[0].astype(np.int64), counts[1], counts[2]


class Joint(NamedTuple):
    """Confusion matrices without a zero, and what they say of every task with each class (tasks, true), in logs."""

    confusions: np.ndarray
    tasks: np.ndarray


def _joint(votes: Votes, model: CrowdModel) -> Joint:
    strength = (votes.votes_of_workers[:, None] * model.shares)[:, None]
    confusions = (strength * model.confusions + 1 / model.shares.size) / (strength + 1)  # of one more task a class
    return Joint(confusions, log_joint(votes, CrowdModel(confusions, model.shares)))


def _scores(votes: Votes, joint: Joint, met: Meetings) -> tuple[np.ndarray, np.ndarray]:
    """Return s of every meeting, and the probability that two agree who vote independently."""
    confusions, k = joint.confusions, votes.classes.size
    logs, (weight, other_weight) = np.log(confusions), met.weights[..., None]
    rest = joint.tasks[met.task] - weight * logs[met.first, met.label] - other_weight * logs[met.second, met.other]
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


def with_shared_votes(votes: Votes, pairs: np.ndarray) -> Votes:
    """Return votes in which like votes on a task, of workers who copy from each other, share the weight of one."""
    size = votes.workers.size
    links = sparse.coo_array((np.ones(len(pairs)), pairs.T), shape=(size, size))
    groups = connected_components(links, directed=False)[1]
    like = (votes.task * size + groups[votes.worker]) * votes.classes.size + votes.label
    place, counts = np.unique(like, return_inverse=True, return_counts=True)[1:]
    # A worker who votes twice on a task counts twice, as everywhere: only votes of others share a weight.
    own = np.unique(like * size + votes.worker, return_inverse=True, return_counts=True)
    return replace(votes, weights=own[2][own[1]] / counts[place])


def in_doubt(found: Examined, workers: np.ndarray) -> Iterator[Warning]:
    """Yield what is to be said where it cannot be told who copies; workers have these names."""
    if len(found.named.pairs) < len(found.believed):
        names = workers[np.unique(found.believed)].tolist()
        shown = ", ".join(map(repr, names[:SHOWN])) + (", ..." if len(names) > SHOWN else "")
        yield UserWarning(
            f"votes do not tell whether some of the workers {shown} copy from each other or others do, which is nearly "
            "as probable: no pair is named in copies_. Labels follow the more probable; known classes of some tasks, "
            "gold=..., would tell"
        )
