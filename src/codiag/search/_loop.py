"""Starts that stop: one after the other, until the residual is noise and the lowest minimum was met twice.

A start is taken to a minimum roughly, and from there by swaps of components. Where what is left is noise, and every
component is worth much more than any term of it, no other minimum is in question and one start is enough. Elsewhere
noise terms compete with components, minima lie close to each other, and only a second start that ends where the lowest
did tells that others would, too.

Problems about which more is known than the tensor: constraints on the factors, and which entries were observed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from codiag._arrays import to_host
from codiag.constraints import Orthogonal
from codiag.least_squares import (
    RESIDUAL_ROUNDING,
    SHARE_OF_NOISE,
    LeastSquares,
    Limits,
    Outcome,
    excess_over_flips,
    hadamard_gram,
    minimize,
    noise_excess,
    random_components,
    rotate,
    unit_components,
)
from codiag.problem import Estimate, Log, Problem
from codiag.reduction import reduce_listed, shows_ranges
from codiag.search._finish import ROUGH, Monitor, bounded, closest, is_stopped, last_steps, relative_error
from codiag.search._swaps import brief, swap_components
from codiag.search._worth import has_superfluous, removal_costs, standing
from codiag.starts import POOR, assign_roles, filled, grown, passes_for_noise, shared_group, with_fixed
from codiag.tensors import FactoredTensor, SparseTensor, is_large
from codiag.tensors.entries import ListedEntries

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
    if 2 * best.objective < RESIDUAL_ROUNDING * LeastSquares(problem).total:
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


PER_UNKNOWN = 100
"""Entries of a row for each of its unknowns that a part of a long list is to have: the Gauss-Newton matrix of these is
within a fifth of that of all entries, as random matrix theory has it."""

First = Callable[[Problem, bool, np.random.Generator, Log], FactoredTensor]
"""From a tensor, and whether it had no holes, to components; where it had, a good start is all they can be."""

SWEEPS = 20
"""Alternating sweeps on what was observed, from components of a tensor whose holes were filled with something."""

EXACT = 1e-9
"""Objective, relative to the squared norm, below which nothing but the end of rough steps is left."""

SAME_MINIMUM = 1e-6
"""Relative difference of objectives up to which two minima are taken for one."""


def fit_known(
    problem: Problem, first: First, rng: np.random.Generator, limits: Limits, max_starts: int, monitor: Monitor | None
) -> Estimate:
    """Fit components to what was observed, under the constraints, from starts in turn until the residual is noise.

    From a start steps are taken while they gain more than noise explains; the end that fits best is then improved to
    the limits, and if it does not converge, further starts follow. Starts are components found one at a time, and those
    that `first` finds in the tensor with its holes filled, without constraints: these first where more was observed
    than not; at last, while the fit is poor, random ones. Where all modes are orthogonal, starts are diagonalizations
    by rotations.
    """
    log, objective = Log(), LeastSquares(problem)
    watch = _Watch(monitor, objective) if monitor is not None else None
    fine = rough = replace(limits, watch=watch)
    if not is_large(problem.tensor.shape):
        rough = replace(ROUGH, max_sweeps=min(ROUGH.max_sweeps, limits.max_sweeps), watch=watch)
    outcomes: list[Outcome] = []
    for start in starts_for(problem, first, rng, log, max_starts):
        outcomes.append(_with_swaps(objective, improved(objective, start, rough)))
        error = objective.relative_error(outcomes[-1].components)
        log.add("rough least squares as constrained and observed", outcomes[-1].n_sweeps, error)
        found = closest(outcomes)
        if watch is not None and watch.stopped:
            return Estimate(found.components, log.stages, False)
        if _is_noise(objective, found.components) or _meet_again(outcomes):
            found = found if found.converged else improved(objective, found.components, fine)
            if found.converged or fine is rough:
                break
            outcomes.append(found)
        if len(outcomes) >= max_starts and objective.relative_error(found.components) < POOR:
            break
    if not found.converged and fine is not rough:
        found = improved(objective, closest(outcomes).components, fine)
    found = last_steps(problem, found)
    log.add("least squares as constrained and observed", found.n_sweeps, objective.relative_error(found.components))
    return Estimate(found.components, log.stages, found.converged)


def _with_swaps(objective: LeastSquares, found: Outcome) -> Outcome:
    """Swap components of a fit whose residual is more than noise, where the tensor is small."""
    exact = found.objective < EXACT * objective.total  # nothing but the end of rough steps is left
    if exact or not objective.steps or _is_noise(objective, found.components):
        return found
    better, n_swaps = swap_components(objective.problem, found, max_swaps=objective.problem.rank)
    return better._replace(n_sweeps=found.n_sweeps + better.n_sweeps) if n_swaps > 0 else found


def fit_from(
    problem: Problem,
    starts: Iterable[FactoredTensor],
    limits: Limits,
    log: Log,
    monitor: Monitor | None,
) -> Estimate:
    """Fit components from each of several starts; return the best."""
    objective = LeastSquares(problem)
    watch = _Watch(monitor, objective) if monitor is not None else None
    outcomes: list[Outcome] = []
    limits = replace(limits, watch=watch)
    for start in starts:
        outcomes.append(improved(objective, start, limits))
        found = closest(outcomes)
        error = objective.relative_error(outcomes[-1].components)
        log.add("least squares as constrained and observed", outcomes[-1].n_sweeps, error)
        if watch is not None and watch.stopped:
            return Estimate(found.components, log.stages, found.converged)
    return Estimate(last_steps(problem, found).components, log.stages, found.converged)


def improved(objective: LeastSquares, start: FactoredTensor, limits: Limits) -> Outcome:
    """Go from a start to a minimum: by Gauss-Newton steps, or mode by mode where a constraint does not know these."""
    problem = objective.problem
    if problem.entries is None and are_orthogonal(problem):
        found = rotate(problem, start, limits)
        if found.converged or found.n_sweeps < limits.max_sweeps:  # or a monitor has asked for the end
            return found
        start = found.components
    if problem.constraints is not None or problem.symmetric:
        start = objective.feasible(start)
    if objective.steps:
        return _minimized(objective, start, limits)
    from codiag.methods import ALS

    swept = ALS(init=(start.weights, start.factors), tol=1e-9).fit(problem, np.random.default_rng(0))
    value = objective.distance(swept.components) / 2
    return Outcome(swept.components, value, sum(stage.sweeps for stage in swept.stages), swept.converged)


def _minimized(objective: LeastSquares, start: FactoredTensor, limits: Limits) -> Outcome:
    """Take Gauss-Newton steps: for a long list of entries first on some, and then with a curvature that these tell."""
    problem, entries = objective.problem, objective.entries
    sample = None
    if isinstance(entries, ListedEntries):
        sample = entries.thinned(PER_UNKNOWN * problem.rank, np.random.default_rng(0))
    if sample is None or sample is entries:
        return minimize(problem, start, limits)
    # The minimum of a part lies off that of all entries by more than a variance for every parameter.
    gain = 0.01 * problem.n_parameters
    rough = minimize(problem, start, replace(ROUGH, gain=gain, watch=limits.watch), entries=sample)
    exact = replace(
        limits, gain=max(limits.gain, 5 * SHARE_OF_NOISE)
    )  # every step leaves less than half of the distance
    found = minimize(problem, rough.components, exact, sample=sample)
    return found._replace(n_sweeps=rough.n_sweeps + found.n_sweeps)


def starts_for(
    problem: Problem, first: First, rng: np.random.Generator, log: Log, max_starts: int
) -> Iterator[FactoredTensor]:
    """Yield components to start from, the best first."""
    if any(constraint is not None and constraint.known for constraint in problem.constraints or ()):
        yield with_fixed(problem)
        return
    small, tensor = not is_large(problem.tensor.shape), problem.tensor
    if isinstance(tensor, SparseTensor) and problem.entries is not None:
        if not small or shows_ranges(tensor, problem.rank):
            reduction = reduce_listed(tensor, problem.rank, rng)
            yield reduction.lift(first(problem.on(reduction.core), True, rng, log))
        if not small:
            return
    complete = problem.entries is None
    if complete and are_orthogonal(problem):
        for _ in range(max_starts):
            yield _orthogonal_start(problem, first, rng, log)
        return
    diagonal = not problem.shared or assign_roles(problem.tensor.shape, problem.rank) is not None
    # Filled with a constant, holes add noise of a share (1 - p) / p of the energy to a tensor observed in a share p.
    mostly = complete or 2 * problem.n_entries > math.prod(problem.tensor.shape)
    kinds = ["filled", "grown"] if mostly and diagonal else ["grown", "filled"]
    kinds = kinds if diagonal or not small else ["grown"]
    for n in range(max_starts):
        kind = kinds[n] if n < len(kinds) else "grown"
        if kind == "grown" and small:
            yield grown(problem, None if n < len(kinds) else rng)
        elif n < len(kinds):
            start = first(problem.on(filled(problem)), complete, rng, log)
            yield start if complete else _swept(problem, start)
    for _ in range(2 * max_starts if small and max_starts > 1 else 0):
        yield _swept(problem, random_components(problem.tensor, problem.rank, rng))


def are_orthogonal(problem: Problem) -> bool:
    """Tell whether all modes have orthogonal columns."""
    return all(isinstance(constraint, Orthogonal) for constraint in problem.constraints or (None,))


def _orthogonal_start(problem: Problem, first: First, rng: np.random.Generator, log: Log) -> FactoredTensor:
    """Diagonalize by rotations; where projections are singular for so many components, start without constraints."""
    plain = problem.on(problem.tensor)
    try:
        from codiag.methods import OJD

        start = OJD(whiten=False).fit(plain, rng)
    except ValueError:
        return first(plain, True, rng, log)
    log.extend(start.stages)
    return start.components


def _meet_again(outcomes: list[Outcome]) -> bool:
    """Tell whether two starts have led to the same minimum, the lowest: more of them would, too."""
    first, second = sorted(outcome.objective for outcome in outcomes)[:2] if len(outcomes) > 1 else (0.0, math.inf)
    return second <= first * (1 + SAME_MINIMUM)


def _swept(problem: Problem, start: FactoredTensor) -> FactoredTensor:
    """Alternate a few times on what was observed, which sees further from a poor start than Gauss-Newton steps."""
    from codiag.methods import ALS

    sweeps = ALS(init=(start.weights, start.factors), max_sweeps=SWEEPS, tol=1e-4)
    return sweeps.fit(replace(problem, constraints=None), np.random.default_rng(0)).components


def _is_noise(objective: LeastSquares, components: FactoredTensor) -> bool:
    """Tell whether the residual passes for noise; that of a tensor too large to form is taken for it."""
    if is_large(objective.tensor.shape):
        return True
    if objective.distance(components) < 1e-20 * objective.total:
        return True
    problem = objective.problem
    if problem.entries is not None:
        return passes_for_noise(objective, components)
    residual = objective.residual(components)
    return (excess_over_flips(residual, shared_group(problem)) if problem.shared else noise_excess(residual)) <= 1


class _Watch:
    """What lets a monitor see components with their relative error, until it says True."""

    def __init__(self, monitor: Monitor, objective: LeastSquares) -> None:
        self._monitor, self._objective, self.stopped = monitor, objective, False

    def __call__(self, components: FactoredTensor, value: float) -> bool:
        if not self.stopped:
            self.stopped = self._monitor(components, self._objective.relative_error(components)) is True
        return self.stopped
