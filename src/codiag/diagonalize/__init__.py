"""Joint diagonalization: configured methods to call with a stack of matrices.

Given ``matrices[l] = A diag(d_l) A^T + noise``, find the common factor A (or A and B, where matrices are not
symmetric).

================== =============================== ========================================================
Method             Factors                         When to use it
================== =============================== ========================================================
`UWEDGE`           any, symmetric matrices         By default: a handful of steps of one matrix product.
`OrthogonalNewton` orthogonal, symmetric matrices  By default with ``orthogonal=True``.
`TwoSided`         left and right, any matrices    Matrices that are not symmetric.
`Jacobi`           orthogonal, symmetric matrices  The classical rotations, for comparison.
`QRJ1D`            any, symmetric matrices         The paper's method, for comparison.
`LUJ1D`            any, symmetric matrices         Its variant without rotations.
`JDi`              any, symmetric matrices         Optimal transforms of pairs, slow.
================== =============================== ========================================================

`joint_diagonalize` chooses, calls and warns; an object called directly does the same without a warning, and both
return a `Diagonalization`. `symmetrized` makes a method for symmetric matrices one for any. To write a method of your
own, derive from `Diagonalizer` and return an `Iterate`.

Examples
--------
>>> from codiag.diagonalize import joint_diagonalize
>>> from codiag.synthetic import matrix_stack, unit_factor
>>> stack = matrix_stack(unit_factor(4, 4, seed=0), 10, noise=1e-6, seed=1)
>>> fit = joint_diagonalize(stack.matrices, seed=0)
>>> fit.factor.shape, fit.converged
((4, 4), True)
"""

from codiag.diagonalize._base import Diagonalizer, Iterate, check_method
from codiag.diagonalize._compression import Slabs, random_combinations
from codiag.diagonalize._diagonalization import Diagonalization, off_diagonal_share
from codiag.diagonalize._jacobi import Jacobi
from codiag.diagonalize._jdi import JDi
from codiag.diagonalize._joint_diagonalize import joint_diagonalize
from codiag.diagonalize._log_likelihood import most_likely
from codiag.diagonalize._orthogonal_newton import OrthogonalNewton
from codiag.diagonalize._restarts import criterion
from codiag.diagonalize._starts import real_eigenvectors
from codiag.diagonalize._symmetrized import symmetrized
from codiag.diagonalize._two_sided import TwoSided
from codiag.diagonalize._uwedge import UWEDGE
from codiag.diagonalize.comparison import LUJ1D, QRJ1D

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
