"""Blind source separation."""

from codiag.models.sources._base import Whitening
from codiag.models.sources._jade import JADE, projected_cumulants
from codiag.models.sources._sobi import SOBI, lagged_covariances
