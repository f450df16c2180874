"""Factorize tensors by jointly diagonalizing matrices."""

from importlib import import_module
from types import ModuleType

from codiag._factorization import Factorization
from codiag._factorize import factorize
from codiag._problem import Problem
from codiag._validation import ConvergenceWarning
from codiag.diagonalize import Diagonalization, joint_diagonalize
from codiag.metrics import factor_error, match_components

__version__ = "0.1.0"

__all__ = [
    "ConvergenceWarning",
    "Diagonalization",
    "Factorization",
    "Problem",
    "__version__",
    "factor_error",
    "factorize",
    "joint_diagonalize",
    "match_components",
]

_PARTS = (
    "constraints",
    "datasets",
    "diagonalize",
    "drop_in",
    "methods",
    "metrics",
    "models",
    "synthetic",
    "tables",
    "tensors",
    "theory",
)


def __getattr__(name: str) -> ModuleType:
    """Import a part of codiag where it is named: ``import codiag`` alone stays quick."""
    if name in _PARTS:
        return import_module(f"codiag.{name}")
    raise AttributeError(f"module 'codiag' has no attribute {name!r}")
