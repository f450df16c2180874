"""Communities that overlap, from a graph alone."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from codiag._factorize import as_method
from codiag._validation import as_number
from codiag.models._base import as_seed, check_alpha
from codiag.models._canonical import canonical_order
from codiag.models._network_em import polish_memberships
from codiag.models._network_rates import connectivity
from codiag.models._networks import Network, as_network
from codiag.models._second_moment import leading_range
from codiag.models._star_moments import Average, averaged, estimate_memberships, on_simplex_rows, scaled_stars

FEWEST, MOST = 10, 160
"""Partitions to begin with, and to end with at the latest."""
PRECISE = 0.05
"""Standard error of memberships below which no more partitions are drawn: communities count from 0.3 on."""


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
        Random partitions of the nodes to average over; by default 10, doubled until their mean has a standard error
        of 0.05, or up to 160.
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
        P of the model: the share of pairs that are linked, of nodes that belong to one community alone with such nodes
        of another; in a graph with weights, their mean weight. Between zero and the largest weight.
    labels_ : array of shape (n,)
        The strongest community of every node; -1 for nodes without links.
    nodes_ : array of shape (n,)
        What the rows stand for.
    n_components_ : int
    diagnostics_ : dict
        Among others `agreement`, the mean cosine of the communities of single partitions with their average. Graphs of
        few nodes have little to agree on: below 0.8 a warning says that other seeds may find other communities.
        `standard_error` is that of a membership, as partitions differ; None where there was but one.

    Notes
    -----
    Weights of networkx graphs and of adjacency matrices count as numbers of links.

    Names of nodes, and the order in which nodes and links are given, make no difference: partitions are drawn over
    nodes in an order that follows from the links alone. Only nodes that links do not tell apart may change places.

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
        self._check_options()
        network = as_network(X)
        linked = np.flatnonzero(network.degrees > 0)
        inside = network.part(linked)
        order = canonical_order(inside.adjacency)
        with threadpool_limits(1):  # many small products, for which threads only wait for each other
            found = self._found(inside.part(order), as_seed(self.random_state))
        k = found.memberships.shape[1]
        self.memberships_ = np.full((network.nodes.size, k), 1 / k)
        self.memberships_[linked[order]] = found.memberships
        self.connectivity_ = found.connectivity
        self.labels_ = np.full(network.nodes.size, -1)
        self.labels_[linked] = np.argmax(self.memberships_[linked], axis=1)
        self.nodes_, self.n_components_ = network.nodes, k
        self.diagnostics_ = found.diagnostics | {"isolated": network.nodes.size - linked.size}
        self._warn(found)
        return self

    def fit_predict(self, X: Any, y: object = None) -> np.ndarray:  # noqa: N803
        """Return the strongest community of every node."""
        return self.fit(X).labels_

    def overlapping_labels(self, threshold: float = 0.3) -> np.ndarray:
        """Return which nodes belong to which communities (n, n_components): where the membership is large enough."""
        check_is_fitted(self)
        as_number("threshold", threshold)
        if threshold > 1:
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

    def _check_options(self) -> None:
        check_alpha(self.alpha_0)
        for name in ("n_components", "n_partitions"):
            if getattr(self, name) is not None:
                as_number(name, getattr(self, name), integer=True)
        as_number("polish", self.polish, integer=True, zero=True)
        if not isinstance(self.degree_corrected, bool | np.bool_):
            raise TypeError(f"degree_corrected must be True or False; got {self.degree_corrected!r}")
        as_method(self.method)
        as_seed(self.random_state)

    def _found(self, network: Network, seed: int | None) -> _Found:
        """Return communities; where their number is open, so few that most partitions show them, each with a node."""
        k = self._n_communities(network)
        while True:
            try:
                found = self._with_number(network, k, seed)
            except ValueError:  # no partition shows as many
                if self.n_components is not None or k == 1:
                    raise
                k -= 1
                continue
            if self.n_components is not None or found.is_shown:
                return found
            k -= max(found.n_empty, 1)

    def _with_number(self, network: Network, k: int, seed: int | None) -> _Found:
        average, n_estimates, n_partitions = self._average(network, k, seed)
        mean = average.memberships
        rated = self.polish > 0 and not self.degree_corrected
        if rated:  # where nodes are alike, links are made at the rates of communities
            mean = on_simplex_rows(mean * (connectivity(network, mean) @ mean.sum(axis=0)))
        polished = polish_memberships(network, mean, self.polish)
        memberships = polished.without_rates() if rated else polished.memberships
        memberships = memberships[:, np.argsort(-memberships.sum(axis=0), kind="stable")]
        diagnostics = {
            "log_likelihood": polished.history,
            "n_partitions": n_estimates,
            "agreement": average.agreement,
            "standard_error": average.standard_error if n_estimates > 1 or k == 1 else None,
        }
        return _Found(memberships, connectivity(network, memberships), diagnostics, n_partitions - n_estimates)

    def _average(self, network: Network, k: int, seed: int | None) -> tuple[Average, int, int]:
        """Return the average over partitions that show as many communities, how many do, and of how many."""
        n = network.nodes.size
        if k == 1:
            return Average(np.ones((n, 1)), 1.0, 0.0), 1, 1
        stars = scaled_stars(network, self.degree_corrected)
        estimates, reason, done = [], "", 0
        target = self.n_partitions or FEWEST
        seeds = np.random.SeedSequence(seed).spawn(self.n_partitions or MOST)
        while True:
            for one in seeds[done:target]:
                try:
                    estimates.append(estimate_memberships(stars, k, self.alpha_0, self.method, one))
                except (ValueError, np.linalg.LinAlgError) as error:
                    reason = str(error)
            done = target
            average = averaged(estimates) if len(estimates) > 1 or (done == len(seeds) and estimates) else None
            if done >= len(seeds) or (average is not None and average.standard_error < PRECISE):
                break
            target = min(2 * target, len(seeds))
        if average is None:
            raise ValueError(f"n_components={k} is more than the graph shows, in any partition of its nodes: {reason}")
        return average, len(estimates), done

    def _warn(self, found: _Found) -> None:
        k, agreement = self.n_components_, found.diagnostics["agreement"]
        missed, used = found.n_missed, found.diagnostics["n_partitions"]
        messages = []
        if found.is_missed:
            messages.append(
                f"{missed} of {missed + used} partitions of the nodes do not show {k} communities; ask for fewer"
            )
        if agreement < 0.8:
            messages.append(
                f"partitions of the nodes agree little on {k} communities ({agreement:.2f} of 1), and other seeds may "
                "find others; ask for fewer communities, or for more partitions"
            )
        if found.n_empty:
            messages.append(
                f"n_components={k} may be more than the graph shows: {found.n_empty} of the communities "
                f"{'is' if found.n_empty == 1 else 'are'} the strongest of no node; ask for {k - found.n_empty}"
            )
        for message in messages:
            warnings.warn(message, UserWarning, stacklevel=3)

    def _n_communities(self, network: Network) -> int:
        n = network.adjacency.shape[0]
        if self.n_components is None:
            return widest_gap(network)
        if n < 8:
            raise ValueError(f"the graph must have at least 8 nodes with links, to be parted in four; it has {n}")
        if 4 * self.n_components > n:
            raise ValueError(
                f"n_components must be at most {n // 4}, a quarter of the nodes with links; got {self.n_components}"
            )
        return self.n_components


class _Found(NamedTuple):
    """Communities of nodes that have links."""

    memberships: np.ndarray
    connectivity: np.ndarray
    diagnostics: dict[str, Any]
    n_missed: int  # partitions that do not show as many communities

    @property
    def n_empty(self) -> int:
        """How many communities are the strongest of no node."""
        return self.memberships.shape[1] - np.unique(np.argmax(self.memberships, axis=1)).size

    @property
    def is_missed(self) -> bool:
        """Whether most partitions do not show as many communities."""
        return self.n_missed > self.diagnostics["n_partitions"]

    @property
    def is_shown(self) -> bool:
        """Whether most partitions show as many communities, and each is the strongest of some node."""
        return not self.is_missed and self.n_empty == 0


def widest_gap(network: Network, largest: int = 40) -> int:
    """Return the number of communities before the widest gap between eigenvalues of the normalised adjacency."""
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
