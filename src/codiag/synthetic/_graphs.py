"""Random graphs with communities."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from codiag._checks import Seed, as_finite, as_generator, as_number, as_share

BLOCK = 1000
"""Rows of the adjacency matrix that are drawn at once."""


@dataclass(frozen=True, eq=False)
class Graph:
    """A random graph with communities, and what it was made from.

    Attributes
    ----------
    adjacency : scipy.sparse.csr_array of shape (n, n)
        Symmetric, of zeros and ones.
    memberships : numpy.ndarray of shape (n, k)
        How much each node belongs to each community; rows are on the simplex.
    connectivity : numpy.ndarray of shape (k, k)
        The probability that pure members of two communities are linked.

    See Also
    --------
    mixed_membership_graph : Draws one.
    codiag.models.MixedMembershipCommunities : Takes the adjacency matrix.

    Examples
    --------
    >>> from codiag.models import MixedMembershipCommunities
    >>> from codiag.synthetic import mixed_membership_graph
    >>> graph = mixed_membership_graph(300, 3, alpha_0=0.0, inside=0.3, outside=0.02, seed=0)
    >>> model = MixedMembershipCommunities(3, random_state=0).fit(graph.adjacency)
    >>> model.memberships_.shape == graph.memberships.shape
    True
    """

    adjacency: sparse.csr_array
    memberships: np.ndarray
    connectivity: np.ndarray


def mixed_membership_graph(
    n: int,
    k: int,
    *,
    alpha_0: float = 1.0,
    inside: float = 0.1,
    outside: float = 0.01,
    degrees: np.ndarray | None = None,
    seed: Seed = None,
) -> Graph:
    r"""Draw a graph of the mixed-membership model: nodes x and y are linked with probability :math:`p_x^\top P p_y`.

    Parameters
    ----------
    n : int
        Number of nodes.
    k : int
        Number of communities.
    alpha_0 : float
        Memberships :math:`p_x` are Dirichlet with parameters :math:`\alpha_0 / k`; zero makes them pure.
    inside : float
        The probability P within a community, its diagonal.
    outside : float
        The probability P between communities, off its diagonal.
    degrees : array of shape (n,), optional
        Of mean one: the probability of a link is multiplied by those of both nodes.
    seed : int, sequence of int or numpy.random.Generator, optional
        The same seed gives the same graph.

    Returns
    -------
    Graph
        The graph, and the memberships and rates it was drawn from.

    See Also
    --------
    codiag.models.MixedMembershipCommunities : Estimates the memberships.
    codiag.metrics.recovery_curve : Compares them with the truth.

    Examples
    --------
    >>> from codiag.synthetic import mixed_membership_graph
    >>> graph = mixed_membership_graph(50, 2, seed=0)
    >>> graph.adjacency.shape, graph.memberships.shape, graph.connectivity.tolist()
    ((50, 50), (50, 2), [[0.1, 0.01], [0.01, 0.1]])
    """
    as_number("n", n, integer=True)
    as_number("k", k, integer=True)
    as_number("alpha_0", alpha_0, zero=True)
    as_share("inside", inside)
    as_share("outside", outside)
    if degrees is not None:
        degrees = as_finite("degrees", degrees, (n,))
        if np.any(degrees < 0):
            raise ValueError(f"degrees must not be negative; the least is {degrees.min():g}")
    rng = as_generator(seed)
    memberships = rng.dirichlet(np.full(k, alpha_0 / k), n) if alpha_0 > 0 else np.eye(k)[rng.integers(0, k, n)]
    connectivity = np.full((k, k), outside) + (inside - outside) * np.eye(k)
    scaled = memberships if degrees is None else memberships * degrees[:, None]
    return Graph(_links(scaled, connectivity, rng), memberships, connectivity)


def _links(scaled: np.ndarray, connectivity: np.ndarray, rng: np.random.Generator) -> sparse.csr_array:
    """Draw the adjacency matrix, a block of rows at a time."""
    n = scaled.shape[0]
    rows, columns = [], []
    for start in range(0, n, BLOCK):
        chances = scaled[start : start + BLOCK] @ connectivity @ scaled.T
        row, column = np.nonzero(rng.random(chances.shape) < chances)
        above = column > row + start
        rows.append(row[above] + start)
        columns.append(column[above])
    row, column = np.concatenate(rows), np.concatenate(columns)
    both = np.concatenate([row, column]), np.concatenate([column, row])
    return sparse.csr_array((np.ones(both[0].size), both), shape=(n, n))
