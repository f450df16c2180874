r"""How often communities are linked, from memberships that do not know of the links which they are compared with.

Rates are those with which links are explained by memberships. Memberships that were estimated from the same links
explain these too well: rates come out too far apart. Nodes are therefore parted in blocks, every node has memberships
without its links to each of the blocks, and a pair of nodes is explained by those of either without the block of the
other (cross-fitting). Given a mean of a posterior, the truth has that mean, so that least squares have no bias from its
uncertainty. Memberships and rates take turns until rates stay.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from codiag.models._network_rates import connectivity
from codiag.models._network_steps import Polished, expected_counts, means_of_links
from codiag.models._networks import Network
from codiag.models._simplex import on_simplex_rows

N_BLOCKS = 4
"""Blocks of nodes: memberships are known from three quarters of the links."""
MOST_TURNS = 24
"""Turns after which rates are taken as they are."""

LEAST_RATE = 1e-6
"""The least rate of links in steps, as a share of the largest: at a rate of zero no link could ever be counted."""


def crossed_connectivity(
    network: Network, fitted: Polished, rates: np.ndarray, places: np.ndarray, tol: float
) -> np.ndarray:
    """Return P (k, k), beginning with `rates` and the memberships that were fitted.

    Nodes are in blocks by their places (n,), which those that are left of a graph keep. Turns end when rates change by
    less than a share `tol` of links.
    """
    owners = places % N_BLOCKS
    degrees = fitted.counts.sum(axis=1, keepdims=True)
    sides = [_without_columns(network, owners == block) for block in range(N_BLOCKS)]
    counts, own = [fitted.counts * (1 - 1 / N_BLOCKS)] * N_BLOCKS, [np.zeros_like(fitted.counts)] * N_BLOCKS
    pure = fitted.without_rates()
    for _ in range(MOST_TURNS):
        totals = pure.sum(axis=0)
        positive = np.maximum(rates, LEAST_RATE * rates.max())
        pulls = positive @ totals  # links of a member of each community
        others = on_simplex_rows(pure * pulls) @ (positive / np.outer(pulls, pulls))
        for block, side in enumerate(sides):
            counts[block], own[block] = _step(side, counts[block], fitted.prior, own[block], others)
        shares = np.stack([_pure(one, one.sum(axis=1, keepdims=True), pulls, fitted.prior) for one in counts])
        pure = _pure(np.sum(counts, axis=0), degrees, pulls, fitted.prior)
        last, rates = rates, connectivity(network, shares, owners)
        if totals @ np.abs(rates - last) @ totals < tol * (totals @ rates @ totals):
            break
    return rates


def _without_columns(network: Network, left_out: np.ndarray) -> sparse.csr_array:
    """Return the links of all nodes with those not left out."""
    kept = sparse.dia_array((1.0 * ~left_out[None], [0]), shape=network.adjacency.shape)
    links = sparse.csr_array(network.adjacency @ kept) / network.unit
    links.eliminate_zeros()
    return sparse.csr_array(links)


def _step(
    links: sparse.csr_array, counts: np.ndarray, prior: np.ndarray, own: np.ndarray, others: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return links by node and community, and the mean share of a link that is counted, after a variational step."""
    loads = on_simplex_rows(expected_counts(counts, prior, own))
    rows = np.repeat(np.arange(links.shape[0]), np.diff(links.indptr))
    means = means_of_links(rows, links.indices, loads, others)
    ratios = sparse.csr_array((links.data / means, links.indices, links.indptr), shape=links.shape)
    squares = sparse.csr_array((links.data / means**2, links.indices, links.indptr), shape=links.shape)
    counts = loads * (ratios @ others)
    return counts, loads**2 * (squares @ others**2) / np.maximum(counts, 1e-300)


def _pure(counts: np.ndarray, sizes: np.ndarray, pulls: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """Return memberships (n, k), whatever the number of links of members of each community."""
    return on_simplex_rows(sizes * on_simplex_rows(counts / pulls) + prior)
