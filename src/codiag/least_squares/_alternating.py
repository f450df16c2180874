"""Alternating least squares: solve for one factor at a time, with the others fixed."""

from __future__ import annotations

import math
from collections.abc import Callable

from codiag.least_squares._components import unit_components
from codiag.least_squares._gauss_newton import OptimizeResult
from codiag.least_squares._least_squares import LeastSquares
from codiag.tensors import FactoredTensor


def alternate(
    objective: LeastSquares,
    start: FactoredTensor,
    *,
    max_iter: int,
    tol: float,
    callback: Callable[[FactoredTensor, float], bool] | None = None,
) -> OptimizeResult:
    """Take sweeps over the modes until the relative error changes by less than a tolerance.

    Parameters
    ----------
    objective : LeastSquares
    start : FactoredTensor
        Satisfies the constraints.
    max_iter : int
    tol : float
        Change of the relative error in a sweep.
    callback : callable, optional
        Called as ``callback(components, objective)`` after every sweep; True ends the fit.
    """
    is_plain = not objective.problem.required_features
    current = unit_components(start) if is_plain else start
    error, value, converged, n_iter = math.inf, math.inf, False, 0
    while n_iter < max_iter and not converged:
        before, current = error, objective.sweep(current.factors, unit=is_plain)
        error = objective.relative_error(current)
        n_iter += 1
        converged = abs(before - error) < tol
        value = error**2 * objective.squared_norm / 2
        if objective.penalties:
            value = objective.value(objective.parametrization.vectorize(current, balanced=False))
        if callback is not None and callback(current, value):
            break
    return OptimizeResult(current, value, n_iter, converged)
