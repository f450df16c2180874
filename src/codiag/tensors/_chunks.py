"""Sums over the chunks of dask arrays, by whatever scheduler there is: the one file that imports dask."""

from __future__ import annotations

import logging
import math
import uuid
from collections.abc import Sequence
from concurrent.futures import CancelledError
from typing import Any

import dask
import dask.array
import numpy as np
from dask.base import get_scheduler
from dask.callbacks import Callback
from dask.delayed import Delayed
from dask.highlevelgraph import HighLevelGraph

from codiag._array import Array
from codiag.tensors._dask import OfChunk
from codiag.tensors._sums import Shares, added, reads

FAN_IN = 8
"""Contributions that are added at a time, so that no worker and no scheduler ever holds those of all chunks."""

IN_GRAPH = 2**22
"""Bytes of factors up to which they are one task of the graph, which a cluster makes again if its worker is lost; of
more, which would burden the scheduler, every worker gets a copy before."""

ATTEMPTS = 3
"""Times that a pass is begun, at most, where all workers are lost that had these copies."""


def sum_over_chunks(function: OfChunk, arrays: Sequence[Any], asked: Any) -> Shares:
    """Return the sum of what a function gives for every chunk of arrays whose chunks are the same, in one pass.

    Contributions are dicts, which are added key by key in a tree.

    Parameters
    ----------
    function : callable
        Called for every chunk as ``function(asked, ranges, *blocks)``.
    arrays : sequence of dask arrays
    asked : object
        What the function is to compute: sent once, not with every task.

    Returns
    -------
    dict
    """
    chunks = arrays[0].chunks
    for attempt in range(1, ATTEMPTS + 1):
        held, scattered = _held((function, asked, chunks))
        name = f"codiag-chunk-{uuid.uuid4().hex}"
        leaves = dask.array.map_blocks(
            _of_chunk,
            *arrays,
            held=held,
            name=name,
            dtype=object,
            chunks=tuple((1,) * len(sizes) for sizes in chunks),
            meta=np.empty((0,) * len(chunks), dtype=object),
        )
        tree = _Tree(leaves)
        try:
            return tree.result(**_callbacks(name, chunks))
        except CancelledError:
            if not scattered or attempt == ATTEMPTS:
                raise
        except Exception as error:
            index, cause = tree.find_failing(error, name)
            if index is None:
                raise
            raise ValueError(_complaint(index, chunks, cause)) from cause
    raise AssertionError("unreachable")


def chunked_like(array: Any, other: Any) -> Any:
    """Return another array of the same shape in double precision, in the chunks of a dask array."""
    if not hasattr(other, "rechunk"):
        other = dask.array.from_array(np.asarray(other), chunks=-1 if np.size(other) == 1 else array.chunks)
    return dask.array.broadcast_to(other, array.shape).rechunk(array.chunks).astype(np.float64)


def _held(content: Any) -> tuple[Any, bool]:
    """Return what every task refers to, by name, and whether copies of it were sent to the workers beforehand."""
    client: Any = getattr(get_scheduler(), "__self__", None)
    if _n_bytes(content) > IN_GRAPH and hasattr(client, "scatter"):
        return client.scatter(content, broadcast=True, hash=False), True
    return dask.delayed(content, name=f"codiag-asked-{uuid.uuid4().hex}", traverse=False), False


def _n_bytes(content: Any) -> int:
    """Return the size of the arrays in an object, a sequence or a dataclass of them."""
    if isinstance(content, tuple | list):
        return sum(_n_bytes(item) for item in content)
    if hasattr(content, "nbytes"):
        return int(content.nbytes)
    return sum(_n_bytes(value) for value in vars(content).values()) if hasattr(content, "__dataclass_fields__") else 0


def _of_chunk(*blocks: Array, held: tuple[OfChunk, Any, Any], block_id: tuple[int, ...]) -> Shares:
    function, asked, chunks = held
    ranges = ranges_of(chunks, block_id)
    expected = tuple(rows.stop - rows.start for rows in ranges)
    for block in blocks:
        if tuple(block.shape) != expected:
            raise ValueError(f"it has shape {tuple(block.shape)}, and should have {expected}")
    return function(asked, ranges, *blocks)


def ranges_of(chunks: Sequence[Sequence[int]], index: Sequence[int]) -> list[slice]:
    """Return the place of a chunk in the array."""
    starts = [sum(sizes[:place]) for sizes, place in zip(chunks, index, strict=True)]
    return [slice(start, start + sizes[place]) for start, sizes, place in zip(starts, chunks, index, strict=True)]


def _all_added(parts: Sequence[Shares]) -> Shares:
    total = parts[0]
    for part in parts[1:]:
        total = added(total, part)
    return total


class _Tree:
    """Tasks that add the results for all chunks of an array, a few at a time, down to one."""

    def __init__(self, leaves: Any) -> None:
        chunks = leaves.to_delayed().ravel()  # optimized: a task reads a chunk from its file and sums over it
        name = f"codiag-sum-{uuid.uuid4().hex}"
        layer: dict[Any, Any] = {}
        self._children: dict[Any, list[Any]] = {}
        keys = [chunk.key for chunk in chunks]
        while len(keys) > 1 or not layer:
            groups = [keys[start : start + FAN_IN] for start in range(0, len(keys), FAN_IN)]
            keys = [(name, len(layer) + number) for number in range(len(groups))]
            self._children |= dict(zip(keys, groups, strict=True))
            layer |= {key: (_all_added, group) for key, group in zip(keys, groups, strict=True)}
        below = chunks[0].dask
        layers, dependencies = {**below.layers, name: layer}, {**below.dependencies, name: set(below.layers)}
        self._graph, self._name, self._root = HighLevelGraph(layers, dependencies), name, keys[0]

    def result(self, key: Any = None, **options: Any) -> Shares:
        """Return the sum of all, or what a task gives."""
        task = Delayed(self._root if key is None else key, self._graph, layer=self._name)
        total: Shares = dask.compute(task, **options)[0]
        return total

    def find_failing(self, error: Exception, name: str) -> tuple[tuple[int, ...] | None, Exception]:
        """Return the index of a chunk that raises, and what it raises, by going down the tree; None if none does again.

        Schedulers do not say which task has failed, except where it has killed several workers.
        """
        killer = getattr(error, "task", None)
        if killer is not None:
            return (tuple(killer[1:]) if isinstance(killer, tuple) and killer[0] == name else None), error
        key, cause = self._root, error
        while key in self._children:
            for child in self._children[key]:
                try:
                    self.result(child)
                except Exception as found:
                    key, cause = child, found
                    break
            else:
                return None, error
        return tuple(key[1:]), cause


def _complaint(index: tuple[int, ...], chunks: Sequence[Sequence[int]], cause: Exception) -> str:
    places = ", ".join(f"{rows.start}:{rows.stop}" for rows in ranges_of(chunks, index))
    return (
        f"tensor must have chunks that can be computed; chunk {index}, entries [{places}], raises "
        f"{type(cause).__name__}: {cause}"
    )


def _callbacks(name: str, chunks: Sequence[Sequence[int]]) -> dict[str, Any]:
    """Return options by which a scheduler of this machine logs each chunk that is done; none where nobody listens."""
    shape, n_parts = tuple(map(sum, chunks)), math.prod(len(sizes) for sizes in chunks)
    if not reads.isEnabledFor(logging.DEBUG) or hasattr(get_scheduler(), "__self__") or n_parts == 1:
        return {}
    numbers = iter(range(1, n_parts + 1))

    def log(key: Any, *_state: Any) -> None:
        if isinstance(key, tuple) and key[0] == name:
            place = {"shape": shape, "part": next(numbers), "n_parts": n_parts}
            reads.debug("read chunk %s of %s: part %d of %d", key[1:], shape, place["part"], n_parts, extra=place)

    return {"callbacks": [*Callback.active, (None, None, None, log, None)]}
