"""Base classes of estimators: moments and their factorization, sums over rows, jackknife standard errors."""

from codiag.models.base._components import (
    Components,
    Diagnostics,
    common_order,
    mixture_weights,
    nearest_order,
    on_simplex,
    on_simplex_rows,
    products_at,
)
from codiag.models.base._jackknife import jackknife_errors, jackknife_standard_errors, share_errors
from codiag.models.base._model import Model, MomentModel, Moments, as_seed, is_near_limit, random_groups, warn_caller
from codiag.models.base._parameters import dirichlet_sum, number_or_zero, optional, positive_integer, word_or
from codiag.models.base._second_moment import (
    CORE_METHOD,
    check_second_moment,
    core_diagnostics,
    core_problem,
    hidden_component,
    leading_range,
    leading_range_in_passes,
    n_starts,
    noise_of,
    random_signs,
    weakest_direction,
)
from codiag.models.base._sums import PartialFit, RowSums, first_block, sum_over_rows
from codiag.models.base._three_views import (
    CrossProblem,
    MappedProblem,
    ViewMoments,
    as_dense,
    scaled,
    start_from_views,
    view_problem,
)
