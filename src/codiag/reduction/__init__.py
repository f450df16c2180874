"""Smaller problems: the core of a tensor in the ranges of its components."""

from codiag.reduction._prepared import Prepared, prepared, safe_scale
from codiag.reduction._reduction import (
    Reduction,
    Sides,
    dominant_core,
    is_small,
    range_bases,
    reduce,
    reduce_listed,
    uncompressed,
    with_sides,
)
from codiag.reduction._whitening import SMALLEST_EIGENVALUE, whitened
