"""How much steps are held back, after Levenberg and Marquardt.

Damped Gauss-Newton steps for the fit of components to a tensor.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from array_api_compat import is_numpy_array

from codiag._arrays import Array, Extrapolation, array_namespace, on_host
from codiag.least_squares._curvature import CurvatureLike, Restricted
from codiag.least_squares._linear_solve import conjugate_gradients, coupled, solve_directly
from codiag.least_squares._objective import LeastSquares
from codiag.least_squares._small_numpy import EXPLICIT, MOST_PRODUCTS, HostSteps
from codiag.problem import Problem
from codiag.tensors import DenseTensor, FactoredTensor, is_large
from codiag.tensors.entries import Entries


class Damping:
    """How much steps are held back: less where the model was right about the last one, more where it was not."""

    def __init__(self) -> None:
        self.value, self._growth = 1e-3, 2.0

    @property
    def exhausted(self) -> bool:
        """Whether steps were refused so often that rounding must be to blame."""
        return self._growth >= 2.0**20

    def accept(self, ratio: float) -> None:
        """Follow the ratio of what a step has gained to what it promised."""
        self.value = max(self.value * min(max(0.1, 1 - (2 * ratio - 1) ** 3), 2.0), 1e-14)
        self._growth = 2.0

    def refuse(self) -> None:
        self.value, self._growth = self.value * self._growth, 2 * self._growth


if TYPE_CHECKING:
    from codiag.search import Standing

SHARE_OF_NOISE = 1e-3
"""Variances of the noise by which a further step may lower the objective at a point that counts as a minimum."""

NEGLIGIBLE = 1e-6
"""Share of the objective that a further step may gain there, whatever the noise: few entries tell little about it."""

ROUNDING = 2e-14
"""Relative error that rounding alone may leave."""

NOTHING_LEFT = 1e-22
"""Share of the squared norm below which a fit is exact, though superfluous components may creep on for ever."""

PATIENCE = 50
"""Steps after which those that gain a tenth of what may be left unseen no longer count: what they follow is noise."""

CANCELLING = 10
"""Largest weight, relative to the norm of the tensor, above which components that creep are said to run off: all but a
hundredth of their energy is taken back by others."""

REFINEMENTS = 5
"""Newton's steps at the end of a fit: each doubles the digits."""

MEMORY = 6
"""Differences of steps from which those that creep are extrapolated."""

UNDAMPED = 1e-3
"""Damping up to which the size of a step tells how far the minimum is."""


class State(NamedTuple):
    """A point, half its squared distance from the tensor, and the gradient of that."""

    point: Array
    objective: float
    gradient: Array


class Outcome(NamedTuple):
    """Where the steps ended, and why.

    Attributes
    ----------
    components : FactoredTensor
        The last iterate.
    objective : float
        Its objective.
    n_sweeps : int
        Number of steps that were taken.
    converged : bool
        Whether the steps fell below the tolerance, at a minimum.
    runs_off : bool
        Whether components grow without bound and cancel each other.
    left : float
        How far the minimum is at most, relative to the components, as the last two steps tell.
    standing : Standing, optional
        What was found out about the minimum, once somebody has asked.

    See Also
    --------
    minimize : Returns one.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.least_squares import Outcome
    >>> from codiag.tensors import FactoredTensor
    >>> Outcome(FactoredTensor(np.ones(2), [np.eye(4, 2)] * 3), 0.0, 5, True).runs_off
    False
    """

    components: FactoredTensor
    objective: float
    n_sweeps: int
    converged: bool
    runs_off: bool = False
    left: float = math.inf
    standing: Standing | None = None


@dataclass(frozen=True)
class Limits:
    """When `minimize` stops.

    Parameters
    ----------
    max_sweeps : int
        Number of steps at most.
    tol : float
        Stop when a step falls below it, relative to the components.
    gain : float
        Stop when two steps in a row gain less than so many variances of the noise.
    rough : bool
        Whether to leave the end unexamined; it does not count as converged.
    n_products : int, optional
        Products with the Gauss-Newton matrix for a step at most; by default as many as it takes.
    watch : callable, optional
        Called as ``watch(components, objective)`` after every step; True ends the fit.

    See Also
    --------
    minimize : Takes them.

    Examples
    --------
    >>> from codiag.least_squares import Limits
    >>> Limits(tol=1e-6).max_sweeps
    200
    """

    max_sweeps: int = 200
    tol: float = 1e-9
    gain: float = 1e-8
    rough: bool = False
    n_products: int | None = None
    watch: Callable[[FactoredTensor, float], bool] | None = None


class Progress:
    """What steps have gained: whether they stand still, or creep, as towards components that noise half hides."""

    def __init__(self, variance: float, gain: float) -> None:
        self._variance, self._gain = variance, gain  # gains that do not count, in variances of the noise
        self._last, self._idle, self._wait, self._n_steps = math.inf, 0, 0, 0
        self._size = self.left = math.inf
        self.creeping = False

    @property
    def idle(self) -> bool:
        return self._idle >= 2

    def refuse(self) -> None:
        self._last, self.creeping = -math.inf, False

    def newton_failed(self) -> None:
        """Leave second derivatives alone for a few steps."""
        self._wait, self.creeping = 5, False

    def add(self, gained: float, objective: float, *, newton: bool, size: float) -> None:
        self._wait -= 0 if newton else 1
        rate = size / self._size if self._size > 0 else 0.0
        self._size, self.left = size, size * rate / (1 - rate) if rate < 0.5 else math.inf
        self._n_steps += 1
        gain = self._gain if self._n_steps < PATIENCE else max(self._gain, SHARE_OF_NOISE / 10)
        self._idle = self._idle + 1 if gained < gain * self._variance * objective else 0
        self.creeping = self._wait <= 0 and 0.2 * self._last < gained < 1e-3 * objective
        self._last = gained


def minimize(
    problem: Problem,
    start: FactoredTensor,
    limits: Limits,
    *,
    entries: Entries | None = None,
    sample: Entries | None = None,
) -> Outcome:
    """Fit components by damped Gauss-Newton steps from a start, after Levenberg and Marquardt.

    Where progress is slow, Newton's own steps are tried. Steps that were refused are not counted as sweeps, but only
    twice as many of them as of sweeps are tried in all.

    Parameters
    ----------
    problem : Problem
        What is to be solved.
    start : FactoredTensor
        Components to start from, of the rank of the problem.
    limits : Limits
        When to stop.
    entries : Entries, optional
        What stands for the entries that were observed, as in `LeastSquares`.
    sample : Entries, optional
        What stands for them in the Gauss-Newton matrix alone.

    Returns
    -------
    Outcome
        The components, and why the steps ended.

    See Also
    --------
    LeastSquares : The objective.
    codiag.methods.NLS : The method that does this from several starts.

    Examples
    --------
    >>> import numpy as np
    >>> import codiag
    >>> from codiag.least_squares import Limits, minimize
    >>> from codiag.tensors import FactoredTensor
    >>> planted = codiag.synthetic.noisy_tensor((5, 5, 5), 2, seed=0)
    >>> start = FactoredTensor(planted.weights, [factor + 0.1 for factor in planted.factors])
    >>> minimize(codiag.Problem(planted.tensor, 2), start, Limits()).converged
    True
    """
    objective = LeastSquares(problem, start, entries=entries, sample=sample)
    layout, steps = objective.layout, steps_for(objective)
    state = steps.evaluated(objective.projected(layout.pack(start, balanced=not problem.constraints)))
    floor = 1e-30 * max(objective.total, 1e-300)
    damping, progress = Damping(), Progress(objective.noise_variance, limits.gain)
    path = Extrapolation(state.point, MEMORY)
    n_sweeps = n_refused = 0
    arrived = state.objective <= floor
    while n_sweeps < limits.max_sweeps and not arrived and not damping.exhausted:
        trial = _trial(objective, steps, state, damping.value, progress, path, limits.n_products)
        gained = state.objective - trial.state.objective
        if not gained >= -1e-14 * state.objective:  # also where it is not a number
            damping.refuse()
            progress.refuse()
            n_refused += 1
            if trial.size < limits.tol or n_refused > 2 * limits.max_sweeps + 20:
                break
            continue
        n_sweeps += 1
        damping.accept(gained / trial.promised if trial.promised > 0 else 1.0)
        progress.add(gained, trial.state.objective, newton=trial.newton, size=trial.size)
        state = trial.state
        arrived = state.objective <= floor or (trial.size < limits.tol and damping.value <= UNDAMPED)
        if trial.size < limits.tol or progress.idle:
            break
        if progress.creeping and n_sweeps % 10 == 0 and _runs_off(objective, state.point):
            return Outcome(layout.components(state.point), state.objective, n_sweeps, False, runs_off=True)
        if limits.watch is not None and limits.watch(layout.components(state.point), state.objective):
            return Outcome(layout.components(state.point), state.objective, n_sweeps, False)
    if not arrived and not limits.rough:
        state = _refined(objective, steps, state, limits.tol)
    converged = arrived or (not limits.rough and _is_minimum(objective, steps, state))
    return Outcome(layout.components(state.point), state.objective, n_sweeps, converged, left=progress.left)


def _refined(objective: LeastSquares, steps: Steps, state: State, tol: float) -> State:
    """Take a few of Newton's steps from where others gained next to nothing, while they shrink, on a small tensor."""
    small = math.prod(state.point.shape) <= EXPLICIT[0] and on_host(state.point)
    if not small or not objective.problem.asks <= {"partial symmetry"}:
        return state
    size = math.inf
    for _ in range(REFINEMENTS):
        trial = _newton_trial(objective, steps, state, 0.0) if size >= tol else None
        if trial is None or not trial.size < size:
            break
        state, size = trial.state, trial.size
    return state


def _runs_off(objective: LeastSquares, point: Array) -> bool:
    """Tell whether a component is far larger than the tensor, with nothing to hold it back."""
    if objective.problem.constraints is not None:
        return False
    xp = array_namespace(point)
    squares = math.prod(xp.sum(factor**2, axis=0) for factor in objective.layout.expanded(point))
    share = objective.problem.n_entries / math.prod(objective.tensor.shape)
    return float(xp.max(squares)) * share > CANCELLING**2 * objective.total


def _is_minimum(objective: LeastSquares, steps: Steps, state: State) -> bool:
    """Tell whether a step that is hardly damped promises nothing that noise would show, or rounding leave."""
    if not math.isfinite(state.objective):
        return False
    if 2 * state.objective < NOTHING_LEFT * objective.total:
        return True
    _, promised = steps.step(state, 1e-9)
    return promised <= max(negligible_gain(objective) * state.objective, ROUNDING**2 * objective.total)


def negligible_gain(objective: LeastSquares) -> float:
    """Return the share of the objective that a further step may gain at a point that counts as a minimum."""
    variance = objective.noise_variance
    return min(SHARE_OF_NOISE * variance, NEGLIGIBLE) if variance > 0 else NEGLIGIBLE


class Steps:
    """Damped Gauss-Newton steps for any problem, in the array library of its tensor.

    Attributes
    ----------
    newton : bool
        Whether Newton's own steps are worth their price where these creep; if not, they are extrapolated.
    """

    def __init__(self, objective: LeastSquares) -> None:
        self._objective, self._far = objective, False
        self.newton = not is_large(objective.tensor.shape)

    def evaluated(self, point: Array) -> State:
        """Return the state at a point; of a large tensor entries are not subtracted one by one while it is far."""
        state = evaluated(self._objective, point, far=self._far)
        self._far = is_large(self._objective.tensor.shape) and self._objective.is_far(2 * state.objective)
        return state

    def step(self, state: State, damping: float, n_products: int | None = None) -> tuple[Array, float]:
        """Return the damped step of the unknowns that are free, and the decrease it promises."""
        objective = self._objective
        return gauss_newton_step(objective, objective.curvature(state.point), state.gradient, damping, n_products)


class QuickSteps(Steps):
    """The same for a small array of NumPy, all of it observed, with no constraints but equal ridges."""

    def __init__(self, objective: LeastSquares) -> None:
        super().__init__(objective)
        self.newton = False  # one costs ten of these
        self._host = HostSteps(objective.tensor.to_dense(), objective.layout, objective.ridge or 0.0)

    def evaluated(self, point: Array) -> State:
        return State(point, *self._host.value_and_gradient(point))

    def step(self, state: State, damping: float, n_products: int | None = None) -> tuple[Array, float]:
        return self._host.step(state.point, state.gradient, damping, n_products)


def steps_for(objective: LeastSquares) -> Steps:
    """Return what takes the steps for an objective."""
    tensor, layout = objective.tensor, objective.layout
    plain = objective.entries is None and objective.ridge is not None and not layout.shared
    if not plain or not isinstance(tensor, DenseTensor) or is_large(tensor.shape):
        return Steps(objective)
    reference = tensor.reference
    if not is_numpy_array(reference) or reference.dtype != np.float64 or (tensor.symmetric and layout.signs is None):
        return Steps(objective)
    return QuickSteps(objective)


class Trial(NamedTuple):
    """The end of a step, its relative size, the decrease it promised, and whether it knew second derivatives."""

    state: State
    size: float
    promised: float
    newton: bool


def _trial(
    objective: LeastSquares,
    steps: Steps,
    state: State,
    damping: float,
    progress: Progress,
    path: Extrapolation,
    n_products: int | None,
) -> Trial:
    if steps.newton and progress.creeping and objective.problem.asks <= {"partial symmetry"}:
        trial = _newton_trial(objective, steps, state, damping)
        if trial is not None:
            return trial
        progress.newton_failed()
    move, promised = steps.step(state, damping, n_products)
    if not steps.newton:
        path.add(state.point, move)
        if progress.creeping and len(path) > 2:
            end = steps.evaluated(path.target(state.point))
            if end.objective < state.objective - promised:
                return Trial(end, relative_size(end.point - state.point, state.point), promised, False)
            path.forget()
    end = steps.evaluated(objective.projected(state.point + move))
    return Trial(end, relative_size(end.point - state.point, state.point), promised, False)


def _newton_trial(objective: LeastSquares, steps: Steps, state: State, damping: float) -> Trial | None:
    """Return the end of a step with full second derivatives, or nothing where it does not lead down."""
    curvature = objective.second_derivative(state.point)
    move = _newton_move(curvature, state.gradient, damping, objective.total)
    if move is None:
        return None
    end = steps.evaluated(state.point + move)
    if not end.objective < state.objective:
        return None
    promised = _promise(move, state.gradient, damping * curvature.scales)
    return Trial(end, relative_size(move, state.point), promised, True)


def _newton_move(curvature: CurvatureLike, slope: Array, damping: float, scale: float) -> Array | None:
    """Return a damped Newton step; where the curvature is negative, the step goes as far down as it would go up.

    None where there are too many unknowns to write the second derivative down, and it has a negative direction.
    """
    xp = array_namespace(slope)
    if math.prod(slope.shape) > EXPLICIT[0]:
        return conjugate_gradients(curvature, slope, damping, scale)
    scales = xp.reshape(curvature.scales, (-1,))
    roots = xp.sqrt(xp.where(scales > 1e-200, scales, xp.ones_like(scales)))  # hardly anything of a component is left
    values, vectors = xp.linalg.eigh(curvature.matrix() / (roots[:, None] * roots[None, :]))
    along = xp.matrix_transpose(vectors) @ (xp.reshape(slope, (-1,)) / roots)
    steep = xp.abs(values) + damping
    steep = xp.where(steep > 0, steep, xp.full_like(steep, math.inf))  # no step where nothing is known
    return -xp.reshape((vectors @ (along / steep)) / roots, slope.shape)


def relative_size(move: Array, point: Array) -> float:
    """Return the largest move of a component, relative to its size."""
    if is_numpy_array(point):
        squares, own = np.einsum("ij,ij->j", move, move), np.einsum("ij,ij->j", point, point)
        return math.sqrt(float((squares / np.maximum(own, 1e-16 * own.max() + 1e-300)).max()))
    xp = array_namespace(point)
    moves, sizes = xp.linalg.vector_norm(move, axis=0), xp.linalg.vector_norm(point, axis=0)
    floor = 1e-8 * float(xp.max(sizes)) + 1e-300  # a component of no size may move as it likes
    return float(xp.max(moves / xp.where(sizes > floor, sizes, xp.full_like(sizes, floor))))


def evaluated(objective: LeastSquares, point: Array, *, far: bool = False) -> State:
    """Return the state at a point, from one pass over the tensor; `far` as in `LeastSquares.value_and_gradient`."""
    return State(point, *objective.value_and_gradient(point, far=far))


def gauss_newton_step(
    objective: LeastSquares, whole: CurvatureLike, slope: Array, damping: float, n_products: int | None = None
) -> tuple[Array, float]:
    """Return the damped step of the unknowns that are free, and the decrease it promises."""
    curvature = objective.restricted(whole, slope)
    if isinstance(curvature, Restricted):
        slope = curvature.allowed(slope)
    equations = coupled(curvature, slope, damping)
    move = equations.outward(_solution(objective, equations.curvature, equations.slope, damping, n_products))
    return move, _promise(move, slope, damping * curvature.scales)


def _solution(
    objective: LeastSquares, curvature: CurvatureLike, slope: Array, damping: float, n_products: int | None
) -> Array:
    """Solve the damped equations: directly where they are few, else by conjugate gradients."""
    n = math.prod(slope.shape)
    if isinstance(curvature, Restricted) and curvature.tangent is not None:
        n = max(n, EXPLICIT[1] + 1)  # no matrix to write down
    move, explicit = None, EXPLICIT[0 if objective.entries is None else 1]
    if n > explicit:
        strict, least = n <= EXPLICIT[1] and n_products is None, objective.accuracy
        most = n_products or MOST_PRODUCTS
        move = conjugate_gradients(
            curvature, slope, damping, objective.total, strict=strict, least=least, n_products=most
        )
    if move is None and n > EXPLICIT[1]:
        return -curvature.preconditioner(damping)(slope)
    return solve_directly(curvature, slope, damping) if move is None else move


def _promise(move: Array, slope: Array, damping: Array) -> float:
    """Return the decrease of the objective that a damped step promises."""
    xp = array_namespace(move)
    return float(xp.sum(damping * move * move) - xp.sum(move * slope)) / 2


def refitted(problem: Problem, components: FactoredTensor, limits: Limits) -> Outcome:
    """Fit components under the constraints of a problem, which they need not satisfy yet."""
    if problem.constraints is not None or problem.shared:
        components = LeastSquares(problem).feasible(components)
    return minimize(problem, components, limits)
