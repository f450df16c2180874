r"""Partitions of a network into communities that have more links inside than random graphs with the same degrees.

Modularity is the share of links inside communities, less what is expected where the ends of links are joined at random:
:math:`d_a d_b / 2m` links between communities whose nodes have :math:`d_a` and :math:`d_b` ends of the 2m. Two
communities with more links than that between them are one.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from codiag.models._networks import Network

N_BLOCKS = 200
"""Parts of the nodes that are moved one after the other; nodes of one part are moved at once."""


def modularity(network: Network, labels: np.ndarray) -> float:
    """Return the share of links inside communities beyond what degrees explain."""
    return float(np.trace(_excess(network, labels)) / network.adjacency.sum())


def merged(network: Network, labels: np.ndarray) -> np.ndarray:
    """Return labels 0, 1, ... of communities of which no two have more links with each other than degrees explain.

    Of pairs that have, those with the most such links are joined first. Labels without nodes are left out.
    """
    labels = np.unique(labels, return_inverse=True)[1]
    excess = _excess(network, labels)
    own = np.arange(excess.shape[0])
    while own.size > 1:
        apart = excess - np.diag(np.full(own.size, np.inf))
        one, other = sorted(np.unravel_index(np.argmax(apart), apart.shape))
        if excess[one, other] <= 0:
            break
        labels = np.where(labels == other, one, labels) - (labels > other)
        excess[one] += excess[other]
        excess[:, one] += excess[:, other]
        excess, own = np.delete(np.delete(excess, other, axis=0), other, axis=1), own[:-1]
    return labels


def settled(network: Network, labels: np.ndarray) -> np.ndarray:
    """Return labels of nodes after moves and mergers that raise modularity, until they no longer do."""
    best = merged(network, labels)
    height = modularity(network, best)
    while True:
        found = merged(network, _moved(network, best))
        reached = modularity(network, found)
        if reached <= height + 1e-12:
            return best
        best, height = found, reached


def _excess(network: Network, labels: np.ndarray) -> np.ndarray:
    """Return ends of links between communities (k, k) beyond what degrees explain."""
    n, k = labels.size, int(labels.max()) + 1
    belongs = sparse.csr_array((np.ones(n), (np.arange(n), labels)), shape=(n, k))
    ends = (belongs.T @ network.adjacency @ belongs).toarray()
    totals = ends.sum(axis=0)
    return ends - np.outer(totals, totals) / totals.sum()


def _moved(network: Network, labels: np.ndarray) -> np.ndarray:
    """Return labels after every node moved, once, to the community that gains most by it."""
    labels, degrees = labels.copy(), network.degrees
    total, k = degrees.sum(), int(labels.max()) + 1
    for some in np.array_split(np.arange(labels.size), min(N_BLOCKS, labels.size)):
        totals = np.bincount(labels, weights=degrees, minlength=k)
        rows = network.adjacency[some]
        places = np.repeat(np.arange(some.size), np.diff(rows.indptr)) * k + labels[rows.indices]
        ends = np.bincount(places, weights=rows.data, minlength=some.size * k).reshape(some.size, k)
        own = np.arange(some.size), labels[some]
        expected = np.outer(degrees[some], totals)
        expected[own] -= degrees[some] ** 2  # a node is not among the others of its community
        gains = ends - expected / total
        best = np.argmax(gains, axis=1)
        rises = gains[np.arange(some.size), best] > gains[own] + 1e-12 * total
        labels[some] = np.where(rises, best, labels[some])
    return labels
