"""What a call asks for, and its fit."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import array_namespace

from codiag._arrays import Array
from codiag._checks import as_real_array
from codiag.constraints import Constraint, Fixed, NonNegative, Ridge
from codiag.drop_in._complex_fit import Sweeps, fit_complex, is_complex
from codiag.drop_in._given_starts import complaint_about_sweeps, like_start, sweep_from, with_fixed_modes
from codiag.drop_in._results import as_cp, with_sparse, with_unit_columns, with_unit_weights
from codiag.methods import NLS, Auto, Method
from codiag.problem import Problem
from codiag.result import Factorization, complaint_about, solve


@dataclass(frozen=True, eq=False)
class Request:
    """What a call asks for, with its arguments checked.

    `nonnegative` modes have factors without negative entries, the strength `ridge` multiplies half the sum of squares
    of the others, and `mask` says which entries were observed.
    """

    tensor: Any
    rank: int
    init: Any
    fixed: list[int]
    seed: Any
    n_iter_max: int
    tol: float | None
    nonnegative: frozenset[int] = frozenset()
    ridge: float = 0.0
    mask: np.ndarray | None = None
    n_sparse: int = 0
    callback: Callable[[Any, float], Any] | None = None

    @property
    def order(self) -> int:
        return len(np.shape(self.tensor))

    @property
    def plain(self) -> bool:
        """Whether nothing is asked for but a fit to all entries."""
        return not self.nonnegative and not self.ridge and self.mask is None

    def problem(self, fixed: dict[int, Array] | None = None, *, symmetric: bool | None = None) -> Problem:
        """Return the problem, with these factors fixed."""
        if self.plain and not fixed:
            return Problem(self.tensor, self.rank, symmetric=symmetric)
        constraints = [self._constraint(mode, fixed or {}) for mode in range(self.order)]
        return Problem(self.tensor, self.rank, constraints, self.mask, symmetric=False)

    def _constraint(self, mode: int, fixed: dict[int, Array]) -> Constraint | None:
        if mode in fixed:
            return Fixed(fixed[mode])
        if mode in self.nonnegative:
            return NonNegative()
        return Ridge(self.ridge) if self.ridge else None

    def finished(self, fit: Factorization) -> Any:
        """Return components as TensorLy has them, with a sparse part where that is asked for."""
        return with_sparse(fit, self.tensor, self.n_sparse, self.mask) if self.n_sparse else as_cp(fit)


class Answer(NamedTuple):
    """What a call returns, the relative errors on the way there, and what is to be said of it."""

    result: Any
    errors: list[float]
    complaint: str | None


def answer(request: Request, *, normalize: bool) -> Answer:
    """Fit components; return them as TensorLy has them."""
    errors: list[float] = []

    def monitor(components: Any, error: float) -> bool:
        errors.append(error)
        if request.callback is None:
            return False
        fit = Factorization(components.weights, tuple(components.factors), error, math.nan, False)
        return request.callback(request.finished(fit), error) is True

    options = {"tol": request.tol or 1e-16, "max_sweeps": request.n_iter_max, "monitor": monitor}
    fit, complaint = _fitted(request, options)
    errors.append(fit.relative_error)
    unit = with_unit_columns(fit) if normalize else with_unit_weights(fit, balanced=request.ridge > 0)
    return Answer(request.finished(unit), errors, complaint)


def _fitted(request: Request, options: dict[str, Any]) -> tuple[Factorization, str | None]:
    """Fit components, by what their kind asks for; return what is to be said of the fit, too."""
    init, max_sweeps = request.init, request.n_iter_max
    if (request.order == 2 or is_complex(request.tensor)) and not request.plain:
        raise ValueError(
            "tensor must be real and of order three or more for mask, l2_reg and non-negative factors; "
            f"got {'a matrix' if request.order == 2 else 'a complex array'}"
        )
    if request.order == 2:
        return _of_matrix(request.tensor, request.rank, request.fixed), None
    if is_complex(request.tensor):
        fit = fit_complex(request.tensor, request.rank, init, request.fixed, request.seed, Sweeps(**options))
        return fit, complaint_about_sweeps(fit, max_sweeps)
    if request.fixed:
        fit = with_fixed_modes(request.problem, init, request.fixed, options)
        return fit, complaint_about_sweeps(fit, max_sweeps)
    if init is None:
        raise TypeError("init must be 'svd', 'random', a CPTensor or a pair (weights, factors); got None")
    if isinstance(init, str):
        method, problem = _method(init, options), request.problem()
        fit = solve(problem, method, request.seed)
        return fit, complaint_about(fit, problem, method)
    problem = request.problem(symmetric=False)  # a start of one's own may have modes apart
    swept = sweep_from(problem, init, options)
    signed = not request.nonnegative
    if max_sweeps == 1 or swept.stopped:
        return like_start(swept.fit, init, signed=signed), complaint_about_sweeps(swept.fit, 1)
    method = NLS(init=swept.fit, max_replacements=0, **(options | {"max_sweeps": max_sweeps - 1}))
    fit = solve(problem, method, request.seed)
    return like_start(fit, init, signed=signed), complaint_about(fit, problem, method)


def _method(init: str, options: dict[str, Any]) -> Method:
    if init == "svd":
        return Auto(**options)
    if init == "random":
        return NLS(**options)
    raise ValueError(f"init must be 'svd', 'random', a CPTensor or a pair (weights, factors); got {init!r}")


def _of_matrix(matrix: Any, rank: int, fixed: list[int]) -> Factorization:
    """Return the leading singular vectors of a matrix: the best fit, unless singular values are equal the only one."""
    if fixed:
        raise ValueError(f"fixed_modes must be empty for a matrix; got {fixed}. Use numpy.linalg.lstsq")
    entries = matrix if is_complex(matrix) else as_real_array(matrix, "tensor", "factorize its parts apart")
    xp = array_namespace(entries)
    if not bool(xp.all(xp.isfinite(entries))):
        raise ValueError("tensor must be finite; it holds NaN or infinite entries")
    if rank > min(entries.shape):
        raise ValueError(f"rank must be at most {min(entries.shape)}, the smaller side of the matrix; got {rank}")
    left, sizes, right = xp.linalg.svd(entries, full_matrices=False)
    norm = float(xp.linalg.vector_norm(sizes))
    error = float(xp.linalg.vector_norm(sizes[rank:])) / norm if norm > 0 else 0.0
    factors = (left[:, :rank], xp.matrix_transpose(right)[:, :rank])
    return Factorization(sizes[:rank], factors, error, norm, True)
