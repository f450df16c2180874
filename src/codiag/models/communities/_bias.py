r"""How often communities are linked, from memberships that do not know of the links which they are compared with.

Rates are those with which links are explained by memberships. Memberships that were estimated from the same links
explain these too well: rates come out too far apart. Nodes are therefore parted in blocks, every node has memberships
without its links to each of the blocks, and a pair of nodes is explained by those of either without the block of the
other (cross-fitting). Given a mean of a posterior, the truth has that mean, so that least squares have no bias from its
uncertainty. Memberships and rates take turns until rates stay.

What estimates of communities are on average too large or too small by, from graphs that are simulated from them.

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

from codiag._checks import UndeterminedError
from codiag.models.communities._connectivity import connectivity
from codiag.models.communities._network import Network
from codiag.models.communities._steps import LARGEST, LEAST, Polished, dirichlet_total, expected_counts, means_of_links
from codiag.models.frame import on_simplex_rows

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
