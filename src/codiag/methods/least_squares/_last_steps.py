"""The last steps of a fit: from where noise hides what is left to gain, to where every factor solves its equations."""

from __future__ import annotations

import math

from codiag._array import Array
from codiag._entries import ListedEntries
from codiag._problem import Problem
from codiag.methods.least_squares._extrapolation import Extrapolation
from codiag.methods.least_squares._gauss_newton import Outcome, evaluated, gauss_newton_step, relative_size
from codiag.methods.least_squares._objective import LeastSquares

EXACT = 1e-9
"""Relative size of a step that is the last: the equations of every factor are then solved to less than 1e-8."""

MOST_STEPS, MULTIPLICATIONS = 40, 2**25
"""Steps at most, and what products with the entries may cost in all of them: entries times rank."""

IDLE = 10
"""Steps that may fail to come closer than the best before the end."""

ASTRAY = 1e-3
"""Share by which the objective may rise on the way: beyond it there is no minimum near, as where components cancel."""

UNDAMPED = 1e-9


def last_steps(problem: Problem, found: Outcome) -> Outcome:
    r"""Go on from where a fit has converged until a step is shorter than :math:`10^{-9}` of each component.

    Steps are those of Gauss and Newton, undamped, :math:`x \mapsto g(x)`. With noise they come closer by a constant
    factor only, which may be near one; Anderson's mixing of all that were taken finds the fixed point of g in a few
    more, without second derivatives, and hence under all constraints and with missing entries alike. The closest point
    is returned. Of large tensors as many steps are taken as cost little; none where the last ones tell that they came
    close enough.
    """
    if not found.converged or found.left < EXACT:
        return found
    objective = LeastSquares(problem, found.components)
    n_steps = min(MOST_STEPS, MULTIPLICATIONS // (_n_entries(objective) * problem.rank))
    if n_steps < 1 or objective.all_known:
        return found
    path = _Path(objective.layout.pack(found.components, balanced=not problem.constraints), found.objective)
    for _ in range(n_steps):
        value, end = _step(objective, path.point)
        path.add(end, value)
        if path.size < EXACT or path.n_idle > IDLE or not value < (1 + ASTRAY) * found.objective:
            break
        path.point = objective.projected(path.extrapolation.target(path.point))
    value = objective.value(path.best)  # where components cancel, a short step may lead far up
    if not value <= (1 + EXACT) * found.objective:
        return found
    return found._replace(components=objective.layout.components(path.best), objective=value, left=path.least)


class _Path:
    """Points, where a step leads from each, and the closest so far to the fixed point of steps."""

    def __init__(self, point: Array, value: float) -> None:
        self.point = self.best = point
        self.size, self.least, self.value, self.n_idle = math.inf, math.inf, value, 0
        self._highest = value * (1 + EXACT)
        self.extrapolation = Extrapolation(point, MOST_STEPS)

    def add(self, end: Array, value: float) -> None:
        """Take note of the end of a step from the point, and of the objective before it."""
        self.size = relative_size(end - self.point, self.point)
        self.n_idle += 1
        if self.size < self.least and value <= self._highest:
            self.least, self.value, self.best, self.n_idle = self.size, value, end, 0
        self.extrapolation.add(self.point, end - self.point)


def _step(objective: LeastSquares, point: Array) -> tuple[float, Array]:
    """Return the objective at a point, and where an undamped step leads, or a sweep over the modes."""
    if not objective.steps:
        found = objective.sweep(objective.layout.expanded(point), unit=False)
        return objective.value(point), objective.layout.pack(found, balanced=False)
    state = evaluated(objective, point)
    move, _ = gauss_newton_step(objective, objective.curvature(point), state.gradient, UNDAMPED)
    return state.objective, objective.projected(point + move)


def _n_entries(objective: LeastSquares) -> int:
    entries = objective.entries
    return entries.size if isinstance(entries, ListedEntries) else math.prod(objective.tensor.shape)
