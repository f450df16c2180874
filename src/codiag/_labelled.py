"""From labelled data of other libraries to a tensor and its labels. Libraries are recognized, and never imported."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from codiag._frames import as_entries
from codiag._labels import Labelled, Labels, as_labels
from codiag.tensors import SparseTensor

LISTED = 0.1
"""Share of all combinations of labels below which those of a table are kept as a list."""


def read_labelled(raw: Any) -> Labelled:
    """Return a tensor with its labels: an xarray.DataArray, a pandas Series, a data frame, or what has none."""
    if isinstance(raw, Labelled):
        return raw
    if all(hasattr(raw, name) for name in ("dims", "coords", "data")):  # xarray
        values = [np.asarray(raw.coords[name]) if name in raw.coords else None for name in raw.dims]
        return Labelled(raw.data, Labels(raw.dims, tuple(values)))
    if hasattr(raw, "columns") and hasattr(raw, "shape") and len(raw.shape) == 2:
        return of_table(raw)
    if hasattr(raw, "index") and hasattr(raw.index, "get_level_values"):  # a Series of pandas
        return of_series(raw)
    return Labelled(raw, None)


def of_series(series: Any, absent: str = "missing") -> Labelled:
    """Return the tensor of a pandas Series whose index has a level for each mode."""
    index = series.index
    names = [f"mode_{mode}" if name is None else name for mode, name in enumerate(index.names)]
    return _of_columns(
        names, [index.get_level_values(mode) for mode in range(index.nlevels)], series.name, series, absent
    )


def of_table(table: Any, modes: Any = None, value: Any = None, absent: str = "missing") -> Labelled:
    """Return the tensor of a long table: what `codiag.tables.labelled_tensor` does."""
    names = list(table.columns)
    value = names[-1] if value is None and names else value
    modes = [name for name in names if name != value] if modes is None else list(modes)
    unknown = [name for name in (*modes, value) if name not in names]
    if unknown:
        raise ValueError(f"modes and value must be columns of the table, {names}; {unknown[0]!r} is none of them")
    return _of_columns(modes, [table[name] for name in modes], value, table[value], absent)


def _of_columns(names: Sequence[Any], columns: Sequence[Any], value: Any, values: Any, absent: str) -> Labelled:
    if absent not in ("missing", "zero"):
        raise ValueError(f"absent must be 'missing' or 'zero', what combinations not listed are; got {absent!r}")
    if len(names) < 3 or len(set(names)) < len(names):
        raise ValueError(
            f"tensor must have three modes or more, by different names; got the columns {[str(one) for one in names]}. "
            "A table has a column of labels for each mode, and the values in its last column, or in `value`"
        )
    entries = as_entries(value, values)
    pairs = [_coded(name, column) for name, column in zip(names, columns, strict=True)]
    places, shape = np.stack([codes for codes, _ in pairs]), tuple(len(own) for _, own in pairs)
    labels = Labels(tuple(names), tuple(own for _, own in pairs))
    _refuse_duplicates(places, labels)
    infinite = np.flatnonzero(np.isinf(entries))
    if infinite.size:
        raise ValueError(
            f"tensor must be finite; {infinite.size} of {entries.size} values are infinite, the first at "
            f"{_place(labels, places[:, infinite[0]])}. Leave a cell empty where the value is missing"
        )
    if absent == "missing" and entries.size <= sum(shape) - len(shape):
        raise ValueError(
            f"a table must list more than {sum(shape) - len(shape)} entries to determine one component of a tensor of "
            f"shape {shape}; got {entries.size}. Are {', '.join(labels.names)} columns of labels?"
        )
    return Labelled(_filled(places, entries.astype(np.float64), shape, absent), labels)


def _filled(places: np.ndarray, entries: np.ndarray, shape: tuple[int, ...], absent: str) -> np.ndarray | SparseTensor:
    """Return an array where many combinations are listed, and a list where few are."""
    if entries.size < LISTED * math.prod(shape):
        known = ~np.isnan(entries) if absent == "missing" else np.ones(entries.shape, bool)
        return SparseTensor(places[:, known], entries[known], shape, absent=absent)
    whole = np.full(shape, np.nan if absent == "missing" else 0.0)
    whole[tuple(places)] = entries
    return whole


def _coded(name: Any, column: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the place of every row's label among the labels, and these: sorted, or in the order of categories."""
    raw = np.asarray(column)
    empty = sum(one is None or one != one for one in raw.tolist()) if raw.dtype.kind in "Of" else _n_not_times(raw)
    if empty:
        raise ValueError(f"labels must not be missing; {empty} of those in column {str(name)!r} are. Drop these rows")
    found, codes = np.unique(as_labels(raw), return_inverse=True)
    categories = getattr(column.dtype, "categories", None)
    if categories is None:
        return codes, found
    order = {label: place for place, label in enumerate(as_labels(categories).tolist())}
    ranks = np.argsort([order[label] for label in found.tolist()])
    return np.argsort(ranks)[codes], found[ranks]


def _n_not_times(values: np.ndarray) -> int:
    return int(np.isnat(values).sum()) if values.dtype.kind in "mM" else 0


def _place(labels: Labels, place: np.ndarray) -> str:
    """Return the labels of an entry."""
    return ", ".join(f"{name} {labels.index(mode, 0)[place[mode]]}" for mode, name in enumerate(labels.names))


def _refuse_duplicates(places: np.ndarray, labels: Labels) -> None:
    shape = tuple(len(labels.index(mode, 0)) for mode in range(len(places)))
    flat = np.ravel_multi_index(tuple(places), shape) if math.prod(shape) < 2**62 else places
    _, first, counts = np.unique(flat, axis=-1, return_index=True, return_counts=True)
    if np.all(counts == 1):
        return
    worst = int(first[np.argmax(counts)])
    where = _place(labels, places[:, worst])
    raise ValueError(
        f"a table must have one value for each combination of labels; {int(np.sum(counts > 1))} have several, as "
        f"{where} has {int(np.max(counts))}. Average or add them first, as with groupby"
    )
