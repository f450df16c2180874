"""Ways to factorize a tensor: configured objects to pass to `codiag.factorize`."""

from codiag._estimate import Estimate, Stage
from codiag.methods._als import ALS
from codiag.methods._auto import Auto
from codiag.methods._givens import Givens
from codiag.methods._joint import NOJD, OJD
from codiag.methods._lathauwer import Lathauwer
from codiag.methods._method import Method
from codiag.methods._nls import NLS
from codiag.methods._power import TPM
from codiag.methods._sd2 import SD2

METHODS: dict[str, Method] = {
    "auto": Auto(),
    "ojd0": OJD(plug_in=False),
    "ojd1": OJD(plug_in=True),
    "nojd0": NOJD(plug_in=False),
    "nojd1": NOJD(plug_in=True),
    "tpm": TPM(),
    "als": ALS(),
    "nls": NLS(),
    "lathauwer": Lathauwer(),
    "sd2": SD2(),
    "givens": Givens(),
}
"""Methods by name."""

__all__ = [
    "ALS",
    "METHODS",
    "NLS",
    "NOJD",
    "OJD",
    "SD2",
    "TPM",
    "Auto",
    "Estimate",
    "Givens",
    "Lathauwer",
    "Method",
    "Stage",
]
