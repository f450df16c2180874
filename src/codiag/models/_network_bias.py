"""What estimates of communities are on average too large or too small by, from a graph that is simulated from them.

Memberships are estimated with errors, and what is computed from them, how often communities are linked and how mixed
nodes are, has a bias that more nodes do not remove: it depends on the number of links of a node. The same estimate of a
graph whose truth is known, since it was drawn from the estimated model, shows that bias (parametric bootstrap).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import linear_sum_assignment

from codiag._validation import UndeterminedError
from codiag.models._network_rates import connectivity
from codiag.models._network_steps import LARGEST, LEAST, Polished, dirichlet_total
from codiag.models._networks import Network
from codiag.models._simplex import on_simplex_rows

N_ROUNDS, TOLERANCE = 40, 2e-4
"""Most rounds of steps after which both are read off, and the share of links that changes below which there are fewer.

Communities and memberships trade places slowly: after as many rounds simulated graphs have the least bias left.
"""
FEWEST, MOST = 2000, 5000
"""Nodes that are simulated of a larger graph: as many as keep links rare, within these bounds."""
BLOCK = 500
"""Rows of the adjacency matrix that are drawn at once."""


class Parameters(NamedTuple):
    """How often communities are linked (k, k), and the total of Dirichlet parameters."""

    connectivity: np.ndarray
    alpha_0: float


def plain_parameters(network: Network, fitted: Polished, degree_corrected: bool) -> Parameters:
    """Return both as memberships have them that are taken for the truth."""
    shares, sizes = fitted.memberships, fitted.counts.sum(axis=1) + fitted.prior.sum()
    pure = fitted.without_rates()
    return Parameters(connectivity(network, pure), dirichlet_total(shares if degree_corrected else pure, sizes))


def unbiased_parameters(
    network: Network,
    fitted: Polished,
    refit: Callable[[Network], Polished],
    *,
    degree_corrected: bool,
    seed: int | None,
) -> Parameters:
    """Return both without the bias that a simulated graph shows; as they are where it does not show communities."""
    found = plain_parameters(network, fitted, degree_corrected)
    if found.connectivity.shape[0] == 1:
        return found
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(2**31,)))  # none of the partitions'
    drawn, truth = _simulated(network, fitted, found.connectivity, degree_corrected, rng)
    linked = np.flatnonzero(drawn.degrees > 0)
    drawn, truth = drawn.subgraph(linked), truth._replace(counts=truth.counts[linked])
    try:
        again = refit(drawn)
    except (UndeterminedError, np.linalg.LinAlgError):
        return found
    order = linear_sum_assignment(-truth.memberships.T @ again.memberships)[1]
    right, wrong = (
        plain_parameters(drawn, truth, degree_corrected),
        plain_parameters(drawn, again.ordered(order), degree_corrected),
    )
    scale = drawn.nodes.size / network.nodes.size
    rates = found.connectivity + scale * (right.connectivity - wrong.connectivity)
    total = found.alpha_0 * right.alpha_0 / wrong.alpha_0
    top = float(network.adjacency.data.max())
    return Parameters(np.clip((rates + rates.T) / 2, 0, top), float(np.clip(total, LEAST, LARGEST)))


def _simulated(
    network: Network, fitted: Polished, rates: np.ndarray, degree_corrected: bool, rng: np.random.Generator
) -> tuple[Network, Polished]:
    """Return a graph of the fitted model, and its truth in the same form: shares that are certain."""
    n, top = network.nodes.size, float(network.adjacency.data.max())
    size = min(n, int(np.clip(4 * n * rates.max() / top, FEWEST, MOST)))
    nodes = np.sort(rng.permutation(n)[:size])
    sizes = fitted.counts[nodes].sum(axis=1, keepdims=True) + fitted.prior.sum()
    means = fitted.memberships if degree_corrected else fitted.without_rates()
    drawn = on_simplex_rows(rng.standard_gamma(sizes * means[nodes]) + 1e-12)
    if degree_corrected:
        rows, totals = drawn * fitted.counts[nodes].sum(axis=1, keepdims=True), fitted.links.sum(axis=0)
        links = fitted.links / np.outer(totals, totals) * n / size
    else:
        rows, links = drawn, rates / network.unit * n / size
    adjacency = _drawn(rows, links, bool(np.all(network.adjacency.data == 1)), rng) * network.unit
    ends = links * np.outer(rows.sum(axis=0), rows.sum(axis=0))
    shares = drawn if degree_corrected else on_simplex_rows(drawn * (links @ rows.sum(axis=0)))
    certain = Polished(1e12 * shares, np.zeros(shares.shape[1]), ends, [])
    return Network(sparse.csr_array(adjacency), nodes), certain


def _drawn(rows: np.ndarray, links: np.ndarray, simple: bool, rng: np.random.Generator) -> sparse.csr_array:
    """Draw links between all pairs, at most one each in simple graphs, a block of rows at a time."""
    n = rows.shape[0]
    parts = []
    for start in range(0, n, BLOCK):
        means = rows[start : start + BLOCK] @ links @ rows.T
        numbers = rng.random(means.shape) < means if simple else rng.poisson(means)
        parts.append(sparse.csr_array(np.triu(numbers, start + 1), dtype=np.float64))
    above = sparse.vstack(parts, format="csr")
    return sparse.csr_array(above + above.T)
