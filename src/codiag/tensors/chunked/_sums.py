"""Sums over the chunks of dask arrays, by whatever scheduler there is; imported only where a tensor is one of dask."""

from __future__ import annotations

import math
import uuid
from collections.abc import Sequence
from typing import Any

import dask
import dask.array
import numpy as np
from dask.base import get_scheduler
from dask.callbacks import Callback
from dask.delayed import Delayed
from dask.highlevelgraph import HighLevelGraph

from codiag._arrays import FAN_IN, Array, pass_with
from codiag._progress import tell
from codiag.tensors._sums import Contributions, added, reads
from codiag.tensors.chunked._tensor import OfChunk, check_real, entries_of_chunk


def sum_over_chunks(function: OfChunk, arrays: Sequence[Any], asked: Any) -> Contributions:
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
    return pass_with((function, asked, arrays[0].chunks), lambda held: _one_pass(arrays, held))


def _one_pass(arrays: Sequence[Any], held: Any) -> Contributions:
    chunks = arrays[0].chunks
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
    return _total(leaves, **_callbacks(name, chunks))


def gathered(array: Any, dtype: Any) -> Array:
    """Return all entries of a dask array that fits into memory, as numbers of a dtype."""
    checked = dask.array.map_blocks(
        _checked_chunk, array, sizes=array.chunks, wanted=dtype, dtype=dtype, meta=array._meta.astype(dtype)
    )
    return checked.compute()


def _checked_chunk(block: Array, sizes: Any, wanted: Any, block_id: tuple[int, ...]) -> Array:
    check_chunk(block, ranges_of(sizes, block_id))
    return block.astype(wanted)


def check_chunk(block: Array, ranges: Sequence[slice]) -> None:
    """Raise unless a chunk holds real numbers and has the sizes of its place."""
    expected = tuple(rows.stop - rows.start for rows in ranges)
    if tuple(block.shape) != expected:
        places = ", ".join(f"{rows.start}:{rows.stop}" for rows in ranges)
        raise ValueError(
            f"chunks must have the sizes that the array says; that of the entries [{places}] has shape "
            f"{tuple(block.shape)}, not {expected}"
        )
    check_real(block)


def weights_in_chunks_of(array: Any, weights: Any) -> Any:
    """Return weights of the entries of a dask array, an array of the same shape, in its chunks and double precision."""
    if not hasattr(weights, "rechunk"):
        weights = dask.array.from_array(np.asarray(weights), chunks=array.chunks)
    return dask.array.map_blocks(
        _weights_of_chunk,
        weights.rechunk(array.chunks),
        dtype=np.float64,
        name=f"codiag-weights-{uuid.uuid4().hex}",
        meta=np.empty((0,) * array.ndim),
    )


def _weights_of_chunk(block: Array) -> np.ndarray:
    return entries_of_chunk(np.ma.filled(block, 0) if isinstance(block, np.ma.MaskedArray) else block).astype(
        np.float64
    )


def without_missing_entries(array: Any, weights: Any = None) -> tuple[Any, Any]:
    """Return a dask array with zeros where entries are missing, and weights of the entries that are zero there.

    Both are made of a chunk when it is read, so that no more of them is in memory than of the array.
    """
    given = [] if weights is None else [weights]
    dtype = np.float32 if array.dtype == np.float32 else np.float64
    made = [
        dask.array.map_blocks(
            function,
            array,
            *given,
            dtype=kind,
            meta=np.empty((0,) * array.ndim, kind),
            name=f"{name}-{uuid.uuid4().hex}",
        )
        for function, kind, name in (
            (_known_entries, dtype, "codiag-entries"),
            (_known_weights, np.float64, "codiag-weights"),
        )
    ]
    return made[0], made[1]


def _known_entries(block: Array, weights: np.ndarray | None = None) -> np.ndarray:
    entries = entries_of_chunk(block)
    return np.where(_known_weights(entries, weights) > 0, entries, entries.dtype.type(0))


def _known_weights(block: Array, weights: np.ndarray | None = None) -> np.ndarray:
    return np.where(np.isnan(entries_of_chunk(block)), 0.0, 1.0 if weights is None else weights)


def cubed(array: Any, modes: Sequence[int]) -> Any:
    """Return a dask array with chunks that permuting some modes leaves as they are, of about the sizes that they had.

    Otherwise sums with the modes in another order would be cut where any of these orders is.
    """
    if all(array.chunks[mode] == array.chunks[modes[0]] for mode in modes):
        return array
    largest = [max(array.chunks[mode]) for mode in modes]
    side = max(round(math.prod(largest) ** (1 / len(modes))), 1)
    return array.rechunk(dict.fromkeys(modes, side))


def _of_chunk(*blocks: Array, held: tuple[OfChunk, Any, Any], block_id: tuple[int, ...]) -> Contributions:
    function, asked, chunks = held
    ranges = ranges_of(chunks, block_id)
    for block in blocks:
        check_chunk(block, ranges)
    return function(asked, ranges, *blocks)


def ranges_of(chunks: Sequence[Sequence[int]], index: Sequence[int]) -> list[slice]:
    """Return the place of a chunk in the array."""
    starts = [sum(sizes[:place]) for sizes, place in zip(chunks, index, strict=True)]
    return [slice(start, start + sizes[place]) for start, sizes, place in zip(starts, chunks, index, strict=True)]


def _all_added(parts: Sequence[Contributions]) -> Contributions:
    total = parts[0]
    with np.errstate(all="ignore"):  # entries that are not finite show in the squared norm
        for part in parts[1:]:
            total = added(total, part)
    return total


def _total(leaves: Any, **options: Any) -> Contributions:
    """Return the sum of the results for all chunks, added a few at a time."""
    chunks = leaves.to_delayed().ravel()  # optimized: a task reads a chunk from its file and sums over it
    name = f"codiag-sum-{uuid.uuid4().hex}"
    layer: dict[Any, Any] = {}
    keys = [chunk.key for chunk in chunks]
    while len(keys) > 1 or not layer:
        groups = [keys[start : start + FAN_IN] for start in range(0, len(keys), FAN_IN)]
        keys = [(name, len(layer) + number) for number in range(len(groups))]
        layer |= {key: (_all_added, group) for key, group in zip(keys, groups, strict=True)}
    below = chunks[0].dask
    layers, dependencies = {**below.layers, name: layer}, {**below.dependencies, name: set(below.layers)}
    total: Contributions = dask.compute(Delayed(keys[0], HighLevelGraph(layers, dependencies), layer=name), **options)[
        0
    ]
    return total


def _callbacks(name: str, chunks: Sequence[Sequence[int]]) -> dict[str, Any]:
    """Return options by which a scheduler of this machine tells each chunk that is done."""
    shape, n_parts = tuple(map(sum, chunks)), math.prod(len(sizes) for sizes in chunks)
    if hasattr(get_scheduler(), "__self__") or n_parts == 1:
        return {}
    numbers = iter(range(1, n_parts + 1))

    def log(key: Any, *_state: Any) -> None:
        if isinstance(key, tuple) and key[0] == name:
            number = next(numbers)
            tell("chunk %d of %d", number, n_parts)
            place = {"shape": shape, "part": number, "n_parts": n_parts}
            reads.debug("read chunk %s of %s: part %d of %d", key[1:], shape, number, n_parts, extra=place)

    return {"callbacks": [*Callback.active, (None, None, None, log, None)]}
