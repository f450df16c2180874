r"""Memberships in communities from moments of 3-stars, one partition of the nodes at a time.

Nodes are split into X, A, B and C. Given the memberships of x in X its links to A, to B and to C are independent, three
views with :math:`E[G_{xA} | p_x] = F_A p_x`. Each view is compressed to its leading directions; nothing larger than
nodes x communities is formed.

Memberships in communities, averaged over random partitions of the nodes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from codiag._checks import UndeterminedError
from codiag.methods import Method
from codiag.models.communities._network import Network
from codiag.models.frame import ViewSums, common_order, leading_range, on_simplex_rows, start_from_views

SMALL = 500
"""Nodes up to which links are kept as a dense matrix, whose parts are taken more quickly."""


class Stars(NamedTuple):
    """Links (n, n) divided by scales of the rows (n,) and of the columns, and the scales of the rows."""

    links: Any
    rows: np.ndarray


def scaled_stars(network: Network, degree_corrected: bool) -> Stars:
    r"""Return links with rows and columns divided by scales, so that all have similar noise.

    Columns are divided by roots of degrees, as variances are like means. Rows are divided by degrees, which leaves the
    shares, where nodes differ in their number of links for reasons other than communities. The mean degree is added to
    degrees, since a node of few links carries little information.
    """
    degrees = network.degrees
    regular = degrees + degrees.mean()
    rows = regular if degree_corrected else np.full(degrees.size, degrees.mean())
    links = _scaled(network.adjacency, rows, np.sqrt(regular))
    return Stars(links.toarray() if degrees.size <= SMALL else links, rows)


def estimate_memberships(
    stars: Stars,
    k: int,
    alpha_0: float,
    method: Method | None,
    seed: np.random.SeedSequence,
    kept: np.ndarray | None = None,
) -> np.ndarray:
    """Return memberships (n, k), rows on the simplex, from one random partition of the nodes.

    Where these are what was `kept` of more nodes (n_all,), they are parted as they are among all.
    """
    n = stars.rows.size
    kept = np.ones(n, dtype=bool) if kept is None else kept
    places, parts = np.cumsum(kept) - 1, np.array_split(np.random.default_rng(seed).permutation(kept.size), 4)
    centers, *leaves = [places[part[kept[part]]] for part in parts]
    if min(part.size for part in (centers, *leaves)) < k:
        raise UndeterminedError(f"a part of the nodes must have at least {k} of them, one for each community")
    weights = stars.rows[centers] / stars.rows[centers].sum()
    links = [stars.links[centers][:, leaf] for leaf in leaves]
    bases = [_basis(links, own, weights, k) for own in range(3)]
    views = [link @ basis for link, basis in zip(links, bases, strict=True)]
    moments = ViewSums.empty(k, k, k).update((weights, *views)).finish(alpha_0)
    _, means = start_from_views(moments, k, method, 0, max_sweeps=10)
    memberships = np.empty((n, k))
    for own, others in ((centers, (0, 1, 2)), (leaves[0], (1, 2)), (leaves[1], (0, 2)), (leaves[2], (0, 1))):
        seen = np.hstack([stars.links[own][:, leaves[leaf]] @ bases[leaf] for leaf in others])
        memberships[own] = seen @ np.linalg.pinv(np.hstack([means[leaf] for leaf in others]))
    if not np.all(np.isfinite(memberships)):
        raise UndeterminedError(f"links between the parts do not show {k} communities")
    return on_simplex_rows(memberships)


def _scaled(adjacency: sparse.csr_array, rows: np.ndarray, columns: np.ndarray) -> sparse.csr_array:
    left = sparse.dia_array((1 / rows[None], [0]), shape=adjacency.shape)
    right = sparse.dia_array((1 / columns[None], [0]), shape=adjacency.shape)
    return sparse.csr_array(left @ adjacency @ right)


def _basis(views: list[Any], own: int, weights: np.ndarray, k: int) -> np.ndarray:
    """Return the k directions (d, k) of a view most correlated with the other views, whose noise is independent."""
    view, others = views[own], [view for place, view in enumerate(views) if place != own]

    def multiply(vectors: np.ndarray) -> np.ndarray:
        seen = (weights * (view @ vectors).T).T
        together = sum((weights * (other @ (other.T @ seen)).T).T for other in others)
        return view.T @ together

    return leading_range(multiply, view.shape[1], k, seed=0)


FEWEST, MOST = 10, 160
"""Partitions to begin with, and to end with at the latest."""
PRECISE = 0.05
"""Standard error of memberships below which no more partitions are drawn: communities count from 0.3 on."""


class Average(NamedTuple):
    """The mean of memberships over the partitions that show as many communities, how many do, and of how many.

    Agreement is the mean cosine of communities with their average: one where all partitions say the same. The standard
    error is that of a membership, in the mean square, as partitions differ.
    """

    memberships: np.ndarray
    agreement: float
    standard_error: float
    n_used: int
    n_drawn: int

    @property
    def mostly_failed(self) -> bool:
        """Whether most partitions do not show as many communities."""
        return self.n_drawn > 2 * self.n_used


def average_over_partitions(
    network: Network,
    k: int,
    seed: int | None,
    *,
    alpha_0: float,
    degree_corrected: bool,
    method: Method | None,
    n_partitions: int | None,
    kept: np.ndarray | None = None,
) -> Average:
    """Return memberships averaged over so many partitions, or over as many as make the mean precise.

    Where nodes are what was `kept` of more nodes (n_all,), the partitions are those of all.
    """
    if k == 1:
        return Average(np.ones((network.nodes.size, 1)), 1.0, 0.0, 1, 1)
    stars = scaled_stars(network, degree_corrected)
    seeds = np.random.SeedSequence(seed).spawn(n_partitions or MOST)
    estimates: list[np.ndarray] = []
    average, reason, n_drawn, target = None, "", 0, n_partitions or FEWEST
    precise = 0.0 if kept is not None else PRECISE  # partitions are as many as for all nodes, then
    while n_drawn < len(seeds) and not (average is not None and average.standard_error < precise):
        for one in seeds[n_drawn:target]:
            try:
                estimates.append(estimate_memberships(stars, k, alpha_0, method, one, kept))
            except (UndeterminedError, np.linalg.LinAlgError) as error:  # this partition shows fewer communities
                reason = str(error)
        n_drawn, target = target, min(2 * target, len(seeds))
        if len(estimates) > 1 or (estimates and n_drawn == len(seeds)):
            average = _averaged(estimates, n_drawn)
    if average is None:
        raise UndeterminedError(
            f"n_components={k} is more than the graph shows, in any partition of its nodes: {reason}"
        )
    return average


def _averaged(estimates: list[np.ndarray], n_drawn: int) -> Average:
    """Return the mean of memberships whose communities come in any order."""
    units = [_unit(estimate) for estimate in estimates]
    orders = common_order(units)
    aligned = [estimate[:, order] for estimate, order in zip(estimates, orders, strict=True)]
    mean = np.mean(aligned, axis=0)
    middle = _unit(mean)
    cosines = [np.sum(unit[:, order] * middle, axis=0) for unit, order in zip(units, orders, strict=True)]
    spread = np.mean([np.mean((estimate - mean) ** 2) for estimate in aligned])
    error = float(np.sqrt(spread / max(len(estimates) - 1, 1)))
    return Average(mean, min(float(np.mean(cosines)), 1.0), error, len(estimates), n_drawn)


def _unit(columns: np.ndarray) -> np.ndarray:
    return columns / np.maximum(np.linalg.norm(columns, axis=0), 1e-300)
