"""Problems, which methods solve: a tensor, a rank, constraints, observed entries, symmetry, labels; and estimates."""

from codiag.problem._budget import (
    INTERRUPTED,
    LEAST_SECONDS,
    Budget,
    interrupts_end_searches,
    largest_product,
    n_affordable_starts,
    step_seconds,
    terms_seconds,
)
from codiag.problem._estimate import Estimate, Log, Stage, Stages, logger
from codiag.problem._loss import as_least_squares, interior, warn_of_unlisted_counts
from codiag.problem._observed import after_first_look, in_chunks_without_missing, without_missing
from codiag.problem._problem import Problem, as_problem, most_components
from codiag.problem._symmetry import Symmetry, groups_of, n_independent_entries, n_parameters
