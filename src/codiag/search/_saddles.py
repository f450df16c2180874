"""Escape from saddle points: stationary points of least squares that are not minima.

The gradient vanishes there, and no Gauss-Newton step leads on. If the second derivative is negative along some
direction, the objective falls both ways along it.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

from codiag._arrays import Array, array_namespace, as_real_numbers, asarray_like, is_complex, to_host
from codiag.least_squares import (
    BRIEF_SWEEPS,
    MOST_PRODUCTS,
    NEGLIGIBLE,
    ROUGHEST,
    CurvatureOperator,
    LeastSquares,
    Limits,
    OptimizeResult,
    evaluated,
    minimize,
    relative_size,
)
from codiag.problem import Problem
from codiag.tensors import FactoredTensor, is_large

SUSPECT = 0.05
"""Relative error above which second derivatives are computed: a small residual makes no curvature negative."""


def leave_saddles(problem: Problem, result: OptimizeResult, limits: Limits) -> OptimizeResult:
    """Continue from a stationary point while a curvature is negative there and the objective falls."""
    error_bound = SUSPECT**2 * problem.data.squared_norm
    while result.converged and 2 * result.objective > error_bound and not is_large(problem.tensor.shape):
        start = _downhill(problem, result)
        if start is None:
            return result
        beyond = minimize(problem, start, replace(limits, max_iter=max(limits.max_iter - result.n_iter, 1)))
        if not beyond.objective < result.objective * (1 - NEGLIGIBLE):
            return result
        result = beyond._replace(n_iter=result.n_iter + beyond.n_iter)
    return result


def _downhill(problem: Problem, result: OptimizeResult) -> FactoredTensor | None:
    """Return a point below a stationary one, along the direction of the most negative curvature."""
    objective = LeastSquares(problem, result.components)
    if problem.loss is not None or not objective.supports_gauss_newton:
        return None
    state = evaluated(
        objective, objective.parametrization.vectorize(result.components, balanced=not problem.constraints)
    )
    curvature, direction = lowest_curvature(objective.second_derivative(state.point, state.gradient))
    if not curvature < -NEGLIGIBLE:
        return None
    while relative_size(direction, state.point) > NEGLIGIBLE:
        trials = [objective.projected(state.point + step) for step in (direction, -direction)]
        values = [objective.value(trial) for trial in trials]
        if min(values) < result.objective:
            return objective.parametrization.components(trials[int(np.argmin(values))])
        direction = direction / 2
    return None


def lowest_curvature(curvature: CurvatureOperator) -> tuple[float, Array]:
    r"""Return the least eigenvalue of :math:`S^{-1/2} H S^{-1/2}`, S the scales of H, and its direction.

    The eigenvalue is relative to the curvature along each component alone; the direction has the length of the largest
    component.
    """
    xp, roots = array_namespace(curvature.scales), array_namespace(curvature.scales).sqrt(curvature.scales)
    shape = tuple(as_real_numbers(curvature.point).shape)
    n = math.prod(shape)

    def as_move(vector: np.ndarray) -> Array:
        parts = np.reshape(vector, shape)
        if is_complex(curvature.point):
            parts = parts[: shape[0] // 2] + 1j * parts[shape[0] // 2 :]
        return asarray_like(parts, curvature.point) / roots

    def multiply(vector: np.ndarray) -> np.ndarray:
        return np.ravel(to_host(as_real_numbers(curvature.product(as_move(vector)) / roots)))

    operator, start = LinearOperator((n, n), matvec=multiply, dtype=np.float64), np.random.default_rng(0)
    try:
        first, n_restarts = start.standard_normal(n), MOST_PRODUCTS // BRIEF_SWEEPS
        values, vectors = eigsh(
            operator, 1, which="SA", v0=first, ncv=min(BRIEF_SWEEPS, n), tol=ROUGHEST, maxiter=n_restarts
        )
    except ArpackError:  # the lowest curvature is not isolated, or all are equal
        return 0.0, roots
    direction = as_move(vectors[:, 0])
    length = float(xp.linalg.vector_norm(xp.reshape(direction, (-1,))))
    size = float(xp.max(xp.linalg.vector_norm(curvature.point, axis=0)))
    return float(values[0]), direction * (size / length)
