"""The search: from starts in turn to local minima, until a further start would hardly end lower.

A start is taken to a minimum roughly, and from there by exchange steps. If the residual is noise, and every
component explains much more than any term of it, one start is enough. Otherwise minima compete, and only starts that
end at the same lowest minimum show that others would, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np

from codiag._arrays import few_threads, is_complex, to_namespace
from codiag.least_squares import (
    BRIEF_STEP,
    BRIEF_SWEEPS,
    INTERRUPTED,
    ROUGH,
    TOLERANCE,
    Budget,
    Limits,
    Log,
    are_degenerate,
    largest_product,
    minimize,
    minimize_with_estimates,
    objective_of,
)
from codiag.problem import Estimate, Problem
from codiag.reduction import Reduction, is_small, reduce, uncompressed
from codiag.search._approach import approach
from codiag.search._exchange import exchange_steps, refit_surplus, replace_zero_components
from codiag.search._finish import finish, step_flops
from codiag.search._local_minimum import LocalMinimum, lowest, n_hits
from codiag.starts import Start, default_starts, tournaments_apply
from codiag.tensors import FactoredTensor, is_large

CERTAIN = 0.05
"""Chance that a lower minimum was missed, at which a search ends."""

Callback: TypeAlias = Callable[[FactoredTensor, float], bool | None]
"""Called as ``callback(components, relative_error)`` after a step; True ends the fit there."""


@dataclass(frozen=True)
class Search:
    """The one search loop, for every problem.

    Attributes
    ----------
    starts : sequence of Start, optional
        By default those of `codiag.starts.default_starts`.
    max_starts : int
        Starts, at most.
    max_exchanges : int
        Exchange steps from each start, at most.
    limits : Limits
        For the last minimization.
    callback : callable, optional
        As `Callback` says.
    max_work : float
        Work, relative to that for the first local minimum, at most.
    time_limit : float, optional
        By the clock, at most.
    """

    starts: Sequence[Start] | None
    max_starts: int
    max_exchanges: int = BRIEF_SWEEPS
    limits: Limits = field(default_factory=Limits)
    callback: Callback | None = None
    max_work: float = math.inf
    time_limit: float | None = None

    def run(self, problem: Problem, rng: np.random.Generator) -> Estimate:
        """Solve a problem; with a callback, an interrupt of the user returns the best components that it was shown."""
        run = _Run(self, problem, rng)
        try:
            with few_threads(largest_product(run.space.problem)):
                return run.solve()
        except KeyboardInterrupt:
            best = run.interrupted()
            if best is None:
                raise
            return best


class CallbackRunner:
    """Shows components of the whole tensor to a callback, with their relative error, until it returns True."""

    def __init__(self, callback: Callback | None, problem: Problem) -> None:
        self._callback, self._objective = callback, objective_of(problem)
        self.space: Reduction | None = None
        self.stopped = False
        self.best: tuple[float, FactoredTensor] | None = None

    @classmethod
    def on_whole(cls, callback: Callback, problem: Problem) -> CallbackRunner:
        """Return a watch of components of the whole tensor."""
        callback = cls(callback, problem)
        callback.space = Reduction.identity(problem)
        return callback

    def __call__(self, components: FactoredTensor, objective: float) -> bool:
        if self._callback is not None and self.space is not None and not self.stopped:
            total, inside = self._objective.squared_norm, self.space.problem.data.squared_norm
            whole = self.space.to_tensor(components)
            if self._objective.is_quadratic and self.space.problem.constraints is None:
                error = math.sqrt((max(total - inside, 0.0) + 2 * objective) / total)
            else:  # the objective may hold ridges
                error = self._objective.relative_error(whole)
            self.best = (error, whole) if self.best is None or error < self.best[0] else self.best
            self.stopped = self._callback(whole, error) is True
        return self.stopped


class _Run:
    """One search: the space that it works in, and its ends so far."""

    def __init__(self, search: Search, problem: Problem, rng: np.random.Generator) -> None:
        self._search, self._problem, self._rng = search, problem, rng
        self._budget = Budget(search.max_work, search.time_limit)
        self._log = Log(self._budget)
        self._starts = default_starts(problem) if search.starts is None else search.starts
        included = next((start.factors for start in self._starts if start.factors is not None), None)
        is_whole = is_small(problem.tensor.shape) and not problem.required_features
        self.space = uncompressed(problem) if is_whole else reduce(problem, rng, including=included)
        self._runner = CallbackRunner(search.callback, problem)
        self._runner.space = self.space
        callback = None if search.callback is None else self._runner
        self._limits = replace(search.limits, callback=callback, budget=self._budget)
        self._ends: list[LocalMinimum] = []
        self._exchanged: LocalMinimum | None = None

    def solve(self) -> Estimate:
        """Take starts in turn until their ends are enough, and finish the lowest end."""
        if not self.space.is_complete:
            share = self.space.problem.data.squared_norm / self._problem.data.squared_norm
            self._log.add("compress", 0, math.sqrt(max(1 - share, 0.0)))
        for _, components in self._components():
            self._ends.append(self._end(components, 0 if self._exchanges_last else self._search.max_exchanges))
            if self._limits.is_stopped:
                return self._best()
            if self._budget.is_over and lowest(self._ends).shows_model:
                self._budget.extend()
            surplus = self._without_surplus(self._ends[-1]) if lowest(self._ends) is self._ends[-1] else None
            if surplus is not None:
                return surplus
            if self._is_settled() or len(self._ends) >= self._search.max_starts or self._budget.is_over:
                break
        if not self._ends:
            raise ValueError("starts must yield components for this problem; those that were given yield none")
        if not shows_optimum(self._ends):
            self._exchange()
        return self._best()

    def _is_settled(self) -> bool:
        """Return whether further starts would hardly end lower, and exchange steps do not."""
        if should_stop(self._ends) and not shows_optimum(self._ends):
            self._exchange()
        return should_stop(self._ends)

    def _exchange(self) -> None:
        """Take exchange steps from the lowest end, once."""
        best = lowest(self._ends)
        if self._exchanges_last and best is not self._exchanged and not self._budget.is_over:
            end = self._end(best.result.components, self._search.max_exchanges)
            if end.objective < best.objective:
                self._ends[self._ends.index(best)] = end
            self._exchanged = lowest(self._ends)

    @property
    def _exchanges_last(self) -> bool:
        """Whether exchange steps are tried on the lowest end only, after all starts.

        A start without constraints misses single components, which exchange steps repair at once. If signs are
        constrained, or under a loss, it is far from the minimum, and further starts cost less.
        """
        return self._problem.loss is not None or self._problem.is_cone or self._problem.entries is not None

    def interrupted(self) -> Estimate | None:
        """Return the best components that a callback was shown, if there is one."""
        if self._runner.best is None:
            return None
        error, components = self._runner.best
        self._log.add("interrupted: the best so far", 0, error, p_missed=1.0)
        return Estimate(components, self._log.history, False)

    def _components(self) -> Iterator[tuple[Start, FactoredTensor]]:
        """Yield starts and their components, in the coordinates of the space."""
        for start in self._starts:
            if not start.uses_core:
                self._uncompress()
            for components in start.generate(self.space.problem, self._rng, self._log):
                if getattr(components, "rank", None) != self._problem.rank:
                    wanted = f"a codiag.tensors.FactoredTensor of rank {self._problem.rank}"
                    raise TypeError(f"{type(start).__name__}.generate must yield {wanted}; got {components!r}")
                components = _in_numbers_of(self.space.problem, components)
                yield start, components if start.factors is None else self.space.to_core(components)

    def _uncompress(self) -> None:
        """Continue on the whole tensor if it is small enough, from the lowest end so far."""
        whole = self.space.uncompressed()
        if whole is self.space:
            return
        lowest_end = lowest(self._ends) if self._ends else None
        before, self.space, self._runner.space, self._ends = self.space, whole, whole, []
        if lowest_end is not None:
            self._ends = [self._end(whole.to_core(before.to_tensor(lowest_end.result.components)), 0)]

    def _end(self, start: FactoredTensor, max_exchanges: int) -> LocalMinimum:
        """Take a start to a local minimum, and note that."""
        problem, search = self.space.problem, self._limits
        variance, is_quick = objective_of(problem).noise_variance, _is_quick(problem)
        is_rough = not is_quick and (problem.entries is not None or len(self._ends) > 0)  # minima compete
        n_iter = min(ROUGH.max_iter, search.max_iter)
        if is_rough:
            n_iter = min(BRIEF_SWEEPS if self._ends else BRIEF_SWEEPS // 3, n_iter)
        limits = replace(ROUGH, max_iter=n_iter, callback=search.callback, budget=search.budget)
        if variance > 0 and (is_quick or is_rough):  # noise would hide that minima differ
            clip = max if is_rough else min
            limits = replace(limits, gain=clip(ROUGH.gain, BRIEF_STEP / variance))
        goal = lowest(self._ends).objective if self._ends else math.inf
        end, n_exchanges = local_minimum(problem, start, limits, max_exchanges, self._problem, goal)
        if end.problem is not problem:  # further ends are compared under the same loss
            self.space = self._runner.space = replace(self.space, problem=end.problem)
        exchanges = "1 exchange step" if n_exchanges == 1 else f"{n_exchanges} exchange steps"
        name = f"rough {end.minimized.steps_name}"
        flops = step_flops(problem.tensor, problem.rank) * end.result.n_iter
        self._log.add(f"{name}, {exchanges}" if n_exchanges else name, end.result.n_iter, end.relative_error, flops)
        return end

    def _without_surplus(self, end: LocalMinimum) -> Estimate | None:
        """Return a fit with surplus components grown one at a time, if an end shows that there are some.

        Without constraints, power iterations find the largest terms of noise; under constraints it may have larger ones
        that they miss.
        """
        whole = self.space.uncompressed()
        if not end.is_noise or is_large(whole.problem.tensor.shape):
            return None
        grown = refit_surplus(end, self.space, whole)
        if grown is None:
            return None
        name = "components that fit noise, added one at a time"
        p_missed = 0.0 if self._problem.constraints is None else chance_of_lower([grown])
        self._log.add(name, grown.result.n_iter, grown.relative_error, p_missed=p_missed)
        estimate = finish(self._problem, whole, grown, self._last_limits, self._log, 0)
        is_lower = estimate.converged or self._log.history[-1].objective <= end.relative_error
        return estimate if is_lower and not self._is_degenerate(estimate) else None

    def _is_degenerate(self, estimate: Estimate) -> bool:
        return are_degenerate(self._problem, estimate.components, times=1)

    @property
    def _last_limits(self) -> Limits:
        """Limits for the finish, which is no search: those of the caller, and the time."""
        return replace(self._limits, budget=self._budget.renewed(self._problem))

    def _best(self) -> Estimate:
        """Finish the lowest end, and note how often it was reached, and why the search ended."""
        best = lowest(self._ends)
        n_met = n_hits(self._ends)
        times = "once" if n_met == 1 else "twice" if n_met == 2 else f"{n_met} times"
        late = ", interrupted" if INTERRUPTED.is_set() else ", out of time"
        why = late if self._budget.is_late else ", out of budget" if self._budget.is_over else ""
        if len(self._ends) > 1 or why or not shows_optimum(self._ends):
            minima = "1 local minimum" if len(self._ends) == 1 else f"{len(self._ends)} local minima"
            name = f"best of {minima}, reached {times}{why}"
            self._log.add(name, 0, best.relative_error, p_missed=self._chance_of_lower())
        estimate = finish(self._problem, self.space, best, self._last_limits, self._log, self._search.max_exchanges)
        if estimate.history[-1].objective < TOLERANCE:  # no minimum is lower
            estimate = estimate._replace(history=[stage._replace(p_missed=0.0) for stage in estimate.history])
        return estimate

    def _chance_of_lower(self) -> float:
        """Return the chance that a lower minimum was missed; one if there was no time to search."""
        return 1.0 if self._budget.is_late else chance_of_lower(self._ends)


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
    weights, *factors = (to_namespace(array, reference) for array in (components.weights, *components.factors))
    return FactoredTensor(weights, factors, symmetric=components.symmetric)


def local_minimum(
    problem: Problem,
    start: FactoredTensor,
    limits: Limits,
    max_exchanges: int,
    whole: Problem | None = None,
    goal: float = math.inf,
) -> tuple[LocalMinimum, int]:
    """Take a start to a local minimum, and take exchange steps while they help; return their number, too."""
    is_incomplete = problem.entries is not None and not problem.tensor.is_partial  # a list of entries is not unfolded
    if problem.loss is None and is_incomplete and tournaments_apply(problem):
        result = approach(problem, start, limits, goal)
    else:
        problem, result = minimize_with_estimates(problem, start, limits)
    end, n_exchanges = replace_zero_components(LocalMinimum(problem, result, whole), limits), 0
    if limits.budget is not None:
        limits.budget.start(whole or problem)
    if max_exchanges == 0 or limits.is_stopped or is_large(problem.tensor.shape):
        return end, 0
    n_iter, n_last = end.result.n_iter, -1
    while n_last != 0 and n_exchanges < max_exchanges:
        if limits.budget is not None and end.shows_model:
            limits.budget.extend()
        end, n_last = exchange_steps(end, max_exchanges - n_exchanges, limits.budget)
        n_exchanges += n_last
        if n_last > 0:
            end = end.with_result(minimize(problem, end.result.components, limits))
            n_iter += end.result.n_iter
    return end.with_result(end.result._replace(n_iter=n_iter)), n_exchanges


def chance_of_lower(ends: Sequence[LocalMinimum]) -> float:
    """Return the chance that a lower minimum was missed; zero if the residual shows that there is none."""
    return 0.0 if shows_optimum(ends) else chance_missed(len(ends), n_hits(ends))


def chance_missed(n: int, n_hits: int) -> float:
    r"""Return the chance that n starts miss a lower minimum, if `n_hits` of them have ended at the lowest.

    If there is a lower one that is as easily met, with the probability q of Beta(h + 1, n - h + 1), the posterior under
    a uniform prior, n starts miss it with the probability :math:`E (1 - q)^n = \binom{2n - h}{n} / \binom{2n + 1}{n}`:
    .28 if one of four has met the lowest minimum, .008 if all have. Compare C. G. E. Boender and A. H. G. Rinnooy Kan,
    "Bayesian stopping rules for multistart global optimization methods", Math. Programming 37, 1987.
    """
    return math.comb(2 * n - n_hits, n) / math.comb(2 * n + 1, n)


def shows_optimum(ends: Sequence[LocalMinimum]) -> bool:
    """Return whether the residual of the lowest minimum shows that there is no lower one.

    That is so if the fit is exact; or if its residual is noise and no component is weak, unless anything looks like
    noise, or the fit is degenerate, so that each component seems to explain far more than they do together. If no mode
    is smaller than the rank, the strong components determine the diagonalization, which another start would only
    repeat: a few may be weak then, unless further starts cost milliseconds. Nothing is known of tensors that are too
    large to be searched.
    """
    best = lowest(ends)
    problem = best.problem
    if best.is_exact or is_large(problem.tensor.shape):
        return True
    is_misleading = best.fits_anything or are_degenerate(problem, best.result.components)
    is_determined = problem.rank <= min(problem.tensor.shape) and not _is_quick(problem)
    return best.is_noise and not is_misleading and len(best.weak) <= (best.n_few if is_determined else 0)


def should_stop(ends: Sequence[LocalMinimum]) -> bool:
    """Return whether a further start would hardly end lower."""
    return chance_of_lower(ends) <= CERTAIN
