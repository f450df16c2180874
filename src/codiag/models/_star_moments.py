r"""Memberships in communities from moments of 3-stars, one partition of the nodes at a time.

Nodes are split into X, A, B and C. Given the memberships of x in X its links to A, to B and to C are independent, three
views with :math:`E[G_{xA} | p_x] = F_A p_x`. Each view is compressed to its leading directions; nothing larger than
nodes x communities is formed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from codiag._validation import UndeterminedError
from codiag.methods import Method
from codiag.models._networks import Network
from codiag.models._second_moment import leading_range
from codiag.models._simplex import on_simplex_rows
from codiag.models._view_moments import start_from_views
from codiag.models._view_sums import ViewSums

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
