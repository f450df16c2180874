"""What estimators share: moments and their factorization, sums over parts of the data, jackknife standard errors."""

from codiag.models.frame._components import Components
from codiag.models.frame._diagnostics import Diagnostics
from codiag.models.frame._jackknife import (
    BlockedModel,
    BlockedMoments,
    PartsWithout,
    ReplicatedModel,
    add_block_note,
    check_n_blocks,
    jackknife_errors,
    nearest_order,
    share_errors,
)
from codiag.models.frame._model import Model, MomentModel, Moments, as_seed, warn_caller
from codiag.models.frame._names import as_vector, sorted_names
from codiag.models.frame._partial_fit import refuse_parts
from codiag.models.frame._sampling_noise import (
    N_DRAWS,
    hidden_component,
    is_hidden,
    noise_of,
    random_bits,
    random_signs,
    weakest,
    weakest_direction,
)
from codiag.models.frame._second_moment import (
    CORE_METHOD,
    check_second_moment,
    core_diagnostics,
    core_problem,
    leading_range,
    leading_range_in_passes,
)
from codiag.models.frame._simplex import common_order, mixture_weights, on_simplex, on_simplex_rows
from codiag.models.frame._sums import Blocks, MomentSums, Totals, block_of_rows, leave_one_out, merged
from codiag.models.frame._three_views import (
    CrossProblem,
    MappedProblem,
    ViewMoments,
    ViewSums,
    as_dense,
    estimate_views,
    scaled,
    start_from_views,
    view_problem,
)
