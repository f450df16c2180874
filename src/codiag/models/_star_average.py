"""Memberships in communities, averaged over random partitions of the nodes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from codiag._validation import UndeterminedError
from codiag.methods import Method
from codiag.models._alignment import common_order
from codiag.models._networks import Network
from codiag.models._star_moments import estimate_memberships, scaled_stars

FEWEST, MOST = 10, 160
"""Partitions to begin with, and to end with at the latest."""
PRECISE = 0.05
"""Standard error of memberships below which no more partitions are drawn: communities count from 0.3 on."""


class Average(NamedTuple):
    """The mean of memberships over the partitions that show as many communities, how many do, and of how many.

    Agreement is the mean cosine of communities with their average: one where all partitions say the same. The standard
    error is that of a membership, in the mean square, as partitions differ.
    """

    memberships: np.ndarray
    agreement: float
    standard_error: float
    n_used: int
    n_drawn: int

    @property
    def mostly_failed(self) -> bool:
        """Whether most partitions do not show as many communities."""
        return self.n_drawn > 2 * self.n_used


def average_over_partitions(
    network: Network,
    k: int,
    seed: int | None,
    *,
    alpha_0: float,
    degree_corrected: bool,
    method: Method | None,
    n_partitions: int | None,
    kept: np.ndarray | None = None,
) -> Average:
    """Return memberships averaged over so many partitions, or over as many as make the mean precise.

    Where nodes are what was `kept` of more nodes (n_all,), the partitions are those of all.
    """
    if k == 1:
        return Average(np.ones((network.nodes.size, 1)), 1.0, 0.0, 1, 1)
    stars = scaled_stars(network, degree_corrected)
    seeds = np.random.SeedSequence(seed).spawn(n_partitions or MOST)
    estimates: list[np.ndarray] = []
    average, reason, n_drawn, target = None, "", 0, n_partitions or FEWEST
    precise = 0.0 if kept is not None else PRECISE  # partitions are as many as for all nodes, then
    while n_drawn < len(seeds) and not (average is not None and average.standard_error < precise):
        for one in seeds[n_drawn:target]:
            try:
                estimates.append(estimate_memberships(stars, k, alpha_0, method, one, kept))
            except (UndeterminedError, np.linalg.LinAlgError) as error:  # this partition shows fewer communities
                reason = str(error)
        n_drawn, target = target, min(2 * target, len(seeds))
        if len(estimates) > 1 or (estimates and n_drawn == len(seeds)):
            average = _averaged(estimates, n_drawn)
    if average is None:
        raise UndeterminedError(
            f"n_components={k} is more than the graph shows, in any partition of its nodes: {reason}"
        )
    return average


def _averaged(estimates: list[np.ndarray], n_drawn: int) -> Average:
    """Return the mean of memberships whose communities come in any order."""
    units = [_unit(estimate) for estimate in estimates]
    orders = common_order(units)
    aligned = [estimate[:, order] for estimate, order in zip(estimates, orders, strict=True)]
    mean = np.mean(aligned, axis=0)
    middle = _unit(mean)
    cosines = [np.sum(unit[:, order] * middle, axis=0) for unit, order in zip(units, orders, strict=True)]
    spread = np.mean([np.mean((estimate - mean) ** 2) for estimate in aligned])
    error = float(np.sqrt(spread / max(len(estimates) - 1, 1)))
    return Average(mean, min(float(np.mean(cosines)), 1.0), error, len(estimates), n_drawn)


def _unit(columns: np.ndarray) -> np.ndarray:
    return columns / np.maximum(np.linalg.norm(columns, axis=0), 1e-300)
