"""The default: joint diagonalization for a start that leads to the right optimum, least squares for the accuracy."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from codiag._checks import as_number
from codiag.least_squares import Limits, Outcome, best_rank_one, random_components
from codiag.methods._als import ALS
from codiag.methods._method import Method
from codiag.problem import Estimate, Log, Problem
from codiag.reduction import Reduction, reduce
from codiag.search import (
    SWAPS,
    Monitor,
    approach,
    check_monitor,
    closest,
    finish,
    fit_known,
    has_superfluous,
    is_settled,
    is_stopped,
    leaves_noise,
    regrown,
    relative_error,
    search,
    watch,
)
from codiag.starts import Roles, diagonal_roles, diagonal_start
from codiag.tensors import DenseTensor, FactoredTensor


@dataclass(frozen=True, kw_only=True, eq=False)
class Auto(Method):
    r"""Joint diagonalization of the slices of the compressed tensor, then least squares: the default method.

    One start is almost always enough. The residual shows when it was not: it should look like noise, and each component
    should explain more than any rank-one term of noise. Otherwise components are swapped: the strongest term of the
    residual is added, all are refitted, and the component that the others make superfluous is removed. Where several
    components explain hardly more than noise, further starts are random, until the lowest minimum has been reached
    twice; ``fit.stages`` counts them, and says whether they agreed. Where those that stand out leave nothing but noise,
    the others are superfluous: they are added one at a time, as the largest terms of it.

    Where the rank is larger than all modes but one, modes of tensors of higher order are taken together, or the
    rank-one matrices in the span of the slices are found by diagonalizing the equations that they satisfy (De Lathauwer
    2006, and 2007 with Castaing and Cardoso). At order three, up to five thirds of the modes, the kernels of Koszul
    flattenings give such equations (Kothari, Moitra and Wein 2024). Where there are too few, or the rank is above 64,
    all starts are random. With constraints, or entries that were not observed, the fit without them is one of the
    starts; where all modes are to be orthogonal, it is `OJD`, followed by least squares over orthonormal factors.

    *Needs* contractions of the tensor; works on all of it where it has at most two million entries. *Costs* three
    passes over a large tensor to look at it and to compress it, :math:`O(k^4)` flops a sweep of the diagonalization and
    a step of least squares on the core, and one pass to polish, or a few where noise is strong or ranks are large.
    *Guarantees*, without noise, exact components where the rank is at most the second largest mode, or there are
    equations enough: 30 components of 20 x 20 x 20, 40 of 20 x 20 x 20 x 20, 30 of 8 x 8 x 8 x 8 x 8; with noise, a
    minimum of least squares where ``converged`` says so, with the standard errors of first-order theory. *Fails* to
    find the best of several minima where noise hides many components, or the rank is near the largest at which
    components are unique: `codiag.Factorization.diagnose` says where starts disagreed.

    Parameters
    ----------
    max_starts : int
        Starts at most.
    tol : float
        Least squares stops when a step is smaller than this, relative to the factors.
    max_sweeps : int
        Steps of least squares before giving up, on each start; those of swaps come on top.
    monitor : callable, optional
        Called as ``monitor(components, relative_error)`` after every step of least squares on the core; True ends the
        fit there.

    See Also
    --------
    NLS : Least squares from random starts.
    NOJD : Joint diagonalization alone.
    codiag.choose_rank : How many components to ask for.

    Examples
    --------
    >>> import numpy as np
    >>> import codiag
    >>> from codiag.methods import Auto
    >>> rng = np.random.default_rng(0)
    >>> a, b, c = (rng.standard_normal((8, 5)) for _ in range(3))
    >>> fit = codiag.factorize(np.einsum("ir,jr,kr->ijk", a, b, c), 5, method=Auto(max_starts=1), seed=0)
    >>> codiag.factor_error(fit, (a, b, c)) < 1e-10
    True
    """

    honors: ClassVar[frozenset[str]] = frozenset({"constraints", "observed", "partial symmetry"})

    max_starts: int = 6
    tol: float = 1e-9
    max_sweeps: int = 300
    monitor: Monitor | None = None

    def __post_init__(self) -> None:
        as_number("max_starts", self.max_starts, integer=True)
        as_number("tol", self.tol)
        as_number("max_sweeps", self.max_sweeps, integer=True)
        check_monitor(self.monitor)

    @property
    def sized(self) -> bool:
        return self.monitor is not None

    def fit(self, problem: Problem, rng: np.random.Generator) -> Estimate:
        if problem.asks:
            limits = Limits(self.max_sweeps, self.tol)
            return fit_known(problem, first_components, rng, limits, self.max_starts, self.monitor)
        log = Log()
        tensor, rank = problem.tensor, problem.rank
        reduction = reduce(problem, rng)
        core, reduced = reduction.core, problem.on(reduction.core)
        limits = Limits(self.max_sweeps, self.tol, watch=watch(self.monitor, reduction, tensor))
        if not reduction.complete:
            held = core.squared_norm() / tensor.squared_norm()
            log.add("compress", 0, math.sqrt(max(1 - held, 0.0)))
        roles = diagonal_roles(core, rank)
        outcomes: list[Outcome] = []
        if rank > 1 and roles is None:
            log.add("random starts: the rank is too large to diagonalize", 0, 1.0)
        while (rank == 1 or roles is not None) and len(outcomes) < min(self.max_starts, 2):
            outcomes.append(approach(reduced, _start(core, roles, rank, rng, log), limits, log, SWAPS))
            if rank > 1 and not is_stopped(limits) and leaves_noise(reduced, outcomes[-1]):
                end = self._with_superfluous(problem, reduction, outcomes[-1], limits, log)
                if end is not None:
                    return end
            settled = is_settled(reduced, outcomes[-1:])
            if rank == 1 or is_stopped(limits) or settled:
                end = finish(problem, reduction, closest(outcomes), limits, log, SWAPS)
                if rank == 1 or end.converged or is_stopped(limits):
                    return end
            if settled or leaves_noise(reduced, outcomes[-1]):
                break  # a second diagonalization would not be independent of the first
        return self._search(problem, reduction, outcomes, rng, log)

    def _with_superfluous(
        self, problem: Problem, reduction: Reduction, found: Outcome, limits: Limits, log: Log
    ) -> Estimate | None:
        """Return the end of a fit that leaves noise, and some of whose components fit nothing else; None elsewhere."""
        tensor, opened = problem.tensor, reduction.opened()
        left = tensor.squared_norm() - reduction.core.squared_norm() + 2 * found.objective
        grown = None
        if opened.complete:
            grown = regrown(problem.on(opened.core), opened.lower(reduction.lift(found.components)), left)
        if grown is not None:
            tried = Log(list(log.stages))
            name = "rough least squares, one component at a time beyond those that stand out of the noise"
            tried.add(name, grown.n_sweeps, relative_error(tensor, grown.objective))
            watched = replace(limits, watch=watch(self.monitor, opened, tensor))
            end = finish(problem, opened, grown, watched, tried, 0)
            if end.converged or is_stopped(watched):
                return end  # elsewhere terms of noise have joined to components that cancel each other
        if not has_superfluous(problem, found.components, left):
            return None
        return finish(problem, reduction, found, limits, log, 0)

    def _search(
        self, problem: Problem, reduction: Reduction, outcomes: list[Outcome], rng: np.random.Generator, log: Log
    ) -> Estimate:
        """Go on from what was found so far, and from random starts, on all of the tensor where it is small."""
        opened = reduction if reduction.complete else reduction.opened()
        core = problem.on(opened.core)
        limits = Limits(self.max_sweeps, self.tol, watch=watch(self.monitor, opened, problem.tensor))
        if outcomes and opened is not reduction:
            start = opened.lower(reduction.lift(closest(outcomes).components))
            outcomes = [approach(core, start, limits, log, SWAPS)]
        starts = (random_start(core, rng) for _ in range(self.max_starts - len(outcomes)))
        best = search(core, starts, outcomes, limits, log)
        return finish(problem, opened, best, limits, log, SWAPS)


def first_components(problem: Problem, complete: bool, rng: np.random.Generator, log: Log) -> FactoredTensor:
    """Return components of a tensor: fitted, or where it is not complete as the diagonalization finds them."""
    if complete:
        found = Auto(max_starts=1).fit(problem, rng)
        log.extend(found.stages)
        return found.components
    reduction = reduce(problem, rng)
    return reduction.lift(start_on(reduction.core, problem.rank, rng, log))


def start_on(core: DenseTensor, rank: int, rng: np.random.Generator, log: Log) -> FactoredTensor:
    """Return the components that the diagonalization of a core finds, or random ones where there is nothing to."""
    roles = diagonal_roles(core, rank)
    if rank > 1 and roles is None:
        return random_start(Problem(core, rank), rng)
    return _start(core, roles, rank, rng, log)


def random_start(core: Problem, rng: np.random.Generator) -> FactoredTensor:
    """Return random components after a few alternating sweeps, which see further than Gauss-Newton steps."""
    if core.symmetric:
        return random_components(core.tensor, core.rank, rng)
    return ALS(orthogonalize=2, max_sweeps=15, tol=1e-6).fit(core, rng).components


def _start(core: DenseTensor, roles: Roles | None, rank: int, rng: np.random.Generator, log: Log) -> FactoredTensor:
    """Diagonalize the slices of the core; where they are singular, there is nothing to, and components are drawn."""
    if roles is None:
        return best_rank_one(core)
    try:
        components = diagonal_start(core, roles, rank, rng, log)
    except np.linalg.LinAlgError:
        log.add("random start: the slices are singular", 0, 1.0)
        return random_start(Problem(core, rank), rng)
    return components if math.isfinite(components.squared_norm()) else random_start(Problem(core, rank), rng)
