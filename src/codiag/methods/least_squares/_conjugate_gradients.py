"""Conjugate gradients for the equations of a step, in any array library."""

from __future__ import annotations

import math

from codiag._array import Array, array_namespace
from codiag.methods.least_squares._host_steps import MOST_PRODUCTS
from codiag.methods.least_squares._restricted import CurvatureLike


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
