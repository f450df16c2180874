"""A tensor whose entries lie in the chunks of a dask array."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import permutations
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device, is_dask_array, is_numpy_array

from codiag._array import Array, moved, to_host
from codiag._validation import as_flag
from codiag.tensors._base import REAL, Tensor, as_scale, check_shape, check_symmetric_shape
from codiag.tensors._dense import DenseTensor
from codiag.tensors._first_look import FirstLook, first_look
from codiag.tensors._sparse import SparseTensor
from codiag.tensors._sums import (
    Core,
    Products,
    Ranges,
    Shares,
    SquaredDistance,
    SquaredNorm,
    Sum,
    asymmetry,
    symmetry_probes,
)

OfChunk = Callable[..., Shares]
"""Called as ``function(asked, ranges, *blocks)`` for every chunk; a function of a module, which is sent by its name."""


class DaskTensor(Tensor):
    """A tensor in the chunks of a dask array, wherever these are: on disk, in other processes, on a cluster.

    Nothing is ever gathered but sums. Every chunk computes its part of all sums of a pass at once, with the means that
    there are for an array of its kind, and these parts are added in a tree. All of that is done by the scheduler that
    dask would use: threads, processes, or the cluster of a `distributed.Client`.

    Parameters
    ----------
    array : dask array of shape (d_0, d_1, d_2, ...)
        Real numbers, three modes or more; chunks of NumPy, CuPy or pydata/sparse, of any sizes. A worker needs memory
        for one chunk of every thread, and about 200 MB beyond.
    symmetric : bool, optional
        Whether permuting the modes leaves the tensor as it is. By default that is detected, to rounding, in the first
        pass over the chunks.

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

    holds_entries = True

    def __init__(self, array: Any, *, symmetric: bool | None = None) -> None:
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
            raise TypeError(f"tensor must hold real numbers; got a dask array of {array.dtype}")
        if symmetric is not None:
            as_flag("symmetric", symmetric)
        if symmetric:
            check_symmetric_shape(self.shape)
        self.array = array
        self._symmetric = False if symmetric is None and len(set(self.shape)) > 1 else symmetric
        self.unseen = True

    @property
    def symmetric(self) -> bool:  # type: ignore[override]
        """Whether permuting the modes leaves the tensor as it is: as declared, or by a first look at its entries."""
        if self._symmetric is None:
            self.look()
        return bool(self._symmetric)

    def look(self, width: int = 0) -> FirstLook:
        undecided = self._symmetric is None
        if self._look is None or self._look.width < width or undecided:
            self._look = first_look(self, width, one_mode=bool(self._symmetric), probe=undecided)
            if undecided:
                self._symmetric = self._look.asymmetry is not None and self._look.asymmetry < self._rounding()
        return self._look

    def check(self) -> None:
        limit = float(np.finfo(self.reference.dtype).max)
        if not self.squared_norm() < limit:
            raise ValueError(
                f"tensor must be finite, with entries whose squares fit into {self.reference.dtype}; the squared norm "
                f"of {self!r} is {self.squared_norm():g}. NaN in a dask array are missing entries; leave out slices "
                "with infinities, or divide by the largest entry"
            )
        self.unseen = False

    def _rounding(self) -> float:
        return 1e-10 if self.reference.dtype == np.float64 else 1e-4

    @property
    def reference(self) -> Array:
        return np.zeros(0, dtype=np.float32 if self.array.dtype == np.float32 else np.float64)

    def sum_over_chunks(self, function: OfChunk, asked: Any, *others: Any) -> Shares:
        """Return the sum of what a function gives for every chunk, in one pass.

        Parameters
        ----------
        function : callable
            Of a module, called as ``function(asked, ranges, block, *others)`` for every chunk; returns a dict.
        asked : object
            What the function is to compute.
        *others : dask arrays
            In chunks of the same sizes.

        Returns
        -------
        dict
            Values with equal keys added.
        """
        from codiag.tensors._chunks import sum_over_chunks

        return sum_over_chunks(function, [self.array, *others], asked)

    def read(self, *asked: Sum) -> list[Any]:
        shares = self.sum_over_chunks(_sums_of_chunk, asked)
        by_sum: list[Shares] = [{} for _ in asked]
        for (number, *key), share in shares.items():
            by_sum[number][tuple(key)] = share
        return [one.total(own, self) for one, own in zip(asked, by_sum, strict=True)]

    def project(self, *directions: Array) -> Array:
        shares = self.sum_over_chunks(_projected_chunk, tuple(directions))
        stack = np.zeros((directions[0].shape[0], *self.shape[:2]), dtype=self.reference.dtype)
        for (row, column), part in shares.items():
            stack[:, row : row + part.shape[1], column : column + part.shape[2]] = part
        return stack

    def permute(self, axes: Sequence[int]) -> DaskTensor:
        return self._with(self.array.transpose(tuple(axes)))

    def without_symmetry(self) -> DaskTensor:
        if self._symmetric is False:
            return self
        other = DaskTensor(self.array, symmetric=False)
        other.unseen = self.unseen
        return other

    def compress(self, *bases: Array | None) -> Tensor:
        core: Tensor = self.read(Core(bases))[0]
        return core

    def mttkrp(self, factors: Sequence[Array], mode: int) -> Array:
        return self.read(Products(factors, [mode]))[0][0]

    def mttkrps(self, factors: Sequence[Array]) -> list[Array]:
        products: list[Array] = self.read(Products(factors))[0]
        return products

    def squared_norm(self) -> float:
        return self.look().squared_norm

    def squared_distance(self, weights: Array, factors: Sequence[Array]) -> float:
        return float(self.read(SquaredDistance(weights, factors))[0])

    def inner(self, weights: Array, factors: Sequence[Array]) -> float:
        return float(self.sum_over_chunks(_inner_of_chunk, (weights, tuple(factors)))[()])

    def asymmetry(self) -> float:
        """Measure how far the tensor is from symmetric, along random vectors, which see any difference.

        Returns
        -------
        float
            The share of the tensor that permuting its modes changes: 0 if symmetric, about 1.3 for pure noise.
        """
        if len(set(self.shape)) > 1:
            return math.inf
        if self._look is not None and self._look.asymmetry is not None:
            return self._look.asymmetry
        return asymmetry(*self.read(*symmetry_probes(self), SquaredNorm()))

    def symmetrized(self) -> DaskTensor:
        """Average the tensor over all permutations of its modes, as soon as it is read.

        Returns
        -------
        DaskTensor
        """
        turns = list(permutations(range(self.order)))
        array = self.array / len(turns)
        for turn in turns[1:]:
            array = array + self.array.transpose(turn) / len(turns)
        return DaskTensor(array, symmetric=True)

    def weights_of(self, observed: Any) -> Any:
        """Return weights of the entries, an array of NumPy or dask, in the chunks of the tensor.

        Parameters
        ----------
        observed : array of shape `shape`, or of one entry
            Boolean, or weights.

        Returns
        -------
        dask array of shape `shape`
            In double precision.
        """
        from codiag.tensors._chunks import chunked_like

        given = observed if hasattr(observed, "dtype") else np.asarray(observed)
        if given.dtype.kind not in "buif":
            raise TypeError(f"observed must be boolean, or hold weights; got an array of {given.dtype}")
        if tuple(given.shape) not in (self.shape, (1,) * self.order):
            raise ValueError(f"observed must have the shape of the tensor, {self.shape}; got {tuple(given.shape)}")
        return chunked_like(self.array, given)

    def to_dense(self) -> Array:
        return _as_entries(self.array.compute()).astype(self.reference.dtype, copy=False)

    def __mul__(self, scale: object) -> Tensor:
        if not isinstance(scale, REAL):
            return NotImplemented
        other = self._with(self.array * as_scale(scale, self.reference))
        other.unseen = self.unseen
        if self._look is not None:
            other._look = self._look.scaled(float(scale))
        return other

    __rmul__ = __mul__

    def _with(self, array: Any) -> DaskTensor:
        return DaskTensor(array, symmetric=self._symmetric)

    def __repr__(self) -> str:
        n_chunks = math.prod(self.array.numblocks)
        kind = "symmetric " if self._symmetric else ""  # what is not known yet is not worth a pass
        sizes = " x ".join(str(size) for size in self.shape)
        return f"DaskTensor({kind}{sizes}, {n_chunks} chunk{'s' if n_chunks > 1 else ''})"


def _sums_of_chunk(asked: Sequence[Sum], ranges: Ranges, block: Array) -> Shares:
    """Return all sums of a pass for one chunk, computed as those of a tensor of its kind."""
    local = tensor_of_chunk(block)
    known: dict[Any, Array] = {}
    own = [_prepared(one.within(ranges), local.reference, known) for one in asked]
    shares: Shares = {}
    for number, (one, result) in enumerate(zip(asked, local.read(*own), strict=True)):
        shares |= {(number, *key): to_host(share) for key, share in one.shares(result, ranges).items()}
    return shares


def _projected_chunk(directions: Sequence[Array], ranges: Ranges, block: Array) -> Shares:
    local = tensor_of_chunk(block)
    own = [moved(rows[:, part], local.reference) for rows, part in zip(directions, ranges[2:], strict=True)]
    return {(ranges[0].start, ranges[1].start): to_host(local.project(*own))}


def _inner_of_chunk(components: tuple[Array, Sequence[Array]], ranges: Ranges, block: Array) -> Shares:
    """Return a chunk's part of an inner product: by a chunk's own method, which sums in double precision."""
    local = tensor_of_chunk(block)
    weights, factors = components
    rows = tuple(factor[part, :] for factor, part in zip(factors, ranges, strict=True))
    weights, rows = _prepared((weights, rows), local.reference, {})
    return {(): local.inner(weights, rows)}


def tensor_of_chunk(block: Array) -> DenseTensor | SparseTensor:
    """Return a chunk as a tensor of its own, without a look at its entries."""
    if hasattr(block, "tocoo") and hasattr(block, "fill_value"):
        block = block.tocoo()
    if hasattr(block, "coords") and hasattr(block, "fill_value"):
        if block.fill_value != 0:
            raise ValueError(f"it must be zero where it has no entries; its fill_value is {block.fill_value}")
        values = block.data if block.data.dtype == np.float32 else block.data.astype(np.float64)
        return SparseTensor(block.coords.astype(np.int64), values, block.shape, check=False)
    return DenseTensor.of(block, symmetric=False)


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


def _as_entries(computed: Array) -> np.ndarray:
    return to_host(computed.todense() if hasattr(computed, "todense") else computed)
