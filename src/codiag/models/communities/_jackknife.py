r"""Standard errors of communities: estimates without blocks of nodes, each left out in turn.

Given the memberships, links are independent, and estimates are sums over links to first order. A block of nodes is left
out with all its links. A link of node x to another is left out once for the memberships of x, with the other node: the
jackknife over the blocks that x is not in has their variance, but for the links within its own block. For what belongs
to all nodes together, a link between two blocks is left out twice, so that B blocks count each (2 B - 1) / (B - 1)
times, two in the limit, in the variance (Lin, Lunde & Sarkar, 2020, show that this jackknife is conservative).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from codiag.models.frame import add_block_note, block_of_rows, jackknife_errors, share_errors

LARGEST = 0.5
"""The largest standard deviation of a share between zero and one."""


class Estimate(NamedTuple):
    """Memberships (n, k), connectivity (k, k) and the total of Dirichlet parameters, or standard errors of these."""

    memberships: np.ndarray
    connectivity: np.ndarray
    alpha_0: float

    def aligned(self, whole: np.ndarray) -> Estimate:
        """Return these with communities in the order of memberships (n, k) that are given."""
        order = linear_sum_assignment(-whole.T @ self.memberships)[1]
        return Estimate(self.memberships[:, order], self.connectivity[np.ix_(order, order)], self.alpha_0)


def check_node_blocks(n_jackknife: int, n_nodes: int, k: int) -> None:
    """Raise unless without each of some blocks there are nodes enough, of so many, to show k communities."""
    if n_nodes < n_jackknife:
        raise ValueError(
            f"n_jackknife must be at most {n_nodes}, the number of nodes with links, as each belongs to one block; got "
            f"{n_jackknife}"
        )
    left, needed = n_nodes - -(-n_nodes // n_jackknife), max(8, 4 * k)
    if k > 1 and left < needed:
        raise ValueError(
            f"n_jackknife must be 0, or so large that {needed} nodes are left without a block, to be parted in four "
            f"for {k} communities; n_jackknife={n_jackknife} leaves {left} of {n_nodes} nodes with links"
        )


def communities_jackknife(whole: Estimate, estimate: Callable[[np.ndarray], Estimate], n_jackknife: int) -> Estimate:
    """Return standard errors; `estimate` gives parameters from the nodes that are kept (n,), memberships of these."""
    n, k = whole.memberships.shape
    owners = block_of_rows(n, n_jackknife)
    memberships, rates, totals = np.empty((n_jackknife, n, k)), np.empty((n_jackknife, k, k)), np.empty(n_jackknife)
    for block in range(n_jackknife):
        kept = owners != block
        try:
            found = estimate(kept).aligned(whole.memberships[kept])
        except ValueError as error:
            add_block_note(error, block, n_jackknife)
            raise
        memberships[block, kept], rates[block], totals[block] = found
    sizes = np.bincount(owners, minlength=n_jackknife)
    errors = np.empty((n, k))
    for block in range(n_jackknife):
        own, others = owners == block, np.flatnonzero(np.arange(n_jackknife) != block)
        ratios = sizes[others].sum() / sizes[others]
        replicates = memberships[np.ix_(others, own)]
        found_errors = share_errors(whole.memberships[own], replicates, ratios)
        errors[own] = np.minimum(found_errors * np.sqrt(n / (n - sizes[block])), LARGEST)
    twice = (2 * n_jackknife - 1) / (n_jackknife - 1)
    unit = max(float(whole.connectivity.max()), 1e-300)
    of_rates = share_errors(whole.connectivity, rates, n / sizes, unit) / np.sqrt(twice)
    of_total = jackknife_errors(np.asarray(whole.alpha_0), totals, n / sizes) / np.sqrt(twice)
    return Estimate(errors, of_rates, float(of_total))
