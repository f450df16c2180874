"""How entries scatter around a sum of components.

`Gaussian` is least squares, for white noise or with a covariance for each mode: ``loss=`` of `codiag.factorize`.

Examples
--------
>>> from codiag.losses import Gaussian
>>> Gaussian("modes")
Gaussian(covariance='modes')
"""

from codiag.losses._gaussian import Gaussian, as_loss
from codiag.losses._scatter import Scatter, correlations_at, estimate_scatter

__all__ = ["Gaussian"]
