r"""Collapsed variational steps for links between communities, with the number of links of every node as observed.

Every link is of a kind (a, b), the communities on whose behalf its two ends made it. Given its degree, a node makes
links on behalf of communities with shares that are Dirichlet; the ends of links on behalf of a and of b meet at random.
Shares are integrated out, to second order in the uncertainty of counts (Teh, Newman & Welling 2007), and a link does
not count for itself, in the mean over the links of a node. Maximum likelihood, which has no prior, overfits nodes of
few links.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from codiag._arrays import blocks
from codiag.models.communities._network import Network
from codiag.models.frame import on_simplex_rows

START = 0.1
"""The total of the Dirichlet parameters that moments and steps begin with where it is open."""
SOFT = 1e-3
"""The share of all communities alike in the memberships that steps begin with: none is left out for good."""
LEAST, LARGEST = 1e-3, 1e3
"""Bounds of that total."""


class Polished(NamedTuple):
    """Links by node and community (n, k), their prior (k,), ends of links between communities, log-likelihoods."""

    counts: np.ndarray
    prior: np.ndarray
    links: np.ndarray
    history: list[float]

    @property
    def memberships(self) -> np.ndarray:
        """Expected shares of every node's links (n, k)."""
        return on_simplex_rows(self.counts + self.prior)

    def without_rates(self) -> np.ndarray:
        """Return expected memberships (n, k) where nodes differ in nothing else, and not by the rates of communities.

        Rates are those of links alone: with a prior, which all nodes share, communities of few links would take over.
        """
        rates = np.maximum(rates_of(self.counts, self.links), 1e-300)
        sizes = self.counts.sum(axis=1, keepdims=True)
        return on_simplex_rows(sizes * on_simplex_rows(self.counts / rates) + self.prior)

    def ordered(self, order: np.ndarray) -> Polished:
        """Return the same with communities in another order."""
        links = self.links[np.ix_(order, order)]
        return Polished(self.counts[:, order], self.prior[order], links, self.history)


def polish_memberships(
    network: Network, memberships: np.ndarray, n_rounds: int, alpha_0: float | None, tol: float = 0.0
) -> Polished:
    """Improve memberships by some rounds, or until less than a share `tol` of links changes its communities.

    Without alpha_0, the total of the prior is estimated on the way.
    """
    above = sparse.csr_array(sparse.triu(network.adjacency / network.unit, 1))
    rows = np.repeat(np.arange(above.shape[0]), np.diff(above.indptr))
    degrees = network.degrees / network.unit
    if n_rounds:
        memberships = (1 - SOFT) * memberships + SOFT / memberships.shape[1]
    counts = memberships * degrees[:, None]
    prior = _prior(memberships.shape[1], START if alpha_0 is None else alpha_0)
    links = _both(memberships.T @ (above @ memberships)) + 1e-9
    own, history = np.zeros_like(counts), []
    for _ in range(n_rounds):
        loads = on_simplex_rows(expected_counts(counts, prior, own))
        totals = links.sum(axis=0)
        rates = links / np.outer(totals, totals)
        others, last = loads @ rates, counts
        means = means_of_links(rows, above.indices, loads, others)
        history.append(float(above.data @ np.log(means)))
        ratios = _with_data(above, above.data / means)
        counts = loads * (ratios @ others + ratios.T @ others)
        squares = _with_data(above, above.data / means**2)  # of the shares in which links belong to communities
        own = loads**2 * (squares @ others**2 + squares.T @ others**2) / np.maximum(counts, 1e-300)
        links = rates * _both(loads.T @ (ratios @ loads))
        if alpha_0 is None:
            prior = _prior(prior.size, dirichlet_total(on_simplex_rows(counts + prior), degrees + prior.sum()))
        if np.abs(counts - last).sum() < 2 * tol * degrees.sum():
            break
    return Polished(counts, prior if n_rounds else np.zeros_like(prior), links, history)


def dirichlet_total(shares: np.ndarray, sizes: np.ndarray | float = np.inf) -> float:
    r"""Return the total of Dirichlet parameters at which shares (n, k) vary as they do, by second moments.

    Of means :math:`m_a` their variances are :math:`m_a (1 - m_a) / (\alpha_0 + 1)`. Shares are means of posteriors
    that are Dirichlet of totals `sizes`, whose variances are added; infinite where shares are known.
    """
    mean = shares.mean(axis=0)
    spread = np.sum(shares * (1 - shares), axis=1) / (np.asarray(sizes) + 1)
    variance = np.mean(np.sum(shares**2, axis=1) + spread) - mean @ mean
    return float(np.clip((1 - mean @ mean) / max(variance, 1e-12) - 1, LEAST, LARGEST))


def rates_of(counts: np.ndarray, links: np.ndarray) -> np.ndarray:
    """Return how many links communities' members make (k,), where nodes differ in their communities alone.

    A community whose members make twice as many links has twice the share of them.
    """
    rates = np.ones(links.shape[0])
    for _ in range(50):
        memberships = on_simplex_rows(counts / np.maximum(rates, 1e-300))
        rates = links.sum(axis=1) / np.maximum(memberships.sum(axis=0), 1e-300)
    return rates


def _prior(k: int, total: float) -> np.ndarray:
    """Return even Dirichlet parameters of this total: larger ones for larger communities would make these grow."""
    return np.full(k, max(total, LEAST) / k)


def expected_counts(counts: np.ndarray, prior: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Return the geometric means of counts and prior, to second order, one link of those counted left out."""
    middle = np.maximum(counts + prior - own, 1e-12)
    variances = np.maximum((counts - own) * (1 - own), 0)
    return np.maximum(middle * np.exp(-variances / (2 * middle**2)), 1e-12)


def means_of_links(rows: np.ndarray, columns: np.ndarray, loads: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return what is expected, up to degrees, of every pair that is linked."""
    means = np.empty(rows.size)
    for some in blocks(rows.size, loads.shape[1]):
        means[some] = np.einsum("ek,ek->e", loads[rows[some]], others[columns[some]])
    return np.maximum(means, 1e-300)


def _with_data(matrix: sparse.csr_array, data: np.ndarray) -> sparse.csr_array:
    return sparse.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)


def _both(matrix: np.ndarray) -> np.ndarray:
    """Return what is counted in one direction of links in both."""
    return matrix + matrix.T
