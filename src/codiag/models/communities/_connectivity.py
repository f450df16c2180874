"""How often communities are linked with each other, given memberships."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.optimize import minimize

from codiag.models.communities._network import Network

SMALL = 8
"""Most communities for which rates without bounds are tried first: k^2 equations, of k^4 numbers."""


def connectivity(network: Network, memberships: np.ndarray, owners: np.ndarray | None = None) -> np.ndarray:
    r"""Return P (k, k), symmetric, with :math:`p_x^\top P p_y` nearest to the links between different nodes.

    Least squares with bounds, zero and the largest weight (1 in a graph without weights), between which all links lie.
    Memberships that hardly differ do not determine P, and without bounds it could be anywhere.

    With the block of every node, `owners` (n,), memberships are (blocks, n, k): for a pair of nodes each has those that
    are for the block of the other.
    """
    linked = network.degrees > 0
    adjacency = sparse.csr_array(network.adjacency[linked][:, linked])
    top = float(adjacency.data.max())
    shares = (memberships[None] if owners is None else memberships)[:, linked]
    owners = np.zeros(shares.shape[1], dtype=int) if owners is None else owners[linked]
    gram = sum(shares[block].T @ shares[block] for block in range(len(shares))) / len(shares)
    units = np.sqrt(np.maximum(np.diag(gram), 1e-12 * np.trace(gram)))  # in which all rates have a similar effect
    shares, gram = shares / units, gram / np.outer(units, units)
    grams, links = _sums_of_pairs(adjacency, shares, owners)
    links = links / top
    within = shares[owners, np.arange(owners.size)]
    bounds, k = np.outer(units, units).ravel(), units.size

    def distance(flat: np.ndarray) -> tuple[float, np.ndarray]:
        rates = flat.reshape(k, k)
        own = np.einsum("ia,ab,ib->i", within, rates, within, optimize=True)  # of pairs of a node with itself
        image = np.sum(grams @ rates @ grams.swapaxes(0, 1), axis=(0, 1)) - within.T @ (own[:, None] * within)
        return float(np.sum(rates * (image / 2 - links))), (image - links).ravel()

    inverse = np.linalg.pinv(gram)
    start = _without_bounds(grams, within, links) if k <= SMALL else (inverse @ links @ inverse).ravel()
    if k <= SMALL and np.all((start > 0) & (start < bounds)):
        return _symmetric(start.reshape(k, k) / np.outer(units, units)) * top
    options = {"maxiter": 500, "ftol": 1e-14, "gtol": 1e-10}
    found = minimize(
        distance,
        np.clip(start, 0, bounds),
        jac=True,
        bounds=list(zip(np.zeros(k * k), bounds, strict=True)),
        method="L-BFGS-B",
        options=options,
    )
    return _symmetric(found.x.reshape(k, k) / np.outer(units, units)) * top


def _symmetric(rates: np.ndarray) -> np.ndarray:
    return np.clip((rates + rates.T) / 2, 0, 1)


def _without_bounds(grams: np.ndarray, within: np.ndarray, links: np.ndarray) -> np.ndarray:
    """Return the least squares solution (k * k,), the shortest where memberships do not determine it."""
    k = links.shape[0]
    pairs = (within[:, :, None] * within[:, None, :]).reshape(-1, k * k)
    products = np.einsum("stab,tscd->acbd", grams, grams, optimize=True).reshape(k * k, k * k)
    return np.asarray(np.linalg.lstsq(products - pairs.T @ pairs, links.ravel(), rcond=1e-10)[0])


def _sums_of_pairs(
    adjacency: sparse.csr_array, shares: np.ndarray, owners: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return sums of products of memberships, by block and by block they are for, and those over links (k, k)."""
    n_blocks, n, k = shares.shape
    grams, links = np.empty((n_blocks, n_blocks, k, k)), np.zeros((k, k))
    for block in range(n_blocks):
        rows = np.flatnonzero(owners == block)
        apart = np.zeros((n, n_blocks, k))  # nodes of every block in columns of their own
        apart[np.arange(n), owners] = shares[block]
        sums = (adjacency[rows] @ apart.reshape(n, -1)).reshape(rows.size, n_blocks, k)
        for other in range(n_blocks):
            own = shares[other, rows]
            grams[block, other] = own.T @ own
            links += own.T @ sums[:, other]
    return grams, links
