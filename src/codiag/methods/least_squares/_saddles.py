"""Away from saddle points: stationary points of least squares that are not minima.

There the gradient vanishes and no Gauss-Newton step leads on. The second derivative tells: where it is negative in some
direction, the objective falls both ways along it.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from codiag._array import Array, array_namespace, like, to_host
from codiag._problem import Problem
from codiag.methods.least_squares._gauss_newton import NEGLIGIBLE, Limits, Outcome, minimize
from codiag.methods.least_squares._objective import LeastSquares
from codiag.methods.least_squares._restricted import CurvatureLike
from codiag.tensors import FactoredTensor

SUSPECT = 0.05
"""Relative error from which second derivatives are worth their price: a small residual makes no curvature negative."""

ESCAPES = 5


def leave_saddles(problem: Problem, found: Outcome, limits: Limits) -> Outcome:
    """Go on from a stationary point as long as some curvature is negative there and the objective falls."""
    for _ in range(ESCAPES):
        if not found.converged or 2 * found.objective < SUSPECT**2 * problem.tensor.squared_norm():
            return found
        start = _downhill(problem, found)
        if start is None:
            return found
        left = replace(limits, max_sweeps=max(limits.max_sweeps - found.n_sweeps, 1))
        beyond = minimize(problem, start, left)
        if not beyond.objective < found.objective * (1 - NEGLIGIBLE):
            return found
        found = beyond._replace(n_sweeps=found.n_sweeps + beyond.n_sweeps)
    return found


def _downhill(problem: Problem, found: Outcome) -> FactoredTensor | None:
    """Return a point below a stationary one, in the direction of the most negative curvature."""
    objective = LeastSquares(problem, found.components)
    point = objective.layout.pack(found.components)
    curvature, direction = lowest_curvature(objective.second_derivative(point))
    if not curvature < -NEGLIGIBLE:
        return None
    best, lowest = None, found.objective
    for size in (1.0, 0.3, 0.1, 0.03):
        for sign in (1, -1):
            trial = point + sign * size * direction
            value = objective.value(trial)
            if value < lowest:
                best, lowest = objective.layout.components(trial), value
    return best


def lowest_curvature(curvature: CurvatureLike, n_steps: int = 30) -> tuple[float, Array]:
    r"""Return the least eigenvalue of :math:`S^{-1/2} H S^{-1/2}`, S the scales of H, and its direction, by Lanczos.

    The eigenvalue is relative to the curvature along each component alone, the direction of the size of a component.
    """
    xp = array_namespace(curvature.scales)
    roots = xp.sqrt(curvature.scales)
    shape = tuple(roots.shape)
    drawn = np.random.default_rng(0).standard_normal(shape)
    vectors = [like(drawn / np.linalg.norm(drawn), roots)]
    along, across = [], []
    for step in range(min(n_steps, math.prod(shape))):
        image = curvature.product(vectors[-1] / roots) / roots
        along.append(float(xp.sum(image * vectors[-1])))
        for _ in range(2):  # orthogonal to rounding
            for vector in vectors:
                image = image - xp.sum(image * vector) * vector
        length = float(xp.linalg.vector_norm(xp.reshape(image, (-1,))))
        if not length > 1e-10 or step + 1 == n_steps:
            break
        across.append(length)
        vectors.append(image / length)
    n = len(along)
    values, mixing = np.linalg.eigh(np.diag(along) + np.diag(across[: n - 1], 1) + np.diag(across[: n - 1], -1))
    direction = sum((float(c) * vector for c, vector in zip(mixing[:, 0], vectors, strict=False)), 0 * roots) / roots
    own = xp.linalg.vector_norm(xp.reshape(direction, (-1,)))
    size = float(xp.max(xp.linalg.vector_norm(curvature.point, axis=0)))
    return float(to_host(values)[0]), direction * (size / own)
