"""Slices on top of each other, in groups of equal length, and the products with them that a fit needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse


@dataclass(frozen=True, eq=False)
class Stack:
    """Slices of equal width, sorted by their numbers of rows and padded by rows of zeros to a few lengths.

    Attributes
    ----------
    matrix : array or sparse matrix of shape (n_rows, width)
        The slices below each other.
    groups : tuple of (int, int)
        Numbers of slices and of rows of each, group by group.
    """

    matrix: Any
    groups: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, slices: Sequence[Any], least: int) -> tuple[Stack, np.ndarray]:
        """Return the stack of slices with at least `least` rows each, and the order in which they are in it."""
        sizes = np.array([max(one.shape[0], least) for one in slices])
        order = np.argsort(-sizes, kind="stable")
        groups, padded, place = [], [], 0
        while place < order.size:
            length = int(sizes[order[place]])
            members = order[place:][sizes[order[place:]] > 0.8 * length]  # rows of zeros cost less than many groups
            groups.append((members.size, length))
            padded += [_padded(slices[member], length) for member in members]
            place += members.size
        is_sparse = any(sparse.issparse(one) for one in slices)
        return cls(sparse.vstack(padded, "csr") if is_sparse else np.concatenate(padded), tuple(groups)), order

    @property
    def is_sparse(self) -> bool:
        return sparse.issparse(self.matrix)

    @property
    def n_slices(self) -> int:
        return sum(n for n, _ in self.groups)

    @cached_property
    def squared_norm(self) -> float:
        return _sum_of_squares(self.matrix)

    def by_group(self, rows: np.ndarray) -> list[np.ndarray]:
        """Return views (n, length, columns) of what has the rows of the stack, a view for each group."""
        views, place = [], 0
        for n, length in self.groups:
            views.append(rows[place : place + n * length].reshape(n, length, -1))
            place += n * length
        return views

    def per_row(self, per_slice: np.ndarray) -> np.ndarray:
        """Repeat what there is of each slice for each of its rows."""
        return np.repeat(per_slice, np.repeat([m for _, m in self.groups], [n for n, _ in self.groups]), axis=0)

    def cross_product(self) -> np.ndarray:
        """Return the sum of the cross products of all slices."""
        product = self.matrix.T @ self.matrix
        return product.toarray() if sparse.issparse(product) else product

    def times(self, basis: np.ndarray) -> np.ndarray:
        return np.asarray(self.matrix @ basis)

    def triangles(self, basis: np.ndarray | None = None) -> Stack:
        """Return the triangular factors of the slices, times a basis if given: a stack with the same cross products."""
        if basis is None and (self.is_sparse or all(length <= self.matrix.shape[1] for _, length in self.groups)):
            return self
        rows = self.matrix if basis is None else self.times(basis)
        parts = [np.asarray(np.linalg.qr(view, mode="r")) for view in self.by_group(rows)]
        groups: list[tuple[int, int]] = []
        for part in parts:
            same = bool(groups) and groups[-1][1] == part.shape[1]
            n = groups.pop()[0] if same else 0
            groups.append((n + part.shape[0], part.shape[1]))
        return Stack(np.concatenate([part.reshape(-1, rows.shape[1]) for part in parts]), tuple(groups))

    def subset(self, n: int) -> Stack:
        """Return every so many of the slices, about `n`, where all have one length."""
        (n_all, length) = self.groups[0]
        chosen = self.matrix.reshape(n_all, length, -1)[:: max(n_all // n, 1)]
        return Stack(np.ascontiguousarray(chosen).reshape(-1, chosen.shape[2]), ((chosen.shape[0], length),))


def _padded(one: Any, length: int) -> Any:
    missing = length - one.shape[0]
    if sparse.issparse(one):
        one = one.tocsr()
        end = np.full(missing, one.indptr[-1])
        pointers = np.concatenate([one.indptr, end])
        return sparse.csr_array((one.data, one.indices, pointers), shape=(length, one.shape[1]))
    return np.pad(one, ((0, missing), (0, 0))) if missing else one


def _sum_of_squares(matrix: Any) -> float:
    values = matrix.data if sparse.issparse(matrix) else matrix.ravel()
    return float(values @ values)
