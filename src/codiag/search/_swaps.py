"""Swaps: what the residual still holds joins the components, and the one that has become superfluous leaves.

Least squares gets stuck where several components share what fewer could do, and others are left in the residual. With
one component more the fit gets unstuck at once; which one is then superfluous, the step of all others to take over from
it tells (`objectives_without`). A swap is kept where the objective falls by more than noise explains.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from codiag.least_squares import (
    NEGLIGIBLE,
    RESIDUAL_ROUNDING,
    LeastSquares,
    Limits,
    Outcome,
    distinct_components,
    is_noise,
    minimize,
    refitted,
)
from codiag.problem import Problem, most_components
from codiag.search._worth import Standing, may_grow, objectives_without, standing
from codiag.tensors import FactoredTensor

EXTRA, FALLS = 4, 0.7
"""Components that may join before as many leave, and the share of the objective down to which each of them must lead
for another to follow."""

BRIEF, ON = 8, 20
"""Steps after a component has joined or left, and before a fit is given up that is not far from paying."""

NEAR = 1.5
"""Objective, relative to that before a swap, up to which a fit is not given up yet."""

TRIES = 3
"""Components that may leave in turn until one is not missed."""

PRODUCTS = 30
"""Products with the Gauss-Newton matrix for each of these steps."""

LEAST_GAIN = 1e-3
"""Share of the objective that steps must gain on the way."""

MOST_NOISE = 1e-3
"""Share of the objective that counts as one variance of the noise at most, however few entries there are to tell it."""

CLEAR = 30
"""How many times more than a term of the residual every component must be worth for no swap to be in question."""

TINY = 1e-300
"""What a loss is at least: rounding may make it negative."""


def swap_components(problem: Problem, found: Outcome, *, max_swaps: int) -> tuple[Outcome, int]:
    """Swap components while the objective falls by more than noise explains; return how many were swapped."""
    if not may_grow(problem):
        return found, 0
    rounding = RESIDUAL_ROUNDING * LeastSquares(problem).total
    for n_swaps in range(max_swaps):
        if found.objective < rounding:
            return found, n_swaps
        found = found._replace(standing=standing(problem, found))
        better = _swap(problem, found, standing(problem, found))
        if better is None:
            return found, n_swaps
        found = better
    return found, max_swaps


def _swap(problem: Problem, found: Outcome, known: Standing) -> Outcome | None:
    """Return a better fit with one component or more swapped, if there is one."""
    if known.noise and known.n_worth_less(CLEAR) == 0:
        return None
    variance = LeastSquares(problem).noise_variance or math.inf  # where no entry is left to tell
    goal = found.objective * (1 - max(min(variance, MOST_NOISE), NEGLIGIBLE))
    clear = CLEAR if known.noise else math.inf
    doubtful = [place for place, worth in enumerate(known.worths) if worth < clear] if known.noise else None
    for newcomer in known.newcomers:
        trial = _shrunk(problem, _grown(problem, found, newcomer), goal, clear, doubtful)
        if trial is None:
            return None
        if goal <= trial.objective < NEAR * found.objective:
            trial = minimize(problem, trial.components, brief(problem, ON))
        if trial.objective < goal:
            return trial
    return None


def _grown(problem: Problem, found: Outcome, newcomer: FactoredTensor) -> Outcome:
    """Let terms of the residual join, the first given, while more than noise is left and each takes much of it."""
    grown = found
    room = most_components(problem.tensor.shape) - problem.rank
    for extra in range(1, min(EXTRA, room) + 1):
        larger = replace(problem, rank=problem.rank + extra)
        before, grown = grown, refitted(larger, grown.components.joined(newcomer), brief(problem, BRIEF))
        if larger.n_parameters > larger.n_entries or grown.objective > FALLS * before.objective:
            break
        objective = LeastSquares(larger, grown.components)
        residual = objective.left_over(grown.components)
        if is_noise(objective, residual):
            break
        newcomer = distinct_components(residual, 1)[0]
    return grown


def _shrunk(
    problem: Problem, grown: Outcome, goal: float, clear: float, doubtful: Sequence[int] | None
) -> Outcome | None:
    """Let components leave, those that the others replace best, until as many are left as the problem asks for.

    None where it would be the last to have joined, and all others are worth more by a `clear` factor. Where only some
    were `doubtful` before a single one joined, none but these are asked about.
    """
    rank = grown.components.rank
    asked = None if doubtful is None or rank > problem.rank + 1 else [*doubtful, rank - 1]
    while True:
        predicted = objectives_without(replace(problem, rank=rank), grown.components, asked)
        places = [place for place in np.argsort(predicted, kind="stable").tolist() if math.isfinite(predicted[place])]
        if rank == problem.rank + 1 and places[0] == rank - 1:
            lost = predicted - grown.objective  # as far as a step tells: it is less where the others need several
            places = [place for place in places[1:] if lost[place] < clear * max(lost[-1], TINY)]
        if not places:
            return None
        rank -= 1
        grown = _without_one(replace(problem, rank=rank), grown, places[:TRIES], goal)
        if rank == problem.rank:
            return grown


def _without_one(problem: Problem, grown: Outcome, places: Sequence[int], goal: float) -> Outcome:
    """Let one of some components leave: the first that is not missed, or else the one that is missed least."""
    outcomes: list[Outcome] = []
    for place in places:
        kept = [other for other in range(grown.components.rank) if other != place]
        outcomes.append(refitted(problem, grown.components.columns(kept), brief(problem, BRIEF)))
        if outcomes[-1].objective < max(goal, NEAR * grown.objective):
            break
    return min(outcomes, key=lambda outcome: outcome.objective)


def brief(problem: Problem, n_sweeps: int) -> Limits:
    """Return limits for a few steps on the way, each of which must gain a share of the objective."""
    variance = LeastSquares(problem).noise_variance
    gain = LEAST_GAIN / variance if variance > 0 else 0.0
    return Limits(n_sweeps, tol=1e-5, gain=gain, rough=True, n_products=PRODUCTS)
