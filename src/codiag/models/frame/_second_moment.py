"""The range of a second moment, in which the components of a symmetric third moment lie."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy.sparse.linalg import LinearOperator, eigsh

from codiag._checks import UndeterminedError, as_generator
from codiag.methods import Auto
from codiag.models.frame._diagnostics import Diagnostics
from codiag.problem import Problem
from codiag.reduction import SMALLEST_EIGENVALUE
from codiag.result import Factorization
from codiag.tensors import Tensor

CORE_METHOD = Auto(max_starts=1, max_sweeps=40)
"""What factorizes cores by default. One start: a residual that is no noise is not a reason to look elsewhere here."""
SPARE = 8
"""Columns of blocks beyond those that are asked for: convergence is that of the gap behind all of them."""
MOST_COLUMNS = 1500
"""Columns of all blocks together at which Lanczos steps end."""


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


def leading_range_in_passes(
    multiply: Callable[[np.ndarray], np.ndarray], size: int, k: int, seed: int, *, n_spare: int, tol: float = 1e-7
) -> np.ndarray:
    """Return what `leading_range` does, `n_spare` more columns than k, for products that cost a pass over the data.

    Block Lanczos steps, a pass each, until the residuals of the first k are small; those beside them are whatever is
    left over, which need not converge: sampling noise has no gaps. What is estimated in the basis of an exact moment
    does not depend on the basis, so that errors of the basis are multiplied by the sampling noise.
    """
    if size <= max(200, 3 * (k + n_spare)):
        return leading_range(multiply, size, k + n_spare, seed)
    width = k + n_spare + SPARE
    rng = as_generator(seed, "random_state")
    columns = np.linalg.qr(rng.standard_normal((size, width)))[0]
    matrix = np.zeros((0, 0))
    last = columns
    while True:
        image = multiply(last)
        products = columns.T @ image
        matrix = np.block([[matrix, products[:-width]], [products[:-width].T, symmetrized(products[-width:])]])
        values, inner = np.linalg.eigh(matrix)
        leading = inner[:, ::-1]
        image = image - columns @ products
        image = image - columns @ (columns.T @ image)
        following, triangle = np.linalg.qr(image)
        residuals = np.linalg.norm(triangle @ leading[-width:, :k], axis=0)
        if np.all(residuals <= tol * np.max(np.abs(values))) or columns.shape[1] + width > min(size, MOST_COLUMNS):
            return columns @ leading[:, : k + n_spare]
        columns, last = np.hstack([columns, following]), following


def symmetrized(matrix: np.ndarray) -> np.ndarray:
    """Return the mean of a matrix and its transpose."""
    return (matrix + matrix.T) / 2


def check_second_moment(values: np.ndarray, k: int, name: str, *, least: float = 1e-12) -> None:
    """Raise where the data does not hold as many components as asked for."""
    positive = int(np.sum(values[:k] > least * np.max(np.abs(values))))
    if positive < k:
        raise UndeterminedError(
            f"{name}={k} is more than the data determines: its second moment has {positive} positive eigenvalues, the "
            f"largest {values[0]:.3g}; ask for at most {max(positive, 1)}, or give more data"
        )


def core_problem(moment: Tensor, basis: np.ndarray, values: np.ndarray, *, orthogonal: bool) -> Problem:
    """Ask for the components of a symmetric moment in the range (d, k) of a second moment with these eigenvalues.

    Where a method needs orthogonal factors, these must be able to make them so.
    """
    core, k = np.asarray(moment.compress(*[basis] * moment.order).to_dense()), basis.shape[1]
    if not np.any(core):
        raise UndeterminedError(
            "X must have a third moment that is not zero, since components are found in it; its first and second "
            "moments alone do not tell them apart. Give more data, or data that differs more"
        )
    if orthogonal:
        check_second_moment(values, k, "n_components", least=SMALLEST_EIGENVALUE)
    return Problem(core, k, second_moment=np.diag(values[:k]), symmetric=True)


def core_diagnostics(fit: Factorization, values: np.ndarray, noise: float, clipped: float) -> Diagnostics:
    """Return what the fit of a core and the eigenvalues of the second moment tell."""
    following = max(float(values[fit.rank]), 0.0) if values.size > fit.rank else 0.0
    found = Diagnostics.of(
        fit,
        second_moment=values[: fit.rank + 1].tolist(),
        second_moment_gap=float(values[fit.rank - 1] / max(following, 1e-16 * values[0])),
        sampling_noise=noise,
        clipped_mass=clipped,
    )
    return found if found.core_errors is None else replace(found, core_errors=found.core_errors[0])
