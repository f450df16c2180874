"""Fits of several ranks to one tensor, which share one compression and learn from their neighbors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from codiag.least_squares import LeastSquares, Limits, Outcome, best_rank_one, minimize, noise_excess
from codiag.methods import first_components, start_on
from codiag.problem import Estimate, Log, Problem
from codiag.reduction import Reduction, reduce
from codiag.result import Factorization, as_factorization, canonical, in_double_precision
from codiag.search import ROUGH, SWAPS, closest, finish, fit_from, improved, starts_for, swap_components
from codiag.selection._soundness import is_sound, residual_excess
from codiag.tensors import DenseTensor, FactoredTensor

BRIEF = replace(ROUGH, max_sweeps=4)
"""For ranks that are too high."""


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

    def asked(self, rank: int) -> Problem:
        """Return the problem for one of the ranks."""
        return replace(self.problem, rank=rank)

    def finish(self, rank: int) -> None:
        """Bring the fit of one rank to its minimum, on all of the tensor."""
        asked, limits, log = self.asked(rank), Limits(max_sweeps=300), Log()
        if self.reduction is not None:
            found = finish(asked, self.reduction, self.outcomes[rank], limits, log, SWAPS)
        else:
            found = fit_from(asked, [self.fits[rank].tensor], limits, log, None)
        self.fits[rank] = as_factorization(found, asked)


def scan(
    problem: Problem,
    ranks: Sequence[int],
    rng: np.random.Generator,
    *,
    polish: bool = True,
) -> Scan:
    """Fit components of every rank, in ascending order, to where further steps gain less than noise explains.

    A free and complete tensor is compressed once, for the largest rank, and all fits begin on that core: from its
    diagonalization, and from the components of the rank before joined by the largest rank-one terms of what these
    leave. Once these leave noise, and one more is not sound, further ranks get a few steps from the rank before: too
    many components settle slowly, and on noise. Unless they are to be polished, fits stay on the core, from one start.
    Constraints and missing entries are fitted on all of the tensor, rank by rank, from the same two starts.
    """
    if problem.asks:
        return _rank_by_rank(in_double_precision(problem), ranks, rng)
    reduction = reduce(problem, rng)
    found = Scan(problem, reduction)
    is_noise = is_over = False
    for rank in ranks:
        reduced = Problem(reduction.core, rank)
        n_swaps = SWAPS if polish and not is_noise else 0  # only noise is left to swap them for
        before = found.outcomes.get(max(found.outcomes, default=0))
        if not polish and not is_over and rank <= sorted(reduction.core.shape)[-2]:
            before = None  # the diagonalization alone is enough where other fits vouch for the minimum
        outcome = _on_core(reduced, reduction.core, before, rng, n_swaps, is_over)
        found.outcomes[rank] = outcome
        below = found.fits.get(max(found.fits, default=0))
        limits = None if not polish else BRIEF if is_over else ROUGH
        found.fits[rank] = _lifted(found.asked(rank), reduction, outcome, limits)
        is_over = is_over or (is_noise and not is_sound(found.fits[rank], below))
        is_noise = is_noise or noise_excess(LeastSquares(reduced).residual(outcome.components)) <= 1
    return found


def _on_core(
    problem: Problem,
    core: DenseTensor,
    before: Outcome | None,
    rng: np.random.Generator,
    n_swaps: int,
    is_over: bool,
) -> Outcome:
    """Fit a core, from the fit of a lower rank and from the diagonalization."""
    starts = [] if before is None else [extended(problem, before.components)]
    if is_over and starts:
        return minimize(problem, starts[0], BRIEF)
    starts.append(start_on(core, problem.rank, rng, Log()))
    found = closest([minimize(problem, start, ROUGH) for start in starts])
    return swap_components(problem, found, max_swaps=n_swaps)[0]


def _lifted(problem: Problem, reduction: Reduction, outcome: Outcome, limits: Limits | None) -> Factorization:
    """Return a fit to the core as one to the tensor: improved there, or without another pass over a large one."""
    components = reduction.lift(outcome.components)
    if reduction.dense is not None:
        if limits is not None:
            components = minimize(problem.on(reduction.dense), components, limits).components
        return as_factorization(Estimate(components, (), False), problem)
    components, total = canonical(components, problem), problem.tensor.squared_norm()
    left = max(total - reduction.core.squared_norm(), 0.0) + 2 * outcome.objective
    return Factorization(components.weights, components.factors, math.sqrt(left / total), math.sqrt(total), False)


def extended(problem: Problem, components: FactoredTensor) -> FactoredTensor:
    """Return components joined by the largest rank-one terms of what they leave, up to the rank of a problem."""
    objective = LeastSquares(problem)
    while components.rank < problem.rank:
        components = components.joined(best_rank_one(objective.left_over(components)))
    return components


def _rank_by_rank(problem: Problem, ranks: Sequence[int], rng: np.random.Generator) -> Scan:
    """Fit all of the tensor for every rank, under its constraints, to what was observed."""
    found = Scan(problem)
    is_noise = is_over = False
    for rank in ranks:
        asked = found.asked(rank)
        before = found.fits.get(max(found.fits, default=0))
        found.fits[rank] = fit = _as_asked(asked, before, rng, is_over)
        is_over = is_over or (is_noise and not is_sound(fit, before))
        is_noise = is_noise or residual_excess(fit, asked) <= 1
    return found


def _as_asked(problem: Problem, before: Factorization | None, rng: np.random.Generator, is_over: bool) -> Factorization:
    """Fit a tensor under constraints, or with missing entries, from a lower rank and from where methods start."""
    objective = LeastSquares(problem)
    starts = [] if before is None else [extended(problem, before.tensor)]
    if not is_over or not starts:
        starts.append(next(starts_for(problem, first_components, rng, Log(), 1)))
    found = closest([improved(objective, start, BRIEF if is_over else ROUGH) for start in starts])
    return as_factorization(Estimate(found.components, (), False), problem)
