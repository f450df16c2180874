"""A call of one of TensorLy's functions, its fit, and the fit in TensorLy's form."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from codiag._arrays import Array, asarray_like, to_host
from codiag._checks import as_number_array
from codiag.constraints import Constraint, Fixed, NonNegative, Ridge
from codiag.drop_in._alternating import (
    like_start,
    start_of,
    sweep_from,
    warning_about_iterations,
    with_fixed_modes,
)
from codiag.methods import NLS, Auto, Method
from codiag.problem import Problem
from codiag.result import Factorization, solve, warning_message
from codiag.tensors import as_tensor, khatri_rao


@dataclass(frozen=True, eq=False)
class Request:
    """The arguments of a call, checked, and the constraints of some modes, `rules`.

    Factors of the modes in `nonnegative` have no negative entries. Half of `ridge` times the sum of squares of the
    other factors is added to the objective. `mask` has the weights of the entries, None if all are observed. `is_share`
    says that the rank was given as a share of the entries.
    """

    tensor: Any
    rank: int
    init: Any
    fixed: list[int]
    rng: Any
    n_iter_max: int
    tol: float | None
    nonnegative: frozenset[int] = frozenset()
    ridge: float = 0.0
    mask: np.ndarray | None = None
    n_sparse: int = 0
    svd_mask_repeats: int = 5
    is_verbose: bool = False
    is_share: bool = False
    callback: Callable[[Any, float], Any] | None = None
    rules: Mapping[int, Constraint] = field(default_factory=dict)

    @property
    def order(self) -> int:
        return len(np.shape(self.tensor))

    @property
    def plain(self) -> bool:
        """Whether the factors are unconstrained and all entries count."""
        return not self.nonnegative and not self.ridge and self.mask is None and not self.rules

    def problem(self, fixed: dict[int, Array] | None = None, *, symmetric: bool = False) -> Problem:
        """Return the problem, with the factors of some modes fixed."""
        if self.plain and not fixed:
            return Problem(self.tensor, self.rank, symmetric=symmetric)
        constraints = [self._constraint(mode, fixed or {}) for mode in range(self.order)]
        return Problem(self.tensor, self.rank, constraints=constraints, mask=self.mask, symmetric=False)

    def _constraint(self, mode: int, fixed: dict[int, Array]) -> Constraint | None:
        if mode in fixed:
            return Fixed(fixed[mode])
        if mode in self.nonnegative:
            return NonNegative()
        if self.rules:
            return self.rules.get(mode)
        return Ridge(self.ridge) if self.ridge else None

    def finished(self, fit: Factorization) -> Any:
        """Return components in TensorLy's form, with a sparse tensor if `n_sparse` is positive."""
        return with_sparse(fit, self.tensor, self.n_sparse, self.mask) if self.n_sparse else as_cp(fit)


def answer(request: Request, *, normalize: bool) -> tuple[Any, list[float], str | None]:
    """Fit components; return them in TensorLy's form, the relative errors after every step, and a warning, if any."""
    errors: list[float] = []

    def callback(components: Any, error: float) -> bool:
        errors.append(error)
        if request.is_verbose:
            print(f"iteration {len(errors)}, relative error: {error}")  # noqa: T201
        if request.callback is not None:
            fit = Factorization(components.weights, tuple(components.factors), error, False)
            if request.callback(request.finished(fit), error) is True:
                return True
        # Shares ask for hundreds of components, far more than the data determines: one round of steps is enough.
        return request.is_share and len(errors) >= request.n_iter_max

    options = {"tol": request.tol or 1e-16, "max_iter": request.n_iter_max, "callback": callback}
    fit, message = _fitted(request, options) if request.n_iter_max else (_unfitted(request), None)
    errors.append(fit.relative_error)
    if request.is_verbose and request.n_iter_max:
        ending = "converged" if fit.converged else "did not converge"
        print(f"{ending} after {len(errors) - 1} iterations, relative error: {fit.relative_error}")  # noqa: T201
    unit = with_unit_columns(fit) if normalize else with_unit_weights(fit, balanced=request.ridge > 0)
    return request.finished(unit), errors, message


def _unfitted(request: Request) -> Factorization:
    """Return the start; of a matrix, its leading singular vectors, which are start and fit."""
    if request.order == 2:
        return _of_matrix(request.tensor, request.rank, request.fixed)
    problem = request.problem(symmetric=False)
    return start_of(problem, request.init, request.rng, request.mask, request.svd_mask_repeats)


def _fitted(request: Request, options: dict[str, Any]) -> tuple[Factorization, str | None]:
    """Fit components by the method for this kind of call; return also a warning, if any."""
    init, max_iter = request.init, request.n_iter_max
    if request.order == 2 and not request.plain:
        raise ValueError(
            "tensor must be of order three or more for mask, l2_reg and non-negative factors; got a matrix"
        )
    if request.order == 2:
        return _of_matrix(request.tensor, request.rank, request.fixed), None
    if request.fixed:
        fit = with_fixed_modes(request.problem, init, request.fixed, options)
        return fit, warning_about_iterations(fit, max_iter)
    if init is None:
        raise TypeError("init must be 'svd', 'random', a CPTensor or a pair (weights, factors); got None")
    if isinstance(init, str):
        problem = request.problem()
        method = _method(init, options, has_missing=problem.entries is not None)
        fit = solve(problem, method, request.rng)
        return fit, warning_message(fit, method)
    problem = request.problem(symmetric=False)  # the modes of a given start may differ
    swept, stopped = sweep_from(problem, init, options["callback"])
    signed = not request.nonnegative and not any(rule.is_cone for rule in request.rules.values())
    if max_iter == 1 or stopped:
        return like_start(swept, init, signed=signed), warning_about_iterations(swept, 1)
    method = NLS(init=swept, max_replacements=0, **(options | {"max_iter": max_iter - 1}))
    fit = solve(problem, method, request.rng)
    return like_start(fit, init, signed=signed), warning_message(fit, method)


def _method(init: str, options: dict[str, Any], *, has_missing: bool) -> Method:
    if init == "svd" or (init == "random" and has_missing):  # a single random start may diverge
        return Auto(**options)
    if init == "random":
        return NLS(**options)
    raise ValueError(f"init must be 'svd', 'random', a CPTensor or a pair (weights, factors); got {init!r}")


def _of_matrix(matrix: Any, rank: int, fixed: list[int]) -> Factorization:
    """Return the leading singular vectors of a matrix, the best fit."""
    if fixed:
        raise ValueError(f"fixed_modes must be empty for a matrix; got {fixed}. Use numpy.linalg.lstsq")
    entries = as_number_array(matrix, "tensor")
    xp = array_namespace(entries)
    if not bool(xp.all(xp.isfinite(entries))):
        raise ValueError("tensor must be finite; it contains NaN or infinite entries")
    if rank > min(entries.shape):
        raise ValueError(f"rank must be at most {min(entries.shape)}, the smaller side of the matrix; got {rank}")
    left, sizes, right = xp.linalg.svd(entries, full_matrices=False)
    norm = float(xp.linalg.vector_norm(sizes))
    error = float(xp.linalg.vector_norm(sizes[rank:])) / norm if norm > 0 else 0.0
    factors = (left[:, :rank], xp.matrix_transpose(right)[:, :rank])
    return Factorization(sizes[:rank], factors, error, True, _norm=norm)


def with_unit_weights(fit: Factorization, *, balanced: bool = False) -> Factorization:
    """Return the fit with its weights in the first factor, as in TensorLy, or, if `balanced`, evenly in all factors."""
    if bool(array_namespace(fit.weights).all(fit.weights == 1)):
        return fit
    factors = list(fit.factors)
    if balanced:
        xp = array_namespace(fit.weights)
        share = xp.abs(fit.weights) ** (1 / len(factors))
        factors = [factor * share for factor in factors]
        factors[0] = xp.where(fit.weights < 0, -factors[0], factors[0])
    else:
        factors[0] = factors[0] * fit.weights
    return replace(fit, weights=fit.weights * 0 + 1, factors=tuple(factors))


def with_unit_columns(fit: Factorization) -> Factorization:
    """Return the fit with unit columns and weights, also if some factors came from a start."""
    xp = array_namespace(fit.weights)
    weights, factors = fit.weights, []
    for factor in fit.factors:
        length = xp.linalg.vector_norm(factor, axis=0)
        weights = weights * length
        factors.append(factor / xp.where(length > 0, length, xp.ones_like(length)))
    return replace(fit, weights=weights, factors=tuple(factors))


def with_sparse(fit: Factorization, tensor: Any, count: int, mask: np.ndarray | None) -> tuple[Any, Array]:
    """Return components, and an array of the `count` largest residuals of observed entries, zero elsewhere."""
    plain = len(np.shape(tensor)) == 2 or mask is not None
    entries = tensor if plain else as_tensor(tensor, False).to_dense()
    first, *others, last = fit.factors
    xp = array_namespace(last)
    model = khatri_rao([first * fit.weights, *others]) @ xp.matrix_transpose(last)
    residuals = to_host(entries) - to_host(xp.reshape(model, np.shape(tensor)))
    if mask is not None:
        residuals = np.where(mask > 0, residuals, 0)
    sparse = np.zeros(residuals.size, dtype=residuals.dtype)
    largest = np.argpartition(-np.abs(residuals), count - 1, axis=None)[:count]
    sparse[largest] = residuals.ravel()[largest]
    return as_cp(fit), asarray_like(sparse.reshape(residuals.shape), last)


def as_cp(fit: Factorization) -> Any:
    """Return components in TensorLy's form, with a copy of every factor, since modes may share one."""
    try:
        from tensorly.cp_tensor import CPTensor
    except ModuleNotFoundError:
        return fit
    return CPTensor((fit.weights, [array_namespace(factor).asarray(factor, copy=True) for factor in fit.factors]))
