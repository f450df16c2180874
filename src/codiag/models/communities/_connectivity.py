r"""How often communities are linked, and how mixed nodes are, given memberships.

Connectivity explains links by memberships. Memberships that were estimated from the same links explain these too well,
so that the rates inside and between communities are too far apart. Cross-fitting avoids this: nodes are divided into
blocks, every node has memberships without its links to each of the blocks, and a pair of nodes is explained by those of
either without the block of the other. Given the mean of a posterior, the truth has that mean, so that least squares
have no bias from its uncertainty. Memberships and rates are updated in turn until the rates converge.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import minimize

from codiag.models.communities._memberships import (
    LinkCounts,
    dirichlet_total,
    expected_counts,
    means_of_links,
    with_data,
)
from codiag.models.communities._network import Network
from codiag.models.base import on_simplex_rows

MOST_DIRECT = 8
"""Number of communities k up to which least squares without bounds are tried first: k^2 equations, k^4 numbers."""
N_BLOCKS = 4
"""Blocks of nodes for cross-fitting: memberships are estimated from three quarters of the links."""
MOST_TURNS = 24
"""Largest number of turns of cross-fitting."""
LEAST_RATE = 1e-6
"""The least rate of links in steps, relative to the largest: with a rate of zero no link would be counted."""
MANY_STEPS, TOLERANCE = 40, 2e-4
"""Largest number of variational steps before cross-fitting, and the share of links that changes below which they end.
Memberships and rates converge slowly together; in simulations, this number leaves the least bias."""


class Parameters(NamedTuple):
    """Connectivity (k, k), and the total of the Dirichlet parameters."""

    connectivity: np.ndarray
    alpha_0: float


def plain_parameters(network: Network, fitted: LinkCounts, degree_corrected: bool) -> Parameters:
    """Return both parameters with the estimated memberships in place of the true ones."""
    pure = fitted.without_rates()
    sizes = fitted.counts.sum(axis=1) + fitted.prior.sum()
    total = dirichlet_total(fitted.memberships if degree_corrected else pure, sizes)
    return Parameters(connectivity(network, pure), total)


def cross_fitted_parameters(
    network: Network, fitted: LinkCounts, degree_corrected: bool, places: np.ndarray
) -> Parameters:
    """Return both parameters, connectivity by cross-fitting; `places` (n,) are the indices of nodes in the graph."""
    plain = plain_parameters(network, fitted, degree_corrected)
    if plain.connectivity.size == 1 or not fitted.history:
        return plain
    return plain._replace(connectivity=crossed_connectivity(network, fitted, plain.connectivity, places, TOLERANCE))


def connectivity(network: Network, memberships: np.ndarray, owners: np.ndarray | None = None) -> np.ndarray:
    r"""Return P (k, k), symmetric, with :math:`p_x^\top P p_y` nearest to the links between different nodes.

    Least squares with bounds, zero and the largest weight (1 in a graph without weights). Memberships that hardly
    differ do not determine P, and without bounds it could be far outside.

    If the block of every node, `owners` (n,), is given, memberships are (blocks, n, k): for a pair of nodes, each has
    the memberships for the block of the other.
    """
    linked = network.degrees > 0
    adjacency = sparse.csr_array(network.adjacency[linked][:, linked])
    top = float(adjacency.data.max())
    shares = (memberships[None] if owners is None else memberships)[:, linked]
    owners = np.zeros(shares.shape[1], dtype=int) if owners is None else owners[linked]
    gram = sum(shares[block].T @ shares[block] for block in range(len(shares))) / len(shares)
    units = np.sqrt(np.maximum(np.diag(gram), 1e-12 * np.trace(gram)))  # units in which all rates have similar effects
    shares, gram = shares / units, gram / np.outer(units, units)
    grams, links = _sums_of_pairs(adjacency, shares, owners)
    links = links / top
    within = shares[owners, np.arange(owners.size)]
    bounds, k = np.outer(units, units).ravel(), units.size

    def distance(flat: np.ndarray) -> tuple[float, np.ndarray]:
        rates = flat.reshape(k, k)
        loops = np.einsum("ia,ab,ib->i", within, rates, within, optimize=True)  # pairs of a node with itself
        image = np.sum(grams @ rates @ grams.swapaxes(0, 1), axis=(0, 1)) - within.T @ (loops[:, None] * within)
        return float(np.sum(rates * (image / 2 - links))), (image - links).ravel()

    inverse = np.linalg.pinv(gram)
    rates = _without_bounds(grams, within, links) if k <= MOST_DIRECT else (inverse @ links @ inverse).ravel()
    if k > MOST_DIRECT or not np.all((rates > 0) & (rates < bounds)):
        rates = minimize(
            distance,
            np.clip(rates, 0, bounds),
            jac=True,
            bounds=list(zip(np.zeros(k * k), bounds, strict=True)),
            method="L-BFGS-B",
            options={"maxiter": 500, "ftol": 1e-14, "gtol": 1e-10},
        ).x
    rates = rates.reshape(k, k) / np.outer(units, units)
    return np.clip((rates + rates.T) / 2, 0, 1) * top


def _without_bounds(grams: np.ndarray, within: np.ndarray, links: np.ndarray) -> np.ndarray:
    """Return the least squares solution (k * k,), of least norm if memberships do not determine it."""
    k = links.shape[0]
    pairs = (within[:, :, None] * within[:, None, :]).reshape(-1, k * k)
    products = np.einsum("stab,tscd->acbd", grams, grams, optimize=True).reshape(k * k, k * k)
    return np.asarray(np.linalg.lstsq(products - pairs.T @ pairs, links.ravel(), rcond=1e-10)[0])


def _sums_of_pairs(
    adjacency: sparse.csr_array, shares: np.ndarray, owners: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return Gram matrices of memberships, by block and by block they are for, and sums over links (k, k)."""
    n_blocks, n, k = shares.shape
    grams, links = np.empty((n_blocks, n_blocks, k, k)), np.zeros((k, k))
    for block in range(n_blocks):
        rows = np.flatnonzero(owners == block)
        separated = np.zeros((n, n_blocks, k))  # nodes of every block in separate columns
        separated[np.arange(n), owners] = shares[block]
        sums = (adjacency[rows] @ separated.reshape(n, -1)).reshape(rows.size, n_blocks, k)
        for other in range(n_blocks):
            block_shares = shares[other, rows]
            grams[block, other] = block_shares.T @ block_shares
            links += block_shares.T @ sums[:, other]
    return grams, links


def crossed_connectivity(
    network: Network, fitted: LinkCounts, rates: np.ndarray, places: np.ndarray, tol: float
) -> np.ndarray:
    """Return P (k, k) by cross-fitting, beginning with `rates` and the fitted memberships.

    The block of a node depends on its place (n,) in the graph, so that it is the same in subgraphs. Turns end when
    rates change by less than a share `tol` of links.
    """
    owners = places % N_BLOCKS
    degrees = fitted.counts.sum(axis=1, keepdims=True)
    sides = [_without_columns(network, owners == block) for block in range(N_BLOCKS)]
    counts, link_shares = [fitted.counts * (1 - 1 / N_BLOCKS)] * N_BLOCKS, [np.zeros_like(fitted.counts)] * N_BLOCKS
    pure = fitted.without_rates()
    for _ in range(MOST_TURNS):
        totals = pure.sum(axis=0)
        positive = np.maximum(rates, LEAST_RATE * rates.max())
        pulls = positive @ totals  # expected number of links of a member of each community
        others = on_simplex_rows(pure * pulls) @ (positive / np.outer(pulls, pulls))
        for block, side in enumerate(sides):
            counts[block], link_shares[block] = _step(side, counts[block], fitted.prior, link_shares[block], others)
        shares = np.stack([_pure(some, some.sum(axis=1, keepdims=True), pulls, fitted.prior) for some in counts])
        pure = _pure(np.sum(counts, axis=0), degrees, pulls, fitted.prior)
        previous, rates = rates, connectivity(network, shares, owners)
        if totals @ np.abs(rates - previous) @ totals < tol * (totals @ rates @ totals):
            break
    return rates


def _without_columns(network: Network, excluded: np.ndarray) -> sparse.csr_array:
    """Return the links of all nodes with those that are not excluded."""
    mask = sparse.dia_array((1.0 * ~excluded[None], [0]), shape=network.adjacency.shape)
    links = sparse.csr_array(network.adjacency @ mask) / network.unit
    links.eliminate_zeros()
    return sparse.csr_array(links)


def _step(
    links: sparse.csr_array, counts: np.ndarray, prior: np.ndarray, link_shares: np.ndarray, others: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return links by node and community, and the mean share of a counted link, after a variational step."""
    shares = on_simplex_rows(expected_counts(counts, prior, link_shares))
    rows = np.repeat(np.arange(links.shape[0]), np.diff(links.indptr))
    means = means_of_links(rows, links.indices, shares, others)
    counts = shares * (with_data(links, links.data / means) @ others)
    squares = with_data(links, links.data / means**2)
    return counts, shares**2 * (squares @ others**2) / np.maximum(counts, 1e-300)


def _pure(counts: np.ndarray, sizes: np.ndarray, pulls: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """Return memberships (n, k), independent of the number of links of members of each community."""
    return on_simplex_rows(sizes * on_simplex_rows(counts / pulls) + prior)
