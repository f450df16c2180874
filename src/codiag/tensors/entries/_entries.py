"""Observed entries of a tensor, with weights, and the sums over them that objectives need.

Notation: entry j has the value :math:`t_j` and the weight :math:`o_j`. :math:`z_{mj}` is the product of the factor rows
that belong to entry j in all modes but m.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import TypeAlias

import numpy as np
from array_api_compat import is_numpy_array, is_torch_array
from scipy import sparse

from codiag._arrays import (
    Array,
    adjoint,
    array_namespace,
    asarray_like,
    conjugate,
    identity,
    inner_product_of,
    is_complex,
    on_host,
    squared_magnitudes,
    to_double,
    to_host,
    to_namespace,
)
from codiag.tensors._base import Tensor
from codiag.tensors._dense import DenseTensor
from codiag.tensors._factored import FactoredTensor, scaled_factors
from codiag.tensors._sparse import SparseTensor
from codiag.tensors._sums import khatri_rao, products_of

LISTED_SHARE = 0.1
"""Share of observed entries below which they are listed: an entry of a list takes ten times as long as one of an
array (measured)."""

CHUNK = 2**18
"""Numbers, entries times components, that are worked on at a time on the host: what a cache holds."""


Terms: TypeAlias = Callable[[Array, Array], tuple[Array, Array]]
"""From entries and components there to two numbers of each entry."""


class ObservedEntries(ABC):
    """The observed entries of a tensor, with their weights.

    A kind of storage implements `model` and `slopes`; the sums of objectives are made of these.

    Attributes
    ----------
    values : array
        The entries, of any shape, where they are in memory; at entries of weight zero they are zero.
    weights : array of the same shape, or None
        None if all count equally.
    has_zeros : bool
        Whether all entries that are not listed are observed, and zero.
    shape : tuple of int
        Of the tensor.
    """

    values: Array
    weights: Array | None
    has_zeros: bool = False
    shape: tuple[int, ...]

    @abstractmethod
    def model(self, factors: Sequence[Array]) -> Array:
        """Return components of weight one, entry by entry."""

    @abstractmethod
    def slopes(self, scales: Array, factors: Sequence[Array], modes: Sequence[int] | None = None) -> list[Array]:
        """Return the sums over entries of a scale times the factor rows in the other modes, by rows of some modes."""

    @abstractmethod
    def with_values(self, values: Array, weights: Array | None) -> ObservedEntries:
        """Return the same entries with other values and weights."""

    @abstractmethod
    def tensor_of(self, values: Array) -> Tensor:
        """Return the tensor that has other values at these entries, and as many missing ones or zeros."""

    @abstractmethod
    def row_grams(self, factors: Sequence[Array], mode: int) -> Array:
        r"""Return :math:`\sum_j o_j z_{mj} z_{mj}^\top` for each row of a mode, shape (d, k, k)."""

    @abstractmethod
    def gauss_newton_matrix(self, factors: Sequence[Array]) -> Array:
        """Return the Gauss-Newton matrix; unknowns are the rows of all factors, one factor after the other."""

    @abstractmethod
    def counts(self) -> list[np.ndarray]:
        """Return the number of observed entries of each slice, by mode."""

    @abstractmethod
    def n_independent(self, groups: Sequence[Sequence[int]]) -> int:
        """Return the number of observed entries whose indices ascend within groups of modes that share a factor.

        Permuting the indices of such modes gives the same entry again.
        """

    @property
    def size(self) -> int:
        """Number of observed entries."""
        return int(self.counts()[0].sum())

    def total(self, terms: Array) -> float:
        """Return the weighted sum of an array like the values."""
        return float(array_namespace(terms).sum(self.times_weights(terms)))

    def times_weights(self, terms: Array) -> Array:
        """Return an array like the values, times the weights; at missing entries it need not hold numbers."""
        weights = self.weights
        if weights is None:
            return terms
        xp = array_namespace(terms)
        return weights * xp.where(weights > 0, terms, xp.zeros_like(terms))

    def squared_norm(self) -> float:
        r"""Return :math:`\sum_j o_j t_j^2`."""
        return self.total(squared_magnitudes(to_double(self.values)))

    def visit(self, factors: Sequence[Array], terms: Terms) -> tuple[float, list[Array]]:
        """Return the sum of a term of every entry, and the sums of another times the factor rows in the other modes.

        The terms are functions of the entries and of the components; the second sums are by rows of every mode.
        """
        value, scales = terms(self.values, self.model(factors))
        return self.total(value), self.slopes(self.times_weights(scales), factors)

    def distance(self, components: FactoredTensor) -> float:
        r"""Return :math:`\sum_j o_j (t_j - \hat t_j)^2`, with the values :math:`\hat t_j` of components."""
        return self.total(squared_magnitudes(self._gap(components)))

    def distance_and_slopes(
        self, factors: Sequence[Array], modes: Sequence[int] | None = None
    ) -> tuple[float, list[Array]]:
        r"""Return the distance of components of weight one, and the gradient of half of it by some factors.

        The gradient is :math:`\sum_j o_j (\hat t_j - t_j) z_{mj}`, by rows of the modes, by default of all.
        """
        home, factors = factors[0], self._here(factors)
        gap = self.model(factors)
        xp = array_namespace(gap)
        gap -= self.values  # in place if the library can
        weighted = gap if self.weights is None else self.weights * gap
        distance = inner_product_of(xp.reshape(weighted, (-1,)), xp.reshape(gap, (-1,)))
        slopes = self.slopes(weighted, [conjugate(factor) for factor in factors], modes)
        return float(distance), [to_namespace(slope, home) for slope in slopes]

    def _here(self, factors: Sequence[Array]) -> list[Array]:
        """Return factors in the library and on the device of the entries."""
        return list(factors)

    def residual(self, components: FactoredTensor) -> Tensor:
        r"""Return :math:`o_j (t_j - \hat t_j)` as a tensor that is zero at missing entries."""
        return self.tensor_of(self.times_weights(self._gap(components)))

    def _gap(self, components: FactoredTensor) -> Array:
        return to_double(self.values) - self.model(scaled_factors(components))

    def row_products(self, factors: Sequence[Array], mode: int) -> Array:
        r"""Return :math:`\sum_j o_j t_j z_{mj}` for each row of a mode, shape (d, k)."""
        scales = self.times_weights(to_double(self.values))
        return self.slopes(scales, [conjugate(factor) for factor in factors], [mode])[0]

    def gauss_newton_product(self, factors: Sequence[Array], moves: Sequence[Array]) -> list[Array]:
        """Return the Gauss-Newton matrix times moves of the factors."""
        xp, modes = array_namespace(factors[0]), range(len(factors))
        joined = [xp.concat([moves[n] if m == n else factors[n] for m in modes], axis=1) for n in modes]
        change = self.model(joined)
        change = change if self.weights is None else self.weights * change
        return self.slopes(change, [conjugate(factor) for factor in factors])

    def mean_weight(self) -> float:
        """Return the mean weight of the observed entries."""
        return 1.0 if self.weights is None else float(array_namespace(self.weights).sum(self.weights)) / self.size

    def largest_weight(self) -> float:
        """Return the largest weight of an observed entry."""
        return 1.0 if self.weights is None else float(array_namespace(self.weights).max(self.weights))


class DenseEntries(ObservedEntries):
    """All entries of an array; missing ones have weight zero."""

    def __init__(self, entries: Array, weights: Array | None, *, symmetric: bool = False) -> None:
        xp = array_namespace(entries)
        self.shape, self._symmetric = tuple(entries.shape), symmetric
        self.weights = None if weights is None else to_double(weights)
        known = to_double(entries)
        self.values = known if self.weights is None else xp.where(self.weights > 0, known, xp.zeros_like(known))

    @cached_property
    def _weights(self) -> Array:
        return array_namespace(self.values).ones_like(self.values) if self.weights is None else self.weights

    def model(self, factors: Sequence[Array]) -> Array:
        xp, (first, *others) = array_namespace(self.values), self._here(factors)
        return xp.reshape(first @ khatri_rao(others).T, self.shape)

    def slopes(self, scales: Array, factors: Sequence[Array], modes: Sequence[int] | None = None) -> list[Array]:
        products = products_of(scales, self._here(factors), range(len(factors)) if modes is None else modes)
        return [to_namespace(product, factors[0]) for product in products]

    def _here(self, factors: Sequence[Array]) -> list[Array]:
        return [to_namespace(factor, self.values) for factor in factors]

    def with_values(self, values: Array, weights: Array | None) -> ObservedEntries:
        return DenseEntries(values, weights, symmetric=self._symmetric)

    def tensor_of(self, values: Array) -> Tensor:
        return DenseTensor.of(values, symmetric=self._symmetric)

    def row_grams(self, factors: Sequence[Array], mode: int) -> Array:
        rank, home, factors = factors[0].shape[1], factors[0], self._here(factors)
        xp = array_namespace(self._weights)
        others = khatri_rao([factor for other, factor in enumerate(factors) if other != mode])
        pairs = xp.reshape(conjugate(others)[:, :, None] * others[:, None, :], (-1, rank * rank))
        return to_namespace(
            xp.reshape(to_namespace(_unfolded(self._weights, mode), pairs) @ pairs, (-1, rank, rank)), home
        )

    def gauss_newton_matrix(self, factors: Sequence[Array]) -> Array:
        xp = array_namespace(self._weights)
        modes = range(len(factors))
        home, factors = factors[0], self._here(factors)
        if is_numpy_array(factors[0]):
            return to_namespace(self._filled_matrix(factors), home)
        blocks = {(m, n): self._block(factors, m, n) for m in modes for n in modes if m <= n}
        blocks |= {(n, m): adjoint(block) for (m, n), block in blocks.items() if m < n}
        return to_namespace(xp.concat([xp.concat([blocks[m, n] for n in modes], axis=1) for m in modes]), home)

    def _filled_matrix(self, factors: Sequence[np.ndarray]) -> np.ndarray:
        """Return the same, written block by block: most of it is zeros if one mode is far larger than the others."""
        rank, ends = factors[0].shape[1], np.cumsum(self.shape).tolist()
        rows = [slice(end - size, end) for end, size in zip(ends, self.shape, strict=True)]
        matrix = np.zeros((ends[-1], rank, ends[-1], rank), factors[0].dtype)
        for m, own in enumerate(rows):
            places = np.arange(own.start, own.stop)
            matrix[places, :, places, :] = self.row_grams(factors, m)
            for n, other in enumerate(rows[:m]):
                block = np.reshape(self._block(factors, n, m), (self.shape[n], rank, self.shape[m], rank))
                matrix[other, :, own, :] = block
                matrix[own, :, other, :] = conjugate(np.transpose(block, (2, 3, 0, 1)))
        return matrix.reshape(ends[-1] * rank, -1)

    def _block(self, factors: Sequence[Array], m: int, n: int) -> Array:
        r"""Return the block of two modes, :math:`\sum_j o_j z_{mj} z_{nj}^\top` by rows of both."""
        xp = array_namespace(self._weights)
        rank = factors[0].shape[1]
        if m == n:
            grams = self.row_grams(factors, m)
            same = identity(grams.shape[0], grams)
            block = same[:, None, :, None] * grams[:, :, None, :]
        else:
            rest = [mode for mode in range(len(factors)) if mode not in (m, n)]
            others = khatri_rao([factors[mode] for mode in rest])
            pairs = xp.reshape(conjugate(others)[:, :, None] * others[:, None, :], (-1, rank * rank))
            turned = to_namespace(
                xp.reshape(xp.permute_dims(self._weights, (m, n, *rest)), (-1, pairs.shape[0])), pairs
            )
            shared = xp.reshape(turned @ pairs, (self.shape[m], self.shape[n], rank, rank))
            # (i, a), (j, b): sum of o z_a z_b over the rest, times the row j of n at a and the row i of m at b.
            block = xp.permute_dims(shared, (0, 2, 1, 3))
            block = block * adjoint(factors[n])[None, :, :, None] * factors[m][:, None, None, :]
        return xp.reshape(block, (self.shape[m] * rank, self.shape[n] * rank))

    def counts(self) -> list[np.ndarray]:
        return self._counts

    @cached_property
    def _counts(self) -> list[np.ndarray]:
        xp, axes = array_namespace(self._weights), range(len(self.shape))
        if on_host(self._weights):
            known = to_host(self._weights) > 0
            return [np.count_nonzero(known, axis=tuple(other for other in axes if other != mode)) for mode in axes]
        known = xp.astype(self._weights > 0, xp.int64)
        return [to_host(xp.sum(known, axis=tuple(other for other in axes if other != mode))) for mode in axes]

    def n_independent(self, groups: Sequence[Sequence[int]]) -> int:
        if all(len(group) == 1 for group in groups):
            return self.size
        return _count_ascending(np.stack(np.nonzero(to_host(self._weights))), groups)


class ListedEntries(ObservedEntries):
    """A list of entries; all others are missing.

    Parameters
    ----------
    indices : array of integers, shape (order, n)
    values : array of shape (n,)
        Of NumPy or torch, in the library and on the device of the factors; so are the others.
    weights : array of shape (n,), optional
        By default all ones.
    shape : tuple of ints
    has_zeros : bool
        Whether all other entries are zero, rather than missing; sums for least squares leave them out.
    """

    def __init__(
        self,
        indices: Array,
        values: Array,
        weights: Array | None,
        shape: tuple[int, ...],
        *,
        has_zeros: bool = False,
    ) -> None:
        self.shape, self.has_zeros = shape, has_zeros
        self.indices, self.values, self.weights = indices, values, weights

    @property
    def size(self) -> int:
        if self.has_zeros:
            return math.prod(self.shape)
        return int(self.values.shape[0])

    def model(self, factors: Sequence[Array]) -> Array:
        xp = array_namespace(factors[0])
        gathered = (rows_at(factors, self.indices[:, part]) for part in self._parts(factors[0].shape[1]))
        parts = [xp.vecdot(product_of(rows[:-1]), rows[-1]) for rows in gathered]
        return xp.concat(parts) if parts else 0 * to_double(self.values)

    def slopes(self, scales: Array, factors: Sequence[Array], modes: Sequence[int] | None = None) -> list[Array]:
        xp, modes = array_namespace(factors[0]), range(len(factors)) if modes is None else modes
        totals = [xp.zeros_like(factors[mode]) for mode in modes]
        for part in self._parts(factors[0].shape[1]):
            indices = self.indices[:, part]
            rows = rows_at(factors, indices)
            for total, mode in zip(totals, modes, strict=True):
                add_rows(total, indices[mode], product_of(rows, mode), scales[part])
        return totals

    def with_values(self, values: Array, weights: Array | None) -> ObservedEntries:
        return ListedEntries(self.indices, values, weights, self.shape, has_zeros=self.has_zeros)

    def tensor_of(self, values: Array) -> Tensor:
        absent = "zero" if self.has_zeros else "missing"
        return SparseTensor(to_host(self.indices), to_host(values), self.shape, absent=absent, check=False)

    def _parts(self, rank: int) -> Iterator[slice]:
        """Yield some of the entries at a time."""
        step = max((CHUNK if on_host(self.values) else 2**26) // rank, 1)  # more keep an accelerator busy
        return (slice(start, start + step) for start in range(0, self.values.shape[0], step))

    def row_grams(self, factors: Sequence[Array], mode: int) -> Array:
        rank, weights = factors[0].shape[1], self.weights
        totals = [array_namespace(factors[0]).zeros_like(factors[mode]) for _ in range(rank)]
        for part in self._parts(rank):
            indices = self.indices[:, part]
            others = product_of(rows_at(factors, indices), mode)
            for i, total in enumerate(totals):
                scales = others[:, i] if weights is None else weights[part] * others[:, i]
                add_rows(total, indices[mode], others, scales)
        return array_namespace(factors[0]).stack(totals, axis=2)

    def gauss_newton_matrix(self, factors: Sequence[Array]) -> Array:
        known, starts = [to_host(factor) for factor in factors], np.cumsum([0, *self.shape[:-1]])
        rank, order = known[0].shape[1], len(known)
        total = np.zeros((sum(self.shape) * rank,) * 2)
        for part in self._parts(rank):
            indices = to_host(self.indices[:, part])
            rows = rows_at(known, indices)
            entries = np.stack([product_of(rows, mode) for mode in range(order)], axis=1)
            if self.weights is not None:
                entries *= np.sqrt(to_host(self.weights[part]))[:, None, None]
            columns = (indices.T + starts)[:, :, None] * rank + np.arange(rank)
            ends = np.arange(0, entries.size + 1, order * rank)
            jacobian = sparse.csr_array((entries.ravel(), columns.ravel(), ends), shape=(len(entries), len(total)))
            total += (jacobian.T @ jacobian).toarray()
        return asarray_like(total, factors[0])

    def counts(self) -> list[np.ndarray]:
        pairs = zip(self.indices, self.shape, strict=True)
        return [np.bincount(to_host(row), minlength=size) for row, size in pairs]

    def n_independent(self, groups: Sequence[Sequence[int]]) -> int:
        return _count_ascending(to_host(self.indices), groups)


def _count_ascending(indices: np.ndarray, groups: Sequence[Sequence[int]]) -> int:
    in_order = [np.all(np.diff(indices[list(group)], axis=0) >= 0, axis=0) for group in groups]
    return int(np.count_nonzero(np.all(in_order, axis=0)))


def entries_of_array(entries: Array, weights: Array) -> ObservedEntries:
    """Return the observed entries of an array: as a list if they are few, real, and the array is one of NumPy."""
    if not is_numpy_array(entries) or is_complex(entries):
        return DenseEntries(entries, weights)
    known = to_host(weights)
    if np.count_nonzero(known) >= LISTED_SHARE * known.size:
        return DenseEntries(entries, weights)
    indices = np.nonzero(known)
    return ListedEntries(np.stack(indices), np.asarray(entries)[indices], known[indices], tuple(entries.shape))


def rows_at(factors: Sequence[Array], indices: Array) -> list[Array]:
    xp = array_namespace(factors[0])
    return [xp.take(factor, row, axis=0) for factor, row in zip(factors, indices, strict=True)]


def product_of(rows: Sequence[Array], leave_out: int | None = None) -> Array:
    """Return the entrywise product of the rows of all modes, or of all but one."""
    kept = [row for mode, row in enumerate(rows) if mode != leave_out]
    product = kept[0] * kept[1]
    for row in kept[2:]:
        product *= row
    return product


def add_rows(total: Array, indices: Array, rows: Array, scales: Array) -> None:
    """Add scaled rows to the rows of the total with these indices: a product with a matrix of one entry per column."""
    if is_torch_array(total):
        total.index_add_(0, indices, rows * scales[:, None])
    else:
        ends = np.arange(indices.size + 1, dtype=indices.dtype)
        total += sparse.csc_array((scales, indices, ends), shape=(total.shape[0], indices.size)) @ rows


def _unfolded(entries: Array, mode: int) -> Array:
    xp = array_namespace(entries)
    return xp.reshape(xp.moveaxis(entries, mode, 0), (entries.shape[mode], -1))
