"""Where the iterations begin: the exact solution for two random combinations of the matrices.

References
----------
H. He and D. Kressner, "Randomized joint diagonalization of symmetric matrices", SIAM J. Matrix Anal. Appl. 45(1), 2024.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from array_api_compat import array_namespace

from codiag._array import Array, double, like, moved, to_host
from codiag.diagonalize._fixed_point import Limits
from codiag.diagonalize._products import Slabs


def random_combinations(stack: Array, rng: np.random.Generator, count: int) -> Array:
    """Return `count` combinations of the matrices with Gaussian coefficients, in double precision."""
    xp = array_namespace(stack)
    n, rows, columns = stack.shape
    coefficients = like(rng.standard_normal((count, n)), stack)
    mixed = coefficients @ xp.reshape(stack, (n, rows * columns))
    return double(xp.reshape(mixed, (count, rows, columns)))


def sketched(core: Slabs, rng: np.random.Generator) -> Slabs | None:
    """Return a few random combinations of the matrices to start on, or None where that would save nothing.

    Their joint diagonalizer is off by about sqrt(n / size) standard errors of the final one, near enough for Newton
    steps, and each step on them costs size / n of a step on the whole stack.
    """
    n = core.stack.shape[0]
    size = max(8, n // 16)
    if n < 4 * size:
        return None
    return Slabs(moved(random_combinations(core.stack, rng, size), core.stack))


def sketch_limits(limits: Limits) -> Limits:
    """Return limits for a start: its own noise is larger than what further steps would remove."""
    return replace(limits, statistical_tol=1.0, max_sweeps=min(limits.max_sweeps, 20))


def real_eigenvectors(matrix: np.ndarray) -> np.ndarray:
    """Return real eigenvectors as columns; a complex pair gives a real basis of its invariant plane."""
    values, vectors = np.linalg.eig(matrix)
    second = values.imag < 0  # LAPACK lists the member with positive imaginary part first
    real = np.where(second[None, :], -vectors.imag, vectors.real)
    return real / np.linalg.norm(real, axis=0)


def general_rows(size: int) -> np.ndarray:
    """Return orthonormal rows in general position, on the host: a start that nothing is special about."""
    return np.linalg.qr(np.random.default_rng(0).standard_normal((size, size)))[0]


def orthogonal_start(stack: Array, rng: np.random.Generator) -> Array:
    """Return inverse factors, as rows, from one symmetric eigendecomposition."""
    combination = random_combinations(stack, rng, 1)[0, ...]
    xp = array_namespace(combination)
    return moved(xp.matrix_transpose(xp.linalg.eigh(combination)[1]), stack)


def pencil_start(stack: Array, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return rows that diagonalize one random combination against another, and that other; on the host.

    No array library but NumPy solves nonsymmetric eigenproblems on every device.
    """
    for _ in range(5):
        first, second = to_host(random_combinations(stack, rng, 2))
        try:
            left = real_eigenvectors(np.linalg.solve(second.T, first.T)).T
        except np.linalg.LinAlgError:
            continue  # a singular combination: draw another
        if np.all(np.isfinite(left)):
            return left, second
    raise np.linalg.LinAlgError("every random combination of the matrices was singular")
