"""The paper's theory as code: first-order errors, the four theorems, and what makes components identifiable."""

from codiag.theory._bounds import concentration, error_bound, least_projections, projections_for
from codiag.theory._diagnosis import Diagnosis, diagnose
from codiag.theory._identifiability import (
    condition,
    incoherence,
    kruskal_condition,
    kruskal_rank,
    uniqueness_moduli,
)
from codiag.theory._perturbation import (
    FirstOrder,
    afsari_bound,
    first_order,
    project_noise,
    projected_diagonals,
    standard_errors,
)

__all__ = [
    "Diagnosis",
    "FirstOrder",
    "afsari_bound",
    "concentration",
    "condition",
    "diagnose",
    "error_bound",
    "first_order",
    "incoherence",
    "kruskal_condition",
    "kruskal_rank",
    "least_projections",
    "project_noise",
    "projected_diagonals",
    "projections_for",
    "standard_errors",
    "uniqueness_moduli",
]
