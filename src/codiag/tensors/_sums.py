"""Sums over the entries of a tensor, requested together so that one pass over the data computes them all."""

from __future__ import annotations

import logging
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, TypeVar

import numpy as np

from codiag._arrays import (
    Array,
    array_namespace,
    inner_product_of,
    on_host,
    to_double,
    to_double_if_cheap,
    to_namespace,
)
from codiag._progress import tell

if TYPE_CHECKING:
    from codiag.tensors._base import Tensor

reads = logging.getLogger("codiag.reads")
"""Logger of passes over data, at level DEBUG, one record for each part: see `logged`."""

Ranges: TypeAlias = Sequence[slice]
"""The position of a block in a tensor: a slice with start and stop for every mode."""

Contributions: TypeAlias = dict[tuple[int, ...], Any]
"""The contribution of a block to a sum. Contributions of blocks are added key by key: see `added`."""

Part = TypeVar("Part")


class Sum(ABC):
    """A request for a sum over all entries of a tensor; each kind of storage computes it in its own way.

    For a tensor in blocks, the sum is the total of contributions of the blocks, added in any order and grouping:

    >>> import numpy as np
    >>> from codiag.tensors import DenseTensor
    >>> from codiag.tensors._sums import SquaredNorm, added
    >>> tensor = DenseTensor(np.arange(24.0).reshape(2, 3, 4))
    >>> request, shares = SquaredNorm(), {}
    >>> for rows in (slice(0, 1), slice(1, 2)):
    ...     ranges = (rows, slice(0, 3), slice(0, 4))
    ...     (result,) = DenseTensor(tensor.to_dense()[ranges]).read(request.restricted_to(ranges))
    ...     shares = added(shares, request.shares(result, ranges))
    >>> request.total(shares, tensor) == tensor.squared_norm()
    True

    Requests can be pickled and are immutable.
    """

    @abstractmethod
    def of(self, tensor: Tensor) -> Any:
        """Return the sum, by the method of the tensor that computes it."""

    @abstractmethod
    def restricted_to(self, ranges: Ranges) -> Sum:
        """Return the request for the block at these ranges, which is a tensor itself."""

    @abstractmethod
    def shares(self, result: Any, ranges: Ranges) -> Contributions:
        """Return the contribution of the block at these ranges, from the result of the request `restricted_to` them."""

    @abstractmethod
    def total(self, shares: Mapping[tuple[int, ...], Any], tensor: Tensor) -> Any:
        """Return the sum over a tensor, from the added contributions of all of its blocks."""

    @abstractmethod
    def over(self, chunk: Chunk) -> Contributions:
        """Return the contribution of a part of a dense tensor."""

    def before_scaling(self, scale: float) -> Sum:
        """Return the request to a tensor whose result determines this sum over `scale` times the tensor."""
        return self

    @abstractmethod
    def after_scaling(self, result: Any, scale: float) -> Any:
        """Return the sum over `scale` times a tensor, from the result of `before_scaling` for the tensor."""

    def last_columns(self, order: Sequence[int]) -> Array | None:
        """Return the array that the last mode in this order is multiplied by in the first step, or None."""
        return None

    @property
    def width(self) -> int:
        """Number of columns of intermediate products with the entries."""
        return 0

    forms_entries: ClassVar[bool] = False
    """Whether an array of the size of the entries is formed."""


def added(first: Mapping[tuple[int, ...], Any], second: Mapping[tuple[int, ...], Any]) -> Contributions:
    """Return the sum of two contributions, key by key; associative."""
    total = dict(first)
    for key, share in second.items():
        total[key] = total[key] + share if key in total else share
    return total


def logged(parts: Iterable[Part], n_parts: int, shape: Sequence[int], sums: Sequence[object]) -> Iterator[Part]:
    """Yield the parts of one pass over the data, and log each part after it has been processed.

    Every pass of every tensor over its entries uses this function. Records have the attributes `shape` (of the tensor),
    `part` (from 1) and `n_parts`, from which a handler of the logger ``codiag.reads`` counts passes and their parts.
    """
    for number, part in enumerate(parts, 1):
        yield part
        if n_parts > 1:
            tell("part %d of %d of the data", number, n_parts)
        if reads.isEnabledFor(logging.DEBUG):
            place = {"shape": tuple(shape), "part": number, "n_parts": n_parts}
            names = ", ".join(type(request).__name__ for request in sums) or "entries"
            reads.debug("read %s of %s: part %d of %d", names, tuple(shape), number, n_parts, extra=place)


class SquareSum(Sum):
    """A sum of squares over all entries: a float."""

    def shares(self, result: float, ranges: Ranges) -> Contributions:
        return {(): result}

    def total(self, shares: Mapping[tuple[int, ...], Any], tensor: Tensor) -> float:
        return float(shares[()])

    def after_scaling(self, result: float, scale: float) -> float:
        return scaled_square(result, scale)


@dataclass(frozen=True, eq=False)
class SquaredNorm(SquareSum):
    """The sum of the squares of all entries: a float, not finite if an entry is not."""

    def of(self, tensor: Tensor) -> float:
        return tensor.squared_norm()

    def restricted_to(self, ranges: Ranges) -> SquaredNorm:
        return self

    def over(self, chunk: Chunk) -> Contributions:
        return {(): _squares(chunk.rows_of_last)}


@dataclass(frozen=True, eq=False)
class SquaredDistance(SquareSum):
    r"""The sum of the squares of :math:`T - \sum_i w_i a_i \otimes b_i \otimes \dots`, entry by entry: a float."""

    weights: Array
    factors: Sequence[Array]
    is_far: bool = False
    """Whether the distance is so large that entries may be subtracted in single precision if they are in that."""

    forms_entries = True

    def of(self, tensor: Tensor) -> float:
        return tensor.squared_distance(self.weights, self.factors)

    def restricted_to(self, ranges: Ranges) -> SquaredDistance:
        return SquaredDistance(self.weights, _rows(self.factors, ranges), self.is_far)

    def over(self, chunk: Chunk) -> Contributions:
        entries = chunk.rows_of_last if self.is_far else to_double_if_cheap(chunk.rows_of_last)
        xp = array_namespace(entries)
        first, *others, last = (to_namespace(self.factors[mode], entries) for mode in chunk.order)
        columns = khatri_rao([first[chunk.rows, :] * to_namespace(self.weights, entries), *others])
        gap = columns @ xp.matrix_transpose(last)
        gap -= entries  # in place if the library can: another array of this size would cost as much as the product
        return {(): _squares(gap)}

    def before_scaling(self, scale: float) -> SquaredDistance:
        return SquaredDistance(to_double(self.weights) * (1 / scale), self.factors, self.is_far)

    @property
    def width(self) -> int:
        return int(self.weights.shape[0])


@dataclass(frozen=True, eq=False)
class Products(Sum):
    """The products of `Tensor.mttkrp` for some modes, by default all: a list of arrays (d_m, r)."""

    factors: Sequence[Array]
    modes: Sequence[int] | None = None

    def of(self, tensor: Tensor) -> list[Array]:
        if self.modes is None:
            return tensor.mttkrps(self.factors)
        return [tensor.mttkrp(self.factors, mode) for mode in self.modes]

    def restricted_to(self, ranges: Ranges) -> Products:
        return Products(_rows(self.factors, ranges), self.modes)

    def shares(self, result: Sequence[Array], ranges: Ranges) -> Contributions:
        return {(mode, ranges[mode].start): rows for mode, rows in zip(self._modes, result, strict=True)}

    def total(self, shares: Mapping[tuple[int, ...], Any], tensor: Tensor) -> list[Array]:
        return [_joined({key[1:]: rows for key, rows in shares.items() if key[0] == mode}, [0]) for mode in self._modes]

    def over(self, chunk: Chunk) -> Contributions:
        ordered = [self.factors[chunk.order[0]][chunk.rows, :], *(self.factors[mode] for mode in chunk.order[1:])]
        products = []
        for mode in self._modes:
            axis = chunk.order.index(mode)
            if axis == len(ordered) - 1:
                columns = khatri_rao(ordered[:-1])
                xp = array_namespace(columns)
                products.append(xp.matrix_transpose(xp.matrix_transpose(columns) @ chunk.rows_of_last))
            else:
                products.append(contract_pairwise(chunk.times_last(ordered[-1]), ordered, axis))
        return self.shares(products, chunk.ranges)

    def after_scaling(self, result: Sequence[Array], scale: float) -> list[Array]:
        return [scale * product for product in result]

    def last_columns(self, order: Sequence[int]) -> Array | None:
        return None if self._modes == [order[-1]] else self.factors[order[-1]]

    @property
    def width(self) -> int:
        return int(self.factors[0].shape[1])

    @property
    def _modes(self) -> list[int]:
        return list(range(len(self.factors)) if self.modes is None else self.modes)


@dataclass(frozen=True, eq=False)
class Core(Sum):
    """The tensor with modes multiplied by transposed bases (d_m, k_m), or unchanged for None: `Tensor.compress`."""

    bases: Sequence[Array | None]

    def of(self, tensor: Tensor) -> Tensor:
        return tensor.compress(*self.bases)

    def restricted_to(self, ranges: Ranges) -> Core:
        pairs = zip(self.bases, ranges, strict=True)
        return Core(tuple(None if basis is None else basis[rows, :] for basis, rows in pairs))

    def shares(self, result: Tensor, ranges: Ranges) -> Contributions:
        return {tuple(ranges[mode].start for mode in self._open): result.to_dense()}

    def total(self, shares: Mapping[tuple[int, ...], Any], tensor: Tensor) -> Tensor:
        return tensor._compressed(_joined(shares, self._open), self.bases)

    def over(self, chunk: Chunk) -> Contributions:
        ordered = [self.bases[mode] for mode in chunk.order]
        core = chunk.block if ordered[-1] is None else chunk.times_last(ordered[-1])
        for axis in range(len(ordered) - 2, 0, -1):
            core = core if ordered[axis] is None else _contract(core, ordered[axis], axis)
        if ordered[0] is not None:
            core = _contract(core, ordered[0][chunk.rows, :], 0)
        turned = array_namespace(core).permute_dims(core, tuple(np.argsort(chunk.order).tolist()))
        return {tuple(chunk.ranges[mode].start for mode in self._open): turned}

    def after_scaling(self, result: Tensor, scale: float) -> Tensor:
        return result * scale

    def last_columns(self, order: Sequence[int]) -> Array | None:
        return self.bases[order[-1]]

    @property
    def _open(self) -> list[int]:
        return [mode for mode, basis in enumerate(self.bases) if basis is None]


@dataclass(frozen=True, eq=False)
class Chunk:
    """A part of a dense tensor along one mode, in memory.

    Attributes
    ----------
    block : array
        Its entries, with the modes in the order of storage.
    order : tuple of ints
        The modes in the order of storage; the tensor is split along the first of them.
    rows : slice
        Its indices in the first of these modes.
    shape : tuple of ints
        The shape of the tensor.
    joined : array, optional
        The arrays by which the requests multiply the last mode, side by side.
    columns : sequence of arrays
        The same arrays separately.
    """

    block: Array
    order: tuple[int, ...]
    rows: slice
    shape: tuple[int, ...]
    joined: Array | None = None
    columns: Sequence[Array] = ()

    @property
    def ranges(self) -> list[slice]:
        return [self.rows if mode == self.order[0] else slice(0, size) for mode, size in enumerate(self.shape)]

    @cached_property
    def rows_of_last(self) -> Array:
        """The entries as a matrix whose rows run along the last mode."""
        return array_namespace(self.block).reshape(self.block, (-1, self.block.shape[-1]))

    @cached_property
    def _product(self) -> Array:
        return self.rows_of_last @ self.joined

    def times_last(self, columns: Array) -> Array:
        """Return the last mode multiplied by columns, which is a part of the product with all joined columns."""
        start = 0
        for known in self.columns:
            if known is columns:
                break
            start += known.shape[1]
        product = self._product[:, start : start + columns.shape[1]]
        return array_namespace(product).reshape(product, (*self.block.shape[:-1], columns.shape[1]))


def multiplied(entries: np.ndarray, matrices: Sequence[np.ndarray]) -> np.ndarray:
    """Return a NumPy array multiplied by a matrix in each mode."""
    for mode, matrix in enumerate(matrices):
        entries = np.moveaxis(np.tensordot(matrix, entries, axes=(1, mode)), 0, mode)
    return entries


def khatri_rao(factors: Sequence[Array]) -> Array:
    """Return the columnwise Kronecker product, shape (..., d_0 d_1 ..., r), the first factor varying slowest."""
    xp = array_namespace(factors[0])
    product = factors[0]
    for factor in factors[1:]:
        both = product[..., :, None, :] * factor[..., None, :, :]
        product = xp.reshape(both, (*both.shape[:-3], -1, both.shape[-1]))
    return product


def products_of(entries: Array, factors: Sequence[Array], modes: Iterable[int]) -> list[Array]:
    """Return the products of `Tensor.mttkrp` of an array in memory for some modes.

    Those of all modes but the first are of what the first factor leaves of the array.
    """
    xp, (size, rank) = array_namespace(entries), factors[0].shape
    side, products, inner = xp.reshape(entries, (size, -1)), [], None
    turned = [factor.T for factor in factors]
    for mode in modes:
        if mode == 0:
            products.append(side @ khatri_rao(factors[1:]))
            continue
        if inner is None:
            inner = xp.reshape(turned[0] @ side, (rank, *entries.shape[1:]))
        left = inner
        for other in range(len(factors) - 1, mode, -1):
            left = (left @ xp.reshape(turned[other], (rank, *[1] * (left.ndim - 3), -1, 1)))[..., 0]
        for other in range(1, mode):
            flat = turned[other][:, None, :] @ xp.reshape(left, (*left.shape[:2], -1))
            left = xp.reshape(flat, (rank, *left.shape[2:]))
        products.append(left.T)
    return products


def _rows(factors: Sequence[Array], ranges: Ranges) -> tuple[Array, ...]:
    return tuple(factor[rows, :] for factor, rows in zip(factors, ranges, strict=True))


def _joined(parts: Mapping[tuple[int, ...], Array], axes: Sequence[int]) -> Array:
    """Concatenate arrays along axes; keys are the indices at which they start."""
    if not axes:
        return parts[()]
    starts = sorted({key[0] for key in parts})
    whole = [_joined({key[1:]: part for key, part in parts.items() if key[0] == start}, axes[1:]) for start in starts]
    return whole[0] if len(whole) == 1 else array_namespace(whole[0]).concat(whole, axis=axes[0])


def _squares(entries: Array) -> Array:
    """Return the sum of squares as an array, in double precision if possible, without waiting for the device.

    On an accelerator the squares of each row are added in the precision of the entries, which saves a copy of them: a
    row is a small share of the sum, and rounding errors of the rows are independent.
    """
    if not on_host(entries):
        entries = array_namespace(entries).linalg.vector_norm(entries, axis=-1)
    entries = to_double_if_cheap(entries)
    xp = array_namespace(entries)
    flat = xp.reshape(entries, (-1,))
    return inner_product_of(flat, flat)


def scaled_square(square: float, scale: float) -> float:
    """Return a square multiplied by the square of a scale, without overflow of the latter."""
    size = scale * math.sqrt(square)
    return size * size  # infinite on overflow, unlike a power, which raises


def _contract(block: Array, basis: Array, axis: int) -> Array:
    """Multiply one axis by the transpose of a basis, without a copy of the block in another order."""
    xp = array_namespace(block)
    shape = block.shape
    product = xp.matrix_transpose(basis) @ xp.reshape(block, (*shape[:axis], shape[axis], -1))
    return xp.reshape(product, (*shape[:axis], basis.shape[1], *shape[axis + 1 :]))


def contract_pairwise(half: Array, factors: Sequence[Array], axis: int) -> Array:
    """Contract all axes but one and the last of (d_0, ..., d_{N-2}, r) with factors, column by column."""
    xp = array_namespace(half)
    for other in range(half.ndim - 2, -1, -1):
        if other != axis:
            shape = (factors[other].shape[0], *[1] * (half.ndim - 2 - other), factors[other].shape[1])
            half = xp.sum(half * xp.reshape(factors[other], shape), axis=other)
    return half
