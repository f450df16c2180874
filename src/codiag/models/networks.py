"""Networks: who is linked to whom, however the user keeps them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse


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
        return _from_networkx(graph)
    if sparse.issparse(graph) or (np.ndim(graph) == 2 and np.shape(graph)[0] == np.shape(graph)[1] != 2):
        adjacency = sparse.csr_array(graph, dtype=np.float64)
        return Network(_checked(adjacency), np.arange(adjacency.shape[0]))
    return _from_edges(graph)


def _from_networkx(graph: Any) -> Network:
    if graph.is_directed():
        raise ValueError("the graph must be undirected; take graph.to_undirected()")
    places = {node: place for place, node in enumerate(graph.nodes)}
    ends = np.array([(places[u], places[v]) for u, v in graph.edges()], dtype=np.int64).reshape(-1, 2)
    nodes = np.empty(len(places), dtype=object)
    nodes[:] = list(places)
    return Network(adjacency_of(ends, len(places)), nodes)


def _from_edges(edges: Any) -> Network:
    pairs = np.asarray(edges)
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise ValueError(
            "the graph must be of networkx, a square adjacency matrix, or pairs of linked nodes (n_edges, 2); "
            f"got an array of shape {pairs.shape}"
        )
    if pairs.shape[0] == 0:
        raise ValueError("the graph must have at least one edge; got none")
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
    if adjacency.nnz and (not np.all(np.isfinite(adjacency.data)) or adjacency.data.min() < 0):
        raise ValueError("the adjacency matrix must be finite and not negative")
    if (abs(adjacency - adjacency.T) > 1e-12 * max(1.0, abs(adjacency).max())).nnz:
        raise ValueError("the adjacency matrix must be symmetric, an undirected graph; take ((A + A.T) > 0)")
    loops = sparse.dia_array((adjacency.diagonal()[None], [0]), shape=adjacency.shape)
    adjacency = sparse.csr_array(adjacency - loops)
    adjacency.eliminate_zeros()
    return adjacency
