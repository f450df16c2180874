r"""Solve the damped Gauss-Newton equations :math:`(H + \mu S) X = -g` for a step X.

H is the Gauss-Newton matrix, S its scales, :math:`\mu` the damping and g the gradient.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import is_numpy_array

from codiag._arrays import (
    Array,
    adjoint,
    array_namespace,
    conjugate,
    identity,
    moved,
    on_host,
    real_part,
    squared_magnitudes,
    to_host,
)
from codiag.least_squares._components import solve_semidefinite
from codiag.least_squares._curvature import CurvatureLike
from codiag.least_squares._tolerances import MOST_PRODUCTS, NEGLIGIBLE, ROUGHEST
from codiag.problem import Budget

DIRECT_UNKNOWNS = 300
"""Unknowns up to which the equations are solved by factorizing the matrix: faster than conjugate gradients (measured
at ranks 5 to 20); twice as many if a product visits all entries."""


class Solution(NamedTuple):
    """What conjugate gradients found.

    Attributes
    ----------
    move : array
    is_positive : bool
        Whether the matrix showed no direction of negative curvature.
    """

    move: Array
    is_positive: bool


def conjugate_gradients(
    multiply: Callable[[Array], Array],
    precondition: Callable[[Array], Array],
    right: Array,
    inner: Callable[[Array, Array], Any],
    *,
    scale: float,
    max_products: int,
    accuracy: float = ROUGHEST,
    least_accuracy: float = 0.0,
    budget: Budget | None = None,
) -> Solution:
    r"""Solve :math:`A x = b` for one right-hand side, or for a stack of independent ones at once.

    Parameters
    ----------
    multiply, precondition : callable
        From an array like `right` to A and an approximate inverse of A times it.
    right : array
        The right-hand side b.
    inner : callable
        Inner product of two arrays: a float, or an array of one for each of a stack, in a shape that broadcasts.
    scale : float
        Squared norm of the data. The equations are solved to a relative error of the root of the ratio of the squared
        norm of b, in the metric of the preconditioner, to it; between the following bounds.
    max_products : int
    accuracy, least_accuracy : float
        Upper and lower bound of the relative error.
    budget : Budget, optional
        Ends the iterations, after the first, when it is late.

    Returns
    -------
    Solution
    """
    residual, move = right, 0 * right
    direction = scaled = precondition(residual)
    size = first = inner(residual, scaled)
    target = first * _clipped(first / scale, least_accuracy**2, accuracy**2)
    for n_products in range(max_products):
        active = size > target
        if not _any(active) or (budget is not None and n_products > 0 and budget.is_late):
            break
        image = multiply(direction)
        height = inner(direction, image)
        active = active & (height > 0)
        if not _any(active):
            return Solution(move, n_products > 0)
        along = _ratio(size, height, active)
        move, residual = move + along * direction, residual - along * image
        scaled = precondition(residual)
        before, size = size, inner(residual, scaled)
        direction = scaled + _ratio(size, before, active) * direction
    return Solution(move, True)


def _any(active: Any) -> bool:
    return bool(active) if isinstance(active, bool | np.bool_) else bool(array_namespace(active).any(active))


def _clipped(value: Any, least: float, most: float) -> Any:
    return min(max(value, least), most) if isinstance(value, float) else array_namespace(value).clip(value, least, most)


def _ratio(numerator: Any, denominator: Any, active: Any) -> Any:
    """Return a ratio of numbers, or of arrays, with zero for systems that are not active any more."""
    if isinstance(numerator, float):
        return numerator / denominator if active else 0.0
    xp = array_namespace(numerator)
    return xp.where(active, numerator / xp.where(active, denominator, xp.ones_like(denominator)), 0 * numerator)


def inner_product(left: Array, right: Array) -> Any:
    """Return the real inner product of two matrices, a float, or of each pair in two stacks, shape (n, 1, 1)."""
    xp = array_namespace(left)
    products = real_part(conjugate(left) * right)
    return float(xp.sum(products)) if left.ndim == 2 else xp.sum(products, axis=(-2, -1), keepdims=True)


def damped_step(
    curvature: CurvatureLike,
    gradient: Array,
    damping: float,
    scale: float,
    max_products: int = MOST_PRODUCTS,
    least_accuracy: float = 0.0,
    budget: Budget | None = None,
) -> tuple[Array, float]:
    """Return the damped step of the unknowns that constraints leave free, and the decrease that it predicts.

    Parameters
    ----------
    curvature : CurvatureLike
    gradient : array of shape (D, k)
    damping : float
    scale : float
        Squared norm of the data.
    max_products : int
        Products with the matrix, at most.
    least_accuracy : float
        Relative error below which steps need not be solved, because the curvature is not known better.
    budget : Budget, optional
        Ends iterations early when it is late.
    """
    gradient = curvature.allowed(gradient)
    inside = _separated(curvature, gradient, damping)
    iterate = partial(conjugate_gradients, max_products=max_products, least_accuracy=least_accuracy, budget=budget)
    move = inside.to_whole(_solved(inside, damping, partial(iterate, scale=scale)))
    xp = array_namespace(move)
    shifted = damping * curvature.scales * squared_magnitudes(move)
    predicted = float(xp.sum(shifted) - xp.sum(real_part(conjugate(move) * gradient))) / 2
    return move, predicted


def _solved(equations: _Equations, damping: float, iterate: Callable[..., Solution]) -> Array:
    """Solve the damped equations: by factorizing the matrix if they are few, else by conjugate gradients."""
    curvature, gradient = equations.curvature, equations.gradient
    most = 2 * DIRECT_UNKNOWNS if curvature.visits_entries else DIRECT_UNKNOWNS
    if math.prod(gradient.shape) <= most and curvature.has_matrix:
        return solve_directly(curvature, gradient, damping)
    precondition, shift = curvature.preconditioner(damping), damping * curvature.scales
    found = iterate(lambda move: curvature.product(move) + shift * move, precondition, -gradient, inner_product)
    return found.move if found.is_positive else -precondition(gradient)


def solve_directly(curvature: CurvatureLike, gradient: Array, damping: float) -> Array:
    """Return the damped step by factorizing the matrix; of least norm if components of no weight make it singular."""
    xp = array_namespace(gradient)
    matrix, diagonal = curvature.matrix(), xp.reshape(damping * curvature.scales, (-1, 1))
    damped = curvature.within(matrix + diagonal * identity(math.prod(gradient.shape), matrix))
    right = -xp.reshape(gradient, (-1, 1))
    try:
        move = xp.linalg.solve(damped, right)
    except (np.linalg.LinAlgError, RuntimeError):  # torch's LinAlgError is a RuntimeError
        move = solve_semidefinite(damped, right)
    return xp.reshape(move, gradient.shape)


class _Equations(NamedTuple):
    """Equations to be solved, and the function that makes the whole step from their solution."""

    curvature: CurvatureLike
    gradient: Array
    to_whole: Callable[[Array], Array]


def _orthonormalized(factor: Array) -> tuple[Array, Array]:
    r"""Return Q with orthonormal columns and R, :math:`A = Q R`.

    If A is long and far from singular, they come from the eigenvalues of :math:`A^{\mathsf H} A`, which takes two
    products; columns are then orthogonal to a relative error of at most 1e-10.
    """
    if is_numpy_array(factor) and factor.shape[0] >= 4 * factor.shape[1]:
        values, vectors = np.linalg.eigh(adjoint(factor) @ factor)
        if values[0] > NEGLIGIBLE * values[-1]:
            roots = np.sqrt(values)
            return factor @ (vectors / roots), adjoint(vectors * roots)
    basis, inner = array_namespace(factor).linalg.qr(factor)
    return basis, inner


def _separated(curvature: CurvatureLike, gradient: Array, damping: float) -> _Equations:
    r"""Separate the equations in the ranges of the factors from those outside, which are solved at once.

    With :math:`A_m = Q_m R_m`, the Gauss-Newton matrix maps a move of factor m out of the range of :math:`Q_m` to its
    product with a k x k matrix alone. The rest, :math:`Q_m^\top X_m`, are the equations for the factors :math:`R_m`,
    whose number does not grow with the tensor. On an accelerator these are solved by the host.
    """
    xp = array_namespace(gradient)
    layout = curvature.layout
    factors = layout.factors(curvature.point)
    if not curvature.is_separable or all(factor.shape[0] <= factor.shape[1] for factor in factors):
        return _Equations(curvature, gradient, lambda move: move)
    bases, inner = zip(*map(_orthonormalized, factors), strict=True)
    sizes = {mode: part.shape[0] for group, part in zip(layout.groups, inner, strict=True) for mode in group}
    signs = layout.signs if layout.signs is None or on_host(gradient) else to_host(layout.signs)
    small = replace(layout, shape=tuple(sizes[mode] for mode in range(len(layout.shape))), signs=signs)

    def outward(move: Array) -> Array:
        return xp.concat([basis @ part for basis, part in zip(bases, small.factors(move), strict=True)])

    point = xp.concat(inner)
    inward = xp.concat([adjoint(basis) @ part for basis, part in zip(bases, layout.factors(gradient), strict=True)])
    outside = curvature.preconditioner(damping)(gradient - outward(inward))
    if not on_host(gradient):
        point, inward = to_host(point), to_host(inward)
    return _Equations(curvature.at(small, point), inward, lambda move: outward(moved(move, gradient)) - outside)
