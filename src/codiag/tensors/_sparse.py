"""A tensor that is a list of its entries."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from codiag._array import Array, blocks, double, fits_block, squares, to_host
from codiag._validation import as_flag, as_number, as_real_array
from codiag.tensors._base import CLOSE, REAL, Tensor, as_scale, check_shape, check_symmetric_shape
from codiag.tensors._factored import FactoredTensor
from codiag.tensors._sums import Sum, logged


class SparseTensor(Tensor):
    """A tensor given by the coordinates and values of its entries; all others are zero, and are never formed.

    Parameters
    ----------
    coords : array of integers, shape (order, n)
        One row per mode, one column per entry. Values of entries that occur more than once are added, unless others
        are missing: then each must occur once.
    values : array of shape (n,)
    shape : tuple of ints
    symmetric : bool
        Declare that permuting the modes leaves the tensor as it is. Not checked.
    absent : {"zero", "missing"}
        What entries are that are not listed. Missing ones say nothing about the components: contractions take them for
        zeros, and fits leave them out.
    check : bool
        Whether to check coordinates and values, and to add the values of equal coordinates. Without, `coords` must be
        an array of int64 with distinct columns inside of the shape, and `values` finite floating-point numbers.

    Examples
    --------
    >>> from codiag.tensors import SparseTensor
    >>> tensor = SparseTensor([[0, 0, 4], [1, 1, 2], [2, 2, 0]], [1.0, 2.0, 5.0], (5, 5, 5))
    >>> tensor.values.tolist()
    [3.0, 5.0]
    """

    holds_entries = True

    def __init__(
        self,
        coords: Array,
        values: Array,
        shape: Sequence[int],
        *,
        symmetric: bool = False,
        absent: str = "zero",
        check: bool = True,
    ) -> None:
        self.shape = check_shape(shape)
        as_flag("symmetric", symmetric)
        if symmetric:
            check_symmetric_shape(self.shape)
        if absent not in ("zero", "missing"):
            raise ValueError(f"absent must be 'zero' or 'missing'; got {absent!r}")
        self.symmetric = bool(symmetric)
        self.absent = absent
        if check:
            coords = _as_coordinates(coords, self.shape)
            values = _as_values(values, coords.shape[1])
            if absent == "zero":
                coords, values = _summed(coords, values, self.shape)
            else:
                _check_distinct(coords, self.shape)
        self.coords: np.ndarray = coords
        self.values: np.ndarray = values

    @property
    def reference(self) -> Array:
        return self.values[:0]

    def project(self, *directions: Array) -> Array:
        n, (rows, columns) = directions[0].shape[0], self.shape[:2]
        cells = self.coords[0] * columns + self.coords[1]
        stack = np.empty((n, rows * columns), dtype=self.values.dtype)
        for l in range(n):
            scaled = self.values
            for direction, places in zip(directions, self.coords[2:], strict=True):
                scaled = scaled * direction[l, places]
            stack[l] = np.bincount(cells, scaled, minlength=rows * columns)
        return stack.reshape(n, rows, columns)

    def permute(self, axes: Sequence[int]) -> SparseTensor:
        shape = [self.shape[mode] for mode in axes]
        return self._with(self.coords[list(axes)], self.values, shape)

    def without_symmetry(self) -> SparseTensor:
        return SparseTensor(self.coords, self.values, self.shape, absent=self.absent, check=False)

    def __mul__(self, scale: object) -> Tensor:
        if not isinstance(scale, REAL):
            return NotImplemented
        values = self.values * as_scale(scale, self.reference)
        return self._with(self.coords, values, self.shape)

    __rmul__ = __mul__

    def without_empty_rows(self, at_least: int = 1) -> tuple[SparseTensor, list[np.ndarray]]:
        """Return the tensor without the indices that have no entries.

        Row i of a factor of the smaller tensor then belongs to index ``kept[mode][i]``; other rows of a factor of this
        one are zero. A symmetric tensor keeps the same indices in all modes.

        Parameters
        ----------
        at_least : int
            Indices to keep in every mode that has them, empty or not: as many as components are asked for.

        Returns
        -------
        tensor : SparseTensor
        kept : list of arrays of integers
            The indices that are left, one array a mode.

        Examples
        --------
        >>> from codiag.tensors import SparseTensor
        >>> tensor = SparseTensor([[3, 70], [5, 60], [7, 50]], [1.0, 2.0], (10**9, 10**9, 10**9))
        >>> smaller, kept = tensor.without_empty_rows()
        >>> smaller, [indices.tolist() for indices in kept]
        (SparseTensor(2 x 2 x 2, 2 entries), [[3, 70], [5, 60], [7, 50]])
        """
        as_number("at_least", at_least, integer=True, zero=True)
        rows = [np.unique(self.coords)] * self.order if self.symmetric else [np.unique(row) for row in self.coords]
        kept = [_filled(row, min(size, at_least)) for row, size in zip(rows, self.shape, strict=True)]
        coords = np.stack([np.searchsorted(*pair) for pair in zip(kept, self.coords, strict=True)])
        shape = [row.size for row in kept]
        return self._with(coords, self.values, shape), kept

    def _with(self, coords: np.ndarray, values: np.ndarray, shape: Sequence[int]) -> SparseTensor:
        """Return a tensor of other entries and the same kind."""
        return SparseTensor(coords, values, shape, symmetric=self.symmetric, absent=self.absent, check=False)

    def compress(self, *bases: Array | None) -> Tensor:
        """Sum Kronecker products of basis rows, in blocks of entries."""
        opened = [mode for mode, basis in enumerate(bases) if basis is None]
        closed = {mode: basis for mode, basis in enumerate(bases) if basis is not None}
        first = None if opened else closed.pop(0)  # with no mode left open, its sum is a matrix product
        sizes = [basis.shape[1] for basis in closed.values()]
        cells = np.zeros(self.values.size, dtype=np.int64)
        for mode in opened:
            cells = cells * self.shape[mode] + self.coords[mode]
        height = math.prod(self.shape[mode] for mode in opened) if first is None else first.shape[1]
        core = np.zeros((height, math.prod(sizes)), dtype=self.values.dtype)
        for part in blocks(self.values.size, core.shape[1]):
            rows = self.values[part, None]
            for mode, basis in closed.items():
                rows = (rows[:, :, None] * basis[self.coords[mode, part]][:, None, :]).reshape(rows.shape[0], -1)
            if first is None:
                _scatter(core, cells[part], rows)
            else:
                core += first[self.coords[0, part]].T @ rows
        leading = [self.shape[mode] for mode in opened] if first is None else [first.shape[1]]
        order = np.argsort((opened or [0]) + list(closed))
        return self._compressed(np.ascontiguousarray(core.reshape(leading + sizes).transpose(order)), bases)

    def mttkrp(self, factors: Sequence[Array], mode: int) -> Array:
        product = np.zeros((self.shape[mode], factors[0].shape[1]), dtype=self.values.dtype)
        for part in blocks(self.values.size, factors[0].shape[1]):
            rows = self.values[part, None]
            for other, factor in enumerate(factors):
                if other != mode:
                    rows = rows * factor[self.coords[other, part]]
            _scatter(product, self.coords[mode, part], rows)
        return product

    def read(self, *asked: Sum) -> list[Any]:
        """Compute several sums: each goes through the list in its own way, all between two changes of what is asked."""
        (results,) = logged(([one.of(self) for one in asked] for _ in range(1)), 1, self.shape, asked)
        return results

    def squared_norm(self) -> float:
        return squares(self.values) if self._look is None else self._look.squared_norm

    def inner(self, weights: Array, factors: Sequence[Array]) -> float:
        return sum(float(np.vdot(values, model)) for values, model in self._beside(weights, factors))

    def squared_distance(self, weights: Array, factors: Sequence[Array]) -> float:
        r"""Return :math:`\sum_{T_e \ne 0} (T_e - M_e)^2 + \sum_{T_e = 0} M_e^2`.

        The second part is :math:`\|M\|^2 - \sum_{T_e \ne 0} M_e^2`, right to about 1e-16 of :math:`\|M\|^2`. Where that
        is too little and the zeros are not too many, each of them is subtracted.
        """
        on, energy, size = 0.0, 0.0, FactoredTensor(weights, factors, symmetric=False).squared_norm()
        for values, model in self._beside(weights, factors):
            on += squares(values - model)
            energy += squares(model)
        total = on + max(size - energy, 0.0)
        n_entries = math.prod(self.shape)
        if total < CLOSE * size and (fits_block(n_entries) or n_entries <= 4 * self.values.size):
            return self._squared_distance_everywhere(weights, factors)
        return total

    def _squared_distance_everywhere(self, weights: Array, factors: Sequence[Array]) -> float:
        """Subtract entry by entry, zeros too, in blocks of slices along the first mode."""
        known, total = [double(factor) for factor in factors], 0.0
        order = np.argsort(self.coords[0], kind="stable")
        for part in blocks(self.shape[0], math.prod(self.shape[1:])):
            gap = FactoredTensor(double(weights), [known[0][part], *known[1:]], symmetric=False).to_dense()
            here = order[slice(*np.searchsorted(self.coords[0, order], [part.start, part.stop]))]
            gap[(self.coords[0, here] - part.start, *self.coords[1:, here])] -= self.values[here]
            total += squares(gap)
        return total

    def _beside(self, weights: Array, factors: Sequence[Array]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield values and those that components give, in blocks of entries and in double precision."""
        for part in blocks(self.values.size, weights.shape[0]):
            model = double(weights)
            for factor, places in zip(factors, self.coords[:, part], strict=True):
                model = model * double(factor[places])
            yield double(self.values[part]), np.sum(model, axis=1)

    def to_dense(self) -> Array:
        dense = np.zeros(self.shape, dtype=self.values.dtype)
        dense[tuple(self.coords)] = self.values
        return dense

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, {self.values.size} entries)"


def _filled(rows: np.ndarray, count: int) -> np.ndarray:
    """Return sorted indices with the first that are not among them, so that there are so many."""
    missing = max(count - rows.size, 0)
    if missing == 0:
        return rows
    # Of the first `count` indices at least `missing` are not among those there are.
    return np.union1d(rows, np.setdiff1d(np.arange(count), rows)[:missing])


def _scatter(target: np.ndarray, cells: np.ndarray, rows: np.ndarray) -> None:
    """Add each row to the cell of the target it belongs to."""
    n = cells.size
    gather = sparse.csr_matrix((np.ones(n, rows.dtype), (cells, np.arange(n))), shape=(target.shape[0], n))
    target += gather @ rows


def _as_coordinates(coords: Array, shape: tuple[int, ...]) -> np.ndarray:
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
    return places.astype(np.int64, copy=False)


def _as_values(values: Array, count: int) -> np.ndarray:
    entries = to_host(as_real_array(values, "values", "keep real and imaginary parts as two tensors"))
    if entries.shape != (count,):
        raise ValueError(f"values must have shape ({count},), one per coordinate; got {entries.shape}")
    if not np.all(np.isfinite(entries)):
        raise ValueError(f"values must be finite; {int(np.sum(~np.isfinite(entries)))} are NaN or infinite")
    return entries


def _check_distinct(places: np.ndarray, shape: tuple[int, ...]) -> None:
    """Raise if an entry was listed twice: a fit could not tell whether its values are to be added or averaged."""
    if math.prod(shape) < 2**62:
        keys = np.sort(np.ravel_multi_index(tuple(places), shape))
        twice = keys[1:][keys[1:] == keys[:-1]]
        first = [int(row[0]) for row in np.unravel_index(twice[:1], shape)] if twice.size else []
    else:
        unique, counts = np.unique(places, axis=1, return_counts=True)
        first = unique[:, counts > 1][:, 0].tolist() if np.any(counts > 1) else []
    if first:
        raise ValueError(
            f"coords must be distinct where absent='missing'; entry {tuple(first)} occurs more than once. Add or "
            "average its values first"
        )


def _summed(places: np.ndarray, values: np.ndarray, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Add the values of equal coordinates and drop zeros, entries in the order of memory."""
    if math.prod(shape) < 2**62:
        keys, inverse = np.unique(np.ravel_multi_index(tuple(places), shape), return_inverse=True)
        unique = np.stack(np.unravel_index(keys, shape))
    else:
        unique, inverse = np.unique(places, axis=1, return_inverse=True)
    sums = np.bincount(inverse.ravel(), values, minlength=unique.shape[1]).astype(values.dtype)
    kept = sums != 0
    return np.ascontiguousarray(unique[:, kept]), sums[kept]
