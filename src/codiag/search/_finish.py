"""The finish of a fit: from a rough minimum on the core to a minimum on the whole tensor, for every problem."""

from __future__ import annotations

import math
from dataclasses import replace

from codiag._arrays import Array, Extrapolation, array_namespace, few_threads, squared_magnitudes
from codiag.constraints import Ridge
from codiag.least_squares import (
    BRIEF_SWEEPS,
    INSIGNIFICANT,
    NEGLIGIBLE,
    ROUGH,
    ROUGHEST,
    SLOW,
    TOLERANCE,
    Budget,
    LeastSquares,
    Limits,
    Log,
    OptimizeResult,
    Steps,
    largest_product,
    minimize,
    minimize_with_estimates,
    objective_of,
    relative_size,
)
from codiag.problem import Estimate, Problem
from codiag.reduction import Reduction
from codiag.search._exchange import exchange_steps
from codiag.search._finish_large import MOST_WORK, finish_large
from codiag.search._local_minimum import LocalMinimum
from codiag.search._saddles import leave_saddles
from codiag.tensors import FactoredTensor, Tensor


def finish(
    problem: Problem, space: Reduction, end: LocalMinimum, limits: Limits, log: Log, max_exchanges: int
) -> Estimate:
    """Minimize on the core, return to the tensor, and minimize there what the core has lost.

    Swaps there are work of the search, which has the budget of the log; the rest is limited by `limits` alone.
    """
    rest = replace(limits, max_iter=max(limits.max_iter - end.result.n_iter, 0))
    known, result = settled(space.problem.with_loss(problem.loss), end.result, rest, log)
    if space.is_complete:
        result = result if limits.is_stopped else last_steps(known, result)
        return Estimate(space.to_tensor(result.components), log.history, result.converged, loss=known.loss)
    components = space.to_tensor(result.components)
    if limits.is_stopped:
        return Estimate(components, log.history, result.converged)
    with few_threads(largest_product(problem)):
        if space.dense is None:
            return finish_large(problem, components, space.sides, limits, log)
        return _minimized_whole(space.uncompressed(), components, limits, log, max_exchanges)


def _minimized_whole(
    whole: Reduction, components: FactoredTensor, limits: Limits, log: Log, max_exchanges: int
) -> Estimate:
    """Minimize on a whole tensor that is small, from a minimum on its core."""
    n_iter = min(limits.max_iter, max(BRIEF_SWEEPS, _affordable(whole.problem)))
    unwatched = replace(limits, callback=None, max_iter=n_iter)
    start = OptimizeResult(whole.to_core(components), math.inf, 0, False)
    _, result = settled(whole.problem, start, unwatched, log, "polish")
    better, n_exchanges = exchange_steps(LocalMinimum(whole.problem, result), max_exchanges, log.budget)
    if n_exchanges > 0:
        _, result = settled(whole.problem, better.result, unwatched, log, f"polish, {n_exchanges} exchange steps")
    result = last_steps(whole.problem, result)
    return Estimate(whole.to_tensor(result.components), log.history, result.converged)


def settled(
    problem: Problem, start: OptimizeResult, limits: Limits, log: Log, name: str = ""
) -> tuple[Problem, OptimizeResult]:
    """Minimize to the end: along a path of ridges if components run off, and past saddle points.

    Numbers that the loss leaves open are estimated in turn; the problem with them is returned, too.
    """
    known, result = minimize_with_estimates(problem, start.components, limits, BRIEF_SWEEPS)
    result = leave_saddles(known, bounded(known, result, limits.budget), limits)
    objective, flops = objective_of(known), step_flops(problem.tensor, problem.rank) * result.n_iter
    error = objective.relative_error(result.components, result.objective)
    log.add(name or objective.steps_name, result.n_iter, error, flops)
    return known, result


def bounded(problem: Problem, result: OptimizeResult, budget: Budget | None = None) -> OptimizeResult:
    r"""Follow the minima of ever weaker ridges if components run off to infinity; the end is not converged.

    Without a best fit, weights grow without end while the objective falls by ever less. With a ridge
    :math:`\tfrac\lambda2 \sum_m \|A_m\|^2` there is a minimum for every :math:`\lambda > 0`, found in a few steps from
    that of a stronger ridge; along this path the objective tends to its infimum. The last ridge costs a
    millionth of the objective.
    """
    if not result.runs_off or problem.constraints is not None:
        return result
    objective = objective_of(problem, result.components)
    point = objective.parametrization.vectorize(result.components)
    square = float(array_namespace(point).sum(squared_magnitudes(point)))
    components, n_iter, best = result.components, result.n_iter, result
    limits = replace(ROUGH, gain=INSIGNIFICANT, budget=budget)
    for share in (NEGLIGIBLE / ROUGHEST, NEGLIGIBLE):
        ridge = Ridge(2 * share * result.objective / square)
        ridged = minimize(problem.with_constraints((ridge,) * problem.tensor.order), components, limits)
        components, n_iter = ridged.components, n_iter + ridged.n_iter
        value = objective.distance(components) / 2
        if value < best.objective:
            best = OptimizeResult(components, value, n_iter, False, runs_off=True)
    return best._replace(n_iter=n_iter)


def last_steps(problem: Problem, result: OptimizeResult) -> OptimizeResult:
    r"""Continue from a minimum until a step is shorter than :math:`10^{-9}` of each component.

    With noise, undamped Gauss-Newton steps :math:`x \mapsto g(x)` come closer by a constant factor only, which may be
    near one. Anderson acceleration finds the fixed point of g in a few more steps, without second derivatives, and so
    under all constraints and with missing entries. The point with the shortest step is returned.
    """
    if not result.converged or result.distance < TOLERANCE or problem.loss is not None:
        return result
    objective = LeastSquares(problem, result.components)
    n_steps = min(BRIEF_SWEEPS, _affordable(problem))
    if n_steps < 1 or objective.all_fixed:
        return result
    point = objective.parametrization.vectorize(result.components, balanced=not problem.constraints)
    path, best, shortest = Extrapolation(point, BRIEF_SWEEPS), point, math.inf
    steps = Steps(objective)
    for _ in range(n_steps):
        value, image = _undamped(objective, steps, point)
        size = relative_size(image - point, point)
        if size < shortest and value <= (1 + TOLERANCE) * result.objective:
            best, shortest = image, size
        if size < TOLERANCE or not value < (1 + SLOW) * result.objective:  # no minimum is near if components cancel
            break
        path.add(point, image - point)
        point = objective.projected(path.target(point))
    value = objective.value(best)  # if components cancel, a short step may lead far up
    if not value <= (1 + TOLERANCE) * result.objective:
        return result
    return result._replace(components=objective.parametrization.components(best), objective=value, distance=shortest)


def _undamped(objective: LeastSquares, steps: Steps, point: Array) -> tuple[float, Array]:
    """Return the objective at a point, and the end of an undamped step, or of a sweep over the modes."""
    if not objective.supports_gauss_newton:
        swept = objective.sweep(objective.parametrization.expand(point), unit=False)
        return objective.value(point), objective.parametrization.vectorize(swept, balanced=False)
    state = steps.evaluated(point)
    move, _ = steps.step(state, TOLERANCE)
    return state.objective, objective.projected(point + move)


def _affordable(problem: Problem) -> int:
    """Return the number of steps that may follow a minimum."""
    return MOST_WORK // (problem.n_observed * problem.rank)


def step_flops(tensor: Tensor, rank: int) -> float:
    """Return the operations of a step, leading term: products with the entries, for the model and the gradient."""
    return (4.0 if tensor.symmetric else 6.0) * math.prod(tensor.shape) * rank
