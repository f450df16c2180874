r"""The one large product of a step, and everything a step needs from it.

With `B` the current inverse factors, :math:`D_l = B M_l C^\top` and :math:`d_{il} = (D_l)_{ii}`, the Newton-like
methods need only :math:`d` and :math:`y_{ij} = \sum_l d_{jl} (D_l)_{ij}`. Both come from
:math:`P_{ilb} = \sum_a B_{ia} (M_l)_{ab}`, a single matrix product of :math:`2 n d^3` operations followed by
matrix-vector passes over `P`; the transformed matrices :math:`D_l` are never formed.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from array_api_compat import device

from codiag._array import Array, array_namespace, identity, is_mutable, on_host

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
