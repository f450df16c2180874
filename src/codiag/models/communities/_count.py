r"""Partitions of a network into communities that have more links inside than random graphs with the same degrees.

Modularity is the share of links inside communities, less what is expected where the ends of links are joined at random:
:math:`d_a d_b / 2m` links between communities whose nodes have :math:`d_a` and :math:`d_b` ends of the 2m. Two
communities with more links than that between them are one.

How many communities the spectrum of a network shows beyond what random graphs explain.

The Bethe Hessian :math:`(r^2 - 1) I - r A + D` of a random graph without communities has one negative eigenvalue where
:math:`r^2` is the mean excess degree, and one more for each community that any method could detect (Saade, Krzakala &
Zdeborova 2014; Le & Levina 2015). By Sylvester's law of inertia these are the eigenvalues above 1 of
:math:`r (D + r^2 - 1)^{-1/2} A (D + r^2 - 1)^{-1/2}`, which are the largest, and quickly found.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from codiag.models.communities._network import Network
from codiag.models.frame import leading_range

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


def count_communities(network: Network, largest: int = 40) -> int:
    """Return the number of negative eigenvalues of the Bethe Hessian, at least 1 and at most `largest`."""
    n = network.adjacency.shape[0]
    n_values = min(largest, n // 4)
    if n_values < 3:
        raise ValueError(
            f"the graph must have at least 12 nodes with links to tell the number of communities; it has {n}. Give "
            "n_components"
        )
    scaled = _normalized(network.adjacency)
    basis = leading_range(lambda vectors: scaled @ vectors, n, n_values, seed=0)
    values = np.einsum("ij,ij->j", basis, scaled @ basis)
    return max(int(np.sum(values > 1)), 1)


def _normalized(adjacency: sparse.csr_array) -> sparse.csr_array:
    """Return the matrix whose eigenvalues above 1 are counted, whatever the unit of weights.

    With weights w the Bethe Hessian has entries :math:`1 + sum_j w_ij^2 / (r^2 - w_ij^2)` and
    :math:`-r w_ij / (r^2 - w_ij^2)`, and excess degrees are sums of squares.
    """
    squares = adjacency**2
    strengths = np.asarray(squares.sum(axis=1)).ravel()
    excess = float(strengths @ strengths - np.sum(squares.data**2)) / float(strengths.sum())
    # At most the largest weight, the Hessian is the Laplacian, which has no negative eigenvalue: no communities.
    square = max(excess, 1.001 * float(squares.data.max()))
    links, own = adjacency.copy(), squares.copy()
    links.data = np.sqrt(square) * adjacency.data / (square - squares.data)
    own.data = squares.data / (square - squares.data)
    scale = sparse.dia_array((1 / np.sqrt(1 + np.asarray(own.sum(axis=1)).ravel())[None], [0]), shape=adjacency.shape)
    return sparse.csr_array(scale @ links @ scale)
