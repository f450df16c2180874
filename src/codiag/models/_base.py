"""What the estimators share: from a moment and its basis to components, and back to parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment, nnls
from scipy.sparse.linalg import LinearOperator, eigsh

from codiag._factorization import Factorization
from codiag._factorize import as_method, solve
from codiag._problem import Problem
from codiag._validation import as_generator, as_number, check_seed
from codiag.methods import Auto, Method
from codiag.methods._whitening import LEAST
from codiag.models._sampling_noise import norm_beside
from codiag.tensors import Tensor

LARGEST_ALPHA = 1e6
"""Third moments are differences of terms of the order of its square: up to here double precision has digits left."""


def as_seed(random_state: Any) -> int | None:
    """Return the seed that `random_state` stands for: None, a whole number, or one drawn from a generator of NumPy."""
    check_seed("random_state", random_state)
    if random_state is None or isinstance(random_state, int | np.integer):
        return None if random_state is None else int(random_state)
    return int(as_generator(random_state, "random_state").integers(2**31))


def check_alpha(alpha_0: float) -> None:
    """Raise unless the total of a Dirichlet distribution is one that moments can be corrected for."""
    as_number("alpha_0", alpha_0, zero=True)
    if alpha_0 > LARGEST_ALPHA:
        raise ValueError(
            f"alpha_0 must be at most {LARGEST_ALPHA:g}: beyond that shares are all alike, and moments corrected for "
            f"them are differences of numbers that rounding makes equal; got {alpha_0:g}"
        )


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


def on_simplex(columns: np.ndarray) -> tuple[np.ndarray, float]:
    """Return columns with positive entries that sum to one, and the share of their mass that had to be clipped."""
    signed = columns * np.where(columns.sum(axis=0) < 0, -1.0, 1.0)
    kept = np.maximum(signed, 0)
    clipped = float(np.sum(kept - signed) / max(np.sum(np.abs(signed)), 1e-300))
    floor = 1e-12 / columns.shape[0]
    kept = kept + floor
    return kept / kept.sum(axis=0), clipped


def mixture_weights(components: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """Return the weights, positive and of sum one, with which columns add up to the mean, nearly."""
    weights = nnls(components, mean, maxiter=100 + 10 * components.shape[1])[0] + 1e-12
    return weights / weights.sum()


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


def weakest(mean: np.ndarray, halves: Sequence[np.ndarray], k: int) -> tuple[float, float]:
    """Return the k-th singular value of a matrix, and what sampling adds to directions as weak as that one.

    The latter from the difference of estimates by halves of the data, beside the k - 1 stronger directions.
    """
    left, sizes, right = np.linalg.svd(mean)
    gap = (halves[0] - halves[1]) / 2
    return float(sizes[k - 1]), norm_beside(gap, left[:, : k - 1], right[: k - 1].T)


def common_order(estimates: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return for each of several estimates (m, k) the order of its columns that fits the one most like the others."""
    n, k = len(estimates), estimates[0].shape[1]
    products = np.hstack(estimates)
    products = (products.T @ products).reshape(n, k, n, k)
    likeness = np.zeros((n, n))
    orders = np.empty((n, n, k), dtype=np.int64)
    for i in range(n):
        for j in range(i, n):
            order = linear_sum_assignment(-products[i, :, j])[1]
            orders[i, j], orders[j, i] = order, np.argsort(order)
            likeness[i, j] = likeness[j, i] = products[i, range(k), j, order].sum()
    return list(orders[int(np.argmax(likeness.sum(axis=1)))])
