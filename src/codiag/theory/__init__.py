"""The theory of the paper as functions: first-order errors, the four theorems, and identifiability of components.

==================================================== ===========================================================
Question                                             Functions
==================================================== ===========================================================
Which components of a fit can be trusted?            `Diagnosis`, which `codiag.Factorization.diagnose` returns
How large are the errors for known noise?            `first_order_perturbation`, `afsari_bound`
How large are they for unknown white noise?          `codiag.Diagonalization.standard_errors`
What do the theorems guarantee?                      `error_bound`
How many random projections are needed?              `projections_needed`, `projections_for_ratio`
How much do random projections lose?                 `random_projection_ratio`
Along which directions are errors small?             `expected_errors`, `optimal_directions`
How large can errors be for the worst noise?         `worst_errors`, `worst_noise`
Are the components unique?                           `kruskal_condition`, `kruskal_rank`, `uniqueness_moduli`
How nearly dependent are the columns of a factor?    `factor_condition`, `incoherence`
==================================================== ===========================================================

Examples
--------
>>> import numpy as np
>>> from codiag.theory import kruskal_condition, kruskal_rank
>>> factor = np.random.default_rng(0).standard_normal((4, 5))
>>> kruskal_rank(factor), kruskal_condition([factor, factor, factor])
(4, True)
"""

from codiag._checks import public_names
from codiag.theory._advice import inflation
from codiag.theory._bounds import error_bound, minimum_projections, projection_concentration, projections_needed
from codiag.theory._diagnosis import Diagnosis, diagnose
from codiag.theory._directions import expected_errors, optimal_directions
from codiag.theory._identifiability import (
    factor_condition,
    incoherence,
    kruskal_condition,
    kruskal_rank,
    uniqueness_moduli,
)
from codiag.theory._noise_errors import (
    Intervals,
    Linearization,
    NoiseErrors,
    intervals,
    noise_errors,
    noise_in_words,
    scatter_of,
)
from codiag.theory._noise_terms import REPLICATES, deviance_without, largest_noise_term, outliers_of, replication_of
from codiag.theory._perturbation import (
    Perturbation,
    afsari_bound,
    first_order_perturbation,
    project_noise,
    projected_diagonals,
)
from codiag.theory._projection_law import projections_for_ratio, random_projection_ratio
from codiag.theory._resampling import Bootstrap, bootstrap, jackknife, part_of
from codiag.theory._sensitivity import (
    Sensitivity,
    Unknowns,
    noise_level,
    restricted_sensitivity,
    sensitivity,
    unknown_sensitivity,
)
from codiag.theory._whitening import whitened_errors, whitened_fit
from codiag.theory._worst_noise import WorstErrors, worst_errors, worst_noise

__all__ = [
    "Diagnosis",
    "afsari_bound",
    "error_bound",
    "expected_errors",
    "factor_condition",
    "first_order_perturbation",
    "incoherence",
    "kruskal_condition",
    "kruskal_rank",
    "optimal_directions",
    "projections_for_ratio",
    "projections_needed",
    "random_projection_ratio",
    "uniqueness_moduli",
    "worst_errors",
    "worst_noise",
]

__dir__ = public_names(__all__)
