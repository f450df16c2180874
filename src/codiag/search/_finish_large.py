"""The finish on a tensor that is too large to be read often: as few passes as noise allows."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from codiag._arrays import epsilon
from codiag.least_squares import (
    FIRST_DAMPING,
    NEGLIGIBLE,
    ROUNDING,
    TOLERANCE,
    Damping,
    LeastSquares,
    Limits,
    Log,
    State,
    Steps,
    evaluated,
    minimize,
    negligible_gain,
    relative_size,
)
from codiag.problem import Estimate, Problem
from codiag.reduction import Sides
from codiag.tensors import FactoredTensor

MOST_WORK = 2**26
"""Entries, times rank if they are held in memory, that the steps which follow a minimum may visit together, about a
second: a few steps are enough, unless the data fit no model."""

MOST_READS = 8
"""Passes over the tensor. One is enough if noise is small and the components lie in the ranges of the core."""


class Polished(NamedTuple):
    """The end of the steps, its squared distance from the tensor, and the share of it that the next step promises."""

    components: FactoredTensor
    squared_distance: float
    n_reads: int
    converged: bool
    promised: float = 0.0


def finish_large(problem: Problem, start: FactoredTensor, sides: Sides | None, limits: Limits, log: Log) -> Estimate:
    """Fit components to a large tensor, from a fit to its core."""
    polish_step = polish(problem, start, sides)
    log.add("polish", polish_step.n_reads, _relative_error(problem, polish_step.squared_distance))
    if polish_step.promised > NEGLIGIBLE:
        polish_step = _run_on(problem, polish_step, limits, log)
    return Estimate(polish_step.components, log.history, polish_step.converged, polish_step.squared_distance)


def _run_on(problem: Problem, polish_step: Polished, limits: Limits, log: Log) -> Polished:
    """Continue if a few passes were not enough, as for data that fit no model, while work is bounded."""
    max_reads = max(MOST_READS, MOST_WORK // problem.tensor.n_stored)
    last = minimize(problem, polish_step.components, replace(limits, max_iter=max_reads, callback=None))
    log.add("least squares on the tensor", last.n_iter, _relative_error(problem, 2 * last.objective))
    if not 2 * last.objective < polish_step.squared_distance:
        return polish_step
    return Polished(last.components, 2 * last.objective, last.n_iter, last.converged)


def polish(problem: Problem, start: FactoredTensor, sides: Sides | None, max_reads: int = MOST_READS) -> Polished:
    r"""Take Gauss-Newton steps from a fit to a core, each from the distance and the gradient of one pass.

    The first step needs no pass: the start lies in the ranges of the core, and the sides of the tensor give the
    gradient there. The rest is of second order in what the core has lost.

    Steps :math:`p_1, p_2, \dots` shrink by a rate :math:`\rho = \|p_2\| / \|p_1\|`, the ratio of the residual's
    curvature to that of the model. To the decrease :math:`\delta` that a step promises, the terms that its model omits
    add at most about :math:`\rho \delta`, and the step after it promises :math:`\rho^2 \delta`. Once the first is too
    small to be seen in the distance, and the second in the noise, the step is taken and nothing is measured any more.
    """
    objective = LeastSquares(problem, start)
    steps = Steps(objective)
    parametrization, damping, before = objective.parametrization, Damping(TOLERANCE), math.inf
    unit = epsilon(problem.tensor.reference) / epsilon(np.zeros(0))
    point, far, known = parametrization.vectorize(start), False, math.inf
    if sides is not None:
        products = sides.products(objective.products(point).factors)
        known = objective.distance_from(point, products) / 2
        far = objective.is_far(2 * known)
        state = State(point, known, objective.gradient_from(point, products))
        move, _ = steps.step(state, damping.value)
        before, point = relative_size(move, point), point + move
    state, n_reads = evaluated(objective, point, far=far), 1
    if not state.objective <= known + ROUNDING * unit * objective.squared_norm:  # factors are nearly dependent
        state, n_reads = evaluated(objective, parametrization.vectorize(start), far=far), 2
        before, damping = math.inf, Damping()
    floor = (ROUNDING * unit) ** 2 * objective.squared_norm
    while True:
        move, promised = steps.step(state, damping.value)
        size = relative_size(move, state.point)
        rate = min(size / before, 1.0) if 0 < before < math.inf else 1.0
        negligible = negligible_gain(objective) * state.objective
        if promised <= floor:
            return _end(objective, state, n_reads, converged=True)
        if rate * promised <= TOLERANCE * state.objective and rate**2 * promised <= negligible:
            end = State(state.point + move, max(state.objective - promised, 0.0), state.gradient)
            return _end(objective, end, n_reads, converged=True)
        if n_reads >= max_reads:
            ended = _end(objective, state, n_reads, converged=promised <= negligible)
            return ended._replace(promised=promised / state.objective)
        far = objective.is_far(2 * state.objective)
        trial, n_reads = evaluated(objective, state.point + move, far=far), n_reads + 1
        if trial.objective < state.objective:
            damping.accept((state.objective - trial.objective) / promised)
            state, before = trial, size
        else:  # the step was too long for the model, or gained only rounding
            damping = Damping(max(2 * damping.value, FIRST_DAMPING))


def _end(objective: LeastSquares, state: State, n_reads: int, *, converged: bool) -> Polished:
    return Polished(objective.parametrization.components(state.point), 2 * state.objective, n_reads, converged)


def _relative_error(problem: Problem, squared_distance: float) -> float:
    return math.sqrt(max(squared_distance, 0.0) / problem.data.squared_norm)
