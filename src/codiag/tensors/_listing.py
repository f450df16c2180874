"""Lists of entries: checked, sorted, and with equal coordinates added."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import sparse

from codiag._arrays import Array, to_host
from codiag._checks import as_real_array


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
