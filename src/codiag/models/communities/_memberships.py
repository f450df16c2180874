r"""Memberships of nodes in communities: moments of 3-stars over partitions of the nodes, then variational steps.

A partition splits the nodes into X, A, B and C. Given the memberships of x in X, its links to A, to B and to C are
independent, three views with :math:`E[G_{xA} | p_x] = F_A p_x`. Each view is compressed to its leading directions; no
array is larger than nodes x communities. Memberships are averaged over random partitions.

The steps are collapsed variational inference, with the degrees of the nodes as observed. Every link is of a kind
(a, b), the communities that its two ends act for. Given its degree, a node acts for communities with shares that have a
Dirichlet distribution, and ends that act for a and for b are joined at random. Shares are integrated out, to second
order in the uncertainty of counts (Teh, Newman & Welling 2007). The contribution of a link to its own probability is
left out, in the mean over the links of a node. Maximum likelihood, which has no prior, overfits nodes with few links.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import minimize

from codiag._checks import RankDeficientError
from codiag.methods import Method
from codiag.models.base import ViewMoments, common_order, leading_range, on_simplex_rows, products_at, start_from_views
from codiag.models.communities._network import Network

INITIAL_ALPHA = 0.1
"""Total of the Dirichlet parameters for moments and for the first step, if it is not given."""
UNIFORM_SHARE = 1e-3
"""Weight of the uniform distribution mixed into the initial memberships, so that none is exactly zero."""
LEAST_ALPHA, LARGEST_ALPHA = 1e-3, 1e3
"""Bounds of the total of the Dirichlet parameters."""


class Stars(NamedTuple):
    """Links (n, n) divided by scales of the rows (n,) and of the columns, and the scales of the rows."""

    links: sparse.csr_array
    rows: np.ndarray


def scaled_stars(network: Network, degree_corrected: bool) -> Stars:
    r"""Return links with rows and columns divided by scales, so that all have similar noise.

    Columns are divided by roots of degrees, as variances are proportional to means. If nodes differ in their degrees
    for reasons other than communities, rows are divided by degrees, which leaves shares of links. The mean degree is
    added to all degrees, since a node with few links carries little information.
    """
    degrees = network.degrees
    regular = degrees + degrees.mean()
    rows = regular if degree_corrected else np.full(degrees.size, degrees.mean())
    left, right = (
        sparse.dia_array((1 / scale[None], [0]), shape=network.adjacency.shape) for scale in (rows, np.sqrt(regular))
    )
    return Stars(sparse.csr_array(left @ network.adjacency @ right), rows)


def estimate_memberships(
    stars: Stars, k: int, alpha_0: float, method: Method | None, rng: np.random.SeedSequence
) -> np.ndarray:
    """Return memberships (n, k), rows on the simplex, from one random partition of the nodes."""
    n = stars.rows.size
    centers, *leaves = np.array_split(np.random.default_rng(rng).permutation(n), 4)
    if min(part.size for part in (centers, *leaves)) < k:
        raise RankDeficientError(f"a part of the nodes must have at least {k} of them, one for each community")
    weights = stars.rows[centers] / stars.rows[centers].sum()
    links = [stars.links[centers][:, leaf] for leaf in leaves]
    bases = [_basis(links, view, weights, k) for view in range(3)]
    views = [link @ basis for link, basis in zip(links, bases, strict=True)]
    moments = ViewMoments(views, weights, alpha_0)
    _, means = start_from_views(moments, k, method, 0, max_sweeps=10)
    memberships = np.empty((n, k))
    for nodes, others in ((centers, (0, 1, 2)), (leaves[0], (1, 2)), (leaves[1], (0, 2)), (leaves[2], (0, 1))):
        compressed = np.hstack([stars.links[nodes][:, leaves[leaf]] @ bases[leaf] for leaf in others])
        memberships[nodes] = compressed @ np.linalg.pinv(np.hstack([means[leaf] for leaf in others]))
    if not np.all(np.isfinite(memberships)):
        raise RankDeficientError(f"links between the parts do not show {k} communities")
    return on_simplex_rows(memberships)


def _basis(views: list[Any], place: int, weights: np.ndarray, k: int) -> np.ndarray:
    """Return the k directions (d, k) of a view most correlated with the other views, whose noise is independent."""
    view, others = views[place], [other for index, other in enumerate(views) if index != place]

    def multiply(vectors: np.ndarray) -> np.ndarray:
        products = (weights * (view @ vectors).T).T
        total = sum((weights * (other @ (other.T @ products)).T).T for other in others)
        return view.T @ total

    return leading_range(multiply, view.shape[1], k, random_state=0)


class Average(NamedTuple):
    """Mean of memberships over partitions.

    Attributes
    ----------
    memberships : array of shape (n, k)
        The mean over the partitions that show k communities.
    agreement : float
        Mean cosine of communities with their average; one if all partitions are equal.
    standard_error : float
        Root mean square standard error of a membership, from the differences between partitions.
    n_used, n_drawn : int
        Number of partitions that show k communities, and of all partitions.
    """

    memberships: np.ndarray
    agreement: float
    standard_error: float
    n_used: int
    n_drawn: int

    @property
    def mostly_failed(self) -> bool:
        """Whether most partitions do not show k communities."""
        return self.n_drawn > 2 * self.n_used


def average_over_partitions(
    stars: Stars, k: int, alpha_0: float | None, method: Method | None, rng: int, n_partitions: int
) -> Average:
    """Return memberships averaged over random partitions of the nodes."""
    if k == 1:
        return Average(np.ones((stars.rows.size, 1)), 1.0, 0.0, 1, 1)
    estimates: list[np.ndarray] = []
    reason = ""
    for partition_seed in np.random.SeedSequence(rng).spawn(n_partitions):
        try:
            total = INITIAL_ALPHA if alpha_0 is None else alpha_0
            estimates.append(estimate_memberships(stars, k, total, method, partition_seed))
        except (RankDeficientError, np.linalg.LinAlgError) as error:  # this partition shows fewer communities
            reason = str(error)
    if not estimates:
        raise RankDeficientError(
            f"n_components={k} is more than the graph shows, in any partition of its nodes: {reason}"
        )
    return _averaged(estimates, n_partitions)


def _averaged(estimates: list[np.ndarray], n_drawn: int) -> Average:
    """Return the mean of memberships whose communities are in any order."""
    units = [_unit(estimate) for estimate in estimates]
    orders = common_order(units)
    aligned = [estimate[:, order] for estimate, order in zip(estimates, orders, strict=True)]
    mean = np.mean(aligned, axis=0)
    cosines = [np.sum(unit[:, order] * _unit(mean), axis=0) for unit, order in zip(units, orders, strict=True)]
    variance = np.mean([np.mean((estimate - mean) ** 2) for estimate in aligned])
    error = float(np.sqrt(variance / max(len(estimates) - 1, 1)))
    return Average(mean, min(float(np.mean(cosines)), 1.0), error, len(estimates), n_drawn)


def _unit(columns: np.ndarray) -> np.ndarray:
    return columns / np.maximum(np.linalg.norm(columns, axis=0), 1e-300)


class LinkCounts(NamedTuple):
    """Result of variational steps.

    Attributes
    ----------
    counts : array of shape (n, k)
        Expected number of links by node and community.
    prior : array of shape (k,)
        Dirichlet parameters.
    links : array of shape (k, k)
        Expected number of ends of links between communities.
    history : list of float
        Log-likelihoods, up to a constant.
    """

    counts: np.ndarray
    prior: np.ndarray
    links: np.ndarray
    history: list[float]

    @property
    def memberships(self) -> np.ndarray:
        """Expected shares of every node's links (n, k)."""
        return on_simplex_rows(self.counts + self.prior)

    def without_rates(self) -> np.ndarray:
        """Return expected memberships (n, k) if the degrees of nodes depend on their communities alone.

        A community whose members have twice as many links has twice the share of them. The rates are those of links
        alone: with the prior, which is the same for all nodes, communities with few links would become too large.
        """
        rates = np.ones(self.links.shape[0])
        for _ in range(50):
            memberships = on_simplex_rows(self.counts / np.maximum(rates, 1e-300))
            rates = self.links.sum(axis=1) / np.maximum(memberships.sum(axis=0), 1e-300)
        sizes = self.counts.sum(axis=1, keepdims=True)
        return on_simplex_rows(sizes * on_simplex_rows(self.counts / np.maximum(rates, 1e-300)) + self.prior)

    def ordered(self, order: np.ndarray) -> LinkCounts:
        """Return the same with communities in another order."""
        return LinkCounts(self.counts[:, order], self.prior[order], self.links[np.ix_(order, order)], self.history)


def variational_steps(network: Network, memberships: np.ndarray, max_iter: int, alpha_0: float | None) -> LinkCounts:
    """Improve memberships by steps; if alpha_0 is None, the total of the prior is estimated in every step."""
    above = sparse.csr_array(sparse.triu(network.adjacency / network.unit, 1))
    rows = np.repeat(np.arange(above.shape[0]), np.diff(above.indptr))
    degrees = network.degrees / network.unit
    if max_iter:
        memberships = (1 - UNIFORM_SHARE) * memberships + UNIFORM_SHARE / memberships.shape[1]
    counts = memberships * degrees[:, None]
    prior = _prior(memberships.shape[1], INITIAL_ALPHA if alpha_0 is None else alpha_0)
    links = _symmetric_sum(memberships.T @ (above @ memberships)) + 1e-9
    link_shares, history = np.zeros_like(counts), []
    for _ in range(max_iter):
        shares = on_simplex_rows(_expected_counts(counts, prior, link_shares))
        totals = links.sum(axis=0)
        rates = links / np.outer(totals, totals)
        others = shares @ rates
        means = np.maximum(products_at(shares, others, rows, above.indices), 1e-300)
        history.append(float(above.data @ np.log(means)))
        ratios = _with_data(above, above.data / means)
        counts = shares * (ratios @ others + ratios.T @ others)
        squares = _with_data(above, above.data / means**2)  # squared shares of links in communities
        link_shares = shares**2 * (squares @ others**2 + squares.T @ others**2) / np.maximum(counts, 1e-300)
        links = rates * _symmetric_sum(shares.T @ (ratios @ shares))
        if alpha_0 is None:
            prior = _prior(prior.size, dirichlet_total(on_simplex_rows(counts + prior), degrees + prior.sum()))
    return LinkCounts(counts, prior if max_iter else np.zeros_like(prior), links, history)


def dirichlet_total(shares: np.ndarray, sizes: np.ndarray | float = np.inf) -> float:
    r"""Return the total of Dirichlet parameters that has the second moments of shares (n, k).

    With means :math:`m_a` their variances are :math:`m_a (1 - m_a) / (\alpha_0 + 1)`. Shares are means of posteriors
    that are Dirichlet with totals `sizes`, whose variances are added; infinite if shares are known.
    """
    mean = shares.mean(axis=0)
    posterior = np.sum(shares * (1 - shares), axis=1) / (np.asarray(sizes) + 1)
    variance = np.mean(np.sum(shares**2, axis=1) + posterior) - mean @ mean
    return float(np.clip((1 - mean @ mean) / max(variance, 1e-12) - 1, LEAST_ALPHA, LARGEST_ALPHA))


def _prior(k: int, total: float) -> np.ndarray:
    """Return equal Dirichlet parameters: larger ones for larger communities would make these grow."""
    return np.full(k, max(total, LEAST_ALPHA) / k)


def _expected_counts(counts: np.ndarray, prior: np.ndarray, link_shares: np.ndarray) -> np.ndarray:
    """Return geometric means of counts plus prior, to second order, without one link of given shares."""
    middle = np.maximum(counts + prior - link_shares, 1e-12)
    variances = np.maximum((counts - link_shares) * (1 - link_shares), 0)
    return np.maximum(middle * np.exp(-variances / (2 * middle**2)), 1e-12)


def _with_data(matrix: sparse.csr_array, data: np.ndarray) -> sparse.csr_array:
    """Return a matrix with the same pattern and other entries."""
    return sparse.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)


def _symmetric_sum(matrix: np.ndarray) -> np.ndarray:
    return matrix + matrix.T


def connectivity(network: Network, memberships: np.ndarray) -> np.ndarray:
    r"""Return P (k, k), symmetric, with :math:`p_x^\top P p_y` nearest to the links between different nodes.

    Least squares with bounds, zero and the largest weight (1 in a graph without weights). Memberships that hardly
    differ do not determine P, and without bounds it could be far outside.
    """
    top, k = float(network.adjacency.data.max()), memberships.shape[1]
    gram = memberships.T @ memberships
    units = np.sqrt(np.maximum(np.diag(gram), 1e-12 * np.trace(gram)))  # units in which all rates have similar effects
    shares, gram = memberships / units, gram / np.outer(units, units)
    links = shares.T @ (network.adjacency @ shares) / top

    def distance(flat: np.ndarray) -> tuple[float, np.ndarray]:
        rates = flat.reshape(k, k)
        loops = np.einsum("ia,ab,ib->i", shares, rates, shares, optimize=True)  # pairs of a node with itself
        image = gram @ rates @ gram - shares.T @ (loops[:, None] * shares)
        return float(np.sum(rates * (image / 2 - links))), (image - links).ravel()

    inverse, bounds = np.linalg.pinv(gram), np.outer(units, units).ravel()
    found = minimize(
        distance,
        np.clip((inverse @ links @ inverse).ravel(), 0, bounds),
        jac=True,
        bounds=list(zip(np.zeros(k * k), bounds, strict=True)),
        method="L-BFGS-B",
        options={"maxiter": 500, "ftol": 1e-14, "gtol": 1e-10},
    )
    rates = found.x.reshape(k, k) / np.outer(units, units)
    return np.clip((rates + rates.T) / 2, 0, 1) * top
