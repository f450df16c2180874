"""The starts of iterations: exact solutions for one or two combinations of the matrices, and starts of the user.

References
----------
H. He and D. Kressner, "Randomized joint diagonalization of symmetric matrices", SIAM J. Matrix Anal. Appl. 45(1), 2024.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from codiag._arrays import Array, array_namespace, epsilon, like, moved, to_host
from codiag._checks import as_finite
from codiag.diagonalize._stack import random_combinations

Sides = tuple[np.ndarray, np.ndarray]


def real_eigenvectors(matrix: np.ndarray) -> np.ndarray:
    """Return real eigenvectors as columns; a complex pair gives a real basis of its invariant plane."""
    values, vectors = np.linalg.eig(matrix)
    second = values.imag < 0  # LAPACK lists the eigenvalue with positive imaginary part first
    real = np.where(second[None, :], -vectors.imag, vectors.real)
    unit: np.ndarray = real / np.linalg.norm(real, axis=0)
    return unit


def generic_start(size: int) -> np.ndarray:
    """Return orthonormal rows in general position, always the same, on the host."""
    return np.linalg.qr(np.random.default_rng(0).standard_normal((size, size)))[0]


def orthogonal_start(stack: Array, rng: np.random.Generator) -> Array:
    """Return inverse factors, as rows, from one symmetric eigendecomposition."""
    combination = random_combinations(stack, rng, 1)[0, ...]
    xp = array_namespace(combination)
    return moved(xp.matrix_transpose(xp.linalg.eigh(combination)[1]), stack)


def pencil_start(stack: Array, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return rows that diagonalize the pencil of two random combinations, and the second of these, on the host.

    Only NumPy solves nonsymmetric eigenproblems for arrays of every device.
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


def definite_start(stack: Array) -> Array:
    """Return rows that diagonalize the mean of positive definite matrices and a random combination of them.

    Unlike the pencil of two random combinations, this is a symmetric eigenproblem, and its eigenvectors are never
    complex if the matrices are real. The combination is always the same.
    """
    xp, (n, size, _) = array_namespace(stack), stack.shape
    coefficients = np.stack([np.full(n, 1 / n), np.random.default_rng(0).standard_normal(n)])
    mean, combination = to_host(xp.reshape(like(coefficients, stack) @ xp.reshape(stack, (n, -1)), (2, size, size)))
    whitener = np.linalg.inv(np.linalg.cholesky(mean))
    rows = np.linalg.eigh(whitener @ combination @ whitener.conj().T)[1].conj().T @ whitener
    return like(rows, stack)


def whitened_start(stack: Array) -> Array:
    """Return rows that turn one of the matrices into a diagonal of signs, the start of Tichavsky & Yeredor.

    It is the first matrix whose norm is at least half of the largest, so that it is not a negligible one.
    """
    xp = array_namespace(stack)
    norms = xp.linalg.vector_norm(xp.reshape(stack, (stack.shape[0], -1)), axis=1)
    large = xp.astype(norms >= xp.max(norms) / 2, xp.int64)
    values, vectors = xp.linalg.eigh(xp.astype(stack[int(xp.argmax(large)), ...], xp.float64))
    sizes = xp.abs(values)
    sizes = xp.clip(sizes, float(xp.max(sizes)) * stack.shape[1] * epsilon(stack), None)
    return xp.astype(xp.matrix_transpose(vectors / xp.sqrt(sizes)), stack.dtype)


def eigenvector_start(stack: Array) -> Array:
    """Return the eigenvectors, as rows, of the matrix of `whitened_start`."""
    rows = whitened_start(stack)
    return rows / array_namespace(rows).linalg.vector_norm(rows, axis=1, keepdims=True)


def as_start(init: Array | Sequence[Array], stack: Array, *, symmetric: bool, orthogonal: bool) -> Sides:
    """Return given inverse factors of both sides on the host, as rows; the same array twice for symmetric matrices."""
    if symmetric:
        left = right = as_finite("init", init, (None, stack.shape[1]))
    else:
        if not isinstance(init, list | tuple) or len(init) != 2:
            raise TypeError(
                "init must be a pair (left, right) of inverse factors, of shapes (k, d) and (k, d'), for matrices with "
                f"different factors on the two sides; got {type(init).__name__}"
            )
        left = as_finite("init[0]", init[0], (None, stack.shape[1]))
        right = as_finite("init[1]", init[1], (left.shape[0], stack.shape[2]))
    limit = min(stack.shape[1:])
    if left.shape[0] > limit:
        raise ValueError(f"init must have at most {limit} rows, the size of the matrices; got {left.shape[0]}")
    if orthogonal:
        for side in (left, right):
            deviation = float(np.max(np.abs(side @ side.T - np.eye(side.shape[0]))))
            if deviation > 1e-3:
                raise ValueError(
                    "init must have orthonormal rows for a method with orthonormal factors; init @ init.T differs from "
                    f"the identity by {deviation:.3g}. The nearest orthonormal rows are scipy.linalg.polar(init)[0]"
                )
    return left, right


def start_rank(start: Sides, rank: int | None, limit: int) -> int | None:
    """Return the rank that a given start implies; None, the rank of the matrices, if the start has full size."""
    rows = start[0].shape[0]
    if rank is not None and rows != rank:
        raise ValueError(f"init must have {rank} rows, one a component (rank={rank}); got {rows}")
    return rank if rank is not None or rows == limit else rows


def compressed_start(
    start: Sides, bases: tuple[Array | None, Array | None], core: Array, *, orthogonal: bool
) -> tuple[Array, Array]:
    """Return a given start in the coordinates of the compressed matrices, orthonormal if the factors are."""
    sides = []
    for side, basis in zip(start, bases, strict=True):
        rows = side if basis is None else side @ to_host(basis).astype(np.float64)
        if rows.shape[0] != rows.shape[1]:
            raise ValueError(
                f"init must have {rows.shape[1]} rows, one a component: the matrices are singular and have this rank; "
                f"got {rows.shape[0]}"
            )
        left, sizes, right = np.linalg.svd(rows)
        if sizes[-1] <= rows.shape[0] * np.finfo(float).eps * sizes[0]:
            raise ValueError(
                "init must have rows that are linearly independent on the range of the matrices; their smallest "
                f"singular value is {sizes[-1] / max(sizes[0], 1e-300):.1g} of the largest"
            )
        sides.append(like(left @ right if orthogonal else rows, core))
        if start[0] is start[1]:
            return sides[0], sides[0]
    return sides[0], sides[1]
