"""Ways to factorize a tensor: configured objects to pass to `codiag.factorize`."""

from codiag.methods.als import ALS
from codiag.methods.auto import Auto
from codiag.methods.base import Method, Stage
from codiag.methods.joint import NOJD, OJD
from codiag.methods.nls import NLS

METHODS: dict[str, Method] = {
    "auto": Auto(),
    "ojd0": OJD(plug_in=False),
    "ojd1": OJD(plug_in=True),
    "nojd0": NOJD(plug_in=False),
    "nojd1": NOJD(plug_in=True),
    "als": ALS(),
    "nls": NLS(),
}
"""Methods by name."""

__all__ = ["ALS", "METHODS", "NLS", "NOJD", "OJD", "Auto", "Method", "Stage"]
