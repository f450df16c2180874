"""The starts of iterations: exact solutions for one or two combinations of the matrices, and starts of the user.

References
----------
H. He and D. Kressner, "Randomized joint diagonalization of symmetric matrices", SIAM J. Matrix Anal. Appl. 45(1), 2024.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from codiag._arrays import (
    Array,
    adjoint,
    array_namespace,
    asarray_like,
    conjugate,
    eigenpairs,
    epsilon,
    is_complex,
    is_hermitian,
    squared_magnitudes,
    to_double,
    to_host,
    to_namespace,
)
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


def _eigenvectors(matrix: np.ndarray, metric: np.ndarray) -> np.ndarray:
    """Return eigenvectors as columns, in which the diagonal of the metric does not vanish.

    If the metric N is Hermitian and so is ``N @ matrix``, eigenvalues are real or pairs of conjugates; a vector v of
    such a pair has ``v^H N v = 0``. Sums and differences of the two vectors, as for real matrices, do not.
    """
    if not is_complex(matrix):
        return real_eigenvectors(matrix)
    values, vectors = np.linalg.eig(matrix)
    if not is_hermitian(metric[None, ...]):
        return vectors
    paired = np.flatnonzero(values.imag > 1e-9 * np.max(np.abs(values)))
    for index in paired:
        other = int(np.argmin(np.abs(values - np.conj(values[index]))))
        if other == index or values[other].imag >= 0:
            continue
        first, second = vectors[:, index], vectors[:, other]
        product = np.vdot(second, metric @ first)
        second = second * (product / max(abs(product), 1e-300))
        vectors[:, index], vectors[:, other] = first + second, first - second
    unit: np.ndarray = vectors / np.linalg.norm(vectors, axis=0)
    return unit


def generic_start(size: int) -> np.ndarray:
    """Return orthonormal rows in general position, always the same, on the host."""
    return np.linalg.qr(np.random.default_rng(0).standard_normal((size, size)))[0]


def orthogonal_start(stack: Array, rng: np.random.Generator) -> Array:
    """Return inverse factors, as rows, that diagonalize one combination of the matrices."""
    return to_namespace(
        _diagonalized(random_combinations(stack, rng, 1)[0, ...], hermitian=is_hermitian(stack))[1], stack
    )


def _diagonalized(matrix: Array, *, hermitian: bool) -> tuple[Array, Array]:
    """Return the sizes of the diagonal and orthonormal rows B for which B M B^T, or B M B^H, is diagonal.

    A complex symmetric matrix has the singular value decomposition U S U^T (Takagi).
    """
    xp = array_namespace(matrix)
    if is_complex(matrix) and not hermitian:
        vectors, sizes, _ = xp.linalg.svd(matrix)
        return sizes, adjoint(vectors)
    values, vectors = eigenpairs(matrix)
    return xp.abs(values), adjoint(vectors)


def pencil_start(stack: Array, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return rows that diagonalize the pencil of two random combinations, and the second of these, on the host.

    Only NumPy solves nonsymmetric eigenproblems for arrays of every device.
    """
    for _ in range(5):
        first, second = to_host(random_combinations(stack, rng, 2))
        try:
            left = _eigenvectors(np.linalg.solve(second.T, first.T), second.T).T
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
    mean, combination = to_host(
        xp.reshape(asarray_like(coefficients, stack) @ xp.reshape(stack, (n, -1)), (2, size, size))
    )
    whitener = np.linalg.inv(np.linalg.cholesky(mean))
    rows = np.linalg.eigh(whitener @ combination @ whitener.conj().T)[1].conj().T @ whitener
    return asarray_like(rows, stack)


def whitened_start(stack: Array) -> Array:
    """Return rows that turn one of the matrices into a diagonal of signs, the start of Tichavsky & Yeredor.

    It is the first matrix whose norm is at least half of the largest, so that it is not a negligible one.
    """
    xp = array_namespace(stack)
    norms = xp.sum(xp.reshape(squared_magnitudes(stack), (stack.shape[0], -1)), axis=1)
    large = xp.astype(norms >= xp.max(norms) / 4, xp.int64)
    sizes, rows = _diagonalized(to_double(stack[int(xp.argmax(large)), ...]), hermitian=is_hermitian(stack))
    xp = array_namespace(sizes)
    sizes = xp.clip(sizes, float(xp.max(sizes)) * stack.shape[1] * epsilon(stack), None)
    return to_namespace(rows / xp.sqrt(sizes)[:, None], stack)


def eigenvector_start(stack: Array) -> Array:
    """Return the eigenvectors, as rows, of the matrix of `whitened_start`."""
    rows = whitened_start(stack)
    return rows / array_namespace(rows).linalg.vector_norm(rows, axis=1, keepdims=True)


def as_start(init: Array | Sequence[Array], stack: Array, *, symmetric: bool, orthogonal: bool) -> Sides:
    """Return given inverse factors of both sides on the host, as rows; the same array twice for symmetric matrices."""
    kind = {"allow_complex": is_complex(stack)}
    if symmetric:
        left = right = as_finite("init", init, (None, stack.shape[1]), **kind)
    else:
        if not isinstance(init, list | tuple) or len(init) != 2:
            raise TypeError(
                "init must be a pair (left, right) of inverse factors, of shapes (k, d) and (k, d'), for matrices with "
                f"different factors on the two sides; got {type(init).__name__}"
            )
        left = as_finite("init[0]", init[0], (None, stack.shape[1]), **kind)
        right = as_finite("init[1]", init[1], (left.shape[0], stack.shape[2]), **kind)
    limit = min(stack.shape[1:])
    if left.shape[0] > limit:
        raise ValueError(f"init must have at most {limit} rows, the size of the matrices; got {left.shape[0]}")
    if orthogonal:
        for side in (left, right):
            with np.errstate(over="ignore"):
                deviation = float(np.max(np.abs(side @ side.conj().T - np.eye(side.shape[0]))))
            if not deviation <= 1e-3:
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
    """Return a given start in the coordinates of the compressed matrices, orthonormal if the factors are.

    The right side of symmetric and of Hermitian matrices follows from the left one.
    """
    sides = []
    for side, basis in zip(start, bases, strict=True):
        rows = side if basis is None else side @ to_double(to_host(basis))
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
        sides.append(asarray_like(left @ right if orthogonal else rows / sizes[0], core))
        if start[0] is start[1]:
            return sides[0], conjugate(sides[0]) if is_hermitian(core) else sides[0]
    return sides[0], sides[1]
