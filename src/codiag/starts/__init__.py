"""Starts of least squares: where the search begins."""

from codiag.starts._diagonal import diagonal_roles, diagonal_start
from codiag.starts._filled import filled, with_fixed
from codiag.starts._grown import POOR, grown, passes_for_noise, shared_group
from codiag.starts._koszul import (
    flattening,
    koszul_equations,
    koszul_kernel,
    koszul_roles,
    koszul_start,
    wedge_signs,
)
from codiag.starts._rank_one_span import gram_null_space, rank_one_roles
from codiag.starts._slices import (
    Roles,
    assign_roles,
    components_from_sides,
    diagonalized,
    matrix_roles,
    merged_core,
    roles_refusal,
    symmetric_components,
)
