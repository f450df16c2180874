"""Damped Gauss-Newton steps (Levenberg-Marquardt) from a start to a minimum of an objective."""

import math
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from array_api_compat import is_numpy_array

from codiag._arrays import Array, Extrapolation, array_namespace, as_real_numbers, to_host
from codiag._progress import tell
from codiag.least_squares._budget import Budget, step_seconds
from codiag.least_squares._components import unit_components
from codiag.least_squares._linear_solve import damped_step
from codiag.least_squares._objective import Objective
from codiag.least_squares._operators import CurvatureOperator
from codiag.least_squares._tolerances import (
    DEGENERATE_RATIO,
    FIRST_DAMPING,
    INSIGNIFICANT,
    MAX_SWEEPS,
    MOST_PRODUCTS,
    NEGLIGIBLE,
    ROUGHEST,
    ROUNDING,
    SLOW,
    TINY,
    TOLERANCE,
)
from codiag.problem import Problem
from codiag.tensors import FactoredTensor, is_large


class State(NamedTuple):
    """A point, the objective there, and its gradient."""

    point: Array
    objective: float
    gradient: Array


class OptimizeResult(NamedTuple):
    """The end of a minimization.

    Attributes
    ----------
    components : FactoredTensor
        The last iterate.
    objective : float
        Its objective.
    n_iter : int
        Number of steps.
    converged : bool
        Whether it is a minimum, to the tolerance.
    runs_off : bool
        Whether components diverge.
    distance : float
        Estimate of the distance from the minimum, relative to the components, from the last two steps.

    See Also
    --------
    minimize : Returns one.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.extending import OptimizeResult
    >>> from codiag.tensors import FactoredTensor
    >>> OptimizeResult(FactoredTensor(np.ones(2), [np.eye(4, 2)] * 3), 0.0, 5, True).runs_off
    False
    """

    components: FactoredTensor
    objective: float
    n_iter: int
    converged: bool
    runs_off: bool = False
    distance: float = math.inf


class IterationCallback(Protocol):
    """Called with components and their objective after every step; returns True to end the fit, and remembers it."""

    stopped: bool

    def __call__(self, components: FactoredTensor, objective: float) -> bool: ...


@dataclass(frozen=True)
class Limits:
    """When `minimize` stops.

    Parameters
    ----------
    max_iter : int
        Number of steps, at most.
    tol : float
        Stop when a step is smaller than this, relative to the components.
    gain : float
        Stop when two steps in a row gain less than this, in noise variances.
    rough : bool
        Whether to skip the test for a minimum at the end; such an end does not count as converged.
    max_products : int
        Products with the Gauss-Newton matrix in one step, at most.
    callback : callable, optional
        Called as ``callback(components, objective)`` after every step; True ends the fit.
    budget : Budget, optional
        Counts the steps, and ends the fit when it is over.

    See Also
    --------
    minimize : Takes them.

    Examples
    --------
    >>> from codiag.extending import Limits
    >>> Limits(tol=1e-6).max_iter
    300
    """

    max_iter: int = MAX_SWEEPS
    tol: float = TOLERANCE
    gain: float = TOLERANCE
    rough: bool = False
    max_products: int = MOST_PRODUCTS
    callback: IterationCallback | None = None
    budget: Budget | None = None

    @property
    def is_stopped(self) -> bool:
        """Whether a callback or the clock has ended the fit.

        Examples
        --------
        >>> from codiag.extending import Limits
        >>> Limits().is_stopped
        False
        """
        is_late = self.budget is not None and self.budget.is_late
        return is_late or (self.callback is not None and self.callback.stopped)


class Steps:
    """Damped Gauss-Newton steps for any problem, in the array library of its tensor."""

    def __init__(self, objective: Objective, budget: Budget | None = None) -> None:
        self.objective, self._far, self._budget = objective, False, budget
        self._curvature: CurvatureOperator | None = None

    @property
    def is_late(self) -> bool:
        """Whether steps are no longer solved to the end."""
        return self._budget is not None and self._budget.is_late

    def evaluated(self, point: Array) -> State:
        """Return the state at a point; entries of a large tensor are not subtracted one by one while it is far."""
        objective = self.objective
        value, gradient = objective.value_and_gradient(point, far=self._far)
        self._far = is_large(objective.tensor.shape) and objective.is_far(2 * value)
        return State(point, value, gradient)

    def step(self, state: State, damping: float, max_products: int = MOST_PRODUCTS) -> tuple[Array, float]:
        """Return the damped step of the unknowns that are free, and the decrease that it promises."""
        objective = self.objective
        if self._curvature is None or self._curvature.point is not state.point:
            self._curvature = objective.step_curvature(state.point, state.gradient)
        is_noisy = objective.is_quadratic and not is_exact(objective.problem, 2 * state.objective)
        return damped_step(
            self._curvature,
            state.gradient,
            damping,
            objective.squared_norm,
            max_products,
            negligible=SLOW * TOLERANCE if is_noisy else 0.0,  # of a component a thousandth of the tensor, `TOLERANCE`
            budget=self._budget,
        )


class Damping:
    """Damping of the steps, by the rule of Nielsen (1999): less after a step that gained what it promised."""

    def __init__(self, value: float = FIRST_DAMPING) -> None:
        self.value, self._growth = value, 2.0

    @property
    def exhausted(self) -> bool:
        """Whether steps were refused until they are so short that only rounding is left of them."""
        return self.value > 1 / ROUNDING

    def accept(self, ratio: float) -> None:
        """Follow the ratio of the gain of a step to the gain that it promised, down to damping that rounding hides."""
        self.value = max(self.value * min(max(1 / 3, 1 - (2 * ratio - 1) ** 3), 2.0), ROUNDING)
        self._growth = 2.0

    def refuse(self) -> None:
        """Increase the damping, faster with every refusal in a row."""
        self.value, self._growth = self.value * self._growth, 2 * self._growth


class Progress:
    """Gains and sizes of the steps so far."""

    def __init__(self, least_gain: float) -> None:
        self._least_gain = least_gain  # as a share of the objective
        self._n_idle, self._size = 0, math.inf
        self.distance, self.is_slow, self.is_creeping = math.inf, False, False

    @property
    def is_idle(self) -> bool:
        """Whether two steps in a row gained next to nothing."""
        return self._n_idle >= 2

    def add(self, gained: float, objective: float, size: float) -> None:
        """Take note of a step: its gain, the objective after it, and its relative size."""
        rate = size / self._size if self._size > 0 else 0.0
        self._size, self.distance = size, size * rate / (1 - rate) if rate < 0.5 else math.inf
        self._n_idle = self._n_idle + 1 if gained < self._least_gain * objective else 0
        self.is_slow = gained < SLOW * objective
        self.is_creeping = self.is_slow and rate > ROUGHEST


def descend(objective: Objective, start: FactoredTensor, limits: Limits) -> OptimizeResult:
    """Take damped Gauss-Newton steps from a start that satisfies the constraints."""
    problem, parametrization, steps = objective.problem, objective.parametrization, Steps(objective, limits.budget)
    state = steps.evaluated(objective.projected(parametrization.vectorize(start, balanced=not problem.constraints)))
    floor = ROUNDING**2 * objective.squared_norm
    damping, progress = Damping(), Progress(limits.gain * objective.noise_variance)
    path = Extrapolation(state.point)
    n_iter, n_refused, price, share = 0, 0, step_seconds(problem), 1.0
    arrived = state.objective <= floor
    while n_iter < limits.max_iter and not arrived and not damping.exhausted:
        if limits.budget is not None and limits.budget.spend(price) and n_iter > 0:
            break
        move, promised = steps.step(state, damping.value, limits.max_products)
        if objective.is_quadratic and not promised <= 2 * state.objective:  # squares cannot fall below zero
            damping.refuse()
            n_refused += 1
            continue
        path.add(state.point, move)
        end = _extrapolated(steps, state, path, share * promised) if progress.is_creeping else None
        end = end or steps.evaluated(objective.projected(state.point + move))
        size = relative_size(end.point - state.point, state.point)
        gained = state.objective - end.objective
        if not gained >= -ROUNDING * state.objective:  # also if it is not a number
            damping.refuse()
            n_refused += 1
            if size < limits.tol or n_refused > 2 * limits.max_iter:
                break
            continue
        n_iter += 1
        tell("step %d", n_iter)
        is_undamped = damping.value <= FIRST_DAMPING
        ratio = gained / promised if promised > 0 else 1.0
        damping.accept(ratio)
        share = 1.0 if objective.is_quadratic else min(ratio, 1.0)  # curvature of a loss may promise far too much
        progress.add(gained, end.objective, size)
        state = end
        if limits.callback is not None and limits.callback(parametrization.components(state.point), state.objective):
            return OptimizeResult(parametrization.components(state.point), state.objective, n_iter, False)
        arrived = state.objective <= floor or (size < limits.tol and is_undamped)
        if size < limits.tol or progress.is_idle:
            break
        if progress.is_slow and _runs_off(objective, state.point):
            return OptimizeResult(
                parametrization.components(state.point), state.objective, n_iter, False, runs_off=True
            )
    converged = arrived or (not limits.rough and _is_minimum(objective, steps, state))
    return OptimizeResult(
        parametrization.components(state.point), state.objective, n_iter, converged, distance=progress.distance
    )


def _extrapolated(steps: Steps, state: State, path: Extrapolation, promised: float) -> State | None:
    """Return the fixed point of the last steps, by Anderson acceleration, if it is lower than a step promises."""
    if len(path) <= 2:
        return None
    end = steps.evaluated(steps.objective.projected(path.target(state.point)))
    if end.objective < state.objective - promised:
        return end
    path.forget()
    return None


def _runs_off(objective: Objective, point: Array) -> bool:
    """Return whether a component is far larger than the tensor, and neither ridge nor constraint bounds it."""
    return (
        objective.is_free
        and not objective.has_ridges
        and are_degenerate(objective.problem, objective.parametrization.components(point))
    )


def are_degenerate(problem: Problem, components: FactoredTensor, times: float = DEGENERATE_RATIO) -> bool:
    """Return whether a component is so many times larger than the tensor that others must take most of it back."""
    largest = float(np.max(np.abs(to_host(unit_components(components).weights))))
    return largest**2 * problem.data.mean_share > times**2 * problem.data.squared_norm


def _is_minimum(objective: Objective, steps: Steps, state: State) -> bool:
    """Return whether an undamped step promises no significant decrease."""
    if not math.isfinite(state.objective):
        return False
    if is_exact(objective.problem, 2 * state.objective):
        return True
    _, promised = steps.step(state, TOLERANCE)
    negligible = max(negligible_gain(objective) * state.objective, ROUNDING**2 * objective.squared_norm)
    return promised <= negligible and not steps.is_late


def is_exact(problem: Problem, squared_distance: float) -> bool:
    """Return whether nothing but rounding is left of the tensor of a problem."""
    return squared_distance < TOLERANCE**2 * problem.data.squared_norm


def negligible_gain(objective: Objective) -> float:
    """Return the share of the objective that a further step may gain at a minimum."""
    variance = objective.noise_variance
    return min(INSIGNIFICANT * variance, NEGLIGIBLE) if variance > 0 else NEGLIGIBLE


def evaluated(objective: Objective, point: Array, *, far: bool = False) -> State:
    """Return the state at a point, from one pass over the tensor; `far` as in `LeastSquares.value_and_gradient`."""
    return State(point, *objective.value_and_gradient(point, far=far))


def relative_size(move: Array, point: Array) -> float:
    """Return the largest move of a component, relative to its size."""
    if is_numpy_array(point):
        parts, points = as_real_numbers(move), as_real_numbers(point)
        moves, sizes = np.einsum("ij,ij->j", parts, parts), np.einsum("ij,ij->j", points, points)
        return math.sqrt(float((moves / np.maximum(sizes, NEGLIGIBLE**2 * sizes.max() + TINY)).max()))
    xp = array_namespace(point)
    moves, sizes = xp.linalg.vector_norm(move, axis=0), xp.linalg.vector_norm(point, axis=0)
    floor = NEGLIGIBLE * float(xp.max(sizes)) + TINY  # components that vanish may move
    return float(xp.max(moves / xp.where(sizes > floor, sizes, xp.full_like(sizes, floor))))
