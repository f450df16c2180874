r"""An order of tasks, workers and classes that votes alone determine, so that no result depends on how they are named.

Random numbers are dealt in some order, halves of the tasks are taken in some order, and sums round in some order. By
the order of names, a crowd whose labels are spelled otherwise would have other error bars. So every task, worker and
class gets a number that depends on its votes and on the numbers of what these connect it to, in turn, until no more of
them are told apart (the refinement of Weisfeiler and Leman); these numbers are the order. What is left equal is alike
in all that votes say.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from codiag.models._votes import Votes

MOST_ROUNDS = 6
"""Rounds of refinement: after the second or third, numbers seldom become more."""
AXES = {"t": "tasks", "w": "workers", "c": "classes", "l": "labels"}


class Order(NamedTuple):
    """Places of tasks, workers, classes and given labels in votes as they came, in the order that votes determine.

    Labels are in the order of the classes, unless labels stand for others. `alike` has the same number for workers whom
    votes do not tell apart, in this order.
    """

    tasks: np.ndarray
    workers: np.ndarray
    classes: np.ndarray
    labels: np.ndarray
    alike: np.ndarray

    def applied(self, values: np.ndarray, axes: str) -> np.ndarray:
        """Return values in this order; `axes` has a letter for each axis, as in `AXES`, or a dot."""
        for axis, letter in enumerate(axes):
            values = values if letter == "." else np.take(values, getattr(self, AXES[letter]), axis=axis)
        return values

    def undone(self, values: np.ndarray, axes: str) -> np.ndarray:
        """Return values that are in this order as the votes came."""
        return self._replace(**{name: np.argsort(getattr(self, name)) for name in AXES.values()}).applied(values, axes)

    def averaged(self, values: np.ndarray) -> np.ndarray:
        """Return values of workers (workers, ...) with the mean for those whom votes do not tell apart."""
        counts = np.bincount(self.alike)
        sums = np.zeros((counts.size, *values.shape[1:]))
        np.add.at(sums, self.alike, values)
        return (sums / counts.reshape(-1, *[1] * (values.ndim - 1)))[self.alike]


def in_own_order(votes: Votes) -> tuple[Votes, Order]:
    """Return the same votes with tasks, workers, classes and the votes themselves in the order that they determine."""
    numbers = _numbers(votes)
    tasks, workers, classes = (np.argsort(one, kind="stable") for one in numbers)
    order = Order(tasks, workers, classes, classes, np.unique(numbers[1][workers], return_inverse=True)[1])
    task, worker = np.argsort(tasks)[votes.task], np.argsort(workers)[votes.worker]
    ranks = np.append(np.argsort(classes), -1)  # of a class that is not known, too
    label, gold = ranks[votes.label], None if votes.gold is None else ranks[votes.gold[tasks]]
    rows = np.lexsort((label, worker, task))
    votes = replace(votes, tasks=votes.tasks[tasks], workers=votes.workers[workers], classes=votes.classes[classes])
    return replace(votes, task=task[rows], worker=worker[rows], label=label[rows], gold=gold), order


def _numbers(votes: Votes) -> list[np.ndarray]:
    """Return a number for every task, worker and class that does not depend on names."""
    sizes = votes.tasks.size, votes.workers.size, votes.classes.size
    task, worker, label = (np.zeros(size, dtype=np.uint64) for size in sizes)
    sides = [_pairs(side, votes.label, sizes[2]) for side in (votes.task, votes.worker)]
    gold = np.full(sizes[0], -1) if votes.gold is None else votes.gold
    known, gold = np.flatnonzero(gold >= 0), gold[gold >= 0]
    told = 0
    for _ in range(MOST_ROUNDS):
        # A label on a task is known by who gave it, and a label of a worker by where it was given.
        links = [
            _mixed(_summed(place, _mixed(other), pairs[0].size))
            for (pairs, place), other in zip(sides, (worker[votes.worker], task[votes.task]), strict=True)
        ]
        new = []
        named = np.zeros_like(label)
        for ((one, of), _), link, mine in zip(sides, links, (task, worker), strict=True):
            new.append(mine + _summed(one, _mixed(link + label[of]), mine.size))
            named = _mixed(named) + _summed(of, _mixed(link + mine[one]), label.size)
        named += _mixed(_summed(gold, _mixed(task[known]), label.size))
        new[0][known] += _mixed(label[gold]) + np.uint64(1)
        task, worker, label = (_mixed(one) for one in (*new, label + named))
        before, told = told, sum(np.unique(one).size for one in (task, worker, label))
        if told == before:
            break
    return [task, worker, label]


def _pairs(side: np.ndarray, label: np.ndarray, k: int) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray]:
    """Return the different pairs of a task or worker and a label, and which of them each vote is of."""
    pairs, place = np.unique(side * k + label, return_inverse=True)
    one, of = np.divmod(pairs, k)
    return (one, of), place.ravel()


def _summed(places: np.ndarray, values: np.ndarray, size: int) -> np.ndarray:
    """Return sums of whole numbers by place, modulo 2^64: in whatever order, these are the same."""
    sums = np.zeros(size, dtype=np.uint64)
    np.add.at(sums, places, values)
    return sums


def _mixed(values: np.ndarray) -> np.ndarray:
    """Return whole numbers whose sums tell which numbers these were (the steps of SplitMix64)."""
    values = values + np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        values = (values ^ (values >> np.uint64(shift))) * np.uint64(factor)
    return values ^ (values >> np.uint64(31))
