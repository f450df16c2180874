r"""Components that run off and cancel each other, where no best fit exists.

Their weights grow without end while the objective falls by ever less. With a ridge, :math:`\tfrac\lambda2 \sum_m
\|A_m\|^2` added to the objective, there is a minimum for every :math:`\lambda > 0`, found in a few steps from that of a
stronger ridge. Along this path the objective itself falls towards its infimum, by a constant share from one strength
to the next: when what is left of that is negligible, to go on would only make the weights larger.
"""

from __future__ import annotations

import math
from dataclasses import replace

from codiag._array import array_namespace
from codiag._problem import Problem
from codiag.constraints import Ridge
from codiag.methods.least_squares._gauss_newton import Limits, Outcome, minimize
from codiag.methods.least_squares._objective import LeastSquares

FIRST_SHARE = 1e-3
"""What the first ridge costs, relative to the objective: components that are worth less than that may be lost."""

WEAKER, STRENGTHS = 10.0, 8
"""From one ridge to the next, and ridges at most."""

LEFT = 1e-5
"""Share of the objective that the rest of the path may still gain when it ends: half as much of the relative error."""

MOST_STEPS = 60
"""For each ridge; they end before where one gains less than a thousandth of what may be left."""


def bounded(problem: Problem, found: Outcome) -> Outcome:
    """Follow the minima of ever weaker ridges where components run off; the end does not count as converged."""
    if not found.runs_off or problem.constraints is not None:
        return found
    objective = LeastSquares(problem, found.components)
    xp = array_namespace(found.components.weights)
    point = objective.layout.pack(found.components)
    strength = 2 * FIRST_SHARE * found.objective / float(xp.sum(point**2))
    best, last, gained, n_sweeps = found, math.inf, math.inf, found.n_sweeps
    components, variance = found.components, objective.noise_variance
    limits = Limits(MOST_STEPS, gain=1e-3 * LEFT / variance if variance > 0 else 0.0, rough=True)
    for _ in range(STRENGTHS):
        ridged = replace(problem, constraints=(Ridge(strength),) * problem.tensor.order)
        outcome = minimize(ridged, components, limits)
        components, n_sweeps = outcome.components, n_sweeps + outcome.n_sweeps
        value = objective.distance(components) / 2
        if value < best.objective:
            best = Outcome(components, value, n_sweeps, False, runs_off=True)
        before, gained = gained, last - value
        rate = min(max(gained / before, 0.0), 0.9) if math.isfinite(before) else 0.9
        if math.isfinite(gained) and gained * rate / (1 - rate) < LEFT * value:
            break
        last, strength = value, strength / WEAKER
    return best._replace(n_sweeps=n_sweeps)
