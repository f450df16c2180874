r"""What a fit would lose with a component, once all others have followed.

A component may look indispensable and be superfluous: of a tensor with two components in the ranges of two vectors a
mode there is a whole family of fits with three. Without one of the three, the two others must turn to take over, which
the best weights for them do not tell, but a Gauss-Newton step does.

With J the derivative of the model, :math:`t_i = J x_i`, where :math:`x_i` holds the factors of component i over the
order of the tensor: what its removal adds to the gradient is :math:`-J^\top J x_i`, without a pass over the tensor. The
Gauss-Newton matrix of the others is a part of that of all, so that the steps for all removals are sought at once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from codiag._array import Array, array_namespace, identity, pick, to_host
from codiag._problem import Problem
from codiag.methods.least_squares._conjugate_gradients import conjugate_gradients
from codiag.methods.least_squares._curvature import Curvature
from codiag.methods.least_squares._gauss_newton import State, evaluated
from codiag.methods.least_squares._objective import LeastSquares
from codiag.methods.least_squares._restricted import Restricted
from codiag.tensors import FactoredTensor

DAMPING = 1e-3
"""Damping of the steps: the others are to follow as far as a step is to be trusted."""

STEPS, EXACT = 12, 1e-4
"""Conjugate gradients for each component at most, and the relative error at which they end: what is left of a component
is a small difference of large numbers."""

AT_ONCE = 2**17
"""Unknowns in all steps that are sought at once: what fits into a cache."""


def objectives_without(problem: Problem, components: FactoredTensor, places: Sequence[int] | None = None) -> np.ndarray:
    """Return the objective that a fit would have without each component, as a damped step of the others predicts it.

    Where only some components are in question, it is infinite without others.
    """
    whole = LeastSquares(problem, components)
    state = evaluated(whole, whole.layout.pack(components, balanced=not problem.constraints))
    curvature = whole.curvature(state.point)
    asked = list(range(components.rank)) if places is None else list(places)
    found = np.full(components.rank, np.inf)
    if not isinstance(curvature, Curvature) or problem.constraints is not None:
        found[asked] = [_without(whole, state, components, place) for place in asked]
        return found
    alone, count = identity(components.rank, state.point), max(1, AT_ONCE // math.prod(state.point.shape))
    for first in range(0, len(asked), count):
        some = asked[first : first + count]
        found[some] = _all_without(curvature, state, pick(alone, some, 0)[:, None, :], whole.total)
    return found


def _all_without(curvature: Curvature, state: State, alone: Array, total: float) -> np.ndarray:
    """Return the objectives without some components, which rows of the identity (n, 1, k) tell."""
    order = len(curvature.layout.shape)
    taken = state.point[None, :, :] * alone / order
    images = curvature.product(taken)
    slopes = (state.gradient[None, :, :] - images) * (1 - alone)
    moves = _moves(curvature, slopes, alone, total)
    without = state.objective - _dots(taken, state.gradient[None, :, :]) + _dots(taken, images) / 2
    return to_host(without + _dots(moves, slopes) + _dots(moves, curvature.product(moves)) / 2)


def _moves(curvature: Curvature, slopes: Array, alone: Array, total: float) -> Array:
    """Return damped steps of the others for each slope, by as many conjugate gradients side by side."""
    xp, kept, damped = array_namespace(slopes), 1 - alone, DAMPING * curvature.scales
    precondition = _Preconditioner(curvature, alone)
    residual, moves = -slopes, xp.zeros_like(slopes)
    direction = scaled = precondition(residual)
    size = first = _dots(residual, scaled)
    target = first * xp.clip(first / total, 1e-300, EXACT**2)
    for _ in range(STEPS):
        image = curvature.product(direction) * kept + damped * direction
        height = _dots(direction, image)
        going = (size > target) & (height > 0)
        if not bool(xp.any(going)):
            break
        along = xp.where(going, size / xp.where(going, height, xp.ones_like(height)), xp.zeros_like(size))
        moves, residual = moves + along[:, None, None] * direction, residual - along[:, None, None] * image
        scaled = precondition(residual)
        before, size = size, _dots(residual, scaled)
        share = xp.where(going, size / xp.where(going, before, xp.ones_like(before)), xp.zeros_like(size))
        direction = scaled + share[:, None, None] * direction
    return moves


class _Preconditioner:
    """The damped first term of the matrix, inverted without a row and a column: the inverse of all, less a product."""

    def __init__(self, curvature: Curvature, alone: Array) -> None:
        xp = array_namespace(alone)
        self._layout, self._alone, self._inverses = curvature.layout, alone, curvature.inverses(DAMPING)
        self._rows = [
            alone @ inverse / xp.sum(alone * xp.linalg.diagonal(inverse), axis=-1, keepdims=True)
            for inverse in self._inverses
        ]

    def __call__(self, moves: Array) -> Array:
        xp, parts = array_namespace(moves), []
        for part, inverse, row in zip(self._layout.factors(moves), self._inverses, self._rows, strict=True):
            image = part @ inverse
            parts.append(image - xp.sum(image * self._alone, axis=-1, keepdims=True) * row)
        return parts[0] if len(parts) == 1 else xp.concat(parts, axis=-2)


def _dots(left: Array, right: Array) -> Array:
    """Return the inner products of matrices, one for each in two stacks."""
    return array_namespace(left).sum(left * right, axis=(-2, -1))


def _without(whole: LeastSquares, state: State, components: FactoredTensor, place: int) -> float:
    """Return the objective without one component, under any constraints and with whatever was observed."""
    xp, curvature = array_namespace(state.point), whole.curvature(state.point)
    move = state.point * identity(components.rank, state.point)[place, :] / whole.tensor.order
    image = curvature.product(move)
    without = state.objective - float(xp.sum(move * state.gradient)) + float(xp.sum(move * image)) / 2
    others = [other for other in range(components.rank) if other != place]
    left = LeastSquares(replace(whole.problem, rank=components.rank - 1), components.columns(others))
    return without - _gain(left, pick(state.point, others, 1), pick(state.gradient - image, others, 1))


def _gain(objective: LeastSquares, point: Array, slope: Array) -> float:
    """Return by how much a damped step lowers the objective, as far as the Gauss-Newton matrix tells."""
    xp = array_namespace(point)
    curvature = objective.restricted(objective.curvature(point), slope)
    slope = curvature.allowed(slope) if isinstance(curvature, Restricted) else slope
    move = conjugate_gradients(curvature, slope, DAMPING, objective.total, most=EXACT, n_products=STEPS)
    if move is None:
        return 0.0
    return -float(xp.sum(move * slope)) - float(xp.sum(move * curvature.product(move))) / 2
