"""The theory of the paper as functions: first-order errors, the four theorems, and our own results on projections.

==================================================== ===========================================================
Question                                             Functions
==================================================== ===========================================================
How large are the errors for known noise?            `first_order_perturbation`, `afsari_bound`
What do the theorems guarantee?                      `error_bound`
How many random projections are needed?              `projections_needed`, `projections_for_ratio`
How much do random projections lose?                 `random_projection_ratio`
Along which directions are errors small?             `expected_errors`, `optimal_directions`
How large can errors be for the worst noise?         `worst_errors`, `worst_noise`
==================================================== ===========================================================

For unknown white noise there is `codiag.Diagonalization.standard_errors`.
"""

from experiments.theory.bounds import error_bound, minimum_projections, projection_concentration, projections_needed
from experiments.theory.directions import expected_errors, optimal_directions
from experiments.theory.metric import best_metric, directions_of, symmetric_model, two_sided_model
from experiments.theory.perturbation import (
    Perturbation,
    afsari_bound,
    first_order_perturbation,
    project_noise,
    projected_diagonals,
)
from experiments.theory.projection_law import projections_for_ratio, random_projection_ratio
from experiments.theory.worst_noise import WorstErrors, worst_errors, worst_noise

__all__ = [
    "Perturbation",
    "WorstErrors",
    "afsari_bound",
    "best_metric",
    "directions_of",
    "error_bound",
    "expected_errors",
    "first_order_perturbation",
    "minimum_projections",
    "optimal_directions",
    "project_noise",
    "projected_diagonals",
    "projection_concentration",
    "projections_for_ratio",
    "projections_needed",
    "random_projection_ratio",
    "symmetric_model",
    "two_sided_model",
    "worst_errors",
    "worst_noise",
]
