"""Smaller problems: the core of a tensor in the ranges of its components."""

from codiag.reduction._directions import orthonormal_directions, random_directions
from codiag.reduction._listed import hollow_spectrum, reduce_listed, shows_ranges
from codiag.reduction._reduction import Reduction, Sides, _with_sides, range_bases, reduce, reduce_widely, whole
from codiag.reduction._whitening import SMALLEST_EIGENVALUE, whiten, whitened
