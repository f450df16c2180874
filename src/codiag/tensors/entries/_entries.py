"""Entries that were observed, or that count with weights: what least squares asks of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

import numpy as np
from array_api_compat import array_namespace, is_numpy_array, is_torch_array
from scipy import sparse

from codiag._arrays import Array, double, identity, like, on_host, pick, to_host
from codiag.tensors._base import Tensor
from codiag.tensors._factored import FactoredTensor
from codiag.tensors._sparse import SparseTensor
from codiag.tensors._sums import khatri_rao
from codiag.tensors.chunked import DaskTensor

LISTED = 0.1
"""Share of the entries below which those that were observed are listed: reading a list takes ten times as long each."""

CHUNK, DEVICE_CHUNK = 2**18, 2**26
"""Numbers, a row of as many as components for each entry of a list, that are worked on at a time: as many as stay in
the cache of a processor, and as keep an accelerator busy."""


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
    def distance_and_slopes(self, factors: Sequence[Array]) -> tuple[float, list[Array]]:
        r"""Return the distance of components of weight one, and its derivatives.

        These are :math:`\sum_j o_j (\hat t_j - t_j) z_{mj}` by rows of every mode, those of half the distance.
        """

    def slopes(self, factors: Sequence[Array]) -> list[Array]:
        """Return the derivatives alone."""
        return self.distance_and_slopes(factors)[1]

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

    def distance_and_slopes(self, factors: Sequence[Array]) -> tuple[float, list[Array]]:
        xp = array_namespace(self._entries)
        columns = khatri_rao(factors[:-1])
        gap = xp.reshape(columns @ xp.matrix_transpose(factors[-1]), self.shape) - self._entries
        weighted = self._weights * gap
        slopes = [self._times_others(weighted, factors, mode) for mode in range(len(factors))]
        return float(xp.sum(weighted * gap)), slopes

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
            same = identity(grams.shape[0], grams)
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
    """A list of entries; all others were not observed, and are never written down.

    Parameters
    ----------
    places : array of integers, shape (order, n)
    values : array of shape (n,)
        Of NumPy or torch, in the library and on the device of the factors; so are the others.
    weights : array of shape (n,), optional
        By default all ones.
    shape : tuple of ints
    """

    def __init__(self, places: Array, values: Array, weights: Array | None, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self._places, self._values, self._weights = places, values, weights

    @property
    def size(self) -> int:
        """Length of the list."""
        return int(self._values.shape[0])

    def _parts(self, rank: int) -> Iterator[tuple[Array, Array, Array | None]]:
        """Yield places, values and weights of some entries at a time."""
        step = max((CHUNK if on_host(self._values) else DEVICE_CHUNK) // rank, 1)
        for start in range(0, self.size, step):
            part = slice(start, start + step)
            weights = None if self._weights is None else self._weights[part]
            yield self._places[:, part], double(self._values[part]), weights

    def square(self) -> float:
        xp = array_namespace(self._values)
        return sum(float(xp.sum(_weighted(values**2, weights))) for _, values, weights in self._parts(1))

    def distance(self, components: FactoredTensor) -> float:
        return sum(_squares(gap, weights) for _, gap, weights in self._gaps(components))

    def residual(self, components: FactoredTensor) -> SparseTensor:
        """Return what components leave of the entries, times their weights, and zero where nothing was observed."""
        gaps = [to_host(_weighted(gap, weights)) for _, gap, weights in self._gaps(components)]
        return SparseTensor(to_host(self._places), np.concatenate(gaps), self.shape, check=False)

    def _gaps(self, components: FactoredTensor) -> Iterator[tuple[Array, Array, Array | None]]:
        factors = [double(factor) for factor in components.factors]
        factors[0] = factors[0] * double(components.weights)
        for places, values, weights in self._parts(components.rank):
            rows = _rows(factors, places)
            yield places, values - array_namespace(values).vecdot(_product(rows[:-1]), rows[-1]), weights

    def distance_and_slopes(self, factors: Sequence[Array]) -> tuple[float, list[Array]]:
        xp = array_namespace(factors[0])
        distance, totals = 0.0, [xp.zeros_like(factor) for factor in factors]
        for places, values, weights in self._parts(factors[0].shape[1]):
            rows = _rows(factors, places)
            last = _product(rows[:-1])
            gap = xp.vecdot(last, rows[-1]) - values
            distance += _squares(gap, weights)
            gap = _weighted(gap, weights)
            for mode, total in enumerate(totals):
                _add_rows(total, places[mode], last if mode == len(rows) - 1 else _product(rows, mode), gap)
        return distance, totals

    def row_grams(self, factors: Sequence[Array], mode: int) -> Array:
        rank = factors[0].shape[1]
        totals = [array_namespace(factors[0]).zeros_like(factors[mode]) for _ in range(rank)]
        for places, _, weights in self._parts(rank):
            others = _product(_rows(factors, places), mode)
            for i, total in enumerate(totals):
                _add_rows(total, places[mode], others, _weighted(others[:, i], weights))
        return array_namespace(factors[0]).stack(totals, axis=2)

    def row_products(self, factors: Sequence[Array], mode: int) -> Array:
        total = array_namespace(factors[0]).zeros_like(factors[mode])
        for places, values, weights in self._parts(factors[0].shape[1]):
            others = _product(_rows(factors, places), mode)
            _add_rows(total, places[mode], others, _weighted(values, weights))
        return total

    def curved(self, factors: Sequence[Array], moves: Sequence[Array]) -> list[Array]:
        xp = array_namespace(factors[0])
        totals = [xp.zeros_like(factor) for factor in factors]
        for places, values, weights in self._parts(factors[0].shape[1]):
            rows = _rows(factors, places)
            others = [_product(rows, mode) for mode in range(len(factors))]
            change = xp.zeros_like(values)
            for move, other in zip(_rows(moves, places), others, strict=True):
                change += xp.vecdot(move, other)
            change = _weighted(change, weights)
            for total, place, other in zip(totals, places, others, strict=True):
                _add_rows(total, place, other, change)
        return totals

    def matrix(self, factors: Sequence[Array]) -> Array:
        known, starts = [to_host(factor) for factor in factors], np.cumsum([0, *self.shape[:-1]])
        rank, order = known[0].shape[1], len(known)
        total = np.zeros((sum(self.shape) * rank,) * 2)
        for part, values, weights in self._parts(rank):
            places, n = to_host(part), values.shape[0]
            rows = _rows(known, places)
            entries = np.stack([_product(rows, mode) for mode in range(order)], axis=1)
            if weights is not None:
                entries *= np.sqrt(to_host(weights))[:, None, None]
            columns = (places.T + starts)[:, :, None] * rank + np.arange(rank)
            ends = np.arange(0, n * order * rank + 1, order * rank)
            jacobian = sparse.csr_array((entries.ravel(), columns.ravel(), ends), shape=(n, total.shape[0]))
            total += (jacobian.T @ jacobian).toarray()
        return like(total, factors[0])

    def counts(self) -> list[np.ndarray]:
        pairs = zip(self._places, self.shape, strict=True)
        return [np.bincount(to_host(row), minlength=size) for row, size in pairs]

    def thinned(self, per_row: int, rng: np.random.Generator) -> ListedEntries:
        """Return a random part of the list, with weights that make it stand for all: itself where that is most of it.

        About so many entries of every slice are drawn, or all that it has: sums over them have the same expectation as
        over the whole list.
        """
        chances = [np.minimum(per_row / np.maximum(count, 1), 1.0) for count in self.counts()]
        kept, weights = [], []
        for start in range(0, self.size, CHUNK):
            places = to_host(self._places[:, start : start + CHUNK])
            chance = np.max([own[row] for own, row in zip(chances, places, strict=True)], axis=0)
            drawn = np.flatnonzero(rng.random(chance.size) < chance)
            kept.append(start + drawn)
            weights.append(1 / chance[drawn])
        index = np.concatenate(kept)
        if 2 * index.size > self.size:
            return self
        scale = like(np.concatenate(weights), double(self._values[:1]))
        own = scale if self._weights is None else scale * pick(self._weights, index, axis=0)
        return ListedEntries(pick(self._places, index, axis=1), pick(self._values, index, axis=0), own, self.shape)

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
    if isinstance(tensor, DaskTensor):
        from codiag.tensors.entries._chunked import ChunkedEntries

        return ChunkedEntries(tensor, weights)
    known = to_host(weights)
    if np.count_nonzero(known) >= LISTED * known.size or not is_numpy_array(tensor.reference):
        return DenseEntries(tensor.to_dense(), weights)
    places = np.nonzero(known)
    return ListedEntries(np.stack(places), np.asarray(tensor.to_dense())[places], known[places], tensor.shape)


def _squares(gap: Array, weights: Array | None) -> float:
    """Return the weighted sum of squares."""
    return float(array_namespace(gap).vecdot(gap, _weighted(gap, weights)))


def _weighted(values: Array, weights: Array | None) -> Array:
    return values if weights is None else weights * values


def _rows(factors: Sequence[Array], places: Array) -> list[Array]:
    xp = array_namespace(factors[0])
    return [xp.take(factor, row, axis=0) for factor, row in zip(factors, places, strict=True)]


def _product(rows: Sequence[Array], leave_out: int | None = None) -> Array:
    """Return the entrywise product of rows, but for those of one mode."""
    kept = [row for mode, row in enumerate(rows) if mode != leave_out]
    product = kept[0] * kept[1]
    for row in kept[2:]:
        product *= row
    return product


def _add_rows(total: Array, places: Array, rows: Array, scales: Array) -> None:
    """Add multiples of rows to those of the total they belong to: a product with a matrix of one entry a column."""
    if is_torch_array(total):
        total.index_add_(0, places, rows * scales[:, None])
    else:
        ends = np.arange(places.size + 1, dtype=places.dtype)
        total += sparse.csc_array((scales, places, ends), shape=(total.shape[0], places.size)) @ rows


def _unfolded(entries: Array, mode: int) -> Array:
    xp = array_namespace(entries)
    return xp.reshape(xp.moveaxis(entries, mode, 0), (entries.shape[mode], -1))
