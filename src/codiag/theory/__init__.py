"""How far components can be trusted: error bars, diagnosis, and identifiability of components.

==================================================== ===========================================================
Question                                             Functions
==================================================== ===========================================================
Which components of a fit can be trusted?            `Diagnosis`, which `codiag.Factorization.diagnose` returns
How large are they for unknown white noise?          `codiag.Diagonalization.standard_errors`
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
from codiag.theory._diagnosis import Diagnosis, diagnose
from codiag.theory._identifiability import (
    as_columns,
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
from codiag.theory._resampling import Bootstrap, bootstrap, part_of
from codiag.theory._scatter import Scatter, estimate_scatter
from codiag.theory._sensitivity import (
    Sensitivity,
    Unknowns,
    noise_level,
    restricted_sensitivity,
    sensitivity,
    sensitivity_of,
)

__all__ = [
    "Diagnosis",
    "factor_condition",
    "incoherence",
    "kruskal_condition",
    "kruskal_rank",
    "uniqueness_moduli",
]

__dir__ = public_names(__all__)
