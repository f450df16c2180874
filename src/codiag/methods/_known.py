"""Problems about which more is known than the tensor: constraints on the factors, and which entries were observed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from codiag._estimate import Estimate, Log
from codiag._problem import Problem
from codiag.constraints import Fixed
from codiag.methods._als import ALS
from codiag.methods._reduction import SMALL
from codiag.methods.least_squares._components import random_components
from codiag.methods.least_squares._filled import filled
from codiag.methods.least_squares._fit import ROUGH, Monitor, closest
from codiag.methods.least_squares._gauss_newton import Limits, Outcome, minimize
from codiag.methods.least_squares._growth import grown
from codiag.methods.least_squares._objective import LeastSquares
from codiag.methods.least_squares._residual import excess_over_flips, noise_excess
from codiag.methods.least_squares._with_fixed import with_fixed
from codiag.tensors import FactoredTensor

First = Callable[[Problem, bool, np.random.Generator, Log], FactoredTensor]
"""From a tensor, and whether it had no holes, to components; where it had, a good start is all they can be."""

POOR = 0.05
"""Relative error above which a fit is not taken for the best there is, and random starts are tried, too."""

SWEEPS = 20
"""Alternating sweeps on what was observed, from components of a tensor whose holes were filled with something."""


def fit_known(
    problem: Problem, first: First, rng: np.random.Generator, limits: Limits, max_starts: int, monitor: Monitor | None
) -> Estimate:
    """Fit components to what was observed, under the constraints, from starts in turn until the residual is noise.

    From a start steps are taken while they gain more than noise explains; the end that fits best is then improved to
    the limits. Starts are components found one at a time, and those that `first` finds in the tensor with its
    holes filled, without constraints: these first where more was observed than not; at last, while the fit is poor,
    random ones.
    """
    log, objective = Log(), LeastSquares(problem)
    watch = _Watch(monitor, objective) if monitor is not None else None
    rough = replace(ROUGH, max_sweeps=min(ROUGH.max_sweeps, limits.max_sweeps), watch=watch)
    outcomes: list[Outcome] = []
    for start in _starts(problem, first, rng, log, max_starts):
        outcomes.append(improved(objective, start, rough))
        error = objective.relative_error(outcomes[-1].components)
        log.add("rough least squares as constrained and observed", outcomes[-1].n_sweeps, error)
        if (watch is not None and watch.stopped) or _is_noise(objective, closest(outcomes).components):
            break
        if len(outcomes) >= max_starts and objective.relative_error(closest(outcomes).components) < POOR:
            break
    found = improved(objective, closest(outcomes).components, replace(limits, watch=watch))
    log.add("least squares as constrained and observed", found.n_sweeps, objective.relative_error(found.components))
    return Estimate(found.components, log.stages, found.converged)


def improved(objective: LeastSquares, start: FactoredTensor, limits: Limits) -> Outcome:
    """Go from a start to a minimum: by Gauss-Newton steps, or mode by mode where a constraint does not know these."""
    problem = objective.problem
    if problem.constraints is not None:
        start = objective.feasible(start)
    if objective.steps:
        return minimize(problem, start, limits)
    found = ALS(init=(start.weights, start.factors), tol=1e-9).fit(problem, np.random.default_rng(0))
    value = objective.distance(found.components) / 2
    return Outcome(found.components, value, sum(stage.sweeps for stage in found.stages), found.converged)


def _starts(
    problem: Problem, first: First, rng: np.random.Generator, log: Log, max_starts: int
) -> Iterator[FactoredTensor]:
    if any(isinstance(constraint, Fixed) for constraint in problem.constraints or ()):
        yield with_fixed(problem)
        return
    small = math.prod(problem.tensor.shape) <= SMALL
    complete = problem.entries is None
    # Filled with a constant, holes add noise of a share (1 - p) / p of the energy to a tensor observed in a share p.
    mostly = complete or 2 * problem.n_entries > math.prod(problem.tensor.shape)
    kinds = ["filled", "grown"] if mostly else ["grown", "filled"]
    for n in range(max_starts):
        kind = kinds[n] if n < 2 else "grown"
        if kind == "grown" and small:
            yield grown(problem, None if n < 2 else rng)
        elif n < 2:
            start = first(problem.on(filled(problem)), complete, rng, log)
            yield start if complete else _swept(problem, start)
    for _ in range(2 * max_starts if small and max_starts > 2 else 0):
        yield _swept(problem, random_components(problem.tensor, problem.rank, rng))


def _swept(problem: Problem, start: FactoredTensor) -> FactoredTensor:
    """Alternate a few times on what was observed, which sees further from a poor start than Gauss-Newton steps."""
    sweeps = ALS(init=(start.weights, start.factors), max_sweeps=SWEEPS, tol=1e-4)
    return sweeps.fit(replace(problem, constraints=None), np.random.default_rng(0)).components


def _is_noise(objective: LeastSquares, components: FactoredTensor) -> bool:
    """Tell whether the residual passes for noise; that of a tensor too large to form is taken for it."""
    if math.prod(objective.tensor.shape) > SMALL:
        return True
    if objective.distance(components) < 1e-20 * objective.total:
        return True
    excess = noise_excess if objective.problem.entries is None else excess_over_flips
    return excess(objective.residual(components)) <= 1


class _Watch:
    """What lets a monitor see components with their relative error, until it says True."""

    def __init__(self, monitor: Monitor, objective: LeastSquares) -> None:
        self._monitor, self._objective, self.stopped = monitor, objective, False

    def __call__(self, components: FactoredTensor, value: float) -> bool:
        if not self.stopped:
            self.stopped = self._monitor(components, math.sqrt(2 * value / self._objective.total)) is True
        return self.stopped
