r"""Standard errors of components with constraints, missing entries or weights: draws of the noise, to first order.

Noise as a noise model describes it moves the unknowns by the inverse curvature times its gradient. The errors are root
mean squares over draws, known to :math:`1 / \sqrt{2 n}`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from codiag._arrays import Array, asarray_like, is_complex, squared_magnitudes, to_double, to_host
from codiag.inference._noise_model import NoiseModel, along, root_mean_square, weights_of
from codiag.inference._sandwich import Errors, ModeCovariance, residual_scale
from codiag.inference._sensitivity import MOST_UNKNOWNS, Unknowns, inverse_of
from codiag.least_squares import (
    BRIEF_SWEEPS,
    TOLERANCE,
    LeastSquares,
    conjugate_gradients,
    damped_step,
    inner_product,
)
from codiag.problem import Problem
from codiag.tensors import DenseTensor

if TYPE_CHECKING:
    from codiag.result import Factorization

N_DRAWS, FEW_DRAWS, MANY_ENTRIES = 100, 16, 2**22
"""Draws, by which errors are known to 7 %, and so few, to a sixth, if all draws have so many entries."""

ACCURACY = 0.1
"""Relative error with which the equations of a draw are solved: of errors, it changes a hundredth."""

MOST_FIBRES = 256
"""Fibres of which drawn noise is made, at most, or the size of a covariance whose root is computed."""

Solve = Callable[[Array], Array]


def simulated_errors(
    fit: Factorization, problem: Problem, noise_model: NoiseModel, covariances: Sequence[ModeCovariance]
) -> Errors:
    """Return standard errors of the entries of unit factors, and of the weights relative to them, for unit noise."""
    components = fit._components
    known = components.changed(lambda factor, _: to_double(factor), to_double(components.weights))
    objective = LeastSquares(problem.in_double_precision(), known)
    unknowns, weights = Unknowns.of(objective, known), weights_of(problem)
    point, mean = unknowns.point, problem.data.mean_weight
    roots = np.ones(fit.shape) if weights is None else np.sqrt(weights * mean)
    free, factors = unknowns.free.astype(np.float64), objective.parametrization.expand(point)
    draw = _noise(noise_model, covariances, to_double(to_host(known.to_dense())), roots > 0)
    solve, rng = _solver(objective, unknowns), np.random.default_rng(0)
    n_draws = int(np.clip(MANY_ENTRIES // roots.size, FEW_DRAWS, N_DRAWS))
    squares, slopes, taken = [np.zeros(part.shape) for part in unknowns.numbers], np.zeros(known.rank), 0.0
    for _ in range(n_draws):
        noise = (draw(rng) + 1j * draw(rng)) / math.sqrt(2) if is_complex(point) else draw(rng)
        drawn = DenseTensor.of(asarray_like(roots * noise, point), symmetric=False)
        prior = mean * np.sqrt(unknowns.ridges) * rng.standard_normal(free.shape)
        gradient = objective.parametrization.accumulate(drawn.mttkrps(factors)) + asarray_like(prior, point)
        gradient = gradient * asarray_like(free, point)
        step = to_host(solve(gradient)).ravel()
        taken += float(np.vdot(step, to_host(gradient)).real) / mean / n_draws
        parts, growth = _of_unit_columns(unknowns, step)
        squares = [square + squared_magnitudes(part) / n_draws for square, part in zip(squares, parts, strict=True)]
        slopes = slopes + growth**2 / n_draws
    scale = residual_scale(problem.n_independent, fit._sensitivity.n_parameters, taken)
    return [scale * np.sqrt(square) for square in squares], scale * np.sqrt(slopes)


def _of_unit_columns(unknowns: Unknowns, step: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
    """Return moves of the entries of unit columns, and of the logarithms of the weights.

    Rows that are not determined take no part in the length of a column.
    """
    parts, growth, values = [], np.zeros(unknowns.values.shape[1]), unknowns.values.ravel()
    for numbers in unknowns.numbers:
        column, is_known = values[numbers], ~unknowns.loose.ravel()[numbers]
        part = step[numbers] * is_known
        unit = column * is_known / np.maximum(np.linalg.norm(column * is_known, axis=0), 1e-300)
        length = np.maximum(np.linalg.norm(column, axis=0), 1e-300)
        is_free = unknowns.free.ravel()[numbers]
        parts.append((part - unit * np.sum(np.conj(unit) * part, axis=0)) * is_free / length)
        growth += np.real(np.sum(np.conj(column) * step[numbers], axis=0)) / length**2
    return parts, growth


def _solver(objective: LeastSquares, unknowns: Unknowns) -> Solve:
    """Return the inverse of the curvature: of few unknowns a matrix, of others conjugate gradients.

    Their preconditioner is the curvature that is expected if entries are missing at random.
    """
    point, mean = unknowns.point, objective.problem.data.mean_weight
    if np.count_nonzero(unknowns.free) <= MOST_UNKNOWNS:
        index, inverse = np.flatnonzero(unknowns.free), inverse_of(unknowns).covariance / mean

        def directly(gradient: Array) -> Array:
            found = np.zeros(unknowns.values.size)
            found[index] = inverse @ to_host(gradient).ravel()[index]
            return asarray_like(found.reshape(unknowns.values.shape), point)

        return directly
    xp_free = asarray_like(unknowns.free.astype(np.float64), point)
    curvature = objective.restricted(objective.curvature(point), -xp_free)
    if objective.expected_share is None:
        return lambda gradient: damped_step(
            curvature, -gradient, TOLERANCE, objective.squared_norm, BRIEF_SWEEPS, ACCURACY
        )[0]
    nearby = objective.step_curvature(point, -xp_free)
    precondition: Solve = lambda right: damped_step(  # noqa: E731
        nearby, -right, TOLERANCE, objective.squared_norm, BRIEF_SWEEPS, ACCURACY
    )[0]
    return lambda gradient: conjugate_gradients(
        curvature.product, precondition, gradient, inner_product, scale=objective.squared_norm,
        max_products=BRIEF_SWEEPS, accuracy=ACCURACY, least_accuracy=ACCURACY,
    ).move  # fmt: skip


def _noise(
    noise_model: NoiseModel, covariances: Sequence[ModeCovariance], model: np.ndarray, seen: np.ndarray
) -> Callable[[np.random.Generator], np.ndarray]:
    """Return a function that draws noise of unit variance, on average over the entries that were observed."""
    if noise_model.gain is not None:
        gains = model / root_mean_square(model[seen])
        shape = [1 if mode == noise_model.gain else size for mode, size in enumerate(model.shape)]
        return lambda rng: gains * rng.standard_normal(shape)
    if noise_model.is_independent:
        deviations = noise_model.relative_deviations(model)
        deviations = deviations / root_mean_square(deviations[seen])
        return lambda rng: deviations * (2 * rng.integers(0, 2, model.shape, dtype=np.int8) - np.int8(1))
    share = np.count_nonzero(seen) / seen.size
    roots = {mode: _root(covariances[mode], share) for mode in noise_model.correlated}
    others = [along(np.sqrt(covariances[m].diagonal), m, model.ndim) for m in range(model.ndim) if m not in roots]
    scales = functools.reduce(np.multiply, others, np.ones((1,) * model.ndim))

    def drawn(rng: np.random.Generator) -> np.ndarray:
        noise = rng.standard_normal([roots[m].shape[1] if m in roots else size for m, size in enumerate(model.shape)])
        for mode, root in roots.items():
            noise = np.moveaxis(np.tensordot(root, noise, (1, mode)), 0, mode)
        return noise * scales

    return drawn


def _root(covariance: ModeCovariance, share: float) -> np.ndarray:
    """Return a root of the covariance along a mode, (d, n): some fibres, or of a small one that of the matrix.

    Where entries are missing, products of two that were observed are a share of those of the covariance.
    """
    fibres, variances = covariance.left, covariance.diagonal
    assert fibres is not None
    if variances.size <= MOST_FIBRES:
        matrix = covariance.product(np.eye(variances.size)) / share
        np.fill_diagonal(matrix, variances)
        values, vectors = np.linalg.eigh(matrix)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
    else:
        root = fibres[:, np.random.default_rng(0).permutation(fibres.shape[1])[:MOST_FIBRES]]
    sizes = np.sqrt(np.sum(root**2, axis=1))
    return np.asarray(root * (np.sqrt(variances) / np.where(sizes > 0, sizes, 1.0))[:, None])
