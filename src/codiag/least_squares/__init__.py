"""Least squares for the components of a problem: the engine that the methods share.

A method of your own may use it.

======================= ======================================================================
`LeastSquares`          The objective: values, derivatives, solutions mode by mode, constraints.
`minimize`              From a start to a minimum, within `Limits`; returns an `Outcome`.
`best_rank_one`         The best single component, a start for more.
`unit_components`       The same components with unit columns.
`with_best_weights`     The weights that fit best to given factors.
======================= ======================================================================
"""

from codiag.least_squares._components import (
    hadamard_gram,
    merged_modes,
    random_components,
    solve_semidefinite,
    unit_components,
    with_best_weights,
)
from codiag.least_squares._curvature import Curvature, CurvatureLike, Restricted, curvature_of
from codiag.least_squares._gauss_newton import (
    NEGLIGIBLE,
    ROUNDING,
    SHARE_OF_NOISE,
    Limits,
    Outcome,
    QuickSteps,
    State,
    Steps,
    evaluated,
    gauss_newton_step,
    minimize,
    negligible_gain,
    refitted,
    relative_size,
    steps_for,
)
from codiag.least_squares._layout import Layout
from codiag.least_squares._linear_solve import conjugate_gradients, coupled, solve_directly
from codiag.least_squares._noise import (
    FLIPS,
    NORMAL_QUANTILE,
    RESIDUAL_ROUNDING,
    excess_over_flips,
    is_noise,
    largest_square,
    noise_excess,
)
from codiag.least_squares._objective import LeastSquares
from codiag.least_squares._orthogonal import polar, rotate
from codiag.least_squares._rank_one import best_rank_one, distinct_components, split_columns

__all__ = ["LeastSquares", "Limits", "Outcome", "best_rank_one", "minimize", "unit_components", "with_best_weights"]
