"""Distances between estimates and the truth, of factors up to order and sign, and of communities; core consistency."""

from codiag.metrics._communities import RecoveryCurve, overlapping_nmi, recovery_curve
from codiag.metrics._core_consistency import core_consistency
from codiag.metrics._factors import Factors, Matching, factor_error, match_components, nearest_error, unit_factors

__all__ = [
    "Factors",
    "Matching",
    "RecoveryCurve",
    "core_consistency",
    "factor_error",
    "match_components",
    "nearest_error",
    "overlapping_nmi",
    "recovery_curve",
    "unit_factors",
]
