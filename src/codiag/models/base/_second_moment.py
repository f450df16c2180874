r"""The second moment: its leading eigenvectors, its sampling noise, and the third moment in its range.

The components of a symmetric third moment lie in the range of the second moment. A component is detectable if its
singular value in the second moment is well above the sampling error of that moment. With random signs
:math:`\epsilon_s`, the matrix :math:`\sum_s \epsilon_s a_s b_s^\top / n` has to first order the distribution of the
error of the mean :math:`\sum_s a_s b_s^\top / n`, whatever the order of the samples.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator, eigsh, svds

from codiag._checks import RankDeficientError, as_generator
from codiag.methods import Auto
from codiag.models.base._components import Diagnostics
from codiag.problem import Problem
from codiag.reduction import SMALLEST_EIGENVALUE
from codiag.result import Factorization

CORE_METHOD = Auto(max_starts=1, max_iter=40)
"""Default method for the core of a moment. One start: further starts cannot remove residuals of model errors."""
N_DRAWS = 8
"""Number of random sign vectors over which the sampling noise is averaged."""
DENSE_SIZE = 500
"""Rows and columns up to which singular values are computed by a dense decomposition."""

Products = Callable[[np.ndarray], np.ndarray]
"""Products of a symmetric matrix with columns."""


def leading_range(multiply: Products, size: int, k: int, random_state: int) -> np.ndarray:
    """Return the leading k eigenvectors (size, k) of a symmetric matrix given by its products with columns."""
    if size <= max(200, 3 * k):
        return np.linalg.eigh(multiply(np.eye(size)))[1][:, ::-1][:, :k]
    start = as_generator(random_state, "random_state").standard_normal(size)
    if not np.any(multiply(start)):  # the zero matrix: every vector is an eigenvector
        return np.eye(size, k)
    operator = LinearOperator((size, size), matvec=multiply, matmat=multiply, dtype=np.float64)
    values, vectors = eigsh(operator, k=k, which="LA", v0=start, tol=1e-8)
    return vectors[:, np.argsort(-values)]


def leading_range_in_passes(
    multiply: Products, size: int, k: int, random_state: int, *, n_extra: int, tol: float = 1e-7
) -> np.ndarray:
    """Return `n_extra` more columns than k of the leading range, if a product costs a pass over the data.

    Block Lanczos with full reorthogonalization, one pass per step, until the residuals of the first k eigenvectors are
    small. The spare columns need not converge: eigenvalues of sampling noise have no gaps. Measured on corpora, it
    takes 6 to 24 passes, `scipy.sparse.linalg.lobpcg` 49 to 107 and ``eigsh`` 50 to 151 for the same accuracy.
    """
    if size <= max(200, 3 * (k + n_extra)):
        return leading_range(multiply, size, k + n_extra, random_state)
    # eight more than requested: convergence depends on the gap behind the last column
    width = k + n_extra + 8
    rng = as_generator(random_state, "random_state")
    columns = np.linalg.qr(rng.standard_normal((size, width)))[0]
    matrix, last = np.zeros((0, 0)), columns
    while True:
        image = multiply(last)
        products = columns.T @ image
        corner = (products[-width:] + products[-width:].T) / 2
        matrix = np.block([[matrix, products[:-width]], [products[:-width].T, corner]])
        values, inner = np.linalg.eigh(matrix)
        leading = inner[:, ::-1]
        image = image - columns @ products
        image = image - columns @ (columns.T @ image)
        following, triangle = np.linalg.qr(image)
        residuals = np.linalg.norm(triangle @ leading[-width:, :k], axis=0)
        # a bound on memory
        is_full = columns.shape[1] + width > min(size, 1500)
        if is_full or np.all(residuals <= tol * np.max(np.abs(values))):
            return columns @ leading[:, : k + n_extra]
        columns, last = np.hstack([columns, following]), following


def check_second_moment(values: np.ndarray, k: int, name: str, *, least: float = 1e-12) -> None:
    """Raise if the second moment has fewer than k positive eigenvalues."""
    positive = int(np.sum(values[:k] > least * np.max(np.abs(values))))
    if positive < k:
        raise RankDeficientError(
            f"{name}={k} is more than the data determines: its second moment has {positive} positive eigenvalues, the "
            f"largest {values[0]:.3g}; use at most {max(positive, 1)}, or give more data"
        )


def core_problem(core: np.ndarray, values: np.ndarray, *, orthogonal: bool) -> Problem:
    """Return the problem of a symmetric core (k, k, k), in the range of a second moment with these eigenvalues.

    If the method needs orthogonal factors, the eigenvalues must be large enough for whitening.
    """
    k = core.shape[0]
    if not np.any(core):
        raise RankDeficientError(
            "X must have a third moment that is not zero, since components are found in it; its first and second "
            "moments alone do not determine them. Give more data, or data that differs more"
        )
    if orthogonal:
        check_second_moment(values, k, "n_components", least=SMALLEST_EIGENVALUE)
    return Problem(core, k, second_moment=np.diag(values[:k]), symmetric=True)


def core_diagnostics(fit: Factorization, values: np.ndarray, noise: float, clipped: float) -> Diagnostics:
    """Return the diagnostics of the fit of a core and of the eigenvalues of the second moment."""
    following = max(float(values[fit.rank]), 0.0) if values.size > fit.rank else 0.0
    diagnostics = Diagnostics.of(
        fit,
        second_moment=values[: fit.rank + 1].tolist(),
        second_moment_gap=float(values[fit.rank - 1] / max(following, 1e-16 * values[0])),
        sampling_noise=noise,
        clipped_mass=clipped,
    )
    errors = diagnostics.core_errors
    return diagnostics if errors is None else Diagnostics(**{**diagnostics, "core_errors": errors[0]})


def random_signs(n: int, chunk: int = 0) -> np.ndarray:
    """Return random signs (N_DRAWS, n) for the samples of a chunk, which is identified by a number."""
    # An unusual seed: signs must not follow an order by which users shuffled their samples.
    return np.random.default_rng([0x5160, chunk]).choice([-1.0, 1.0], (N_DRAWS, n))


def weakest_direction(mean: Any, errors: Sequence[Any], k: int) -> tuple[float, float]:
    """Return the k-th singular value of a matrix and its sampling noise, from draws of the matrix's error.

    Matrices are dense or sparse.
    """
    left, sizes, right = _leading(mean, k)
    return float(sizes[k - 1]), noise_of(errors, left, right)


def noise_of(errors: Sequence[Any], left: np.ndarray, right: np.ndarray) -> float:
    """Return the sampling noise of the last of k singular values with singular vectors (m, k) and (n, k).

    The larger of two: the root mean square of the error along the last pair of singular vectors, and the mean operator
    norm of the error in the complement of all k, which is the singular value of a component that does not exist. Errors
    between the two spaces rotate singular vectors and leave singular values unchanged to first order.
    """
    along = [float(left[:, -1] @ (error @ right[:, -1])) for error in errors]
    n_extra = min(left.shape[0], right.shape[0]) - left.shape[1]
    if n_extra <= 0:
        return float(np.sqrt(np.mean(np.square(along))))
    used = errors if n_extra < N_DRAWS else errors[: N_DRAWS // 2]  # norms of small matrices vary most
    beside = np.mean([norm_beside(error, left, right) for error in used])
    # Without the last component, the complement would have one dimension more.
    beside *= _gaussian_norm(n_extra + 1) / _gaussian_norm(n_extra)
    return float(max(np.sqrt(np.mean(np.square(along))), beside))


def _gaussian_norm(m: int) -> float:
    """Return the mean operator norm of an m x m Gaussian matrix, within 3 %: its limit, corrected at m = 1."""
    return 2 * float(np.sqrt(m)) - 1.2 * m ** (-1 / 6)


def norm_beside(matrix: Any, left: np.ndarray, right: np.ndarray, n_steps: int = 5) -> float:
    """Return the operator norm of a matrix between the complements of orthonormal columns; power steps if large."""

    def beside(columns: np.ndarray, vector: np.ndarray) -> np.ndarray:
        return vector - columns @ (columns.T @ vector)

    if max(matrix.shape) <= DENSE_SIZE and not isinstance(matrix, LinearOperator):
        return float(np.linalg.norm(beside(left, matrix @ beside(right, np.eye(matrix.shape[1]))), 2))
    vector = beside(right, np.random.default_rng(0).standard_normal(matrix.shape[1]))
    size = 0.0
    for _ in range(n_steps):
        length = float(np.linalg.norm(vector))
        if length == 0:
            return 0.0
        image = beside(left, matrix @ (vector / length))
        size = float(np.linalg.norm(image))
        vector = beside(right, matrix.T @ image)
    return size


def n_starts(n: int) -> int:
    """Return from how many starts EM begins beside the moments of n samples: none if n is large."""
    return min(8, 16_000 // n)


def hidden_component(size: float, noise: float, k: int) -> tuple[str, ...]:
    """Return a warning if the k-th singular value of the second moment is below twice its sampling noise, else ()."""
    if k == 1 or not size < 2 * noise:
        return ()
    return (
        f"n_components={k} may be more than the data shows: the last singular value of the second moment "
        f"is {size:.2g}, sampling noise {noise:.2g}; use fewer, or give more data",
    )


def _leading(matrix: Any, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the leading singular vectors and values of a matrix: (m, k), (k,) and (n, k)."""
    if max(matrix.shape) <= DENSE_SIZE:
        left, sizes, right = np.linalg.svd(matrix @ np.eye(matrix.shape[1]), full_matrices=False)
        return left[:, :k], sizes[:k], right[:k].T
    left, sizes, right = svds(matrix, k=k, v0=np.random.default_rng(0).standard_normal(min(matrix.shape)))
    order = np.argsort(-sizes)
    return left[:, order], sizes[order], right[order].T
