"""Alternating least squares: one factor at a time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from codiag._arrays import Array, array_namespace, moved
from codiag._checks import as_flag, as_number
from codiag.least_squares import LeastSquares, merged_modes, random_components, unit_components, with_best_weights
from codiag.methods._init import Init, check_init, complete, is_sized, start_from
from codiag.methods._method import Method
from codiag.problem import Estimate, Log, Problem
from codiag.reduction import range_bases
from codiag.search import Monitor, check_monitor
from codiag.tensors import FactoredTensor


@dataclass(frozen=True, kw_only=True, eq=False)
class ALS(Method):
    r"""Alternating least squares: solve for the factor of one mode with the others fixed, in turns.

    The default of most other libraries, here for comparison and as an inexpensive polish. For a symmetric tensor the
    modes are fitted separately, and their factors are merged at the end.

    With constraints, the factor of a mode is the best that satisfies its own; where entries were not observed, every
    row of a factor has its own equations.

    *Needs* contractions of the tensor and nothing else. *Costs* :math:`2 N k \prod_m d_m` flops a sweep, N passes over
    the tensor. *Guarantees* a stationary point, and the right one only from a start near it (local convergence, for
    factors of incoherence below :math:`\mathrm{polylog}(d) / \sqrt d`). *Fails* by ending in local optima, or by slow
    convergence ("swamps") where components are collinear.

    Parameters
    ----------
    init : {"random", "svd"}, method, fit, or (weights, factors)
        Where to start. "svd" takes the leading singular vectors of every unfolding, and random columns beyond their
        number.
    orthogonalize : int
        Sweeps, at the beginning, before each of which the factors are made orthonormal: this keeps them from converging
        to the same component (Sharan and Valiant, 2017).
    line_search : bool
        Whether to try, every sweep, to go on in the direction of the last (Bro, 1998).
    tol : float
        Stop when the relative error falls by less than this in a sweep.
    max_sweeps : int
        Sweeps before giving up.
    monitor : callable, optional
        Called as ``monitor(components, relative_error)`` after every sweep; True ends the fit there.

    See Also
    --------
    NLS : Fewer and better steps for the same minimum.
    Auto : Starts by joint diagonalization instead.
    codiag.drop_in.parafac : The interface of TensorLy.

    Examples
    --------
    >>> import numpy as np
    >>> import codiag
    >>> tensor = np.random.default_rng(0).random((4, 5, 6))
    >>> fit = codiag.factorize(tensor, 2, method=codiag.methods.ALS(init="svd"), constraints="nonnegative", seed=0)
    >>> all((factor >= 0).all() for factor in fit.factors)
    True
    """

    honors: ClassVar[frozenset[str]] = frozenset({"constraints", "observed", "partial symmetry"})

    init: Init = "random"
    orthogonalize: int = 0
    line_search: bool = False
    tol: float = 1e-8
    max_sweeps: int = 1000
    monitor: Monitor | None = None

    def __post_init__(self) -> None:
        check_init(self.init, ("random", "svd"))
        as_number("orthogonalize", self.orthogonalize, integer=True, zero=True)
        as_flag("line_search", self.line_search)
        as_number("tol", self.tol)
        as_number("max_sweeps", self.max_sweeps, integer=True)
        check_monitor(self.monitor)

    @property
    def sized(self) -> bool:
        return is_sized(self.init) or self.monitor is not None

    def fit(self, problem: Problem, rng: np.random.Generator) -> Estimate:
        log = Log()
        start = self._start(problem, rng)
        log.extend(start.stages)
        objective = LeastSquares(problem)
        current = objective.feasible(start.components) if problem.asks else unit_components(start.components)
        error, converged, n_sweeps, stopped = math.inf, False, 0, False
        while n_sweeps < self.max_sweeps and not converged and not stopped:
            factors = current.factors
            if n_sweeps < self.orthogonalize:
                factors = tuple(_orthonormal(factor) for factor in factors)
            before, last = error, current
            current = objective.sweep(factors, unit=not problem.asks)
            error = objective.relative_error(current)
            n_sweeps += 1
            if self.line_search and n_sweeps > max(self.orthogonalize, 2):
                current, error = _further(objective, last, current, error, n_sweeps)
            converged = n_sweeps > self.orthogonalize and abs(before - error) < self.tol
            stopped = self.monitor is not None and self.monitor(current, error) is True
        tensor = problem.tensor
        flops = 2.0 * n_sweeps * tensor.order * problem.rank * math.prod(tensor.shape)
        log.add("alternating least squares", n_sweeps, error, flops)
        if problem.symmetric and problem.asks:
            current = objective.feasible(current)
        elif problem.symmetric:
            current = with_best_weights(tensor, merged_modes(current).factors)
        else:
            return Estimate(current, log.stages, converged, None if problem.asks else error**2 * objective.total)
        return Estimate(current, log.stages, converged)

    def _start(self, problem: Problem, rng: np.random.Generator) -> Estimate:
        if self.init != "svd":
            return start_from(self.init, problem, rng)
        tensor, rank = complete(problem).tensor, problem.rank
        random = random_components(tensor, rank, rng).factors
        factors = [
            _padded(basis, columns) for basis, columns in zip(range_bases(tensor, rank, rng), random, strict=True)
        ]
        return Estimate(with_best_weights(tensor, factors), (), False)


def _padded(basis: Array, columns: Array) -> Array:
    """Return a basis, with random columns where it has fewer than there are components."""
    xp = array_namespace(columns)
    return xp.concat([moved(basis, columns), columns[:, basis.shape[1] :]], axis=1)


def _further(
    objective: LeastSquares, last: FactoredTensor, current: FactoredTensor, error: float, n_sweeps: int
) -> tuple[FactoredTensor, float]:
    """Go on from the last point through the current one, by a factor that grows with the sweeps, if that is closer."""
    jump = n_sweeps ** (1 / 3) - 1
    factors = objective.project(
        [now + jump * (now - then) for now, then in zip(current.factors, last.factors, strict=True)]
    )
    trial = FactoredTensor(current.weights + jump * (current.weights - last.weights), factors, symmetric=False)
    trial = trial if objective.problem.asks else unit_components(trial)
    reached = objective.relative_error(trial)
    return (trial, reached) if reached < error else (current, error)


def _orthonormal(factor: Array) -> Array:
    xp = array_namespace(factor)
    return factor if factor.shape[0] < factor.shape[1] else xp.linalg.qr(factor)[0]
