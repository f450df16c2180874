"""Functions and classes of other libraries, computed by codiag: change the import and nothing else.

==================================================== ==========================================
Here                                                 There
==================================================== ==========================================
`parafac`, `CP`                                      ``tensorly.decomposition.parafac``, ``CP``
`non_negative_parafac`, `CP_NN`                      the same names in ``tensorly.decomposition``
`non_negative_parafac_hals`, `CP_NN_HALS`            the same names in ``tensorly.decomposition``
`parafac2`, `Parafac2`                               the same names in ``tensorly.decomposition``
`gcp_opt`, `cp_apr`                                  the same names in ``pyttb``
`codiag.drop_in.ajd`                                 ``pyriemann.geometry.ajd``
==================================================== ==========================================

Arguments and their order are those of the other library, and results have its types if it is installed. Options
that name details of its algorithm are accepted and ignored.

Examples
--------
>>> import numpy as np
>>> from codiag.drop_in import parafac  # was: from tensorly.decomposition import parafac
>>> weights, factors = parafac(np.ones((3, 4, 5)), rank=1)
>>> [factor.shape for factor in factors]
[(3, 1), (4, 1), (5, 1)]
"""

from codiag._checks import public_names
from codiag.drop_in._others import explain_others
from codiag.drop_in._parafac2 import Parafac2, parafac2
from codiag.drop_in._pyttb import cp_apr, gcp_opt
from codiag.drop_in._tensorly import non_negative_parafac, non_negative_parafac_hals, parafac
from codiag.drop_in._tensorly_classes import CP, CP_NN, CP_NN_HALS

__all__ = [
    "CP",
    "CP_NN",
    "CP_NN_HALS",
    "Parafac2",
    "cp_apr",
    "gcp_opt",
    "non_negative_parafac",
    "non_negative_parafac_hals",
    "parafac",
    "parafac2",
]

_PACKAGES = ("ajd", "crowdkit")

__getattr__ = explain_others(__name__, __all__, _PACKAGES)

__dir__ = public_names(__all__, _PACKAGES)
