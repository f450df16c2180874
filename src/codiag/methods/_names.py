"""Methods by name."""

from __future__ import annotations

from codiag.methods._als import ALS
from codiag.methods._auto import Auto
from codiag.methods._init import is_method
from codiag.methods._joint import NOJD, OJD
from codiag.methods._method import Method
from codiag.methods._nls import NLS
from codiag.methods.comparison import SD2, TPM, Givens, Lathauwer

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

ALIASES = {"ojd": "ojd1", "nojd": "nojd1"}


def as_method(method: object) -> Method:
    """Return a method object as it is, or the one that has this name."""
    if method is None:
        return Auto()
    if is_method(method):
        return method  # type: ignore[return-value]
    if isinstance(method, str):
        name = ALIASES.get(method.lower(), method.lower())
        if name in METHODS:
            return METHODS[name]
        raise ValueError(f"method must be one of {', '.join(METHODS)}, or an object of codiag.methods; got {method!r}")
    hint = "; did you forget the parentheses?" if isinstance(method, type) else ""
    raise TypeError(f"method must be a name or an object of codiag.methods, like NLS(); got {method!r}{hint}")
