"""Latent-variable models as scikit-learn estimators.

The parameters of each model are the factors of a moment of the data. The moment is computed in a few passes and
factorized; steps of expectation maximization or of a likelihood may follow (``max_iter``). If the data determines the
model, the estimate does not depend on a random start. All models are scikit-learn estimators: ``fit``, then
``predict``, ``transform`` or ``score``; learned attributes end in an underscore.

================================== ============================================ ===================================
Data                               Model                                        Learns
================================== ============================================ ===================================
samples that are matrices, arrays  `CP`                                         components, coefficients of samples
samples of any number of rows      `Parafac2`                                   evolving components, weights of samples
labels by several workers          `DawidSkene`                                 true labels, confusion of workers
labels by correlated judges   `Jury`                                       true labels, clusters of judges
a network                          `MixedMembershipSBM`                 overlapping communities
counts of words, mixed topics      `LatentDirichlet`                            topics, their shares
counts of words, one topic each    `SingleTopic`                                topics, their frequencies
points in several clusters         `SphericalGaussianMixture`                   means, variances, weights
sequences of symbols               `HiddenMarkov`                               transitions, emissions
three views of the same samples    `MultiviewMixture`                           means in each view, weights
signals with different spectra     `SOBI`                                       sources, mixing
signals that are not Gaussian      `JADE`                                       sources, mixing
================================== ============================================ ===================================

Which of the models for signals to use: `SOBI` if sources are correlated in time and differ in their spectra, such as
recordings with a high sampling rate; `JADE` if they do not, but their distributions are far from Gaussian.

`jackknife_standard_errors` estimates standard errors of the parameters of topics, mixtures and hidden Markov models.

To write a model of your own, derive from `codiag.extending.MomentModel`.

Examples
--------
>>> from codiag.models import DawidSkene
>>> from codiag.synthetic import crowd_votes, worker_confusions
>>> crowd = crowd_votes(300, worker_confusions(10, 2, rng=0), rng=1)
>>> model = DawidSkene(random_state=0).fit(crowd.votes)
>>> bool((model.labels_ == crowd.truth).mean() > 0.9)
True
"""

from codiag._checks import public_names
from codiag.models._cp import CP
from codiag.models._parafac2 import Parafac2
from codiag.models.base import jackknife_standard_errors
from codiag.models.chains import HiddenMarkov
from codiag.models.communities import MixedMembershipSBM
from codiag.models.crowd import DawidSkene
from codiag.models.jury import Jury
from codiag.models.mixtures import MultiviewMixture, SphericalGaussianMixture
from codiag.models.sources import JADE, SOBI
from codiag.models.topics import LatentDirichlet, SingleTopic

__all__ = [
    "CP",
    "JADE",
    "SOBI",
    "DawidSkene",
    "HiddenMarkov",
    "Jury",
    "LatentDirichlet",
    "MixedMembershipSBM",
    "MultiviewMixture",
    "Parafac2",
    "SingleTopic",
    "SphericalGaussianMixture",
    "jackknife_standard_errors",
]

__dir__ = public_names(__all__)
