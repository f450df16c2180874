r"""An order of tasks, workers and classes that votes alone determine, so that no result depends on how they are named.

Random numbers are dealt in some order, halves of the tasks are taken in some order, and sums round in some order. By
the order of names, a crowd whose labels are spelled otherwise would have other error bars. So every task, worker and
class gets a number that depends on its votes and on the numbers of what these connect it to, in turn, until no more of
them are told apart (the refinement of Weisfeiler and Leman); these numbers are the order. What is left equal is alike
in all that votes say.

An order of the nodes of a graph that follows from its links alone, whatever the nodes are called.

Nodes are colored, and colors are refined until all nodes of one color have neighbors of the same colors (Weisfeiler &
Leman, 1968). Where several nodes still share a color, one of them is given a color of its own and refinement continues,
until only twins share one: nodes with the same neighbors, whose order makes no difference. Sums are over integers
modulo :math:`2^{64}`, exact in every order.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy import sparse

from codiag.models.crowd._votes import Votes

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


MOST_WORK = 2 * 10**7
"""Links to visit before nodes that still share a color are left in the order they came in."""


def canonical_order(adjacency: sparse.csr_array) -> np.ndarray:
    """Return the nodes in an order that does not depend on how they are numbered, but for what makes no difference.

    Where renumbering the nodes gives the same graph, as for a ring, several orders are possible, and all of them list
    the same matrix. Graphs that are very regular may use up the work allowed, and keep the order they came in.
    """
    links = _Links(adjacency)
    colors = links.refined(np.zeros(links.n, dtype=np.int64))
    if links.first_tie(colors) is not None and links.refine_by_triangles(adjacency):
        colors = links.refined(colors)
    while links.work < MOST_WORK:
        node = links.first_tie(colors)
        if node is None:
            break
        colors = 2 * colors
        colors[node] -= 1
        colors = links.refined(colors)
    return np.lexsort((np.arange(links.n), colors))


class _Links:
    """The links of a graph by node, with a number for the kind of each, and the work spent on them."""

    def __init__(self, adjacency: sparse.csr_array) -> None:
        self.n = adjacency.shape[0]
        self._starts, self._ends = adjacency.indptr, adjacency.indices
        self._kinds = np.unique(adjacency.data, return_inverse=True)[1].astype(np.int64)
        self._identities = self._twins()
        self.work = 0

    def refined(self, colors: np.ndarray) -> np.ndarray:
        """Return colors, as ranks, split by those of neighbors until that splits no more."""
        colors = _ranks(colors)
        count = int(colors.max(initial=-1)) + 1
        while self.work < MOST_WORK:
            self.work += self._ends.size + self.n
            colors = _ranks(colors, self._sums(colors))
            before, count = count, int(colors.max(initial=-1)) + 1
            if count == before or count == self.n:
                break
        return colors

    def first_tie(self, colors: np.ndarray) -> int | None:
        """Return the first node of the first color whose nodes are not all twins of each other; None without one."""
        order = np.lexsort((np.arange(self.n), colors))
        alike = colors[order][1:] == colors[order][:-1]
        for identity in self._identities:
            alike = alike & (identity[order][1:] != identity[order][:-1])
        places = np.flatnonzero(alike)
        if places.size == 0:
            return None
        return int(order[np.searchsorted(colors[order], colors[order][places[0]])])

    def refine_by_triangles(self, adjacency: sparse.csr_array) -> bool:
        """Distinguish links by the number of neighbors their ends share; return False where that is too much work."""
        degrees = np.diff(self._starts).astype(np.float64)
        if not 0 < np.sum(degrees**2) < MOST_WORK:
            return False
        pattern = sparse.csr_array(
            (np.ones(self._ends.size, dtype=np.int64), self._ends, self._starts), adjacency.shape
        )
        shared = sparse.csr_array(pattern @ pattern)
        rows = np.repeat(np.arange(self.n), np.diff(self._starts))
        numbers = np.asarray(shared[rows, self._ends]).ravel()
        self._kinds = _ranks(self._kinds, numbers.astype(np.uint64))
        self.work += int(np.sum(degrees**2))
        return True

    def _twins(self) -> list[np.ndarray]:
        """Return numbers that are equal for nodes with the same neighbors, and for nodes that are also linked."""
        own = _mixed_bits(np.arange(self.n))
        among_others = self._sums(np.arange(self.n))
        return [among_others, among_others + _mixed_bits(own ^ _mixed_bits(np.zeros(1, dtype=np.int64)))]

    def _sums(self, colors: np.ndarray) -> np.ndarray:
        """Return for every node a number made of the colors of its neighbors and the kinds of its links to them."""
        seen = _mixed_bits(_mixed_bits(colors)[self._ends] ^ _mixed_bits(self._kinds))
        totals = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(seen, dtype=np.uint64)])
        return totals[self._starts[1:]] - totals[self._starts[:-1]]


def _ranks(first: np.ndarray, second: np.ndarray | None = None) -> np.ndarray:
    """Return the rank of every entry, equal for equal ones, by one key and then by another."""
    if second is None:
        second = np.zeros(first.size, dtype=np.uint64)
    order = np.lexsort((second, first))
    differ = (first[order][1:] != first[order][:-1]) | (second[order][1:] != second[order][:-1])
    ranks = np.zeros(first.size, dtype=np.int64)
    ranks[order[1:]] = np.cumsum(differ)
    return ranks


def _mixed_bits(numbers: np.ndarray) -> np.ndarray:
    """Return for each number 64 bits that look random (a hash)."""
    bits = (numbers.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))
