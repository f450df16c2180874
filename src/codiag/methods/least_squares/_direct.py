r"""Damped Gauss-Newton equations, solved directly.

Moves of a factor out of the range of its own columns mix with no others: with :math:`A_m = Q_m R_m` the Gauss-Newton
matrix maps such a part of :math:`X_m` to its product with :math:`\Gamma_m` alone. The rest, :math:`Q_m^\top X_m`, is
the same problem for the factors :math:`R_m`, whose number of unknowns does not grow with the tensor.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TypeGuard

from codiag._array import Array, array_namespace, identity
from codiag.methods.least_squares._curvature import Curvature, SharedCurvature
from codiag.methods.least_squares._restricted import CurvatureLike


def n_coupled(curvature: CurvatureLike) -> int:
    """Return the number of unknowns whose equations must be solved together."""
    if not _parts(curvature):
        return math.prod(curvature.point.shape)
    return int(curvature.point.shape[1]) * sum(
        min(factor.shape) for factor in curvature.layout.factors(curvature.point)
    )


def solve_directly(curvature: CurvatureLike, slope: Array, damping: float) -> Array:
    """Return the step X with (H + damping S) X = -slope, S being the scales of H."""
    if not _parts(curvature) or n_coupled(curvature) == math.prod(slope.shape):
        return _solve(curvature, slope, damping)
    xp = array_namespace(slope)
    layout = curvature.layout
    bases, inner = zip(*(xp.linalg.qr(factor) for factor in layout.factors(curvature.point)), strict=True)
    sizes = {mode: part.shape[0] for group, part in zip(layout.groups, inner, strict=True) for mode in group}
    small = replace(layout, shape=tuple(sizes[mode] for mode in range(len(layout.shape))))

    def outward(move: Array) -> Array:
        return xp.concat([basis @ part for basis, part in zip(bases, small.factors(move), strict=True)])

    turned = xp.concat([basis.T @ part for basis, part in zip(bases, layout.factors(slope), strict=True)])
    inside = _solve(type(curvature)(small, xp.concat(inner)), turned, damping)
    return outward(inside) - curvature.preconditioner(damping)(slope - outward(turned))


def _parts(curvature: CurvatureLike) -> TypeGuard[Curvature | SharedCurvature]:
    """Tell whether moves part into those inside and outside of ranges: no constraints, no holes, no residual."""
    return isinstance(curvature, Curvature | SharedCurvature) and not curvature.exact


def _solve(curvature: CurvatureLike, slope: Array, damping: float) -> Array:
    xp = array_namespace(slope)
    matrix, diagonal = curvature.matrix(), xp.reshape(damping * curvature.scales, (-1, 1))
    damped = matrix + diagonal * identity(matrix.shape[0], matrix)
    return xp.reshape(xp.linalg.solve(damped, -xp.reshape(slope, (-1, 1))), slope.shape)
