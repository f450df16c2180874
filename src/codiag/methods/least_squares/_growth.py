"""Components one at a time, each from what those before it have left.

Of a tensor with holes, filled with zeros, strong components hide weak ones: what sampling adds to the spectrum grows
with the energy that is not explained yet. Once the strong ones are fitted to what was observed, the weak ones show.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from codiag._problem import Problem
from codiag.methods.least_squares._gauss_newton import Limits, Outcome, minimize
from codiag.methods.least_squares._objective import LeastSquares
from codiag.methods.least_squares._rank_one import distinct_components
from codiag.methods.least_squares._residual import excess_over_flips
from codiag.tensors import FactoredTensor, Tensor

STEPS = Limits(max_sweeps=10, tol=1e-4, gain=0.1, rough=True)
"""For all components so far, after each that joins them."""

EXCHANGE, PAYS = replace(STEPS, max_sweeps=20), 0.9
"""For all components after one was sought anew, and the share of the objective down to which that must lead."""

POOR = 0.05
"""Relative error above which a fit is not taken for the best there is, whatever its residual looks like."""

EXACT = 1e-9
"""Objective, relative to the squared norm, below which nothing but the end of rough steps is left."""

CHOICE = 3
"""Terms of the residual from which one is drawn where the largest has led nowhere."""


def grown(problem: Problem, rng: np.random.Generator | None = None) -> FactoredTensor:
    """Return components that were found one after the other, all of them fitted again after each.

    Each is the largest rank-one term of the residual, or with a generator one of the largest.
    """
    found = _improved(replace(problem, rank=1), _term(problem.tensor, rng)).components
    for rank in range(2, problem.rank + 1):
        new = _term(LeastSquares(problem).left_over(found), rng)
        found = _improved(replace(problem, rank=rank), found.joined(new)).components
    return found if problem.entries is None or problem.rank == 1 else _exchanged(problem, found)


def _exchanged(problem: Problem, found: FactoredTensor) -> FactoredTensor:
    """Take out components and seek them anew, the least first, while that pays and the residual is not noise."""
    objective = LeastSquares(problem)
    best = _improved(problem, found)
    n_left = problem.rank
    while n_left > 0:
        if best.objective < EXACT * objective.total or passes_for_noise(objective, best.components):
            break
        for place in _least_first(objective, best.components)[:n_left]:
            n_left -= 1
            outcome = _without(objective, best.components, place)
            if outcome.objective < PAYS * best.objective:
                best = outcome
                break
        else:
            break
    return best.components


def passes_for_noise(objective: LeastSquares, components: FactoredTensor) -> bool:
    """Tell whether what components leave of the entries is small, and no direction of it stands out.

    Of few entries, several components that were missed may hide each other: a large residual is never taken for noise.
    """
    if objective.relative_error(components) > POOR:
        return False
    return excess_over_flips(objective.left_over(components), shared_group(objective.problem)) <= 1


def shared_group(problem: Problem) -> tuple[int, ...]:
    """Return the modes that share a factor, none where all have their own."""
    return next((group for group in problem.groups if len(group) > 1), ())


def _least_first(objective: LeastSquares, components: FactoredTensor) -> list[int]:
    """Return the components in the order of what the fit would lose with each alone."""
    losses = [objective.distance(_left(components, place)) for place in range(components.rank)]
    return np.argsort(losses, kind="stable").tolist()


def _without(objective: LeastSquares, components: FactoredTensor, place: int) -> Outcome:
    """Return the fit with one component sought anew, in what the others leave."""
    problem = objective.problem
    others = _improved(replace(problem, rank=problem.rank - 1), _left(components, place)).components
    return _improved(problem, others.joined(_term(objective.left_over(others), None)), EXCHANGE)


def _left(components: FactoredTensor, place: int) -> FactoredTensor:
    return components.columns([other for other in range(components.rank) if other != place])


def _term(residual: Tensor, rng: np.random.Generator | None) -> FactoredTensor:
    terms = distinct_components(residual, 1 if rng is None else CHOICE)
    return terms[0 if rng is None else int(rng.integers(len(terms)))]


def _improved(problem: Problem, components: FactoredTensor, limits: Limits = STEPS) -> Outcome:
    if problem.constraints is not None or problem.shared:
        components = LeastSquares(problem).feasible(components)
    return minimize(problem, components, limits)
