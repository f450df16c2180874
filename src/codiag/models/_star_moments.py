r"""Memberships in communities from moments of 3-stars, one partition of the nodes at a time.

Nodes are split into X, A, B and C. Given the memberships of x in X its links to A, to B and to C are independent, three
views with :math:`E[G_{xA} | p_x] = F_A p_x`. Each view is compressed to its leading directions; nothing larger than
nodes x communities is formed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from codiag.models._alignment import common_order
from codiag.models._networks import Network
from codiag.models._second_moment import leading_range
from codiag.models._view_moments import ViewMoments, start_from_views
from codiag.tensors import CrossMomentTensor

SMALL = 500
"""Nodes up to which links are kept as a dense matrix, which is quicker to part."""


class Stars(NamedTuple):
    """Links (n, n) as they are seen: rows divided by these numbers (n,), columns by others."""

    links: Any
    rows: np.ndarray


def scaled_stars(network: Network, degree_corrected: bool) -> Stars:
    r"""Return links divided by what makes their noise alike.

    Columns by roots of degrees, as variances are like means. Rows, where nodes differ in their number of links for
    reasons other than communities, by degrees, which leaves the shares. To degrees the mean degree is added: a node of
    few links says little.
    """
    degrees = network.degrees
    regular = degrees + degrees.mean()
    rows = regular if degree_corrected else np.full(degrees.size, degrees.mean())
    links = _scaled(network.adjacency, rows, np.sqrt(regular))
    return Stars(links.toarray() if degrees.size <= SMALL else links, rows)


def estimate_memberships(stars: Stars, k: int, alpha_0: float, method: Any, seed: np.random.SeedSequence) -> np.ndarray:
    """Return memberships (n, k), rows on the simplex, from one random partition of the nodes."""
    n = stars.rows.size
    rng = np.random.default_rng(seed)
    centres, *leaves = np.array_split(rng.permutation(n), 4)
    weights = stars.rows[centres] / stars.rows[centres].sum()
    links = [stars.links[centres][:, leaf] for leaf in leaves]
    bases = [_basis(links, own, weights, k) for own in range(3)]
    views = [link @ basis for link, basis in zip(links, bases, strict=True)]
    moments = ViewMoments(CrossMomentTensor(*views, weights=weights), alpha_0)
    _, means = start_from_views(moments, k, method, 0, max_sweeps=10)
    memberships = np.empty((n, k))
    for own, others in ((centres, (0, 1, 2)), (leaves[0], (1, 2)), (leaves[1], (0, 2)), (leaves[2], (0, 1))):
        seen = np.hstack([stars.links[own][:, leaves[leaf]] @ bases[leaf] for leaf in others])
        memberships[own] = seen @ np.linalg.pinv(np.hstack([means[leaf] for leaf in others]))
    if not np.all(np.isfinite(memberships)):
        raise ValueError(f"links between the parts do not show {k} communities")
    return on_simplex_rows(memberships)


class Average(NamedTuple):
    """The mean of memberships over partitions, how far these agree with it, and its standard error.

    Agreement is the mean cosine of communities with their average: one where all partitions say the same. The standard
    error is that of a membership, in the mean square, as partitions differ.
    """

    memberships: np.ndarray
    agreement: float
    standard_error: float


def averaged(estimates: list[np.ndarray]) -> Average:
    """Return the mean of memberships whose communities come in any order."""
    units = [_unit(estimate) for estimate in estimates]
    orders = common_order(units)
    aligned = [estimate[:, order] for estimate, order in zip(estimates, orders, strict=True)]
    mean = np.mean(aligned, axis=0)
    middle = _unit(mean)
    cosines = [np.sum(unit[:, order] * middle, axis=0) for unit, order in zip(units, orders, strict=True)]
    spread = np.mean([np.mean((estimate - mean) ** 2) for estimate in aligned])
    return Average(mean, min(float(np.mean(cosines)), 1.0), float(np.sqrt(spread / max(len(estimates) - 1, 1))))


def _unit(columns: np.ndarray) -> np.ndarray:
    return columns / np.maximum(np.linalg.norm(columns, axis=0), 1e-300)


def on_simplex_rows(rows: np.ndarray) -> np.ndarray:
    """Return rows without negative entries, of sum one; even where nothing is left."""
    kept = np.maximum(rows, 0)
    sums = kept.sum(axis=1, keepdims=True)
    return np.where(sums > 0, kept / np.where(sums > 0, sums, 1), 1 / rows.shape[1])


def _scaled(adjacency: sparse.csr_array, rows: np.ndarray, columns: np.ndarray) -> sparse.csr_array:
    left = sparse.dia_array((1 / rows[None], [0]), shape=adjacency.shape)
    right = sparse.dia_array((1 / columns[None], [0]), shape=adjacency.shape)
    return sparse.csr_array(left @ adjacency @ right)


def _basis(views: list[Any], own: int, weights: np.ndarray, k: int) -> np.ndarray:
    """Return the k directions (d, k) of a view that go most with the other views, in which noise has no part."""
    view, others = views[own], [view for place, view in enumerate(views) if place != own]

    def multiply(vectors: np.ndarray) -> np.ndarray:
        seen = (weights * (view @ vectors).T).T
        together = sum((weights * (other @ (other.T @ seen)).T).T for other in others)
        return view.T @ together

    return leading_range(multiply, view.shape[1], k, seed=0)
