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
from array_api_compat import array_namespace, is_numpy_array, is_torch_array
from scipy import sparse

from codiag._arrays import (
    Array,
    adjoint,
    asarray_like,
    conjugate,
    identity,
    inner_product_of,
    is_complex,
    on_host,
    squared_magnitudes,
    take,
    to_double,
    to_host,
    to_namespace,
)
from codiag.tensors._base import Tensor
from codiag.tensors._dense import DenseTensor
from codiag.tensors._factored import FactoredTensor
from codiag.tensors._sparse import SparseTensor
from codiag.tensors._sums import Products, khatri_rao

LISTED_SHARE = 0.1
"""Share of observed entries below which they are listed: an entry of a list takes ten times as long as one of an
array (measured)."""

CHUNK, DEVICE_CHUNK = 2**18, 2**26
"""Numbers, entries times components, that are worked on at a time: on the host what a cache holds, on an accelerator
what keeps it busy."""


Terms: TypeAlias = Callable[[Array, Array], tuple[Array, Array]]
"""From entries and components there to two numbers of each entry."""


class ObservedEntries(ABC):
    """The observed entries of a tensor, with their weights.

    Attributes
    ----------
    values : array
        The entries, of any shape, where they are in memory; at entries of weight zero they mean nothing.
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

    def model(self, factors: Sequence[Array]) -> Array:
        """Return components of weight one, entry by entry."""
        raise NotImplementedError(f"{type(self).__name__} does not hold its entries in memory")

    def visit(self, factors: Sequence[Array], terms: Terms) -> tuple[float, list[Array]]:
        """Return the sum of a term of every entry, and the sums of another times the factor rows in the other modes.

        The terms are functions of the entries and of the components; the second sums are by rows of every mode.
        """
        raise NotImplementedError(f"{type(self).__name__} does not hold its entries in memory")

    def with_values(self, values: Array, weights: Array | None) -> ObservedEntries:
        """Return the same entries with other values and weights."""
        raise NotImplementedError(f"{type(self).__name__} does not hold its entries in memory")

    def tensor_of(self, values: Array) -> Tensor:
        """Return the tensor that has other values at these entries, and as many missing ones or zeros."""
        raise NotImplementedError(f"{type(self).__name__} does not hold its entries in memory")

    def slopes(self, scales: Array, factors: Sequence[Array]) -> list[Array]:
        """Return the sums over entries of a scale times the factor rows in the other modes, by rows of every mode."""
        return self.with_values(scales, None).visit(factors, lambda values, _: (0 * values, values))[1]

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

    @abstractmethod
    def squared_norm(self) -> float:
        r"""Return :math:`\sum_j o_j t_j^2`."""

    @abstractmethod
    def distance(self, components: FactoredTensor) -> float:
        r"""Return :math:`\sum_j o_j (t_j - \hat t_j)^2`, with the values :math:`\hat t_j` of components."""

    @abstractmethod
    def distance_and_slopes(self, factors: Sequence[Array]) -> tuple[float, list[Array]]:
        r"""Return the distance of components of weight one, and the gradient of half of it by the factors.

        The gradient is :math:`\sum_j o_j (\hat t_j - t_j) z_{mj}`, by rows of every mode.
        """

    @abstractmethod
    def residual(self, components: FactoredTensor) -> Tensor:
        r"""Return :math:`o_j (t_j - \hat t_j)` as a tensor that is zero at missing entries."""

    @abstractmethod
    def row_grams(self, factors: Sequence[Array], mode: int) -> Array:
        r"""Return :math:`\sum_j o_j z_{mj} z_{mj}^\top` for each row of a mode, shape (d, k, k)."""

    @abstractmethod
    def row_products(self, factors: Sequence[Array], mode: int) -> Array:
        r"""Return :math:`\sum_j o_j t_j z_{mj}` for each row of a mode, shape (d, k)."""

    @abstractmethod
    def gauss_newton_product(self, factors: Sequence[Array], moves: Sequence[Array]) -> list[Array]:
        """Return the Gauss-Newton matrix times moves of the factors."""

    @abstractmethod
    def gauss_newton_matrix(self, factors: Sequence[Array]) -> Array:
        """Return the Gauss-Newton matrix; unknowns are the rows of all factors, one factor after the other."""

    @abstractmethod
    def counts(self) -> list[np.ndarray]:
        """Return the number of observed entries of each slice, by mode."""

    @abstractmethod
    def mean_weight(self) -> float:
        """Return the mean weight of the observed entries."""

    @abstractmethod
    def largest_weight(self) -> float:
        """Return the largest weight of an observed entry."""

    @abstractmethod
    def n_independent(self, groups: Sequence[Sequence[int]]) -> int:
        """Return the number of observed entries whose indices ascend within groups of modes that share a factor.

        Permuting the indices of such modes gives the same entry again.
        """

    @property
    def size(self) -> int:
        """Number of observed entries."""
        return int(self.counts()[0].sum())

    def host_arrays(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Return entries and weights as NumPy arrays in the shape of the tensor, if they are stored as such."""
        return None

    def thinned(self, per_row: int, rng: np.random.Generator) -> ObservedEntries:
        """Return a random part with about so many entries in each slice, reweighted to the same expectation.

        By default all entries: short lists are not thinned.
        """
        return self


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

    def squared_norm(self) -> float:
        return float(array_namespace(self.values).sum(self._weights * squared_magnitudes(self.values)))

    def model(self, factors: Sequence[Array]) -> Array:
        xp = array_namespace(self.values)
        return xp.reshape(khatri_rao(factors[:-1]) @ xp.matrix_transpose(factors[-1]), self.shape)

    def visit(self, factors: Sequence[Array], terms: Terms) -> tuple[float, list[Array]]:
        value, scales = terms(self.values, self.model(factors))
        slopes = DenseTensor.of(self.times_weights(scales), symmetric=False).read(Products(factors))[0]
        return self.total(value), list(slopes)

    def with_values(self, values: Array, weights: Array | None) -> ObservedEntries:
        return DenseEntries(values, weights, symmetric=self._symmetric)

    def tensor_of(self, values: Array) -> Tensor:
        return DenseTensor.of(values, symmetric=self._symmetric)

    def distance(self, components: FactoredTensor) -> float:
        gap = self._gap(components)
        return float(array_namespace(gap).sum(self._weights * squared_magnitudes(gap)))

    def distance_and_slopes(self, factors: Sequence[Array]) -> tuple[float, list[Array]]:
        home, factors = factors[0], self._here(factors)
        xp = array_namespace(self.values)
        columns = khatri_rao(factors[:-1])
        gap = xp.reshape(columns @ xp.matrix_transpose(factors[-1]), self.shape)
        gap -= self.values  # in place if the library can
        weighted = self._weights * gap
        others = [conjugate(factor) for factor in factors]
        slopes = DenseTensor.of(weighted, symmetric=False).read(Products(others))[0]
        distance = inner_product_of(xp.reshape(weighted, (-1,)), xp.reshape(gap, (-1,)))
        return float(distance), [to_namespace(slope, home) for slope in slopes]

    def residual(self, components: FactoredTensor) -> DenseTensor:
        return DenseTensor.of(self._weights * self._gap(components), symmetric=False)

    def _gap(self, components: FactoredTensor) -> Array:
        weights = to_namespace(components.weights, self.values)
        there = components.changed(lambda factor, _: to_namespace(factor, self.values), weights)
        return self.values - there.to_dense()

    def _here(self, factors: Sequence[Array]) -> list[Array]:
        """Return factors in the library and on the device of the entries; they may be on the host."""
        return [to_namespace(factor, self.values) for factor in factors]

    def row_grams(self, factors: Sequence[Array], mode: int) -> Array:
        rank, home, factors = factors[0].shape[1], factors[0], self._here(factors)
        xp = array_namespace(self._weights)
        others = khatri_rao([factor for other, factor in enumerate(factors) if other != mode])
        pairs = xp.reshape(conjugate(others)[:, :, None] * others[:, None, :], (-1, rank * rank))
        return to_namespace(
            xp.reshape(to_namespace(_unfolded(self._weights, mode), pairs) @ pairs, (-1, rank, rank)), home
        )

    def row_products(self, factors: Sequence[Array], mode: int) -> Array:
        others = [conjugate(factor) for other, factor in enumerate(self._here(factors)) if other != mode]
        return to_namespace(_unfolded(self._weights * self.values, mode) @ khatri_rao(others), factors[0])

    def gauss_newton_product(self, factors: Sequence[Array], moves: Sequence[Array]) -> list[Array]:
        home, factors, moves = factors[0], self._here(factors), self._here(moves)
        xp = array_namespace(self._weights)
        front, n_others = 0.0 * khatri_rao(factors[:-1]), len(factors) - 1
        for mode in range(n_others):
            front = front + khatri_rao([moves[other] if other == mode else factors[other] for other in range(n_others)])
        columns = xp.concat([front, khatri_rao(factors[:-1])], axis=1)  # one product for the changes of all modes
        last = xp.concat([factors[-1], moves[-1]], axis=1)
        total = xp.reshape(columns @ xp.matrix_transpose(last), self.shape)
        others = [conjugate(factor) for factor in factors]
        products = DenseTensor.of(self._weights * total, symmetric=False).read(Products(others))[0]
        return [to_namespace(product, home) for product in products]

    def gauss_newton_matrix(self, factors: Sequence[Array]) -> Array:
        xp = array_namespace(self._weights)
        modes = range(len(factors))
        home, factors = factors[0], self._here(factors)
        blocks = {(m, n): self._block(factors, m, n) for m in modes for n in modes if m <= n}
        blocks |= {(n, m): adjoint(block) for (m, n), block in blocks.items() if m < n}
        return to_namespace(xp.concat([xp.concat([blocks[m, n] for n in modes], axis=1) for m in modes]), home)

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

    def mean_weight(self) -> float:
        return float(array_namespace(self._weights).sum(self._weights)) / self.size

    def largest_weight(self) -> float:
        return float(array_namespace(self._weights).max(self._weights))

    def host_arrays(self) -> tuple[np.ndarray, np.ndarray] | None:
        return (self.values, self._weights) if is_numpy_array(self.values) else None

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
        parts = [xp.vecdot(product_of(rows[:-1]), rows[-1]) for rows in self._rows(factors)]
        return xp.concat(parts) if parts else 0 * to_double(self.values)

    def _rows(self, factors: Sequence[Array]) -> Iterator[list[Array]]:
        return (rows_at(factors, indices) for indices, _, _ in self._parts(factors[0].shape[1]))

    def visit(self, factors: Sequence[Array], terms: Terms) -> tuple[float, list[Array]]:
        xp = array_namespace(factors[0])
        total, sums = 0.0, [xp.zeros_like(factor) for factor in factors]
        for indices, values, weights in self._parts(factors[0].shape[1]):
            rows = rows_at(factors, indices)
            last = product_of(rows[:-1])
            value, scales = terms(values, xp.vecdot(last, rows[-1]))
            if weights is not None:
                value, scales = (weights * xp.where(weights > 0, term, 0 * term) for term in (value, scales))
            total += float(xp.sum(value))
            for mode, slopes in enumerate(sums):
                add_rows(slopes, indices[mode], last if mode == len(rows) - 1 else product_of(rows, mode), scales)
        return total, sums

    def with_values(self, values: Array, weights: Array | None) -> ObservedEntries:
        return ListedEntries(self.indices, values, weights, self.shape, has_zeros=self.has_zeros)

    def tensor_of(self, values: Array) -> Tensor:
        absent = "zero" if self.has_zeros else "missing"
        return SparseTensor(self.indices, values, self.shape, absent=absent, check=False)

    def _parts(self, rank: int) -> Iterator[tuple[Array, Array, Array | None]]:
        """Yield indices, values and weights, some entries at a time."""
        step = max((CHUNK if on_host(self.values) else DEVICE_CHUNK) // rank, 1)
        for start in range(0, self.size, step):
            part = slice(start, start + step)
            weights = None if self.weights is None else self.weights[part]
            yield self.indices[:, part], to_double(self.values[part]), weights

    def squared_norm(self) -> float:
        xp = array_namespace(self.values)
        return sum(float(xp.sum(_weighted(values**2, weights))) for _, values, weights in self._parts(1))

    def distance(self, components: FactoredTensor) -> float:
        return sum(_squares(gap, weights) for _, gap, weights in self._gaps(components))

    def residual(self, components: FactoredTensor) -> SparseTensor:
        gaps = [to_host(_weighted(gap, weights)) for _, gap, weights in self._gaps(components)]
        return SparseTensor(to_host(self.indices), np.concatenate(gaps), self.shape, check=False)

    def _gaps(self, components: FactoredTensor) -> Iterator[tuple[Array, Array, Array | None]]:
        factors = [to_double(factor) for factor in components.factors]
        factors[0] = factors[0] * to_double(components.weights)
        for indices, values, weights in self._parts(components.rank):
            rows = rows_at(factors, indices)
            yield indices, values - array_namespace(values).vecdot(product_of(rows[:-1]), rows[-1]), weights

    def distance_and_slopes(self, factors: Sequence[Array]) -> tuple[float, list[Array]]:
        return self.visit(factors, lambda values, model: ((model - values) ** 2, model - values))

    def row_grams(self, factors: Sequence[Array], mode: int) -> Array:
        rank = factors[0].shape[1]
        totals = [array_namespace(factors[0]).zeros_like(factors[mode]) for _ in range(rank)]
        for indices, _, weights in self._parts(rank):
            others = product_of(rows_at(factors, indices), mode)
            for i, total in enumerate(totals):
                add_rows(total, indices[mode], others, _weighted(others[:, i], weights))
        return array_namespace(factors[0]).stack(totals, axis=2)

    def row_products(self, factors: Sequence[Array], mode: int) -> Array:
        total = array_namespace(factors[0]).zeros_like(factors[mode])
        for indices, values, weights in self._parts(factors[0].shape[1]):
            others = product_of(rows_at(factors, indices), mode)
            add_rows(total, indices[mode], others, _weighted(values, weights))
        return total

    def gauss_newton_product(self, factors: Sequence[Array], moves: Sequence[Array]) -> list[Array]:
        xp = array_namespace(factors[0])
        totals = [xp.zeros_like(factor) for factor in factors]
        for indices, values, weights in self._parts(factors[0].shape[1]):
            rows = rows_at(factors, indices)
            others = [product_of(rows, mode) for mode in range(len(factors))]
            change = xp.zeros_like(values)
            for move, other in zip(rows_at(moves, indices), others, strict=True):
                change += xp.vecdot(move, other)
            change = _weighted(change, weights)
            for total, rows_of_mode, other in zip(totals, indices, others, strict=True):
                add_rows(total, rows_of_mode, other, change)
        return totals

    def gauss_newton_matrix(self, factors: Sequence[Array]) -> Array:
        known, starts = [to_host(factor) for factor in factors], np.cumsum([0, *self.shape[:-1]])
        rank, order = known[0].shape[1], len(known)
        total = np.zeros((sum(self.shape) * rank,) * 2)
        for part, values, weights in self._parts(rank):
            indices, n = to_host(part), values.shape[0]
            rows = rows_at(known, indices)
            entries = np.stack([product_of(rows, mode) for mode in range(order)], axis=1)
            if weights is not None:
                entries *= np.sqrt(to_host(weights))[:, None, None]
            columns = (indices.T + starts)[:, :, None] * rank + np.arange(rank)
            ends = np.arange(0, n * order * rank + 1, order * rank)
            jacobian = sparse.csr_array((entries.ravel(), columns.ravel(), ends), shape=(n, total.shape[0]))
            total += (jacobian.T @ jacobian).toarray()
        return asarray_like(total, factors[0])

    def counts(self) -> list[np.ndarray]:
        pairs = zip(self.indices, self.shape, strict=True)
        return [np.bincount(to_host(row), minlength=size) for row, size in pairs]

    def thinned(self, per_row: int, rng: np.random.Generator) -> ListedEntries:
        """Return a random part of the list, or the list itself if the part would hold more than half of it."""
        probabilities = [np.minimum(per_row / np.maximum(count, 1), 1.0) for count in self.counts()]
        chosen, weights = [], []
        for start in range(0, self.size, CHUNK):
            indices = to_host(self.indices[:, start : start + CHUNK])
            probability = np.max([of_mode[row] for of_mode, row in zip(probabilities, indices, strict=True)], axis=0)
            drawn = np.flatnonzero(rng.random(probability.size) < probability)
            chosen.append(start + drawn)
            weights.append(1 / probability[drawn])
        part = np.concatenate(chosen)
        if 2 * part.size > self.size:
            return self
        scale = asarray_like(np.concatenate(weights), to_double(self.values[:1]))
        weight = scale if self.weights is None else scale * take(self.weights, part, axis=0)
        return ListedEntries(take(self.indices, part, axis=1), take(self.values, part, axis=0), weight, self.shape)

    def mean_weight(self) -> float:
        return 1.0 if self.weights is None else float(np.mean(to_host(self.weights)))

    def largest_weight(self) -> float:
        return 1.0 if self.weights is None else float(np.max(to_host(self.weights)))

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


def _squares(gap: Array, weights: Array | None) -> float:
    """Return the weighted sum of squares."""
    return float(array_namespace(gap).vecdot(gap, _weighted(gap, weights)))


def _weighted(values: Array, weights: Array | None) -> Array:
    return values if weights is None else weights * values


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
