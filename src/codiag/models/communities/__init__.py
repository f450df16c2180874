"""Overlapping communities in networks."""

from codiag.models.communities._memberships import (
    LinkCounts,
    Stars,
    connectivity,
    dirichlet_total,
    estimate_memberships,
    scaled_stars,
    variational_steps,
)
from codiag.models.communities._model import MixedMembershipSBM
from codiag.models.communities._network import as_network
from codiag.models.communities._partition import count_communities, merged
