"""Diagnosis of a fit: which components the data determine, and whether they are unique.

==================================================== ===========================================================
Question                                             Functions
==================================================== ===========================================================
What does the data show of a fit, and what to do?    `assess`, which returns an `Assessment`
How large are they for unknown white noise?          `codiag.Diagonalization.standard_errors`
Are the components unique?                           `kruskal_condition`, `kruskal_rank`, `uniqueness_moduli`
How nearly dependent are the columns of a factor?    `factor_condition`, `incoherence`
==================================================== ===========================================================

Examples
--------
>>> import numpy as np
>>> from codiag.diagnosis import kruskal_condition, kruskal_rank
>>> factor = np.random.default_rng(0).standard_normal((4, 5))
>>> kruskal_rank(factor), kruskal_condition([factor, factor, factor])
(4, True)
"""

from codiag._checks import public_names
from codiag.diagnosis._advice import advice_on_optimum
from codiag.diagnosis._assessment import Assessment, assess
from codiag.diagnosis._data import Entry, codes_of, leverages, lone_entries
from codiag.diagnosis._facts import FAIR, Facts, deviance_without, verdict_by
from codiag.diagnosis._halves import Halves
from codiag.diagnosis._identifiability import (
    as_columns,
    factor_condition,
    incoherence,
    kruskal_condition,
    kruskal_rank,
    uniqueness_moduli,
)
from codiag.diagnosis._significance import SignFlips

__all__ = [
    "Assessment",
    "assess",
    "factor_condition",
    "incoherence",
    "kruskal_condition",
    "kruskal_rank",
    "uniqueness_moduli",
]

__dir__ = public_names(__all__)
