"""How often communities are linked, given memberships."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

from codiag.models.communities._network import Network


def connectivity(network: Network, memberships: np.ndarray) -> np.ndarray:
    r"""Return P (k, k), symmetric, with :math:`p_x^\top P p_y` nearest to the links between different nodes.

    Least squares with bounds, zero and the largest weight (1 in a graph without weights). Memberships that hardly
    differ do not determine P, and without bounds it could be far outside.
    """
    top, k = float(network.adjacency.data.max()), memberships.shape[1]
    gram = memberships.T @ memberships
    units = np.sqrt(np.maximum(np.diag(gram), 1e-12 * np.trace(gram)))  # units in which all rates have similar effects
    shares, gram = memberships / units, gram / np.outer(units, units)
    links = shares.T @ (network.adjacency @ shares) / top

    def distance(flat: np.ndarray) -> tuple[float, np.ndarray]:
        rates = flat.reshape(k, k)
        loops = np.einsum("ia,ab,ib->i", shares, rates, shares, optimize=True)  # pairs of a node with itself
        image = gram @ rates @ gram - shares.T @ (loops[:, None] * shares)
        return float(np.sum(rates * (image / 2 - links))), (image - links).ravel()

    inverse, bounds = np.linalg.pinv(gram), np.outer(units, units).ravel()
    found = minimize(
        distance,
        np.clip((inverse @ links @ inverse).ravel(), 0, bounds),
        jac=True,
        bounds=list(zip(np.zeros(k * k), bounds, strict=True)),
        method="L-BFGS-B",
        options={"maxiter": 500, "ftol": 1e-14, "gtol": 1e-10},
    )
    rates = found.x.reshape(k, k) / np.outer(units, units)
    return np.clip((rates + rates.T) / 2, 0, 1) * top
