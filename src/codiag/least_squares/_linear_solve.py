r"""Conjugate gradients for the equations of a step, in any array library.

Damped Gauss-Newton equations, parted into those inside and outside of the ranges of the factors.

Moves of a factor out of the range of its own columns mix with no others: with :math:`A_m = Q_m R_m` the Gauss-Newton
matrix maps such a part of :math:`X_m` to its product with :math:`\Gamma_m` alone. The rest, :math:`Q_m^\top X_m`, is
the same problem for the factors :math:`R_m`, whose number of unknowns does not grow with the tensor.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from codiag._arrays import Array, array_namespace, identity, moved, on_host, to_host
from codiag.least_squares._curvature import Curvature, CurvatureLike, SharedCurvature
from codiag.least_squares._small_numpy import MOST_PRODUCTS


def conjugate_gradients(
    curvature: CurvatureLike,
    slope: Array,
    damping: float,
    scale: float,
    *,
    strict: bool = False,
    least: float = 0.0,
    most: float = 0.1,
    n_products: int = MOST_PRODUCTS,
) -> Array | None:
    """Solve (H + damping) X = -slope, the more exactly the smaller the slope, to a relative error between two bounds.

    None where H has a negative direction, and if strict where it takes many steps.
    """
    xp = array_namespace(slope)
    precondition, damped = curvature.preconditioner(damping), damping * curvature.scales
    residual, move = -slope, xp.zeros_like(slope)
    direction = scaled = precondition(residual)
    size = first = float(xp.sum(residual * scaled))
    target = max(min(most, math.sqrt(max(first, 0.0) / scale)), least) ** 2 * first
    for step in range(n_products):
        if not size > max(target, 1e-300):
            break
        if strict and step >= 60:
            return None
        image = curvature.product(direction) + damped * direction
        height = float(xp.sum(direction * image))
        if not height > 0:
            return None if curvature.exact or step == 0 else move  # a Gauss-Newton matrix has none but by rounding
        along = size / height
        move, residual = move + along * direction, residual - along * image
        scaled = precondition(residual)
        before, size = size, float(xp.sum(residual * scaled))
        direction = scaled + (size / before) * direction
    return move


class Equations(NamedTuple):
    """What is to be solved, (H + damping S) X = -slope with S the scales of H, and what makes of X the whole step."""

    curvature: CurvatureLike
    slope: Array
    outward: Callable[[Array], Array]


def coupled(curvature: CurvatureLike, slope: Array, damping: float) -> Equations:
    """Return the equations that must be solved together, on the host where an accelerator has little to do for them.

    With constraints, holes or second derivatives, and where factors have no more rows than columns, that is all.
    """
    xp = array_namespace(slope)
    if not isinstance(curvature, Curvature | SharedCurvature) or curvature.exact:
        return Equations(curvature, slope, lambda move: move)
    if all(part.shape[0] <= part.shape[1] for part in curvature.layout.factors(curvature.point)):
        return Equations(curvature, slope, lambda move: move)
    layout = curvature.layout
    bases, inner = zip(*(xp.linalg.qr(factor) for factor in layout.factors(curvature.point)), strict=True)
    sizes = {mode: part.shape[0] for group, part in zip(layout.groups, inner, strict=True) for mode in group}
    signs = layout.signs if layout.signs is None or on_host(slope) else to_host(layout.signs)
    small = replace(layout, shape=tuple(sizes[mode] for mode in range(len(layout.shape))), signs=signs)

    def outward(move: Array) -> Array:
        return xp.concat([basis @ part for basis, part in zip(bases, small.factors(move), strict=True)])

    point = xp.concat(inner)
    turned = xp.concat([basis.T @ part for basis, part in zip(bases, layout.factors(slope), strict=True)])
    outside = curvature.preconditioner(damping)(slope - outward(turned))
    if not on_host(slope):
        point, turned = to_host(point), to_host(turned)
    return Equations(type(curvature)(small, point), turned, lambda move: outward(moved(move, slope)) - outside)


def solve_directly(curvature: CurvatureLike, slope: Array, damping: float) -> Array:
    """Return the step X with (H + damping S) X = -slope, by writing the matrix down."""
    xp = array_namespace(slope)
    matrix, diagonal = curvature.matrix(), xp.reshape(damping * curvature.scales, (-1, 1))
    damped = matrix + diagonal * identity(math.prod(slope.shape), matrix)
    return xp.reshape(xp.linalg.solve(damped, -xp.reshape(slope, (-1, 1))), slope.shape)
