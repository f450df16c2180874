"""How entries scatter around a sum of components."""

from codiag.losses._scatter import Scatter, correlations_at, estimate_scatter
