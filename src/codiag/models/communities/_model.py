"""Communities that overlap, from a graph alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from codiag._arrays import few_threads
from codiag._checks import UndeterminedError, as_flag, as_number
from codiag.methods import Method, as_method
from codiag.models.communities._bias import (
    N_ROUNDS,
    TOLERANCE,
    Corrected,
    Parameters,
    plain_parameters,
    unbiased_parameters,
)
from codiag.models.communities._connectivity import connectivity
from codiag.models.communities._count import count_communities
from codiag.models.communities._found import FoundCommunities
from codiag.models.communities._jackknife import Estimate, check_node_blocks, communities_jackknife
from codiag.models.communities._network import Network, as_network
from codiag.models.communities._stars import FEWEST, PRECISE, Average, average_over_partitions
from codiag.models.communities._steps import START, Polished, polish_memberships
from codiag.models.crowd import canonical_order
from codiag.models.frame import Model, as_seed, check_n_jackknife, on_simplex_rows, warn_caller


class MixedMembershipCommunities(Model):
    r"""Communities whose members may belong to several, by moments of 3-stars.

    In the mixed-membership model nodes x and y are linked with probability :math:`p_x^\top P p_y`, memberships p being
    Dirichlet. The links of a node to three groups of others are three views of its memberships, whose third moment is
    factorized after compression; memberships are averaged over random partitions of the nodes, then polished by
    collapsed variational steps with a Dirichlet prior (Teh, Newman & Welling 2007).

    *Needs* an undirected graph without signs, with four nodes that have links for each of k communities. *Costs*, for
    n nodes and m links, :math:`O(m k)` flops and numbers in memory of order :math:`m + n k` for each of 10 to 160
    partitions, and :math:`O(m k)` a variational round. *Guarantees*, where the model holds,
    memberships that converge to the truth as the graph grows, with no local optimum in the way, whatever nodes are
    called. *Fails* on graphs too sparse or too small to show the communities, of which warnings tell, and where
    communities are no better linked inside than with each other.

    Parameters
    ----------
    n_components : int, optional
        Number of communities. By default those that the spectrum shows beyond what random graphs explain, up to 40,
        and of which no two have more links with each other than their degrees explain; see the notes.
    alpha_0 : float, optional
        How mixed memberships are: the total of their Dirichlet parameters; 0 where every node has one community. None
        to estimate it by the variances of memberships; moments then begin with 0.1.
    degree_corrected : bool
        Whether nodes may differ in their number of links for reasons other than their communities, as real ones do.
        False is the model as it was published.
    method : Method or str, optional
        How the moment is factorized; by default by joint diagonalization alone. ``OJD`` and ``TPM`` symmetrize and
        whiten it, as published; others take it as it is.
    n_partitions : int, optional
        Random partitions of the nodes to average over; by default 10, doubled until their mean has a standard error
        of 0.05, or up to 160.
    max_iter : int
        Rounds of collapsed variational steps, given the number of links of every node. Few are better: real graphs
        follow no such model exactly, and many rounds fit what is particular to them. Of graphs that do follow it, 20
        rounds find mixed memberships a little better.
    n_jackknife : int
        Blocks of nodes that are left out in turn for standard errors (jackknife), at least 3, better 20; zero for
        none. Communities are found as many times more, each time from nodes that can be parted in four: at least 8,
        and four for each community.
    random_state : int or numpy.random.Generator, optional
        Seed of the partitions.

    Attributes
    ----------
    memberships_ : array of shape (n, n_components)
        Rows on the simplex, largest community first. With degree correction, the shares of a node's links that it made
        on behalf of each.
    connectivity_ : array of shape (n_components, n_components)
        P of the model: the share of pairs that are linked, of nodes that belong to one community alone with such nodes
        of another; in a graph with weights, their mean weight. Between zero and the largest weight. See the notes.
    alpha_0_ : float
        The total of the Dirichlet parameters of memberships, as given or estimated.
    memberships_standard_errors_, connectivity_standard_errors_, alpha_0_standard_error_ : as the parameters
        Where `n_jackknife` asks for them; NaN for the memberships of nodes without links, and for entries held at 0
        or 1 with and without each block; zero for alpha_0 as given. Those of memberships are at most 0.5, the largest
        standard deviation of a share.
    labels_ : array of shape (n,)
        The strongest community of every node; -1 for nodes without links.
    partition_ : array of shape (n,)
        Communities that do not overlap, `n_components_` of them or fewer, largest first: those of `labels_`, after
        nodes moved to other communities, and communities merged, as long as that raises modularity; -1 for nodes
        without links.
    nodes_ : array of shape (n,)
        What the rows stand for.
    n_components_ : int
        Number of communities.
    weighted_ : bool
        Whether links have weights other than one.
    diagnostics_ : Diagnostics
        Among others ``agreement``, the mean cosine of the communities of single partitions with their average.
        Partitions of small graphs agree less: below 0.8 a warning says that other seeds may find other communities.
        ``standard_error`` is that of a membership, from the differences between partitions; None where there was one.

    See Also
    --------
    codiag.io.read_graph : Read a graph from a file.
    codiag.datasets.load_facebook : Published networks.
    codiag.reports.communities_report : A page about communities.
    codiag.metrics.overlapping_nmi : Compare communities with others.

    Notes
    -----
    Weights of networkx graphs and of adjacency matrices count as numbers of links.

    Where `n_components` is open it is at first the number of negative eigenvalues of the Bethe Hessian
    :math:`(r^2 - 1) I - r A + D`, :math:`r^2` being the mean excess degree: random graphs without communities, with
    whatever degrees, have one, and graphs have one more for each community that can be detected (Saade, Krzakala &
    Zdeborova 2014; Le & Levina 2015). Real graphs have structure inside of communities, too, which counts there. So
    two communities with more links between them than degrees explain, :math:`d_a d_b / 2m`, are counted as one, and
    the model is fitted again with fewer, until there are no such two, each is the strongest of some node, and most
    partitions show as many. Communities that are parts of larger ones are therefore not told apart unless asked for.

    What is computed from memberships that are estimated is biased: they vary more, or less, than the true ones do, and
    explain the links from which they were estimated too well. Where `max_iter` is not zero, `connectivity_` and
    `alpha_0_` are therefore found after 40 rounds; for `connectivity_` a pair of nodes is explained by memberships that
    do not know the links of either with the block of the other, of four blocks of nodes (cross-fitting). Both are
    corrected by the mean bias of the same estimate on four graphs simulated from the fitted model (parametric
    bootstrap), of at most 5000 nodes. This takes longer than all else, and is done when one of them is first asked for,
    or standard errors are, in which the error of the correction counts.

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

    _as_fitted: tuple[MixedMembershipCommunities, FoundCommunities, int]
    _parameters: Parameters | None
    optional: ClassVar[frozenset[str]] = frozenset({"n_components", "alpha_0", "n_partitions"})

    former_parameters: ClassVar[Mapping[str, str]] = {"polish": "max_iter", "n_blocks": "n_jackknife"}

    def __init__(
        self,
        n_components: int | None = None,
        *,
        alpha_0: float | None = None,
        degree_corrected: bool = True,
        method: Method | str | None = None,
        n_partitions: int | None = None,
        max_iter: int = 5,
        n_jackknife: int = 0,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.n_components = n_components
        self.alpha_0 = alpha_0
        self.degree_corrected = degree_corrected
        self.method = method
        self.n_partitions = n_partitions
        self.max_iter = max_iter
        self.n_jackknife = n_jackknife
        self.random_state = random_state

    def fit(self, X: Any, y: object = None) -> Self:  # noqa: N803
        """Find communities in a graph.

        Parameters
        ----------
        X : networkx graph, array or sparse matrix of shape (n, n), or pairs of shape (n_edges, 2)
            An undirected graph, its adjacency matrix, or its edges as pairs of names. Loops are left out; an edge that
            is listed twice counts once.
        y : ignored
            Not used; there for the interface of scikit-learn.

        Returns
        -------
        self
            The fitted model.

        See Also
        --------
        MixedMembershipCommunities.fit_predict : Fit and return the strongest communities.

        Examples
        --------
        >>> from codiag.models import MixedMembershipCommunities
        >>> from codiag.synthetic import mixed_membership_graph
        >>> graph = mixed_membership_graph(90, 2, alpha_0=0.1, inside=0.4, outside=0.02, seed=0)
        >>> MixedMembershipCommunities(2, random_state=0).fit(graph.adjacency).memberships_.shape
        (90, 2)
        """
        warn_caller(self.learn(X))
        return self

    def learn(self, data: Any) -> tuple[Warning, ...]:
        """Do the work of `fit`, silently, and return what is to be warned of.

        Parameters
        ----------
        data : graph, as for `fit`
            The graph.

        Returns
        -------
        tuple of Warning
            What `fit` warns of.

        Examples
        --------
        >>> from codiag.models import MixedMembershipCommunities
        >>> from codiag.synthetic import mixed_membership_graph
        >>> graph = mixed_membership_graph(90, 2, alpha_0=0.1, inside=0.4, outside=0.02, seed=0)
        >>> MixedMembershipCommunities(2, random_state=0).learn(graph.adjacency)
        ()
        """
        self.check_parameters()
        network = as_network(data)
        linked = np.flatnonzero(network.degrees > 0)
        inside = network.subgraph(linked)
        order = canonical_order(inside.adjacency)
        seed = as_seed(self.random_state)
        seed = int(np.random.default_rng().integers(2**31)) if seed is None else seed
        with few_threads(0):  # many small products
            found = self._find(inside.subgraph(order), seed)
            self._parameters = self._keep_errors(found, seed, linked[order], network.nodes.size)
        k = found.memberships.shape[1]
        self.memberships_ = np.full((network.nodes.size, k), 1 / k)
        self.memberships_[linked[order]] = found.memberships
        self._as_fitted = clone(self), found, seed
        self.labels_ = np.full(network.nodes.size, -1)
        self.labels_[linked] = np.argmax(self.memberships_[linked], axis=1)
        self.partition_ = np.full(network.nodes.size, -1)
        self.partition_[linked[order]] = found.partition
        self.nodes_, self.n_components_ = network.nodes, k
        self.weighted_ = bool(np.any(network.adjacency.data != 1))
        self.diagnostics_ = found.diagnostics(n_isolated=network.nodes.size - linked.size)
        return tuple(UserWarning(complaint) for complaint in found.complaints())

    @property
    def connectivity_(self) -> np.ndarray:
        """P of the model, found when it is first asked for.

        Returns
        -------
        array of shape (n_components, n_components)
            How often nodes of one community alone are linked with such nodes of another.

        Examples
        --------
        >>> from codiag.models import MixedMembershipCommunities
        >>> from codiag.synthetic import mixed_membership_graph
        >>> graph = mixed_membership_graph(200, 2, alpha_0=0.1, inside=0.4, outside=0.02, seed=0)
        >>> model = MixedMembershipCommunities(2, random_state=0).fit(graph.adjacency)
        >>> model.connectivity_.round(1)
        array([[0.4, 0. ],
               [0. , 0.4]])
        """
        return self._lasting().connectivity

    @property
    def alpha_0_(self) -> float:
        """How mixed memberships are, found when it is first asked for, or as given.

        Returns
        -------
        float
            The total of the parameters of the Dirichlet distribution of memberships.

        Examples
        --------
        >>> from codiag.models import MixedMembershipCommunities
        >>> from codiag.synthetic import mixed_membership_graph
        >>> graph = mixed_membership_graph(200, 2, alpha_0=0.1, inside=0.4, outside=0.02, seed=0)
        >>> model = MixedMembershipCommunities(2, random_state=0).fit(graph.adjacency)
        >>> bool(model.alpha_0_ < 0.5)
        True
        """
        check_is_fitted(self)
        given = self._as_fitted[0].alpha_0
        return self._lasting().alpha_0 if given is None else float(given)

    def fit_predict(self, X: Any, y: object = None) -> np.ndarray:  # noqa: N803
        """Return the strongest community of every node.

        Parameters
        ----------
        X : graph, as for `fit`
            The graph.
        y : ignored
            Not used; there for the interface of scikit-learn.

        Returns
        -------
        array of int, shape (n,)
            -1 for nodes without links.

        See Also
        --------
        MixedMembershipCommunities.overlapping_labels : All communities of every node.

        Examples
        --------
        >>> from codiag.models import MixedMembershipCommunities
        >>> from codiag.synthetic import mixed_membership_graph
        >>> graph = mixed_membership_graph(90, 2, alpha_0=0.1, inside=0.4, outside=0.02, seed=0)
        >>> MixedMembershipCommunities(2, random_state=0).fit_predict(graph.adjacency).shape
        (90,)
        """
        warn_caller(self.learn(X))
        return self.labels_

    def overlapping_labels(self, threshold: float = 0.3) -> np.ndarray:
        """Return which nodes belong to which communities: those in which their membership is large enough.

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
        MixedMembershipCommunities.fit_predict : The strongest community alone.
        codiag.metrics.overlapping_nmi : Compares such labels.

        Examples
        --------
        >>> from codiag.models import MixedMembershipCommunities
        >>> from codiag.synthetic import mixed_membership_graph
        >>> graph = mixed_membership_graph(90, 2, alpha_0=0.1, inside=0.4, outside=0.02, seed=0)
        >>> model = MixedMembershipCommunities(2, random_state=0).fit(graph.adjacency)
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

        See Also
        --------
        codiag.io.write_table : Write it to a file.

        Examples
        --------
        >>> from codiag.models import MixedMembershipCommunities
        >>> from codiag.synthetic import mixed_membership_graph
        >>> graph = mixed_membership_graph(90, 2, alpha_0=0.1, inside=0.4, outside=0.02, seed=0)
        >>> model = MixedMembershipCommunities(2, random_state=0).fit(graph.adjacency)
        >>> list(model.membership_table())
        ['node', 'community', 'p0', 'p1']
        """
        check_is_fitted(self)
        columns = {"node": self.nodes_, "community": self.labels_}
        return columns | {f"p{place}": column for place, column in enumerate(self.memberships_.T)}

    def to_cdlib(self, graph: Any, threshold: float = 0.3) -> Any:
        """Return the overlapping communities as an object of cdlib.

        Parameters
        ----------
        graph : networkx graph
            That of `fit`, which cdlib keeps.
        threshold : float
            See `overlapping_labels`.

        Returns
        -------
        cdlib.NodeClustering
            The communities, with all methods and scores of cdlib.

        See Also
        --------
        MixedMembershipCommunities.overlapping_labels : The same as an array.

        Examples
        --------
        >>> import networkx as nx
        >>> from codiag.models import MixedMembershipCommunities
        >>> from codiag.synthetic import mixed_membership_graph
        >>> graph = mixed_membership_graph(90, 2, alpha_0=0.1, inside=0.4, outside=0.02, seed=0)
        >>> network = nx.from_scipy_sparse_array(graph.adjacency)
        >>> model = MixedMembershipCommunities(2, random_state=0).fit(network)
        >>> len(model.to_cdlib(network).communities)
        2
        """
        from cdlib import NodeClustering

        belongs = self.overlapping_labels(threshold)
        communities = [self.nodes_[column].tolist() for column in belongs.T if column.any()]
        options = {key: value for key, value in self.get_params().items() if value is not None}
        return NodeClustering(communities, graph, "codiag", method_parameters=options, overlap=True)

    def check_parameters(self) -> None:
        """Raise unless parameters are what they must be.

        Examples
        --------
        >>> from codiag.models import MixedMembershipCommunities
        >>> MixedMembershipCommunities().check_parameters()
        >>> MixedMembershipCommunities(n_components=0).check_parameters()  # refused
        Traceback (most recent call last):
            ...
        ValueError: n_components must be positive; got 0
        """
        super().check_parameters()
        check_n_jackknife(
            self.n_jackknife, 3, "as errors of a node's memberships come from the blocks that it is not in"
        )
        as_flag("degree_corrected", self.degree_corrected)

    def _find(self, network: Network, seed: int) -> FoundCommunities:
        """Return communities; where their number is open, so few that all are shown, and no two are one."""
        k = self._n_communities(network)
        if self.n_components is not None:
            return self._with_number(network, k, seed, self.n_partitions)
        few = self.n_partitions or FEWEST  # enough to tell that a number is too large
        while True:
            try:
                found = self._with_number(network, k, seed, few)
                if found.is_shown and self.n_partitions is None and found.average.standard_error >= PRECISE:
                    found = self._with_number(network, k, seed, None)
            except UndeterminedError:  # no partition shows as many
                if k == 1:
                    raise
                k -= 1
                continue
            if found.is_shown:
                return found
            k -= max(found.n_superfluous, 1)

    def _keep_errors(self, found: FoundCommunities, seed: int, places: np.ndarray, n: int) -> Parameters | None:
        """Set standard errors where they are asked for, of nodes at these places of n, and leave none of before.

        Return connectivity and alpha_0 where they had to be found for that.
        """
        for name in ("memberships_standard_errors_", "connectivity_standard_errors_", "alpha_0_standard_error_"):
            if hasattr(self, name):  # of an earlier fit
                delattr(self, name)
        if not self.n_jackknife:
            return None
        k = found.memberships.shape[1]
        check_node_blocks(self.n_jackknife, places.size, k)

        def estimate(kept: np.ndarray) -> Estimate:
            part = found.network.subgraph(np.flatnonzero(kept))
            again = self._with_number(part, k, seed, found.average.n_drawn, kept)
            return self._as_estimate(again, np.flatnonzero(kept))

        whole = self._as_estimate(found, np.arange(places.size))
        errors = communities_jackknife(whole, estimate, self.n_jackknife)
        corrected = self._unbiased(found, seed)
        of_all = corrected.with_errors_of(Parameters(errors.connectivity, errors.alpha_0))
        self.memberships_standard_errors_ = np.full((n, k), np.nan)
        self.memberships_standard_errors_[places] = errors.memberships
        self.connectivity_standard_errors_ = of_all.connectivity
        self.alpha_0_standard_error_ = of_all.alpha_0 if self.alpha_0 is None else 0.0
        return corrected.parameters

    def _as_estimate(self, found: FoundCommunities, places: np.ndarray) -> Estimate:
        """Return all parameters with the bias that the reported ones are freed of, whose errors count separately."""
        lasted = self._lasted(found.network, found.average)
        return Estimate(found.memberships, *plain_parameters(found.network, lasted, self.degree_corrected, places))

    def _with_number(
        self, network: Network, k: int, seed: int, n_partitions: int | None, kept: np.ndarray | None = None
    ) -> FoundCommunities:
        """Return k communities, of all nodes or of those `kept`, which are then parted as often as all were."""
        average = self._average(network, k, seed, n_partitions, kept)
        polished = self._polished(network, average.memberships, self.max_iter)
        memberships = polished.memberships if self.max_iter else average.memberships
        if self.max_iter and not self.degree_corrected:
            memberships = polished.without_rates()
        order = np.argsort(-memberships.sum(axis=0), kind="stable")  # all else follows from them
        average = average._replace(memberships=average.memberships[:, order])
        return FoundCommunities(network, memberships[:, order], average, polished.history)

    def _average(
        self, network: Network, k: int, seed: int, n_partitions: int | None, kept: np.ndarray | None = None
    ) -> Average:
        return average_over_partitions(
            network,
            k,
            seed,
            alpha_0=START if self.alpha_0 is None else self.alpha_0,
            degree_corrected=self.degree_corrected,
            method=None if self.method is None else as_method(self.method),
            n_partitions=n_partitions,
            kept=kept,
        )

    def _polished(self, network: Network, memberships: np.ndarray, n_rounds: int, tol: float = 0.0) -> Polished:
        if not self.degree_corrected:  # where nodes are alike, links are made at the rates of communities
            memberships = on_simplex_rows(memberships * (connectivity(network, memberships) @ memberships.sum(axis=0)))
        return polish_memberships(network, memberships, n_rounds, self.alpha_0, tol)

    def _lasting(self) -> Parameters:
        """Return connectivity and alpha_0, and keep them."""
        check_is_fitted(self)
        if self._parameters is None:
            model, found, seed = self._as_fitted
            with few_threads(0):
                self._parameters = model._unbiased(found, seed).parameters
        return self._parameters

    def _unbiased(self, found: FoundCommunities, seed: int) -> Corrected:
        """Return connectivity and alpha_0, which take more rounds than memberships, and have a bias of their own."""
        k, n_partitions = found.memberships.shape[1], min(found.average.n_drawn, FEWEST)

        def refit(drawn: Network) -> Polished:
            return self._lasted(drawn, self._average(drawn, k, seed, n_partitions))

        fitted = self._lasted(found.network, found.average)
        return unbiased_parameters(
            found.network,
            fitted,
            refit,
            degree_corrected=self.degree_corrected,
            alpha_0=self.alpha_0,
            seed=seed,
        )

    def _lasted(self, network: Network, average: Average) -> Polished:
        """Return what more rounds make of communities, from which connectivity and alpha_0 are read off."""
        return self._polished(network, average.memberships, N_ROUNDS if self.max_iter else 0, TOLERANCE)

    def _n_communities(self, network: Network) -> int:
        n = network.adjacency.shape[0]
        if self.n_components is None:
            return count_communities(network)
        if n < 8:
            raise ValueError(f"the graph must have at least 8 nodes with links, to be parted in four; it has {n}")
        if 4 * self.n_components > n:
            raise ValueError(
                f"n_components must be at most {n // 4}, a quarter of the nodes with links; got {self.n_components}"
            )
        return self.n_components
