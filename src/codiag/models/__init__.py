"""Latent-variable models whose parameters are the factors of a moment: scikit-learn estimators without local optima."""

from codiag.models._base import MomentModel, Moments
from codiag.models._communities import MixedMembershipCommunities
from codiag.models._components import Components
from codiag.models._cp import CP
from codiag.models._crowd import DawidSkene
from codiag.models._diagnostics import Diagnostics
from codiag.models._hmm import HiddenMarkov
from codiag.models._jade import JADE
from codiag.models._mixture import SphericalGaussianMixture
from codiag.models._nss import NSS
from codiag.models._sobi import SOBI
from codiag.models._topics import LatentDirichlet, SingleTopic
from codiag.models._views import MultiviewMixture

__all__ = [
    "CP",
    "JADE",
    "NSS",
    "SOBI",
    "Components",
    "DawidSkene",
    "Diagnostics",
    "HiddenMarkov",
    "LatentDirichlet",
    "MixedMembershipCommunities",
    "MomentModel",
    "Moments",
    "MultiviewMixture",
    "SingleTopic",
    "SphericalGaussianMixture",
]
