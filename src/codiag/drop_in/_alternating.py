"""Alternating least squares from given factors, with fixed modes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device

from codiag._arrays import Array, asarray_like, to_double, to_host
from codiag._checks import as_generator, as_number_array
from codiag.least_squares import LeastSquares, with_best_weights
from codiag.methods import ALS, check_init, start_from
from codiag.metrics import match_components
from codiag.problem import Problem
from codiag.result import Factorization
from codiag.tensors import DenseTensor, FactoredTensor, components_of

MODERATE = (1e-30, 1e30)
"""Sizes of entries of factors whose products of a few modes are numbers in double precision."""

Callback = Callable[[Any, float], bool]
"""Called with components and their relative error after every sweep; returns whether to stop."""


def sweep_from(problem: Problem, init: Any, callback: Callback) -> tuple[Factorization, bool]:
    """Solve once for every mode in turn, which improves a poor start more than the first Gauss-Newton step.

    Return the fit, and whether the callback ends the iteration there.
    """
    check_init(init)
    objective = LeastSquares(problem)
    norm = _checked_norm(objective)
    start = start_from(_moderate(init), problem, np.random.default_rng(0)).components
    if problem.required_features:
        start = objective.feasible(start)
    swept = objective.sweep([start.factors[0] * start.weights, *start.factors[1:]], unit=False)
    error = objective.relative_error(swept)
    return Factorization(swept.weights, swept.factors, error, False, _norm=norm), callback(swept, error)


def _moderate(init: Any) -> Any:
    """Return a start with factors of moderate size: the first sweep solves for the scale again, which may overflow."""
    components = components_of(init)
    if components is None:
        return init
    factors = [np.asarray(to_host(factor)) for factor in components[1]]
    sizes = [float(np.max(np.abs(factor), initial=0)) for factor in factors]
    if all(MODERATE[0] < size < MODERATE[1] for size in sizes):
        return init
    weights = None if components[0] is None else np.sign(to_host(components[0]))
    return weights, [factor / size if size > 0 else factor for factor, size in zip(factors, sizes, strict=True)]


def _checked_norm(objective: LeastSquares) -> float:
    norm = math.sqrt(objective.squared_norm)
    if not 0 < norm < math.inf:
        raise ValueError(f"tensor must be finite, and not all zero; the norm of {objective.tensor!r} is {norm:g}")
    return norm


def warning_about_iterations(fit: Factorization, max_iter: int) -> str | None:
    """Return a warning if alternating least squares has not converged."""
    if fit.converged:
        return None
    return (
        f"alternating least squares did not converge in {max_iter} sweeps on a tensor of shape {fit.shape} with "
        f"rank {fit.rank}; the relative error is {fit.relative_error:.3g}. A larger n_iter_max may be enough"
    )


def like_start(fit: Factorization, init: Any, *, signed: bool) -> Factorization:
    """Return components in the order of a start and, if `signed`, with its signs."""
    matching = match_components(fit, init)
    order, signs = matching.permutation.tolist(), matching.signs.copy()
    signs[-1] *= np.conj(np.prod(signs, axis=0))  # so that the product of the signs of a component is one
    factors = [columns(factor, order) for factor in fit.factors]
    if signed:
        factors = [factor * asarray_like(sign, factor) for factor, sign in zip(factors, signs, strict=True)]
    return replace(fit, weights=columns(fit.weights[None, :], order)[0, :], factors=tuple(factors))


def columns(matrix: Array, order: list[int]) -> Array:
    """Return the columns of a matrix in this order."""
    xp = array_namespace(matrix)
    return xp.take(matrix, xp.asarray(order, device=device(matrix)), axis=1)


def with_fixed_modes(
    posed: Callable[[dict[int, Array]], Problem], init: Any, fixed: list[int], options: dict[str, Any]
) -> Factorization:
    """Fit the factors of the other modes, from a start with those of the fixed ones.

    `posed` returns the problem with given factors fixed.
    """
    tensor, rank = posed({}).tensor, posed({}).rank
    free = [mode for mode in range(tensor.order) if mode not in fixed]
    if not free:
        raise ValueError(f"fixed_modes must leave a mode to fit; got {fixed} for a tensor of order {tensor.order}")
    factors = _start_of_fixed(init, tensor.reference, rank, tensor.order, free[-1])
    for mode, (factor, size) in enumerate(zip(factors, tensor.shape, strict=True)):
        if factor.shape[0] != size and (mode not in free or len(free) > 1):
            raise ValueError(f"init must have {size} rows in mode {mode}, as the tensor has; got {factor.shape[0]}")
    problem = posed({mode: factors[mode] for mode in fixed})
    objective = LeastSquares(problem)
    norm = _checked_norm(objective)
    start = [_fitting_rows(factor, size) for factor, size in zip(factors, tensor.shape, strict=True)]
    estimate = ALS(init=(None, start), **options).fit(problem, np.random.default_rng(0))
    error = objective.relative_error(estimate.components)
    converged = estimate.converged or len(free) == 1  # with one free mode, the first sweep is linear least squares
    return Factorization(estimate.components.weights, estimate.components.factors, error, converged, _norm=norm)


def _fitting_rows(factor: Array, size: int) -> Array:
    """Return a factor, or one of ones if its number of rows differs from the mode, which is then solved for first."""
    xp = array_namespace(factor)
    if factor.shape[0] == size:
        return factor
    return xp.ones((size, factor.shape[1]), dtype=factor.dtype, device=device(factor))


def _start_of_fixed(init: Any, reference: Array, rank: int, order: int, free: int) -> list[Array]:
    """Return the factors of a start, with its weights in the factor of a mode that is not fixed."""
    components = None if isinstance(init, str) else components_of(init)
    if components is None:
        raise ValueError(f"init must be a CPTensor or a pair (weights, factors) if modes are fixed; got {init!r}")
    weights, given = components
    arrays = [to_host(as_number_array(factor, "init")) for factor in given]
    if len(arrays) != order or any(array.ndim != 2 or array.shape[1] != rank for array in arrays):
        shapes = [array.shape for array in arrays]
        raise ValueError(f"init must have {order} factors with {rank} columns; got shapes {shapes}")
    if weights is not None:
        arrays[free] = arrays[free] * to_host(as_number_array(weights, "init"))
    return [asarray_like(array, reference) for array in arrays]


def start_of(problem: Problem, init: Any, rng: Any, mask: np.ndarray | None, n_fills: int) -> Factorization:
    """Return the start of a problem: a given one, random columns, or leading singular vectors of every unfolding."""
    objective = LeastSquares(problem)
    norm = math.sqrt(objective.squared_norm)
    if not 0 < norm < math.inf:
        raise ValueError(f"tensor must be finite, and not all zero; the norm of {objective.tensor!r} is {norm:g}")
    rng = as_generator(rng, "random_state", apart=True)
    if isinstance(init, str) and init == "svd":
        components = _leading_vectors(problem, rng, mask, n_fills)
    else:
        check_init(init, ("svd", "random"))
        components = start_from(init, problem, rng).components
    if problem.required_features:
        components = objective.feasible(components)
    error = objective.relative_error(components)
    return Factorization(components.weights, tuple(components.factors), error, False, _norm=norm)


def _leading_vectors(
    problem: Problem, rng: np.random.Generator, mask: np.ndarray | None, n_fills: int
) -> FactoredTensor:
    """Return leading singular vectors, and random columns if a mode has fewer; weights are those that fit best."""
    entries, rank = to_double(to_host(problem.complete().tensor.to_dense())), problem.rank
    present = np.ones(entries.shape, dtype=bool) if mask is None else mask > 0
    filled, factors = np.where(present, entries, 0.0), []
    for mode, size in enumerate(entries.shape):
        unfolded, known = (np.moveaxis(array, mode, 0).reshape(size, -1) for array in (filled, present))
        for _ in range(0 if known.all() else n_fills):
            left, sizes, right = np.linalg.svd(unfolded, full_matrices=False)
            unfolded = np.where(known, unfolded, (left[:, :rank] * sizes[:rank]) @ right[:rank])
        vectors = np.linalg.svd(unfolded, full_matrices=False)[0][:, :rank]
        others = rng.standard_normal((size, rank - vectors.shape[1]))
        factors.append(np.hstack([vectors, others / np.maximum(np.linalg.norm(others, axis=0), 1e-300)]))
        if mode == 0:
            start = np.moveaxis(unfolded.reshape(size, *entries.shape[1:]), 0, mode)
    best = with_best_weights(DenseTensor(start, symmetric=False), factors)
    reference = problem.tensor.reference
    return FactoredTensor(
        asarray_like(to_host(best.weights), reference),
        [asarray_like(to_host(factor), reference) for factor in best.factors],
    )
