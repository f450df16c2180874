r"""Standard errors of many unknowns: how far random signs of the residual move the components, to first order.

Signs of single entries keep their sizes, and signs of whole fibres along a mode the correlations along it. The errors
are root mean squares over draws, known to :math:`1 / \sqrt{2 n}`.

References
----------
C. F. J. Wu, "Jackknife, bootstrap and other resampling methods in regression analysis", Ann. Statist. 14(4), 1986.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from codiag._arrays import Array, asarray_like, to_double, to_host
from codiag.inference._linearization import Errors, weights_of
from codiag.inference._noise_model import NoiseModel
from codiag.inference._sensitivity import Unknowns
from codiag.least_squares import (
    BRIEF_SWEEPS,
    TOLERANCE,
    CurvatureOperator,
    LeastSquares,
    conjugate_gradients,
    damped_step,
    inner_product,
)
from codiag.problem import Problem
from codiag.tensors import DenseTensor

if TYPE_CHECKING:
    from codiag.result import Factorization

N_DRAWS, FEW_DRAWS, MANY_ENTRIES = 40, 16, 2**22
"""Draws of signs, by which errors are known to a ninth, and so few, a sixth, if all draws have so many entries."""

ACCURACY = 0.1
"""Relative error with which the equations of a draw are solved: of errors, it changes a hundredth."""


def wild_bootstrap(fit: Factorization, problem: Problem, noise_model: NoiseModel) -> Errors:
    """Return standard errors of the entries of unit factors, and of the weights relative to them, for unit noise."""
    components = fit._components
    known = components.changed(lambda factor, _: to_double(factor), to_double(components.weights))
    objective = LeastSquares(problem.in_double_precision(), known)
    unknowns, weights = Unknowns.of(objective, known), weights_of(problem)
    point, xp_free = unknowns.point, asarray_like(unknowns.free.astype(np.float64), unknowns.point)
    curvature = objective.restricted(objective.curvature(point), -xp_free)
    nearby = None if objective.expected_share is None else objective.step_curvature(point, -xp_free)
    factors = objective.parametrization.expand(point)
    residual = to_double(to_host(problem.tensor.to_dense())) - to_double(to_host(known.to_dense()))
    residual = residual * (weights if weights is not None else 1.0)
    scale, rng, order = 1 / max(fit._noise, 1e-300), np.random.default_rng(0), residual.ndim
    together = noise_model.tied_modes if len(noise_model.tied_modes) < order else ()
    shape = [1 if mode in together else size for mode, size in enumerate(residual.shape)]
    n_free = int(np.count_nonzero(unknowns.free))
    scale *= math.sqrt(problem.n_observed / max(problem.n_observed - n_free, 1))
    squares, slopes = [np.zeros(numbers.shape) for numbers in unknowns.numbers], np.zeros(components.rank)
    lengths = [np.linalg.norm(unknowns.values.ravel()[numbers], axis=0) for numbers in unknowns.numbers]
    n_draws = int(np.clip(MANY_ENTRIES // residual.size, FEW_DRAWS, N_DRAWS))
    for _ in range(n_draws):
        signs = scale * (2 * rng.integers(0, 2, shape, dtype=np.int8) - 1)
        drawn = DenseTensor.of(asarray_like(signs * residual, point), symmetric=False)
        gradient = objective.parametrization.accumulate(drawn.mttkrps(factors)) * xp_free
        move = _solved(curvature, nearby, gradient, objective.squared_norm)
        moved = to_host(move).ravel()
        growth = np.zeros(components.rank)
        for square, numbers, length in zip(squares, unknowns.numbers, lengths, strict=True):
            unit, part = unknowns.values.ravel()[numbers] / length, moved[numbers] / length
            inward = np.sum(unit * part, axis=0)
            square += (part - unit * inward) ** 2
            growth += inward
        slopes += growth**2
    return [np.sqrt(square / n_draws) for square in squares], np.sqrt(slopes / n_draws)


def _solved(curvature: CurvatureOperator, nearby: CurvatureOperator | None, gradient: Array, scale: float) -> Array:
    """Return the inverse curvature times a gradient, by conjugate gradients; a nearby curvature is inverted exactly."""
    if nearby is None:
        return damped_step(curvature, -gradient, TOLERANCE, scale, BRIEF_SWEEPS, ACCURACY)[0]

    def precondition(right: Array) -> Array:
        return damped_step(nearby, -right, TOLERANCE, scale, BRIEF_SWEEPS, ACCURACY)[0]

    return conjugate_gradients(
        curvature.product, precondition, gradient, inner_product,
        scale=scale, max_products=BRIEF_SWEEPS, accuracy=ACCURACY, least_accuracy=ACCURACY,
    ).move  # fmt: skip
