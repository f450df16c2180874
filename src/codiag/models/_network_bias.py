"""What estimates of communities are on average too large or too small by, from graphs that are simulated from them.

Memberships are estimated with errors, and what is computed from them, how often communities are linked and how mixed
nodes are, has a bias that more nodes do not remove: it depends on the number of links of a node. The same estimate of
graphs whose truth is known, since they were drawn from the estimated model, shows that bias (parametric bootstrap).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import linear_sum_assignment

from codiag._validation import UndeterminedError
from codiag.models._network_crossing import crossed_connectivity
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


N_GRAPHS = 4
"""Simulated graphs, over which the bias is averaged: the fewest that show how well it is known."""


class Parameters(NamedTuple):
    """How often communities are linked (k, k), and the total of Dirichlet parameters."""

    connectivity: np.ndarray
    alpha_0: float


class Corrected(NamedTuple):
    """Parameters without bias, the standard errors of what was taken off, and the factor of alpha_0 in it."""

    parameters: Parameters
    errors: Parameters
    factor: float

    def with_errors_of(self, plain: Parameters) -> Parameters:
        """Return standard errors of the corrected parameters, from those of the plain ones."""
        errors = np.hypot(plain.connectivity, self.errors.connectivity)
        return Parameters(errors, float(np.hypot(self.factor * plain.alpha_0, self.errors.alpha_0)))


def plain_parameters(
    network: Network, fitted: Polished, degree_corrected: bool, places: np.ndarray | None = None
) -> Parameters:
    """Return both as memberships have them that are taken for the truth, or for means of posteriors, by places (n,)."""
    shares, sizes = fitted.memberships, fitted.counts.sum(axis=1) + fitted.prior.sum()
    pure = fitted.without_rates()
    rates = connectivity(network, pure)
    if places is not None and rates.size > 1 and fitted.history:
        rates = crossed_connectivity(network, fitted, rates, places, TOLERANCE)
    return Parameters(rates, dirichlet_total(shares if degree_corrected else pure, sizes))


def unbiased_parameters(
    network: Network,
    fitted: Polished,
    refit: Callable[[Network], Polished],
    *,
    degree_corrected: bool,
    alpha_0: float | None,
    seed: int | None,
) -> Corrected:
    """Return both without the bias that simulated graphs show; as they are where these do not show communities."""
    found = plain_parameters(network, fitted, degree_corrected, np.arange(network.nodes.size))
    k, top = found.connectivity.shape[0], float(network.adjacency.data.max())
    as_found = Corrected(found, Parameters(np.zeros((k, k)), 0.0), 1.0)
    if k == 1:
        return as_found
    drawn_from = found if alpha_0 is None else found._replace(alpha_0=float(np.clip(alpha_0, LEAST, LARGEST)))
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(2**31,)))  # none of the partitions'
    seen = []
    for _ in range(N_GRAPHS):
        try:
            seen.append(_bias_seen(network, fitted, drawn_from, refit, degree_corrected, rng))
        except (UndeterminedError, np.linalg.LinAlgError):
            return as_found
    rates, totals = (np.array(values) for values in zip(*seen, strict=True))
    rates = (rates + rates.swapaxes(1, 2)) / 2
    factor = float(np.exp(totals.mean()))
    value = np.clip(found.connectivity + known_part(rates), 0, top)
    # The mean of the graphs has an error, and the bias of this graph is not that of the mean, as its memberships differ
    # from others that may be drawn. Of that variance the jackknife over nodes has half, being halved for links.
    width = np.sqrt(1 / N_GRAPHS + 1 / 2)
    errors = Parameters(width * rates.std(axis=0, ddof=1), width * float(found.alpha_0 * factor * totals.std(ddof=1)))
    return Corrected(Parameters(value, float(np.clip(found.alpha_0 * factor, LEAST, LARGEST))), errors, factor)


def known_part(seen: np.ndarray) -> np.ndarray:
    """Return the mean over the first axis, shrunk to zero where it may be chance (positive part of Stein's rule)."""
    mean, variance = seen.mean(axis=0), seen.var(axis=0, ddof=1) / len(seen)
    return np.asarray(mean * np.maximum(1 - variance / np.maximum(mean**2, 1e-300), 0))


def _bias_seen(
    network: Network,
    fitted: Polished,
    parameters: Parameters,
    refit: Callable[[Network], Polished],
    degree_corrected: bool,
    rng: np.random.Generator,
) -> tuple[np.ndarray, float]:
    """Return what is to be added to connectivity, and to the logarithm of alpha_0, as a simulated graph shows it."""
    drawn, truth = _simulated(network, fitted, parameters, degree_corrected, rng)
    linked = np.flatnonzero(drawn.degrees > 0)
    drawn, truth = drawn.subgraph(linked), truth._replace(counts=truth.counts[linked])
    again = refit(drawn)
    again = again.ordered(linear_sum_assignment(-truth.memberships.T @ again.memberships)[1])
    if not are_nearest(truth.memberships, again.memberships):
        raise UndeterminedError("X shows other communities than it was simulated with")
    right = plain_parameters(drawn, truth, degree_corrected)
    wrong = plain_parameters(drawn, again, degree_corrected, np.arange(linked.size))
    scale = drawn.nodes.size / network.nodes.size
    return scale * (right.connectivity - wrong.connectivity), float(np.log(right.alpha_0 / wrong.alpha_0))


def are_nearest(some: np.ndarray, others: np.ndarray) -> bool:
    """Tell whether every column is nearer to the other column at its place than to any other, and the reverse."""
    cosines = (some / np.linalg.norm(some, axis=0)).T @ (others / np.linalg.norm(others, axis=0))
    places = np.arange(cosines.shape[0])
    return bool(np.all(cosines.argmax(axis=0) == places) and np.all(cosines.argmax(axis=1) == places))


def _simulated(
    network: Network, fitted: Polished, parameters: Parameters, degree_corrected: bool, rng: np.random.Generator
) -> tuple[Network, Polished]:
    """Return a graph of the model, its memberships Dirichlet, and its truth in the form of a fit that is certain."""
    n, top, rates = network.nodes.size, float(network.adjacency.data.max()), parameters.connectivity
    size = min(n, int(np.clip(4 * n * rates.max() / top, FEWEST, MOST)))
    nodes = np.sort(rng.permutation(n)[:size])
    mean = fitted.without_rates().mean(axis=0)
    pure = on_simplex_rows(rng.dirichlet(np.maximum(parameters.alpha_0 * mean, 1e-300), size) + 1e-12)
    pulls = np.maximum(rates @ pure.sum(axis=0), 1e-12 * size * rates.max())
    shares = on_simplex_rows(pure * pulls)
    if degree_corrected:
        rows, links = shares * fitted.counts[nodes].sum(axis=1, keepdims=True), rates / np.outer(pulls, pulls)
        links *= rows.sum() / np.sum(links * np.outer(rows.sum(axis=0), rows.sum(axis=0)))
    else:
        rows, links = pure, rates / network.unit * n / size
    adjacency = _drawn(rows, links, bool(np.all(network.adjacency.data == 1)), rng) * network.unit
    ends = links * np.outer(rows.sum(axis=0), rows.sum(axis=0))
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
