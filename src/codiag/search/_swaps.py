"""Swaps: a term of the residual joins the components, and the component that has become superfluous leaves.

Least squares gets stuck if several components share what fewer could fit, and others are left in the residual. With one
more component the fit gets unstuck; the predicted step of all others shows which one is then superfluous
(`most_superfluous`). A swap is kept if the objective falls by more than a noise variance.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from codiag._arrays import is_complex, to_host
from codiag.least_squares import BRIEF, NEGLIGIBLE, SLOW, Limits, minimize, objective_of, unit_components
from codiag.problem import Budget, Problem, terms_seconds
from codiag.search._end import End
from codiag.search._worth import most_superfluous
from codiag.tensors import FactoredTensor


def swapped(end: End, max_swaps: int, budget: Budget | None = None) -> tuple[End, int]:
    """Swap components while the objective falls by more than a noise variance; return the number of swaps, too."""
    budget = budget or Budget()
    for n_swaps in range(max_swaps):
        better = _swap(end, budget) if end.can_grow and not end.is_exact else None
        if better is None:
            return end, n_swaps
        end = better
    return end, max_swaps


def revived(end: End, limits: Limits) -> End:
    """Replace components that have vanished by the strongest terms of the residual, if it has any.

    No step leads away from a component whose factors are zero in two modes, even if every term would lower the
    objective: constraints on signs drive components there.
    """
    sizes = np.abs(to_host(unit_components(end.outcome.components).weights))
    alive = np.flatnonzero(sizes > NEGLIGIBLE * sizes.max(initial=0.0)).tolist()
    n_dead = end.problem.rank - len(alive)
    terms = end.terms if n_dead > 0 and not end.is_exact else []
    if not terms or not _weight(terms[0]) > 0:
        return end
    components = end.outcome.components.columns(alive) if alive else None
    for number in range(n_dead):
        term = terms[min(number, len(terms) - 1)]
        components = term if components is None else components.joined(term)
    if components is None:
        return end
    outcome = minimize(end.problem, components, limits)
    return end.with_outcome(outcome) if outcome.objective < end.objective else end


def _weight(term: FactoredTensor) -> float:
    """Return the weight of a term, or its magnitude if it is complex."""
    weight = to_host(term.weights)[0]
    return float(abs(weight) if is_complex(term.weights) else weight)


def _swap(end: End, budget: Budget) -> End | None:
    """Return a better fit with one component swapped, if one of the trials finds it within the budget."""
    problem, before = end.problem, end.outcome
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
        superfluous = most_superfluous(larger, grown.components, candidates)
        others = [index for index in range(problem.rank + 1) if index != superfluous]
        trial = minimize(problem, grown.components.columns(others), limits)
        if trial.objective < goal:
            return end.with_outcome(trial)
    return None


def brief(problem: Problem) -> Limits:
    """Return limits for a trial, in which two steps in a row must gain a share of the objective."""
    variance = objective_of(problem).noise_variance
    return replace(BRIEF, gain=SLOW / variance if variance > 0 else 0.0)
