"""Factorize tensors by jointly diagonalizing matrices."""

from codiag._validation import ConvergenceWarning
from codiag.diagonalize import Diagonalization, joint_diagonalize
from codiag.factorization import Factorization
from codiag.factorize import factorize
from codiag.metrics import factor_error, match_components

__version__ = "0.1.0"

__all__ = [
    "ConvergenceWarning",
    "Diagonalization",
    "Factorization",
    "__version__",
    "factor_error",
    "factorize",
    "joint_diagonalize",
    "match_components",
]
