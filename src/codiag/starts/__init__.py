"""Starts of least squares: generators of components from which the search begins."""

from codiag.starts._default import default_starts
from codiag.starts._diagonal import Diagonal, Filled, Listed, diagonal_roles, diagonal_start, is_determined
from codiag.starts._given import FixedFactors, Given
from codiag.starts._grown import Extended, Grown
from codiag.starts._random import Random
from codiag.starts._rank_one_span import gram_null_space, rank_one_roles, rank_one_start
from codiag.starts._screened import Screened
from codiag.starts._slices import (
    Roles,
    assign_roles,
    components_from_sides,
    diagonalized,
    matrix_roles,
    merged_core,
    roles_refusal,
    slices,
    symmetric_components,
)
from codiag.starts._span_powers import (
    climbed,
    newton_moves,
    power_roles,
    power_start,
    powers_in_span,
    settled,
)
from codiag.starts._stabilized import Stabilized
from codiag.starts._start import Start
