"""Latent-variable models whose parameters are the factors of a moment: scikit-learn estimators without local optima."""

from codiag.models.communities import MixedMembershipCommunities
from codiag.models.crowd import DawidSkene
from codiag.models.hmm import HiddenMarkov
from codiag.models.mixture import SphericalGaussianMixture
from codiag.models.topics import LatentDirichlet, SingleTopic
from codiag.models.views import MultiviewMixture

__all__ = [
    "DawidSkene",
    "HiddenMarkov",
    "LatentDirichlet",
    "MixedMembershipCommunities",
    "MultiviewMixture",
    "SingleTopic",
    "SphericalGaussianMixture",
]
