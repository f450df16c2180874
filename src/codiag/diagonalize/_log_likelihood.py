r"""Joint diagonalization of positive definite matrices by maximum likelihood.

The criterion of Pham, :math:`f(B) = \sum_l w_l \sum_i \log (D_l)_{ii} - 2 \log |\det B|` with
:math:`D_l = B M_l B^H` and weights that sum to one, is half the Kullback-Leibler divergence of the :math:`D_l` from
their diagonals, up to a constant. For :math:`B \leftarrow (I + W) B` its gradient is
:math:`g_{ij} = \sum_l w_l (D_l)_{ij} / (D_l)_{ii}`. If the :math:`D_l` are diagonal, the second derivative couples
only the two entries of a pair, and Newton's step solves :math:`h_{ij} W_{ij} + \bar W_{ji} = -g_{ij}` with
:math:`h_{ij} = \sum_l w_l (D_l)_{jj} / (D_l)_{ii}`. The same step is taken at all points, and shortened if f increases.

References
----------
D.-T. Pham, "Joint approximate diagonalization of positive definite Hermitian matrices", SIAM J. Matrix Anal. Appl.
22(4), 2000.
P. Ablin, J.-F. Cardoso and A. Gramfort, "Beyond Pham's algorithm for joint diagonalization", ESANN 2019.
"""

from __future__ import annotations

import math

from codiag._arrays import Array, array_namespace, epsilon
from codiag.diagonalize._fixed_point import Iterate, Limits, Step, find_fixed_point
from codiag.diagonalize._shears import shear


def most_likely(stack: Array, weights: Array, start: Array, tol: float, max_sweeps: int) -> Iterate:
    """Minimize f from given inverse factors; the rows keep the scale of the start.

    The matrices (n, d, d) are positive definite, real or complex; their weights (n,) sum to one.
    """
    rounding = epsilon(stack)
    trust = 0.0 if _is_complex(stack) else 0.1  # acceleration is for real matrices
    limits = Limits(max(tol, 4 * rounding), 0.0, max_sweeps, trust, slack=100 * rounding, monotone=True)
    outcome = find_fixed_point(lambda point: _step(stack, weights, point), shear, start, limits)
    return Iterate(outcome.point, outcome.point, outcome.n_sweeps, outcome.converged)


def _step(stack: Array, weights: Array, inverse: Array) -> Step:
    xp = array_namespace(stack)
    products = inverse @ stack
    diagonals = xp.sum(products * _conjugate(inverse), axis=2)
    diagonals = xp.real(diagonals) if _is_complex(stack) else diagonals
    shares = weights[:, None] / diagonals
    sums = xp.sum(shares[:, :, None] * products, axis=0)
    gradient = sums @ xp.matrix_transpose(_conjugate(inverse))
    curvature = xp.matrix_transpose(shares) @ diagonals
    gaps = curvature * xp.matrix_transpose(curvature) - 1
    resolved = gaps > 100 * epsilon(stack)  # false on the diagonal, and for pairs with proportional diagonals
    move = xp.matrix_transpose(_conjugate(gradient)) - xp.matrix_transpose(curvature) * gradient
    move = xp.where(resolved, move / xp.where(resolved, gaps, xp.ones_like(gaps)), xp.zeros_like(move))
    largest = float(xp.max(xp.abs(move)))
    merit = float(xp.sum(weights[:, None] * xp.log(diagonals)) - 2 * xp.linalg.slogdet(inverse)[1])
    merit = merit if math.isfinite(merit) else math.inf
    return Step(inverse, move, merit, largest, math.inf, math.inf)


def _is_complex(array: Array) -> bool:
    return bool(array_namespace(array).isdtype(array.dtype, "complex floating"))


def _conjugate(array: Array) -> Array:
    return array_namespace(array).conj(array) if _is_complex(array) else array
