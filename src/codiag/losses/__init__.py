"""Loss functions, the noise distributions of entries: ``loss=`` of `codiag.factorize`.

================== ============================================ =========================================
Loss               Entries                                      Sum of components
================== ============================================ =========================================
`Gaussian`         Any; least squares                           Their mean
`Poisson`          Counts                                       Their mean, or its logarithm
`NegativeBinomial` Counts with a variance above their mean      Their mean
`Bernoulli`        Binary data                                  Logarithm of the odds, or the odds
`Huber`            Any, some of them outliers                   Their mean, or nearly so
================== ============================================ =========================================

Examples
--------
>>> from codiag.losses import Bernoulli, Poisson
>>> Poisson(), Bernoulli("odds")
(Poisson(link='identity'), Bernoulli(link='odds'))
"""

from codiag._checks import public_names
from codiag.losses._base import Loss
from codiag.losses._bernoulli import Bernoulli
from codiag.losses._gaussian import Gaussian
from codiag.losses._huber import Huber
from codiag.losses._names import as_loss
from codiag.losses._negative_binomial import NegativeBinomial
from codiag.losses._poisson import Poisson

__all__ = ["Bernoulli", "Gaussian", "Huber", "NegativeBinomial", "Poisson"]

__dir__ = public_names(__all__)
