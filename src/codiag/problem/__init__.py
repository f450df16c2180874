"""What is asked: a tensor, a rank, constraints, observed entries, symmetry."""

from codiag.problem._estimate import Estimate, Log, Stage
from codiag.problem._missing import after_first_look, in_chunks_without_missing, without_missing
from codiag.problem._problem import Problem, as_observed, most_components, n_entries, n_parameters
from codiag.problem._symmetry import groups_of
