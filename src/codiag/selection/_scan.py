"""Fits of several ranks to one tensor, which share one compression and start from each other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from codiag.least_squares import ROUGH, Limits, minimize
from codiag.problem import Estimate, Log, Problem
from codiag.reduction import Reduction, reduce
from codiag.result import Factorization, as_factorization, canonical
from codiag.search import End, explore, finish
from codiag.selection._soundness import is_sound
from codiag.starts import Extended, Random, Start, default_starts

BRIEF = replace(ROUGH, max_sweeps=4)
"""Limits for ranks above the supported one: surplus components converge slowly, and to noise."""

MAX_STARTS, MAX_SWAPS = 2, 20
"""Starts of each rank: by diagonalization, and from the rank below; and swaps from each."""


@dataclass
class Scan:
    """Fits of one problem by rank.

    Attributes
    ----------
    problem : Problem
        For the largest of the ranks, in double precision.
    space : Reduction
        The core on which all fits begin; the whole problem if it cannot be compressed.
    fits : dict of int to Factorization
    ends : dict of int to End
        The fits on the core.
    """

    problem: Problem
    space: Reduction
    fits: dict[int, Factorization] = field(default_factory=dict)
    ends: dict[int, End] = field(default_factory=dict)

    def space_of(self, rank: int) -> Reduction:
        """Return the space with the problem of one of the ranks."""
        return replace(self.space, problem=self.space.problem.with_rank(rank))

    def finish(self, rank: int) -> None:
        """Bring the fit of one rank to its minimum, on all of the tensor."""
        problem, limits = self.problem.with_rank(rank), Limits(max_sweeps=300)
        estimate = finish(problem, self.space_of(rank), self.ends[rank], limits, Log(), MAX_SWAPS)
        self.fits[rank] = as_factorization(estimate, problem)


def scan(problem: Problem, ranks: Sequence[int], rng: np.random.Generator, *, polish: bool = True) -> Scan:
    """Fit components of every rank, in ascending order, roughly.

    A free and complete tensor is compressed once, for the largest rank, and all fits begin on that core: from its
    diagonalization, and from the components of the rank below joined by the strongest terms of their residual. Once the
    residual is noise, and one more component is not sound, further ranks get a few steps from the rank below. Without
    `polish`, fits stay on the core, without swaps. Constraints and missing entries are fitted on all of the tensor.
    """
    problem = problem.in_double_precision()
    scanned = Scan(problem, reduce(problem, rng))
    is_noise = is_over = False
    below: Factorization | None = None
    for rank in ranks:
        space = scanned.space_of(rank)
        lower = scanned.ends.get(max(scanned.ends, default=0))
        starts, limits = _starts(space.problem, lower, is_over), BRIEF if is_over else ROUGH
        n_swaps = MAX_SWAPS if polish and not is_noise else 0  # only noise is left to be swapped for
        end = explore(space.problem, starts, rng, max_starts=MAX_STARTS, max_swaps=n_swaps, limits=limits)
        scanned.ends[rank] = end
        fit = _on_tensor(problem.with_rank(rank), space, end, limits if polish else None)
        scanned.fits[rank] = fit
        is_over = is_over or (is_noise and not is_sound(fit, below))
        is_noise = is_noise or end.is_noise
        below = fit
    return scanned


def _starts(problem: Problem, lower: End | None, is_over: bool) -> Sequence[Start]:
    """Return the starts of a rank, given the end of a lower one."""
    extended = () if lower is None else (Extended(components=lower.outcome.components),)
    if is_over and extended:
        return extended
    return (*default_starts(problem)[:1], *extended, Random())


def _on_tensor(problem: Problem, space: Reduction, end: End, limits: Limits | None) -> Factorization:
    """Return a fit to the core as one to the tensor: improved there, or without another pass over a large one."""
    components = space.to_tensor(end.outcome.components)
    if not space.is_complete and space.dense is None:
        final, total = canonical(components, problem), problem.tensor.squared_norm()
        rest = max(total - space.core.squared_norm(), 0.0) + 2 * end.objective
        return Factorization(final.weights, final.factors, math.sqrt(rest / total), math.sqrt(total), False)
    if not space.is_complete and limits is not None:
        whole = space.uncompressed()
        outcome = minimize(whole.problem, whole.to_core(components), limits)
        components = whole.to_tensor(outcome.components)
    return as_factorization(Estimate(components, (), False), problem)
