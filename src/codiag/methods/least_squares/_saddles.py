"""Away from saddle points: stationary points of least squares that are not minima.

There the gradient vanishes and no Gauss-Newton step leads on. The second derivative tells: where it bends down in some
direction, the objective falls both ways along it.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from array_api_compat import array_namespace

from codiag._array import Array, like, to_host
from codiag.methods.least_squares._curvature import Curvature, Parameters
from codiag.methods.least_squares._gauss_newton import NEGLIGIBLE, Limits, Outcome, minimize, true_curvature
from codiag.tensors import DenseTensor, FactoredTensor

SUSPECT = 0.05
"""Relative error from which second derivatives are worth their price: a small residual hardly bends anything down."""

ESCAPES = 5


def leave_saddles(tensor: DenseTensor, found: Outcome, limits: Limits) -> Outcome:
    """Go on from a stationary point as long as the objective bends down there and falls by more than rounding."""
    for _ in range(ESCAPES):
        if not found.converged or 2 * found.objective < SUSPECT**2 * tensor.squared_norm():
            return found
        start = _downhill(tensor, found)
        if start is None:
            return found
        left = replace(limits, max_sweeps=max(limits.max_sweeps - found.n_sweeps, 1))
        beyond = minimize(tensor, start, left)
        if not beyond.objective < found.objective * (1 - NEGLIGIBLE):
            return found
        found = beyond._replace(n_sweeps=found.n_sweeps + beyond.n_sweeps)
    return found


def _downhill(tensor: DenseTensor, found: Outcome) -> FactoredTensor | None:
    """Return a point below a stationary one, in the direction in which the objective bends down most."""
    parameters = Parameters.of(found.components)
    point = parameters.pack(found.components)
    value, direction = lowest_curvature(true_curvature(tensor, parameters, point))
    if not value < -NEGLIGIBLE:
        return None
    best, lowest = None, found.objective
    for size in (1.0, 0.3, 0.1, 0.03):
        for sign in (1, -1):
            components = parameters.components(point + sign * size * direction)
            objective = tensor.squared_distance(components.weights, components.factors) / 2
            if objective < lowest:
                best, lowest = components, objective
    return best


def lowest_curvature(curvature: Curvature, n_steps: int = 30) -> tuple[float, Array]:
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
