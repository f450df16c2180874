r"""Least squares over orthonormal factors, for complete tensors.

The best weights are :math:`w_i = T(a_i, b_i, c_i)`, so that least squares maximizes :math:`\sum_i w_i^2`. This is
convex in one factor given the others, and the polar factor of its gradient never lowers it. If modes share a factor it
is not convex; then a multiple of the factor, large enough to make it convex, is added to the gradient.
"""

from __future__ import annotations

from collections.abc import Sequence

from codiag._arrays import Array, array_namespace, to_namespace
from codiag.least_squares._components import unit_columns
from codiag.least_squares._gauss_newton import ROUNDING, Limits, OptimizeResult
from codiag.least_squares._least_squares import LeastSquares
from codiag.problem import Problem
from codiag.tensors import FactoredTensor


def rotate(problem: Problem, start: FactoredTensor, limits: Limits) -> OptimizeResult:
    """Go from a start to orthonormal factors nearest to a complete tensor, by polar factors of slopes in turn.

    Converged where a sweep changes no factor by more than the tolerance, or two gain nothing that noise would show.
    """
    objective, groups = LeastSquares(problem), problem.groups
    variance, total = objective.noise_variance, objective.squared_norm
    factors = [polar(unit_columns(start.factors[group[0]])[0]) for group in groups]
    current = _slope(problem, factors, 0)
    height, shift, idle, n_iter = _height(current), 0.0, 0, 0
    change = 1.0
    while n_iter < limits.max_iter and change >= limits.tol and idle < 2:
        n_iter += 1
        turned = _sweep(problem, factors, current, shift)
        image = _slope(problem, turned, 0)
        reached = _height(image)
        if len(groups) < problem.tensor.order and reached < height * (1 - ROUNDING):
            shift = max(2 * shift, height / problem.rank)
            continue
        change = max(_largest(now - then) for now, then in zip(turned, factors, strict=True))
        left = max(total - reached, 0.0)
        negligible = left > ROUNDING * total and reached - height < limits.gain * variance * left
        idle = idle + 1 if negligible else 0
        factors, current, height = turned, image, reached
        if limits.callback is not None and limits.callback(_components(problem, factors, current[1]), left / 2):
            break
    components = _components(problem, factors, current[1])
    return OptimizeResult(components, objective.distance(components) / 2, n_iter, change < limits.tol or idle >= 2)


def polar(matrix: Array) -> Array:
    """Return the matrix with orthonormal columns nearest to this one."""
    left, _, right = array_namespace(matrix).linalg.svd(matrix, full_matrices=False)
    return left @ right


def _sweep(problem: Problem, factors: Sequence[Array], first: tuple[Array, Array], shift: float) -> list[Array]:
    found = list(factors)
    for place in range(len(found)):
        slope, weights = _slope(problem, found, place) if place > 0 else first
        found[place] = polar(slope * weights + shift * found[place])
    return found


def _slope(problem: Problem, factors: Sequence[Array], place: int) -> tuple[Array, Array]:
    """Return the derivative of the weights by a factor, and the weights."""
    xp, tensor = array_namespace(factors[0]), problem.tensor
    known = [to_namespace(factor, tensor.reference) for factor in _of_modes(problem, factors)]
    group = problem.groups[place]
    parts = [tensor.mttkrp(known, mode) for mode in (group[:1] if tensor.symmetric else group)]
    weights = xp.sum(to_namespace(parts[0], factors[0]) * factors[place], axis=0)
    return to_namespace(sum(parts[1:], parts[0]), factors[0]), weights


def _of_modes(problem: Problem, factors: Sequence[Array]) -> list[Array]:
    of_mode = {mode: factor for group, factor in zip(problem.groups, factors, strict=True) for mode in group}
    return [of_mode[mode] for mode in range(problem.tensor.order)]


def _components(problem: Problem, factors: Sequence[Array], weights: Array) -> FactoredTensor:
    return FactoredTensor(weights, _of_modes(problem, factors), symmetric=problem.symmetric is True)


def _height(current: tuple[Array, Array]) -> float:
    return float(array_namespace(current[1]).sum(current[1] ** 2))


def _largest(array: Array) -> float:
    xp = array_namespace(array)
    return float(xp.max(xp.abs(array)))
