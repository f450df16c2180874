"""Starts that stop: one after the other, until the residual is noise and the lowest minimum was met twice.

A start is taken to a minimum roughly, and from there by swaps of components. Where what is left is noise, and every
component is worth much more than any term of it, no other minimum is in question and one start is enough. Elsewhere
noise terms compete with components, minima lie close to each other, and only a second start that ends where the lowest
did tells that others would, too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from codiag._array import to_host
from codiag._estimate import Log
from codiag._problem import Problem
from codiag.methods.least_squares._components import hadamard_gram, unit_components
from codiag.methods.least_squares._degeneracy import bounded
from codiag.methods.least_squares._fit import ROUGH, closest, is_stopped, relative_error
from codiag.methods.least_squares._gauss_newton import Limits, Outcome, minimize
from codiag.methods.least_squares._objective import LeastSquares
from codiag.methods.least_squares._residual import ROUNDING
from codiag.methods.least_squares._standing import standing
from codiag.methods.least_squares._superfluous import has_superfluous, removal_costs
from codiag.methods.least_squares._swaps import brief, swap_components
from codiag.tensors import FactoredTensor

FIRST = 25
"""Steps from a start before components are swapped."""

SWAPS = 20
"""Swaps from each start."""

PROMISING = 1.1
"""Objective, relative to the lowest so far, up to which an end is improved until it can be compared."""

LITTLE, FEW = 4, 0.15
"""How many times the strongest term of noise a component is worth that noise may have displaced, and the share of such
components that swaps alone set right, from a start by diagonalization; from random starts, none is too few."""

SAME = 0.5
"""Variances of the noise by which rough ends of one minimum may differ in their objectives."""


def search(
    problem: Problem, starts: Iterable[FactoredTensor], known: list[Outcome], limits: Limits, log: Log
) -> Outcome:
    """Go from starts in turn to minima, until no other is in question or the lowest was met twice; return the lowest.

    Those that are `known` count as ends of starts that were taken before.
    """
    outcomes, n_starts, n_sweeps, settled = list(known), 0, 0, False
    for start in starts:
        end = _end(problem, start, limits, min((one.objective for one in outcomes), default=float("inf")))
        n_starts, n_sweeps = n_starts + 1, n_sweeps + end.n_sweeps
        outcomes.append(end)
        settled = is_settled(problem, outcomes)
        if settled or is_stopped(limits):
            break
    best = closest(outcomes)
    if n_starts == 0:
        return best
    n_met = sum(one.objective <= best.objective + _tolerance(problem, best) for one in outcomes)
    name = f"{n_starts} random starts with swaps, the lowest end met {n_met} of {len(outcomes)} times"
    in_doubt = len(outcomes) > 1 and not settled
    log.add(name, n_sweeps, relative_error(problem.tensor, best.objective), in_doubt=in_doubt)
    return best


def _end(problem: Problem, start: FactoredTensor, limits: Limits, lowest: float) -> Outcome:
    """Go from a start to a minimum, roughly where it is not among the lowest."""
    first = minimize(problem, start, replace(brief(problem, FIRST), watch=limits.watch))
    if is_stopped(limits):
        return first
    found, _ = swap_components(problem, first, max_swaps=SWAPS)
    if found.objective < PROMISING * lowest:
        better = minimize(problem, found.components, replace(ROUGH, watch=limits.watch))
        found, _ = swap_components(problem, better, max_swaps=SWAPS)
        found = bounded(problem, found)  # or ends would be compared somewhere on their ways to infinity
    return found._replace(n_sweeps=first.n_sweeps + found.n_sweeps)


def is_settled(problem: Problem, outcomes: list[Outcome]) -> bool:
    """Tell whether a further start would hardly end lower: no other end is in question, or the lowest was met twice.

    Where little but the agreement of ends tells, it must have been met three times: of data that fit no model, and of
    so many components that their parameters are more than half of the entries, which make anything look like noise.
    """
    best, needed = closest(outcomes), 3
    if 2 * best.objective < ROUNDING * LeastSquares(problem).total:
        return True
    overcomplete = problem.rank > max(problem.tensor.shape)
    if not (overcomplete and 2 * problem.n_parameters > problem.n_entries) and leaves_noise(problem, best):
        needed = 2
        if has_superfluous(problem, best.components, 2 * best.objective):
            return True
        allowed = 0 if overcomplete else max(1, int(FEW * problem.rank))
        if standing(problem, best).n_worth_less(LITTLE) <= allowed:
            return True
    elif not overcomplete and _are_strongest(best.components, standing(problem, best).newcomers):
        return True
    ends = sorted(one.objective for one in outcomes)
    return len(ends) >= needed and ends[needed - 1] <= ends[0] + _tolerance(problem, best)


def _are_strongest(components: FactoredTensor, others: Sequence[FactoredTensor]) -> bool:
    r"""Tell whether components are so unlike that the strongest terms are the best, and the residual holds no stronger.

    With :math:`\mu_1(k)` the sum of the k largest cosines between a term and others, to take the strongest term first,
    and so on, finds the best k where :math:`\mu_1(k) + \mu_1(k - 1) < 1`. Noise has terms in all directions: no such
    set.

    References
    ----------
    J. A. Tropp, "Greed is good: algorithmic results for sparse approximation", IEEE Trans. Inform. Theory 50(10), 2004.
    """
    together = components
    for other in others:
        together = together.joined(other)
    cosines = np.abs(to_host(hadamard_gram(unit_components(together).factors)))[: components.rank, :]
    sums = np.sort(cosines, axis=1)[:, -components.rank - 1 :].sum(axis=1) - 1  # with itself
    strongest = max((float(other.weights[0]) ** 2 for other in others), default=math.inf)
    return bool(2 * sums.max() < 1 and removal_costs(components).min() >= strongest)


def leaves_noise(problem: Problem, found: Outcome) -> bool:
    """Tell whether what a fit leaves passes for noise."""
    return standing(problem, found).noise


def _tolerance(problem: Problem, best: Outcome) -> float:
    return SAME * LeastSquares(problem).noise_variance * best.objective
