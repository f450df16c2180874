"""Labels from judges who depend on each other."""

from codiag.models.jury._cluster_model import GUESSES, ClusterModel, clusters_of, expect_clusters, run_clusters
from codiag.models.jury._clusters import cluster_evidence, cluster_shares, find_clusters
from codiag.models.jury._dependence import correlations, measure_dependence
from codiag.models.jury._jury import Jury, dependence_among
from codiag.models.jury._ordered import QUALITY, OrderedModel, run_ordered
from codiag.models.jury._preferences import Preferences, are_preferences, preference_votes
