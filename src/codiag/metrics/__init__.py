"""Distances between estimates and the truth: factors up to order and sign, unmixings, communities; core consistency."""

from codiag.metrics._communities import RecoveryCurve, overlapping_nmi, recovery_curve
from codiag.metrics._core_consistency import core_consistency
from codiag.metrics._factors import Factors, Matching, factor_error, match_components, nearest_error, unit_factors
from codiag.metrics._separation import amari_index, minimum_distance

__all__ = [
    "Factors",
    "Matching",
    "RecoveryCurve",
    "amari_index",
    "core_consistency",
    "factor_error",
    "match_components",
    "minimum_distance",
    "nearest_error",
    "overlapping_nmi",
    "recovery_curve",
    "unit_factors",
]
