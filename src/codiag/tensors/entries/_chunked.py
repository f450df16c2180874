"""Entries that were observed of a tensor in chunks: sums over those of every chunk."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from codiag._arrays import Array, to_host
from codiag.tensors._dense import DenseTensor
from codiag.tensors._factored import FactoredTensor
from codiag.tensors._sums import Contributions, Ranges
from codiag.tensors.chunked import DaskTensor, entries_of_chunk
from codiag.tensors.entries._entries import ObservedEntries, entries_of_array


class Asked(NamedTuple):
    """A method of `ObservedEntries`, and its arguments for the whole tensor."""

    method: str
    factors: Sequence[Array] = ()
    moves: Sequence[Array] = ()
    mode: int = 0
    weights: Array | None = None
    groups: Sequence[Sequence[int]] = ()


class ChunkedEntries(ObservedEntries):
    """Entries in chunks, with weights in equal chunks: zero where nothing was observed.

    Parameters
    ----------
    tensor : DaskTensor
        Whose NaN are missing, whatever their weights.
    weights : dask array
        Not negative.
    """

    def __init__(self, tensor: DaskTensor, weights: Any) -> None:
        self.shape = tensor.shape
        self.tensor = tensor
        self._weights = tensor.weights_of(weights)

    def _sum(self, asked: Asked) -> Contributions:
        return self.tensor.sum_over_chunks(_of_chunk, asked, self._weights)

    @cached_property
    def summary(self) -> dict[str, Any]:
        """What one pass tells once and for all: sums of weights, of weighted entries and of their squares; counts."""
        shares = self._sum(Asked("summary"))
        known = {name: shares[0, number] for number, name in enumerate(SUMMARY)}
        known["largest"] = max(value for key, value in shares.items() if key[0] == 2)
        known["counts"] = [_stacked(shares, (1, mode), size) for mode, size in enumerate(self.shape)]
        return known

    def _not_held(self, *_: Any) -> Any:
        raise NotImplementedError("entries in chunks are not held in memory")

    model = slopes = with_values = tensor_of = _not_held  # type: ignore[assignment]

    def squared_norm(self) -> float:
        return float(self.summary["square"])

    def distance(self, components: FactoredTensor) -> float:
        return float(self._sum(Asked("distance", components.factors, weights=components.weights)).get((), 0.0))

    def distance_and_slopes(
        self, factors: Sequence[Array], modes: Sequence[int] | None = None
    ) -> tuple[float, list[Array]]:
        shares = self._sum(Asked("distance_and_slopes", factors))
        return float(shares.pop((), 0.0)), self._by_mode(shares, factors)

    def row_grams(self, factors: Sequence[Array], mode: int) -> Array:
        return self._rows(Asked("row_grams", factors, mode=mode), (factors[0].shape[1],) * 2)

    def row_products(self, factors: Sequence[Array], mode: int) -> Array:
        return self._rows(Asked("row_products", factors, mode=mode), (factors[0].shape[1],))

    def gauss_newton_product(self, factors: Sequence[Array], moves: Sequence[Array]) -> list[Array]:
        return self._by_mode(self._sum(Asked("gauss_newton_product", factors, moves)), factors)

    def gauss_newton_matrix(self, factors: Sequence[Array]) -> Array:
        rank, starts = factors[0].shape[1], np.cumsum([0, *self.shape])
        total = np.zeros((int(starts[-1]) * rank,) * 2)
        for (m, first, n, second), block in self._sum(Asked("gauss_newton_matrix", factors)).items():
            rows, columns = (starts[m] + first) * rank, (starts[n] + second) * rank
            total[rows : rows + block.shape[0], columns : columns + block.shape[1]] = block
        return total

    def residual(self, components: FactoredTensor) -> DenseTensor:
        weights, entries = np.asarray(self._weights), self.tensor.to_dense()
        known = np.where(np.isnan(entries), 0.0, weights)
        return DenseTensor.of(known * (np.where(known > 0, entries, 0.0) - components.to_dense()), symmetric=False)

    def counts(self) -> list[np.ndarray]:
        counts: list[np.ndarray] = self.summary["counts"]
        return counts

    def mean_weight(self) -> float:
        return float(self.summary["weight"] / self.summary["count"])

    def largest_weight(self) -> float:
        return float(self.summary["largest"])

    def filled(self) -> DaskTensor:
        """Return the tensor with the weighted mean of what was observed in place of what was not."""
        mean = float(self.summary["entry"] / self.summary["weight"])
        dtype = self.tensor.reference.dtype
        array = self.tensor.array.map_blocks(
            _filled, self._weights, mean, dtype=dtype, meta=np.empty((0,) * self.tensor.order, dtype)
        )
        return DaskTensor(array, symmetric=self.tensor.symmetric)

    def n_independent(self, groups: Sequence[Sequence[int]]) -> int:
        if all(len(group) == 1 for group in groups):
            return int(self.summary["count"])
        return int(self._sum(Asked("n_independent", groups=groups)).get((), 0))

    def _rows(self, asked: Asked, width: tuple[int, ...]) -> np.ndarray:
        return _stacked(self._sum(asked), (asked.mode,), self.shape[asked.mode], width)

    def _by_mode(self, shares: Contributions, factors: Sequence[Array]) -> list[Array]:
        width = (factors[0].shape[1],)
        return [_stacked(shares, (mode,), size, width) for mode, size in enumerate(self.shape)]


def checked_chunk_weights(tensor: DaskTensor, weights: Any) -> Any:
    """Return weights of the entries of a tensor in chunks, or None where all are one; raise if they cannot be that."""
    entries = ChunkedEntries(tensor, weights)
    known = entries.summary
    if known["infinite"]:
        raise ValueError(
            f"tensor must be finite where it was observed; {known['infinite']} of {math.prod(tensor.shape)} entries "
            "are infinite. Leave them out with mask="
        )
    if known["wrong weights"] or not known["count"]:
        raise ValueError(
            "mask and weights must be finite, not negative, and not all zero; or, without them, all entries are NaN"
        )
    return weights if known["unequal weights"] else None


SUMMARY = ("square", "weight", "entry", "count", "wrong weights", "infinite", "unequal weights")
"""Sums over all entries: of their weighted squares, their weights, the weighted entries; numbers of entries that were
observed, of weights that are negative or not finite, of entries that are infinite, and of weights that are not one."""


def _of_chunk(asked: Asked, ranges: Ranges, block: Array, weights: Array) -> Contributions:
    entries = entries_of_chunk(block)
    given = to_host(weights)
    known = np.where(np.isnan(entries), 0.0, given)
    if asked.method == "summary":
        return _summary(entries, given, known, ranges)
    if asked.method == "n_independent":
        return {(): np.count_nonzero((known > 0) & _in_order(ranges, asked.groups))}
    if not known.any():
        return {}
    local = entries_of_array(entries, known)
    return _SHARES[asked.method](local, asked, ranges)


def _filled(block: Array, weights: np.ndarray, mean: float) -> np.ndarray:
    entries = entries_of_chunk(block)
    return np.where((weights > 0) & ~np.isnan(entries), entries, entries.dtype.type(mean))


def _summary(entries: np.ndarray, given: np.ndarray, known: np.ndarray, ranges: Ranges) -> Contributions:
    with np.errstate(all="ignore"):
        values = np.where(known > 0, entries, 0.0).astype(np.float64, copy=False)
        sums = (
            np.sum(known * values**2),
            np.sum(known),
            np.sum(known * values),
            np.count_nonzero(known > 0),
            np.count_nonzero(~(given >= 0) | np.isinf(given)),
            np.count_nonzero(np.isinf(values)),
            np.count_nonzero(known != 1),
        )
    axes = range(entries.ndim)
    counts: Contributions = {
        (1, mode, ranges[mode].start): np.count_nonzero(known, axis=tuple(other for other in axes if other != mode))
        for mode in axes
    }
    largest: Contributions = {(2, *(rows.start for rows in ranges)): np.max(known, initial=0.0)}
    return {(0, number): value for number, value in enumerate(sums)} | counts | largest


def _in_order(ranges: Ranges, groups: Sequence[Sequence[int]]) -> np.ndarray:
    """Return which entries of a chunk have indices in the whole tensor that are in order within groups of modes."""
    index = np.ogrid[tuple(ranges)]
    in_order = np.ones((1,) * len(ranges), dtype=bool)
    for group in groups:
        for one, other in pairwise(group):
            in_order = in_order & (index[one] <= index[other])
    return in_order


def _rows_of(factors: Sequence[Array], ranges: Ranges) -> list[Array]:
    return [factor[rows, :] for factor, rows in zip(factors, ranges, strict=True)]


def _by_start(parts: Sequence[Array], ranges: Ranges) -> Contributions:
    return {(mode, rows.start): part for mode, (part, rows) in enumerate(zip(parts, ranges, strict=True))}


def _distance(local: ObservedEntries, asked: Asked, ranges: Ranges) -> Contributions:
    return {(): local.distance(FactoredTensor(asked.weights, _rows_of(asked.factors, ranges), symmetric=False))}


def _distance_and_slopes(local: ObservedEntries, asked: Asked, ranges: Ranges) -> Contributions:
    distance, slopes = local.distance_and_slopes(_rows_of(asked.factors, ranges))
    return {(): distance} | _by_start(slopes, ranges)


def _row_sums(local: ObservedEntries, asked: Asked, ranges: Ranges) -> Contributions:
    rows = getattr(local, asked.method)(_rows_of(asked.factors, ranges), asked.mode)
    return {(asked.mode, ranges[asked.mode].start): rows}


def _curved(local: ObservedEntries, asked: Asked, ranges: Ranges) -> Contributions:
    return _by_start(local.gauss_newton_product(_rows_of(asked.factors, ranges), _rows_of(asked.moves, ranges)), ranges)


def _matrix(local: ObservedEntries, asked: Asked, ranges: Ranges) -> Contributions:
    rank = asked.factors[0].shape[1]
    matrix = local.gauss_newton_matrix(_rows_of(asked.factors, ranges))
    ends = np.cumsum([0, *((rows.stop - rows.start) * rank for rows in ranges)])
    modes = range(len(ranges))
    return {
        (m, ranges[m].start, n, ranges[n].start): matrix[ends[m] : ends[m + 1], ends[n] : ends[n + 1]]
        for m in modes
        for n in modes
    }


_SHARES = {
    "distance": _distance,
    "distance_and_slopes": _distance_and_slopes,
    "row_grams": _row_sums,
    "row_products": _row_sums,
    "gauss_newton_product": _curved,
    "gauss_newton_matrix": _matrix,
}


def _stacked(shares: Contributions, place: tuple[int, ...], size: int, width: tuple[int, ...] = ()) -> np.ndarray:
    """Return rows put together by where they start, zero where no chunk has given any."""
    total = np.zeros((size, *width), dtype=np.float64 if width else np.int64)
    for key, rows in shares.items():
        if key[:-1] == place:
            total[key[-1] : key[-1] + rows.shape[0]] = rows
    return total
