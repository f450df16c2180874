"""Least squares for the components of a problem: the objective, the minimizer, the noise test.

======================= ======================================================================
`LeastSquares`          The objective: values, derivatives, solutions mode by mode, constraints.
`minimize`              From a start to a minimum, within `Limits`; returns an `OptimizeResult`.
`best_rank_one`         The best single component, a start for more.
======================= ======================================================================

A method of your own may use them: `codiag.extending` shows them.
"""

from codiag.least_squares._alternating import Settled, alternate, settle, sweep
from codiag.least_squares._batch import (
    Batch,
    NormalEquations,
    RowEquations,
    columnwise_kronecker,
    pairs_of,
    solved_rows,
    squares_of,
)
from codiag.least_squares._budget import (
    INTERRUPTED,
    Budget,
    Log,
    flops_seconds,
    interrupts_end_searches,
    largest_product,
    logger,
    member_seconds,
    step_seconds,
    sweep_seconds,
    terms_seconds,
)
from codiag.least_squares._components import (
    hadamard_gram,
    merged_modes,
    random_components,
    solve_semidefinite,
    unit_components,
    with_best_weights,
)
from codiag.least_squares._gauss_newton import (
    Damping,
    Limits,
    OptimizeResult,
    State,
    Steps,
    are_degenerate,
    descend,
    evaluated,
    is_exact,
    negligible_gain,
    relative_size,
)
from codiag.least_squares._generalized import GeneralizedObjective, objective_of
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
    N_FLIPS,
    NORMAL_QUANTILE,
    independent_columns,
    is_noise,
    largest_noise_term,
    largest_term_of_unit_noise,
    noise_excess,
    stacked_excess,
)
from codiag.least_squares._objective import Objective
from codiag.least_squares._operators import CurvatureOperator, GaussNewtonOperator, UnrestrictedOperator
from codiag.least_squares._parametrization import Parametrization
from codiag.least_squares._rank_one import N_TERMS, best_rank_one, distinct_terms, split_columns, strongest_terms
from codiag.least_squares._symmetric_basis import SymmetricBasis, symmetric_basis
from codiag.least_squares._tolerances import (
    BRIEF_STEP,
    BRIEF_SWEEPS,
    DEGENERATE_RATIO,
    FIRST_DAMPING,
    INSIGNIFICANT,
    MAX_SWEEPS,
    MOST_PRODUCTS,
    NEGLIGIBLE,
    ROUGHEST,
    ROUNDING,
    SLOW,
    TINY,
    TOLERANCE,
)
