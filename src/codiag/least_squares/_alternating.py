"""Alternating least squares: solve for one factor at a time, with the others fixed."""

from __future__ import annotations

import math
from collections.abc import Callable

from codiag._arrays import Array, array_namespace
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
    orthogonalize: int = 0,
    line_search: bool = False,
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
    orthogonalize : int
        First sweeps, before each of which the factors are made orthonormal.
    line_search : bool
        Whether to extrapolate after every sweep (Bro, 1998).
    callback : callable, optional
        Called as ``callback(components, objective)`` after every sweep; True ends the fit.
    """
    is_plain = not objective.problem.required_features
    current = unit_components(start) if is_plain else start
    error, value, converged, n_iter = math.inf, math.inf, False, 0
    while n_iter < max_iter and not converged:
        factors = current.factors
        if n_iter < orthogonalize:
            factors = tuple(_orthonormal(factor) for factor in factors)
        before, last = error, current
        current = objective.sweep(factors, unit=is_plain)
        error = objective.relative_error(current)
        n_iter += 1
        if line_search and n_iter > max(orthogonalize, 2):
            current, error = _extrapolated(objective, last, current, error, n_iter)
        converged = n_iter > orthogonalize and abs(before - error) < tol
        value = error**2 * objective.squared_norm / 2
        if objective.penalties:
            value = objective.value(objective.parametrization.vectorize(current, balanced=False))
        if callback is not None and callback(current, value):
            break
    return OptimizeResult(current, value, n_iter, converged)


def _extrapolated(
    objective: LeastSquares, last: FactoredTensor, current: FactoredTensor, error: float, n_iter: int
) -> tuple[FactoredTensor, float]:
    """Go on from the last point through the current one, by the cube root of the number of sweeps, if that is lower."""
    jump = n_iter ** (1 / 3) - 1
    pairs = zip(current.factors, last.factors, strict=True)
    factors = objective.project([now + jump * (now - then) for now, then in pairs])
    trial = FactoredTensor(current.weights + jump * (current.weights - last.weights), factors, symmetric=False)
    trial = trial if objective.problem.required_features else unit_components(trial)
    trial_error = objective.relative_error(trial)
    return (trial, trial_error) if trial_error < error else (current, error)


def _orthonormal(factor: Array) -> Array:
    xp = array_namespace(factor)
    return factor if factor.shape[0] < factor.shape[1] else xp.linalg.qr(factor)[0]
