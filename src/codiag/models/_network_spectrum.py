r"""How many communities the spectrum of a network shows beyond what random graphs explain.

The Bethe Hessian :math:`(r^2 - 1) I - r A + D` of a random graph without communities has one negative eigenvalue where
:math:`r^2` is the mean excess degree, and one more for each community that any method could detect (Saade, Krzakala &
Zdeborova 2014; Le & Levina 2015). By Sylvester's law of inertia these are the eigenvalues above 1 of
:math:`r (D + r^2 - 1)^{-1/2} A (D + r^2 - 1)^{-1/2}`, which are the largest, and quickly found.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from codiag.models._networks import Network
from codiag.models._second_moment import leading_range


def count_communities(network: Network, largest: int = 40) -> int:
    """Return the number of negative eigenvalues of the Bethe Hessian, at least 1 and at most `largest`."""
    n = network.adjacency.shape[0]
    n_values = min(largest, n // 4)
    if n_values < 3:
        raise ValueError(
            f"the graph must have at least 12 nodes with links to tell the number of communities; it has {n}. Give "
            "n_components"
        )
    scaled = _normalized(network.adjacency)
    basis = leading_range(lambda vectors: scaled @ vectors, n, n_values, seed=0)
    values = np.einsum("ij,ij->j", basis, scaled @ basis)
    return max(int(np.sum(values > 1)), 1)


def _normalized(adjacency: sparse.csr_array) -> sparse.csr_array:
    """Return the matrix whose eigenvalues above 1 are counted, whatever the unit of weights.

    With weights w the Bethe Hessian has entries :math:`1 + sum_j w_ij^2 / (r^2 - w_ij^2)` and
    :math:`-r w_ij / (r^2 - w_ij^2)`, and excess degrees are sums of squares.
    """
    squares = adjacency**2
    strengths = np.asarray(squares.sum(axis=1)).ravel()
    excess = float(strengths @ strengths - np.sum(squares.data**2)) / float(strengths.sum())
    # At most the largest weight, the Hessian is the Laplacian, which has no negative eigenvalue: no communities.
    square = max(excess, 1.001 * float(squares.data.max()))
    links, own = adjacency.copy(), squares.copy()
    links.data = np.sqrt(square) * adjacency.data / (square - squares.data)
    own.data = squares.data / (square - squares.data)
    scale = sparse.dia_array((1 / np.sqrt(1 + np.asarray(own.sum(axis=1)).ravel())[None], [0]), shape=adjacency.shape)
    return sparse.csr_array(scale @ links @ scale)
