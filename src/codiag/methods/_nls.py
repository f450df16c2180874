"""Nonlinear least squares: damped Gauss-Newton steps on all factors at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from codiag._checks import as_number
from codiag.least_squares import Limits, random_components
from codiag.methods._init import Init, check_init, is_random, is_sized, start_from
from codiag.methods._method import Method
from codiag.problem import Estimate, Log, Problem
from codiag.reduction import Reduction, reduce
from codiag.search import Monitor, approach, check_monitor, closest, finish, fit_from, watch
from codiag.tensors import FactoredTensor


@dataclass(frozen=True, kw_only=True, eq=False)
class NLS(Method):
    r"""Least squares, :math:`\min \|T - \sum_i w_i a_i \otimes b_i \otimes c_i\|^2`, by damped Gauss-Newton steps.

    The steps run on the tensor compressed to the ranges of its components, then on the tensor itself. Where the
    residual shows a component that was missed, it replaces one that the others make superfluous.

    With constraints, or entries that were not observed, starts are made to satisfy the constraints, and projected
    Gauss-Newton steps run on the whole problem from there, without compression and swaps.

    *Needs* contractions of the tensor; works on all of it where it has at most two million entries. *Costs* two to
    three products with the tensor, :math:`O(k \prod_m d_m)` flops, a step on the whole tensor, and
    :math:`O(k^2 \sum_m d_m)` a product with the Gauss-Newton matrix. *Guarantees* a minimum where ``converged`` is
    true; standard errors of first-order theory hold there. *Fails* by ending in a local minimum, which a single random
    start does on hard tensors, or by following components that cancel each other; ``converged`` is then false.

    Parameters
    ----------
    init : "random", method, fit, or (weights, factors)
        Where to start.
    n_starts : int
        Random starts, of which the best is kept.
    tol : float
        Stop when a step is smaller than this, relative to the factors.
    max_sweeps : int
        Steps before giving up, on each start; those of swaps come on top.
    max_replacements : int
        Components that may be swapped for others, on each start.
    monitor : callable, optional
        Called as ``monitor(components, relative_error)`` after every step on the core, or on the whole problem; True
        ends the fit there.

    See Also
    --------
    Auto : Least squares that start from joint diagonalization.
    ALS : One factor at a time.

    Examples
    --------
    >>> import numpy as np
    >>> import codiag
    >>> from codiag.methods import ALS, NLS
    >>> tensor = np.random.default_rng(0).random((4, 5, 6))
    >>> codiag.factorize(tensor, 2, method=NLS(init=ALS(max_sweeps=20)), seed=0).converged
    True
    """

    honors: ClassVar[frozenset[str]] = frozenset({"constraints", "observed"})

    init: Init = "random"
    n_starts: int = 1
    tol: float = 1e-9
    max_sweeps: int = 300
    max_replacements: int = 8
    monitor: Monitor | None = None

    def __post_init__(self) -> None:
        check_init(self.init)
        as_number("n_starts", self.n_starts, integer=True)
        as_number("tol", self.tol)
        as_number("max_sweeps", self.max_sweeps, integer=True)
        as_number("max_replacements", self.max_replacements, integer=True, zero=True)
        check_monitor(self.monitor)

    @property
    def sized(self) -> bool:
        return is_sized(self.init) or self.monitor is not None

    def fit(self, problem: Problem, rng: np.random.Generator) -> Estimate:
        if problem.asks:
            return self._fit_known(problem, rng)
        log = Log()
        reduction, starts = self._starts(problem, rng, log)
        core = problem.on(reduction.core)
        limits = Limits(self.max_sweeps, self.tol, watch=watch(self.monitor, reduction, problem.tensor))
        outcomes = [approach(core, start, limits, log, self.max_replacements) for start in starts]
        return finish(problem, reduction, closest(outcomes), limits, log, self.max_replacements)

    def _fit_known(self, problem: Problem, rng: np.random.Generator) -> Estimate:
        n_starts, log = self.n_starts if is_random(self.init) else 1, Log()
        estimates = [start_from(self.init, problem, rng) for _ in range(n_starts)]
        log.extend(estimates[0].stages)
        starts = [estimate.components for estimate in estimates]
        return fit_from(problem, starts, Limits(self.max_sweeps, self.tol), log, self.monitor)

    def _starts(self, problem: Problem, rng: np.random.Generator, log: Log) -> tuple[Reduction, list[FactoredTensor]]:
        """Return a core and where to start on it; a start that was given is not to be cut to the range of the data."""
        if is_random(self.init):
            reduction = reduce(problem, rng)
            return reduction, [random_components(reduction.core, problem.rank, rng) for _ in range(self.n_starts)]
        start = start_from(self.init, problem, rng)
        log.extend(start.stages)
        reduction = reduce(problem, rng, including=start.components.factors)
        return reduction, [reduction.lower(start.components)]
