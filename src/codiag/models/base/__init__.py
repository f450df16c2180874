"""Base classes of estimators: moments and their factorization, sums over parts of the data, jackknife errors."""

from codiag.models.base._components import (
    Components,
    Diagnostics,
    common_order,
    mixture_weights,
    nearest_order,
    on_simplex,
    on_simplex_rows,
)
from codiag.models.base._jackknife import (
    BlockedMoments,
    JackknifeModel,
    add_block_note,
    check_n_jackknife,
    jackknife_errors,
    share_errors,
)
from codiag.models.base._model import Model, MomentModel, Moments, as_seed, refuse_iterator, warn_caller
from codiag.models.base._second_moment import (
    CORE_METHOD,
    N_DRAWS,
    Products,
    check_second_moment,
    core_diagnostics,
    core_problem,
    hidden_component,
    leading_range,
    leading_range_in_passes,
    noise_of,
    random_bits,
    random_signs,
    weakest,
    weakest_direction,
)
from codiag.models.base._sums import (
    Blocks,
    MomentSums,
    PartialFit,
    PartsWithout,
    Totals,
    block_of_rows,
    check_reads,
    leave_one_out,
    merged,
    refuse_parts,
)
from codiag.models.base._three_views import (
    CrossProblem,
    MappedProblem,
    ViewMoments,
    ViewSums,
    as_dense,
    scaled,
    start_from_views,
    view_problem,
)
