"""Mixtures of Gaussians, and of distributions with three views of each sample."""

from codiag.models.mixtures._gaussian import SphericalGaussianMixture
from codiag.models.mixtures._gaussian_moments import Samples, gaussian_moments, unique_variances
from codiag.models.mixtures._views import MultiviewMixture
