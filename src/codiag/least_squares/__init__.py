"""Least squares for the components of a problem: the objective, the minimizer, the noise test.

======================= ======================================================================
`LeastSquares`          The objective: values, derivatives, solutions mode by mode, constraints.
`minimize`              From a start to a minimum, within `Limits`; returns an `Outcome`.
`best_rank_one`         The best single component, a start for more.
======================= ======================================================================

A method of your own may use them: `codiag.extending` shows them.
"""

from codiag.least_squares._alternating import alternate
from codiag.least_squares._components import (
    hadamard_gram,
    merged_modes,
    random_components,
    solve_semidefinite,
    unit_components,
    with_best_weights,
)
from codiag.least_squares._curvature import Curvature, CurvatureLike, Scaled, curvature_of
from codiag.least_squares._gauss_newton import (
    Damping,
    Limits,
    Outcome,
    QuickSteps,
    State,
    Steps,
    are_cancelling,
    evaluated,
    is_exact,
    negligible_gain,
    relative_size,
    steps_for,
)
from codiag.least_squares._generalized import GeneralizedObjective, objective_of
from codiag.least_squares._layout import Layout
from codiag.least_squares._least_squares import LeastSquares
from codiag.least_squares._linear_solve import (
    DIRECT_UNKNOWNS,
    conjugate_gradients,
    damped_step,
    inner_product,
    solve_directly,
)
from codiag.least_squares._minimize import BRIEF, ROUGH, are_orthogonal, minimize, minimize_with_estimates
from codiag.least_squares._noise import (
    CONCENTRATION,
    N_FLIPS,
    NORMAL_QUANTILE,
    independent_columns,
    is_noise,
    largest_noise_term,
    largest_term_of_unit_noise,
    noise_excess,
)
from codiag.least_squares._objective import Objective
from codiag.least_squares._orthogonal import polar, rotate
from codiag.least_squares._powers import Powers, powers_of
from codiag.least_squares._rank_one import N_TERMS, best_rank_one, distinct_terms, split_columns
from codiag.least_squares._tolerances import (
    BRIEF_STEP,
    BRIEF_SWEEPS,
    CANCELLING,
    FIRST_DAMPING,
    MAX_SWEEPS,
    MOST_PRODUCTS,
    NEGLIGIBLE,
    ROUGHEST,
    ROUNDING,
    SLOW,
    TINY,
    TOLERANCE,
)
