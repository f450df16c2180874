"""The search for losses other than least squares: Fisher scoring from the ends of least squares, judged by the loss."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from codiag._arrays import array_namespace, to_host
from codiag.least_squares import (
    BRIEF_SWEEPS,
    NEGLIGIBLE,
    ROUGH,
    TINY,
    LeastSquares,
    Limits,
    Scoring,
    distinct_terms,
    minimize,
)
from codiag.problem import Budget, Estimate, Log, Problem, as_least_squares, interior
from codiag.search._end import MEETINGS, End, lowest, n_meetings
from codiag.starts import Random
from codiag.tensors import FactoredTensor, is_large

if TYPE_CHECKING:
    from codiag.search._loop import Search


def scored(search: Search, problem: Problem, rng: np.random.Generator) -> Estimate:
    """Minimize a loss from the end of least squares, and from further starts if standardized residuals are not noise.

    Starts are the end of least squares, on entries that are scaled to similar variances; the end of least squares with
    the weights of the first end; and random ones. Numbers that the loss leaves open are estimated from the first end,
    and in turn with the last minimization, which starts from the lowest end.
    """
    log = Log(Budget(search.effort, search.max_seconds, patience=search.max_starts))
    rough = replace(ROUGH, max_sweeps=min(ROUGH.max_sweeps, search.limits.max_sweeps), budget=log.budget)
    first = _least_squares(search, problem, rng, log)
    known = with_numbers(problem, first)
    end = _scored(known, first, rough, log)
    known = with_numbers(problem, end.outcome.components)
    ends = [end if known is end.problem else _scored(known, end.outcome.components, rough, log)]
    log.budget.start()
    starts = _further_starts(search, known, ends[0], rng, log)
    while len(ends) < search.max_starts and not log.budget.is_over and not _is_enough(ends):
        ends.append(_scored(known, next(starts), rough, log))
    best = lowest(ends)
    if len(ends) > 1:
        times = {1: "once", 2: "twice"}.get(n_meetings(ends), f"{n_meetings(ends)} times")
        name = f"best of {len(ends)} local minima, reached {times}"
        log.add(name, 0, _relative_error(best), in_doubt=not _is_enough(ends))
    return _finished(problem, best, replace(search.limits, budget=log.budget.clock()), log)


def explore_scored(
    search: Search,
    problem: Problem,
    lower: FactoredTensor | None,
    rng: np.random.Generator,
    limits: Limits,
    *,
    is_over: bool,
) -> Estimate:
    """Minimize a loss roughly, for one of several ranks: from least squares, and from the components of a lower rank.

    Where it `is_over`, so that a further component is expected to fit noise, from those of the lower rank alone.
    """
    log = Log(limits.budget or Budget())
    first = extended(problem, lower) if is_over and lower is not None else _least_squares(search, problem, rng, log)
    known = with_numbers(problem, first)
    ends = [_scored(known, first, limits, log)]
    if lower is not None and not is_over and not _is_enough(ends):
        ends.append(_scored(known, extended(known, lower), limits, log))
    return Estimate(lowest(ends).outcome.components, log.stages, False, loss=known.loss)


def extended(problem: Problem, components: FactoredTensor) -> FactoredTensor:
    r"""Return components joined by the rank-one terms along which a loss falls fastest, up to the rank of a problem.

    Along a unit term z, the step of Fisher scoring has the length :math:`-\sum_j \ell'_j z_j / \sum_j w_j z_j^2`.
    """
    objective = Scoring(problem)
    while components.rank < problem.rank:
        weighted = objective.linearized(components)
        term = distinct_terms(LeastSquares(weighted).residual(components), 1, problem.constraints)[0]
        information = objective.cells.model(term.factors) ** 2 * weighted.observed
        length = term.weights / (float(array_namespace(information).sum(information)) + TINY)
        components = components.joined(term.changed(lambda factor, _: factor, length))
    return components


def with_numbers(problem: Problem, components: FactoredTensor) -> Problem:
    """Return the problem with numbers that its loss leaves open estimated from a fit."""
    assert problem.loss is not None
    objective = Scoring(problem)
    values, model = (to_host(part) for part in (objective.cells.values, objective.model(components)))
    if objective.cells.weights is not None:
        known = to_host(objective.cells.weights) > 0
        values, model = values[known], model[known]
    n_spare = max(problem.n_observed - problem.n_parameters, 1)
    return problem.with_loss(problem.loss.estimated(values.ravel(), model.ravel(), n_spare))


def _least_squares(search: Search, problem: Problem, rng: np.random.Generator, log: Log) -> FactoredTensor:
    """Return the end of least squares for a problem whose loss is another one."""
    plain, back = as_least_squares(problem)
    estimate = replace(search, monitor=None).run(plain, rng)
    log.extend(estimate.stages)
    return back(estimate.components)


def _further_starts(
    search: Search, problem: Problem, first: End, rng: np.random.Generator, log: Log
) -> Iterator[FactoredTensor]:
    """Yield starts for a problem, after the first end."""
    weighted = Scoring(problem).linearized(first.outcome.components)
    estimate = replace(search, monitor=None).run(weighted, rng)
    log.extend(estimate.stages)
    yield estimate.components
    plain, back = as_least_squares(problem)
    for components in Random().generate(plain, rng, log):
        yield back(components)


def _scored(problem: Problem, start: FactoredTensor, limits: Limits, log: Log) -> End:
    """Take a start to a local minimum of the loss, and note that."""
    end = End(problem, minimize(problem, interior(start, problem.constraints), limits))
    log.add(Scoring(problem).steps_name, end.outcome.n_sweeps, _relative_error(end))
    return end


def _relative_error(end: End) -> float:
    return Scoring(end.problem).relative_error(end.outcome.components, end.objective)


def _is_enough(ends: list[End]) -> bool:
    """Return whether a further start would hardly end lower: residuals are noise, or the lowest end was met again."""
    best = lowest(ends)
    is_good = is_large(best.problem.tensor.shape) or (best.is_noise and not best.fits_anything)
    return is_good or n_meetings(ends) >= MEETINGS


def _finished(problem: Problem, end: End, limits: Limits, log: Log) -> Estimate:
    """Minimize to the tolerance, in turn with the estimation of numbers that the loss leaves open."""
    known, outcome = end.problem, end.outcome
    for _ in range(BRIEF_SWEEPS):
        outcome = minimize(known, outcome.components, limits)
        log.add(Scoring(known).steps_name, outcome.n_sweeps, _relative_error(End(known, outcome)))
        after = with_numbers(problem, outcome.components)
        value = Scoring(after).distance(outcome.components) / 2
        if after.loss is known.loss or abs(value - outcome.objective) <= NEGLIGIBLE * outcome.objective:
            break
        known = after
    return Estimate(outcome.components, log.stages, outcome.converged, loss=known.loss)
