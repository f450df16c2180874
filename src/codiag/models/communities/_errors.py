r"""Bias of the parameters of communities, by simulated graphs, and standard errors, by a jackknife over nodes.

Connectivity and alpha_0 are computed from estimated memberships and have a bias that depends on the number of links of
a node; more nodes do not remove it. The same estimate for graphs simulated from the fitted model, whose parameters are
known, shows this bias (parametric bootstrap).

For the jackknife, a block of nodes is left out with all its links. Given the memberships, links are independent, and
estimates are sums over links to first order. A link of node x is left out once for the memberships of x, with the other
node: the jackknife over the blocks that x is not in has their variance, except for the links within the block of x. For
parameters of all nodes together, a link between two blocks is left out twice, so that with B blocks the variance counts
each (2 B - 1) / (B - 1) times, two in the limit (Lin, Lunde & Sarkar, 2020, show that this jackknife is conservative).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import linear_sum_assignment

from codiag._checks import UndeterminedError
from codiag.models.communities._connectivity import Parameters, cross_fitted_parameters, plain_parameters
from codiag.models.communities._memberships import LARGEST_ALPHA, LEAST_ALPHA, LinkCounts, Options
from codiag.models.communities._network import Network
from codiag.models.base import add_block_note, block_of_rows, jackknife_errors, on_simplex_rows, share_errors

FEWEST_NODES, MOST_NODES = 2000, 5000
"""Bounds of the number of simulated nodes of a larger graph; in between, as many as keep links rare."""
ROWS_AT_ONCE = 500
"""Rows of the adjacency matrix that are drawn at once; a bound on memory."""
N_GRAPHS = 4
"""Simulated graphs over which the bias is averaged: few, as each costs a fit, and enough for its standard error."""
LARGEST_DEVIATION = 0.5
"""The largest standard deviation of a share between zero and one."""


class Corrected(NamedTuple):
    """Corrected parameters, the standard errors of the correction, and its factor for alpha_0."""

    parameters: Parameters
    errors: Parameters
    factor: float

    @classmethod
    def without(cls, parameters: Parameters) -> Corrected:
        """Return parameters without a correction."""
        return cls(parameters, Parameters(np.zeros_like(parameters.connectivity), 0.0), 1.0)

    def with_errors_of(self, plain: Parameters) -> Parameters:
        """Return standard errors of the corrected parameters, from those of the uncorrected ones."""
        errors = np.hypot(plain.connectivity, self.errors.connectivity)
        return Parameters(errors, float(np.hypot(self.factor * plain.alpha_0, self.errors.alpha_0)))


def corrected_parameters(
    network: Network,
    fitted: LinkCounts,
    estimate: Parameters,
    refit: Callable[[Network], LinkCounts],
    options: Options,
    seed: int,
) -> Corrected:
    """Return an estimate minus its bias in simulated graphs; unchanged if these do not show the communities."""
    alpha_0, top = options.alpha_0, float(network.adjacency.data.max())
    if estimate.connectivity.size == 1:
        return Corrected.without(estimate)
    truth = (
        estimate if alpha_0 is None else estimate._replace(alpha_0=float(np.clip(alpha_0, LEAST_ALPHA, LARGEST_ALPHA)))
    )
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(2**31,)))  # none of those of the partitions
    samples = []
    for _ in range(N_GRAPHS):
        try:
            samples.append(_negative_bias(network, fitted, truth, refit, options.degree_corrected, rng))
        except (UndeterminedError, np.linalg.LinAlgError):
            return Corrected.without(estimate)
    rates, totals = (np.array(values) for values in zip(*samples, strict=True))
    rates = (rates + rates.swapaxes(1, 2)) / 2
    factor = float(np.exp(totals.mean()))
    value = np.clip(estimate.connectivity + shrunk_mean(rates), 0, top)
    # The mean over the graphs has an error, and the bias of this graph differs from the mean, as other memberships may
    # be drawn. Of that variance the jackknife over nodes has half, as it is halved for links.
    width = np.sqrt(1 / N_GRAPHS + 1 / 2)
    total_error = width * float(estimate.alpha_0 * factor * totals.std(ddof=1))
    errors = Parameters(width * rates.std(axis=0, ddof=1), total_error)
    total = float(np.clip(estimate.alpha_0 * factor, LEAST_ALPHA, LARGEST_ALPHA))
    return Corrected(Parameters(value, total), errors, factor)


def shrunk_mean(samples: np.ndarray) -> np.ndarray:
    """Return the mean over the first axis, shrunk towards zero if it may be chance (positive part of Stein's rule)."""
    mean, variance = samples.mean(axis=0), samples.var(axis=0, ddof=1) / len(samples)
    return np.asarray(mean * np.maximum(1 - variance / np.maximum(mean**2, 1e-300), 0))


def _negative_bias(
    network: Network,
    fitted: LinkCounts,
    parameters: Parameters,
    refit: Callable[[Network], LinkCounts],
    degree_corrected: bool,
    rng: np.random.Generator,
) -> tuple[np.ndarray, float]:
    """Return the corrections of connectivity and of the logarithm of alpha_0 that one simulated graph shows."""
    drawn, truth = _simulated(network, fitted, parameters, degree_corrected, rng)
    linked = np.flatnonzero(drawn.degrees > 0)
    drawn, truth = drawn.subgraph(linked), truth._replace(counts=truth.counts[linked])
    refitted = refit(drawn)
    refitted = refitted.ordered(linear_sum_assignment(-truth.memberships.T @ refitted.memberships)[1])
    if not are_nearest(truth.memberships, refitted.memberships):
        raise UndeterminedError("X shows other communities than it was simulated with")
    right = plain_parameters(drawn, truth, degree_corrected)
    wrong = cross_fitted_parameters(drawn, refitted, degree_corrected, np.arange(linked.size))
    scale = drawn.nodes.size / network.nodes.size
    return scale * (right.connectivity - wrong.connectivity), float(np.log(right.alpha_0 / wrong.alpha_0))


def are_nearest(some: np.ndarray, others: np.ndarray) -> bool:
    """Return whether every column is nearer to the other column in its position than to any other, and vice versa."""
    cosines = (some / np.linalg.norm(some, axis=0)).T @ (others / np.linalg.norm(others, axis=0))
    places = np.arange(cosines.shape[0])
    return bool(np.all(cosines.argmax(axis=0) == places) and np.all(cosines.argmax(axis=1) == places))


def _simulated(
    network: Network, fitted: LinkCounts, parameters: Parameters, degree_corrected: bool, rng: np.random.Generator
) -> tuple[Network, LinkCounts]:
    """Return a graph of the model, with Dirichlet memberships, and its truth as a fit without uncertainty."""
    n, top, rates = network.nodes.size, float(network.adjacency.data.max()), parameters.connectivity
    size = min(n, int(np.clip(4 * n * rates.max() / top, FEWEST_NODES, MOST_NODES)))
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
    certain = LinkCounts(1e12 * shares, np.zeros(shares.shape[1]), ends, [])
    return Network(sparse.csr_array(adjacency), nodes), certain


def _drawn(rows: np.ndarray, links: np.ndarray, simple: bool, rng: np.random.Generator) -> sparse.csr_array:
    """Draw links between all pairs, at most one each in simple graphs, a block of rows at a time."""
    n = rows.shape[0]
    parts = []
    for start in range(0, n, ROWS_AT_ONCE):
        means = rows[start : start + ROWS_AT_ONCE] @ links @ rows.T
        numbers = rng.random(means.shape) < means if simple else rng.poisson(means)
        parts.append(sparse.csr_array(np.triu(numbers, start + 1), dtype=np.float64))
    above = sparse.vstack(parts, format="csr")
    return sparse.csr_array(above + above.T)


class Estimate(NamedTuple):
    """Memberships (n, k), connectivity (k, k) and the total of the Dirichlet parameters, or their standard errors."""

    memberships: np.ndarray
    connectivity: np.ndarray
    alpha_0: float

    def aligned(self, whole: np.ndarray) -> Estimate:
        """Return the same with communities in the order of these memberships (n, k)."""
        order = linear_sum_assignment(-whole.T @ self.memberships)[1]
        return Estimate(self.memberships[:, order], self.connectivity[np.ix_(order, order)], self.alpha_0)


def check_node_blocks(n_blocks: int, n_nodes: int, k: int) -> None:
    """Raise unless the nodes without any block are enough for k communities."""
    if n_nodes < n_blocks:
        raise ValueError(
            f"n_jackknife must be at most {n_nodes}, the number of nodes with links, as each belongs to one block; got "
            f"{n_blocks}"
        )
    rest, needed = n_nodes - -(-n_nodes // n_blocks), max(8, 4 * k)
    if k > 1 and rest < needed:
        raise ValueError(
            f"n_jackknife must be 0, or so large that {needed} nodes are left without a block, to be divided into four "
            f"parts for {k} communities; n_jackknife={n_blocks} leaves {rest} of {n_nodes} nodes with links"
        )


def communities_jackknife(whole: Estimate, estimate: Callable[[np.ndarray], Estimate], n_blocks: int) -> Estimate:
    """Return standard errors; `estimate` returns the parameters of the subgraph of a mask of nodes (n,)."""
    n, k = whole.memberships.shape
    owners = block_of_rows(n, n_blocks)
    memberships, rates, totals = np.empty((n_blocks, n, k)), np.empty((n_blocks, k, k)), np.empty(n_blocks)
    for block in range(n_blocks):
        subset = owners != block
        try:
            replicate = estimate(subset).aligned(whole.memberships[subset])
        except ValueError as error:
            add_block_note(error, block, n_blocks)
            raise
        memberships[block, subset], rates[block], totals[block] = replicate
    sizes = np.bincount(owners, minlength=n_blocks)
    errors = np.empty((n, k))
    for block in range(n_blocks):
        nodes, others = owners == block, np.flatnonzero(np.arange(n_blocks) != block)
        ratios = sizes[others].sum() / sizes[others]
        block_errors = share_errors(whole.memberships[nodes], memberships[np.ix_(others, nodes)], ratios)
        errors[nodes] = np.minimum(block_errors * np.sqrt(n / (n - sizes[block])), LARGEST_DEVIATION)
    twice = (2 * n_blocks - 1) / (n_blocks - 1)
    unit = max(float(whole.connectivity.max()), 1e-300)
    rate_errors = share_errors(whole.connectivity, rates, n / sizes, unit) / np.sqrt(twice)
    total_error = jackknife_errors(np.asarray(whole.alpha_0), totals, n / sizes) / np.sqrt(twice)
    return Estimate(errors, rate_errors, float(total_error))
