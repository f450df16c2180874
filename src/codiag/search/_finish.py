"""The finish of a fit: from a rough minimum on the core to a minimum on the whole tensor, for every problem."""

from __future__ import annotations

import math
from dataclasses import replace

from codiag._arrays import Array, Extrapolation, array_namespace, few_threads, squared_magnitudes
from codiag.constraints import Ridge
from codiag.least_squares import (
    BRIEF,
    BRIEF_SWEEPS,
    ROUGH,
    SLOW,
    TOLERANCE,
    LeastSquares,
    Limits,
    Outcome,
    Steps,
    minimize,
    minimize_with_estimates,
    objective_of,
    relative_size,
    steps_for,
)
from codiag.problem import LEAST_SECONDS, Estimate, Log, Problem, largest_product, step_seconds
from codiag.reduction import Reduction
from codiag.search._end import End
from codiag.search._finish_large import MOST_WORK, finish_large
from codiag.search._saddles import leave_saddles
from codiag.search._swaps import swapped
from codiag.tensors import FactoredTensor, Tensor

RIDGE_SHARES = (1e-3, 1e-4, 1e-5, 1e-6)
"""Costs of the ridges, relative to the objective, on the path for components that run off. The first one may lose
components that are worth less; the last one ends within a millionth of the objective."""


def finish(problem: Problem, space: Reduction, end: End, limits: Limits, log: Log, max_swaps: int) -> Estimate:
    """Minimize on the core, return to the tensor, and minimize there what the core has lost.

    Swaps there are work of the search, which has the budget of the log; the rest is limited by `limits` alone.
    """
    rest = replace(limits, max_sweeps=max(limits.max_sweeps - end.outcome.n_sweeps, 0))
    known, outcome = settled(space.problem.with_loss(problem.loss), end.outcome, rest, log)
    if space.is_complete:
        outcome = outcome if limits.is_stopped else last_steps(known, outcome)
        return Estimate(space.to_tensor(outcome.components), log.stages, outcome.converged, loss=known.loss)
    components = space.to_tensor(outcome.components)
    if limits.is_stopped:
        return Estimate(components, log.stages, outcome.converged)
    with few_threads(largest_product(problem)):
        if space.dense is None:
            return finish_large(problem, components, space.sides, limits, log)
        return _polished(space.uncompressed(), components, limits, log, max_swaps)


def _polished(whole: Reduction, components: FactoredTensor, limits: Limits, log: Log, max_swaps: int) -> Estimate:
    """Minimize on a whole tensor that is small, from a minimum on its core."""
    n_sweeps = min(limits.max_sweeps, max(BRIEF_SWEEPS, _affordable(whole.problem)))
    unwatched = replace(limits, watch=None, max_sweeps=n_sweeps)
    start = Outcome(whole.to_core(components), math.inf, 0, False)
    _, outcome = settled(whole.problem, start, unwatched, log, "polish")
    better, n_swaps = swapped(End(whole.problem, outcome), max_swaps, log.budget)
    if n_swaps > 0:
        _, outcome = settled(whole.problem, better.outcome, unwatched, log, f"polish, {n_swaps} components swapped")
    outcome = last_steps(whole.problem, outcome)
    return Estimate(whole.to_tensor(outcome.components), log.stages, outcome.converged)


def settled(problem: Problem, start: Outcome, limits: Limits, log: Log, name: str = "") -> tuple[Problem, Outcome]:
    """Minimize to the end: along a path of ridges if components run off, and past saddle points.

    Numbers that the loss leaves open are estimated in turn; the problem with them is returned, too.
    """
    known, outcome = minimize_with_estimates(problem, start.components, limits, BRIEF_SWEEPS)
    outcome = leave_saddles(known, bounded(known, outcome), limits)
    objective, flops = objective_of(known), step_flops(problem.tensor, problem.rank) * outcome.n_sweeps
    error = objective.relative_error(outcome.components, outcome.objective)
    log.add(name or objective.steps_name, outcome.n_sweeps, error, flops)
    return known, outcome


def bounded(problem: Problem, outcome: Outcome) -> Outcome:
    r"""Follow the minima of ever weaker ridges if components run off to infinity; the end is not converged.

    Without a best fit, weights grow without end while the objective falls by ever less. With a ridge
    :math:`\tfrac\lambda2 \sum_m \|A_m\|^2` there is a minimum for every :math:`\lambda > 0`, found in a few steps from
    that of a stronger ridge; along this path the objective tends to its infimum.
    """
    if not outcome.runs_off or problem.constraints is not None:
        return outcome
    objective = objective_of(problem, outcome.components)
    point = objective.layout.pack(outcome.components)
    square = float(array_namespace(point).sum(squared_magnitudes(point)))
    components, n_sweeps, best = outcome.components, outcome.n_sweeps, outcome
    is_cheap = ROUGH.max_sweeps * step_seconds(problem) < LEAST_SECONDS
    limits = replace(ROUGH, gain=TOLERANCE) if is_cheap else BRIEF
    for share in RIDGE_SHARES:
        ridge = Ridge(2 * share * outcome.objective / square)
        ridged = minimize(problem.with_constraints((ridge,) * problem.tensor.order), components, limits)
        components, n_sweeps = ridged.components, n_sweeps + ridged.n_sweeps
        value = objective.distance(components) / 2
        if value < best.objective:
            best = Outcome(components, value, n_sweeps, False, runs_off=True)
    return best._replace(n_sweeps=n_sweeps)


def last_steps(problem: Problem, outcome: Outcome) -> Outcome:
    r"""Continue from a minimum until a step is shorter than :math:`10^{-9}` of each component.

    With noise, undamped Gauss-Newton steps :math:`x \mapsto g(x)` come closer by a constant factor only, which may be
    near one. Anderson acceleration finds the fixed point of g in a few more steps, without second derivatives, and so
    under all constraints and with missing entries. The point with the shortest step is returned.
    """
    if not outcome.converged or outcome.distance < TOLERANCE or problem.loss is not None:
        return outcome
    objective = LeastSquares(problem, outcome.components)
    n_steps = min(BRIEF_SWEEPS, _affordable(problem))
    if n_steps < 1 or objective.all_fixed:
        return outcome
    point = objective.layout.pack(outcome.components, balanced=not problem.constraints)
    path, best, shortest = Extrapolation(point, BRIEF_SWEEPS), point, math.inf
    steps = steps_for(objective)
    for _ in range(n_steps):
        value, image = _undamped(objective, steps, point)
        size = relative_size(image - point, point)
        if size < shortest and value <= (1 + TOLERANCE) * outcome.objective:
            best, shortest = image, size
        if size < TOLERANCE or not value < (1 + SLOW) * outcome.objective:  # no minimum is near if components cancel
            break
        path.add(point, image - point)
        point = objective.projected(path.target(point))
    value = objective.value(best)  # if components cancel, a short step may lead far up
    if not value <= (1 + TOLERANCE) * outcome.objective:
        return outcome
    return outcome._replace(components=objective.layout.components(best), objective=value, distance=shortest)


def _undamped(objective: LeastSquares, steps: Steps, point: Array) -> tuple[float, Array]:
    """Return the objective at a point, and the end of an undamped step, or of a sweep over the modes."""
    if not objective.supports_steps:
        swept = objective.sweep(objective.layout.expanded(point), unit=False)
        return objective.value(point), objective.layout.pack(swept, balanced=False)
    state = steps.evaluated(point)
    move, _ = steps.step(state, TOLERANCE)
    return state.objective, objective.projected(point + move)


def _affordable(problem: Problem) -> int:
    """Return the number of steps that may follow a minimum."""
    return MOST_WORK // (problem.n_observed * problem.rank)


def step_flops(tensor: Tensor, rank: int) -> float:
    """Return the operations of a step, leading term: products with the entries, for the model and the gradient."""
    return (4.0 if tensor.symmetric else 6.0) * math.prod(tensor.shape) * rank
