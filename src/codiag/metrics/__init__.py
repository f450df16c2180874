"""Errors of estimates, and the fit of a model to a tensor.

===================================== ==================================================================
`codiag.factor_error`                 Distance of factors after one-to-one matching; 0 is exact.
`codiag.match_components`             The matching, a `Matching`.
`core_consistency`                    Whether a CP model of this rank suits a tensor; 100 is best.
`amari_index`, `minimum_distance`     Distance of an unmixing from the true one; 0 is exact.
`overlapping_nmi`                     Agreement of two sets of overlapping communities; 1 is exact.
===================================== ==================================================================

Examples
--------
>>> import numpy as np
>>> from codiag.metrics import minimum_distance
>>> mixing = np.array([[1.0, 2.0], [0.5, -1.0]])
>>> minimum_distance(np.linalg.inv(mixing), mixing)
0.0
"""

from codiag._checks import public_names
from codiag.metrics._communities import overlapping_nmi
from codiag.metrics._compare import Comparison, compare
from codiag.metrics._core_consistency import consistency_of, core_consistency
from codiag.metrics._factors import (
    Matching,
    amari_index,
    factor_error,
    match_components,
    minimum_distance,
    nearest_error,
    unit_factors,
)

__all__ = [
    "amari_index",
    "core_consistency",
    "minimum_distance",
    "overlapping_nmi",
]

__dir__ = public_names(__all__)
