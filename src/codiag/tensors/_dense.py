"""A tensor that is an array: in memory, on an accelerator, or mapped from a file."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np
from array_api_compat import device, is_numpy_array, is_torch_array

from codiag._array import Array, array_namespace, blocks, like, moved, on_host, pick, precise, squares, to_host, widest
from codiag._validation import as_flag, as_real_array
from codiag.tensors._base import Tensor, check_shape, check_symmetric_shape


class DenseTensor(Tensor):
    """A tensor held as an array of any library, or mapped from an ``.npy`` file; never copied, never changed.

    Work goes through the entries in slabs, in the order in which they are stored, so that a mapped file is read from
    front to back and needs no memory but that of one slab.

    Parameters
    ----------
    array : array of shape (d_0, d_1, d_2, ...)
        Real numbers, three modes or more.
    symmetric : bool, optional
        Whether permuting the modes leaves the tensor as it is. By default that is detected, to rounding.
    check : bool
        Whether to check that the array holds finite real numbers. False takes that on trust.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.tensors import DenseTensor
    >>> DenseTensor(np.ones((3, 3, 3)))
    DenseTensor(symmetric 3 x 3 x 3)
    """

    holds_entries = True

    def __init__(self, array: Array | Sequence[Array], *, symmetric: bool | None = None, check: bool = True) -> None:
        way_out = "factorize real and imaginary parts as one more mode of size two"
        entries: Array = as_real_array(array, "tensor", way_out, cast=False) if check else array
        self._entries: Array = np.asarray(entries) if is_numpy_array(entries) else entries
        self.shape = check_shape(entries.shape)
        if symmetric is not None:
            as_flag("symmetric", symmetric)
        if symmetric:
            check_symmetric_shape(self.shape)
        self._memory_order = _memory_order(self._entries)
        self._squared_norm: float | None = None
        with np.errstate(all="ignore"):  # entries that are not finite are found below
            if symmetric is None and self._seems_symmetric():
                share, self._squared_norm = self._asymmetry_and_squared_norm()
                symmetric = share < self._rounding()
        self.symmetric = bool(symmetric)
        if check:
            self._check_range()

    @classmethod
    def of(cls, array: Array, *, symmetric: bool) -> DenseTensor:
        """Return the tensor of an array without a check of its entries.

        Parameters
        ----------
        array : array of shape (d_0, d_1, d_2, ...)
            Finite real numbers.
        symmetric : bool
            Whether permuting the modes leaves the tensor as it is.

        Returns
        -------
        DenseTensor
        """
        return cls(array, symmetric=symmetric, check=False)

    def _check_range(self) -> None:
        """Raise unless the entries are finite and their squares neither overflow nor all vanish."""
        range_of = array_namespace(self.reference).finfo(self.reference.dtype)
        if not self.squared_norm() < float(range_of.max):
            self._raise_not_finite()
        least = max(float(range_of.smallest_normal), 1e-290)
        if self.squared_norm() < least and np.any(to_host(self._entries) != 0):
            self._raise_out_of_range()

    @cached_property
    def reference(self) -> Array:
        xp = array_namespace(self._entries)
        single = self._entries.dtype == xp.float32 or getattr(self._entries.dtype, "str", "") == ">f4"
        kept = xp.float32 if single else widest(self._entries)
        return xp.zeros(0, dtype=kept, device=device(self._entries))

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

    def without_symmetry(self) -> DenseTensor:
        return DenseTensor.of(self._entries, symmetric=False)

    def compress(self, *bases: Array | None) -> DenseTensor:
        xp = array_namespace(self.reference)
        ordered = [bases[mode] for mode in self._memory_order]
        parts, total = [], None
        for rows, block in self._slabs(self._memory_order):
            for axis in range(self.order - 1, 0, -1):
                block = block if ordered[axis] is None else _contract(block, ordered[axis], axis)
            if ordered[0] is None:
                parts.append(block)
                continue
            share = _contract(block, ordered[0][rows, :], 0)
            total = share if total is None else total + share
        core = xp.concat(parts) if total is None else total
        return self._compressed(xp.permute_dims(core, tuple(np.argsort(self._memory_order).tolist())), bases)

    def mttkrp(self, factors: Sequence[Array], mode: int) -> Array:
        return self._mttkrps(factors, [mode])[mode]

    def mttkrps(self, factors: Sequence[Array]) -> list[Array]:
        products = self._mttkrps(factors, range(self.order))
        return [products[mode] for mode in range(self.order)]

    def _mttkrps(self, factors: Sequence[Array], modes: Sequence[int]) -> dict[int, Array]:
        """Contract slab by slab; one product with the last factor serves all modes but the last."""
        xp = array_namespace(self.reference)
        ordered = [factors[mode] for mode in self._memory_order]
        wanted = [self._memory_order.index(mode) for mode in modes]
        last = self.order - 1
        rows_of_first: list[Array] = []
        sums: dict[int, Array] = {}
        for rows, block in self._slabs(self._memory_order, width=factors[0].shape[1]):
            inside = [ordered[0][rows, :], *ordered[1:]]
            shares = {}
            if last in wanted:
                columns = xp.matrix_transpose(khatri_rao(inside[:-1]))
                shares[last] = columns @ xp.reshape(block, (-1, block.shape[-1]))
            if wanted != [last]:
                half = block @ inside[-1]
                shares |= {axis: _contract_pairwise(half, inside, axis) for axis in wanted if axis != last}
            if 0 in shares:
                rows_of_first.append(shares.pop(0))
            sums = {axis: share + sums[axis] if axis in sums else share for axis, share in shares.items()}
        if rows_of_first:
            sums[0] = rows_of_first[0] if len(rows_of_first) == 1 else xp.concat(rows_of_first)
        return {
            self._memory_order[axis]: xp.matrix_transpose(total) if axis == last else total
            for axis, total in sums.items()
        }

    def squared_norm(self) -> float:
        if self._squared_norm is None:
            with np.errstate(all="ignore"):
                self._squared_norm = sum(squares(block) for _, block in self._slabs(self._memory_order))
        return self._squared_norm

    def squared_distance(self, weights: Array, factors: Sequence[Array]) -> float:
        return sum(squares(entries - model) for entries, model in self._beside(weights, factors))

    def inner(self, weights: Array, factors: Sequence[Array]) -> float:
        total = 0.0
        for entries, model in self._beside(weights, factors):
            total += float(array_namespace(entries).sum(entries * model))
        return total

    def _beside(self, weights: Array, factors: Sequence[Array]) -> Iterator[tuple[Array, Array]]:
        """Yield entries and those that components give, slab by slab as matrices, in double precision if possible."""
        exact = precise(self.reference)
        xp = array_namespace(exact)
        weights, ordered = moved(weights, exact), [moved(factors[mode], exact) for mode in self._memory_order]
        for rows, block in self._slabs(self._memory_order, width=weights.shape[0]):
            columns = khatri_rao([ordered[0][rows, :] * weights, *ordered[1:-1]])
            yield xp.reshape(precise(block), (-1, block.shape[-1])), columns @ xp.matrix_transpose(ordered[-1])

    def to_dense(self) -> Array:
        return self._cast(self._entries)

    def asymmetry(self) -> float:
        """Measure how far the tensor is from symmetric, along random vectors, which see any difference.

        Returns
        -------
        float
            The share of the tensor that permuting its modes changes: 0 if symmetric, about 1.3 for pure noise.
        """
        return math.inf if len(set(self.shape)) > 1 else self._asymmetry_and_squared_norm()[0]

    def _asymmetry_and_squared_norm(self) -> tuple[float, float]:
        """Return both from one pass over the entries of a tensor whose modes have one size."""
        xp = array_namespace(self.reference)
        rng = np.random.default_rng(0)
        probes = [like(rng.standard_normal(self.shape[0]), self.reference) for _ in range(self.order - 2)]
        parts, turned, total = [], None, 0.0
        for rows, block in self._slabs(self._memory_order):  # symmetric in this order of the modes if in any
            parts.append(_without_last(block, probes))
            share = xp.tensordot(probes[-1][rows], _without_last(block, probes[:-1]), axes=((0,), (0,)))
            turned = share if turned is None else turned + share
            total += squares(block)
        first = parts[0] if len(parts) == 1 else xp.concat(parts)
        # A swap of two modes and a turn of all generate every permutation.
        gaps = [first - xp.matrix_transpose(first), first - turned]
        # On average a projection is as large as the tensor; one that happens to be small has no more noise in it.
        norm = math.sqrt(total)
        size = max(float(xp.linalg.vector_norm(first)), norm if math.isfinite(norm) else 0.0)
        share = max(float(xp.linalg.vector_norm(gap)) for gap in gaps) / size if size > 0 else math.inf
        return share, total

    def _seems_symmetric(self) -> bool:
        """Tell whether a few rows and columns are symmetric, which rules out most tensors that are not."""
        if len(set(self.shape)) > 1:
            return False
        few, corner = np.unique(np.linspace(0, self.shape[0] - 1, 6).astype(int)), self._entries
        for axis in range(self.order):
            corner = pick(corner, few, axis)
        entries = to_host(corner).astype(np.float64)
        gap = max(float(np.abs(entries - np.moveaxis(entries, 0, axis)).max()) for axis in range(1, self.order))
        return gap <= 10 * self._rounding() * float(np.abs(entries).max())

    def _rounding(self) -> float:
        return 1e-10 if self.reference.dtype == array_namespace(self.reference).float64 else 1e-4

    def _slabs(self, order: Sequence[int], width: int = 1) -> Iterator[tuple[slice, Array]]:
        """Yield parts along the first mode of the given order, with the modes in that order, as floating point.

        `width` is what the last mode is to become in products: slabs are small enough for either.
        """
        xp = array_namespace(self._entries)
        turned = tuple(order) != tuple(range(self.order))
        entries = xp.permute_dims(self._entries, tuple(order)) if turned else self._entries
        row = math.prod(entries.shape[1:-1]) * max(entries.shape[-1], width)
        for rows in blocks(entries.shape[0], row, scale=1 if on_host(self._entries) else 64):
            yield rows, self._cast(entries[rows, ...])

    def _cast(self, block: Array) -> Array:
        wanted = self.reference.dtype
        return block if block.dtype == wanted else array_namespace(block).astype(block, wanted)

    def _raise_out_of_range(self) -> None:
        raise ValueError(
            f"tensor must have entries whose squares fit into {self.reference.dtype}; divide by the largest of them"
        )

    def _raise_not_finite(self) -> None:
        bad = ~np.isfinite(to_host(self._entries))
        if not bad.any():
            self._raise_out_of_range()
        first = tuple(int(i) for i in np.argwhere(bad)[0])
        raise ValueError(
            f"tensor must be finite; {int(bad.sum())} of {bad.size} entries are NaN or infinite, the first at {first}. "
            "Fill them, or leave out the slices that hold them"
        )


def _memory_order(array: Array) -> tuple[int, ...]:
    """Return the modes by decreasing stride, so that entries are read in the order in which they are stored."""
    strides = array.strides if is_numpy_array(array) else array.stride() if is_torch_array(array) else None
    order = range(array.ndim) if strides is None else np.argsort([-stride for stride in strides], kind="stable")
    return tuple(int(mode) for mode in order)


def khatri_rao(factors: Sequence[Array]) -> Array:
    """Return the columnwise Kronecker product, shape (d_0 d_1 ..., r), the first factor varying slowest."""
    xp = array_namespace(factors[0])
    product = factors[0]
    for factor in factors[1:]:
        product = xp.reshape(product[:, None, :] * factor[None, :, :], (-1, factor.shape[1]))
    return product


def symmetrize(array: Array) -> Array:
    """Return the mean of a tensor over all permutations of its modes, its symmetric part.

    Parameters
    ----------
    array : array of shape (d, d, d, ...)

    Returns
    -------
    array of shape (d, d, d, ...)

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.tensors import symmetrize
    >>> bool(np.isclose(symmetrize(np.arange(8.0).reshape(2, 2, 2))[0, 0, 1], (1 + 2 + 4) / 3))
    True
    """
    from itertools import permutations

    array = as_real_array(array, "array", "symmetrize its real and imaginary parts apart")
    xp = array_namespace(array)
    check_symmetric_shape(array.shape, "array")
    if not bool(xp.all(xp.isfinite(array))):
        raise ValueError("array must be finite; some of its entries are NaN or infinite")
    turns = list(permutations(range(array.ndim)))
    mean = array / len(turns)
    for turn in turns[1:]:
        mean = mean + xp.permute_dims(array, turn) / len(turns)
    return mean


def _without_last(block: Array, probes: Sequence[Array]) -> Array:
    """Contract the last modes of a block, one with each probe, so that the first and two more are left."""
    for probe in reversed(probes):
        block = block @ probe
    return block


def _contract(block: Array, basis: Array, axis: int) -> Array:
    """Multiply one axis by the transpose of a basis."""
    xp = array_namespace(block)
    if axis == block.ndim - 1:
        return block @ basis
    return xp.moveaxis(xp.tensordot(block, basis, axes=((axis,), (0,))), -1, axis)


def _contract_pairwise(half: Array, factors: Sequence[Array], axis: int) -> Array:
    """Contract all axes but one and the last of (d_0, ..., d_{N-2}, r) with factors, column by column."""
    xp = array_namespace(half)
    for other in range(half.ndim - 2, -1, -1):
        if other != axis:
            shape = (factors[other].shape[0], *[1] * (half.ndim - 2 - other), factors[other].shape[1])
            half = xp.sum(half * xp.reshape(factors[other], shape), axis=other)
    return half
