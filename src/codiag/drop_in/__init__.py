"""Functions and classes of other libraries, computed by codiag: change the import and nothing else.

==================================================== ==========================================
Here                                                 There
==================================================== ==========================================
`parafac`, `CP`                                      ``tensorly.decomposition.parafac``, ``CP``
`non_negative_parafac`, `CP_NN`                      the same names in ``tensorly.decomposition``
`non_negative_parafac_hals`, `CP_NN_HALS`            the same names in ``tensorly.decomposition``
`constrained_parafac`                                the same name in ``tensorly.decomposition``
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

from importlib import import_module
from typing import Any

from codiag._checks import public_names
from codiag.drop_in._constrained import constrained_parafac
from codiag.drop_in._parafac2 import Parafac2, parafac2
from codiag.drop_in._pyttb import cp_apr, gcp_opt
from codiag.drop_in._tensorly import CP, CP_NN, CP_NN_HALS, non_negative_parafac, non_negative_parafac_hals, parafac

__all__ = [
    "CP",
    "CP_NN",
    "CP_NN_HALS",
    "Parafac2",
    "constrained_parafac",
    "cp_apr",
    "gcp_opt",
    "non_negative_parafac",
    "non_negative_parafac_hals",
    "parafac",
    "parafac2",
]

_PACKAGES = ("ajd", "crowdkit")

__dir__ = public_names(__all__, _PACKAGES)


def __getattr__(name: str) -> Any:
    """Import a package when it is first used; say of a name of another library that it is not offered here.

    That is an ImportError: what ``from module import name`` says of an AttributeError names a file alone.
    """
    if name in _PACKAGES:
        return import_module(f"{__name__}.{name}")
    homes = () if name.startswith("_") else ("tensorly.decomposition", "pyttb")
    home = next((home for home in homes if _has(home, name)), None)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    raise ImportError(
        f"{__name__} does not offer {name}, which {home} has; it offers {', '.join(__all__)}, and codiag.factorize has "
        "constraints, missing entries, losses and symmetry"
    )


def _has(library: str, name: str) -> bool:
    try:
        return hasattr(import_module(library), name)
    except ImportError:
        return False
