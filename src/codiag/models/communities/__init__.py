"""Overlapping communities in networks."""

from codiag.models.communities._bias import Corrected, Parameters, are_nearest, crossed_connectivity, known_part
from codiag.models.communities._connectivity import connectivity
from codiag.models.communities._count import count_communities, merged, modularity, settled
from codiag.models.communities._files import read_edges, read_graph
from codiag.models.communities._jackknife import Estimate, communities_jackknife
from codiag.models.communities._model import MixedMembershipCommunities
from codiag.models.communities._network import as_network
from codiag.models.communities._stars import Stars, estimate_memberships, scaled_stars
from codiag.models.communities._steps import Polished, dirichlet_total, polish_memberships
