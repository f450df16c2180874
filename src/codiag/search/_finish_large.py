"""The last steps of a fit, on a tensor too large to be read at leisure."""

from __future__ import annotations

import math
from typing import NamedTuple

from codiag._arrays import epsilon
from codiag.least_squares import (
    ROUNDING,
    LeastSquares,
    State,
    evaluated,
    gauss_newton_step,
    negligible_gain,
    relative_size,
)
from codiag.problem import Problem
from codiag.reduction import Sides
from codiag.tensors import FactoredTensor

MOST_READS = 8
"""Passes over the tensor; one is enough where noise is small and the components lie in the ranges that were found."""

ACCURATE = 1e-9
"""Share of the squared distance up to which it need not be measured where a step has led, but is predicted."""


REFUSED = 1e-4
"""Damping after a step that was too long."""


class Polished(NamedTuple):
    """Where the steps ended, the squared distance from the tensor there, and the share of it that the next promises."""

    components: FactoredTensor
    squared_distance: float
    n_reads: int
    converged: bool
    promised: float = 0.0


def polish(problem: Problem, start: FactoredTensor, sides: Sides | None, max_reads: int = MOST_READS) -> Polished:
    r"""Take Gauss-Newton steps from a fit to a core, each from the distance and the gradient that one pass gives.

    The first step needs no pass: the start lies in the ranges of the core, and sides of the tensor give the gradient
    there. What it leaves is of second order in what the core lost.

    Steps :math:`p_1, p_2, \dots` shrink by a rate :math:`\rho = \|p_2\| / \|p_1\|`, that of the residual's curvature to
    that of the model: to the decrease :math:`\delta` that a step promises, the terms that its model leaves out add at
    most about :math:`\rho \delta`, and the step after it promises :math:`\rho^2 \delta`. Once the first is too small to
    be seen in the distance, and the second in the noise, the step is taken and nothing measured any more.
    """
    objective = LeastSquares(problem, start)
    layout, damping, before, n_reads = objective.layout, 1e-12, math.inf, 0
    point, far, known = layout.pack(start), False, math.inf
    if sides is not None:
        products = sides.products(objective.products(point).factors)
        known = objective.distance_from(point, products) / 2
        far = objective.is_far(2 * known)
        slope = objective.gradient_from(point, products)
        move, _ = gauss_newton_step(objective, objective.curvature(point), slope, damping)
        before, point = relative_size(move, point), point + move
    state, n_reads = evaluated(objective, point, far=far), 1
    if not state.objective <= known + ROUNDING * objective.total:  # too far for the model: factors are nearly dependent
        state, n_reads = evaluated(objective, layout.pack(start), far=far), 2
        before, damping = math.inf, REFUSED
    floor = max(ROUNDING, 10 * epsilon(problem.tensor.reference)) ** 2 * objective.total
    while True:
        move, promised = gauss_newton_step(objective, objective.curvature(state.point), state.gradient, damping)
        size = relative_size(move, state.point)
        rate = min(size / before, 1.0) if 0 < before < math.inf else 1.0
        if promised <= floor:
            return _end(objective, state, n_reads, converged=True)
        if (
            rate * promised <= ACCURATE * state.objective
            and rate**2 * promised <= negligible_gain(objective) * state.objective
        ):
            end = State(state.point + move, max(state.objective - promised, 0.0), state.gradient)
            return _end(objective, end, n_reads, converged=True)
        if n_reads >= max_reads:
            settled = promised <= negligible_gain(objective) * state.objective
            ended = _end(objective, state, n_reads, converged=settled)
            return ended._replace(promised=promised / state.objective)
        far = objective.is_far(2 * state.objective)
        trial, n_reads = evaluated(objective, state.point + move, far=far), n_reads + 1
        if trial.objective < state.objective:
            state, before, damping = trial, size, max(damping / 10, 1e-12)
        else:  # too far for the model, or rounding
            damping = max(10 * damping, REFUSED)


def _end(objective: LeastSquares, state: State, n_reads: int, *, converged: bool) -> Polished:
    return Polished(objective.layout.components(state.point), 2 * state.objective, n_reads, converged)
