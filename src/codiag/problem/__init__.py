"""Problems, which methods solve: a tensor, a rank, constraints, observed entries, symmetry, labels; and estimates."""

from codiag.problem._estimate import Estimate, History, LogEntry
from codiag.problem._loss import absent_as, as_least_squares, interior
from codiag.problem._observed import after_first_look, combined_weights, in_chunks_without_missing, without_missing
from codiag.problem._problem import Problem, as_problem, most_components
from codiag.problem._symmetry import Symmetry, groups_of, n_independent_entries, n_parameters
