"""A tensor whose entries lie in the chunks of a dask array."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from array_api_compat import device, is_dask_array, is_numpy_array

from codiag._arrays import Array, array_namespace, to_host, to_namespace
from codiag.tensors._base import StoredTensor, as_scale, check_shape, declared_symmetry
from codiag.tensors._dense import DenseTensor
from codiag.tensors._sketch import EntryCount, check_range, entry_count, is_large
from codiag.tensors._sparse import SparseTensor
from codiag.tensors._sums import Contributions, Products, Ranges, SquaredDistance, SquaredNorm, Sum

if TYPE_CHECKING:
    from codiag.tensors.entries import ObservedEntries

OfChunk = Callable[..., Contributions]
"""Called as ``function(argument, ranges, *blocks)`` for every chunk. Must be importable, as it is pickled by name."""


class DaskTensor(StoredTensor):
    """A tensor in the chunks of a dask array, wherever these are: on disk, in other processes, on a cluster.

    Only sums are gathered. Every chunk computes its part of all sums of a pass at once, as for an array of its kind in
    memory, and these parts are added in a tree. All of that is done by the scheduler that dask would use: threads,
    processes, or the cluster of a ``distributed.Client``.

    Parameters
    ----------
    array : dask array of shape (d_0, d_1, d_2, ...)
        Real numbers, three modes or more; chunks of NumPy, CuPy or pydata/sparse, of any sizes, the same whenever they
        are computed. Masked entries are NaN. A worker needs memory for one chunk of every thread, and about 200 MB
        beyond.
    symmetric : bool, optional
        Whether permuting the modes leaves the tensor as it is. By default that is detected, to rounding, in the first
        pass over the chunks.

    See Also
    --------
    DenseTensor : The same in memory.
    codiag.factorize : Takes dask arrays as they are.

    Examples
    --------
    >>> import dask.array
    >>> from codiag.tensors import DaskTensor
    >>> tensor = DaskTensor(dask.array.ones((4, 5, 6), chunks=(2, 5, 4)))
    >>> tensor
    DaskTensor(4 x 5 x 6, 4 chunks)
    >>> tensor.squared_norm()
    120.0
    """

    def __init__(self, array: Any, *, symmetric: bool = False) -> None:
        if not is_dask_array(array):
            raise TypeError(
                f"array must be a dask array; got {type(array).__name__}. codiag.tensors.as_tensor takes every array"
            )
        if any(math.isnan(size) for size in array.shape):
            raise ValueError(
                f"tensor must have chunks of known sizes; got a dask array of shape {array.shape}. Call "
                "array.compute_chunk_sizes() first"
            )
        self.shape = check_shape(array.shape)
        if array.dtype.kind == "c":
            raise TypeError(
                f"tensor must be real; got a dask array of {array.dtype}: factorize real and imaginary parts as one "
                "more mode of size two"
            )
        if array.dtype.kind not in "biuf":
            raise TypeError(f"tensor must contain real numbers; got a dask array of {array.dtype}")
        self.symmetric = declared_symmetry(symmetric, self.shape)
        self.array = array
        self.is_validated = False

    def check(self) -> None:
        way_out = (
            "NaN are missing entries where factorize is given the dask array itself, and not a DaskTensor of it; leave "
            "out infinities with mask=, or the slices that hold them"
        )
        check_range(self, self._count, way_out)
        self.is_validated = True

    def _count(self) -> EntryCount:
        shares = self.sum_over_chunks(_count_of_chunk, None)
        n_bad, n_nan, n_nonzero = (int(shares.pop((place,))) for place in range(3))
        return EntryCount(n_bad, n_nan, min(shares, default=None), n_nonzero)

    @property
    def reference(self) -> Array:
        return np.zeros(0, dtype=np.float32 if self.array.dtype == np.float32 else np.float64)

    def sum_over_chunks(self, function: OfChunk, argument: Any, *others: Any) -> Contributions:
        """Return the sum of what a function gives for every chunk, in one pass.

        Parameters
        ----------
        function : callable
            A function of a module, called as ``function(argument, ranges, block, *others)`` for every chunk; returns a
            dict.
        argument : object
            What the function is to compute.
        *others : dask arrays
            In chunks of the same sizes.

        Returns
        -------
        dict
            Values with equal keys added.

        See Also
        --------
        DaskTensor.gathered : All chunks as one array.

        Examples
        --------
        >>> import dask.array
        >>> from codiag.tensors import DaskTensor
        >>> tensor = DaskTensor(dask.array.ones((4, 4, 4), chunks=2))
        >>> tensor.sum_over_chunks(lambda argument, ranges, block: {argument: float(block.sum())}, "total")
        {'total': 64.0}
        """
        from codiag.tensors.chunked._sums import sum_over_chunks

        return sum_over_chunks(function, [self.array, *others], argument)

    def read(self, *sums: Sum) -> list[Any]:
        """Compute several sums in one pass over the chunks; beside products, check that these are as before."""
        if self._sketch is None or not any(isinstance(one, Products | SquaredDistance) for one in sums):
            return self._read(sums)
        *results, squared_norm = self._read([*sums, SquaredNorm()])
        self._check_same(squared_norm, self._sketch.squared_norm)
        return results

    def _check_same(self, now: float, before: float) -> None:
        rounding = 1e-10 if self.reference.dtype == np.float64 else 1e-4
        if math.isfinite(before) and not abs(now - before) <= rounding * before:
            raise ValueError(
                "tensor must have the same entries whenever its chunks are computed; the squared norm of "
                f"{self!r} was {before:.12g}, and is {now:.12g}. Store it before, or array.persist() it, if its chunks "
                "are drawn at random or their source changes"
            )

    def _read(self, sums: Sequence[Sum]) -> list[Any]:
        shares = self.sum_over_chunks(_sums_of_chunk, tuple(sums))
        by_sum: list[Contributions] = [{} for _ in sums]
        for (number, *key), share in shares.items():
            by_sum[number][tuple(key)] = share
        return [one.total(own, self) for one, own in zip(sums, by_sum, strict=True)]

    def project(self, *directions: Array) -> Array:
        shares = self.sum_over_chunks(_projected_chunk, tuple(directions))
        stack = np.zeros((directions[0].shape[0], *self.shape[:2]), dtype=self.reference.dtype)
        for (row, column), part in shares.items():
            stack[:, row : row + part.shape[1], column : column + part.shape[2]] = part
        return stack

    def permute(self, axes: Sequence[int]) -> DaskTensor:
        return self._with(self.array.transpose(tuple(axes)))

    def squared_norm(self) -> float:
        return self.sketch().squared_norm

    def weights_like(self, weights: Any) -> Any:
        from codiag.tensors.entries import checked_chunk_weights

        return checked_chunk_weights(self, weights)

    def observed_entries(self, weights: Any) -> ObservedEntries | None:
        from codiag.tensors.entries import ChunkedEntries

        return None if weights is None else ChunkedEntries(self, weights)

    def filled(self, weights: Any) -> DaskTensor:
        from codiag.tensors.entries import ChunkedEntries

        return self if weights is None else ChunkedEntries(self, weights).filled()

    def weights_of(self, weights: Any) -> Any:
        """Return weights of the entries, an array of NumPy or dask, in the chunks of the tensor.

        Parameters
        ----------
        weights : array of the shape of the tensor
            Boolean, or weights.

        Returns
        -------
        dask array of the shape of the tensor
            In double precision.

        Examples
        --------
        >>> import dask.array
        >>> import numpy as np
        >>> from codiag.tensors import DaskTensor
        >>> tensor = DaskTensor(dask.array.ones((4, 4, 4), chunks=2))
        >>> tensor.weights_of(np.ones((4, 4, 4), dtype=bool)).chunks
        ((2, 2), (2, 2), (2, 2))
        """
        from codiag.tensors.chunked._sums import weights_in_chunks_of

        given = weights if hasattr(weights, "dtype") else np.asarray(weights)
        if given.dtype.kind not in "buif":
            raise TypeError(f"mask and weights must be boolean or real numbers; got an array of {given.dtype}")
        if tuple(given.shape) != self.shape:
            raise ValueError(
                f"mask and weights must have the shape of the tensor, {self.shape}; got {tuple(given.shape)}"
            )
        return weights_in_chunks_of(self.array, given)

    def to_dense(self) -> Array:
        return entries_of_chunk(self.gathered())

    def gathered(self) -> Array:
        """Compute all chunks.

        Returns
        -------
        array of the shape of the tensor
            Of the library of the chunks, sparse or masked if these are.

        See Also
        --------
        DaskTensor.sum_over_chunks : A sum that needs no array of all entries.

        Examples
        --------
        >>> import dask.array
        >>> from codiag.tensors import DaskTensor
        >>> DaskTensor(dask.array.ones((4, 3, 2), chunks=2)).gathered().shape
        (4, 3, 2)
        """
        from codiag.tensors.chunked._sums import gathered

        return gathered(self.array, self.reference.dtype)

    def _times(self, scale: float) -> DaskTensor:
        other = self._with(self.array * as_scale(scale, self.reference))
        other.is_validated = self.is_validated
        if self._sketch is not None:
            other._sketch = self._sketch.scaled(float(scale))
        return other

    def _with(self, array: Any) -> DaskTensor:
        return DaskTensor(array, symmetric=self.symmetric)

    def __repr__(self) -> str:
        n_chunks = math.prod(self.array.numblocks)
        kind = "symmetric " if self.symmetric else ""
        sizes = " x ".join(str(size) for size in self.shape)
        return f"DaskTensor({kind}{sizes}, {n_chunks} chunk{'s' if n_chunks > 1 else ''})"


def _sums_of_chunk(sums: Sequence[Sum], ranges: Ranges, block: Array) -> Contributions:
    """Return all sums of a pass for one chunk, computed as those of a tensor of its kind."""
    local = tensor_of_chunk(block)
    known: dict[Any, Array] = {}
    own = [_prepared(one.restricted_to(ranges), local.reference, known) for one in sums]
    shares: Contributions = {}
    for number, (one, result) in enumerate(zip(sums, local.read(*own), strict=True)):
        shares |= {(number, *key): to_host(share) for key, share in one.shares(result, ranges).items()}
    return shares


def _projected_chunk(directions: Sequence[Array], ranges: Ranges, block: Array) -> Contributions:
    local = tensor_of_chunk(block)
    own = [to_namespace(rows[:, part], local.reference) for rows, part in zip(directions, ranges[2:], strict=True)]
    return {(ranges[0].start, ranges[1].start): to_host(local.project(*own))}


def _count_of_chunk(_argument: None, ranges: Ranges, block: Array) -> Contributions:
    """Return numbers of entries that are not finite, NaN and not zero, and the place of the first of the former."""
    n_bad, n_nan, first, n_nonzero = entry_count(entries_of_chunk(block))
    shares: Contributions = {(0,): n_bad, (1,): n_nan, (2,): n_nonzero}
    if first is not None:
        shares[tuple(rows.start + place for rows, place in zip(ranges, first, strict=True))] = 1
    return shares


def check_real(block: Array) -> None:
    """Raise unless a chunk holds real numbers, whatever the array says that it holds."""
    kind = getattr(block.dtype, "kind", "f")
    if kind not in "biuf":
        raise TypeError(
            f"chunks must contain real numbers, as the dtype of the array says; one contains those of {block.dtype}"
        )


def tensor_of_chunk(block: Array) -> DenseTensor | SparseTensor:
    """Return a chunk as a tensor of its own, without a look at its entries; NaN in place of those that are masked."""
    check_real(block)
    if isinstance(block, np.ma.MaskedArray):
        block = np.ma.filled(block.astype(np.float32 if block.dtype == np.float32 else np.float64), np.nan)
    if hasattr(block, "tocoo") and hasattr(block, "fill_value"):
        block = block.tocoo()
    if hasattr(block, "coords") and hasattr(block, "fill_value"):
        if block.fill_value != 0:
            raise ValueError(f"chunks must be zero where they have no entries; one has fill_value={block.fill_value}")
        values = block.data if block.data.dtype == np.float32 else block.data.astype(np.float64)
        return SparseTensor(block.coords.astype(np.int64), values, block.shape, check=False)
    return DenseTensor.of(block, symmetric=False)


def entries_of_chunk(block: Array) -> np.ndarray:
    """Return the entries of a chunk of any kind in NumPy; NaN in place of those that are masked."""
    return to_host(tensor_of_chunk(block).to_dense())


def _prepared(value: Any, reference: Array, known: dict[Any, Array]) -> Any:
    """Return a request with its arrays where the reference lives, in their own precision, and equal rows one object.

    By that a tensor sees which products several requests have in common.
    """
    if isinstance(value, Sum):
        return replace(value, **{name: _prepared(item, reference, known) for name, item in vars(value).items()})  # type: ignore[type-var]
    if isinstance(value, tuple | list):
        return tuple(_prepared(item, reference, known) for item in value)
    if not isinstance(value, np.ndarray):
        return value
    key = (value.__array_interface__["data"][0], value.shape, value.strides)
    if key not in known:
        library = array_namespace(reference)
        known[key] = value if is_numpy_array(reference) else library.asarray(value, device=device(reference))
    return known[key]


def cubed(array: Array, modes: Sequence[int]) -> Array:
    """Return a dask array in chunks that permuting some modes leaves as they are."""
    from codiag.tensors.chunked import _sums

    return _sums.cubed(array, modes)


def of_stored(raw: Any) -> Any:
    """Return an array of zarr or h5py as one of dask, in multiples of its chunks, or a small one read; others as is."""
    is_stored = type(raw).__module__.partition(".")[0] in ("zarr", "h5py")
    if not is_stored or not hasattr(raw, "shape") or not hasattr(raw, "dtype"):
        return raw
    if not is_large(raw.shape):
        return raw[...]
    try:
        import dask.array
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"tensor must be in memory, or dask installed, which reads arrays of {type(raw).__name__} in chunks; got "
            f"one of shape {raw.shape}. Get it with pip install 'codiag[dask]', or pass tensor[...]",
            name="dask",
        ) from error
    return dask.array.from_array(raw, chunks="auto", inline_array=True)


def without_missing_entries(array: Array, weights: Array | None) -> tuple[Array, Array]:
    """Return a dask array with zeros where entries are missing, and weights of the entries that are zero there."""
    from codiag.tensors.chunked import _sums

    return _sums.without_missing_entries(array, weights)
