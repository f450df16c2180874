"""Joint diagonalization: configured methods to call with a stack of matrices.

Given ``matrices[l] = A diag(d_l) A^T + noise``, find the common factor A; or A and B if the matrices are
``A diag(d_l) B^T + noise``. Matrices may be complex: Hermitian ones are ``A diag(d_l) A^H`` with real diagonals, those
that are symmetric ``A diag(d_l) A^T`` with complex ones. Every method takes both, except `JDi`, which takes Hermitian
ones only.

================== =============================== ========================================================
Method             Factors                         When to use it
================== =============================== ========================================================
`UWEDGE`           any, symmetric matrices         The default: a few steps of one matrix product each.
`OrthogonalNewton` orthogonal, symmetric matrices  The default with ``orthogonal=True``.
`TwoSided`         left and right, any matrices    For matrices that are not symmetric.
`Jacobi`           orthogonal, symmetric matrices  The classical rotations, for comparison.
`QRJ1D`            any, symmetric matrices         The paper's method, for comparison.
`LUJ1D`            any, symmetric matrices         The variant of `QRJ1D` without rotations.
`JDi`              any, symmetric matrices         Optimal transformations of pairs; slow.
================== =============================== ========================================================

`codiag.joint_diagonalize` chooses a method, calls it, and warns if it did not converge. A method can also be called
directly, without a warning; both return a `codiag.Diagonalization`. To write a method, derive from
`codiag.extending.Diagonalizer`.

Examples
--------
>>> from codiag import joint_diagonalize
>>> from codiag.synthetic import matrix_stack, unit_factor
>>> stack = matrix_stack(unit_factor(4, 4, rng=0), 10, noise=1e-6, rng=1)
>>> fit = joint_diagonalize(stack.matrices, rng=0)
>>> fit.factor.shape, fit.converged
((4, 4), True)
"""

from codiag._checks import public_names
from codiag.diagonalize._base import Diagonalizer, check_method
from codiag.diagonalize._diagonalization import Diagonalization
from codiag.diagonalize._fixed_point import Iterate, Step, criterion
from codiag.diagonalize._jacobi import Jacobi, round_robin
from codiag.diagonalize._joint_diagonalize import joint_diagonalize
from codiag.diagonalize._orthogonal_newton import OrthogonalNewton
from codiag.diagonalize._pair_sweeps import LUJ1D, QRJ1D, JDi, shear_sweep
from codiag.diagonalize._rotations import QuadraticModel, rotate
from codiag.diagonalize._shears import most_likely, shear, shear_step
from codiag.diagonalize._stack import MatrixStack, random_combinations
from codiag.diagonalize._starts import pencil_start, real_eigenvectors
from codiag.diagonalize._two_sided import TwoSided
from codiag.diagonalize._uwedge import UWEDGE

__all__ = ["LUJ1D", "QRJ1D", "UWEDGE", "JDi", "Jacobi", "OrthogonalNewton", "TwoSided"]

__dir__ = public_names(__all__)
