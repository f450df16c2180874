"""How often communities are linked with each other, given memberships."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

from codiag.models._networks import Network


def connectivity(network: Network, memberships: np.ndarray) -> np.ndarray:
    r"""Return P (k, k), symmetric, with :math:`p_x^\top P p_y` nearest to the links between different nodes.

    Least squares with bounds, zero and the largest weight (1 in a graph without weights), between which all links lie.
    Memberships that hardly differ do not determine P, and without bounds it could be anywhere.
    """
    linked = network.degrees > 0
    rows, adjacency = memberships[linked], network.adjacency[linked][:, linked]
    top = float(adjacency.data.max())
    gram = rows.T @ rows
    units = np.sqrt(np.maximum(np.diag(gram), 1e-12 * np.trace(gram)))  # in which all rates have a similar effect
    rows, gram = rows / units, gram / np.outer(units, units)
    links = rows.T @ (adjacency @ rows) / top
    bounds = np.outer(units, units).ravel()
    k = units.size

    def distance(flat: np.ndarray) -> tuple[float, np.ndarray]:
        rates = flat.reshape(k, k)
        own = np.einsum("ia,ab,ib->i", rows, rates, rows, optimize=True)  # of pairs of a node with itself
        image = gram @ rates @ gram - rows.T @ (own[:, None] * rows)
        return float(np.sum(rates * (image / 2 - links))), (image - links).ravel()

    inverse = np.linalg.pinv(gram)
    start = np.clip((inverse @ links @ inverse).ravel(), 0, bounds)
    options = {"maxiter": 500, "ftol": 1e-14, "gtol": 1e-10}
    found = minimize(
        distance,
        start,
        jac=True,
        bounds=list(zip(np.zeros(k * k), bounds, strict=True)),
        method="L-BFGS-B",
        options=options,
    )
    rates = found.x.reshape(k, k) / np.outer(units, units)
    return np.clip((rates + rates.T) / 2, 0, 1) * top
