"""Fits of several ranks to one tensor, which share one compression and learn from their neighbors."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from codiag._estimate import Estimate, Log
from codiag._factorization import Factorization
from codiag._factorize import has_safe_powers, in_double_precision, solve
from codiag._problem import Problem
from codiag._result import as_factorization, canonical
from codiag.methods import Auto
from codiag.methods._auto import REPLACEMENTS, start_on
from codiag.methods._known import improved
from codiag.methods._reduction import Reduction, reduce
from codiag.methods.least_squares._fit import LEAST_POLISH, ROUGH, closest, finish
from codiag.methods.least_squares._gauss_newton import Limits, Outcome, minimize
from codiag.methods.least_squares._objective import LeastSquares
from codiag.methods.least_squares._rank_one import best_rank_one
from codiag.methods.least_squares._replacement import replace_components
from codiag.methods.least_squares._residual import noise_excess
from codiag.tensors import FactoredTensor

BRIEF = replace(ROUGH, max_sweeps=LEAST_POLISH)
"""For ranks that nothing speaks for: too many components settle slowly, and on noise."""


@dataclass
class Scan:
    """Fits of one problem by rank.

    Attributes
    ----------
    problem : Problem
        What was asked, for the largest of the ranks.
    fits : dict of int to Factorization
    reduction : Reduction, optional
        The core on which they were found, where one was.
    outcomes : dict of int to Outcome
        Where they ended on it.
    """

    problem: Problem
    reduction: Reduction | None = None
    fits: dict[int, Factorization] = field(default_factory=dict)
    outcomes: dict[int, Outcome] = field(default_factory=dict)

    @property
    def is_on_core(self) -> bool:
        """Whether the tensor was too large to fit to anything but its core."""
        return self.reduction is not None and self.reduction.dense is None

    def asked(self, rank: int) -> Problem:
        """Return the problem for one of the ranks."""
        return replace(self.problem, rank=rank)

    def finish(self, rank: int) -> None:
        """Bring the fit of one rank to its minimum, on all of the tensor."""
        if self.reduction is not None and not self.fits[rank].converged:
            asked = self.asked(rank)
            found = finish(asked, self.reduction, self.outcomes[rank], Limits(max_sweeps=300), Log(), REPLACEMENTS)
            self.fits[rank] = as_factorization(found, asked)


def scan(
    problem: Problem, ranks: Sequence[int], rng: np.random.Generator, *, worth_more: Callable[[Factorization], bool] | None
) -> Scan:
    """Fit components of every rank, in ascending order; those that `worth_more` says it of are fitted to the end.

    Without it, none is, and fits stay on the core.

    A free and complete tensor is compressed once, for the largest rank, and all fits begin on that core: from its
    diagonalization, and from the components of the rank before joined by the largest rank-one terms of what these
    leave. Constraints and missing entries are fitted on all of the tensor, rank by rank, from the same two starts.
    """
    if problem.asks or not has_safe_powers(problem.tensor, math.sqrt(problem.tensor.squared_norm())):
        return _rank_by_rank(in_double_precision(problem), ranks, rng)
    reduction = reduce(problem, rng)
    found = Scan(problem, reduction)
    before: Outcome | None = None
    quiet = False
    for rank in ranks:
        reduced = Problem(reduction.core, rank)
        starts = [start_on(reduction.core, rank, rng, Log())]
        if before is not None:
            starts.append(extended(reduced, before.components))
        before = closest([minimize(reduced, start, ROUGH) for start in starts])
        if not quiet:  # once the residual is noise, all that could be put in place of a component is noise too
            before, _ = replace_components(reduced, before, ROUGH, max_replacements=REPLACEMENTS)
            quiet = noise_excess(LeastSquares(reduced).residual(before.components)) <= 1
        found.outcomes[rank] = before
        found.fits[rank] = _lifted(found, reduction, rank, worth_more)
    return found


def extended(problem: Problem, components: FactoredTensor) -> FactoredTensor:
    """Return components joined by the largest rank-one terms of what they leave, up to the rank of a problem."""
    objective = LeastSquares(problem)
    while components.rank < problem.rank:
        components = components.joined(best_rank_one(objective.left_over(components)))
    return components


def _lifted(
    found: Scan, reduction: Reduction, rank: int, worth_more: Callable[[Factorization], bool] | None) -> Factorization:
    """Return the fit to the core as one to the tensor, improved there where the tensor is small."""
    outcome, asked = found.outcomes[rank], found.asked(rank)
    if reduction.dense is None or worth_more is None:
        return _on_core(asked, reduction, outcome)
    dense = asked.on(reduction.dense)
    outcome = minimize(dense, reduction.lift(outcome.components), BRIEF)
    fit = as_factorization(Estimate(outcome.components, (), False), asked)
    if worth_more(fit):
        outcome = minimize(dense, outcome.components, Limits())
        fit = as_factorization(Estimate(outcome.components, (), outcome.converged), asked)
    return fit


def _on_core(problem: Problem, reduction: Reduction, outcome: Outcome) -> Factorization:
    """Return a fit to the core as one to the tensor, without another pass over it."""
    components, total = canonical(reduction.lift(outcome.components), problem), problem.tensor.squared_norm()
    left = max(total - reduction.core.squared_norm(), 0.0) + 2 * outcome.objective
    error = math.sqrt(left / total)
    return Factorization(components.weights, components.factors, error, math.sqrt(total), False)


def _rank_by_rank(problem: Problem, ranks: Sequence[int], rng: np.random.Generator) -> Scan:
    """Fit all of the tensor for every rank: from the starts of the default method, and from the rank before."""
    found = Scan(problem)
    for rank in ranks:
        asked = found.asked(rank)
        fit = solve(asked, Auto(max_starts=2), rng)
        if found.fits:
            fit = _unless_beaten(fit, asked, found.fits[max(found.fits)].tensor)
        found.fits[rank] = fit
    return found


def _unless_beaten(fit: Factorization, problem: Problem, before: FactoredTensor) -> Factorization:
    """Return a fit, or a better one that the components of a lower rank lead to."""
    objective = LeastSquares(problem)
    other = improved(objective, extended(problem, before), ROUGH)
    if objective.relative_error(other.components) > fit.relative_error * (1 - 1e-6):
        return fit
    other = improved(objective, other.components, Limits())
    return as_factorization(Estimate(other.components, fit.stages, other.converged), problem)
