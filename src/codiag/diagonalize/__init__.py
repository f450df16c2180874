"""Joint diagonalization: configured methods to call with a stack of matrices."""

from codiag.diagonalize._base import Diagonalizer, Iterate
from codiag.diagonalize._diagonalization import Diagonalization
from codiag.diagonalize._jacobi import Jacobi
from codiag.diagonalize._jdi import JDi
from codiag.diagonalize._joint_diagonalize import joint_diagonalize
from codiag.diagonalize._orthogonal_newton import OrthogonalNewton
from codiag.diagonalize._qrj1d import LUJ1D, QRJ1D
from codiag.diagonalize._symmetrized import symmetrized
from codiag.diagonalize._two_sided import TwoSided
from codiag.diagonalize._uwedge import UWEDGE

__all__ = [
    "LUJ1D",
    "QRJ1D",
    "UWEDGE",
    "Diagonalization",
    "Diagonalizer",
    "Iterate",
    "JDi",
    "Jacobi",
    "OrthogonalNewton",
    "TwoSided",
    "joint_diagonalize",
    "symmetrized",
]
