r"""What a fit would lose with a component, once all others have followed.

A component may look indispensable and be superfluous: of a tensor with two components in the ranges of two vectors a
mode there is a whole family of fits with three. Without one of the three, the two others must turn to take over, which
the best weights for them do not tell, but a Gauss-Newton step does.

With J the derivative of the model, :math:`t_i = J x_i`, where :math:`x_i` holds the factors of component i over the
order of the tensor: what its removal adds to the gradient is :math:`-J^\top J x_i`, without a pass over the tensor.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from codiag._array import Array, array_namespace, identity, pick
from codiag._problem import Problem
from codiag.methods.least_squares._gauss_newton import conjugate_gradients, evaluated
from codiag.methods.least_squares._objective import LeastSquares
from codiag.methods.least_squares._restricted import Restricted
from codiag.tensors import FactoredTensor

DAMPING = 1e-3
"""Damping of the steps: the others are to follow as far as a step is to be trusted."""

STEPS, EXACT = 12, 1e-4
"""Conjugate gradients for each component at most, and the relative error at which they end: what is left of a component
is a small difference of large numbers."""


def objectives_without(problem: Problem, components: FactoredTensor) -> np.ndarray:
    """Return the objective that a fit would have without each component, as a damped step of the others predicts it."""
    whole = LeastSquares(problem, components)
    xp = array_namespace(components.weights)
    balanced = not problem.constraints
    state = evaluated(whole, whole.layout.pack(components, balanced=balanced))
    curvature, alone = whole.curvature(state.point), identity(components.rank, state.point)
    fewer = replace(problem, rank=components.rank - 1)
    found = np.empty(components.rank)
    for place in range(components.rank):
        move = state.point * alone[place, :] / whole.tensor.order
        image = curvature.product(move)
        without = state.objective - float(xp.sum(move * state.gradient)) + float(xp.sum(move * image)) / 2
        others = [other for other in range(components.rank) if other != place]
        left = LeastSquares(fewer, components.columns(others))
        found[place] = without - _gain(left, pick(state.point, others, 1), pick(state.gradient - image, others, 1))
    return found


def _gain(objective: LeastSquares, point: Array, slope: Array) -> float:
    """Return by how much a damped step lowers the objective, as far as the Gauss-Newton matrix tells."""
    xp = array_namespace(point)
    curvature = objective.restricted(objective.curvature(point), slope)
    slope = curvature.allowed(slope) if isinstance(curvature, Restricted) else slope
    move = conjugate_gradients(curvature, slope, DAMPING, objective.total, most=EXACT, n_products=STEPS)
    if move is None:
        return 0.0
    return -float(xp.sum(move * slope)) - float(xp.sum(move * curvature.product(move))) / 2
