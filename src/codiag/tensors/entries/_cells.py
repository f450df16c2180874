"""Observed entries of a tensor one by one, for losses other than least squares."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
from array_api_compat import array_namespace
from scipy import sparse

from codiag._arrays import Array, double
from codiag.tensors._base import Tensor
from codiag.tensors._dense import DenseTensor
from codiag.tensors._sparse import SparseTensor
from codiag.tensors._sums import Products, khatri_rao
from codiag.tensors.entries._entries import DenseEntries, Entries, ListedEntries


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
    def slopes(self, scales: Array, factors: Sequence[Array]) -> list[Array]:
        """Return the sums over entries of a scale times the factor rows in the other modes, by rows of every mode."""

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
        return xp.where(weights > 0, weights * terms, xp.zeros_like(terms))


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

    def slopes(self, scales: Array, factors: Sequence[Array]) -> list[Array]:
        return list(DenseTensor.of(scales, symmetric=False).read(Products(factors))[0])

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

    def model(self, factors: Sequence[Array]) -> Array:
        rows = [factor.take(index, axis=0) for factor, index in zip(factors, self.indices, strict=True)]
        return np.einsum("jr,jr->j", math.prod(rows[1:-1], start=rows[0]), rows[-1])

    def slopes(self, scales: Array, factors: Sequence[Array]) -> list[Array]:
        found, ends = [], np.arange(scales.size + 1)
        for mode, index in enumerate(self.indices):
            others = [
                factor.take(row, axis=0)
                for other, (factor, row) in enumerate(zip(factors, self.indices, strict=True))
                if other != mode
            ]
            places = sparse.csc_array((scales, index, ends), shape=(self.shape[mode], scales.size))
            found.append(np.asarray(places @ math.prod(others[1:], start=others[0])))
        return found

    def weighted(self, weights: Array) -> Entries:
        return ListedEntries(self.indices, self.values, weights, self.shape)

    def tensor_of(self, values: Array) -> Tensor:
        absent = "zero" if self.has_zeros else "missing"
        return SparseTensor(self.indices, values, self.shape, absent=absent, check=False)
