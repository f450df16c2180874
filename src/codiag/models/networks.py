"""Networks: who is linked to whom, however the user keeps them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from codiag.models.votes import sorted_names


class Network(NamedTuple):
    """A symmetric adjacency matrix (n, n) without loops, and the names of its nodes."""

    adjacency: sparse.csr_array
    nodes: np.ndarray

    @property
    def degrees(self) -> np.ndarray:
        """The links of every node."""
        return np.asarray(self.adjacency.sum(axis=1)).ravel()


def as_network(graph: Any) -> Network:
    """Turn a networkx graph, an adjacency matrix or a list of edges into a `Network`; loops are left out."""
    if hasattr(graph, "nodes") and hasattr(graph, "edges"):
        network = _from_networkx(graph)
    elif sparse.issparse(graph) or (hasattr(graph, "shape") and graph.shape[0] == graph.shape[-1] != 2):
        adjacency = _checked(sparse.csr_array(graph, dtype=np.float64))
        network = Network(adjacency, np.arange(adjacency.shape[0]))
    else:
        network = _from_edges(graph)
    if network.adjacency.nnz == 0:
        raise ValueError("the graph must have at least one edge between two nodes; got none")
    return network


def _from_networkx(graph: Any) -> Network:
    import networkx as nx

    if graph.is_directed():
        raise ValueError("the graph must be undirected; take graph.to_undirected()")
    nodes = sorted_names(list(graph.nodes))  # so that the order in which a graph was built does not matter
    if nodes.size == 0:
        return Network(sparse.csr_array((0, 0)), nodes)
    adjacency = nx.to_scipy_sparse_array(graph, nodelist=nodes.tolist(), dtype=np.float64)
    return Network(_checked(sparse.csr_array(adjacency)), nodes)


def _from_edges(edges: Any) -> Network:
    try:
        pairs = edges if isinstance(edges, np.ndarray) else np.array(edges, dtype=object)
        pairs = np.asarray(edges) if len({type(end) for end in pairs.ravel()}) == 1 else pairs
    except ValueError as error:
        raise ValueError(f"the graph must be pairs of linked nodes (n_edges, 2): {error}") from error
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise ValueError(
            "the graph must be of networkx, a square adjacency matrix, or pairs of linked nodes (n_edges, 2); "
            f"got an array of shape {pairs.shape}"
        )
    if pairs.dtype == object or pairs.dtype.kind == "f":
        if any(end is None or end != end for end in pairs.ravel().tolist()):
            raise ValueError("the graph must have two nodes to every edge; some are missing")
        nodes = sorted_names(pairs.ravel().tolist())
        places = {node: place for place, node in enumerate(nodes.tolist())}
        ends = np.array([places[end] for end in pairs.ravel().tolist()])
    else:
        nodes, ends = np.unique(pairs, return_inverse=True)
    return Network(adjacency_of(ends.reshape(-1, 2), nodes.size), nodes)


def adjacency_of(ends: np.ndarray, n: int) -> sparse.csr_array:
    """Return the symmetric matrix of zeros and ones with these edges (n_edges, 2); repeated ones count once."""
    ends = ends[ends[:, 0] != ends[:, 1]]
    both = np.concatenate([ends, ends[:, ::-1]])
    matrix = sparse.csr_array((np.ones(both.shape[0]), (both[:, 0], both[:, 1])), shape=(n, n))
    matrix.data[:] = 1.0  # edges named twice have been added up
    return matrix


def _checked(adjacency: sparse.csr_array) -> sparse.csr_array:
    if adjacency.shape[0] != adjacency.shape[1]:
        raise ValueError(f"the adjacency matrix must be square; got shape {adjacency.shape}")
    if adjacency.nnz == 0:
        return adjacency
    if not np.all(np.isfinite(adjacency.data)) or adjacency.data.min() < 0:
        raise ValueError("the adjacency matrix must be finite and not negative")
    if (abs(adjacency - adjacency.T) > 1e-12 * max(1.0, abs(adjacency).max())).nnz:
        raise ValueError("the adjacency matrix must be symmetric, an undirected graph; take ((A + A.T) > 0)")
    loops = sparse.dia_array((adjacency.diagonal()[None], [0]), shape=adjacency.shape)
    adjacency = sparse.csr_array(adjacency - loops)
    adjacency.eliminate_zeros()
    return adjacency
