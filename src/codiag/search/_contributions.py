r"""The unique contribution of a component: how much the objective would rise without it, once all others have followed.

A component may look indispensable and be superfluous. For example, a tensor with two components has a family of fits
with three; without one of the three, the two others must turn to replace it. The best weights for the others do not
show that, but a Gauss-Newton step of all their factors does.

With J the derivative of the model, component i is :math:`J x_i`, where :math:`x_i` holds its factors divided by the
order of the tensor. So its removal adds :math:`-J^\top J x_i` to the gradient, without a pass over the tensor. The
Gauss-Newton matrix of the others is a submatrix of that of all, so that the steps for all removals are computed at
once.

For components that are clearly significant, `removal_bounds` saves the steps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from codiag._arrays import (
    BLOCK,
    Array,
    adjoint,
    blocks,
    identity,
    squared_magnitudes,
    take,
    to_double,
    to_host,
)
from codiag.least_squares import (
    BRIEF,
    FIRST_DAMPING,
    ROUNDING,
    CurvatureOperator,
    GaussNewtonOperator,
    Objective,
    State,
    Steps,
    conjugate_gradients,
    inner_product,
    objective_of,
    unit_components,
)
from codiag.problem import Problem
from codiag.tensors import FactoredTensor


def objectives_without(problem: Problem, components: FactoredTensor, chosen: Sequence[int] | None = None) -> np.ndarray:
    """Return the objective that a fit would have without each component, as a damped step of the others predicts.

    It is infinite for components that are not among the `chosen` ones. If entries are missing, the Gauss-Newton matrix
    is that of the complete tensor times the share of observed entries, which has the same expectation if they are
    missing at random: the prediction is checked by refitting.
    """
    objective = objective_of(problem, components)
    state = Steps(objective).evaluated(
        objective.parametrization.vectorize(components, balanced=not problem.constraints)
    )
    multiple, ridge = objective.mean_information(components), objective.step_ridge
    curvature = GaussNewtonOperator(objective.parametrization, state.point, multiple=multiple, ridge=ridge or 0.0)
    chosen = list(range(components.rank)) if chosen is None else list(chosen)
    predicted, unit = np.full(components.rank, np.inf), identity(components.rank, state.point)
    is_manifold = any(rule is not None and rule.is_manifold for rule in problem.constraints or ())
    stacked = curvature.takes_stacks and not is_manifold
    width = math.prod(state.point.shape) if stacked else BLOCK
    for rows in blocks(len(chosen), width):
        batch = chosen[rows]
        alone = take(unit, batch, 0)
        alone = alone[:, None, :] if stacked else alone
        predicted[batch] = np.ravel(to_host(_predicted(objective, curvature, state, alone)))
    return predicted


def removal_bounds(problem: Problem, components: FactoredTensor) -> np.ndarray:
    r"""Return a lower bound of the rise of the objective without each component, at a minimum; zero if there is none.

    Let :math:`\tilde b_i` be the dual vectors of the columns of a factor, :math:`\tilde b_i^\top b_j = \delta_{ij}`. In
    a tensor that has these in two of its modes and the columns of component i in all others, every move of another
    component is zero, since it changes one mode only. So without component i at least the square of its inner product
    with the normalized tensor is left: :math:`w_i^2 / (\|\tilde b_i\|^2 \|\tilde c_i\|^2)`. Constraints and symmetry
    only leave the others less room.
    """
    unit = unit_components(components)
    bounds = unit_bounds([to_double(to_host(factor)) for factor in unit.factors])
    squares = squared_magnitudes(to_double(to_host(unit.weights)))
    share = objective_of(problem).mean_information(components)
    return np.asarray(share / 2 * squares * bounds)


def least_contributing(problem: Problem, components: FactoredTensor, candidates: Sequence[int]) -> int:
    """Return the candidate without which the objective would be least."""
    return int(np.argmin(objectives_without(problem, components, candidates)))


def unit_bounds(factors: Sequence[np.ndarray]) -> np.ndarray:
    """Return the share of its square that each of some unit components adds at least (..., k), from unit columns.

    It is the product of the two largest squared distances of a column from the span of the others of its mode.
    """
    shares = np.zeros((len(factors), *factors[0].shape[:-2], factors[0].shape[-1]))
    for share, factor in zip(shares, factors, strict=True):
        if factor.shape[-2] >= factor.shape[-1]:
            values, vectors = np.linalg.eigh(adjoint(factor) @ factor)
            share[...] = 1 / np.sum(squared_magnitudes(vectors) / np.maximum(values, ROUNDING)[..., None, :], axis=-1)
    return np.asarray(np.prod(np.sort(shares, axis=0)[-2:], axis=0))


def _predicted(objective: Objective, curvature: CurvatureOperator, state: State, alone: Array) -> Array:
    """Return the objectives without some components, which rows of the identity select: (n, 1, k), or (1, k)."""
    order, others = objective.tensor.order, 1 - alone
    taken = state.point * alone / order
    image = curvature.product(taken)
    gradient = (state.gradient - image) * others
    without = state.objective - inner_product(taken, 0 * taken + state.gradient) + inner_product(taken, image) / 2
    restricted = objective.restricted(curvature, gradient, has_ridges=objective.step_ridge is not None)
    gradient = restricted.project(gradient)
    precondition, shift = restricted.preconditioner(FIRST_DAMPING), FIRST_DAMPING * curvature.scales
    move = conjugate_gradients(
        lambda move: restricted.product(move) * others + shift * move,
        lambda move: precondition(move) * others,
        -gradient,
        inner_product,
        scale=objective.squared_norm,
        max_products=BRIEF.max_products,
        accuracy=BRIEF.tol,
    ).move
    return without + inner_product(move, gradient) + inner_product(move, restricted.product(move)) / 2
