"""Alternating least squares: one factor at a time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from codiag._arrays import Array, array_namespace, to_namespace
from codiag._checks import as_number
from codiag.least_squares import LeastSquares, Log, alternate, merged_modes, random_components, with_best_weights
from codiag.methods._method import Init, Method, check_callback, check_init, has_rows, start_from
from codiag.problem import Estimate, Problem
from codiag.reduction import range_bases
from codiag.search import Callback, CallbackRunner


@dataclass(frozen=True, kw_only=True, eq=False)
class ALS(Method):
    r"""Alternating least squares: solve for the factor of one mode with the others fixed, in turns.

    The default of most other libraries, here for comparison and as an inexpensive polish. For a symmetric tensor the
    modes are fitted separately, and their factors are merged at the end.

    With constraints, the factor of a mode is the best that satisfies its own; where entries were not observed, every
    row of a factor has its own equations.

    Parameters
    ----------
    init : {"random", "svd"}, method, fit, or (weights, factors)
        Where to start. "svd" takes the leading singular vectors of every unfolding, and random columns beyond their
        number.
    tol : float
        Stop when the relative error falls by less than this in a sweep.
    max_iter : int
        Sweeps before giving up.
    callback : callable, optional
        Called as ``callback(components, relative_error)`` after every sweep; True ends the fit there.

    See Also
    --------
    NLS : Fewer and better steps for the same minimum.
    Auto : Starts by joint diagonalization instead.
    codiag.drop_in.parafac : The interface of TensorLy.

    Notes
    -----
    **Assumptions.** Contractions of the tensor and nothing else.

    **Complexity.** :math:`2 N k \prod_m d_m` flops a sweep, N passes over the tensor.

    **Guarantees.** A stationary point, and the right one only from a start near it (local convergence, for factors of
    incoherence below :math:`\mathrm{polylog}(d) / \sqrt d`).

    **Limitations.** Fails by ending in local optima, or by slow convergence ("swamps") if components are collinear.

    Examples
    --------
    >>> import numpy as np
    >>> import codiag
    >>> tensor = np.random.default_rng(0).random((4, 5, 6))
    >>> fit = codiag.factorize(tensor, 2, method=codiag.methods.ALS(init="svd"), constraints="nonnegative", rng=0)
    >>> all((factor >= 0).all() for factor in fit.factors)
    True
    """

    supports: ClassVar[frozenset[str]] = frozenset(
        {"complex numbers", "constraints", "missing entries", "partial symmetry"}
    )

    init: Init = "random"
    tol: float = 1e-8
    max_iter: int = 1000
    callback: Callback | None = None

    def __post_init__(self) -> None:
        check_init(self.init, ("random", "svd"))
        as_number("tol", self.tol)
        as_number("max_iter", self.max_iter, integer=True)
        check_callback(self.callback)

    @property
    def has_per_index_options(self) -> bool:
        return has_rows(self.init) or self.callback is not None

    def fit(self, problem: Problem, rng: np.random.Generator) -> Estimate:
        log, start = Log(), self._start(problem, rng)
        log.extend(start.history)
        objective = LeastSquares(problem)
        components = objective.feasible(start.components) if problem.required_features else start.components
        result = alternate(
            objective,
            components,
            max_iter=self.max_iter,
            tol=self.tol,
            callback=None if self.callback is None else CallbackRunner.on_whole(self.callback, problem),
        )
        flops = 2.0 * result.n_iter * problem.tensor.order * problem.rank * math.prod(problem.tensor.shape)
        error = math.sqrt(2 * result.objective / objective.squared_norm)
        log.add("alternating least squares", result.n_iter, error, flops)
        if not problem.symmetric:
            distance = None if problem.required_features else 2 * result.objective
            return Estimate(result.components, log.history, result.converged, distance)
        if problem.required_features:
            merged = objective.feasible(result.components)
        else:
            merged = with_best_weights(problem.tensor, merged_modes(result.components).factors)
        return Estimate(merged, log.history, result.converged)

    def _start(self, problem: Problem, rng: np.random.Generator) -> Estimate:
        if self.init != "svd":
            return start_from(self.init, problem, rng)
        complete = problem.complete()
        random = random_components(complete.tensor, problem.rank, rng).factors
        bases = range_bases(complete, rng)
        factors = [_padded(basis, columns) for basis, columns in zip(bases, random, strict=True)]
        return Estimate(with_best_weights(complete.tensor, factors), (), False)


def _padded(basis: Array, columns: Array) -> Array:
    """Return a basis, with random columns added if it has fewer than there are components."""
    xp = array_namespace(columns)
    return xp.concat([to_namespace(basis, columns), columns[:, basis.shape[1] :]], axis=1)
