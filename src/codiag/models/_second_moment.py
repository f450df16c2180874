"""The range of a second moment, in which the components of a symmetric third moment lie."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator, eigsh

from codiag._factorization import Factorization
from codiag._factorize import as_method, solve
from codiag._problem import Problem
from codiag._validation import as_generator
from codiag.methods import Auto, Method
from codiag.methods._whitening import LEAST
from codiag.tensors import Tensor


def leading_range(multiply: Callable[[np.ndarray], np.ndarray], size: int, k: int, seed: int) -> np.ndarray:
    """Return the leading k eigenvectors (size, k) of a symmetric matrix that is known by its products alone."""
    if size <= max(200, 3 * k):
        return np.linalg.eigh(multiply(np.eye(size)))[1][:, ::-1][:, :k]
    start = as_generator(seed, "random_state").standard_normal(size)
    if not np.any(multiply(start)):  # a matrix of zeros, in which every direction leads
        return np.eye(size, k)
    operator = LinearOperator((size, size), matvec=multiply, matmat=multiply, dtype=np.float64)
    values, vectors = eigsh(operator, k=k, which="LA", v0=start, tol=1e-8)
    return vectors[:, np.argsort(-values)]


def check_second_moment(values: np.ndarray, k: int, name: str, *, least: float = 1e-12) -> None:
    """Raise where the data does not hold as many components as asked for."""
    positive = int(np.sum(values[:k] > least * np.max(np.abs(values))))
    if positive < k:
        raise ValueError(
            f"{name}={k} is more than the data determines: its second moment has {positive} positive eigenvalues, the "
            f"largest {values[0]:.3g}; ask for at most {max(positive, 1)}, or give more data"
        )


def factorize_core(
    moment: Tensor, basis: np.ndarray, values: np.ndarray, method: Method | str | None, seed: Any
) -> Factorization:
    """Factorize a symmetric moment in the range of its second moment, which whitens it for methods that need that.

    By default by `Auto` from one start: a residual that does not look like noise is here no reason to look elsewhere.
    """
    core = np.asarray(moment.compress(*[basis] * moment.order).to_dense())
    if not np.any(core):
        raise ValueError(
            "X must have a third moment that is not zero, since components are found in it; its first and second "
            "moments alone do not tell them apart. Give more data, or data that differs more"
        )
    strategy = Auto(max_starts=1, max_sweeps=40) if method is None else as_method(method)
    k = basis.shape[1]
    if strategy.needs_orthogonal:
        check_second_moment(values, k, "n_components", least=LEAST)
    problem = Problem(core, k, second_moment=np.diag(values[:k]), symmetric=True)
    return solve(problem, strategy, seed)  # silently: the diagnostics say what the fit is worth


def by_weight(weights: np.ndarray) -> np.ndarray:
    """Return the order of components, largest first."""
    return np.argsort(-weights, kind="stable")


def diagnostics(
    values: np.ndarray, k: int, noise: float, fit: Factorization, clipped: float, order: np.ndarray
) -> dict[str, Any]:
    """Return what tells a user when not to trust an estimate, components in their final order.

    The gap is that between the last eigenvalue of the second moment that counts and the next; a last eigenvalue not far
    above `sampling_noise` belongs to nothing. `core_errors` are those of `component_errors`.
    """
    following = max(float(values[k]), 0.0) if values.size > k else 0.0
    errors = component_errors(fit, order)
    return {
        "second_moment": values[: k + 1].tolist(),
        "second_moment_gap": float(values[k - 1] / max(following, 1e-16 * values[0])),
        "sampling_noise": noise,
        "relative_error": fit.relative_error,
        "clipped_mass": clipped,
        "core_errors": None if errors is None else errors[0],
        "converged": fit.converged,
    }


def component_errors(fit: Factorization, order: np.ndarray) -> np.ndarray | None:
    """Return standard errors (modes, k) of unit factors, components in this order, as the residual tells them.

    Sampling makes them larger. None where there is no residual to tell them by: a core of two components has no more
    entries than parameters.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        errors = fit.standard_errors
    return errors[:, order] if np.all(np.isfinite(errors)) else None


def reordered(found: dict[str, Any], order: np.ndarray) -> dict[str, Any]:
    """Return diagnostics with what they say of single components, along the last axis, in a new order of these."""
    errors = found["core_errors"]
    return found | {"core_errors": None if errors is None else errors[..., order]}
