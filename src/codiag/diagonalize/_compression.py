r"""The range that the factors of a stack lie in, and the stack compressed to it.

How quickly plain steps approach a fixed point, by first-order theory.

Near a fixed point a plain step multiplies the distance from it by a rate that the residuals determine. With
:math:`r_{ij}` the root of the energy left at the pair (i, j) of k components in n matrices, in units of the diagonals,
and :math:`g_{ij}` the gap between these, entries of random sign give

.. math:: q = \max_{ij} \, (2 c\, r_{ij} + 2 (1 + c)^2 r_{ij}^2) / g_{ij}, \quad c = \sqrt{k / n},

from the largest singular value of a random matrix. Below one the steps contract and the fixed point is alone in its
neighborhood; otherwise first-order theory promises nothing, and other starts may end lower.

The one large product of a step, and everything a step needs from it.

With `B` the current inverse factors, :math:`D_l = B M_l C^\top` and :math:`d_{il} = (D_l)_{ii}`, the Newton-like
methods need only :math:`d` and :math:`y_{ij} = \sum_l d_{jl} (D_l)_{ij}`. Both come from
:math:`P_{ilb} = \sum_a B_{ia} (M_l)_{ab}`, a single matrix product of :math:`2 n d^3` operations followed by
matrix-vector passes over `P`; the transformed matrices :math:`D_l` are never formed.

First steps on a few random combinations of many matrices.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property

import numpy as np
from array_api_compat import device

from codiag._arrays import Array, array_namespace, double, epsilon, identity, is_mutable, like, on_host, to_host
from codiag._checks import as_rank


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


def contraction(ratio: Array, gaps: Array, n: int) -> Array:
    """Return the rate q, from the residuals of pairs in units of the diagonals, and the gaps."""
    xp = array_namespace(gaps)
    c = math.sqrt(gaps.shape[-1] / n)
    rates = (2 * c * ratio + 2 * (1 + c) ** 2 * ratio**2) / xp.where(gaps > 0, gaps, xp.ones_like(gaps))
    return xp.max(xp.where(gaps > 0, rates, xp.zeros_like(rates)))


CACHED_ELEMENTS, DEVICE_ELEMENTS = 2**17, 2**27
"""Elements of the intermediate product, on the host (what a cache holds) and on an accelerator (what fills it)."""


class Slabs:
    """A stack of matrices laid out as (rows, n, columns), so that a change of basis is one matrix product.

    The layout is kept for further products, unless there is to be one only.
    """

    def __init__(self, stack: Array, *, keep: bool = True) -> None:
        self.stack = stack
        self._keep = keep

    @cached_property
    def _layout(self) -> Array:
        return _side_by_side(self.stack)

    def transformed(self, inverse: Array) -> Iterator[Array]:
        """Yield P = B M_l for one slab of matrices after the other, as (k, n_slab, columns), in a buffer."""
        xp = array_namespace(inverse)
        k, (n, _, columns) = inverse.shape[0], self.stack.shape
        for start in range(0, n, self._slab_size):
            stop = min(start + self._slab_size, n)
            if self._keep:
                slab = self._layout[:, start * columns : stop * columns]
            else:
                slab = _side_by_side(self.stack[start:stop, ...])
            yield xp.reshape(_product(inverse, slab, self._buffer), (k, -1, columns))

    @cached_property
    def _slab_size(self) -> int:
        n, rows, columns = (int(size) for size in self.stack.shape)
        elements = CACHED_ELEMENTS if on_host(self.stack) else DEVICE_ELEMENTS
        return min(n, max(1, elements // (rows * columns)))

    @cached_property
    def _buffer(self) -> Array | None:
        rows, columns = self.stack.shape[1:]
        return _buffer(self._slab_size * max(rows, columns) * columns, self.stack)

    def moments(self, inverse: Array, other: Array, probe: Array | None = None) -> tuple[Array, Array, Array]:
        r"""Return d (k, n), Y (k, columns) with :math:`Y_{ib} = \sum_l d_{il} P_{ilb}`, and the probed energy.

        The last is :math:`\sum_l ((D_l - \mathrm{diag} D_l) g)_i^2` for each i and the vector g of signs in `probe`: an
        unbiased estimate of the off-diagonal energy that, unlike total minus diagonal, loses no digits.
        """
        xp = array_namespace(inverse)
        columns = other[:, :, None]
        if probe is not None:
            mixed = xp.broadcast_to((probe @ other)[None, :, None], columns.shape)
            columns = xp.concat([columns, mixed], axis=2)
        diagonals, sums, energy = [], 0.0, 0.0
        for product in self.transformed(inverse):
            projected = product @ columns
            diagonal = projected[:, :, 0]
            diagonals.append(diagonal)
            sums = sums + (diagonal[:, None, :] @ product)[:, 0, :]
            if probe is not None:
                energy = energy + xp.sum((projected[:, :, 1] - diagonal * probe[:, None]) ** 2, axis=1)
        return xp.concat(diagonals, axis=1), sums, energy

    def residuals(self, inverse: Array, other: Array, weights: Array | None) -> tuple[Array, Array]:
        r"""Return the diagonals (n, k) and :math:`\sum_l w_l (D_l)_{ij}^2` off the diagonal, which needs the full D."""
        xp = array_namespace(inverse)
        right = xp.matrix_transpose(other)
        diagonals, start = [], 0
        energy: Array = 0.0
        buffer = _buffer(inverse.shape[0] * self._slab_size * other.shape[0], right)
        for product in self.transformed(inverse):
            k, n, columns = product.shape
            entries = _product(xp.reshape(product, (k * n, columns)), right, buffer)
            squares = xp.reshape(entries, (k, n, other.shape[0]))
            diagonals.append(xp.asarray(xp.linalg.diagonal(xp.permute_dims(squares, (1, 0, 2))), copy=True))
            squares *= squares
            if weights is not None:
                squares *= weights[None, start : start + n, None]
            energy = energy + xp.sum(squares, axis=1)
            start += n
        return xp.concat(diagonals, axis=0), energy * (1 - identity(energy.shape[0], energy))


class TwoSidedSlabs:
    """A stack and its transposes, each laid out for its own product."""

    def __init__(self, stack: Array) -> None:
        self.stack = stack
        self.rows = Slabs(stack)
        self._columns = Slabs(array_namespace(stack).matrix_transpose(stack))

    def moments(self, point: Array, probe: Array) -> tuple[Array, Array, Array, Array]:
        r"""Return d, :math:`y^1_{ij} = \sum_l d_{jl} D_{ij}`, :math:`y^2_{ij} = \sum_l d_{il} D_{ij}`, energy."""
        xp = array_namespace(point)
        left, right = point[0, ...], point[1, ...]
        diagonals, sums, energy = self.rows.moments(left, right, probe)
        _, other_sums, _ = self._columns.moments(right, left)
        return diagonals, left @ xp.matrix_transpose(other_sums), sums @ xp.matrix_transpose(right), energy


def _side_by_side(stack: Array) -> Array:
    xp = array_namespace(stack)
    return xp.reshape(xp.permute_dims(stack, (1, 0, 2)), (stack.shape[1], -1))


def _buffer(size: int, reference: Array) -> Array | None:
    """Return memory for products, where the library writes into it: fresh pages would cost a quarter of a product."""
    if not is_mutable(reference):
        return None
    return array_namespace(reference).empty(size, dtype=reference.dtype, device=device(reference))


def _product(left: Array, right: Array, buffer: Array | None) -> Array:
    """Return the product of two matrices, in the buffer if there is one."""
    if buffer is None:
        return left @ right
    xp, shape = array_namespace(left), (left.shape[0], right.shape[1])
    return xp.matmul(left, right, out=xp.reshape(buffer[: shape[0] * shape[1]], shape))


def random_combinations(stack: Array, rng: np.random.Generator, count: int) -> Array:
    """Return `count` combinations of the matrices with Gaussian coefficients, in double precision."""
    xp = array_namespace(stack)
    n, rows, columns = stack.shape
    coefficients = like(rng.standard_normal((count, n)), stack)
    mixed = coefficients @ xp.reshape(stack, (n, rows * columns))
    return double(xp.reshape(mixed, (count, rows, columns)))
