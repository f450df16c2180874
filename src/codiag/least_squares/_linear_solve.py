r"""Solve the damped Gauss-Newton equations :math:`(H + \mu S) X = -g` for a step X.

H is the Gauss-Newton matrix, S its scales, :math:`\mu` the damping and g the gradient.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import is_numpy_array
from scipy.linalg import lapack

from codiag._arrays import (
    Array,
    array_namespace,
    conjugate,
    identity,
    is_complex,
    real_part,
    squared_magnitudes,
)
from codiag.least_squares._budget import Budget
from codiag.least_squares._components import solve_semidefinite
from codiag.least_squares._operators import CurvatureOperator, Separation
from codiag.least_squares._tolerances import MOST_PRODUCTS, ROUGHEST

DIRECT_UNKNOWNS = 300
"""Unknowns up to which the equations are solved by factorizing the matrix: faster than conjugate gradients (measured
at ranks 5 to 20); six times as many if a product visits all entries."""


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
    negligible: float = 0.0,
    beside: float = 0.0,
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
    negligible : float
        Squared error, in the metric of the preconditioner, that is always small enough.
    beside : float
        Squared norm of the part of b that is solved for elsewhere: errors are relative to the whole.
    budget : Budget, optional
        Ends the iterations, after the first, when it is late.

    Returns
    -------
    Solution
    """
    residual, move = right, 0 * right
    direction = scaled = precondition(residual)
    size = inner(residual, scaled)
    whole = size + beside
    target = _clipped(whole * _clipped(whole / scale, least_accuracy**2, accuracy**2), negligible, math.inf)
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
    if left.ndim == 2 and is_numpy_array(left):
        return float(np.vdot(left, right).real)
    xp = array_namespace(left)
    products = real_part(conjugate(left) * right)
    return float(xp.sum(products)) if left.ndim == 2 else xp.sum(products, axis=(-2, -1), keepdims=True)


def damped_step(
    curvature: CurvatureOperator,
    gradient: Array,
    damping: float,
    scale: float,
    max_products: int = MOST_PRODUCTS,
    least_accuracy: float = 0.0,
    negligible: float = 0.0,
    budget: Budget | None = None,
) -> tuple[Array, float]:
    """Return the damped step of the unknowns that constraints leave free, and the decrease that it predicts.

    Parameters
    ----------
    curvature : CurvatureOperator
        At the point.
    gradient : array of shape (D, k)
        The gradient there.
    damping : float
        Multiple of the scales that is added to the diagonal.
    scale : float
        Accuracy of the solution grows as the gradient falls, relative to this.
    max_products : int
        Products with the matrix, at most.
    least_accuracy : float
        Accuracy that is always enough, if the matrix is not known better.
    negligible : float
        Error of the components that is always small enough, relative to the root of `scale`.
    budget : Budget, optional
        Ends the solution early if it is late.

    Returns
    -------
    move : array of shape (D, k)
        The step.
    predicted : float
        The decrease of the objective, if it were quadratic.
    """
    gradient = curvature.project(gradient)
    iterate = partial(
        conjugate_gradients,
        scale=scale,
        max_products=max_products,
        least_accuracy=least_accuracy,
        negligible=negligible**2 * scale,
        budget=budget,
    )
    if curvature.separation is None:
        move = _solved(curvature, gradient, damping, iterate)
    else:
        move = _solved_by_ranges(curvature, curvature.separation, gradient, damping, iterate)
    xp = array_namespace(move)
    shifted = float(xp.sum(curvature.scales * squared_magnitudes(move)))
    return move, (damping * shifted - inner_product(move, gradient)) / 2


def _solved_by_ranges(
    curvature: CurvatureOperator,
    separation: Separation,
    gradient: Array,
    damping: float,
    iterate: Callable[..., Solution],
) -> Array:
    """Solve the damped equations in the ranges of the factors, and those outside of them at once."""
    inward = separation.inward(curvature.parametrization.factors(gradient))
    rest = gradient - _joined(separation.outward(inward))
    outside = curvature.preconditioner(damping)(rest)
    iterate = partial(iterate, beside=inner_product(rest, outside))
    solved = _solved(separation.inside, _joined(inward), damping, iterate)
    return _joined(separation.outward(separation.inside.parametrization.factors(solved))) - outside


def _joined(parts: Sequence[Array]) -> Array:
    return parts[0] if len(parts) == 1 else array_namespace(parts[0]).concat(list(parts))


def _solved(curvature: CurvatureOperator, gradient: Array, damping: float, iterate: Callable[..., Solution]) -> Array:
    """Solve the damped equations: by factorizing the matrix if they are few, else by conjugate gradients."""
    most = 6 * DIRECT_UNKNOWNS if curvature.visits_entries else DIRECT_UNKNOWNS
    if curvature.n_free <= most and curvature.has_matrix:
        return solve_directly(curvature, gradient, damping)
    precondition, shift = curvature.preconditioner(damping), damping * curvature.scales
    found = iterate(lambda move: curvature.product(move) + shift * move, precondition, -gradient, inner_product)
    return found.move if found.is_positive else -precondition(gradient)


def solve_directly(curvature: CurvatureOperator, gradient: Array, damping: float) -> Array:
    """Return the damped step by factorizing the matrix; of least norm if components of no weight make it singular."""
    xp = array_namespace(gradient)
    matrix, free = curvature.free_matrix()
    right = -xp.reshape(gradient, (-1,))[free]
    diagonal = xp.reshape(damping * curvature.scales, (-1,))[free]
    damped, rows = _with_diagonal(matrix, diagonal), curvature.parametrization.independent_rows
    matrix = curvature.project_matrix(damped)
    is_whole = matrix is damped and isinstance(free, slice) and is_numpy_array(matrix)
    if rows is not None and is_whole and 2 * matrix.shape[0] > DIRECT_UNKNOWNS:
        return xp.reshape(_without_rows(matrix, right, rows, gradient.shape[1]), gradient.shape)
    move = _positive_solution(matrix, right)
    if not isinstance(free, slice):
        whole = np.zeros(math.prod(gradient.shape), move.dtype)
        whole[free] = move
        move = whole
    return xp.reshape(move, gradient.shape)


def _without_rows(matrix: np.ndarray, right: np.ndarray, rows: slice, rank: int) -> np.ndarray:
    """Solve equations by eliminating the rows of one factor, which have no terms in common."""
    inside, n_rows = slice(rows.start * rank, rows.stop * rank), rows.stop - rows.start
    is_other = np.ones(len(right), dtype=bool)
    is_other[inside] = False
    own = matrix[inside, inside].reshape(n_rows, rank, n_rows, rank)[range(n_rows), :, range(n_rows)]
    cross = matrix[inside][:, is_other]
    sides = np.concatenate([cross, right[inside, None]], axis=1).reshape(n_rows, rank, -1)
    try:
        solved = np.linalg.solve(own, sides).reshape(n_rows * rank, -1)
    except np.linalg.LinAlgError:  # a component is zero
        return np.asarray(_positive_solution(matrix, right))
    products = conjugate(cross).T @ solved
    remaining = matrix[is_other][:, is_other] - products[:, :-1]
    moves = np.empty_like(right)
    moves[is_other] = _positive_solution(remaining, right[is_other] - products[:, -1])
    moves[inside] = solved[:, -1] - solved[:, :-1] @ moves[is_other]
    return moves


def _with_diagonal(matrix: Array, values: Array) -> Array:
    """Return a matrix with values added to its diagonal."""
    if not is_numpy_array(matrix):
        return matrix + values[:, None] * identity(matrix.shape[0], matrix)
    changed = matrix.copy()
    changed.reshape(-1)[:: matrix.shape[0] + 1] += values
    return changed


def _positive_solution(matrix: Array, right: Array) -> Array:
    """Return the solution of equations whose matrix should be positive definite."""
    if is_numpy_array(matrix) and matrix.size > 0:
        solve = lapack.zposv if is_complex(matrix) else lapack.dposv
        _, found, failed = solve(matrix.T, conjugate(right), lower=0)  # transposed, a matrix in the order of Fortran
        if failed == 0:
            return np.asarray(conjugate(found))
    try:
        return array_namespace(matrix).linalg.solve(matrix, right[:, None])[:, 0]
    except (np.linalg.LinAlgError, RuntimeError):  # torch's LinAlgError is a RuntimeError
        return solve_semidefinite(matrix, right)
