r"""What a fit would lose with a component, once all others have followed.

A component may look indispensable and be superfluous: of a tensor with two components in the ranges of two vectors a
mode there is a whole family of fits with three. Without one of the three, the two others must turn to take over, which
the best weights for them do not tell, but a Gauss-Newton step does.

With J the derivative of the model, :math:`t_i = J x_i`, where :math:`x_i` holds the factors of component i over the
order of the tensor: what its removal adds to the gradient is :math:`-J^\top J x_i`, without a pass over the tensor. The
Gauss-Newton matrix of the others is a part of that of all, so that the steps for all removals are sought at once.

Whether more components were asked for than the data hold.

Those that are left to fit noise are each worth about as much as its largest rank-one term, :math:`\sigma \sum_m
\sqrt{d_m}` squared, and no start or swap would make more of them. Weak components lie anywhere: only where a gap parts
those that are worth no more than noise from those that are worth far more, the first are superfluous.

Fitted all at once, superfluous components overlap, cancel each other and creep. Added one at a time to those that stand
out, each as the largest term of what is left, they fit noise about as well, to a per cent, in a fraction of the time.

How the components of a fit stand against what it leaves: the terms that might take the place of some.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from codiag._arrays import Array, array_namespace, identity, pick, to_host
from codiag.least_squares import (
    RESIDUAL_ROUNDING,
    Curvature,
    LeastSquares,
    Limits,
    Outcome,
    Restricted,
    State,
    conjugate_gradients,
    distinct_components,
    evaluated,
    hadamard_gram,
    is_noise,
    largest_square,
    minimize,
    unit_components,
)
from codiag.problem import Problem, most_components
from codiag.tensors import FactoredTensor, Tensor

DAMPING = 1e-3
"""Damping of the steps: the others are to follow as far as a step is to be trusted."""

REMOVAL_PRODUCTS, EXACT = 12, 1e-4
"""Conjugate gradients for each component at most, and the relative error at which they end: what is left of a component
is a small difference of large numbers."""

AT_ONCE = 2**17
"""Unknowns in all steps that are sought at once: what fits into a cache."""


def objectives_without(problem: Problem, components: FactoredTensor, places: Sequence[int] | None = None) -> np.ndarray:
    """Return the objective that a fit would have without each component, as a damped step of the others predicts it.

    Where only some components are in question, it is infinite without others.
    """
    whole = LeastSquares(problem, components)
    state = evaluated(whole, whole.layout.pack(components, balanced=not problem.constraints))
    curvature = whole.curvature(state.point)
    asked = list(range(components.rank)) if places is None else list(places)
    found = np.full(components.rank, np.inf)
    if not isinstance(curvature, Curvature) or problem.constraints is not None:
        found[asked] = [_without(whole, state, components, place) for place in asked]
        return found
    alone, count = identity(components.rank, state.point), max(1, AT_ONCE // math.prod(state.point.shape))
    for first in range(0, len(asked), count):
        some = asked[first : first + count]
        found[some] = _all_without(curvature, state, pick(alone, some, 0)[:, None, :], whole.total)
    return found


def _all_without(curvature: Curvature, state: State, alone: Array, total: float) -> np.ndarray:
    """Return the objectives without some components, which rows of the identity (n, 1, k) tell."""
    order = len(curvature.layout.shape)
    taken = state.point[None, :, :] * alone / order
    images = curvature.product(taken)
    slopes = (state.gradient[None, :, :] - images) * (1 - alone)
    moves = _moves(curvature, slopes, alone, total)
    without = state.objective - _dots(taken, state.gradient[None, :, :]) + _dots(taken, images) / 2
    return to_host(without + _dots(moves, slopes) + _dots(moves, curvature.product(moves)) / 2)


def _moves(curvature: Curvature, slopes: Array, alone: Array, total: float) -> Array:
    """Return damped steps of the others for each slope, by as many conjugate gradients side by side."""
    xp, kept, damped = array_namespace(slopes), 1 - alone, DAMPING * curvature.scales
    precondition = _Preconditioner(curvature, alone)
    residual, moves = -slopes, xp.zeros_like(slopes)
    direction = scaled = precondition(residual)
    size = first = _dots(residual, scaled)
    target = first * xp.clip(first / total, 1e-300, EXACT**2)
    for _ in range(REMOVAL_PRODUCTS):
        image = curvature.product(direction) * kept + damped * direction
        height = _dots(direction, image)
        going = (size > target) & (height > 0)
        if not bool(xp.any(going)):
            break
        along = xp.where(going, size / xp.where(going, height, xp.ones_like(height)), xp.zeros_like(size))
        moves, residual = moves + along[:, None, None] * direction, residual - along[:, None, None] * image
        scaled = precondition(residual)
        before, size = size, _dots(residual, scaled)
        share = xp.where(going, size / xp.where(going, before, xp.ones_like(before)), xp.zeros_like(size))
        direction = scaled + share[:, None, None] * direction
    return moves


class _Preconditioner:
    """The damped first term of the matrix, inverted without a row and a column: the inverse of all, less a product."""

    def __init__(self, curvature: Curvature, alone: Array) -> None:
        xp = array_namespace(alone)
        self._layout, self._alone, self._inverses = curvature.layout, alone, curvature.inverses(DAMPING)
        self._rows = [
            alone @ inverse / xp.sum(alone * xp.linalg.diagonal(inverse), axis=-1, keepdims=True)
            for inverse in self._inverses
        ]

    def __call__(self, moves: Array) -> Array:
        xp, parts = array_namespace(moves), []
        for part, inverse, row in zip(self._layout.factors(moves), self._inverses, self._rows, strict=True):
            image = part @ inverse
            parts.append(image - xp.sum(image * self._alone, axis=-1, keepdims=True) * row)
        return parts[0] if len(parts) == 1 else xp.concat(parts, axis=-2)


def _dots(left: Array, right: Array) -> Array:
    """Return the inner products of matrices, one for each in two stacks."""
    return array_namespace(left).sum(left * right, axis=(-2, -1))


def _without(whole: LeastSquares, state: State, components: FactoredTensor, place: int) -> float:
    """Return the objective without one component, under any constraints and with whatever was observed."""
    xp, curvature = array_namespace(state.point), whole.curvature(state.point)
    move = state.point * identity(components.rank, state.point)[place, :] / whole.tensor.order
    image = curvature.product(move)
    without = state.objective - float(xp.sum(move * state.gradient)) + float(xp.sum(move * image)) / 2
    others = [other for other in range(components.rank) if other != place]
    left = LeastSquares(replace(whole.problem, rank=components.rank - 1), components.columns(others))
    return without - _gain(left, pick(state.point, others, 1), pick(state.gradient - image, others, 1))


def _gain(objective: LeastSquares, point: Array, slope: Array) -> float:
    """Return by how much a damped step lowers the objective, as far as the Gauss-Newton matrix tells."""
    xp = array_namespace(point)
    curvature = objective.restricted(objective.curvature(point), slope)
    slope = curvature.allowed(slope) if isinstance(curvature, Restricted) else slope
    move = conjugate_gradients(curvature, slope, DAMPING, objective.total, most=EXACT, n_products=REMOVAL_PRODUCTS)
    if move is None:
        return 0.0
    return -float(xp.sum(move * slope)) - float(xp.sum(move * curvature.product(move))) / 2


BEYOND_MEAN = 3.7
"""Standard deviations of an entry by which the largest term of noise exceeds its mean in one of a thousand cases."""

GAP = 100.0
"""How many times more than a term of noise all other components must be worth: ten times its weight, so that no start
can have missed one of them."""

OUTSTANDING = 30.0
"""The same where the others are known to leave nothing but noise: no swap is in question then."""

REGROWTH = Limits(max_sweeps=100, tol=1e-6, gain=0.1, rough=True)
"""For all components so far, after each that joins them or leaves."""


def has_superfluous(problem: Problem, components: FactoredTensor, squared_distance: float) -> bool:
    """Tell whether some components fit noise only, where all that is left of a tensor is noise.

    Parameters
    ----------
    problem : Problem
    components : FactoredTensor
        Of the tensor of the problem, or of a core of it.
    squared_distance : float
        From the tensor of the problem.
    """
    term = _largest_term(problem, squared_distance)
    if components.rank == 1 or not term > 0:
        return False
    worth = removal_costs(components)
    return bool(worth.min() <= term and not np.any((worth > term) & (worth < GAP * term)))


def regrown(problem: Problem, components: FactoredTensor, squared_distance: float) -> Outcome | None:
    """Fit the components that stand out, and in place of the others the largest terms of the noise that these leave.

    None where all components stand out, or none does, or where those that do leave more than noise.
    """
    outstanding = removal_costs(components) > OUTSTANDING * _largest_term(problem, squared_distance)
    exact = squared_distance < RESIDUAL_ROUNDING * problem.tensor.squared_norm()
    if exact or not 0 < np.count_nonzero(outstanding) < components.rank:
        return None
    fewer = replace(problem, rank=int(np.count_nonzero(outstanding)))
    found = minimize(fewer, components.columns(np.flatnonzero(outstanding).tolist()), REGROWTH)
    objective = LeastSquares(fewer, found.components)
    residual, term = objective.left_over(found.components), _largest_term(fewer, 2 * found.objective)
    newcomer = distinct_components(residual, 1)[0]
    if float(newcomer.weights[0]) ** 2 > term or not is_noise(objective, residual):
        return None
    if removal_costs(found.components).min() < OUTSTANDING * term:
        return None
    for rank in range(fewer.rank + 1, problem.rank + 1):
        larger = replace(problem, rank=rank)
        found = minimize(larger, found.components.joined(newcomer), REGROWTH)
        newcomer = distinct_components(LeastSquares(larger, found.components).left_over(found.components), 1)[0]
    return found


def _largest_term(problem: Problem, squared_distance: float) -> float:
    """Return what the largest rank-one term of noise may be worth, zero where it may be all noise of so few entries."""
    variance = LeastSquares(problem).noise_variance * max(squared_distance, 0.0) / 2
    variances = (sum(math.sqrt(size) for size in problem.tensor.shape) + BEYOND_MEAN) ** 2
    return variance * variances if variances < problem.n_entries else 0.0


def removal_costs(components: FactoredTensor) -> np.ndarray:
    """Return how much the squared distance grows without a component, the weights of the others fitted anew."""
    unit = unit_components(components)
    inverse: np.ndarray = np.linalg.pinv(to_host(hadamard_gram(unit.factors)), hermitian=True)
    return np.asarray(to_host(unit.weights) ** 2 / np.maximum(np.diag(inverse), 1.0))


if TYPE_CHECKING:
    from codiag.least_squares import Outcome

NEWCOMERS = 3
"""Terms of the residual that are tried: where all are near the noise, the largest may be it."""

ALIKE = 0.5
"""Product of cosines above which two components may do what one could."""


class Standing(NamedTuple):
    """Whether the residual is noise, its strongest terms, and the worth of each component relative to the first.

    Without terms or worths where no component can be worth as little as a term.
    """

    noise: bool
    newcomers: Sequence[FactoredTensor] = ()
    worths: Sequence[float] = ()

    def n_worth_less(self, factor: float) -> int:
        """Return how many components are worth less than a factor times the strongest term of the residual."""
        return sum(worth < factor for worth in self.worths)


def is_overcomplete(problem: Problem) -> bool:
    """Tell whether there are more components than any unfolding of the tensor has singular values."""
    shape, order = problem.tensor.shape, problem.tensor.order
    if problem.symmetric is True:
        return problem.rank > math.comb(shape[0] + order // 2 - 1, order // 2)
    total = math.prod(shape)
    parts = (math.prod(some) for count in range(1, order // 2 + 1) for some in combinations(shape, count))
    return problem.rank > max(min(part, total // part) for part in parts)


def may_grow(problem: Problem) -> bool:
    """Tell whether the shape and the constraints leave room for one component more."""
    constraints = problem.constraints or ()
    return 1 < problem.rank < most_components(problem.tensor.shape) and not any(
        one is not None and (one.known or one.curved or not one.steps) for one in constraints
    )


def standing(problem: Problem, found: Outcome) -> Standing:
    """Return how components stand, as far as it was not found out before; cheap questions come first."""
    if found.standing is not None:
        return found.standing
    objective = LeastSquares(problem, found.components)
    residual = objective.left_over(found.components)
    noise = is_noise(objective, residual)
    if found.objective < RESIDUAL_ROUNDING * objective.total or not may_grow(problem):
        return Standing(noise)
    if noise and not is_overcomplete(problem) and not _may_pay(found.components, residual):
        return Standing(noise)
    newcomers = distinct_components(residual, NEWCOMERS)
    term = max(float(newcomers[0].weights[0]) ** 2, 1e-300)
    worth = 2 * (objectives_without(problem, found.components) - found.objective) if noise else np.empty(0)
    return Standing(noise, newcomers, (worth / term).tolist())


def _may_pay(components: FactoredTensor, residual: Tensor) -> bool:
    """Tell, at the price of one small product, whether the residual can hold as much as some component is worth."""
    components = unit_components(components)
    gram = to_host(hadamard_gram(components.factors))
    likeness = abs(gram) * (1 - np.eye(components.rank))
    return float(likeness.max()) >= ALIKE or float(removal_costs(components).min()) / 2 <= largest_square(residual)
