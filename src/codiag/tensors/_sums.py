"""Sums over the entries of a tensor, asked for together so that one pass over the data gives them all."""

from __future__ import annotations

import logging
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np
from array_api_compat import array_namespace

from codiag._arrays import Array, double, like, moved, precise

if TYPE_CHECKING:
    from codiag.tensors._base import Tensor

reads = logging.getLogger("codiag.reads")
"""Where passes over data are logged, at DEBUG, part by part: see `logged`."""

Ranges: TypeAlias = Sequence[slice]
"""The place of a block in a tensor: for every mode a slice with a start and a stop."""

Shares: TypeAlias = dict[tuple[int, ...], Any]
"""What a block contributes to a sum. Contributions of two blocks are added key by key: see `added`."""

Part = TypeVar("Part")


class Sum(ABC):
    """A sum over all entries of a tensor, as data: what is to be computed, not how.

    Of a tensor that lies in blocks it is computed block by block, wherever they are, in any order and grouping:

    >>> import numpy as np
    >>> from codiag.tensors import DenseTensor
    >>> from codiag.tensors._sums import SquaredNorm, added
    >>> tensor = DenseTensor(np.arange(24.0).reshape(2, 3, 4))
    >>> asked, shares = SquaredNorm(), {}
    >>> for rows in (slice(0, 1), slice(1, 2)):
    ...     ranges = (rows, slice(0, 3), slice(0, 4))
    ...     (result,) = DenseTensor(tensor.to_dense()[ranges]).read(asked.within(ranges))
    ...     shares = added(shares, asked.shares(result, ranges))
    >>> asked.total(shares, tensor) == tensor.squared_norm()
    True

    Objects can be pickled and are never changed.
    """

    @abstractmethod
    def of(self, tensor: Tensor) -> Any:
        """Return the sum by the tensor's own method for it."""

    @abstractmethod
    def within(self, ranges: Ranges) -> Sum:
        """Return what to ask of the block at these ranges, as a tensor of its own."""

    @abstractmethod
    def shares(self, result: Any, ranges: Ranges) -> Shares:
        """Return what the block at these ranges contributes, from the result of `within` for it."""

    @abstractmethod
    def total(self, shares: Mapping[tuple[int, ...], Any], tensor: Tensor) -> Any:
        """Return the sum over a tensor from the contributions of all of its blocks, added."""

    @abstractmethod
    def over(self, slab: Slab) -> Shares:
        """Return what an array in memory contributes."""

    @abstractmethod
    def multiple(self, result: Any, scale: float) -> Any:
        """Return the sum over a multiple of a tensor, from what `of_multiple` gave for the tensor itself."""

    def of_multiple(self, scale: float) -> Sum:
        """Return what to ask of a multiple of a tensor to know this sum of the tensor itself."""
        return self

    def last_columns(self, order: Sequence[int]) -> Array | None:
        """Return what the last mode in this order is multiplied by, or None where that is not the first to be done."""
        return None

    @property
    def width(self) -> int:
        """Columns that products with entries have on the way."""
        return 0


def added(first: Mapping[tuple[int, ...], Any], second: Mapping[tuple[int, ...], Any]) -> Shares:
    """Return contributions of two parts of a tensor together; associative."""
    total = dict(first)
    for key, share in second.items():
        total[key] = total[key] + share if key in total else share
    return total


def logged(parts: Iterable[Part], n_parts: int, shape: Sequence[int], asked: Sequence[object]) -> Iterator[Part]:
    """Yield the parts of one pass over the data, and log each once it has been worked on.

    Every pass of every tensor over its entries goes through here. Records have the attributes `shape` (of the tensor),
    `part` (from 1) and `n_parts`: a handler of the logger ``codiag.reads`` counts passes, and fractions of them.
    """
    for number, part in enumerate(parts, 1):
        yield part
        if reads.isEnabledFor(logging.DEBUG):
            place = {"shape": tuple(shape), "part": number, "n_parts": n_parts}
            names = ", ".join(type(one).__name__ for one in asked) or "entries"
            reads.debug("read %s of %s: part %d of %d", names, tuple(shape), number, n_parts, extra=place)


@dataclass(frozen=True, eq=False)
class SquaredNorm(Sum):
    """The sum of the squares of all entries: a float, not finite where an entry is not."""

    def of(self, tensor: Tensor) -> float:
        return tensor.squared_norm()

    def within(self, ranges: Ranges) -> SquaredNorm:
        return self

    def shares(self, result: float, ranges: Ranges) -> Shares:
        return {(): result}

    def total(self, shares: Mapping[tuple[int, ...], Any], tensor: Tensor) -> float:
        return float(shares[()])

    def over(self, slab: Slab) -> Shares:
        return {(): _squares(slab.rows_of_last)}

    def multiple(self, result: float, scale: float) -> float:
        return _squared_multiple(result, scale)


@dataclass(frozen=True, eq=False)
class SquaredDistance(Sum):
    r"""The sum of the squares of :math:`T - \sum_i w_i a_i \otimes b_i \otimes \dots`, entry by entry: a float."""

    weights: Array
    factors: Sequence[Array]

    def of(self, tensor: Tensor) -> float:
        return tensor.squared_distance(self.weights, self.factors)

    def within(self, ranges: Ranges) -> SquaredDistance:
        return SquaredDistance(self.weights, _rows(self.factors, ranges))

    def shares(self, result: float, ranges: Ranges) -> Shares:
        return {(): result}

    def total(self, shares: Mapping[tuple[int, ...], Any], tensor: Tensor) -> float:
        return float(shares[()])

    def over(self, slab: Slab) -> Shares:
        entries = precise(slab.rows_of_last)
        xp = array_namespace(entries)
        first, *others, last = (moved(self.factors[mode], entries) for mode in slab.order)
        columns = khatri_rao([first[slab.rows, :] * moved(self.weights, entries), *others])
        gap = columns @ xp.matrix_transpose(last)
        gap -= entries  # in place where the library can: another array as large would cost as much as the product
        return {(): _squares(gap)}

    def multiple(self, result: float, scale: float) -> float:
        return _squared_multiple(result, scale)

    def of_multiple(self, scale: float) -> SquaredDistance:
        return SquaredDistance(double(self.weights) * scale, self.factors)

    @property
    def width(self) -> int:
        return int(self.weights.shape[0])


@dataclass(frozen=True, eq=False)
class Products(Sum):
    """The products of `Tensor.mttkrp`, for all modes or some: a list of arrays (d_m, r), in the order of the modes."""

    factors: Sequence[Array]
    modes: Sequence[int] | None = None

    def of(self, tensor: Tensor) -> list[Array]:
        if self.modes is None:
            return tensor.mttkrps(self.factors)
        return [tensor.mttkrp(self.factors, mode) for mode in self.modes]

    def within(self, ranges: Ranges) -> Products:
        return Products(_rows(self.factors, ranges), self.modes)

    def shares(self, result: Sequence[Array], ranges: Ranges) -> Shares:
        return {(mode, ranges[mode].start): rows for mode, rows in zip(self._modes, result, strict=True)}

    def total(self, shares: Mapping[tuple[int, ...], Any], tensor: Tensor) -> list[Array]:
        return [_joined({key[1:]: rows for key, rows in shares.items() if key[0] == mode}, [0]) for mode in self._modes]

    def over(self, slab: Slab) -> Shares:
        ordered = [self.factors[slab.order[0]][slab.rows, :], *(self.factors[mode] for mode in slab.order[1:])]
        products = []
        for mode in self._modes:
            axis = slab.order.index(mode)
            if axis == len(ordered) - 1:
                columns = khatri_rao(ordered[:-1])
                xp = array_namespace(columns)
                products.append(xp.matrix_transpose(xp.matrix_transpose(columns) @ slab.rows_of_last))
            else:
                products.append(_contract_pairwise(slab.times_last(ordered[-1]), ordered, axis))
        return self.shares(products, slab.ranges)

    def multiple(self, result: Sequence[Array], scale: float) -> list[Array]:
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
    """The tensor with modes multiplied by transposed bases (d_m, k_m), None leaving a mode as it is: `Tensor.compress`.

    The result is a Tensor.
    """

    bases: Sequence[Array | None]

    def of(self, tensor: Tensor) -> Tensor:
        return tensor.compress(*self.bases)

    def within(self, ranges: Ranges) -> Core:
        pairs = zip(self.bases, ranges, strict=True)
        return Core(tuple(None if basis is None else basis[rows, :] for basis, rows in pairs))

    def shares(self, result: Tensor, ranges: Ranges) -> Shares:
        return {tuple(ranges[mode].start for mode in self._open): result.to_dense()}

    def total(self, shares: Mapping[tuple[int, ...], Any], tensor: Tensor) -> Tensor:
        return tensor._compressed(_joined(shares, self._open), self.bases)

    def over(self, slab: Slab) -> Shares:
        ordered = [self.bases[mode] for mode in slab.order]
        core = slab.block if ordered[-1] is None else slab.times_last(ordered[-1])
        for axis in range(len(ordered) - 2, 0, -1):
            core = core if ordered[axis] is None else _contract(core, ordered[axis], axis)
        if ordered[0] is not None:
            core = _contract(core, ordered[0][slab.rows, :], 0)
        turned = array_namespace(core).permute_dims(core, tuple(np.argsort(slab.order).tolist()))
        return {tuple(slab.ranges[mode].start for mode in self._open): turned}

    def multiple(self, result: Tensor, scale: float) -> Tensor:
        return result * scale

    def last_columns(self, order: Sequence[int]) -> Array | None:
        return self.bases[order[-1]]

    @property
    def _open(self) -> list[int]:
        return [mode for mode, basis in enumerate(self.bases) if basis is None]


@dataclass(frozen=True, eq=False)
class Slab:
    """A part of a dense tensor along one mode, in memory.

    Attributes
    ----------
    block : array
        Its entries, modes in the order in which they are stored.
    order : tuple of ints
        That order; the tensor is cut along the first.
    rows : slice
        Which indices of the first mode it has.
    shape : tuple of ints
        The sizes of the tensor's modes.
    joined : array, optional
        Columns by which several sums multiply the last mode, side by side.
    columns : sequence of arrays
        Those columns, apart.
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
        """The entries as a matrix, the last mode along its rows."""
        return array_namespace(self.block).reshape(self.block, (-1, self.block.shape[-1]))

    @cached_property
    def _product(self) -> Array:
        return self.rows_of_last @ self.joined

    def times_last(self, columns: Array) -> Array:
        """Return the last mode multiplied by columns: all that were joined go into one product."""
        start = 0
        for known in self.columns:
            if known is columns:
                break
            start += known.shape[1]
        product = self._product[:, start : start + columns.shape[1]]
        return array_namespace(product).reshape(product, (*self.block.shape[:-1], columns.shape[1]))


def symmetry_probes(tensor: Tensor) -> tuple[Core, Core]:
    """Return what to ask of a tensor to see, with `asymmetry`, whether permuting its modes changes it.

    Random vectors see any difference. A swap of two modes and a turn of all generate every permutation.
    """
    rng = np.random.default_rng(0)
    size, n_probes = tensor.shape[0], tensor.order - 2
    probes = [like(rng.standard_normal((size, 1)), tensor.reference) for _ in range(n_probes)]
    return Core((None, None, *probes)), Core((probes[-1], None, None, *probes[:-1]))


def asymmetry(first: Tensor, turned: Tensor, squared_norm: float) -> float:
    """Return the share of a tensor that permuting its modes changes, from its probes: about 1.3 for pure noise."""
    xp = array_namespace(first.reference)
    size = first.shape[0]
    one, other = (xp.reshape(seen.to_dense(), (size, size)) for seen in (first, turned))
    # On average a projection is as large as the tensor; one that happens to be small has no more noise in it.
    norm = squared_norm**0.5 if squared_norm < float("inf") else 0.0
    with np.errstate(all="ignore"):  # entries that are not finite show in the squared norm
        whole = max(float(xp.linalg.vector_norm(one)), norm)
        gaps = [float(xp.linalg.vector_norm(gap)) for gap in (one - xp.matrix_transpose(one), one - other)]
    return max(gaps) / whole if whole > 0 else float("inf")


def khatri_rao(factors: Sequence[Array]) -> Array:
    """Return the columnwise Kronecker product, shape (d_0 d_1 ..., r), the first factor varying slowest."""
    xp = array_namespace(factors[0])
    product = factors[0]
    for factor in factors[1:]:
        product = xp.reshape(product[:, None, :] * factor[None, :, :], (-1, factor.shape[1]))
    return product


def _rows(factors: Sequence[Array], ranges: Ranges) -> tuple[Array, ...]:
    return tuple(factor[rows, :] for factor, rows in zip(factors, ranges, strict=True))


def _joined(parts: Mapping[tuple[int, ...], Array], axes: Sequence[int]) -> Array:
    """Put arrays together along axes, by the places where they start along each."""
    if not axes:
        return parts[()]
    starts = sorted({key[0] for key in parts})
    whole = [_joined({key[1:]: part for key, part in parts.items() if key[0] == start}, axes[1:]) for start in starts]
    return whole[0] if len(whole) == 1 else array_namespace(whole[0]).concat(whole, axis=axes[0])


def _squares(entries: Array) -> Array:
    """Return the sum of squares in double precision where possible, on the device: nothing waits for it."""
    entries = precise(entries)
    xp = array_namespace(entries)
    flat = xp.reshape(entries, (-1,))
    return xp.vecdot(flat, flat)


def _squared_multiple(result: float, scale: float) -> float:
    size = scale * math.sqrt(result)
    return size * size  # infinite where it is out of range; a power would raise


def _contract(block: Array, basis: Array, axis: int) -> Array:
    """Multiply one axis by the transpose of a basis: without a copy of the block that has its axes in another order."""
    xp = array_namespace(block)
    shape, turned = block.shape, xp.matrix_transpose(basis)
    if axis == block.ndim - 1:
        return block @ basis
    product = turned @ xp.reshape(block, (*shape[:axis], shape[axis], -1))
    return xp.reshape(product, (*shape[:axis], basis.shape[1], *shape[axis + 1 :]))


def _contract_pairwise(half: Array, factors: Sequence[Array], axis: int) -> Array:
    """Contract all axes but one and the last of (d_0, ..., d_{N-2}, r) with factors, column by column."""
    xp = array_namespace(half)
    for other in range(half.ndim - 2, -1, -1):
        if other != axis:
            shape = (factors[other].shape[0], *[1] * (half.ndim - 2 - other), factors[other].shape[1])
            half = xp.sum(half * xp.reshape(factors[other], shape), axis=other)
    return half
