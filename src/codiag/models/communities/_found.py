"""Communities that were found: what is derived from memberships, and what a user must be told."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from codiag.models.communities._count import merged, settled
from codiag.models.communities._network import Network
from codiag.models.communities._stars import Average
from codiag.models.frame import Diagnostics


class FoundCommunities(NamedTuple):
    """Communities of nodes that have links, the largest first."""

    network: Network
    memberships: np.ndarray
    average: Average
    log_likelihood: list[float]

    def diagnostics(self, n_isolated: int) -> Diagnostics:
        """Return what tells when not to trust them; so many further nodes have no links."""
        average, k = self.average, self.memberships.shape[1]
        return Diagnostics(
            log_likelihood=self.log_likelihood,
            n_partitions=average.n_used,
            agreement=average.agreement,
            standard_error=average.standard_error if average.n_used > 1 or k == 1 else None,
            isolated=n_isolated,
        )

    @property
    def labels(self) -> np.ndarray:
        """The strongest community of every node."""
        return np.argmax(self.memberships, axis=1)

    @property
    def partition(self) -> np.ndarray:
        """Communities that do not overlap, the largest first."""
        labels = settled(self.network, self.labels)
        return np.argsort(np.argsort(-np.bincount(labels), kind="stable"))[labels]

    @property
    def n_empty(self) -> int:
        """How many communities are the strongest of no node."""
        return self.memberships.shape[1] - np.unique(self.labels).size

    @property
    def n_superfluous(self) -> int:
        """How many communities are the strongest of no node, or one with another."""
        return self.memberships.shape[1] - 1 - int(merged(self.network, self.labels).max())

    @property
    def is_shown(self) -> bool:
        """Whether most partitions show as many communities, each the strongest of some node, and no two are one."""
        return not self.average.mostly_failed and self.n_superfluous == 0

    def complaints(self) -> tuple[str, ...]:
        """Return what a user must be told, sentences for warnings."""
        average, k = self.average, self.memberships.shape[1]
        messages = []
        if average.mostly_failed:
            messages.append(
                f"{average.n_drawn - average.n_used} of {average.n_drawn} partitions of the nodes do not show {k} "
                "communities; ask for fewer"
            )
        if average.agreement < 0.8:
            messages.append(
                f"partitions of the nodes agree little on {k} communities ({average.agreement:.2f} of 1), and other "
                "seeds may find others; ask for fewer communities, or for more partitions"
            )
        if self.n_empty:
            messages.append(
                f"n_components={k} may be more than the graph shows: {self.n_empty} of the communities "
                f"{'is' if self.n_empty == 1 else 'are'} the strongest of no node; ask for {k - self.n_empty}"
            )
        return tuple(messages)
