"""Networks: adjacency matrices and names of nodes, from graphs, matrices and lists of edges."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from codiag.labels import encoded, sorted_names


class Network(NamedTuple):
    """A symmetric adjacency matrix (n, n) without loops, and the names of its nodes."""

    adjacency: sparse.csr_array
    nodes: np.ndarray

    @property
    def degrees(self) -> np.ndarray:
        """The number of links of every node, or their total weight."""
        return np.asarray(self.adjacency.sum(axis=1)).ravel()

    @property
    def unit(self) -> float:
        """The weight of one link, if weights are multiples of numbers of links: their mean square over their mean."""
        return float(np.sum(self.adjacency.data**2) / np.sum(self.adjacency.data))

    def subgraph(self, nodes: np.ndarray) -> Network:
        """Return the subgraph of these nodes, in this order."""
        adjacency = sparse.csr_array(self.adjacency[nodes][:, nodes])
        adjacency.sort_indices()  # so that sums round in the same order
        return Network(adjacency, self.nodes[nodes])


def as_network(graph: Any) -> Network:
    """Return a networkx graph, an adjacency matrix or a list of edges as a `Network`, without loops."""
    if isinstance(graph, Network):
        network = Network(_checked(graph.adjacency), graph.nodes)
    elif hasattr(graph, "nodes") and hasattr(graph, "edges"):
        network = _from_networkx(graph)
    elif sparse.issparse(graph) or _is_square(graph):
        network = _from_matrix(graph)
    else:
        network = _from_edges(graph)
    if network.adjacency.nnz == 0:
        raise ValueError("the graph must have at least one edge between two nodes; got none")
    return network


def _is_square(graph: Any) -> bool:
    shape: tuple[int, ...] = getattr(graph, "shape", ())
    return len(shape) == 2 and shape[0] == shape[1] > 3  # a table of edges has two columns, or three


def _from_matrix(matrix: Any) -> Network:
    if matrix.ndim != 2:
        raise ValueError(f"the adjacency matrix must be square; got shape {matrix.shape}")
    values = matrix if sparse.issparse(matrix) else np.asarray(matrix)
    if values.dtype.kind not in "biuf":
        raise TypeError(f"the adjacency matrix must contain real numbers, the weights of links; got {values.dtype}")
    adjacency = _checked(sparse.csr_array(values, dtype=np.float64))
    return Network(adjacency, np.arange(adjacency.shape[0]))


def _from_networkx(graph: Any) -> Network:
    import networkx as nx

    if graph.is_directed():
        raise ValueError("the graph must be undirected; take graph.to_undirected()")
    nodes = sorted_names(list(graph.nodes))  # so that the order in which a graph was built does not matter
    if nodes.size == 0:
        return Network(sparse.csr_array((0, 0)), nodes)
    try:
        adjacency = nx.to_scipy_sparse_array(graph, nodelist=list(nodes), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"the graph must have numbers as the weights of its edges: {error}") from error
    return Network(_checked(sparse.csr_array(adjacency)), nodes)


def _from_edges(edges: Any) -> Network:
    if hasattr(edges, "to_numpy"):
        edges = edges.to_numpy()
    elif isinstance(edges, Iterable) and not isinstance(edges, str | bytes | Mapping | np.ndarray):
        edges = list(edges)
    try:
        table = edges if isinstance(edges, np.ndarray) else np.array(edges, dtype=object)
        if table.ndim != 2 or table.shape[1] not in (2, 3):
            raise ValueError(f"got an array of shape {table.shape}")
        weights = np.asarray(table[:, 2], dtype=np.float64) if table.shape[1] == 3 else None
    except (TypeError, ValueError) as error:
        raise ValueError(
            "the graph must be of networkx, a square adjacency matrix, or pairs of linked nodes (n_edges, 2), with "
            f"weights as a third column if there are any: {error}"
        ) from error
    pairs = table[:, :2]
    if pairs.dtype == object or pairs.dtype.kind == "f":
        names = pairs.ravel().tolist()
        if any(name is None or name != name for name in names):
            raise ValueError("the graph must have two nodes to every edge; some are missing")
        nodes, ends = encoded(names)
    else:
        nodes, ends = np.unique(pairs, return_inverse=True)
    return Network(_adjacency_of(ends.reshape(-1, 2), nodes, weights), nodes)


def _adjacency_of(ends: np.ndarray, nodes: np.ndarray, weights: np.ndarray | None) -> sparse.csr_array:
    """Return the symmetric matrix of edges (n_edges, 2), of ones without weights; repeated edges count once."""
    n, is_loop = nodes.size, ends[:, 0] == ends[:, 1]
    first, second = np.sort(ends[~is_loop], axis=1).T
    edges, places, inverse = np.unique(first * n + second, return_index=True, return_inverse=True)
    values = np.ones(edges.size)
    if weights is not None:
        if weights.min() < 0:
            raise ValueError(f"weights of edges must not be negative; the least is {weights.min():g}")
        weights = weights[~is_loop]
        values = weights[places]
        differs = weights != values[inverse.ravel()]
        if np.any(differs):
            edge = int(np.argmax(differs))
            raise ValueError(
                f"edges of the graph must have one weight; that of {nodes[first[edge]]} and {nodes[second[edge]]} is "
                "listed with several. Add them first"
            )
    rows, columns = np.divmod(edges, n)
    above = sparse.csr_array((values, (rows, columns)), shape=(n, n))
    above.eliminate_zeros()
    return sparse.csr_array(above + above.T)


def _checked(adjacency: sparse.csr_array) -> sparse.csr_array:
    if adjacency.shape[0] != adjacency.shape[1]:
        raise ValueError(f"the adjacency matrix must be square; got shape {adjacency.shape}")
    if adjacency.nnz == 0:
        return adjacency
    if not np.all(np.isfinite(adjacency.data)) or adjacency.data.min() < 0:
        raise ValueError("the adjacency matrix must be finite and not negative")
    heaviest = float(adjacency.data.max())
    if heaviest > 0 and not 1e-50 < heaviest < 1e50:
        raise ValueError(
            f"the adjacency matrix must have weights between 1e-50 and 1e50; the largest is {heaviest:.0e}. Divide all "
            "of them by that"
        )
    if (abs(adjacency - adjacency.T) > 1e-12 * heaviest).nnz:
        raise ValueError("the adjacency matrix must be symmetric, an undirected graph; take ((A + A.T) > 0)")
    loops = sparse.dia_array((adjacency.diagonal()[None], [0]), shape=adjacency.shape)
    adjacency = sparse.csr_array(adjacency - loops)
    adjacency.eliminate_zeros()
    return adjacency
