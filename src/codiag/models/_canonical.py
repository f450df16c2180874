r"""An order of the nodes of a graph that follows from its links alone, whatever the nodes are called.

Nodes are colored, and colors are refined until all nodes of one color have neighbors of the same colors (Weisfeiler &
Leman, 1968). Where several nodes still share a color, one of them is given a color of its own and refinement continues,
until only twins share one: nodes with the same neighbors, whose order makes no difference. Sums are over integers
modulo :math:`2^{64}`, exact in every order.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

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
        own = _mixed(np.arange(self.n))
        among_others = self._sums(np.arange(self.n))
        return [among_others, among_others + _mixed(own ^ _mixed(np.zeros(1, dtype=np.int64)))]

    def _sums(self, colors: np.ndarray) -> np.ndarray:
        """Return for every node a number made of the colors of its neighbors and the kinds of its links to them."""
        seen = _mixed(_mixed(colors)[self._ends] ^ _mixed(self._kinds))
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


def _mixed(numbers: np.ndarray) -> np.ndarray:
    """Return for each number 64 bits that look random (a hash)."""
    bits = (numbers.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))
