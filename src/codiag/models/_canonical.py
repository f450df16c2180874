r"""An order of the nodes of a graph that follows from its links alone, whatever the nodes are called.

Colours are refined until neighbours of one colour no longer tell nodes apart (Weisfeiler & Leman, 1968). What is still
alike then is alike for most purposes; one of such nodes is set apart and refinement goes on, until all are told apart
but twins, nodes with the same neighbours, for which order means nothing. Sums are over integers modulo :math:`2^{64}`,
exact in every order.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

WORK = 2 * 10**7
"""Links to look at before nodes that are still alike are left in the order they came in."""


def canonical_order(adjacency: sparse.csr_array) -> np.ndarray:
    """Return the nodes in an order that does not depend on how they are numbered, up to those that nothing tells apart.

    Where nodes are alike but for the names of others (a graph of which a rotation is the same graph), any of these
    orders lists the same matrix. Graphs that are very regular may use up the work allowed, and are left as they are.
    """
    links = _Links(adjacency)
    colours = links.refined(np.zeros(links.n, dtype=np.int64))
    if links.first_tie(colours) is not None and links.look_at_triangles(adjacency):
        colours = links.refined(colours)
    while links.work < WORK:
        node = links.first_tie(colours)
        if node is None:
            break
        colours = 2 * colours
        colours[node] -= 1
        colours = links.refined(colours)
    return np.lexsort((np.arange(links.n), colours))


class _Links:
    """The links of a graph by node, with a number for the kind of each, and the work spent on them."""

    def __init__(self, adjacency: sparse.csr_array) -> None:
        self.n = adjacency.shape[0]
        self._starts, self._ends = adjacency.indptr, adjacency.indices
        self._kinds = np.unique(adjacency.data, return_inverse=True)[1].astype(np.int64)
        self._identities = self._twins()
        self.work = 0

    def refined(self, colours: np.ndarray) -> np.ndarray:
        """Return colours, as ranks, split by those of neighbours until that splits no more."""
        colours = _ranks(colours)
        count = int(colours.max(initial=-1)) + 1
        while self.work < WORK:
            self.work += self._ends.size + self.n
            colours = _ranks(colours, self._sums(colours))
            before, count = count, int(colours.max(initial=-1)) + 1
            if count == before or count == self.n:
                break
        return colours

    def first_tie(self, colours: np.ndarray) -> int | None:
        """Return the first node of the first colour whose nodes are not all twins of each other; None without one."""
        order = np.lexsort((np.arange(self.n), colours))
        alike = colours[order][1:] == colours[order][:-1]
        for identity in self._identities:
            alike = alike & (identity[order][1:] != identity[order][:-1])
        places = np.flatnonzero(alike)
        if places.size == 0:
            return None
        return int(order[np.searchsorted(colours[order], colours[order][places[0]])])

    def look_at_triangles(self, adjacency: sparse.csr_array) -> bool:
        """Tell links apart by the number of neighbours that their ends share, where that is not too much work."""
        degrees = np.diff(self._starts).astype(np.float64)
        if not 0 < np.sum(degrees**2) < WORK:
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
        """Return numbers that are equal for nodes with the same neighbours, and for nodes that are also linked."""
        own = _mixed(np.arange(self.n))
        among_others = self._sums(np.arange(self.n))
        return [among_others, among_others + _mixed(own ^ _mixed(np.zeros(1, dtype=np.int64)))]

    def _sums(self, colours: np.ndarray) -> np.ndarray:
        """Return for every node a number made of the colours of its neighbours and the kinds of its links to them."""
        seen = _mixed(_mixed(colours)[self._ends] ^ _mixed(self._kinds))
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
    """Return 64 bits that look random, one number for each."""
    bits = (numbers.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))
