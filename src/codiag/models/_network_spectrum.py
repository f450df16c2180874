"""How many communities the spectrum of a network shows."""

from __future__ import annotations

import numpy as np

from codiag.models._networks import Network
from codiag.models._second_moment import leading_range


def widest_gap(network: Network, largest: int = 40) -> int:
    """Return the number of communities before the widest gap between eigenvalues of the normalized adjacency."""
    n = network.adjacency.shape[0]
    roots = np.sqrt(network.degrees + network.degrees.mean())
    n_values = min(largest + 1, n // 4)
    if n_values < 3:
        raise ValueError(
            f"the graph must have at least 12 nodes with links to tell the number of communities; it has {n}. Give "
            "n_components"
        )

    def multiply(vectors: np.ndarray) -> np.ndarray:
        return ((network.adjacency @ (vectors.T / roots).T).T / roots).T

    basis = leading_range(multiply, n, n_values, seed=0)
    values = np.sort(np.einsum("ij,ij->j", basis, multiply(basis)))[::-1]
    return int(np.argmax(values[1:-1] - values[2:])) + 2
