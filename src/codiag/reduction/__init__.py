"""Smaller problems: the core of a tensor in the ranges of its components."""

from codiag.reduction._reduction import (
    Reduction,
    Sides,
    range_bases,
    reduce,
    reduce_listed,
    reduce_widely,
    uncompressed,
    with_sides,
)
from codiag.reduction._whitening import SMALLEST_EIGENVALUE, whiten, whitened
