"""Communities that overlap, from a graph alone."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from codiag._validation import as_generator, as_number, check_seed
from codiag.factorize import as_method
from codiag.models.base import leading_range
from codiag.models.network_em import polish_memberships
from codiag.models.networks import Network, as_network
from codiag.models.star_moments import averaged, estimate_memberships, on_simplex_rows, scales


class MixedMembershipCommunities(BaseEstimator):
    r"""Communities whose members may belong to several, by moments of 3-stars.

    In the mixed-membership model nodes x and y are linked with probability :math:`p_x^\top P p_y`, memberships p being
    Dirichlet. The links of a node to three groups of others are three views of its memberships, whose third moment is
    factorized after compression; memberships are averaged over random partitions of the nodes, then polished by
    expectation maximization.

    Parameters
    ----------
    n_components : int, optional
        Number of communities; by default before the widest gap in the spectrum.
    alpha_0 : float
        How mixed memberships are: the total of their Dirichlet parameters; 0 where every node has one community.
    degree_corrected : bool
        Whether nodes may differ in their number of links for reasons other than their communities, as real ones do.
        False is the model as it was published.
    method : Method or str, optional
        How the moment is factorized; by default by joint diagonalization alone. `OJD` and `TPM` symmetrise and whiten
        it, as published; others take it as it is.
    n_partitions : int, optional
        Random partitions of the nodes to average over; by default 10, and 5000 / n for small graphs.
    polish : int
        Rounds of expectation maximization, whose likelihood has a term for every node's degree. Few: real graphs fit
        no such model, and many rounds fit their quirks.
    random_state : int, optional
        Seed of the partitions.

    Attributes
    ----------
    memberships_ : array of shape (n, n_components)
        Rows on the simplex, largest community first. With degree correction, the shares of a node's links that it made
        on behalf of each.
    connectivity_ : array of shape (n_components, n_components)
        P of the model: how often nodes that belong to one community alone are linked with such nodes of another.
    labels_ : array of shape (n,)
        The strongest community of every node; -1 for nodes without links.
    nodes_ : array of shape (n,)
        What the rows stand for.
    n_components_ : int
    diagnostics_ : dict
        Among others `agreement`, the mean cosine of the communities of single partitions with their average. Graphs of
        few nodes have little to agree on: below 0.8 a warning says that other seeds may find other communities.

    Notes
    -----
    Weights of networkx graphs and of adjacency matrices count as numbers of links.

    Examples
    --------
    >>> from codiag.models import MixedMembershipCommunities
    >>> from codiag.synthetic import mixed_membership_graph
    >>> graph = mixed_membership_graph(600, 3, alpha_0=0.1, inside=0.3, outside=0.02, seed=0)
    >>> model = MixedMembershipCommunities(3, random_state=0).fit(graph.adjacency)
    >>> model.memberships_.shape
    (600, 3)
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        alpha_0: float = 0.1,
        degree_corrected: bool = True,
        method: Any = None,
        n_partitions: int | None = None,
        polish: int = 5,
        random_state: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.alpha_0 = alpha_0
        self.degree_corrected = degree_corrected
        self.method = method
        self.n_partitions = n_partitions
        self.polish = polish
        self.random_state = random_state

    def fit(self, X: Any, y: object = None) -> MixedMembershipCommunities:  # noqa: N803
        """Find communities in a graph of networkx, an adjacency matrix, or pairs of linked nodes (n_edges, 2)."""
        as_number("alpha_0", self.alpha_0, zero=True)
        if self.n_partitions is not None:
            as_number("n_partitions", self.n_partitions, integer=True)
        as_number("polish", self.polish, integer=True, zero=True)
        as_method(self.method)
        check_seed("random_state", self.random_state)
        network = as_network(X)
        with threadpool_limits(1):  # many small products, for which threads only wait for each other
            k = self._n_communities(network)
            estimates = self._estimates(network, k)
            mean, agreement = averaged(estimates)
            rated = self.polish > 0 and not self.degree_corrected
            if rated:  # where nodes are alike, links are made at the rates of communities
                mean = on_simplex_rows(mean * (connectivity(network, mean) @ mean.sum(axis=0)))
            polished = polish_memberships(network, mean, self.polish)
        memberships = polished.without_rates() if rated else polished.memberships
        self.memberships_ = memberships[:, np.argsort(-memberships.sum(axis=0), kind="stable")]
        self.connectivity_ = connectivity(network, self.memberships_)
        self.labels_ = np.where(network.degrees > 0, np.argmax(self.memberships_, axis=1), -1)
        self.nodes_, self.n_components_ = network.nodes, k
        self.diagnostics_ = {
            "log_likelihood": polished.history,
            "n_partitions": len(estimates),
            "agreement": agreement,
            "isolated": int(np.sum(network.degrees == 0)),
        }
        if agreement < 0.8:
            warnings.warn(
                f"partitions of the nodes agree little on {k} communities ({agreement:.2f} of 1), and other seeds may "
                "find others; ask for fewer communities, or for more partitions",
                UserWarning,
                stacklevel=2,
            )
        return self

    def fit_predict(self, X: Any, y: object = None) -> np.ndarray:  # noqa: N803
        """Return the strongest community of every node."""
        return self.fit(X).labels_

    def overlapping_labels(self, threshold: float = 0.3) -> np.ndarray:
        """Return which nodes belong to which communities (n, n_components): where the membership is large enough."""
        check_is_fitted(self)
        if not 0 < threshold <= 1:
            raise ValueError(f"threshold must lie between 0 and 1; got {threshold}")
        return self.memberships_ >= threshold

    def membership_table(self) -> dict[str, np.ndarray]:
        """Return columns to write to a file: node, its strongest community, and all memberships."""
        check_is_fitted(self)
        columns = {"node": self.nodes_, "community": self.labels_}
        return columns | {f"p{place}": column for place, column in enumerate(self.memberships_.T)}

    def to_cdlib(self, graph: Any, threshold: float = 0.3) -> Any:
        """Return the overlapping communities of this graph as a ``cdlib.NodeClustering``."""
        from cdlib import NodeClustering

        belongs = self.overlapping_labels(threshold)
        communities = [self.nodes_[column].tolist() for column in belongs.T if column.any()]
        options = {key: value for key, value in self.get_params().items() if value is not None}
        return NodeClustering(communities, graph, "codiag", method_parameters=options, overlap=True)

    def _estimates(self, network: Network, k: int) -> list[np.ndarray]:
        """Return memberships from every partition that shows as many communities."""
        if k == 1:
            return [np.ones((network.adjacency.shape[0], 1))]
        stars = scales(network, self.degree_corrected)
        estimates, reason = [], ""
        n_partitions = self.n_partitions or max(10, 5000 // network.adjacency.shape[0])
        sequence: Any = as_generator(self.random_state, "random_state").bit_generator.seed_seq
        for seed in sequence.spawn(n_partitions):
            try:
                estimates.append(estimate_memberships(network, stars, k, self.alpha_0, self.method, seed))
            except (ValueError, np.linalg.LinAlgError) as error:
                reason = str(error)
        if not estimates:
            raise ValueError(f"n_components={k} is more than the graph shows, in any partition of its nodes: {reason}")
        if 2 * len(estimates) < n_partitions:
            missed = n_partitions - len(estimates)
            warnings.warn(
                f"{missed} of {n_partitions} partitions of the nodes do not show {k} communities; ask for fewer",
                UserWarning,
                stacklevel=4,
            )
        return estimates

    def _n_communities(self, network: Network) -> int:
        n = network.adjacency.shape[0]
        if self.n_components is None:
            return widest_gap(network)
        as_number("n_components", self.n_components, integer=True)
        if n < 8:
            raise ValueError(f"the graph must have at least 8 nodes, to be parted in four; it has {n}")
        if 4 * self.n_components > n:
            raise ValueError(f"n_components must be at most {n // 4}, a quarter of the nodes; got {self.n_components}")
        return self.n_components


def connectivity(network: Network, memberships: np.ndarray) -> np.ndarray:
    """Return P with p_x^T P p_y nearest to the links, over nodes that have any; not negative."""
    linked = network.degrees > 0
    inverse = np.linalg.pinv(memberships[linked])
    return np.maximum(inverse @ (network.adjacency[linked][:, linked] @ inverse.T), 0)


def widest_gap(network: Network, largest: int = 40) -> int:
    """Return the number of communities before the widest gap between eigenvalues of the normalised adjacency."""
    n = network.adjacency.shape[0]
    roots = np.sqrt(network.degrees + network.degrees.mean())
    n_values = min(largest + 1, n // 4)
    if n_values < 3:
        raise ValueError(f"the graph must have at least 12 nodes to tell the number of communities; it has {n}")

    def multiply(vectors: np.ndarray) -> np.ndarray:
        return ((network.adjacency @ (vectors.T / roots).T).T / roots).T

    basis = leading_range(multiply, n, n_values, seed=0)
    values = np.sort(np.einsum("ij,ij->j", basis, multiply(basis)))[::-1]
    return int(np.argmax(values[1:-1] - values[2:])) + 2
