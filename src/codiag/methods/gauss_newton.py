"""Damped Gauss-Newton steps for the fit of components to a tensor."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from array_api_compat import array_namespace

from codiag._array import Array, epsilon, identity
from codiag.methods.curvature import Curvature, Parameters, gradient
from codiag.tensors import DenseTensor, FactoredTensor, Tensor

EXPLICIT = 300, 600
"""Unknowns up to which the Gauss-Newton matrix is written down: always, and where conjugate gradients creep."""


UNSEEN = 1e-3
"""Variances of the noise by which the last step may have lowered the objective for a fit to count as converged."""


class State(NamedTuple):
    """A point, half its squared distance from the tensor, and the gradient of that."""

    point: Array
    objective: float
    gradient: Array


class Outcome(NamedTuple):
    """Where the steps ended."""

    components: FactoredTensor
    objective: float
    n_sweeps: int
    converged: bool


@dataclass(frozen=True)
class Limits:
    """When to stop: after so many steps, when steps fall below `tol`, or when two gain less than `gain` variances."""

    max_sweeps: int = 200
    tol: float = 1e-9
    gain: float = 1e-8
    watch: Callable[[FactoredTensor, float], bool] | None = None  # sees every step taken; says True to stop


def minimize(tensor: DenseTensor, start: FactoredTensor, limits: Limits) -> Outcome:
    """Fit components to a tensor by damped Gauss-Newton steps from a start, after Levenberg and Marquardt.

    Where the steps creep, as they do towards components that noise half hides, Newton's own are tried.
    """
    parameters = Parameters.of(start)
    state = _evaluate(tensor, parameters, parameters.pack(start))
    floor = 1e-30 * max(tensor.squared_norm(), 1e-300)
    spare = parameters.spare(start.rank)
    variance = 2 / spare if spare > 1 else 0.0  # of the noise, for an objective of one
    damping, growth, gained, n_sweeps = 1e-3, 2.0, math.inf, 0
    idle, creeping, wait, progress = 0, False, 0, math.inf
    converged = state.objective <= floor
    while n_sweeps < limits.max_sweeps and not converged and growth < 2.0**20:
        curvature = Curvature(parameters, state.point)
        trial, size, expected = _newton_trial(tensor, parameters, state, damping) if creeping else _NO_TRIAL
        if trial is None:
            wait = 5 if creeping else wait - 1
            move, expected = _step(curvature, state.gradient, damping, tensor.squared_norm())
            trial, size = _evaluate(tensor, parameters, state.point + move), _relative_size(move, state.point)
        n_sweeps += 1
        before, gained = gained, state.objective - trial.objective
        if not gained >= -1e-14 * state.objective:  # also where it is not a number
            damping, growth, creeping = damping * growth, 2 * growth, False
            converged = size < limits.tol
            continue
        progress = gained
        ratio = gained / expected if expected > 0 else 1.0
        damping, growth = max(damping * min(max(0.1, 1 - (2 * ratio - 1) ** 3), 2.0), 1e-14), 2.0
        idle = idle + 1 if gained < limits.gain * variance * trial.objective else 0
        creeping = wait <= 0 and 0.2 * before < gained < 1e-3 * trial.objective
        state = trial
        converged = size < limits.tol or idle >= 2 or state.objective <= floor
        if limits.watch is not None and limits.watch(parameters.components(state.point), state.objective):
            break
    converged = converged or progress < UNSEEN * variance * state.objective
    return Outcome(parameters.components(state.point), state.objective, n_sweeps, converged)


_NO_TRIAL = (None, 0.0, 0.0)


def _newton_trial(
    tensor: DenseTensor, parameters: Parameters, state: State, damping: float
) -> tuple[State | None, float, float]:
    """Return the end of a step with full second derivatives, its size and promise; nothing where they bend down."""
    entries = tensor.to_dense() - parameters.components(state.point).to_dense()
    residual = DenseTensor.of(entries, symmetric=tensor.symmetric)
    curvature = Curvature(parameters, state.point, residual)
    move = _conjugate_gradients(curvature, state.gradient, damping, tensor.squared_norm())
    if move is None:
        return _NO_TRIAL
    trial = _evaluate(tensor, parameters, state.point + move)
    if not trial.objective < state.objective:
        return _NO_TRIAL
    return trial, _relative_size(move, state.point), _promise(move, state.gradient, damping * curvature.scales)


def _relative_size(move: Array, point: Array) -> float:
    """Return the largest move of a component, relative to its size."""
    xp = array_namespace(point)
    moves, sizes = xp.linalg.vector_norm(move, axis=0), xp.linalg.vector_norm(point, axis=0)
    floor = 1e-8 * float(xp.max(sizes)) + 1e-300  # a component of no size may move as it likes
    return float(xp.max(moves / xp.where(sizes > floor, sizes, xp.full_like(sizes, floor))))


def polish(tensor: Tensor, start: FactoredTensor, *, max_passes: int, tol: float) -> tuple[FactoredTensor, int, bool]:
    """Take Gauss-Newton steps that lower the gradient, one pass over the tensor each; return them counted.

    From a fit to a core that holds all but noise, one step comes within the square of what the core lost, and the
    objective, known only to rounding of the squared norm, is not asked.
    """
    parameters = Parameters.of(start)
    point = parameters.pack(start)
    tol = max(tol, 100 * epsilon(tensor.reference))
    best, size, kept = math.inf, math.inf, point
    for n_passes in range(1, max_passes + 1):
        slope = gradient(tensor, parameters, point)
        curvature = Curvature(parameters, point)
        move, expected = _step(curvature, slope, 1e-12, tensor.squared_norm())
        if not expected < best:  # worse than before: rounding, or too far for the steps
            return parameters.components(kept), n_passes, size < math.sqrt(tol)
        size = _relative_size(move, point)
        best, kept, point = expected, point, point + move
        if size < tol:
            break
    return parameters.components(point), n_passes, size < math.sqrt(tol)


def _evaluate(tensor: Tensor, parameters: Parameters, point: Array) -> State:
    components = parameters.components(point)
    objective = tensor.squared_distance(components.weights, components.factors) / 2
    return State(point, objective, gradient(tensor, parameters, point))


def _step(curvature: Curvature, slope: Array, damping: float, scale: float) -> tuple[Array, float]:
    """Return the damped step and the decrease it promises."""
    xp = array_namespace(slope)
    n = math.prod(slope.shape)
    move = None if n <= EXPLICIT[0] else _conjugate_gradients(curvature, slope, damping, scale, strict=n <= EXPLICIT[1])
    if move is None and n > EXPLICIT[1]:
        move = -curvature.preconditioner(damping)(slope)
    elif move is None:
        matrix, diagonal = curvature.matrix(), xp.reshape(curvature.scales, (-1,))
        move = xp.reshape(
            xp.linalg.solve(matrix + damping * diagonal * identity(n, matrix), -xp.reshape(slope, (-1, 1))),
            slope.shape,
        )
    return move, _promise(move, slope, damping * curvature.scales)


def _promise(move: Array, slope: Array, damping: Array) -> float:
    """Return the decrease of the objective that a damped step promises."""
    xp = array_namespace(move)
    return float(xp.sum(damping * move * move) - xp.sum(move * slope)) / 2


def _conjugate_gradients(
    curvature: Curvature, slope: Array, damping: float, scale: float, *, strict: bool = False
) -> Array | None:
    """Solve (H + damping) X = -slope, the more exactly the smaller the slope.

    None where H bends down, and if strict where it takes many steps.
    """
    xp = array_namespace(slope)
    precondition = curvature.preconditioner(damping)
    residual, move = -slope, xp.zeros_like(slope)
    direction = scaled = precondition(residual)
    size = first = float(xp.sum(residual * scaled))
    target = min(0.1, math.sqrt(max(first, 0.0) / scale)) ** 2 * first
    for step in range(200):
        if not size > max(target, 1e-300):
            break
        if strict and step >= 60:
            return None
        image = curvature.product(direction) + damping * curvature.scales * direction
        height = float(xp.sum(direction * image))
        if not height > 0:
            return None if curvature.bent or step == 0 else move  # without bends, by rounding alone
        along = size / height
        move, residual = move + along * direction, residual - along * image
        scaled = precondition(residual)
        before, size = size, float(xp.sum(residual * scaled))
        direction = scaled + (size / before) * direction
    return move
