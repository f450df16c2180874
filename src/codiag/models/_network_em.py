r"""Expectation maximization for links between communities: a Poisson number between x and y of mean t_x^T B t_y.

With one row of t for every node, of any length, nodes have degrees of their own. Every link is of a kind (a, b), the
communities on whose behalf its two ends made it; memberships are shares of a node's links.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from codiag._array import blocks
from codiag.models._networks import Network
from codiag.models._simplex import on_simplex_rows


class Polished(NamedTuple):
    """Shares of every node's links (n, k), ends of links between communities (k, k), log-likelihoods by round."""

    memberships: np.ndarray
    links: np.ndarray
    history: list[float]

    def without_rates(self) -> np.ndarray:
        """Return memberships p (n, k) where nodes differ in nothing else: links by community, divided by its rate.

        A community whose members make twice as many links has twice the share of them.
        """
        rates = np.ones(self.links.shape[0])
        for _ in range(50):
            memberships = on_simplex_rows(self.memberships / np.maximum(rates, 1e-300))
            rates = self.links.sum(axis=1) / np.maximum(memberships.sum(axis=0), 1e-300)
        return memberships


def polish_memberships(network: Network, memberships: np.ndarray, n_rounds: int) -> Polished:
    """Improve memberships by some rounds of expectation maximization; the likelihood never falls."""
    above = sparse.coo_array(sparse.triu(network.adjacency, 1))
    counts = (memberships + 1e-6 / memberships.shape[1]) * network.degrees[:, None]  # links by node and community
    links = _links(network.adjacency, memberships)
    history = []
    for _ in range(n_rounds):
        loads = counts / np.maximum(counts.sum(axis=0), 1e-300)
        means = _means(above, loads, loads @ links)
        history.append(float(above.data @ np.log(means) - links.sum() / 2))
        ratios = sparse.csr_array((above.data / means, (above.row, above.col)), shape=above.shape)
        others = loads @ links
        counts = loads * (ratios @ others + ratios.T @ others)
        links = links * _symmetric_sum(loads.T @ (ratios @ loads))
    return Polished(on_simplex_rows(counts) if n_rounds else memberships, links, history)


def _links(adjacency: sparse.csr_array, memberships: np.ndarray) -> np.ndarray:
    """Return the number of ends of links between communities, every link in both directions."""
    return memberships.T @ (adjacency @ memberships) + 1e-9


def _means(above: sparse.coo_array, loads: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return the expected number of links for every pair that is linked."""
    means = np.empty(above.nnz)
    for some in blocks(above.nnz, loads.shape[1]):
        means[some] = np.einsum("ek,ek->e", loads[above.row[some]], others[above.col[some]])
    return np.maximum(means, 1e-300)


def _symmetric_sum(matrix: np.ndarray) -> np.ndarray:
    return matrix + matrix.T
