"""Overlapping communities in networks."""

from codiag.models.communities._connectivity import Parameters, connectivity, crossed_connectivity
from codiag.models.communities._errors import Corrected, Estimate, are_nearest, communities_jackknife, shrunk_mean
from codiag.models.communities._files import GRAPHS, graph_of_table, read_graph
from codiag.models.communities._memberships import (
    LinkCounts,
    Stars,
    dirichlet_total,
    estimate_memberships,
    scaled_stars,
    variational_steps,
)
from codiag.models.communities._model import MixedMembershipCommunities
from codiag.models.communities._network import as_network
from codiag.models.communities._partition import count_communities, merged, modularity, settled
