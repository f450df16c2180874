"""The range that the factors of a stack lie in, and the stack compressed to it."""

from __future__ import annotations

import numpy as np

from codiag._array import Array, array_namespace, epsilon, like, to_host
from codiag._validation import as_rank
from codiag.diagonalize._starts import random_combinations


def range_bases(
    stack: Array, rank: int | None, rng: np.random.Generator, *, symmetric: bool
) -> tuple[Array | None, Array | None]:
    """Return orthonormal bases (left, right) of the range the factors lie in; None where that is the whole space."""
    rows, columns = stack.shape[1:]
    rank = as_rank(rank, min(rows, columns))
    if rank is None:
        rank = _numerical_rank(stack, rng)
    left = None if rank == rows else _dominant_range(stack, rank, axis=1)
    if symmetric:
        return left, left
    return left, None if rank == columns else _dominant_range(stack, rank, axis=2)


def _numerical_rank(stack: Array, rng: np.random.Generator) -> int:
    """Return the dimension of the range of the stack, as far as machine precision can tell it from the whole space."""
    xp = array_namespace(stack)
    rows, columns = (int(size) for size in stack.shape[1:])
    negligible = 10 * max(rows, columns) * epsilon(stack)
    if _seems_regular(random_combinations(stack, rng, 1)[0, ...], negligible, rng):
        return min(rows, columns)
    # One combination can be nearly singular by chance; the matrices side by side, or one above the other, cannot.
    side = xp.permute_dims(stack, (1, 0, 2) if rows <= columns else (2, 0, 1))
    sizes = np.linalg.svd(to_host(xp.reshape(side, (side.shape[0], -1))), compute_uv=False)
    return int(np.count_nonzero(sizes > negligible * sizes[0]))


def _seems_regular(matrix: Array, negligible: float, rng: np.random.Generator) -> bool:
    """Tell whether a random right-hand side is solved without an enormous answer: one LU instead of an SVD."""
    xp = array_namespace(matrix)
    rows, columns = matrix.shape
    if rows > columns:
        matrix, rows, columns = xp.matrix_transpose(matrix), columns, rows
    if rows < columns:
        matrix = matrix @ like(rng.standard_normal((columns, rows)), matrix)
    target = like(rng.standard_normal((rows, 1)), matrix)
    try:
        solution = xp.linalg.solve(matrix, target)
    except (np.linalg.LinAlgError, RuntimeError):  # torch raises an error of its own
        return False
    norms = [float(xp.linalg.vector_norm(array)) for array in (solution, matrix, target)]
    return norms[0] * norms[1] * negligible < norms[2]


def _dominant_range(stack: Array, rank: int, axis: int) -> Array:
    """Return the leading eigenvectors of sum_l M_l M_l^T (axis 1) or sum_l M_l^T M_l (axis 2)."""
    xp = array_namespace(stack)
    n, rows, columns = stack.shape
    if axis == 1:
        side = xp.reshape(xp.permute_dims(stack, (1, 0, 2)), (rows, n * columns))
        gram = side @ xp.matrix_transpose(side)
    else:
        side = xp.reshape(stack, (n * rows, columns))
        gram = xp.matrix_transpose(side) @ side
    return xp.flip(xp.linalg.eigh(gram)[1][:, -rank:], axis=1)


def compress(stack: Array, left: Array | None, right: Array | None) -> Array:
    """Return Q^T M_l R, the larger product last."""
    xp = array_namespace(stack)
    if right is not None:
        stack = stack @ right
    return stack if left is None else xp.matrix_transpose(left) @ stack
