"""Steps of diagonalizers: rotations, shears, Newton steps, and the iteration to a fixed point."""

from codiag.diagonalize.steps._fixed_point import Limits, Outcome, Step, _converged, find_fixed_point
from codiag.diagonalize.steps._newton import _curvature, _look, newton_rotations
from codiag.diagonalize.steps._rotations import (
    Round,
    balance_rows,
    leading_rounds,
    on_device,
    orthonormalize,
    pair_entries,
    paired_layout,
    rotate,
    rotation_step,
    round_robin,
    shear,
    solve_near_identity,
    transform_pairs,
    two_sided_rotation_step,
)
from codiag.diagonalize.steps._shears import follow_shears, shear_step, two_sided_shear_step
