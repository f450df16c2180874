r"""Components that run off and cancel each other, where no best fit exists.

Their weights grow without end while the objective falls by ever less. With a ridge, :math:`\tfrac\lambda2 \sum_m
\|A_m\|^2` added to the objective, there is a minimum for every :math:`\lambda > 0`, found in a few steps from that of a
stronger ridge. Along this path the objective itself falls towards its infimum, by a constant share from one strength
to the next: when what is left of that is negligible, to go on would only make the weights larger.

The last steps of a fit: from where noise hides what is left to gain, to where every factor solves its equations.

Away from saddle points: stationary points of least squares that are not minima.

There the gradient vanishes and no Gauss-Newton step leads on. The second derivative tells: where it is negative in some
direction, the objective falls both ways along it.

From a start to the end of a fit: roughly on a core, then to the minimum, then on the whole tensor.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from codiag._arrays import Array, Extrapolation, array_namespace, like, to_host
from codiag.constraints import Ridge
from codiag.least_squares import (
    NEGLIGIBLE,
    CurvatureLike,
    LeastSquares,
    Limits,
    Outcome,
    evaluated,
    gauss_newton_step,
    minimize,
    relative_size,
)
from codiag.problem import Estimate, Log, Problem
from codiag.reduction import Reduction, Sides, reduce_widely
from codiag.search._finish_large import MOST_READS, Polished, polish
from codiag.search._swaps import swap_components
from codiag.tensors import FactoredTensor, Tensor
from codiag.tensors.entries import ListedEntries

FIRST_SHARE = 1e-3
"""What the first ridge costs, relative to the objective: components that are worth less than that may be lost."""

WEAKER, STRENGTHS = 10.0, 8
"""From one ridge to the next, and ridges at most."""

LEFT = 1e-5
"""Share of the objective that the rest of the path may still gain when it ends: half as much of the relative error."""

MOST_RIDGE_STEPS = 60
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
    limits = Limits(MOST_RIDGE_STEPS, gain=1e-3 * LEFT / variance if variance > 0 else 0.0, rough=True)
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


EXACT = 1e-9
"""Relative size of a step that is the last: the equations of every factor are then solved to less than 1e-8."""

MOST_LAST_STEPS, MULTIPLICATIONS = 40, 2**25
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
    n_steps = min(MOST_LAST_STEPS, MULTIPLICATIONS // (_n_entries(objective) * problem.rank))
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
        self.extrapolation = Extrapolation(point, MOST_LAST_STEPS)

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


SUSPECT = 0.05
"""Relative error from which second derivatives are worth their price: a small residual makes no curvature negative."""

ESCAPES = 5


def leave_saddles(problem: Problem, found: Outcome, limits: Limits) -> Outcome:
    """Go on from a stationary point as long as some curvature is negative there and the objective falls."""
    for _ in range(ESCAPES):
        if not found.converged or 2 * found.objective < SUSPECT**2 * problem.tensor.squared_norm():
            return found
        start = _downhill(problem, found)
        if start is None:
            return found
        left = replace(limits, max_sweeps=max(limits.max_sweeps - found.n_sweeps, 1))
        beyond = minimize(problem, start, left)
        if not beyond.objective < found.objective * (1 - NEGLIGIBLE):
            return found
        found = beyond._replace(n_sweeps=found.n_sweeps + beyond.n_sweeps)
    return found


def _downhill(problem: Problem, found: Outcome) -> FactoredTensor | None:
    """Return a point below a stationary one, in the direction of the most negative curvature."""
    objective = LeastSquares(problem, found.components)
    point = objective.layout.pack(found.components)
    curvature, direction = lowest_curvature(objective.second_derivative(point))
    if not curvature < -NEGLIGIBLE:
        return None
    best, lowest = None, found.objective
    for size in (1.0, 0.3, 0.1, 0.03):
        for sign in (1, -1):
            trial = point + sign * size * direction
            value = objective.value(trial)
            if value < lowest:
                best, lowest = objective.layout.components(trial), value
    return best


def lowest_curvature(curvature: CurvatureLike, n_steps: int = 30) -> tuple[float, Array]:
    r"""Return the least eigenvalue of :math:`S^{-1/2} H S^{-1/2}`, S the scales of H, and its direction, by Lanczos.

    The eigenvalue is relative to the curvature along each component alone, the direction of the size of a component.
    """
    xp = array_namespace(curvature.scales)
    roots = xp.sqrt(curvature.scales)
    shape = tuple(roots.shape)
    drawn = np.random.default_rng(0).standard_normal(shape)
    vectors = [like(drawn / np.linalg.norm(drawn), roots)]
    along, across = [], []
    for step in range(min(n_steps, math.prod(shape))):
        image = curvature.product(vectors[-1] / roots) / roots
        along.append(float(xp.sum(image * vectors[-1])))
        for _ in range(2):  # orthogonal to rounding
            for vector in vectors:
                image = image - xp.sum(image * vector) * vector
        length = float(xp.linalg.vector_norm(xp.reshape(image, (-1,))))
        if not length > 1e-10 or step + 1 == n_steps:
            break
        across.append(length)
        vectors.append(image / length)
    n = len(along)
    values, mixing = np.linalg.eigh(np.diag(along) + np.diag(across[: n - 1], 1) + np.diag(across[: n - 1], -1))
    direction = sum((float(c) * vector for c, vector in zip(mixing[:, 0], vectors, strict=False)), 0 * roots) / roots
    own = xp.linalg.vector_norm(xp.reshape(direction, (-1,)))
    size = float(xp.max(xp.linalg.vector_norm(curvature.point, axis=0)))
    return float(to_host(values)[0]), direction * (size / own)


ROUGH = Limits(max_sweeps=100, tol=1e-6, gain=0.1, rough=True)
"""For a start: to where further steps gain less than noise explains."""

POLISH_ENTRIES, LEAST_POLISH = 2**24, 30
"""Entries that all sweeps of a polish may visit together, and sweeps that are allowed whatever the size: from the end
of a fit to the core few are needed, unless the model does not fit."""

RUN_ON_ENTRIES = 2**29
"""Entries that all passes over a large tensor may read together where a few passes were not enough."""

Monitor: TypeAlias = Callable[[FactoredTensor, float], bool | None]
"""Called as ``monitor(components, relative_error)`` after a step; True ends the fit there."""


def approach(problem: Problem, start: FactoredTensor, limits: Limits, log: Log, max_replacements: int) -> Outcome:
    """Fit the components to a core roughly, with components swapped where that helps."""
    rough = replace(ROUGH, max_sweeps=min(ROUGH.max_sweeps, limits.max_sweeps), watch=limits.watch)
    found, n_replaced = minimize(problem, start, rough), 0
    n_sweeps = found.n_sweeps
    if max_replacements > 0 and not is_stopped(limits):
        found, n_replaced = swap_components(problem, found, max_swaps=max_replacements)
    name = f"least squares, {n_replaced} swapped" if n_replaced > 0 else "rough least squares"
    error = relative_error(problem.tensor, found.objective)
    log.add(name, n_sweeps, error, step_flops(problem.tensor, start.rank) * n_sweeps)
    return found._replace(n_sweeps=n_sweeps)


def finish(
    problem: Problem, reduction: Reduction, found: Outcome, limits: Limits, log: Log, max_replacements: int
) -> Estimate:
    """Fit the components to the core to the end, lift them to the tensor, and fit them there to what the core lost.

    On a tensor of moderate size a component that noise had hidden in the core is sought once more.
    """
    tensor = problem.tensor
    left = replace(limits, max_sweeps=max(limits.max_sweeps - found.n_sweeps, 0))
    final = _settled(problem.on(reduction.core), found.components, left, log, "least squares")
    if reduction.complete and not is_stopped(limits):
        final = last_steps(problem.on(reduction.core), final)
    components = reduction.lift(final.components)
    if reduction.complete or is_stopped(limits):
        return Estimate(components, log.stages, final.converged)
    if reduction.dense is not None:
        n_sweeps = min(limits.max_sweeps, max(LEAST_POLISH, POLISH_ENTRIES // math.prod(tensor.shape)))
        dense, unwatched = problem.on(reduction.dense), replace(limits, watch=None, max_sweeps=n_sweeps)
        opened = reduction.opened()  # its core is the whole tensor, wherever that is worked on
        outcome = _settled(dense, opened.lower(components), unwatched, log, "polish")
        better, n_replaced = swap_components(dense, outcome, max_swaps=max_replacements)
        if n_replaced > 0:
            outcome = _settled(dense, better.components, unwatched, log, f"polish, {n_replaced} swapped")
        return Estimate(opened.lift(last_steps(dense, outcome).components), log.stages, outcome.converged)
    polished = _polished(problem, components, reduction.sides, MOST_READS, log)
    if polished.promised > NEGLIGIBLE:
        polished = _run_on(problem, polished, limits, log)
    return Estimate(polished.components, log.stages, polished.converged, polished.squared_distance)


def _polished(problem: Problem, start: FactoredTensor, sides: Sides | None, max_reads: int, log: Log) -> Polished:
    """Fit components to a tensor too large to be read at leisure."""
    polished, tensor = polish(problem, start, sides, max_reads), problem.tensor
    flops = step_flops(tensor, start.rank) * polished.n_reads
    log.add("polish", polished.n_reads, relative_error(tensor, polished.squared_distance / 2), flops)
    return polished


def _run_on(problem: Problem, found: Polished, limits: Limits, log: Log) -> Polished:
    """Go on where a few passes were not enough, as for data that fit no model: on a wider core, then on the tensor."""
    wider = reduce_widely(problem, np.random.default_rng(0))
    if wider is None:
        return found
    core = problem.on(wider.core)
    outcome = _settled(core, wider.lower(found.components), limits, log, "least squares on a wider core")
    max_reads = max(MOST_READS, RUN_ON_ENTRIES // problem.tensor.n_stored)
    last = minimize(problem, wider.lift(outcome.components), replace(limits, max_sweeps=max_reads, watch=None))
    log.add("polish", last.n_sweeps, relative_error(problem.tensor, last.objective))
    if not 2 * last.objective < found.squared_distance:
        return found
    return Polished(last.components, 2 * last.objective, last.n_sweeps, last.converged)


def _settled(problem: Problem, start: FactoredTensor, limits: Limits, log: Log, name: str) -> Outcome:
    """Fit the components to a dense tensor to the end, and past saddle points."""
    outcome = leave_saddles(problem, bounded(problem, minimize(problem, start, limits)), limits)
    flops = step_flops(problem.tensor, start.rank) * outcome.n_sweeps
    log.add(name, outcome.n_sweeps, relative_error(problem.tensor, outcome.objective), flops)
    return outcome


def closest(outcomes: Sequence[Outcome]) -> Outcome:
    """Return the outcome with the least objective, one that is not a number last."""
    return min(outcomes, key=lambda outcome: math.inf if math.isnan(outcome.objective) else outcome.objective)


class Watch:
    """What lets a monitor see components of the whole tensor with their relative error, until it says True."""

    def __init__(self, monitor: Monitor, reduction: Reduction, tensor: Tensor) -> None:
        self._monitor, self._reduction = monitor, reduction
        self._total = tensor.squared_norm()
        self._lost = max(self._total - reduction.core.squared_norm(), 0.0)
        self.stopped = False

    def __call__(self, components: FactoredTensor, objective: float) -> bool:
        if not self.stopped:
            error = math.sqrt((self._lost + 2 * objective) / self._total)
            self.stopped = self._monitor(self._reduction.lift(components), error) is True
        return self.stopped


def check_monitor(monitor: object) -> None:
    """Raise unless a monitor, if any, can be called."""
    if monitor is not None and not callable(monitor):
        raise TypeError(f"monitor must be None or a function of components and their relative error; got {monitor!r}")


def watch(monitor: Monitor | None, reduction: Reduction, tensor: Tensor) -> Watch | None:
    """Return a watch for the monitor, if there is one."""
    return None if monitor is None else Watch(monitor, reduction, tensor)


def is_stopped(limits: Limits) -> bool:
    """Tell whether a monitor has asked for the end."""
    return isinstance(limits.watch, Watch) and limits.watch.stopped


def step_flops(tensor: Tensor, rank: int) -> float:
    """Return the operations of a step, leading term: products with the entries, for the model and two for the slope."""
    return (4.0 if tensor.symmetric else 6.0) * math.prod(tensor.shape) * rank


def relative_error(tensor: Tensor, objective: float) -> float:
    """Return the relative error that half a squared distance amounts to."""
    return math.sqrt(2 * objective / tensor.squared_norm()) if tensor.squared_norm() > 0 else 0.0
