"""Data in parts: a function of every part, and its results merged in a tree.

The result for a part is a sum, an object with ``merge(other)``. Parts are the chunks of a dask collection, the items of
a list or of another iterable. Eight neighboring sums are merged at a time, in an order that does not depend on the
scheduler, so that neither does the result.
"""

from __future__ import annotations

import copy
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from itertools import chain
from typing import Any, TypeVar

NOTHING = "X must contain samples, in at least one part; got no part, or empty ones alone"


class Parts(ABC):
    """Data in parts: their number, None if that is not known before reading, and whether they can be read only once."""

    n_parts: int | None = None
    once: bool = False

    @abstractmethod
    def reduce(self, function: Callable[..., Any], *shared: Any, numbered: bool = False) -> Any:
        """Return ``function(part, *shared)`` of all parts that are not empty, merged in a tree.

        If `numbered`, the function is also given the number of the part, as `place`. It must be a function of a module,
        without a closure, so that it can be sent to other processes.
        """


class _IteratedParts(Parts):
    """Parts that are read in this process, one after the other, from a new iterator each time."""

    def __init__(self, read: Callable[[], Iterable[Any]], n_parts: int | None = None, *, once: bool = False) -> None:
        self._read, self.n_parts, self.once = read, n_parts, once

    def reduce(self, function: Callable[..., Any], *shared: Any, numbered: bool = False) -> Any:
        levels: list[list[Any]] = [[]]
        for place, part in enumerate(self._read()):
            sums = _leaf(function, part, place, numbered, shared)
            if sums is not None:
                levels[0].append(sums)
                _carry(levels)
        total: list[Any] = []
        for level in levels:
            group = [*level, *total]
            total = [_merged(group)] if group else []
        return _not_empty(total[0] if total else None)


class _DaskParts(Parts):
    """Parts of dask collections, computed on the workers of its scheduler."""

    def __init__(self, delayed: Sequence[Any]) -> None:
        self._delayed, self.n_parts = list(delayed), len(delayed)
        if not self._delayed:
            raise ValueError(NOTHING)

    def reduce(self, function: Callable[..., Any], *shared: Any, numbered: bool = False) -> Any:
        import dask

        leaf, merge = dask.delayed(_leaf, pure=False), dask.delayed(_merged, pure=False)

        def one_pass(reference: Any) -> Any:
            level = [leaf(function, part, place, numbered, reference) for place, part in enumerate(self._delayed)]
            while len(level) > 1:
                level = [merge(level[start : start + FAN_IN]) for start in range(0, len(level), FAN_IN)]
            return dask.compute(level[0])[0]

        return _not_empty(pass_with(shared, one_pass))


def as_parts(data: Any, is_part: Callable[[Any], bool]) -> Parts | None:
    """Return data in parts, or None if it is in one piece.

    Data in parts are a dask array (in parts along its rows), a bag or a data frame; a list or tuple of dask's delayed
    objects, or of objects for which `is_part` is true; a function without arguments that returns an iterator; and an
    iterable without a length. An iterator can be read once.
    """
    if is_dask(data):
        return _DaskParts(_delayed_parts(data))
    if isinstance(data, list | tuple):
        if data and all(is_dask(part) for part in data):
            return _DaskParts([delayed for part in data for delayed in _delayed_parts(part)])
        if not data:
            raise ValueError(NOTHING)
        whole = data
        return _IteratedParts(lambda: whole, len(whole)) if all(is_part(part) for part in data) else None
    if isinstance(data, Iterator):
        return _IteratedParts(_read_once(data), once=True)
    if isinstance(data, str | bytes | Mapping) or hasattr(data, "shape") or hasattr(data, "__array__"):
        return None
    if callable(data) and not isinstance(data, type):
        return _IteratedParts(data)
    if isinstance(data, Iterable) and not hasattr(data, "__len__"):
        return _IteratedParts(lambda: data)
    return None


def listed(parts: Parts, function: Callable[..., Any], *shared: Any) -> list[Any]:
    """Return ``function(part, *shared)`` of every part that is not empty, in their order."""
    items: list[Any] = parts.reduce(_as_item, function, *shared).items
    return items


class _Items:
    def __init__(self, items: list[Any]) -> None:
        self.items = items

    def merge(self, other: _Items) -> None:
        """Add the items of later parts."""
        self.items = [*self.items, *other.items]


def _as_item(part: Any, function: Callable[..., Any], *shared: Any) -> _Items:
    return _Items([function(part, *shared)])


def is_matrix(part: Any) -> bool:
    """Return whether a part is a matrix, dense or sparse."""
    return getattr(part, "ndim", 0) == 2


def is_dask(data: Any) -> bool:
    """Return whether data is a collection of dask, without importing dask."""
    graph = getattr(data, "__dask_graph__", None)
    return callable(graph) and not isinstance(data, type) and graph() is not None


def _delayed_parts(collection: Any) -> list[Any]:
    """Return the parts of a collection as delayed objects; parts of an array are whole rows."""
    if not hasattr(type(collection), "to_delayed"):  # a delayed object, which has every attribute
        return [collection]
    if hasattr(type(collection), "rechunk") and collection.ndim > 1:
        collection = collection.rechunk(dict.fromkeys(range(1, collection.ndim), -1))
    delayed = collection.to_delayed()
    return list(delayed.ravel()) if hasattr(delayed, "ravel") else list(delayed)


def _leaf(function: Callable[..., Any], part: Any, place: int, numbered: bool, shared: tuple[Any, ...]) -> Any:
    """Return the result for a part, None if it is empty; errors name the part."""
    part = list(part) if isinstance(part, Iterator) else part
    if _is_empty(part):
        return None
    try:
        return function(part, *shared, place=place) if numbered else function(part, *shared)
    except (ValueError, TypeError) as error:
        error.args = (f"{str(error).removesuffix('.')}; this was in part {place} of X", *error.args[1:])
        raise
    except Exception as error:
        error.add_note(f"This was in part {place} of X.")
        raise


def _is_empty(part: Any) -> bool:
    """Return whether a part has no rows, or is a list of such parts alone."""
    shape = getattr(part, "shape", None)
    if isinstance(shape, tuple) and shape:
        return shape[0] == 0
    return isinstance(part, list | tuple) and all(map(_is_empty, part))


def _not_empty(total: Any) -> Any:
    if total is None:
        raise ValueError(NOTHING)
    return total


def _merged(sums: Sequence[Any]) -> Any:
    """Return all sums merged, None if all parts were empty.

    The sums are not changed, since a scheduler may merge them again after a worker was lost.
    """
    given = [part_sum for part_sum in sums if part_sum is not None]
    if not given:
        return None
    total = copy.copy(given[0])
    for other in given[1:]:
        total.merge(other)
    return total


def _carry(levels: list[list[Any]]) -> None:
    """Merge every level that has enough sums into one sum of the next level."""
    for height, level in enumerate(levels):
        if len(level) < FAN_IN:
            return
        if height + 1 == len(levels):
            levels.append([])
        levels[height + 1].append(_merged(level))
        level.clear()


def _read_once(iterator: Iterator[Any]) -> Callable[[], Iterable[Any]]:
    """Return a function that returns the parts of an iterator, and raises the second time; raise if it has none."""
    started, first = False, next(iterator, NOTHING)
    if first is NOTHING:
        raise ValueError(NOTHING)

    def read() -> Iterable[Any]:
        nonlocal started
        if started:
            raise ValueError(
                "X must be parts that can be read again, a list, a dask collection or a function that returns an "
                "iterator; this iterator has been read"
            )
        started = True
        return chain([first], iterator)

    return read


T = TypeVar("T")

FAN_IN = 8
"""Number of contributions that are added at a time, so that no worker holds those of all parts (by experience)."""

IN_GRAPH = 2**22
"""Bytes of shared arrays up to which they are a task of the graph, which a cluster repeats if a worker is lost. Larger
ones would slow the scheduler, so that every worker gets a copy before the pass; 4 MiB, chosen by experience."""

ATTEMPTS = 3
"""Largest number of times that a pass starts, if all workers with these copies are lost."""


def pass_with(content: Any, run: Callable[[Any], T]) -> T:
    """Return ``run(reference)``; tasks use the reference for the content. Repeat the pass if all copies are lost."""
    n_attempts = 0
    while True:
        reference, scattered = _reference(content)
        n_attempts += 1
        try:
            return run(reference)
        except CancelledError:
            if not scattered or n_attempts == ATTEMPTS:
                raise


def _reference(content: Any) -> tuple[Any, bool]:
    """Return a reference to the content for every task, and whether copies were sent to the workers beforehand."""
    import dask
    from dask.base import get_scheduler

    client: Any = getattr(get_scheduler(), "__self__", None)
    if _n_bytes(content) > IN_GRAPH and hasattr(client, "scatter"):
        return client.scatter(content, broadcast=True, hash=False), True
    return dask.delayed(content, name=f"codiag-shared-{uuid.uuid4().hex}", traverse=False), False


def _n_bytes(content: Any) -> int:
    """Return the size of the arrays in an object, a sequence or a dataclass of them."""
    if isinstance(content, tuple | list):
        return sum(_n_bytes(item) for item in content)
    if hasattr(content, "nbytes"):
        return int(content.nbytes)
    return sum(_n_bytes(value) for value in vars(content).values()) if hasattr(content, "__dataclass_fields__") else 0
