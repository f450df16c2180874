r"""Workers who copy from each other: pairs that agree more often than their tasks and confusion matrices explain.

Let q be the probabilities of the classes of a task, given the votes of all others. The labels l and m of workers i and
j have the probability :math:`p = \sum_c q_c C_i[l, c] C_j[m, c]` if they vote independently, and
:math:`p^* = 1[l = m] \sum_c q_c (C_i[l, c] + C_j[l, c]) / 2` if one copies from the other. With
:math:`s = p^* / p - 1`, copying on a share :math:`\rho` of the tasks has the likelihood ratio :math:`1 + \rho s`, whose
mean is one without copying. Tasks that are hard for everybody make all pairs agree in their mistakes, as if they copied
on a share :math:`\rho_0`, which is estimated from all pairs together. For a pair that copies on no larger share, the
product of :math:`(1 + \rho s) / (1 + \rho_0 s)` over the shared tasks has a mean of at most one, as the ratio is
concave in s. By Markov's inequality it exceeds :math:`m / \alpha` for any of m independent pairs with a probability of
at most :math:`\alpha`, at any number of tasks. This takes the confusion matrices as known.

If several workers copy from one, expectation maximization may fit their votes as the truth, and independent workers
then seem to agree in their mistakes. Therefore pairs are also tested with the shares of the votes as classes, and
expectation maximization is run again with equal votes of such pairs sharing the weight of one. Of these runs and the
plain one, the run under which all votes, copied ones included, are most probable is accepted. If a run that names none
of the same pairs is nearly as probable, no pair is reported: it is then ambiguous whether some workers copy, or are
right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree
from scipy.special import softmax

from codiag.models.crowd._em import CrowdModel, Prior, Run, Start, expect, log_joint, maximize, run_em
from codiag.models.crowd._votes import Votes

ALPHA = 0.05
"""Upper bound of the probability that any pair is reported that votes independently."""
NEARLY = float(np.log(2 / ALPHA))
"""Difference of log-likelihoods up to which two runs are nearly equally probable: if models were known, each of two
wrong ones would exceed it with a probability of at most `ALPHA` / 2, by Markov's inequality."""
RATES = np.array([0.05, 0.1, 0.2, 0.4, 0.7, 0.95])
"""Shares of copied tasks whose likelihood ratios are averaged."""
LEAST_SHARED = 5
"""Number of shared tasks from which a pair is tested (chosen by experience)."""
MOST_CELLS = 5 * 10**6
"""Number of entries of the arrays of meetings; above it, a random sample of the tasks is used, then of the workers."""
LEAST_TASKS = 200
"""Size of the sample of tasks from which workers are sampled instead (chosen by experience)."""
PLAIN = Prior(np.full((1, 1), 0.5), 0.5, None, one_coin=False)
"""Prior of the confusion matrices that are estimated in order to test pairs."""
MAX_ITER, TOL = 50, 1e-5
"""Limits of expectation maximization with confusion matrices, if the run has one accuracy for each worker."""
SHOWN = 8
"""Largest number of workers in a warning."""
LARGEST_COMMON = 0.9
"""Upper bound of the common share of copied tasks."""


class Copies(NamedTuple):
    """Pairs of workers who copy from each other.

    Attributes
    ----------
    pairs : array of shape (n_pairs, 2)
        Indices of the workers, the smaller first; the most certain pair first.
    shared, agreed, expected : arrays of shape (n_pairs,)
        Number of tasks with votes of both, number of these with equal labels, and its expectation without copying.
    p_values : array of shape (n_pairs,)
        Bounds of the probability that any independent pair seems to copy as much, over all pairs that were tested.
    evidence : array of shape (n_pairs,)
        Logarithm of the likelihood ratio of copying against none.
    """

    pairs: np.ndarray
    shared: np.ndarray
    agreed: np.ndarray
    expected: np.ndarray
    p_values: np.ndarray
    evidence: np.ndarray


class DetectedCopies(NamedTuple):
    """Reported pairs, none if they are ambiguous, and the pairs (n_pairs, 2) of the most probable run."""

    reported: Copies
    accepted: np.ndarray


class Meetings(NamedTuple):
    """Two workers on one task: the task, the workers, their labels and the weights of their votes (2, n_meetings)."""

    task: np.ndarray
    first: np.ndarray
    second: np.ndarray
    label: np.ndarray
    other: np.ndarray
    weights: np.ndarray

    @classmethod
    def of(cls, votes: Votes, first: np.ndarray, second: np.ndarray) -> Meetings:
        """Return the meetings of votes with these indices."""
        weights = np.ones(votes.label.size) if votes.weights is None else votes.weights
        columns = votes.task[first], votes.worker[first], votes.worker[second], votes.label[first], votes.label[second]
        return cls(*columns, np.stack([weights[first], weights[second]]))


def detect_copies(votes: Votes, run: Run, rerun: Callable[[Votes], Run], *, one_coin: bool = False) -> DetectedCopies:
    """Return the pairs of workers who copy from each other, by the run under which all votes are most probable.

    The given run is compared with those that `rerun` returns for votes in which suspects share a weight: all pairs that
    the shares of the votes suggest, and those of them with at least half of the largest evidence.
    """
    tested = [_tested(votes, votes, run, one_coin=one_coin)]
    suspects = find_copies(votes, Run(maximize(votes, votes.shares, PLAIN), votes.shares, 0.0, [], True))
    for share in (0.0, 0.5):
        pairs = suspects.pairs[suspects.evidence >= share * np.max(suspects.evidence, initial=0.0)]
        if len(pairs) == 0 or (share > 0 and len(pairs) == len(suspects.pairs)):
            continue
        shared = with_shared_votes(votes, pairs)
        tested.append(_tested(votes, shared, rerun(shared), one_coin=one_coin))
    best, value = max(tested, key=lambda pair: pair[1])
    named = set(map(tuple, best.pairs.tolist()))
    rivals = [copies for copies, other in tested if value - other <= NEARLY and copies is not best]
    ambiguous = any(named.isdisjoint(map(tuple, rival.pairs.tolist())) for rival in rivals)
    return DetectedCopies(_no_pairs() if ambiguous else best, best.pairs)


def _tested(votes: Votes, shared: Votes, run: Run, *, one_coin: bool) -> tuple[Copies, float]:
    """Return the pairs of a run with shared votes, and the log-likelihood of all votes if those pairs copy.

    This is the log-likelihood if workers vote independently, given the run, plus the evidence of each pair that joins
    two groups of workers who copy.
    """
    if one_coin:  # workers with a bias for the same label agree by that alone
        run = run_em(shared, Start(run.classes), PLAIN, MAX_ITER, TOL)
    copies, size = find_copies(shared, run), votes.workers.size
    places = tuple(copies.pairs.T.astype(np.int32))  # older versions of SciPy take no others
    links = sparse.csr_array((-copies.evidence, places), shape=(size, size))
    return copies, expect(votes, run.model)[1] - float(minimum_spanning_tree(links).sum())


def find_copies(votes: Votes, run: Run) -> Copies:
    """Return the pairs of workers who, by the confusion matrices of a run, copy from each other."""
    met, is_sample = meetings(votes)
    joint = _joint(votes, run.model)
    scores, agreement = _scores(votes, joint, met)
    names, place, shared = np.unique(
        met.first * votes.workers.size + met.second, return_inverse=True, return_counts=True
    )
    tested = shared >= LEAST_SHARED
    common = common_rate(scores)
    base = np.log1p(common * scores)
    logs = [np.bincount(place, np.log1p(rate * scores) - base) for rate in RATES if rate > common]
    if not logs or not np.any(tested):
        return _no_pairs()
    evidence = np.logaddexp.reduce(logs, axis=0) - np.log(len(logs))
    gains = np.max(logs, axis=0) + np.bincount(place, base)
    bounds = np.exp(np.minimum(np.log(np.sum(tested)) - evidence, 0))
    accepted = np.flatnonzero(tested & (bounds <= ALPHA))
    accepted = accepted[np.argsort(-evidence[accepted], kind="stable")]
    pairs = np.stack(np.divmod(names[accepted], votes.workers.size), axis=1)
    agreed, expected = np.bincount(place, met.label == met.other), np.bincount(place, agreement)
    counts = shared[accepted], agreed[accepted], expected[accepted]
    if is_sample:
        counts = _counts(votes, joint, pairs)
    return Copies(pairs, *counts, bounds[accepted], gains[accepted])


def _no_pairs() -> Copies:
    return Copies(np.empty((0, 2), dtype=np.int64), *(np.empty(0) for _ in range(5)))


def meetings(votes: Votes) -> tuple[Meetings, bool]:
    """Return all pairs of workers on all tasks, by the first vote of each, and whether these are only a sample.

    If there are too many, tasks are sampled at random, and then workers. There are none on fewer tasks than a pair must
    share.
    """
    first = _first_votes(votes)  # in the order of tasks
    sample, rng, budget = first, np.random.default_rng(0), MOST_CELLS // votes.classes.size
    sizes = np.bincount(votes.task[first], minlength=votes.tasks.size)
    n_meetings = int(np.sum(sizes * (sizes - 1) // 2))
    if n_meetings > budget:
        n_tasks = max(votes.tasks.size * budget // n_meetings, min(LEAST_TASKS, votes.tasks.size))
        in_sample = np.isin(np.arange(votes.tasks.size), rng.permutation(votes.tasks.size)[:n_tasks])
        sample = first[in_sample[votes.task[first]]]
    rank, limit = rng.permutation(votes.workers.size), votes.workers.size
    while True:
        chosen = sample[rank[votes.worker[sample]] < limit]
        sizes = np.bincount(votes.task[chosen], minlength=votes.tasks.size)
        if (
            limit <= 2 or np.sum(sizes * (sizes - 1) // 2) <= 2 * budget
        ):  # sampled tasks may have more votes than others
            break
        limit = int(0.8 * limit)
    enough = np.sum(sizes > 1) >= LEAST_SHARED
    left, right = _pairs(sizes if enough else np.zeros_like(sizes))
    return Meetings.of(votes, chosen[left], chosen[right]), chosen.size < first.size


def _first_votes(votes: Votes) -> np.ndarray:
    return np.unique(votes.task * votes.workers.size + votes.worker, return_index=True)[1]


def _pairs(sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return all pairs of indices within consecutive ranges of these sizes."""
    starts = np.cumsum(sizes) - sizes
    left, right = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
    for size in np.unique(sizes):
        begin = starts[sizes == size, None]
        rows, columns = np.triu_indices(size, 1)
        left.append((begin + rows).ravel())
        right.append((begin + columns).ravel())
    return np.concatenate(left), np.concatenate(right)


def _counts(votes: Votes, joint: Joint, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return for each pair, over all tasks, the numbers of shared tasks, of equal labels, and its expectation."""
    first = _first_votes(votes)
    first = first[np.argsort(votes.worker[first], kind="stable")]
    ends = np.searchsorted(votes.worker[first], np.arange(votes.workers.size + 1))
    counts = np.zeros((3, len(pairs)))
    for place, pair in enumerate(pairs.tolist()):
        left, right = (first[ends[worker] : ends[worker + 1]] for worker in pair)
        rows = np.intersect1d(votes.task[left], votes.task[right], assume_unique=True, return_indices=True)
        met = Meetings.of(votes, left[rows[1]], right[rows[2]])
        counts[:, place] = rows[0].size, np.sum(met.label == met.other), np.sum(_scores(votes, joint, met)[1])
    return counts[0].astype(np.int64), counts[1], counts[2]


class Joint(NamedTuple):
    """Positive confusion matrices, and log-probabilities of the votes on every task with each class (tasks, true)."""

    confusions: np.ndarray
    tasks: np.ndarray


def _joint(votes: Votes, model: CrowdModel) -> Joint:
    strength = (votes.votes_of_workers[:, None] * model.shares)[:, None]
    confusions = (strength * model.confusions + 1 / model.shares.size) / (strength + 1)  # with one more task a class
    return Joint(confusions, log_joint(votes, CrowdModel(confusions, model.shares)))


def _scores(votes: Votes, joint: Joint, met: Meetings) -> tuple[np.ndarray, np.ndarray]:
    """Return s of every meeting, and the probability of equal labels if both vote independently."""
    confusions, k = joint.confusions, votes.classes.size
    logs, (weight, other_weight) = np.log(confusions), met.weights[..., None]
    rest = joint.tasks[met.task] - weight * logs[met.first, met.label] - other_weight * logs[met.second, met.other]
    classes = softmax(rest, axis=1)
    if votes.gold is not None:
        known = votes.with_known(np.zeros((votes.tasks.size, k)))
        classes = known[met.task] + classes * (votes.gold[met.task, None] < 0)
    left, right = confusions[met.first, met.label], confusions[met.second, met.other]
    independent = np.sum(classes * left * right, axis=1)
    copied = np.where(met.label == met.other, np.sum(classes * (left + right), axis=1) / 2, 0.0)
    agreement = sum(np.sum(classes * confusions[met.first, c] * confusions[met.second, c], axis=1) for c in range(k))
    return copied / independent - 1, np.asarray(agreement)


def common_rate(scores: np.ndarray) -> float:
    """Return the share of copied tasks under which all meetings together are most probable."""
    low, high = 0.0, LARGEST_COMMON
    if np.sum(scores) <= 0:
        return low
    for _ in range(12):
        middle = (low + high) / 2
        low, high = (middle, high) if np.sum(scores / (1 + middle * scores)) > 0 else (low, middle)
    return high


def with_shared_votes(votes: Votes, pairs: np.ndarray) -> Votes:
    """Return votes in which equal votes on a task, of workers who copy from each other, share the weight of one."""
    size = votes.workers.size
    links = sparse.coo_array((np.ones(len(pairs)), pairs.T), shape=(size, size))
    groups = connected_components(links, directed=False)[1]
    equal = (votes.task * size + groups[votes.worker]) * votes.classes.size + votes.label
    place, counts = np.unique(equal, return_inverse=True, return_counts=True)[1:]
    # A worker who votes twice on a task counts twice, as everywhere: only votes of different workers share a weight.
    repeated, n_repeated = np.unique(equal * size + votes.worker, return_inverse=True, return_counts=True)[1:]
    return replace(votes, weights=n_repeated[repeated] / counts[place])


def copy_warnings(detected: DetectedCopies, workers: np.ndarray) -> Iterator[Warning]:
    """Yield a warning if it is ambiguous which of the workers, by these names, copy."""
    if len(detected.reported.pairs) < len(detected.accepted):
        names = workers[np.unique(detected.accepted)].tolist()
        shown = ", ".join(map(repr, names[:SHOWN])) + (", ..." if len(names) > SHOWN else "")
        yield UserWarning(
            f"it is ambiguous whether some of the workers {shown} copy from each other or others do, which is nearly "
            "as probable: copies_ has no pair. Labels follow the more probable explanation; known classes of "
            "some tasks, gold=..., would decide"
        )
