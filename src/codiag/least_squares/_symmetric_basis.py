"""Symmetric tensors by their distinct entries, about one of n! at order n."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np


class SymmetricBasis(NamedTuple):
    """An orthonormal basis of symmetric tensors of order n: which modes are in each element, and its entries.

    Attributes
    ----------
    modes : array of shape (n_elements, n)
        Indices in ascending order.
    scales : array of shape (n_elements,)
        Roots of the numbers of equal entries.
    elements : array of shape (d, ..., d)
        The element to which each entry belongs.
    """

    modes: np.ndarray
    scales: np.ndarray
    elements: np.ndarray

    @property
    def places(self) -> np.ndarray:
        """The first of the equal entries of each element, in a flattened tensor."""
        return np.ravel_multi_index(tuple(self.modes.T), self.elements.shape)

    def of(self, vectors: np.ndarray) -> np.ndarray:
        """Return the coordinates (n_elements, n_vectors) of the powers of vectors (d, n_vectors)."""
        coordinates = vectors[self.modes[:, 0]] * self.scales[:, None]
        for indices in self.modes.T[1:]:
            coordinates *= vectors[indices]
        return coordinates

    def contracted(self, coordinates: np.ndarray, vectors: np.ndarray, n_modes: int = 1) -> np.ndarray:
        """Return symmetric tensors, one a column, times their vector in all modes but some: (d^n_modes, n_vectors)."""
        size, n_vectors = vectors.shape
        result = (coordinates / self.scales[:, None])[self.elements.ravel()]
        for _ in range(self.elements.ndim - n_modes):
            result = np.einsum("abn,bn->an", result.reshape(-1, size, n_vectors), vectors)
        return result


@lru_cache
def symmetric_basis(size: int, order: int) -> SymmetricBasis:
    """Return the basis of symmetric tensors of this size and order."""
    shape = (size,) * order
    sorted_indices = np.sort(np.indices(shape).reshape(order, -1), axis=0)
    places, elements, counts = np.unique(
        np.ravel_multi_index(tuple(sorted_indices), shape), return_inverse=True, return_counts=True
    )
    modes = np.stack(np.unravel_index(places, shape), axis=1)
    return SymmetricBasis(modes, np.sqrt(counts), elements.reshape(shape))
