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

from codiag._array import to_host
from codiag._problem import Problem
from codiag.methods.least_squares._components import hadamard_gram, unit_components
from codiag.methods.least_squares._gauss_newton import NEGLIGIBLE, Limits, Outcome, minimize
from codiag.methods.least_squares._objective import LeastSquares
from codiag.methods.least_squares._rank_one import distinct_components
from codiag.methods.least_squares._removal import objectives_without
from codiag.methods.least_squares._residual import ROUNDING, is_noise, largest_square
from codiag.tensors import FactoredTensor, Tensor

NEWCOMERS = 3
"""Terms of the residual that are tried: where all are near the noise, the largest may be it."""

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

ALIKE = 0.5
"""Product of cosines above which two components may do what one could."""


def swap_components(problem: Problem, found: Outcome, *, max_swaps: int) -> tuple[Outcome, int]:
    """Swap components while the objective falls by more than noise explains; return how many were swapped."""
    if not _may_grow(problem):
        return found, 0
    rounding = ROUNDING * LeastSquares(problem).total
    for n_swaps in range(max_swaps):
        better = None if found.objective < rounding else _swap(problem, found)
        if better is None:
            return found, n_swaps
        found = better
    return found, max_swaps


def _may_grow(problem: Problem) -> bool:
    """Tell whether the constraints leave room for one component more."""
    constraints = problem.constraints or ()
    return problem.rank > 1 and not any(
        one is not None and (one.known or one.curved or not one.steps) for one in constraints
    )


def _swap(problem: Problem, found: Outcome) -> Outcome | None:
    """Return a better fit with one component or more swapped, if there is one."""
    objective = LeastSquares(problem, found.components)
    residual = objective.left_over(found.components)
    noise = is_noise(objective, residual)
    if noise and n_replaceable(problem, found, residual, CLEAR) == 0:
        return None
    goal = found.objective * (1 - max(min(objective.noise_variance, MOST_NOISE), NEGLIGIBLE))
    for newcomer in distinct_components(residual, NEWCOMERS):
        grown = _grown(problem, found, newcomer)
        trial = _shrunk(problem, grown, goal, clear=CLEAR if noise else math.inf)
        if trial is None:
            return None
        if goal <= trial.objective < NEAR * found.objective:
            trial = minimize(problem, trial.components, brief(problem, ON))
        if trial.objective < goal:
            return trial
    return None


def n_replaceable(problem: Problem, found: Outcome, residual: Tensor, factor: float) -> int:
    """Return how many components are worth less than a factor times the strongest term of a residual that is noise."""
    if found.objective < ROUNDING * LeastSquares(problem).total or not _may_grow(problem):
        return 0
    if problem.rank <= max(problem.tensor.shape) and not _may_pay(found, residual):
        return 0
    term = float(distinct_components(residual, 1)[0].weights[0]) ** 2
    worth = 2 * (objectives_without(problem, found.components) - found.objective)
    return int(np.sum(worth < factor * term))


def _may_pay(found: Outcome, residual: Tensor) -> bool:
    """Tell, at the price of one small product, whether the residual can hold as much as some component is worth."""
    components = unit_components(found.components)
    gram = to_host(hadamard_gram(components.factors))
    likeness = abs(gram) * (1 - np.eye(components.rank))
    worth = to_host(components.weights) ** 2 / np.maximum(np.diag(np.linalg.pinv(gram, hermitian=True)), 1.0)
    return float(likeness.max()) >= ALIKE or float(worth.min()) / 2 <= largest_square(residual)


def _grown(problem: Problem, found: Outcome, newcomer: FactoredTensor) -> Outcome:
    """Let terms of the residual join, the first given, while more than noise is left and each takes much of it."""
    grown = found
    for extra in range(1, EXTRA + 1):
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


def _shrunk(problem: Problem, grown: Outcome, goal: float, clear: float) -> Outcome | None:
    """Let components leave, those that the others replace best, until as many are left as the problem asks for.

    None where it would be the last to have joined, and all others are worth more by a `clear` factor.
    """
    rank = grown.components.rank
    while True:
        predicted = objectives_without(replace(problem, rank=rank), grown.components)
        places = np.argsort(predicted, kind="stable").tolist()
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


def refitted(problem: Problem, components: FactoredTensor, limits: Limits) -> Outcome:
    """Fit components under the constraints of a problem, which they need not satisfy yet."""
    if problem.constraints is not None or problem.shared:
        components = LeastSquares(problem).feasible(components)
    return minimize(problem, components, limits)


def brief(problem: Problem, n_sweeps: int) -> Limits:
    """Return limits for a few steps on the way, each of which must gain a share of the objective."""
    variance = LeastSquares(problem).noise_variance
    gain = LEAST_GAIN / variance if variance > 0 else 0.0
    return Limits(n_sweeps, tol=1e-5, gain=gain, rough=True, n_products=PRODUCTS)
