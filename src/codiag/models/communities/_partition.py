r"""How many communities a network shows.

The Bethe Hessian :math:`(r^2 - 1) I - r A + D`, with the mean excess degree as :math:`r^2`, has one negative eigenvalue
for a random graph without communities, and one more for each community that any method could detect (Saade, Krzakala &
Zdeborova 2014; Le & Levina 2015). By Sylvester's law of inertia these are the eigenvalues above 1 of
:math:`r (D + r^2 - 1)^{-1/2} A (D + r^2 - 1)^{-1/2}`, which are the largest ones, and fast to compute.

If the ends of links are joined at random, there are :math:`d_a d_b / 2m` links between communities whose nodes have
:math:`d_a` and :math:`d_b` of the 2m ends. Two communities with more links than that between them are merged.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from codiag.models.base import Diagnostics, leading_range
from codiag.models.communities._memberships import Average, LinkCounts
from codiag.models.communities._network import Network


class Communities(NamedTuple):
    """Communities of the nodes that have links, the largest first."""

    network: Network
    memberships: np.ndarray
    average: Average
    fitted: LinkCounts

    def diagnostics(self, n_isolated: int) -> Diagnostics:
        """Return diagnostics; `n_isolated` further nodes have no links."""
        average, k = self.average, self.memberships.shape[1]
        return Diagnostics(
            log_likelihood=self.fitted.history,
            n_partitions=average.n_used,
            agreement=average.agreement,
            standard_error=average.standard_error if average.n_used > 1 or k == 1 else None,
            isolated=n_isolated,
        )

    @property
    def labels(self) -> np.ndarray:
        """The strongest community of every node."""
        return np.argmax(self.memberships, axis=1)

    @property
    def n_superfluous(self) -> int:
        """Number of communities that are the strongest of no node, or are merged with another."""
        return self.memberships.shape[1] - 1 - int(merged(self.network, self.labels).max())

    @property
    def is_shown(self) -> bool:
        """Whether most partitions show as many communities, and none is superfluous."""
        return not self.average.mostly_failed and self.n_superfluous == 0

    def warnings(self) -> tuple[Warning, ...]:
        """Return warnings about communities that the graph hardly shows."""
        average, k = self.average, self.memberships.shape[1]
        n_empty = k - np.unique(self.labels).size
        messages = []
        if average.mostly_failed:
            messages.append(
                f"{average.n_drawn - average.n_used} of {average.n_drawn} partitions of the nodes do not show {k} "
                "communities; ask for fewer"
            )
        if average.agreement < 0.8:
            messages.append(
                f"partitions of the nodes agree little on {k} communities ({average.agreement:.2f} of 1), and other "
                "seeds may find others; ask for fewer communities, or more partitions"
            )
        if n_empty:
            messages.append(
                f"n_components={k} may be more than the graph shows: {n_empty} of the communities "
                f"{'is' if n_empty == 1 else 'are'} the strongest of no node; ask for {k - n_empty}"
            )
        return tuple(UserWarning(message) for message in messages)


def merged(network: Network, labels: np.ndarray) -> np.ndarray:
    """Return labels 0, 1, ... of communities of which no two have more links with each other than degrees explain.

    Pairs with the largest excess of links are merged first. Labels without nodes are dropped.
    """
    labels = np.unique(labels, return_inverse=True)[1]
    excess = _excess(network, labels)
    while len(excess) > 1:
        between = excess - np.diag(np.full(len(excess), np.inf))
        first, second = sorted(np.unravel_index(np.argmax(between), between.shape))
        if excess[first, second] <= 0:
            break
        labels = np.where(labels == second, first, labels) - (labels > second)
        excess[first] += excess[second]
        excess[:, first] += excess[:, second]
        excess = np.delete(np.delete(excess, second, axis=0), second, axis=1)
    return labels


def _excess(network: Network, labels: np.ndarray) -> np.ndarray:
    """Return the number of ends of links between communities (k, k) beyond the expectation from degrees."""
    n, k = labels.size, int(labels.max()) + 1
    belongs = sparse.csr_array((np.ones(n), (np.arange(n), labels)), shape=(n, k))
    ends = (belongs.T @ network.adjacency @ belongs).toarray()
    totals = ends.sum(axis=0)
    return ends - np.outer(totals, totals) / totals.sum()


def count_communities(network: Network, largest: int = 40) -> int:
    """Return the number of negative eigenvalues of the Bethe Hessian, at least 1 and at most `largest`."""
    n = network.adjacency.shape[0]
    n_values = min(largest, n // 4)
    if n_values < 3:
        raise ValueError(
            f"the graph must have at least 12 nodes with links to estimate the number of communities; it has {n}. Give "
            "n_components"
        )
    scaled = _normalized(network.adjacency)
    basis = leading_range(lambda vectors: scaled @ vectors, n, n_values, random_state=0)
    values = np.einsum("ij,ij->j", basis, scaled @ basis)
    return max(int(np.sum(values > 1)), 1)


def _normalized(adjacency: sparse.csr_array) -> sparse.csr_array:
    """Return the matrix whose eigenvalues above 1 are counted, for weights in any unit.

    With weights w the Bethe Hessian has entries :math:`1 + sum_j w_ij^2 / (r^2 - w_ij^2)` and
    :math:`-r w_ij / (r^2 - w_ij^2)`, and excess degrees are sums of squares.
    """
    squares = adjacency**2
    strengths = np.asarray(squares.sum(axis=1)).ravel()
    excess = float(strengths @ strengths - np.sum(squares.data**2)) / float(strengths.sum())
    # If r is the largest weight, the Hessian is the Laplacian, which has no negative eigenvalue: no communities.
    square = max(excess, 1.001 * float(squares.data.max()))
    links, diagonal = adjacency.copy(), squares.copy()
    links.data = np.sqrt(square) * adjacency.data / (square - squares.data)
    diagonal.data = squares.data / (square - squares.data)
    roots = np.sqrt(1 + np.asarray(diagonal.sum(axis=1)).ravel())
    scale = sparse.dia_array((1 / roots[None], [0]), shape=adjacency.shape)
    return sparse.csr_array(scale @ links @ scale)
