"""The paper's theory as code: first-order errors, the four theorems, and what makes components identifiable.

==================================================== ===========================================================
Question                                             Functions
==================================================== ===========================================================
Which components of a fit can be trusted?            `diagnose`, which returns a `Diagnosis`
How large are errors, from the data alone?           `standard_errors`
How large are errors, for noise that is known?       `first_order`, which returns a `FirstOrder`; `afsari_bound`
What do the theorems promise?                        `error_bound`, `concentration`
How many projections are needed?                     `projections_for`, `least_projections`
Are the components unique?                           `kruskal_condition`, `kruskal_rank`, `uniqueness_moduli`
How hard are these factors?                          `condition`, `incoherence`
==================================================== ===========================================================

`project_noise` and `projected_diagonals` turn the noise and the components of a tensor into what `first_order` takes.

Examples
--------
>>> import numpy as np
>>> from codiag.theory import kruskal_condition, kruskal_rank
>>> factor = np.random.default_rng(0).standard_normal((4, 5))
>>> kruskal_rank(factor), kruskal_condition([factor, factor, factor])
(4, True)
"""

from codiag.theory._bounds import concentration, error_bound, least_projections, projections_for
from codiag.theory._diagnosis import Diagnosis, diagnose, largest_noise_term
from codiag.theory._identifiability import condition, incoherence, kruskal_condition, kruskal_rank, uniqueness_moduli
from codiag.theory._perturbation import (
    FirstOrder,
    afsari_bound,
    first_order,
    project_noise,
    projected_diagonals,
    standard_errors,
)
from codiag.theory._restricted_sensitivity import Unknowns, restricted_sensitivity
from codiag.theory._sensitivity import Sensitivity, noise_level, sensitivity

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
