"""From a start to the end of a fit: roughly on a core, then to the minimum, then on the whole tensor."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from codiag._estimate import Estimate, Log
from codiag._problem import Problem
from codiag.methods._reduction import Reduction, Sides, reduce_widely
from codiag.methods.least_squares._degeneracy import bounded
from codiag.methods.least_squares._gauss_newton import NEGLIGIBLE, Limits, Outcome, minimize
from codiag.methods.least_squares._last_steps import last_steps
from codiag.methods.least_squares._polish import MOST_READS, Polished, polish
from codiag.methods.least_squares._saddles import leave_saddles
from codiag.methods.least_squares._swaps import swap_components
from codiag.tensors import FactoredTensor, Tensor

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
