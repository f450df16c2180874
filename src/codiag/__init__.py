"""Factorize tensors by jointly diagonalizing matrices."""

from importlib import import_module
from types import ModuleType

from codiag._each import FailedFitsError, factorize_each
from codiag._factorization import Factorization
from codiag._factorize import factorize
from codiag._problem import Problem
from codiag._validation import ConvergenceWarning
from codiag.diagonalize import Diagonalization, joint_diagonalize
from codiag.metrics import factor_error, match_components
from codiag.selection import RankChoice, choose_rank

__version__ = "0.2.0"

__all__ = [
    "ConvergenceWarning",
    "Diagonalization",
    "Factorization",
    "FailedFitsError",
    "Problem",
    "RankChoice",
    "__version__",
    "choose_rank",
    "factor_error",
    "factorize",
    "factorize_each",
    "joint_diagonalize",
    "match_components",
]

_PACKAGES = (
    "cli",
    "constraints",
    "datasets",
    "diagonalize",
    "drop_in",
    "experiments",
    "methods",
    "metrics",
    "models",
    "plotting",
    "reports",
    "selection",
    "synthetic",
    "tables",
    "tensors",
    "theory",
)


def __getattr__(name: str) -> ModuleType:
    """Import a package of codiag where it is named: ``import codiag`` alone stays quick."""
    if name in _PACKAGES:
        return import_module(f"codiag.{name}")
    raise AttributeError(f"module 'codiag' has no attribute {name!r}")


def __dir__() -> list[str]:
    """List what is public, packages that are not imported yet included."""
    return sorted([*__all__, *_PACKAGES])
