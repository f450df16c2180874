"""The search: from starts in turn to local minima, until a further start would hardly end lower.

A start is taken to a minimum roughly, and from there by swaps of components. If the residual is noise, and every
component is worth much more than any term of it, one start is enough. Otherwise minima compete, and only starts that
end at the same lowest minimum show that others would, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np

from codiag._arrays import few_threads, is_complex, moved
from codiag.least_squares import (
    BRIEF_STEP,
    BRIEF_SWEEPS,
    NEGLIGIBLE,
    ROUGH,
    Limits,
    are_cancelling,
    minimize,
    minimize_with_estimates,
    objective_of,
)
from codiag.problem import INTERRUPTED, Budget, Estimate, Log, Problem, largest_product
from codiag.reduction import Reduction, is_small, reduce, uncompressed
from codiag.search._end import MEETINGS, End, lowest, n_meetings
from codiag.search._finish import finish, step_flops
from codiag.search._surplus import regrown
from codiag.search._swaps import revived, swapped
from codiag.starts import Start, default_starts, is_determined
from codiag.tensors import FactoredTensor, is_large

Monitor: TypeAlias = Callable[[FactoredTensor, float], bool | None]
"""Called as ``monitor(components, relative_error)`` after a step; True ends the fit there."""


@dataclass(frozen=True)
class Search:
    """The one search loop, for every problem.

    Attributes
    ----------
    starts : sequence of Start, optional
        By default those of `codiag.starts.default_starts`.
    max_starts : int
        Starts, at most.
    max_swaps : int
        Swaps from each start, at most.
    limits : Limits
        For the last minimization.
    monitor : callable, optional
        As `Monitor` says.
    effort : float
        Work, relative to that for the first local minimum, at most.
    max_seconds : float, optional
        By the clock, at most.
    """

    starts: Sequence[Start] | None
    max_starts: int
    max_swaps: int = BRIEF_SWEEPS
    limits: Limits = field(default_factory=Limits)
    monitor: Monitor | None = None
    effort: float = math.inf
    max_seconds: float | None = None

    def run(self, problem: Problem, rng: np.random.Generator) -> Estimate:
        """Solve a problem; with a monitor, an interrupt of the user returns the best components that it was shown."""
        run = _Run(self, problem, rng)
        try:
            with few_threads(largest_product(run.space.problem)):
                return run.solve()
        except KeyboardInterrupt:
            best = run.interrupted()
            if best is None:
                raise
            return best


class Watch:
    """Shows components of the whole tensor to a monitor, with their relative error, until it returns True."""

    def __init__(self, monitor: Monitor | None, problem: Problem) -> None:
        self._monitor, self._objective = monitor, objective_of(problem)
        self.space: Reduction | None = None
        self.stopped = False
        self.best: tuple[float, FactoredTensor] | None = None

    @classmethod
    def on_whole(cls, monitor: Monitor, problem: Problem) -> Watch:
        """Return a watch of components of the whole tensor."""
        watch = cls(monitor, problem)
        watch.space = Reduction.identity(problem)
        return watch

    def __call__(self, components: FactoredTensor, objective: float) -> bool:
        if self._monitor is not None and self.space is not None and not self.stopped:
            total, inside = self._objective.squared_norm, self.space.problem.data.squared_norm
            whole = self.space.to_tensor(components)
            if self._objective.is_quadratic and self.space.problem.constraints is None:
                error = math.sqrt((max(total - inside, 0.0) + 2 * objective) / total)
            else:  # the objective may hold ridges
                error = self._objective.relative_error(whole)
            self.best = (error, whole) if self.best is None or error < self.best[0] else self.best
            self.stopped = self._monitor(whole, error) is True
        return self.stopped


class _Run:
    """One search: the space that it works in, and its ends so far."""

    def __init__(self, search: Search, problem: Problem, rng: np.random.Generator) -> None:
        self._search, self._problem, self._rng = search, problem, rng
        effort = max(search.effort, search.max_starts) if _is_quick(problem) else search.effort
        self._budget = Budget(effort, search.max_seconds, patience=search.max_starts)
        self._log = Log(self._budget)
        self._starts = default_starts(problem) if search.starts is None else search.starts
        included = next((start.factors for start in self._starts if start.factors is not None), None)
        is_whole = is_small(problem.tensor.shape) and not problem.required_features
        self.space = uncompressed(problem) if is_whole else reduce(problem, rng, including=included)
        self._watch = Watch(search.monitor, problem)
        self._watch.space = self.space
        watch = None if search.monitor is None else self._watch
        self._limits = replace(search.limits, watch=watch, budget=self._budget)
        self._ends: list[End] = []
        self._unconverged: tuple[float, Estimate] | None = None

    def solve(self) -> Estimate:
        """Take starts in turn until their ends are enough, and finish the lowest end."""
        if not self.space.is_complete:
            share = self.space.problem.data.squared_norm / self._problem.data.squared_norm
            self._log.add("compress", 0, math.sqrt(max(1 - share, 0.0)))
        for components in self._components():
            self._ends.append(self._end(components, 0 if self._swaps_last else self._search.max_swaps))
            estimate = self._finished()
            if estimate is not None:
                return estimate
            if self._budget.is_over and lowest(self._ends).shows_model:
                self._budget.extend()
            if len(self._ends) >= self._search.max_starts or self._budget.is_over:
                break
        if not self._ends:
            raise ValueError("starts must yield components for this problem; those that were given yield none")
        if self._swaps_last and self._search.max_swaps > 0 and not self._budget.is_over:
            best = self._ends.index(lowest(self._ends))
            self._ends[best] = self._end(self._ends[best].outcome.components, self._search.max_swaps)
        return self._best()

    @property
    def _swaps_last(self) -> bool:
        """Whether swaps are tried on the lowest end only, after all starts.

        A start without constraints misses single components, which swaps mend at once. If signs are constrained, it is
        far from the minimum, and random starts cost less; so they do under a loss, where they are least squares.
        """
        return self._problem.is_one_sided or self._problem.loss is not None

    def interrupted(self) -> Estimate | None:
        """Return the best components that a monitor was shown, if there is one."""
        if self._watch.best is None:
            return None
        error, components = self._watch.best
        self._log.add("interrupted: the best so far", 0, error, in_doubt=True)
        return Estimate(components, self._log.stages, False)

    def _components(self) -> Iterator[FactoredTensor]:
        """Yield the components of all starts in the coordinates of the space; given ones are those of the tensor."""
        for start in self._starts:
            if not start.on_core:
                self._uncompress()
            for components in start.generate(self.space.problem, self._rng, self._log):
                if getattr(components, "rank", None) != self._problem.rank:
                    wanted = f"a codiag.tensors.FactoredTensor of rank {self._problem.rank}"
                    raise TypeError(f"{type(start).__name__}.generate must yield {wanted}; got {components!r}")
                components = _in_numbers_of(self.space.problem, components)
                yield components if start.factors is None else self.space.to_core(components)

    def _uncompress(self) -> None:
        """Continue on the whole tensor if it is small enough, from the lowest end so far."""
        whole = self.space.uncompressed()
        if whole is self.space:
            return
        lowest_end = lowest(self._ends) if self._ends else None
        before, self.space, self._watch.space, self._ends = self.space, whole, whole, []
        if lowest_end is not None:
            self._ends = [self._end(whole.to_core(before.to_tensor(lowest_end.outcome.components)), 0)]

    def _end(self, start: FactoredTensor, max_swaps: int) -> End:
        """Take a start to a local minimum, and note that."""
        problem, search = self.space.problem, self._limits
        n_sweeps = min(ROUGH.max_sweeps, search.max_sweeps)
        limits = replace(ROUGH, max_sweeps=n_sweeps, watch=search.watch, budget=search.budget)
        variance = objective_of(problem).noise_variance
        if _is_quick(problem) and variance > 0:  # noise would hide that minima differ
            limits = replace(limits, gain=min(ROUGH.gain, BRIEF_STEP / variance))
        is_patient = not self._ends or lowest(self._ends).shows_model
        end, n_swaps = local_minimum(problem, start, limits, max_swaps, self._problem, is_patient=is_patient)
        if end.problem is not problem:  # further ends are compared under the same loss
            self.space = self._watch.space = replace(self.space, problem=end.problem)
        swaps = "1 component" if n_swaps == 1 else f"{n_swaps} components"
        name = f"rough {end.minimized.steps_name}"
        flops = step_flops(problem.tensor, problem.rank) * end.outcome.n_sweeps
        self._log.add(f"{name}, {swaps} swapped" if n_swaps else name, end.outcome.n_sweeps, end.relative_error, flops)
        return end

    def _finished(self) -> Estimate | None:
        """Return the finished fit if no further start is in question, else None."""
        if self._limits.is_stopped:
            return self._best()
        if not _is_quick(self._problem):  # else it is quick to search for the best fit to noise
            surplus = self._without_surplus(self._ends[-1])
            if surplus is not None:
                return surplus
        best = lowest(self._ends)
        n_starts = self._search.max_starts if _is_quick(self._problem) else 1  # they cost milliseconds
        if not is_enough(self._ends, n_starts):
            return None
        estimate = self._finish(best)
        if estimate.converged or is_large(self._problem.tensor.shape) or best.has_surplus:
            return estimate
        self._unconverged = self._distance(best), estimate  # there may be a lower minimum, or none
        return None

    def _distance(self, end: End) -> float:
        """Return the squared distance of an end from the whole tensor."""
        outside = self._problem.data.squared_norm - self.space.problem.data.squared_norm
        return 2 * end.objective + max(outside, 0.0)

    def _without_surplus(self, end: End) -> Estimate | None:
        """Return a fit with surplus components grown one at a time, if an end shows that there are some."""
        whole = self.space.uncompressed()
        if not end.is_noise or is_large(whole.problem.tensor.shape):
            return None
        grown = regrown(end, self.space, whole)
        if grown is None:
            return None
        self._log.add("surplus components added one at a time", grown.outcome.n_sweeps, grown.relative_error)
        estimate = finish(self._problem, whole, grown, self._last_limits, self._log, 0)
        return estimate if estimate.converged and not self._is_cancelling(estimate) else None

    def _is_cancelling(self, estimate: Estimate) -> bool:
        return are_cancelling(self._problem, estimate.components, times=1)

    def _finish(self, end: End) -> Estimate:
        """Finish an end, unless one as low was finished before, and did not converge."""
        if self._unconverged is not None and self._distance(end) > (1 - NEGLIGIBLE) * self._unconverged[0]:
            return self._unconverged[1]._replace(stages=self._log.stages)
        estimate = finish(self._problem, self.space, end, self._last_limits, self._log, self._search.max_swaps)
        if _is_quick(self._problem) and self._is_cancelling(estimate):
            return self._without_surplus(end) or estimate
        return estimate

    @property
    def _last_limits(self) -> Limits:
        """Limits for the finish, which is no search: those of the caller, and the time."""
        return replace(self._limits, budget=self._budget.clock())

    def _best(self) -> Estimate:
        """Finish the lowest end, and note how often it was reached, and why the search ended."""
        best = lowest(self._ends)
        n_met = n_meetings(self._ends)
        times = "once" if n_met == 1 else "twice" if n_met == 2 else f"{n_met} times"
        late = ", interrupted" if INTERRUPTED.is_set() else ", out of time"
        why = late if self._budget.is_late else ", out of budget" if self._budget.is_over else ""
        if len(self._ends) > 1 or why:
            name = f"best of {len(self._ends)} local minima, reached {times}{why}"
            self._log.add(name, 0, best.relative_error, in_doubt=self._budget.is_late or not is_enough(self._ends))
        return self._finish(best)


def _is_quick(problem: Problem) -> bool:
    """Return whether a start costs milliseconds: least squares of a small tensor."""
    return problem.loss is None and is_small(problem.tensor.shape)


def _in_numbers_of(problem: Problem, components: FactoredTensor) -> FactoredTensor:
    """Return components in the kind of numbers of a problem: a start may be real where the tensor is complex."""
    reference = problem.tensor.reference
    if is_complex(components.reference) == is_complex(reference):
        return components
    if is_complex(components.reference):
        raise TypeError("starts must yield real components of a real tensor; got complex ones")
    weights, *factors = (moved(array, reference) for array in (components.weights, *components.factors))
    return FactoredTensor(weights, factors, symmetric=components.symmetric)


def local_minimum(
    problem: Problem,
    start: FactoredTensor,
    limits: Limits,
    max_swaps: int,
    whole: Problem | None = None,
    *,
    is_patient: bool = False,
) -> tuple[End, int]:
    """Take a start to a local minimum, and swap components while that helps; return the number of swaps, too.

    If patient, the budget is extended once the model is seen to hold.
    """
    problem, outcome = minimize_with_estimates(problem, start, limits)
    end, n_swaps = revived(End(problem, outcome, whole), limits), 0
    if limits.budget is not None:
        limits.budget.start()
    if max_swaps == 0 or limits.is_stopped or is_large(problem.tensor.shape):
        return end, 0
    n_sweeps, n_last = end.outcome.n_sweeps, -1
    while n_last != 0 and n_swaps < max_swaps:
        if is_patient and limits.budget is not None and end.shows_model:
            limits.budget.extend()
        end, n_last = swapped(end, max_swaps - n_swaps, limits.budget)
        n_swaps += n_last
        if n_last > 0:
            end = end.with_outcome(minimize(problem, end.outcome.components, limits))
            n_sweeps += end.outcome.n_sweeps
    return end.with_outcome(end.outcome._replace(n_sweeps=n_sweeps)), n_swaps


def explore(
    problem: Problem,
    starts: Sequence[Start],
    rng: np.random.Generator,
    *,
    max_starts: int,
    max_swaps: int,
    limits: Limits = ROUGH,
) -> End:
    """Return the lowest local minimum from starts in turn, until their ends are enough, without finishing it."""
    ends: list[End] = []
    for start in starts:
        for components in start.generate(problem, rng, Log(limits.budget or Budget())):
            ends.append(local_minimum(problem, components, limits, max_swaps)[0])
            is_over = limits.budget is not None and limits.budget.is_over
            if len(ends) >= max_starts or is_over or is_enough(ends):
                return lowest(ends)
    return lowest(ends)


def is_enough(ends: Sequence[End], n_starts: int = 1) -> bool:
    """Return whether a further start would hardly end lower.

    That is so if the fit is exact; if its residual is noise and few components are weak; or if enough starts have
    ended at the lowest minimum, of `n_starts` at least. If anything looks like noise, or components cancel each other,
    so that each seems worth far more than they are together, only the last counts. A few weak components are no reason
    for a further start if the others determine the diagonalization (`is_determined`), and swaps were tried. Strong
    noise would cost twice the time.
    """
    best = lowest(ends)
    problem = best.problem
    is_quick = _is_quick(problem)
    if best.is_exact or is_large(problem.tensor.shape):
        return True
    if problem.rank == 1 and not problem.required_features and not is_quick:
        return True
    must_be_clear = is_quick or not is_determined(problem)
    n_allowed = 0 if must_be_clear else best.n_few
    is_misleading = best.fits_anything or are_cancelling(problem, best.outcome.components)
    if best.is_noise and not is_misleading and len(best.weak) <= n_allowed:
        return True
    return len(ends) >= n_starts and n_meetings(ends) >= MEETINGS
