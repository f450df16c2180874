"""Latent-variable models as scikit-learn estimators.

Each model has parameters that are the factors of a moment of the data. The moment is computed in a few passes, and
factorized; a few steps of expectation maximization or of a likelihood may follow (``max_iter``). Where the data
determines the model, the estimate does not depend on a random start. All are estimators of scikit-learn: ``fit``, then
``predict``, ``transform`` or ``score``; learned attributes end in an underscore.

================================== ============================================ ===================================
Data                               Model                                        Learns
================================== ============================================ ===================================
samples that are matrices, arrays  `CP`                                         components, coefficients of samples
labels by several workers          `DawidSkene`                                 true labels, confusion of workers
a network                          `MixedMembershipCommunities`                 overlapping communities
counts of words, mixed topics      `LatentDirichlet`                            topics, their shares
counts of words, one topic each    `SingleTopic`                                topics, their frequencies
points in several clusters         `SphericalGaussianMixture`                   means, variances, weights
sequences of symbols               `HiddenMarkov`                               transitions, emissions
three views of the same samples    `MultiviewMixture`                           means in each view, weights
signals with different spectra     `SOBI`                                       sources, mixing
signals that are not Gaussian      `JADE`                                       sources, mixing
signals of changing variance       `NSS`                                        sources, mixing
================================== ============================================ ===================================

Which of the models for signals to use: `SOBI` where sources are correlated in time and differ in their spectra, such
as recordings sampled fast; `NSS` where they are active at different times; `JADE` where neither helps but their
distributions are far from Gaussian.

To write a model of your own, derive from `MomentModel` and return `Moments` and `Components`; `Diagnostics` says how
well the data determines a model; models of this kind keep it in ``diagnostics_``.

Examples
--------
>>> from codiag.models import DawidSkene
>>> from codiag.synthetic import crowd_votes, worker_errors
>>> crowd = crowd_votes(300, worker_errors(10, 2, seed=0), seed=1)
>>> model = DawidSkene(random_state=0).fit(crowd.votes)
>>> bool((model.labels_ == crowd.truth).mean() > 0.9)
True
"""

from codiag.models._cp import CP
from codiag.models.chains import HiddenMarkov
from codiag.models.communities import MixedMembershipCommunities
from codiag.models.crowd import DawidSkene
from codiag.models.frame import Components, Diagnostics, MomentModel, Moments
from codiag.models.mixtures import MultiviewMixture, SphericalGaussianMixture
from codiag.models.sources import JADE, NSS, SOBI
from codiag.models.topics import LatentDirichlet, SingleTopic

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
