r"""Linear algebra of a stack of matrices: its range, compression to that range, and the product of every step.

With B and C the current inverse factors as rows, :math:`D_l = B M_l C^\top` and :math:`d_{il} = (D_l)_{ii}`, a step of
the Newton-like methods needs :math:`d` and :math:`y_{ij} = \sum_l d_{jl} (D_l)_{ij}`. Both follow from
:math:`P_{ilb} = \sum_a B_{ia} (M_l)_{ab}`, one matrix product of :math:`2 n d^3` operations, and matrix-vector products
with P; the matrices :math:`D_l` are never formed.

Matrices may be complex: :math:`C = \bar B` if they are Hermitian, :math:`C = B` if they are symmetric, and everywhere
:math:`y_{ij} = \sum_l \bar d_{jl} (D_l)_{ij}`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np
from array_api_compat import device

from codiag._arrays import (
    Array,
    adjoint,
    array_namespace,
    asarray_like,
    conjugate,
    eigenpairs,
    epsilon,
    identity,
    is_complex,
    is_hermitian,
    is_mutable,
    on_host,
    squared_magnitudes,
    to_double,
    to_host,
    to_namespace,
)
from codiag._checks import as_rank

CACHED_ELEMENTS = 2**17
"""Elements of the product P that are formed at a time on the host: 1 MB in double precision, which a cache holds."""


STEP_ON_HOST = 2**15
"""Entries of a matrix, or of the diagonals, up to which a step on an accelerator leaves all but its products with the
matrices to the host: a hundred operations on so few entries take less time there than launching them."""


def random_combinations(stack: Array, rng: np.random.Generator, count: int) -> Array:
    """Return `count` combinations of the matrices with Gaussian coefficients, in double precision."""
    xp = array_namespace(stack)
    n, rows, columns = stack.shape
    coefficients = asarray_like(rng.standard_normal((count, n)), stack)
    combinations = coefficients @ xp.reshape(stack, (n, rows * columns))
    return to_double(xp.reshape(combinations, (count, rows, columns)))


def range_bases(
    stack: Array, rank: int | None, rng: np.random.Generator, *, symmetric: bool
) -> tuple[Array | None, Array | None]:
    """Return orthonormal bases of the column and row ranges that the factors lie in; None is the whole space."""
    rows, columns = stack.shape[1:]
    rank = as_rank(rank, min(rows, columns))
    if rank is None:
        rank = numerical_rank(stack, rng)
    left = None if rank == rows else _dominant_range(stack, rank, axis=1)
    if symmetric:
        return left, left if left is None or not is_hermitian(stack) else conjugate(left)
    return left, None if rank == columns else _dominant_range(stack, rank, axis=2)


def numerical_rank(stack: Array, rng: np.random.Generator) -> int:
    """Return the dimension of the range of the stack, up to machine precision."""
    xp = array_namespace(stack)
    rows, columns = (int(size) for size in stack.shape[1:])
    negligible = 10 * max(rows, columns) * epsilon(stack)
    if _seems_regular(random_combinations(stack, rng, 1)[0, ...], negligible, rng):
        return min(rows, columns)
    # One combination can be nearly singular by chance; the matrices side by side, or one above the other, cannot.
    joined = xp.permute_dims(stack, (1, 0, 2) if rows <= columns else (2, 0, 1))
    singular_values = np.linalg.svd(to_host(xp.reshape(joined, (joined.shape[0], -1))), compute_uv=False)
    return int(np.count_nonzero(singular_values > negligible * singular_values[0]))


def _seems_regular(matrix: Array, negligible: float, rng: np.random.Generator) -> bool:
    """Return whether a random right-hand side has a solution of moderate size: one LU decomposition, not an SVD."""
    xp = array_namespace(matrix)
    rows, columns = matrix.shape
    if rows > columns:
        matrix, rows, columns = xp.matrix_transpose(matrix), columns, rows
    if rows < columns:
        matrix = matrix @ asarray_like(rng.standard_normal((columns, rows)), matrix)
    target = asarray_like(rng.standard_normal((rows, 1)), matrix)
    try:
        solution = xp.linalg.solve(matrix, target)
    except (np.linalg.LinAlgError, RuntimeError):  # torch raises a RuntimeError
        return False
    norms = [float(xp.linalg.vector_norm(array)) for array in (solution, matrix, target)]
    return norms[0] * norms[1] * negligible < norms[2]


def _dominant_range(stack: Array, rank: int, axis: int) -> Array:
    """Return the leading eigenvectors of sum_l M_l M_l^H (axis 1) or sum_l M_l^T conj(M_l) (axis 2)."""
    xp = array_namespace(stack)
    n, rows, columns = stack.shape
    if axis == 1:
        joined = _side_by_side(stack)
        gram = joined @ adjoint(joined)
    else:
        joined = xp.reshape(stack, (n * rows, columns))
        gram = xp.matrix_transpose(joined) @ conjugate(joined)
    return xp.flip(eigenpairs(gram)[1][:, -rank:], axis=1)


def compress(stack: Array, left: Array | None, right: Array | None) -> Array:
    """Return Q^H M_l conj(R) for bases Q and R of the ranges; None stands for the identity."""
    if right is not None:
        stack = stack @ conjugate(right)
    return stack if left is None else adjoint(left) @ stack


class MatrixStack:
    """A stack of matrices laid out as (rows, n, columns), so that a change of basis is one matrix product.

    Parameters
    ----------
    matrices : array of shape (n, rows, columns)
        The matrices.
    cached : bool
        Whether the layout is kept for further products.
    """

    def __init__(self, matrices: Array, *, cached: bool = True) -> None:
        self.matrices = matrices
        self._cached = cached

    @cached_property
    def _is_elsewhere(self) -> bool:
        n, rows, columns = (int(size) for size in self.matrices.shape)
        return not on_host(self.matrices) and max(rows, columns) * max(n, rows) <= STEP_ON_HOST

    def here(self, array: Array) -> Array:
        """Return an array where steps are computed: on the host if it is small and the matrices are elsewhere."""
        return to_host(array) if self._is_elsewhere else array

    def there(self, array: Array) -> Array:
        """Return an array where the matrices are."""
        return to_namespace(array, self.matrices)

    @cached_property
    def is_hermitian(self) -> bool:
        """Whether the matrices are complex and Hermitian."""
        return is_hermitian(self.matrices)

    def mirrored(self, array: Array) -> Array:
        """Return the conjugate if the matrices are Hermitian, and the array itself otherwise.

        The inverse factors of the right side are the mirrored ones of the left side, and ``D_ji`` is ``D_ij`` mirrored.
        """
        return conjugate(array) if self.is_hermitian else array

    @cached_property
    def _layout(self) -> Array:
        return _side_by_side(self.matrices)

    def transformed(self, inverse: Array) -> Iterator[Array]:
        """Yield P = B M_l for one block of matrices after the other, as (k, n_block, columns); blocks share memory."""
        xp = array_namespace(inverse)
        k, (n, _, columns) = inverse.shape[0], self.matrices.shape
        for start in range(0, n, self._block_size):
            stop = min(start + self._block_size, n)
            if self._cached:
                block = self._layout[:, start * columns : stop * columns]
            else:
                block = _side_by_side(self.matrices[start:stop, ...])
            yield xp.reshape(_product(inverse, block, self._buffer), (k, -1, columns))

    def entries(self, inverse: Array) -> Array:
        """Return all D_l = B M_l B^T, or B M_l B^H if they are Hermitian, as (k, n, k)."""
        xp, (n, _, columns) = array_namespace(inverse), self.matrices.shape
        product = xp.reshape(inverse @ self._layout, (-1, columns))
        return xp.reshape(product @ xp.matrix_transpose(self.mirrored(inverse)), (-1, n, inverse.shape[0]))

    @cached_property
    def _block_size(self) -> int:
        n, rows, columns = (int(size) for size in self.matrices.shape)
        elements = CACHED_ELEMENTS if on_host(self.matrices) else 2**27  # 1 GB keeps accelerators busy
        return min(n, max(1, elements // (rows * columns)))

    @cached_property
    def _buffer(self) -> Array | None:
        rows, columns = self.matrices.shape[1:]
        return _buffer(self._block_size * max(rows, columns) * columns, self.matrices)

    def moments(self, inverse: Array, other: Array, probe: Array | None = None) -> tuple[Array, Array, Array]:
        r"""Return d (k, n), Y (k, columns) with :math:`Y_{ib} = \sum_l \bar d_{il} P_{ilb}`, and the probed energy.

        The probed energy is :math:`\sum_l |(D_l - \mathrm{diag} D_l) g|_i^2` for each i, with g the vector of signs in
        `probe`: an unbiased estimate of the off-diagonal energy. Unlike the difference of the total and the diagonal
        energy, it has no cancellation.
        """
        inverse, other = self.there(inverse), self.there(other)
        xp = array_namespace(inverse)
        columns = other[:, :, None]
        if probe is not None:
            probe = self.there(probe)
            probed = xp.broadcast_to((probe @ other)[None, :, None], columns.shape)
            columns = xp.concat([columns, probed], axis=2)
        diagonals, sums, energy = [], 0.0, 0.0
        for product in self.transformed(inverse):
            projected = product @ columns
            diagonal = projected[:, :, 0]
            diagonals.append(diagonal)
            sums = sums + (conjugate(diagonal)[:, None, :] @ product)[:, 0, :]
            if probe is not None:
                energy = energy + xp.sum(squared_magnitudes(projected[:, :, 1] - diagonal * probe[:, None]), axis=1)
        return self.here(xp.concat(diagonals, axis=1)), self.here(sums), energy if probe is None else self.here(energy)

    def residuals(self, inverse: Array, other: Array, sample_weight: Array | None) -> tuple[Array, Array]:
        r"""Return the diagonals (n, k), and :math:`\sum_l w_l |D_l|_{ij}^2` (k, k) with a diagonal of zeros.

        This needs all entries of the :math:`D_l`, another matrix product.
        """
        inverse, other = self.there(inverse), self.there(other)
        xp = array_namespace(inverse)
        right = xp.matrix_transpose(other)
        diagonals, start = [], 0
        energy: Array = 0.0
        buffer = _buffer(inverse.shape[0] * self._block_size * other.shape[0], right)
        for product in self.transformed(inverse):
            k, n, columns = product.shape
            entries = _product(xp.reshape(product, (k * n, columns)), right, buffer)
            entries = xp.reshape(entries, (k, n, other.shape[0]))
            diagonals.append(xp.asarray(xp.linalg.diagonal(xp.permute_dims(entries, (1, 0, 2))), copy=True))
            if is_complex(entries):
                squares = squared_magnitudes(entries)
            else:
                squares = entries
                squares *= squares
            if sample_weight is not None:
                squares *= sample_weight[None, start : start + n, None]
            energy = energy + xp.sum(squares, axis=1)
            start += n
        energy = energy * (1 - identity(energy.shape[0], energy))
        return self.here(xp.concat(diagonals, axis=0)), self.here(energy)


class TwoSidedStack:
    """A stack and its transposes, each laid out for its own product."""

    def __init__(self, matrices: Array) -> None:
        self.matrices = matrices
        self.rows = MatrixStack(matrices)
        self._columns = MatrixStack(array_namespace(matrices).matrix_transpose(matrices))
        self.here = self.rows.here

    def moments(self, point: Array, probe: Array) -> tuple[Array, Array, Array, Array]:
        r"""Return d, :math:`\sum_l \bar d_{jl} (D_l)_{ij}`, :math:`\sum_l \bar d_{il} (D_l)_{ij}`, and the energy."""
        xp, left, right = array_namespace(point), point[0, ...], point[1, ...]
        diagonals, sums, energy = self.rows.moments(left, right, probe)
        _, other_sums, _ = self._columns.moments(right, left)
        return diagonals, left @ xp.matrix_transpose(other_sums), sums @ xp.matrix_transpose(right), energy


def _side_by_side(stack: Array) -> Array:
    xp = array_namespace(stack)
    return xp.reshape(xp.permute_dims(stack, (1, 0, 2)), (stack.shape[1], -1))


def _buffer(size: int, reference: Array) -> Array | None:
    """Return memory for products if the library can write into it: new memory would cost a quarter of a product."""
    if not is_mutable(reference):
        return None
    return array_namespace(reference).empty(size, dtype=reference.dtype, device=device(reference))


def _product(left: Array, right: Array, buffer: Array | None) -> Array:
    """Return the product of two matrices, in the buffer if there is one."""
    if buffer is None:
        return left @ right
    xp, shape = array_namespace(left), (left.shape[0], right.shape[1])
    return xp.matmul(left, right, out=xp.reshape(buffer[: shape[0] * shape[1]], shape))
