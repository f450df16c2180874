"""Communities that overlap, from a graph alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from scipy import sparse
from scipy.optimize import linear_sum_assignment
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from codiag._arrays import few_threads
from codiag._checks import RankDeficientError, as_flag, as_number
from codiag.methods import Method, as_method
from codiag.models.base import (
    Model,
    as_seed,
    dirichlet_sum,
    on_simplex_rows,
    optional,
    positive_integer,
    random_groups,
    warn_caller,
)
from codiag.models.communities._memberships import (
    average_over_partitions,
    connectivity,
    dirichlet_total,
    scaled_stars,
    variational_steps,
)
from codiag.models.communities._network import Network, as_network
from codiag.models.communities._partition import Communities, count_communities


class MixedMembershipSBM(Model):
    r"""Communities whose members may belong to several, by moments of 3-stars.

    In the mixed-membership model, nodes x and y are linked with probability :math:`p_x^\top P p_y`, and memberships p
    have a Dirichlet distribution. The links of a node to three groups of others are three views of its memberships,
    whose third moment is factorized after compression. Memberships are averaged over random partitions of the nodes,
    and improved by collapsed variational steps with a Dirichlet prior (Teh, Newman & Welling 2007).

    Parameters
    ----------
    n_components : int, optional
        Number of communities. By default the number that the spectrum shows beyond random graphs, up to 40, such that
        no two communities have more links with each other than their degrees explain; see the notes.
    alpha_0 : float, optional
        How mixed memberships are: the total of their Dirichlet parameters; 0 if every node has one community. None to
        estimate it by the variances of memberships; moments then use 0.1.
    degree_corrected : bool
        Whether nodes may differ in their number of links for reasons other than their communities, as in real graphs.
        False is the model as it was published.
    method : Method or str, optional
        How the moment is factorized; by default by joint diagonalization alone. ``OJD`` and ``TPM`` symmetrize and
        whiten it, as published; others take it as it is.
    n_partitions : int
        Number of random partitions of the nodes to average over.
    max_iter : int
        Number of collapsed variational steps, given the number of links of every node. Few are better for real graphs,
        which do not follow the model exactly, so that many steps overfit. For graphs that follow the model, 20 steps
        give slightly better mixed memberships.
    random_state : int or numpy.random.Generator, optional
        Seed of the partitions.

    Attributes
    ----------
    memberships_ : array of shape (n, n_components)
        Rows on the simplex, largest community first. With degree correction, the shares of a node's links that it has
        as a member of each community.
    connectivity_ : array of shape (n_components, n_components)
        P of the model: the probability of a link between a node that belongs to one community alone and such a node of
        another; in a graph with weights, the expected weight. Between zero and the largest weight.
    alpha_0_ : float
        The total of the Dirichlet parameters of memberships, as given or estimated.
    labels_ : array of shape (n,)
        The strongest community of every node; -1 for nodes without links.
    nodes_ : array of shape (n,)
        The names of the nodes, in the order of the rows.
    n_components_ : int
        Number of communities.
    weighted_ : bool
        Whether links have weights other than one.
    diagnostics_ : Diagnostics
        Among others ``agreement``, the mean cosine of the communities of single partitions with their average.
        Partitions of small graphs agree less; below 0.8 there is a warning that other seeds may find other communities.
        ``standard_error`` is that of a membership, from the differences between partitions; None for one partition.

    See Also
    --------
    codiag.datasets.load_facebook : Published networks.
    codiag.metrics.overlapping_nmi : Compare communities with others.

    Notes
    -----
    **Assumptions.** An undirected graph without negative weights, with four nodes that have links for each of k
    communities.

    **Complexity.** For n nodes and m links, :math:`O(m k)` flops and memory for :math:`m + n k` numbers for each
    partition, and :math:`O(m k)` flops for each variational step.

    **Guarantees.** For a right model, memberships that converge to the truth as the graph grows.

    **Limitations.** Fails on graphs too sparse or too small to show the communities, with warnings, and if communities
    have no more links inside than with each other.

    Weights of networkx graphs and of adjacency matrices count as numbers of links.

    If `n_components` is None, the first number is that of negative eigenvalues of the Bethe Hessian
    :math:`(r^2 - 1) I - r A + D`, with the mean excess degree as :math:`r^2`: random graphs without communities, with
    any degrees, have one, and graphs have one more for each community that can be detected (Saade, Krzakala & Zdeborova
    2014; Le & Levina 2015). Real graphs also have structure inside of communities, which adds eigenvalues. Therefore
    two communities with more links between them than degrees explain, :math:`d_a d_b / 2m`, are counted as one, and the
    model is fitted again with fewer, until there are no such two, each is the strongest of some node, and most
    partitions show this number. Communities that are parts of larger ones are separated only if `n_components` says so.

    `codiag.models.jackknife_standard_errors` has errors of memberships, with groups of edges left out: given the
    memberships, links are independent. Connectivity and alpha_0 have no errors, since they are biased: they are
    computed from estimated memberships, which explain the links that they were estimated from too well. In simulated
    graphs of 400 nodes, with rates of 0.3 inside of communities and 0.05 between them, rates inside are 10 % too large
    for ``alpha_0=0.1``, and up to 60 % for ``alpha_0=1``; rates between are a third to several times too small.

    Nodes are sorted by name, so that the order in which links are given makes no difference. Partitions of the nodes
    are random: they depend on `random_state`, and on which names come first.

    Examples
    --------
    >>> from codiag.models import MixedMembershipSBM
    >>> from codiag.synthetic import mixed_membership_graph
    >>> graph = mixed_membership_graph(600, 3, alpha_0=0.1, inside=0.3, outside=0.02, rng=0)
    >>> model = MixedMembershipSBM(3, random_state=0).fit(graph.adjacency)
    >>> model.memberships_.shape
    (600, 3)
    """

    parameter_rules = Model.parameter_rules | {
        "n_components": optional(positive_integer),
        "alpha_0": optional(dirichlet_sum),
        "degree_corrected": as_flag,
        "n_partitions": positive_integer,
    }

    def __init__(
        self,
        n_components: int | None = None,
        *,
        alpha_0: float | None = None,
        degree_corrected: bool = True,
        method: Method | str | None = None,
        n_partitions: int = 20,
        max_iter: int = 5,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.n_components = n_components
        self.alpha_0 = alpha_0
        self.degree_corrected = degree_corrected
        self.method = method
        self.n_partitions = n_partitions
        self.max_iter = max_iter
        self.random_state = random_state

    def fit(self, X: Any, y: object = None, *, progress: bool | None = None) -> Self:  # noqa: N803
        """Find communities in a graph.

        Parameters
        ----------
        X : networkx graph, array or sparse matrix of shape (n, n), or data frame or array of shape (n_edges, 2 or 3)
            An undirected graph, its adjacency matrix, or its edges: the names of two nodes, and a weight if there are
            three columns. Loops are ignored; an edge that is listed twice counts once.
        y : ignored
            Not used; part of the interface of scikit-learn.
        progress : bool, optional
            Whether to show a bar on the standard error, or below the cell of a notebook, if it takes more than two
            seconds. By default, one appears after ten, and never where the standard error is no terminal.

        Returns
        -------
        self
            The fitted model.

        See Also
        --------
        MixedMembershipSBM.fit_predict : Fit and return the strongest communities.

        Examples
        --------
        >>> from codiag.models import MixedMembershipSBM
        >>> from codiag.synthetic import mixed_membership_graph
        >>> graph = mixed_membership_graph(90, 2, alpha_0=0.1, inside=0.4, outside=0.02, rng=0)
        >>> MixedMembershipSBM(2, random_state=0).fit(graph.adjacency).memberships_.shape
        (90, 2)
        """
        return self._fit_with_progress(progress, X)

    def _fit(self, data: Any) -> tuple[Warning, ...]:
        """Run `fit` without issuing warnings, and return these.

        Parameters
        ----------
        data : graph, as for `fit`
            The graph.

        Returns
        -------
        tuple of Warning
            The warnings of `fit`.

        Examples
        --------
        >>> from codiag.models import MixedMembershipSBM
        >>> from codiag.synthetic import mixed_membership_graph
        >>> graph = mixed_membership_graph(90, 2, alpha_0=0.1, inside=0.4, outside=0.02, rng=0)
        >>> MixedMembershipSBM(2, random_state=0)._fit(graph.adjacency)
        ()
        """
        self.check_parameters()
        network = as_network(data)
        n, linked = network.nodes.size, np.flatnonzero(network.degrees > 0)
        rng = as_seed(self.random_state)
        rng = int(np.random.default_rng().integers(2**31)) if rng is None else rng
        with few_threads(0):  # many small products
            communities = self._find(network.subgraph(linked), rng)
        k = communities.memberships.shape[1]
        self.memberships_ = np.full((n, k), 1 / k)
        self.memberships_[linked] = communities.memberships
        self.labels_ = np.full(n, -1)
        self.labels_[linked] = communities.labels
        self.connectivity_, self.alpha_0_ = self._parameters(communities)
        self.nodes_, self.n_components_ = network.nodes, k
        self.weighted_ = bool(np.any(network.adjacency.data != 1))
        self.diagnostics_ = communities.diagnostics(n_isolated=n - linked.size)
        return communities.warnings()

    def fit_predict(self, X: Any, y: object = None) -> np.ndarray:  # noqa: N803
        """Return the strongest community of every node.

        Parameters
        ----------
        X : graph, as for `fit`
            The graph.
        y : ignored
            Not used; part of the interface of scikit-learn.

        Returns
        -------
        array of int, shape (n,)
            -1 for nodes without links.

        See Also
        --------
        MixedMembershipSBM.overlapping_labels : All communities of every node.

        Examples
        --------
        >>> from codiag.models import MixedMembershipSBM
        >>> from codiag.synthetic import mixed_membership_graph
        >>> graph = mixed_membership_graph(90, 2, alpha_0=0.1, inside=0.4, outside=0.02, rng=0)
        >>> MixedMembershipSBM(2, random_state=0).fit_predict(graph.adjacency).shape
        (90,)
        """
        warn_caller(self._fit(X))
        return self.labels_

    def overlapping_labels(self, threshold: float = 0.3) -> np.ndarray:
        """Return which nodes belong to which communities, by a threshold for memberships.

        Parameters
        ----------
        threshold : float
            The least membership, between 0 and 1.

        Returns
        -------
        array of bool, shape (n, n_components)
            True where a node belongs to a community.

        See Also
        --------
        MixedMembershipSBM.fit_predict : The strongest community alone.
        codiag.metrics.overlapping_nmi : Compares such labels.

        Examples
        --------
        >>> from codiag.models import MixedMembershipSBM
        >>> from codiag.synthetic import mixed_membership_graph
        >>> graph = mixed_membership_graph(90, 2, alpha_0=0.1, inside=0.4, outside=0.02, rng=0)
        >>> model = MixedMembershipSBM(2, random_state=0).fit(graph.adjacency)
        >>> model.overlapping_labels(0.3).shape
        (90, 2)
        """
        check_is_fitted(self)
        as_number("threshold", threshold)
        if threshold > 1:
            raise ValueError(f"threshold must lie between 0 and 1; got {threshold}")
        return self.memberships_ >= threshold

    def membership_table(self) -> dict[str, np.ndarray]:
        """Return the nodes as columns to write to a file.

        Returns
        -------
        dict of arrays of shape (n,)
            Node, its strongest community, and all memberships.

        Examples
        --------
        >>> from codiag.models import MixedMembershipSBM
        >>> from codiag.synthetic import mixed_membership_graph
        >>> graph = mixed_membership_graph(90, 2, alpha_0=0.1, inside=0.4, outside=0.02, rng=0)
        >>> model = MixedMembershipSBM(2, random_state=0).fit(graph.adjacency)
        >>> list(model.membership_table())
        ['node', 'community', 'p0', 'p1']
        """
        check_is_fitted(self)
        columns = {"node": self.nodes_, "community": self.labels_}
        return columns | {f"p{place}": column for place, column in enumerate(self.memberships_.T)}

    def _estimates(self) -> dict[str, Any]:
        """Return the memberships; those of nodes without links are not known."""
        return {"memberships_": np.where(self.labels_[:, None] < 0, np.nan, self.memberships_)}

    def _leave_groups_out(self, data: Any, n_groups: int) -> Iterator[tuple[int, Network]]:
        """Yield for every group of edges their number, and the graph without them."""
        network = as_network(data)
        edges = sparse.coo_array(sparse.triu(network.adjacency))
        groups = random_groups(edges.nnz, n_groups)
        for group in range(n_groups):
            kept = groups != group
            places = edges.row[kept], edges.col[kept]
            above = sparse.csr_array((edges.data[kept], places), shape=edges.shape)
            yield int(np.sum(~kept)), Network(sparse.csr_array(above + above.T), network.nodes)

    def _refit(self, data: Network) -> Self:
        """Return the memberships of a graph of the same nodes, with communities in the order of this model."""
        rng = self.random_state if isinstance(self.random_state, int) else 0  # the same partitions for all graphs
        model: Self = clone(self).set_params(n_components=self.n_components_, random_state=rng)
        model._fit(data)
        model.memberships_ = model.memberships_[:, linear_sum_assignment(-self.memberships_.T @ model.memberships_)[1]]
        return model

    def _find(self, network: Network, rng: int) -> Communities:
        """Return communities; if their number is not given, the largest number of which none is superfluous."""
        k = self._n_communities(network)
        if self.n_components is not None:
            return self._with_number(network, k, rng)
        while True:
            try:
                communities = self._with_number(network, k, rng)
            except RankDeficientError:  # no partition shows this number
                if k == 1:
                    raise
                k -= 1
                continue
            if communities.is_shown:
                return communities
            k -= max(communities.n_superfluous, 1)

    def _n_communities(self, network: Network) -> int:
        n = network.adjacency.shape[0]
        if self.n_components is None:
            return count_communities(network)
        if n < 8:
            raise ValueError(f"the graph must have at least 8 nodes with links, to be divided by four; it has {n}")
        if 4 * self.n_components > n:
            raise ValueError(
                f"n_components must be at most {n // 4}, a quarter of the nodes with links; got {self.n_components}"
            )
        return self.n_components

    def _with_number(self, network: Network, k: int, rng: int) -> Communities:
        """Return k communities, the largest first."""
        method = None if self.method is None else as_method(self.method)
        stars = scaled_stars(network, self.degree_corrected)
        average = average_over_partitions(stars, k, self.alpha_0, method, rng, self.n_partitions)
        start = average.memberships
        if not self.degree_corrected:  # shares of links follow from memberships and the rates of communities
            start = on_simplex_rows(start * (connectivity(network, start) @ start.sum(axis=0)))
        fitted = variational_steps(network, start, self.max_iter, self.alpha_0)
        memberships = average.memberships
        if self.max_iter:
            memberships = fitted.memberships if self.degree_corrected else fitted.without_rates()
        order = np.argsort(-memberships.sum(axis=0), kind="stable")
        return Communities(network, memberships[:, order], average, fitted.ordered(order))

    def _parameters(self, communities: Communities) -> tuple[np.ndarray, float]:
        """Return connectivity and alpha_0, with the estimated memberships in place of the true ones."""
        fitted = communities.fitted
        pure = fitted.without_rates()
        sizes = fitted.counts.sum(axis=1) + fitted.prior.sum()
        total = dirichlet_total(fitted.memberships if self.degree_corrected else pure, sizes)
        return connectivity(communities.network, pure), total if self.alpha_0 is None else float(self.alpha_0)
