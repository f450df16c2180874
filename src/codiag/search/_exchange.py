"""Exchange steps: a term of the residual joins the components, and the component that contributes least leaves.

Least squares gets stuck if several components share what fewer could fit, and others are left in the residual. With one
more component the fit gets unstuck; the predicted step of all others shows which one is then superfluous
(`least_contributing`). An exchange is kept if the objective falls by more than a noise variance.

Surplus components fit noise. Fitted all at once they overlap, become degenerate and converge slowly. Added one at a
time to the significant ones, each as the strongest term of the residual, they fit noise as well, to a per cent, in a
fraction of the time (`refit_surplus`).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from codiag._arrays import is_complex, to_host
from codiag.least_squares import (
    BRIEF,
    NEGLIGIBLE,
    ROUGH,
    SLOW,
    Budget,
    Limits,
    OptimizeResult,
    minimize,
    objective_of,
    terms_seconds,
    unit_components,
)
from codiag.problem import Problem
from codiag.reduction import Reduction
from codiag.search._contributions import least_contributing
from codiag.search._local_minimum import WEAK_RATIO, LocalMinimum
from codiag.tensors import FactoredTensor


def exchange_steps(end: LocalMinimum, max_exchanges: int, budget: Budget | None = None) -> tuple[LocalMinimum, int]:
    """Exchange components while the objective falls by more than a noise variance; return the number of exchanges."""
    budget = budget or Budget()
    for n_exchanges in range(max_exchanges):
        better = _exchange_step(end, budget) if end.can_grow and not end.is_exact else None
        if better is None:
            return end, n_exchanges
        end = better
    return end, max_exchanges


def replace_zero_components(end: LocalMinimum, limits: Limits) -> LocalMinimum:
    """Replace components that have vanished by the strongest terms of the residual, if it has any.

    No step leads away from a component whose factors are zero in two modes, even if every term would lower the
    objective: constraints on signs drive components there.
    """
    sizes = np.abs(to_host(unit_components(end.result.components).weights))
    alive = np.flatnonzero(sizes > NEGLIGIBLE * sizes.max(initial=0.0)).tolist()
    n_dead = end.problem.rank - len(alive)
    terms = end.terms if n_dead > 0 and not end.is_exact else []
    if not terms or not _weight(terms[0]) > 0:
        return end
    components = end.result.components.columns(alive) if alive else None
    for number in range(n_dead):
        term = terms[min(number, len(terms) - 1)]
        components = term if components is None else components.joined(term)
    if components is None:
        return end
    result = minimize(end.problem, components, limits)
    return end.with_result(result) if result.objective < end.objective else end


def _weight(term: FactoredTensor) -> float:
    """Return the weight of a term, or its magnitude if it is complex."""
    weight = to_host(term.weights)[0]
    return float(abs(weight) if is_complex(term.weights) else weight)


def _exchange_step(end: LocalMinimum, budget: Budget) -> LocalMinimum | None:
    """Return a better fit with one component exchanged, if one of the trials finds it within the budget."""
    problem, before = end.problem, end.result
    if (end.is_noise and not end.weak) or budget.spend(terms_seconds(problem)):
        return None
    variance = objective_of(problem).noise_variance or SLOW
    goal = before.objective * (1 - max(min(variance, SLOW), NEGLIGIBLE))
    candidates = end.weak if end.is_noise else list(range(problem.rank))
    for term in end.terms:
        limits = replace(brief(problem), budget=budget)
        grown = minimize(problem.with_rank(problem.rank + 1), before.components.joined(term), limits)
        if budget.is_over:
            return None
        larger = problem.with_rank(problem.rank + 1)
        superfluous = least_contributing(larger, grown.components, candidates)
        others = [index for index in range(problem.rank + 1) if index != superfluous]
        trial = minimize(problem, grown.components.columns(others), limits)
        if trial.objective < goal:
            return end.with_result(trial)
    return None


def brief(problem: Problem) -> Limits:
    """Return limits for a trial, in which two steps in a row must gain a share of the objective."""
    variance = objective_of(problem).noise_variance
    return replace(BRIEF, gain=SLOW / variance if variance > 0 else 0.0)


def refit_surplus(end: LocalMinimum, space: Reduction, whole: Reduction) -> LocalMinimum | None:
    """Refit the components without the surplus ones, and add the strongest terms of their residual in their place.

    Parameters
    ----------
    end : End
        A minimum on the space, whose residual is noise.
    space, whole : Reduction
        The space of the search, and the whole tensor as its own core.

    Returns
    -------
    End or None
        None if no component is surplus, if all are, or if the others are not all significant and leave noise.
    """
    others = np.flatnonzero(end.contributions > 1).tolist()
    if end.is_exact or not end.can_grow or not 0 < len(others) < end.contributions.size:
        return None
    components = whole.to_core(space.to_tensor(end.result.components)).columns(others)
    fewer = whole.problem.with_rank(len(others))
    grown = LocalMinimum(fewer, minimize(fewer, components, ROUGH))
    if not grown.is_noise or np.any(grown.contributions <= WEAK_RATIO**2):
        return None
    n_iter = grown.result.n_iter
    for rank in range(fewer.rank + 1, whole.problem.rank + 1):
        larger = whole.problem.with_rank(rank)
        result = minimize(larger, grown.result.components.joined(grown.terms[0]), ROUGH)
        grown, n_iter = LocalMinimum(larger, result), n_iter + result.n_iter
    return LocalMinimum(whole.problem, OptimizeResult(grown.result.components, grown.objective, n_iter, False))
