"""Entries that were observed, or that count with weights: what least squares asks of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

import numpy as np
from array_api_compat import array_namespace, is_numpy_array
from scipy import sparse

from codiag._array import Array, double, to_host
from codiag.tensors import FactoredTensor, SparseTensor, Tensor
from codiag.tensors._dense import khatri_rao

LISTED = 0.1
"""Share of the entries below which those that were observed are listed: reading a list takes ten times as long each."""

CHUNK = 2**18
"""Entries of a list that are worked on at a time."""


class Entries(ABC):
    r"""Entries :math:`t_j` of a tensor, with weights :math:`o_j`.

    :math:`z_{mj}` is the product of the rows that belong to entry j in all modes but m.
    """

    shape: tuple[int, ...]

    @abstractmethod
    def square(self) -> float:
        """Return the weighted sum of squares of the entries."""

    @abstractmethod
    def distance(self, components: FactoredTensor) -> float:
        """Return the weighted sum of squared differences to components."""

    @abstractmethod
    def slopes(self, factors: Sequence[Array]) -> list[Array]:
        r"""Return :math:`\sum_j o_j (\hat t_j - t_j) z_{mj}` by rows of every mode, for components of weight one."""

    @abstractmethod
    def row_grams(self, factors: Sequence[Array], mode: int) -> Array:
        r"""Return :math:`\sum_j o_j z_{mj} z_{mj}^\top` by rows of a mode, shape (d, k, k)."""

    @abstractmethod
    def row_products(self, factors: Sequence[Array], mode: int) -> Array:
        r"""Return :math:`\sum_j o_j t_j z_{mj}` by rows of a mode, shape (d, k)."""

    @abstractmethod
    def curved(self, factors: Sequence[Array], moves: Sequence[Array]) -> list[Array]:
        """Return the Gauss-Newton matrix times moves of the factors."""

    @abstractmethod
    def matrix(self, factors: Sequence[Array]) -> Array:
        """Return the Gauss-Newton matrix itself, unknowns numbered by rows of all factors, one above the other."""

    @abstractmethod
    def counts(self) -> list[np.ndarray]:
        """Return how many entries of each slice were observed, mode by mode."""

    @abstractmethod
    def mean_weight(self) -> float:
        """Return the mean weight of those that were observed."""

    @abstractmethod
    def n_sorted(self, groups: Sequence[Sequence[int]]) -> int:
        """Return how many entries with indices in order within groups of modes were observed: the different ones."""


class DenseEntries(Entries):
    """All entries, those that were not observed with weight zero."""

    def __init__(self, entries: Array, weights: Array) -> None:
        xp = array_namespace(entries)
        self.shape = tuple(entries.shape)
        self._weights = double(weights)
        self._entries = xp.where(self._weights > 0, double(entries), xp.zeros_like(self._weights))

    def square(self) -> float:
        return float(array_namespace(self._entries).sum(self._weights * self._entries**2))

    def distance(self, components: FactoredTensor) -> float:
        gap = self._entries - double(components.to_dense())
        return float(array_namespace(gap).sum(self._weights * gap**2))

    def slopes(self, factors: Sequence[Array]) -> list[Array]:
        xp = array_namespace(self._entries)
        columns = khatri_rao(factors[:-1])
        model = xp.reshape(columns @ xp.matrix_transpose(factors[-1]), self.shape)
        gap = self._weights * (model - self._entries)
        return [self._times_others(gap, factors, mode) for mode in range(len(factors))]

    def row_grams(self, factors: Sequence[Array], mode: int) -> Array:
        rank = factors[0].shape[1]
        xp = array_namespace(self._weights)
        others = khatri_rao([factor for other, factor in enumerate(factors) if other != mode])
        pairs = xp.reshape(others[:, :, None] * others[:, None, :], (-1, rank * rank))
        return xp.reshape(_unfolded(self._weights, mode) @ pairs, (-1, rank, rank))

    def row_products(self, factors: Sequence[Array], mode: int) -> Array:
        return self._times_others(self._weights * self._entries, factors, mode)

    def curved(self, factors: Sequence[Array], moves: Sequence[Array]) -> list[Array]:
        xp = array_namespace(self._weights)
        total = 0.0 * self._weights
        for mode, move in enumerate(moves):
            changed = [move if other == mode else factor for other, factor in enumerate(factors)]
            total = total + xp.reshape(khatri_rao(changed[:-1]) @ xp.matrix_transpose(changed[-1]), self.shape)
        return [self._times_others(self._weights * total, factors, mode) for mode in range(len(factors))]

    def matrix(self, factors: Sequence[Array]) -> Array:
        xp = array_namespace(self._weights)
        modes = range(len(factors))
        blocks = {(m, n): self._block(factors, m, n) for m in modes for n in modes if m <= n}
        blocks |= {(n, m): xp.matrix_transpose(block) for (m, n), block in blocks.items() if m < n}
        return xp.concat([xp.concat([blocks[m, n] for n in modes], axis=1) for m in modes])

    def _block(self, factors: Sequence[Array], m: int, n: int) -> Array:
        r"""Return what couples two modes: :math:`\sum_j o_j z_{mj} z_{nj}^\top` by rows of one and of the other."""
        xp = array_namespace(self._weights)
        rank = factors[0].shape[1]
        if m == n:
            grams = self.row_grams(factors, m)
            same = xp.eye(grams.shape[0], dtype=grams.dtype)
            block = same[:, None, :, None] * grams[:, :, None, :]
        else:
            rest = [mode for mode in range(len(factors)) if mode not in (m, n)]
            others = khatri_rao([factors[mode] for mode in rest])
            pairs = xp.reshape(others[:, :, None] * others[:, None, :], (-1, rank * rank))
            turned = xp.reshape(xp.permute_dims(self._weights, (m, n, *rest)), (-1, pairs.shape[0]))
            shared = xp.reshape(turned @ pairs, (self.shape[m], self.shape[n], rank, rank))
            # (i, a), (j, b): sum of o z_a z_b over the rest, times the row j of n at a and the row i of m at b.
            block = xp.permute_dims(shared, (0, 2, 1, 3))
            block = block * xp.matrix_transpose(factors[n])[None, :, :, None] * factors[m][:, None, None, :]
        return xp.reshape(block, (self.shape[m] * rank, self.shape[n] * rank))

    def counts(self) -> list[np.ndarray]:
        known = to_host(self._weights) > 0
        axes = range(known.ndim)
        return [np.count_nonzero(known, axis=tuple(other for other in axes if other != mode)) for mode in axes]

    def mean_weight(self) -> float:
        weights = to_host(self._weights)
        return float(np.sum(weights) / np.count_nonzero(weights))

    def n_sorted(self, groups: Sequence[Sequence[int]]) -> int:
        return _n_sorted(np.stack(np.nonzero(to_host(self._weights))), groups)

    def _times_others(self, entries: Array, factors: Sequence[Array], mode: int) -> Array:
        return _unfolded(entries, mode) @ khatri_rao([factor for other, factor in enumerate(factors) if other != mode])


class ListedEntries(Entries):
    """A list of entries; all others were not observed, and are never written down."""

    def __init__(self, places: np.ndarray, values: np.ndarray, weights: np.ndarray | None, shape: tuple[int, ...]):
        self.shape = shape
        self._places, self._values, self._weights = places, values, weights

    def _parts(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Yield places, values and weights of some entries at a time."""
        for start in range(0, self._values.shape[0], CHUNK):
            part = slice(start, start + CHUNK)
            values = self._values[part].astype(np.float64, copy=False)
            yield self._places[:, part], values, np.ones(1) if self._weights is None else self._weights[part]

    def square(self) -> float:
        return sum(float(np.sum(weights * values**2)) for _, values, weights in self._parts())

    def distance(self, components: FactoredTensor) -> float:
        factors = [double(factor) for factor in components.factors]
        total = 0.0
        for places, values, weights in self._parts():
            model = _product(_rows(factors, places)) @ double(components.weights)
            total += float(np.sum(weights * (values - model) ** 2))
        return total

    def slopes(self, factors: Sequence[Array]) -> list[Array]:
        totals = [np.zeros_like(factor) for factor in factors]
        for places, values, weights in self._parts():
            rows = _rows(factors, places)
            gap = weights * (np.sum(_product(rows), axis=1) - values)
            for mode, total in enumerate(totals):
                total += _added(places[mode], gap[:, None] * _product(rows, mode), total.shape[0])
        return totals

    def row_grams(self, factors: Sequence[Array], mode: int) -> Array:
        rank = factors[0].shape[1]
        upper = np.triu_indices(rank)
        total = np.zeros((self.shape[mode], upper[0].size))
        for places, _, weights in self._parts():
            others = _product(_rows(factors, places), mode)
            total += _added(places[mode], weights[:, None] * others[:, upper[0]] * others[:, upper[1]], total.shape[0])
        grams = np.zeros((self.shape[mode], rank, rank))
        grams[:, upper[0], upper[1]] = grams[:, upper[1], upper[0]] = total
        return grams

    def row_products(self, factors: Sequence[Array], mode: int) -> Array:
        total = np.zeros((self.shape[mode], factors[0].shape[1]))
        for places, values, weights in self._parts():
            others = _product(_rows(factors, places), mode)
            total += _added(places[mode], (weights * values)[:, None] * others, total.shape[0])
        return total

    def curved(self, factors: Sequence[Array], moves: Sequence[Array]) -> list[Array]:
        totals = [np.zeros_like(factor) for factor in factors]
        for places, _, weights in self._parts():
            rows = _rows(factors, places)
            others = [_product(rows, mode) for mode in range(len(factors))]
            change = sum(np.einsum("nk,nk->n", move[places[mode]], others[mode]) for mode, move in enumerate(moves))
            for mode, total in enumerate(totals):
                total += _added(places[mode], (weights * change)[:, None] * others[mode], total.shape[0])
        return totals

    def matrix(self, factors: Sequence[Array]) -> Array:
        rank, starts = factors[0].shape[1], np.cumsum([0, *self.shape[:-1]])
        total = 0.0
        for places, values, weights in self._parts():
            rows = _rows(factors, places)
            n, order = values.size, len(factors)
            entries = np.stack([_product(rows, mode) for mode in range(order)], axis=1)
            columns = (places.T + starts)[:, :, None] * rank + np.arange(rank)
            ends = np.arange(0, n * order * rank + 1, order * rank)
            jacobian = sparse.csr_array((entries.ravel(), columns.ravel(), ends), shape=(n, sum(self.shape) * rank))
            total = total + (jacobian.T @ jacobian.multiply(weights[:, None]).tocsr()).toarray()
        return total

    def counts(self) -> list[np.ndarray]:
        return [np.bincount(row, minlength=size) for row, size in zip(self._places, self.shape, strict=True)]

    def mean_weight(self) -> float:
        return 1.0 if self._weights is None else float(np.mean(to_host(self._weights)))

    def n_sorted(self, groups: Sequence[Sequence[int]]) -> int:
        return _n_sorted(to_host(self._places), groups)


def _n_sorted(places: np.ndarray, groups: Sequence[Sequence[int]]) -> int:
    in_order = [np.all(np.diff(places[list(group)], axis=0) >= 0, axis=0) for group in groups]
    return int(np.count_nonzero(np.all(in_order, axis=0)))


def entries_of(tensor: Tensor, weights: Array | None) -> Entries | None:
    """Return what was observed of a tensor, or None where that is all of it.

    Of few entries, or where the tensor says that those it does not hold are missing, a list is made.
    """
    if isinstance(tensor, SparseTensor) and tensor.absent == "missing":
        if weights is None:
            return ListedEntries(tensor.coords, tensor.values, None, tensor.shape)
        listed = to_host(weights)[tuple(tensor.coords)]
        kept = listed > 0
        return ListedEntries(tensor.coords[:, kept], tensor.values[kept], listed[kept], tensor.shape)
    if weights is None:
        return None
    known = to_host(weights)
    if np.count_nonzero(known) >= LISTED * known.size or not is_numpy_array(tensor.reference):
        return DenseEntries(tensor.to_dense(), weights)
    places = np.nonzero(known)
    return ListedEntries(np.stack(places), np.asarray(tensor.to_dense())[places], known[places], tensor.shape)


def _rows(factors: Sequence[Array], places: np.ndarray) -> list[np.ndarray]:
    return [np.take(factor, row, axis=0) for factor, row in zip(factors, places, strict=True)]


def _product(rows: Sequence[np.ndarray], leave_out: int | None = None) -> np.ndarray:
    """Return the entrywise product of rows, but for those of one mode."""
    kept = [row for mode, row in enumerate(rows) if mode != leave_out]
    product = kept[0] * kept[1]
    for row in kept[2:]:
        product *= row
    return product


def _added(places: np.ndarray, rows: np.ndarray, size: int) -> np.ndarray:
    """Return rows added up by their place: a product with a matrix that has one entry a column."""
    n = places.size
    return sparse.csc_array((np.ones(n), places, np.arange(n + 1)), shape=(size, n)) @ rows


def _unfolded(entries: Array, mode: int) -> Array:
    xp = array_namespace(entries)
    return xp.reshape(xp.moveaxis(entries, mode, 0), (entries.shape[mode], -1))
