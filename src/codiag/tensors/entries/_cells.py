"""Observed entries of a tensor one by one, for losses other than least squares."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import numpy as np
from array_api_compat import array_namespace

from codiag._arrays import Array, double
from codiag.tensors._base import Tensor
from codiag.tensors._dense import DenseTensor
from codiag.tensors._sparse import SparseTensor
from codiag.tensors._sums import Products, khatri_rao
from codiag.tensors.entries._entries import CHUNK, DenseEntries, Entries, ListedEntries, add_rows, product_of, rows_at

Terms: TypeAlias = Callable[[Array, Array], tuple[Array, Array]]
"""From entries and components there to two numbers of each entry."""


class Cells(ABC):
    """The observed entries of a tensor as an array of values, and the way from there to the factors.

    Attributes
    ----------
    values : array
        The entries, of any shape.
    weights : array of the same shape, or None
        None if all count equally.
    has_zeros : bool
        Whether all entries that are not listed are observed, and zero.
    shape : tuple of int
        Of the tensor.
    """

    values: Array
    weights: Array | None
    has_zeros: bool
    shape: tuple[int, ...]

    @abstractmethod
    def model(self, factors: Sequence[Array]) -> Array:
        """Return components of weight one, entry by entry."""

    @abstractmethod
    def visit(self, factors: Sequence[Array], terms: Terms) -> tuple[float, list[Array]]:
        """Return the sum of a term of every entry, and the sums of another times the factor rows in the other modes.

        The terms are functions of the entries and of the components; the second sums are by rows of every mode.
        """

    def slopes(self, scales: Array, factors: Sequence[Array]) -> list[Array]:
        """Return the sums over entries of a scale times the factor rows in the other modes, by rows of every mode."""
        return self._with_values(scales).visit(factors, lambda values, _: (0 * values, values))[1]

    @abstractmethod
    def _with_values(self, values: Array) -> Cells:
        """Return the same entries with other values, all of weight one."""

    @abstractmethod
    def weighted(self, weights: Array) -> Entries:
        """Return the entries with other weights, for Gauss-Newton matrices."""

    @abstractmethod
    def tensor_of(self, values: Array) -> Tensor:
        """Return the tensor that has other values at these entries, and as many missing ones or zeros."""

    @property
    def size(self) -> int:
        """Number of observed entries, zeros that are not listed included."""
        if self.has_zeros:
            return math.prod(self.shape)
        count = self.values if self.weights is None else self.weights[self.weights > 0]
        return int(math.prod(count.shape))

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


class DenseCells(Cells):
    """All entries of an array; missing ones have weight zero."""

    has_zeros = False

    def __init__(self, values: Array, weights: Array | None, *, symmetric: bool = False) -> None:
        self._symmetric = symmetric
        self.values, self.shape = double(values), tuple(values.shape)
        self.weights = None if weights is None else double(weights)

    def model(self, factors: Sequence[Array]) -> Array:
        xp = array_namespace(self.values)
        return xp.reshape(khatri_rao(factors[:-1]) @ xp.matrix_transpose(factors[-1]), self.shape)

    def visit(self, factors: Sequence[Array], terms: Terms) -> tuple[float, list[Array]]:
        value, scales = terms(self.values, self.model(factors))
        slopes = DenseTensor.of(self.times_weights(scales), symmetric=False).read(Products(factors))[0]
        return self.total(value), list(slopes)

    def _with_values(self, values: Array) -> Cells:
        return DenseCells(values, None)

    def weighted(self, weights: Array) -> Entries:
        return DenseEntries(self.values, weights)

    def tensor_of(self, values: Array) -> Tensor:
        return DenseTensor.of(values, symmetric=self._symmetric)


class ListedCells(Cells):
    """A list of entries; all others are missing, or zero.

    Parameters
    ----------
    indices : array of integers, shape (order, n)
    values : array of shape (n,)
    weights : array of shape (n,), or None
    shape : tuple of int
    has_zeros : bool
        Whether all other entries are zero, rather than missing.
    """

    def __init__(
        self,
        indices: np.ndarray,
        values: np.ndarray,
        weights: np.ndarray | None,
        shape: tuple[int, ...],
        *,
        has_zeros: bool,
    ) -> None:
        self.indices, self.values, self.weights = indices, double(values), weights
        self.shape, self.has_zeros = shape, has_zeros

    def _parts(self, rank: int) -> Iterator[slice]:
        """Yield parts of the list that fit into a cache, with their rows of the factors."""
        step = max(CHUNK // rank, 1)
        return (slice(start, start + step) for start in range(0, self.values.size, step))

    def model(self, factors: Sequence[Array]) -> Array:
        found = np.empty(self.values.shape)
        for part in self._parts(factors[0].shape[1]):
            rows = rows_at(factors, self.indices[:, part])
            found[part] = np.einsum("jr,jr->j", product_of(rows[:-1]), rows[-1])
        return found

    def visit(self, factors: Sequence[Array], terms: Terms) -> tuple[float, list[Array]]:
        total, sums = 0.0, [np.zeros_like(factor) for factor in factors]
        for part in self._parts(factors[0].shape[1]):
            indices = self.indices[:, part]
            rows = rows_at(factors, indices)
            last = product_of(rows[:-1])
            value, scales = terms(self.values[part], np.einsum("jr,jr->j", last, rows[-1]))
            if self.weights is not None:
                known = self.weights[part]
                value, scales = (known * np.where(known > 0, term, 0.0) for term in (value, scales))
            total += float(np.sum(value))
            for mode, slopes in enumerate(sums):
                others = last if mode == len(rows) - 1 else product_of(rows, mode)
                add_rows(slopes, indices[mode], others, scales)
        return total, sums

    def _with_values(self, values: Array) -> Cells:
        return ListedCells(self.indices, values, None, self.shape, has_zeros=self.has_zeros)

    def weighted(self, weights: Array) -> Entries:
        return ListedEntries(self.indices, self.values, weights, self.shape)

    def tensor_of(self, values: Array) -> Tensor:
        absent = "zero" if self.has_zeros else "missing"
        return SparseTensor(self.indices, values, self.shape, absent=absent, check=False)
