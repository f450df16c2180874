"""Where the iterations begin: the exact solution for one or two combinations of the matrices.

References
----------
H. He and D. Kressner, "Randomized joint diagonalization of symmetric matrices", SIAM J. Matrix Anal. Appl. 45(1), 2024.

A start that the user gives: checked, brought to the size of the compressed matrices, and away from saddles.

Which fixed point to keep of several: noise, and matrices without common factors, leave more than one.
"""

from __future__ import annotations

import numpy as np

from codiag._arrays import Array, array_namespace, epsilon, moved, to_host
from codiag.diagonalize._compression import random_combinations


def real_eigenvectors(matrix: np.ndarray) -> np.ndarray:
    """Return real eigenvectors as columns; a complex pair gives a real basis of its invariant plane."""
    values, vectors = np.linalg.eig(matrix)
    second = values.imag < 0  # LAPACK lists the member with positive imaginary part first
    real = np.where(second[None, :], -vectors.imag, vectors.real)
    unit: np.ndarray = real / np.linalg.norm(real, axis=0)
    return unit


def generic_start(size: int) -> np.ndarray:
    """Return fixed orthonormal rows in general position, on the host: a start that nothing is special about."""
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


def whitened_start(stack: Array) -> Array:
    """Return rows that turn the largest of the matrices into a diagonal of signs, the start of Tichavsky & Yeredor."""
    xp = array_namespace(stack)
    norms = xp.sum(xp.reshape(stack, (stack.shape[0], -1)) ** 2, axis=1)
    values, vectors = xp.linalg.eigh(xp.astype(stack[int(xp.argmax(norms)), ...], xp.float64))
    sizes = xp.abs(values)
    sizes = xp.clip(sizes, float(xp.max(sizes)) * stack.shape[1] * epsilon(stack), None)
    return xp.astype(xp.matrix_transpose(vectors / xp.sqrt(sizes)), stack.dtype)


def eigenvector_start(stack: Array) -> Array:
    """Return the eigenvectors, as rows, of the largest of the matrices."""
    rows = whitened_start(stack)
    return rows / array_namespace(rows).linalg.vector_norm(rows, axis=1, keepdims=True)
