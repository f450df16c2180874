"""Starts of least squares: generators of components from which the search begins."""

from codiag.starts._batch_loss import LossBatch
from codiag.starts._default import default_starts
from codiag.starts._diagonal import Diagonal, FromObserved, MeanImputed, diagonal_roles, diagonal_start
from codiag.starts._given import FixedFactors, Given
from codiag.starts._greedy import Greedy, WarmStart
from codiag.starts._random import Random
from codiag.starts._rank_one_span import gram_null_space, rank_one_roles, rank_one_start
from codiag.starts._slices import (
    Roles,
    assign_roles,
    check_roles,
    components_from_sides,
    diagonalized,
    matrix_roles,
    merged_core,
    slices,
    symmetric_components,
)
from codiag.starts._span_powers import (
    newton_moves,
    power_iterations,
    power_roles,
    power_start,
    settled,
    symmetric_powers_in_span,
)
from codiag.starts._start import Start
from codiag.starts._together import diagonal_starts
from codiag.starts._tournament import Pool, Tournament, tournaments_apply
from codiag.starts._variance_stabilized import VarianceStabilized
