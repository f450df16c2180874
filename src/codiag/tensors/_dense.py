"""Tensors that are arrays: in memory, on an accelerator, or mapped from a file."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from functools import cached_property
from itertools import permutations
from typing import Any

import numpy as np
from array_api_compat import device, is_numpy_array, is_torch_array

from codiag._arrays import (
    Array,
    array_namespace,
    blocks,
    few_threads,
    in_threads,
    is_complex,
    n_threads,
    on_host,
    to_double,
    to_host,
    widest,
)
from codiag._checks import as_number_array
from codiag.tensors._base import StoredTensor, Tensor, check_shape, check_symmetric_shape, declared_symmetry
from codiag.tensors._sketch import check_range, entry_count, is_large
from codiag.tensors._sums import Chunk, Contributions, Sum, added, logged


class DenseTensor(StoredTensor):
    """A tensor stored as an array of any library, or mapped from an ``.npy`` file; never copied, never changed.

    Sums are computed chunk by chunk in the order of storage: a mapped file is read sequentially, with memory for one
    chunk only.

    Parameters
    ----------
    array : array of shape (d_0, d_1, d_2, ...)
        Real or complex numbers, three modes or more.
    symmetric : bool
        Whether no permutation of the modes changes the tensor, which is not tested.
    check : bool
        Whether to check that the array has finite numbers. Arrays of more than two million entries are checked
        in the first pass over them: see `Tensor.is_validated`.

    See Also
    --------
    as_tensor : Chooses the class for an array.
    DaskTensor : Arrays in chunks.
    SparseTensor : Arrays with few entries.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.tensors import DenseTensor
    >>> DenseTensor(np.ones((3, 3, 3)))
    DenseTensor(3 x 3 x 3)
    """

    def __init__(self, array: Array | Sequence[Array], *, symmetric: bool = False, check: bool = True) -> None:
        entries: Array = as_number_array(array, "tensor", cast=False) if check else array
        self._entries: Array = np.asarray(entries) if is_numpy_array(entries) else entries
        self.shape = check_shape(entries.shape)
        self.symmetric = declared_symmetry(symmetric, self.shape)
        self._memory_order = _memory_order(self._entries)
        self.is_on_accelerator = not on_host(self._entries)
        self.is_validated = not (check and is_large(self.shape))
        if check and self.is_validated:
            self.check()

    @classmethod
    def of(cls, array: Array, *, symmetric: bool) -> DenseTensor:
        """Return the tensor of an array without checking its entries.

        Parameters
        ----------
        array : array of shape (d_0, d_1, d_2, ...)
            Finite numbers.
        symmetric : bool
            Whether no permutation of the modes changes the tensor.

        Returns
        -------
        DenseTensor
            The tensor, which shares memory with the array.

        See Also
        --------
        as_tensor : The same with all checks.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.tensors import DenseTensor
        >>> DenseTensor.of(np.ones((3, 3, 3)), symmetric=True).symmetric
        True
        """
        return cls(array, symmetric=symmetric, check=False)

    def check(self) -> None:
        """Raise a ``ValueError`` unless all entries are finite and their squares neither overflow nor all underflow."""
        way_out = "factorize takes NaN in arrays for missing entries; replace infinities by NaN if they are missing"
        check_range(self, lambda: entry_count(to_host(self._entries)), way_out)
        self.is_validated = True

    @cached_property
    def reference(self) -> Array:
        xp = array_namespace(self._entries)
        is_single = self._entries.dtype in (xp.float32, xp.complex64)
        is_single = is_single or getattr(self._entries.dtype, "str", "") in (">f4", ">c8")
        single = xp.complex64 if is_complex(self._entries) else xp.float32
        precision = single if is_single else widest(self._entries)
        return xp.zeros(0, dtype=precision, device=device(self._entries))

    def project(self, *directions: Array) -> Array:
        xp = array_namespace(self.reference)
        parts = []
        for _, block in self._slabs(range(self.order), width=directions[0].shape[0]):
            stack = block @ xp.matrix_transpose(directions[-1])
            for mode in range(self.order - 2, 1, -1):
                stack = xp.sum(stack * xp.matrix_transpose(directions[mode - 2]), axis=mode)
            parts.append(stack)
        return xp.permute_dims(parts[0] if len(parts) == 1 else xp.concat(parts), (2, 0, 1))

    def permute(self, axes: Sequence[int]) -> DenseTensor:
        xp = array_namespace(self._entries)
        return DenseTensor.of(xp.permute_dims(self._entries, tuple(axes)), symmetric=self.symmetric)

    def on_host(self) -> DenseTensor:
        return self if on_host(self._entries) else DenseTensor.of(to_host(self._entries), symmetric=self.symmetric)

    def in_double_precision(self) -> DenseTensor:
        return self.as_double()

    def as_double(self) -> DenseTensor:
        exact = to_double(self.to_dense())
        return self if exact is self._entries else DenseTensor.of(exact, symmetric=self.symmetric)

    def read(self, *sums: Sum) -> list[Any]:
        """Compute several sums, in one pass over the slabs, each by a thread of its own on the host."""
        order = self._memory_order
        columns: list[Array] = []
        for request in sums:
            last = request.last_columns(order)
            columns += [] if last is None or any(last is known for known in columns) else [last]
        joined = array_namespace(*columns).concat(columns, axis=1) if len(columns) > 1 else next(iter(columns), None)
        width = max([request.width for request in sums] + ([] if joined is None else [joined.shape[1]]), default=0)
        # On an accelerator one chunk is enough if no array of its size is formed.
        is_formed = self._entries.dtype != self.reference.dtype or any(request.forms_entries for request in sums)
        entries, parts = self._parts(order, width, room=64 if is_formed else 2**10)
        threads = _n_readers() if on_host(self._entries) and len(parts) > 1 else 1
        if threads > 1:
            entries, parts = self._parts(order, width, threads)

        def contributions(rows: slice) -> list[Contributions]:
            chunk = Chunk(self._cast(entries[rows, ...]), order, rows, self.shape, joined, columns)
            with np.errstate(all="ignore"):  # entries that are not finite make the squared norm infinite or NaN
                return [request.over(chunk) for request in sums]

        shares: list[Contributions] = [{} for _ in sums]
        with few_threads(0) if threads > 1 else nullcontext(), np.errstate(all="ignore"):
            for found in logged(in_threads(contributions, parts, threads), len(parts), self.shape, sums):
                shares = [added(share, part) for share, part in zip(shares, found, strict=True)]
            return [request.total(share, self) for share, request in zip(shares, sums, strict=True)]

    def squared_norm(self) -> float:
        return self.sketch().squared_norm

    def to_dense(self) -> Array:
        return self._cast(self._entries)

    def _slabs(self, order: Sequence[int], *, width: int = 1) -> Iterator[tuple[slice, Array]]:
        """Yield slabs along the first mode of the given order, with the modes in that order, as floating-point numbers.

        `width` is the size of the last mode after products; slabs are small enough before and after.
        """
        entries, parts = self._parts(order, width)
        for rows in logged(parts, len(parts), self.shape, ()):
            yield rows, self._cast(entries[rows, ...])

    def _parts(self, order: Sequence[int], width: int, threads: int = 1, room: int = 64) -> tuple[Array, list[slice]]:
        """Return the entries with the modes in the given order, and the rows of each chunk of them.

        So many slabs are in memory together, as one for each thread; on an accelerator so many blocks.
        """
        xp = array_namespace(self._entries)
        is_permuted = tuple(order) != tuple(range(self.order))
        entries = xp.permute_dims(self._entries, tuple(order)) if is_permuted else self._entries
        row = threads * math.prod(entries.shape[1:-1]) * max(entries.shape[-1], width)
        return entries, list(blocks(entries.shape[0], row, scale=1 if on_host(self._entries) else room))

    def _cast(self, block: Array) -> Array:
        dtype = self.reference.dtype
        return block if block.dtype == dtype else array_namespace(block).astype(block, dtype)


def array_in_double_precision(tensor: Tensor) -> Array | None:
    """Return the entries if they are stored as an array in double precision, in memory or on an accelerator."""
    if not isinstance(tensor, DenseTensor):
        return None
    entries = tensor._entries
    return entries if to_double(entries[:0, ...]).dtype == entries.dtype else None


def _n_readers() -> int:
    """Return the number of slabs to work on at the same time; one if linear algebra has threads for larger slabs."""
    threads = n_threads()
    return threads if threads <= 4 else 1  # more slabs would fill the memory; products of one slab are divided


def _memory_order(array: Array) -> tuple[int, ...]:
    """Return the modes by decreasing stride: the order of storage."""
    strides = array.strides if is_numpy_array(array) else array.stride() if is_torch_array(array) else None
    order = range(array.ndim) if strides is None else np.argsort([-stride for stride in strides], kind="stable")
    return tuple(int(mode) for mode in order)


def symmetrize(array: Array) -> Array:
    """Return the mean of a tensor over all permutations of its modes, its symmetric part.

    Parameters
    ----------
    array : array of shape (d, d, d, ...)
        A tensor whose modes have the same size.

    Returns
    -------
    array of shape (d, d, d, ...)
        The symmetric part.

    See Also
    --------
    as_tensor : With ``symmetric=True``, the same for data that is symmetric up to noise.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.tensors import symmetrize
    >>> bool(np.isclose(symmetrize(np.arange(8.0).reshape(2, 2, 2))[0, 0, 1], (1 + 2 + 4) / 3))
    True
    """
    array = as_number_array(array, "array")
    xp = array_namespace(array)
    check_symmetric_shape(array.shape, "array")
    if not bool(xp.all(xp.isfinite(array))):
        raise ValueError("array must be finite; some of its entries are NaN or infinite")
    return mean_over_permutations(array, range(array.ndim))


def mean_over_permutations(array: Array, modes: Sequence[int]) -> Array:
    """Return the mean of an array over all permutations of some of its modes."""
    xp, mean, orders = array_namespace(array), 0.0, list(permutations(modes))
    for order in orders:
        source = dict(zip(modes, order, strict=True))
        mean = mean + xp.permute_dims(array, tuple(source.get(mode, mode) for mode in range(array.ndim))) / len(orders)
    return mean
