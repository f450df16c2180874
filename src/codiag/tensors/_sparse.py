"""A tensor that is a list of entries."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from codiag._arrays import Array, blocks, fits_block, squares, to_double, to_host
from codiag._checks import as_number
from codiag.tensors._base import CANCELLATION_LIMIT, StoredTensor, Tensor, as_scale, check_shape, declared_symmetry
from codiag.tensors._factored import FactoredTensor
from codiag.tensors._sparse_products import (
    FiberCore,
    FiberInner,
    FiberProducts,
    FiberSum,
    Listing,
    as_coordinates,
    as_values,
    in_memory_order,
    totals_over,
)
from codiag.tensors._sums import Core, Products, SquaredDistance, Sum, logged

if TYPE_CHECKING:
    from codiag.tensors._dense import DenseTensor
    from codiag.tensors.entries import ObservedEntries


class SparseTensor(StoredTensor):
    """A tensor given by the coordinates and values of its entries; all others are zero and never stored.

    Parameters
    ----------
    coords : array of integers, shape (order, n)
        One row per mode, one column per entry. If coordinates occur more than once, their values are added; with
        ``absent="missing"`` this is an error.
    values : array of shape (n,)
        The entries.
    shape : tuple of ints
        The shape of the tensor.
    symmetric : bool
        Whether no permutation of the modes changes the tensor. This is not checked.
    absent : {"zero", "missing"}
        The meaning of entries that are not listed. Fits ignore missing entries; contractions take them for zeros.
    check : bool
        Whether to check coordinates and values, sort the entries, and add the values of equal coordinates. With False,
        `coords` must be an array of integers with distinct columns within the shape, and `values` an array of finite
        floating-point numbers.

    Attributes
    ----------
    coords : array of int32, or of int64 if a mode is too long, shape (order, n)
        Coordinates, in the order of a dense array in memory.
    values : array of shape (n,)
        The stored entries.

    See Also
    --------
    as_tensor : Takes COO tensors of pydata/sparse and pyttb.
    codiag.io.labelled_tensor : Makes one from a long table.

    Examples
    --------
    >>> from codiag.tensors import SparseTensor
    >>> tensor = SparseTensor([[0, 0, 4], [1, 1, 2], [2, 2, 0]], [1.0, 2.0, 5.0], (5, 5, 5))
    >>> tensor.values.tolist()
    [3.0, 5.0]
    """

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
        self.symmetric = bool(declared_symmetry(symmetric, self.shape))
        if absent not in ("zero", "missing"):
            raise ValueError(f"absent must be 'zero' or 'missing'; got {absent!r}")
        self.absent = absent
        if check:
            coords = as_coordinates(coords, self.shape)
            values = as_values(values, coords.shape[1])
            coords, values = in_memory_order(coords, values, self.shape, distinct=absent == "missing")
        self.coords: np.ndarray = coords
        self.values: np.ndarray = values
        self._listings: dict[tuple[int, ...], Listing] = {}

    @property
    def n_stored(self) -> int:
        return int(self.values.size)

    @property
    def is_partial(self) -> bool:  # type: ignore[override]
        return self.absent == "missing"

    @property
    def reference(self) -> Array:
        return self.values[:0]

    def observed_entries(self, weights: Array | None) -> ObservedEntries | None:
        from codiag.tensors.entries import ListedEntries

        if not self.is_partial:
            return super().observed_entries(weights)
        if weights is None:
            return ListedEntries(self.coords, self.values, None, self.shape)
        listed = to_host(weights)[tuple(self.coords)]
        is_observed = listed > 0
        return ListedEntries(self.coords[:, is_observed], self.values[is_observed], listed[is_observed], self.shape)

    def listed_entries(self, weights: Array | None) -> ObservedEntries:
        from codiag.tensors.entries import ListedEntries

        if self.is_partial:
            return cast("ObservedEntries", self.observed_entries(weights))
        if weights is not None:
            return super().listed_entries(weights)
        return ListedEntries(self.coords, to_double(self.values), None, self.shape, has_zeros=True)

    def filled(self, weights: Array | None) -> Tensor:
        """Return an unbiased estimate of the tensor if absent entries are missing; otherwise as `Tensor.filled`.

        The estimate consists of the listed entries divided by the share of entries that are listed.

        Parameters
        ----------
        weights : array of the shape of the tensor, or None
            As `weights_like` returns them.

        Returns
        -------
        Tensor
            A complete tensor.
        """
        if not self.is_partial:
            return super().filled(weights)
        share = self.values.size / math.prod(self.shape)
        return SparseTensor(self.coords, self.values / share, self.shape, symmetric=self.symmetric, check=False)

    def stored_mask(self) -> np.ndarray:
        mask = np.zeros(self.shape, dtype=bool)
        mask[tuple(self.coords)] = True
        return mask

    def part(self, chosen: np.ndarray) -> SparseTensor:
        """Return the tensor of some of the entries.

        Parameters
        ----------
        chosen : array of integers
            The positions of the entries in the list.

        Returns
        -------
        SparseTensor
            A tensor of the same shape.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.tensors import SparseTensor
        >>> SparseTensor([[0, 1], [0, 1], [0, 1]], [1.0, 2.0], (2, 2, 2)).part(np.array([1])).values.tolist()
        [2.0]
        """
        return self._with(self.coords[:, chosen], self.values[chosen], self.shape)

    def project(self, *directions: Array) -> Array:
        n, (rows, columns) = directions[0].shape[0], self.shape[:2]
        cells = self.coords[0].astype(np.int64) * columns + self.coords[1]
        stack = np.empty((n, rows * columns), dtype=self.values.dtype)
        for l in range(n):
            scaled = self.values
            for direction, indices in zip(directions, self.coords[2:], strict=True):
                scaled = scaled * direction[l, indices]
            stack[l] = np.bincount(cells, scaled, minlength=rows * columns)
        return stack.reshape(n, rows, columns)

    def permute(self, axes: Sequence[int]) -> SparseTensor:
        shape = [self.shape[mode] for mode in axes]
        return self._with(self.coords[list(axes)], self.values, shape)

    def _times(self, scale: float) -> SparseTensor:
        return self._with(self.coords, self.values * as_scale(scale, self.reference), self.shape)

    def without_empty_rows(self, at_least: int = 1) -> tuple[SparseTensor, list[np.ndarray]]:
        """Return the tensor without the indices that have no entries.

        Row i of a factor of the smaller tensor belongs to index ``kept[mode][i]``. All other rows of the factors of the
        original tensor are zero. A symmetric tensor keeps the same indices in all modes.

        Parameters
        ----------
        at_least : int
            Smallest number of indices to keep in every mode, if it has as many: at least the number of components.

        Returns
        -------
        tensor : SparseTensor
            The tensor of the remaining indices.
        kept : list of arrays of integers
            The remaining indices, one array per mode.

        Examples
        --------
        >>> from codiag.tensors import SparseTensor
        >>> tensor = SparseTensor([[3, 70], [5, 60], [7, 50]], [1.0, 2.0], (10**9, 10**9, 10**9))
        >>> smaller, kept = tensor.without_empty_rows()
        >>> smaller, [indices.tolist() for indices in kept]
        (SparseTensor(2 x 2 x 2, 2 entries), [[3, 70], [5, 60], [7, 50]])
        """
        as_number("at_least", at_least, integer=True, zero=True)
        rows = [self.coords.reshape(-1)] if self.symmetric else list(self.coords)
        kept = [
            _extended(_distinct(row, size), min(size, at_least)) for row, size in zip(rows, self.shape, strict=False)
        ]
        kept *= self.order if self.symmetric else 1
        shape = tuple(indices.size for indices in kept)
        if shape == self.shape:
            return self, kept
        coords = np.stack([_positions(*pair) for pair in zip(kept, self.coords, strict=True)])
        return self._with(coords, self.values, shape), kept

    def _with(self, coords: np.ndarray, values: np.ndarray, shape: Sequence[int]) -> SparseTensor:
        """Return a tensor of other entries with the same `symmetric` and `absent`."""
        return SparseTensor(coords, values, shape, symmetric=self.symmetric, absent=self.absent, check=False)

    def read(self, *sums: Sum) -> list[Any]:
        """Compute several sums, in one pass over the entries for each order of the modes that is needed."""
        passes: dict[tuple[int, ...], dict[int, FiberSum]] = {}
        for number, request in enumerate(sums):
            front, fiber_sum = self._as_fiber_sum(request)
            if fiber_sum is not None:
                passes.setdefault(front, {})[number] = fiber_sum
        totals: dict[int, list[np.ndarray]] = {}
        for front, fiber_sums in logged(list(passes.items()) or [((0,), {})], max(len(passes), 1), self.shape, sums):
            totals |= zip(fiber_sums, totals_over(self._listing(front), list(fiber_sums.values())), strict=True)
        return [self._result(one, totals[place]) if place in totals else one.of(self) for place, one in enumerate(sums)]

    def _as_fiber_sum(self, request: Sum) -> tuple[tuple[int, ...], FiberSum | None]:
        """Return the modes by which entries are sorted for a sum over fibers, and this sum; None if there is none."""
        if isinstance(request, Products):
            return (0,), FiberProducts(request.factors, range(self.order) if request.modes is None else request.modes)
        if isinstance(request, SquaredDistance):
            return (0,), FiberInner(request.weights, request.factors)
        if not isinstance(request, Core) or all(basis is None for basis in request.bases):
            return (), None
        front = self._front(request.bases)
        compressing = [basis for mode, basis in enumerate(request.bases) if mode not in front and basis is not None]
        return front, FiberCore(request.bases[front[0]], compressing)

    def _front(self, bases: Sequence[Array | None]) -> tuple[int, ...]:
        """Return the modes without a basis; if there are none, the mode whose slices are compressed one by one."""
        uncompressed = tuple(mode for mode, basis in enumerate(bases) if basis is None)
        shortest = int(np.argmin(self.shape))
        # Compressing a slice costs as much as several entries. Sorting the entries anew costs one or two passes.
        has_few_slices = 8 * self.shape[shortest] <= min(self.shape[0], self.values.size)
        return uncompressed or ((shortest,) if has_few_slices else (0,))

    def _listing(self, front: tuple[int, ...]) -> Listing:
        """Return the entries sorted by some modes; the sorted list is stored."""
        if front not in self._listings:
            self._listings[front] = Listing(self.coords, self.values, self.shape).turned(front)
        return self._listings[front]

    def _result(self, request: Sum, totals: list[np.ndarray]) -> Any:
        if isinstance(request, SquaredDistance):
            return self._distance_from(float(totals[0][0]), request)
        if not isinstance(request, Core):
            return totals
        bases, front = request.bases, self._front(request.bases)
        order = [*front, *(mode for mode in range(self.order) if mode not in front)]
        sizes = [size if basis is None else basis.shape[1] for size, basis in zip(self.shape, bases, strict=True)]
        core = totals[0].reshape([sizes[mode] for mode in order]).transpose(np.argsort(order))
        return self._compressed(np.ascontiguousarray(core), bases)

    def compress(self, *bases: Array | None) -> DenseTensor:
        if all(basis is None for basis in bases):
            return self._compressed(self.to_dense(), bases)
        return super().compress(*bases)

    def squared_norm(self) -> float:
        return squares(self.values) if self._sketch is None else self._sketch.squared_norm

    def inner(self, weights: Array, factors: Sequence[Array]) -> float:
        return float(totals_over(self._listing((0,)), [FiberInner(weights, factors)])[0][0][0])

    def _distance_from(self, inner: float, request: SquaredDistance) -> float:
        r"""Return :math:`\|T\|^2 - 2 \langle T, M \rangle + \|M\|^2`, whose error is about 1e-16 of :math:`\|M\|^2`.

        If that is not accurate enough, entries are subtracted one by one; zeros too, unless there are too many.
        """
        size = FactoredTensor(request.weights, request.factors, symmetric=False).squared_norm()
        total = self.squared_norm() - 2 * inner + size
        if total >= CANCELLATION_LIMIT * size:
            return total
        n_entries = math.prod(self.shape)
        if fits_block(n_entries) or n_entries <= 4 * self.values.size:
            return self._squared_distance_everywhere(request.weights, request.factors)
        distance, model_energy = 0.0, 0.0  # at the listed entries
        for values, model in self._values_and_model(request.weights, request.factors):
            distance += squares(values - model)
            model_energy += squares(model)
        return distance + max(size - model_energy, 0.0)

    def _squared_distance_everywhere(self, weights: Array, factors: Sequence[Array]) -> float:
        """Return the squared distance, with all entries formed, zeros too, in blocks of slices along the first mode."""
        exact, total = [to_double(factor) for factor in factors], 0.0
        order = np.argsort(self.coords[0], kind="stable")
        for part in blocks(self.shape[0], math.prod(self.shape[1:])):
            gap = FactoredTensor(to_double(weights), [exact[0][part], *exact[1:]], symmetric=False).to_dense()
            here = order[slice(*np.searchsorted(self.coords[0, order], [part.start, part.stop]))]
            gap[(self.coords[0, here] - part.start, *self.coords[1:, here])] -= self.values[here]
            total += squares(gap)
        return total

    def _values_and_model(self, weights: Array, factors: Sequence[Array]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the listed values and those of components, in blocks of entries and in double precision."""
        for part in blocks(self.values.size, weights.shape[0]):
            model = to_double(weights)
            for factor, indices in zip(factors, self.coords[:, part], strict=True):
                model = model * to_double(factor[indices])
            yield to_double(self.values[part]), np.sum(model, axis=1)

    def to_dense(self) -> Array:
        dense = np.zeros(self.shape, dtype=self.values.dtype)
        dense[tuple(self.coords)] = self.values
        return dense

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, {self.values.size} entries)"


def _distinct(indices: np.ndarray, size: int) -> np.ndarray:
    """Return the sorted distinct indices, all of which are below `size`."""
    if size > 16 * indices.size:
        return np.unique(indices)
    occurs = np.zeros(size, dtype=bool)
    occurs[indices] = True
    return np.flatnonzero(occurs)


def _positions(kept: np.ndarray, indices: np.ndarray) -> np.ndarray:
    """Return the positions of indices in a sorted array of distinct ones."""
    if kept[-1] > 16 * indices.size:
        return np.searchsorted(kept, indices).astype(indices.dtype)
    position = np.zeros(kept[-1] + 1, dtype=indices.dtype)
    position[kept] = np.arange(kept.size)
    return position.take(indices)


def _extended(indices: np.ndarray, count: int) -> np.ndarray:
    """Return sorted indices, extended by the smallest others to at least `count` indices."""
    n_missing = max(count - indices.size, 0)
    # At least `n_missing` of the first `count` indices are not among the given ones.
    return np.union1d(indices, np.setdiff1d(np.arange(count), indices)[:n_missing]) if n_missing else indices
