"""Joint diagonalization: configured methods to call with a stack of matrices."""

from codiag.diagonalize.base import Diagonalizer
from codiag.diagonalize.diagonalization import Diagonalization
from codiag.diagonalize.jacobi import Jacobi
from codiag.diagonalize.jdi import JDi
from codiag.diagonalize.joint import joint_diagonalize
from codiag.diagonalize.newton import OrthogonalNewton
from codiag.diagonalize.qrj1d import LUJ1D, QRJ1D
from codiag.diagonalize.symmetrized import symmetrized
from codiag.diagonalize.two_sided import TwoSided
from codiag.diagonalize.uwedge import UWEDGE

__all__ = [
    "LUJ1D",
    "QRJ1D",
    "UWEDGE",
    "Diagonalization",
    "Diagonalizer",
    "JDi",
    "Jacobi",
    "OrthogonalNewton",
    "TwoSided",
    "joint_diagonalize",
    "symmetrized",
]
