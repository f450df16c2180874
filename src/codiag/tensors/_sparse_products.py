"""Lists of entries, checked and sorted, and sums over them by fibers.

A fiber is a run of entries that differ in their last index only.

Fibers times columns are a product with a sparse matrix, after which work is done once for each fiber and not for each
entry; where every entry is a fiber of its own that costs no more than without them.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from functools import reduce
from typing import NamedTuple

import numpy as np
from scipy import sparse

from codiag._arrays import Array, in_threads, n_threads, to_double, to_host
from codiag._checks import as_real_array

BLOCK = 2**19
"""Numbers, a row of products for each entry, that are worked on at a time: as many as stay in the cache."""

PART = 2**21
"""Numbers from which on entries are worked on in parts, side by side. Parts depend on the sizes alone: so do the sums,
to the last digit."""


class Listing(NamedTuple):
    """Entries of an array, those of equal first index one after the other.

    Attributes
    ----------
    coords : array of integers, shape (order, n)
    values : array of shape (n,)
    shape : tuple of ints
    """

    coords: np.ndarray
    values: np.ndarray
    shape: tuple[int, ...]

    def turned(self, front: Sequence[int]) -> Listing:
        """Return the entries by some modes, taken together as the first; the others follow in their order."""
        rest = [mode for mode in range(len(self.shape)) if mode not in front]
        leading, size = self.coords[front[0]], self.shape[front[0]]
        for mode in front[1:]:
            leading = leading.astype(np.int64) * self.shape[mode] + self.coords[mode]
            size *= self.shape[mode]
        order = None if _is_ascending(leading) else _stable_order(leading, size)
        if order is None and list(front) == [0]:
            return self
        rows = [leading, *self.coords[rest]]
        coords = np.stack(rows) if order is None else np.stack([row.take(order) for row in rows])
        values = self.values if order is None else self.values.take(order)
        return Listing(coords, values, (size, *(self.shape[mode] for mode in rest)))


def as_coordinates(coords: Array, shape: tuple[int, ...]) -> np.ndarray:
    """Return coordinates as integers on the host, as small as the shape allows, or say what is wrong with them."""
    places = to_host(coords) if hasattr(coords, "shape") else np.asarray(coords)
    if places.ndim != 2 or places.shape[0] != len(shape):
        raise ValueError(
            f"coords must have shape ({len(shape)}, n), one row per mode; got {places.shape}"
            + ("; pass coords.T" if places.ndim == 2 and places.shape[1] == len(shape) else "")
        )
    if places.size and places.dtype.kind not in "iu":
        raise TypeError(f"coords must be integers; got {places.dtype}")
    for mode, (row, size) in enumerate(zip(places, shape, strict=True)):
        if row.size and (row.min() < 0 or row.max() >= size):
            wrong = int(row.min() if row.min() < 0 else row.max())
            hint = "; coordinates count from zero" if wrong == size else ""
            raise ValueError(f"coords must lie between 0 and {size - 1} in mode {mode}; got {wrong}{hint}")
    return np.ascontiguousarray(places, dtype=np.int32 if max(shape) <= 2**31 else np.int64)


def as_values(values: Array, count: int) -> np.ndarray:
    """Return values as floating-point numbers on the host, or say what is wrong with them."""
    entries = to_host(as_real_array(values, "values", "keep real and imaginary parts as two tensors"))
    if entries.shape != (count,):
        raise ValueError(f"values must have shape ({count},), one per coordinate; got {entries.shape}")
    if not np.all(np.isfinite(entries)):
        raise ValueError(f"values must be finite; {int(np.sum(~np.isfinite(entries)))} are NaN or infinite")
    return entries


def in_memory_order(
    places: np.ndarray, values: np.ndarray, shape: tuple[int, ...], *, distinct: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return entries in the order they would have in a dense array.

    Values of equal coordinates are added and zeros dropped, unless all must be `distinct`: then those occurring twice
    raise, as a fit could not tell whether their values are to be added or averaged, and zeros stay.
    """
    order = _order(places, shape)
    if order is not None:
        places, values = np.stack([row.take(order) for row in places]), values.take(order)
        del order
    new = starts_of_runs(places)
    if new.size < values.size and distinct:
        twice = int(np.setdiff1d(np.arange(new.size + 1), new[: new.size + 1])[0])
        raise ValueError(
            f"coords must be distinct where absent='missing'; entry {tuple(places[:, twice].tolist())} occurs more "
            "than once. Add or average its values first"
        )
    if new.size < values.size:
        sums = np.add.reduceat(values, new, dtype=np.float64).astype(values.dtype)
        places, values = places[:, new], sums
    if not distinct and np.count_nonzero(values) < values.size:
        kept = np.flatnonzero(values)
        places, values = places[:, kept], values[kept]
    return places, values


def starts_of_runs(places: np.ndarray) -> np.ndarray:
    """Return where columns begin that differ from those before them."""
    n = places.shape[1]
    if n == 0:
        return np.zeros(0, dtype=np.int64)
    new = np.empty(n, dtype=bool)
    new[0] = True
    np.not_equal(places[0, 1:], places[0, :-1], out=new[1:])
    for row in places[1:]:
        new[1:] |= row[1:] != row[:-1]
    return np.flatnonzero(new)


def _order(places: np.ndarray, shape: tuple[int, ...]) -> np.ndarray | None:
    """Return the order that sorts entries, or None where they are sorted."""
    if math.prod(shape) >= 2**62:
        return np.lexsort(places[::-1])
    keys = places[0].astype(np.int64)
    for row, size in zip(places[1:], shape[1:], strict=True):
        keys *= size
        keys += row
    return None if _is_ascending(keys) else np.argsort(keys)


def _is_ascending(keys: np.ndarray) -> bool:
    return bool(np.all(keys[1:] >= keys[:-1]))


def _stable_order(keys: np.ndarray, size: int) -> np.ndarray:
    """Return the order that sorts keys below `size` and keeps that of equal ones, by counting where there are many."""
    if size > 4 * keys.size:
        return np.argsort(keys, kind="stable")
    ends = np.arange(keys.size + 1, dtype=keys.dtype)
    columns = sparse.csc_array((np.zeros(keys.size, dtype=np.int8), keys, ends), shape=(size, keys.size))
    order: np.ndarray = columns.tocsr().indices
    return order


class Fibers:
    """A block of entries as a sparse matrix with a row for each fiber.

    Attributes
    ----------
    matrix : sparse array of shape (n_fibers, d)
    places : array of integers, shape (order - 1, n_fibers)
        The indices of the fibers.
    """

    def __init__(self, entries: Listing) -> None:
        starts = starts_of_runs(entries.coords[:-1])
        last = entries.coords[-1]
        ends = np.append(starts, last.size).astype(last.dtype)
        self.matrix = sparse.csr_array((entries.values, last, ends), shape=(starts.size, entries.shape[-1]))
        self.places = np.stack([row.take(starts) for row in entries.coords[:-1]])
        self._products: list[tuple[np.ndarray, np.ndarray]] = []

    def times(self, columns: np.ndarray) -> np.ndarray:
        """Return the product of each fiber with columns, computed once for the same array."""
        for known, product in self._products:
            if known is columns:
                return product
        self._products.append((columns, self.matrix @ columns))
        return self._products[-1][1]

    def rows(self, factors: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Return the rows of factors, one for every mode but the last, that belong to the fibers."""
        return [factor.take(row, axis=0) for factor, row in zip(factors, self.places, strict=True)]


class FiberSum(ABC):
    """A sum over fibers, in arrays that blocks of them are added to.

    Attributes
    ----------
    width : int
        Numbers for each entry on the way.
    """

    width: int

    @abstractmethod
    def zeros(self, entries: Listing) -> list[np.ndarray]:
        """Return the sum over nothing."""

    @abstractmethod
    def add(self, totals: list[np.ndarray], fibers: Fibers) -> None:
        """Add what fibers contribute."""


class FiberProducts(FiberSum):
    """`Tensor.mttkrp` for some modes: the rows of other modes are multiplied once for each fiber."""

    def __init__(self, factors: Sequence[np.ndarray], modes: Sequence[int]) -> None:
        self.factors, self.modes = factors, modes
        self.width = factors[0].shape[1]

    def zeros(self, entries: Listing) -> list[np.ndarray]:
        return [np.zeros((entries.shape[mode], self.width), dtype=entries.values.dtype) for mode in self.modes]

    def add(self, totals: list[np.ndarray], fibers: Fibers) -> None:
        *others, last = self.factors
        rows = fibers.rows(others)
        for mode, total in zip(self.modes, totals, strict=True):
            if mode == len(others):
                total += fibers.matrix.T @ _product(rows)
            else:
                product = _product([*rows[:mode], *rows[mode + 1 :], fibers.times(last)])
                _add_rows(total, fibers.places[mode], product)


class FiberInner(FiberSum):
    """The inner product with components, in double precision."""

    def __init__(self, weights: np.ndarray, factors: Sequence[np.ndarray]) -> None:
        self.weights, self.factors = to_double(weights), [to_double(factor) for factor in factors]
        self.last = factors[-1]
        self.width = self.weights.shape[0]

    def zeros(self, entries: Listing) -> list[np.ndarray]:
        return [np.zeros(1)]

    def add(self, totals: list[np.ndarray], fibers: Fibers) -> None:
        exact = fibers.matrix.dtype == np.float64
        along = fibers.times(self.last) if exact else fibers.matrix.astype(np.float64) @ self.factors[-1]
        totals[0] += np.vdot(along, _product(fibers.rows(self.factors[:-1])) * self.weights)


class FiberCore(FiberSum):
    r"""Compression of all modes by bases; with None for the first, of all others.

    Of every index of the first mode, :math:`\sum_f (b_f \otimes \dots) y_f^\top` over its fibers is a product of
    matrices, from rows of the bases and from fibers times the last one.
    """

    def __init__(self, first: np.ndarray | None, others: Sequence[np.ndarray]) -> None:
        self.first, self.others = first, others
        self.columns = math.prod(basis.shape[1] for basis in others)
        self.width = others[-1].shape[1] + self.columns // others[-1].shape[1]

    def zeros(self, entries: Listing) -> list[np.ndarray]:
        height = entries.shape[0] if self.first is None else self.first.shape[1]
        return [np.zeros((height, self.columns), dtype=entries.values.dtype)]

    def add(self, totals: list[np.ndarray], fibers: Fibers) -> None:
        *middle, last = self.others
        sums, places = fibers.times(last), fibers.places[0]
        if middle:
            starts = starts_of_runs(fibers.places[:1])
            rows = reduce(
                _kronecker, (basis.take(row, axis=0) for basis, row in zip(middle, fibers.places[1:], strict=True))
            )
            sums, places = _outer_sums(rows, sums, starts).reshape(starts.size, -1), places[starts]
        if self.first is None:
            _add_rows(totals[0], places, sums)
        else:
            totals[0] += self.first.take(places, axis=0).T @ sums


def totals_over(entries: Listing, sums: Sequence[FiberSum]) -> list[list[np.ndarray]]:
    """Return the arrays of several sums, from one pass over entries, in threads where there are many."""
    if not sums:
        return []
    width = max(one.width for one in sums)
    zeros = [one.zeros(entries) for one in sums]
    n_numbers = sum(total.size for totals in zeros for total in totals)
    n_parts = max(min(entries.values.size * width // max(PART, 4 * n_numbers), 16), 1)
    edges = [entries.values.size * part // n_parts for part in range(n_parts + 1)]

    def part_of(part: int) -> list[list[np.ndarray]]:
        totals = zeros if part == 0 else [one.zeros(entries) for one in sums]
        for block in _blocks(entries, edges[part], edges[part + 1], width):
            fibers = Fibers(block)
            for one, own in zip(sums, totals, strict=True):
                one.add(own, fibers)
        return totals

    threads = n_threads() if n_parts > 1 else 1
    for totals in in_threads(part_of, range(n_parts), threads):
        if totals is not zeros:
            for total, own in zip(zeros, totals, strict=True):
                for array, share in zip(total, own, strict=True):
                    array += share
    return zeros


def _blocks(entries: Listing, start: int, stop: int, width: int) -> Iterator[Listing]:
    """Yield blocks of entries, large enough that what a block adds to is not much larger than the block."""
    size = max(BLOCK // width, min(max(entries.shape), 16 * BLOCK // width), 1)
    for first in range(start, stop, size):
        part = slice(first, min(first + size, stop))
        yield Listing(entries.coords[:, part], entries.values[part], entries.shape)


def _outer_sums(left: np.ndarray, right: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Return the sums of ``outer(left[f], right[f])`` over runs of rows f, all runs of one length at a time."""
    lengths = np.diff(starts, append=left.shape[0])
    sums = np.empty((starts.size, left.shape[1], right.shape[1]), dtype=left.dtype)
    order = np.argsort(lengths, kind="stable")
    for runs in np.split(order, np.flatnonzero(np.diff(lengths[order])) + 1):
        if runs.size == 1:
            run = slice(starts[runs[0]], starts[runs[0]] + lengths[runs[0]])
            np.matmul(left[run].T, right[run], out=sums[runs[0]])
        elif runs.size > 1:
            rows = starts[runs][:, None] + np.arange(lengths[runs[0]])
            sums[runs] = np.matmul(left[rows].transpose(0, 2, 1), right[rows])
    return sums


def _add_rows(total: np.ndarray, places: np.ndarray, rows: np.ndarray) -> None:
    """Add each row to the one of the total that it belongs to: a product with a matrix of one entry a column."""
    if places.size == 0:
        return
    low = places.min()
    size = int(places.max() - low) + 1
    ends = np.arange(places.size + 1, dtype=places.dtype)
    gather = sparse.csc_array((np.ones(places.size, rows.dtype), places - low, ends), shape=(size, places.size))
    total[low : low + size] += gather @ rows


def _product(rows: Sequence[np.ndarray]) -> np.ndarray:
    """Return the entrywise product of matrices."""
    product = rows[0] if len(rows) == 1 else rows[0] * rows[1]
    for row in rows[2:]:
        product *= row
    return product


def _kronecker(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the Kronecker products of rows."""
    return (left[:, :, None] * right[:, None, :]).reshape(left.shape[0], -1)
