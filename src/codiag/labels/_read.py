"""From labelled data of other libraries to a tensor and its labels. Libraries are recognized, and never imported."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from codiag._text import as_entries
from codiag.labels._labels import Labelled, Labels, as_labels
from codiag.tensors import SparseTensor

LISTED = 0.1
"""Share of all combinations of labels below which those of a table are kept as a list."""


def read_labelled(raw: Any) -> Labelled:
    """Return a tensor with its labels: an xarray.DataArray, a pandas Series, a data frame, or what has none."""
    if isinstance(raw, Labelled):
        return raw
    if _is_array_of_xarray(raw):
        values = [np.asarray(raw.coords[name]) if name in raw.coords else None for name in raw.dims]
        return Labelled(raw.data, Labels(raw.dims, tuple(values)))
    if _is_table(raw):
        return of_table(raw)
    if _has_levels(raw):
        return of_series(raw)
    return Labelled(raw, None)


def read_like(raw: Any, fitted: Labels | None, mode: int | None = None) -> Labelled:
    """Return data as a fit has its modes, in their order and labels, but for samples along a mode; refuse other labels.

    Modes are put in order by their names. Rows of a table have none: these are placed label by label, and what is not
    listed is missing. Data without labels is taken as it is.
    """
    if fitted is None:
        return read_labelled(raw)
    if _is_table(raw) or _has_levels(raw):
        columns, values = _parts(raw, fitted.names)
        if len(columns) == len(fitted.names):
            return _of_columns(fitted.names, columns, getattr(values, "name", None), values, "missing", fitted, mode)
    if _is_array_of_xarray(raw) and set(map(str, raw.dims)) == set(fitted.names):
        raw = raw.transpose(*sorted(raw.dims, key=lambda name: fitted.names.index(str(name))))
    given = read_labelled(raw)
    if given.labels is not None and len(given.labels.names) == len(fitted.names):
        _refuse_others(fitted, given.labels, mode)
    return given


def _refuse_others(fitted: Labels, given: Labels, mode: int | None) -> None:
    name = fitted.difference(given, -1 if mode is None else mode)
    if name is None:
        return
    where = "all modes" if mode is None else "all modes but that of the samples"
    place = fitted.names.index(name)
    ours, theirs = fitted.values[place], given.values[place]
    if given.names[place] != name:
        how = f"mode {place} is {name!r} in the fit, and {given.names[place]!r} here"
    else:
        how = f"those of {name!r} differ: {_first_difference(ours, theirs)}"  # type: ignore[arg-type]
    raise ValueError(
        f"new data must have the labels of the fit, in their order, in {where}; {how}. Reindex by fit.labels"
    )


def _first_difference(ours: np.ndarray, theirs: np.ndarray) -> str:
    if ours.size != theirs.size:
        return f"there are {ours.size} in the fit, and {theirs.size} here"
    place = next((at for at in range(ours.size) if str(ours[at]) != str(theirs[at])), 0)
    return f"at place {place} the fit has {ours[place]}, and this has {theirs[place]}"


def _is_array_of_xarray(raw: Any) -> bool:
    return all(hasattr(raw, name) for name in ("dims", "coords", "data"))


def _is_table(raw: Any) -> bool:
    return hasattr(raw, "columns") and hasattr(raw, "shape") and len(raw.shape) == 2


def _has_levels(raw: Any) -> bool:
    return hasattr(raw, "index") and hasattr(raw.index, "get_level_values")  # a Series of pandas


def _parts(raw: Any, names: Sequence[str]) -> tuple[list[Any], Any]:
    """Return the columns, or levels of the index, that have these names, and the values beside them."""
    if not _is_table(raw) or _is_indexed(raw):
        series = raw.iloc[:, 0] if _is_table(raw) else raw
        levels = [str(name) for name in series.index.names]
        known = [series.index.get_level_values(levels.index(name)) for name in names if name in levels]
        return known, series
    columns = {str(name): name for name in raw.columns}
    others = [name for name in raw.columns if str(name) not in names]
    return [raw[columns[name]] for name in names if name in columns], raw[others[-1]] if others else None


def _is_indexed(table: Any) -> bool:
    """Tell whether a data frame is one column of values, labelled by the levels of its index."""
    return getattr(getattr(table, "index", None), "nlevels", 1) > 1 and table.shape[1] == 1


def of_series(series: Any, absent: str = "missing") -> Labelled:
    """Return the tensor of a pandas Series whose index has a level for each mode."""
    index = series.index
    names = [f"mode_{mode}" if name is None else name for mode, name in enumerate(index.names)]
    return _of_columns(
        names, [index.get_level_values(mode) for mode in range(index.nlevels)], series.name, series, absent
    )


def of_table(table: Any, modes: Any = None, value: Any = None, absent: str = "missing") -> Labelled:
    """Return the tensor of a long table: what `codiag.io.labelled_tensor` does."""
    if modes is None and _is_indexed(table):
        return of_series(table.iloc[:, 0], absent)
    names = list(table.columns)
    value = names[-1] if value is None and names else value
    modes = [name for name in names if name != value] if modes is None else list(modes)
    unknown = [name for name in (*modes, value) if name not in names]
    if unknown:
        raise ValueError(f"modes and value must be columns of the table, {names}; {unknown[0]!r} is none of them")
    try:
        return _of_columns(modes, [table[name] for name in modes], value, table[value], absent)
    except ValueError:
        _refuse_pivoted(table, modes)
        raise


def _refuse_pivoted(table: Any, modes: Sequence[Any]) -> None:
    """Raise where columns hold values rather than labels: fractions of which hardly any occurs twice."""
    columns = {name: np.asarray(table[name]) for name in modes}
    measured = [name for name, own in columns.items() if own.dtype.kind == "f" and _is_measured(own)]
    if len(measured) >= 2:
        index = [name for name in getattr(getattr(table, "index", None), "names", ()) if name is not None]
        kept = [*index, *(name for name in modes if name not in measured)]
        long = f"table{'.reset_index()' if index else ''}.melt(id_vars={kept})"
        raise ValueError(
            f"a table must have one row for each entry of the tensor, with a column of labels for each mode and one of "
            f"values; this one seems to be pivoted, with values in the columns {measured[0]}, {measured[1]}"
            f"{' and others' if len(measured) > 2 else ''}. Bring it to long form first: {long}"
        )


def _is_measured(column: np.ndarray) -> bool:
    """Tell whether numbers have fractions and hardly ever occur twice, as measurements do and labels do not."""
    known = column[np.isfinite(column)]
    return known.size > 1 and bool(np.any(known % 1 != 0)) and 2 * np.unique(known).size > known.size


def _of_columns(
    names: Sequence[Any],
    columns: Sequence[Any],
    value: Any,
    values: Any,
    absent: str,
    fitted: Labels | None = None,
    mode: int | None = None,
) -> Labelled:
    """Return the tensor of columns of labels and one of values; places of the labels are those of a fit, if given."""
    if absent not in ("missing", "zero"):
        raise ValueError(f"absent must be 'missing' or 'zero', what combinations not listed are; got {absent!r}")
    if len(names) < 3 or len(set(names)) < len(names):
        raise ValueError(
            f"tensor must have three modes or more, by different names; got the columns {[str(one) for one in names]}. "
            "A table has a column of labels for each mode, and the values in its last column, or in `value`"
        )
    entries = as_entries(value, values)
    pairs = [_coded(name, column) for name, column in zip(names, columns, strict=True)]
    if fitted is not None:
        pairs = [pair if at == mode else _placed(fitted, at, *pair) for at, pair in enumerate(pairs)]
    places, shape = np.stack([codes for codes, _ in pairs]), tuple(len(own) for _, own in pairs)
    labels = Labels(tuple(names), tuple(own for _, own in pairs))
    _refuse_duplicates(places, labels)
    infinite = np.flatnonzero(np.isinf(entries))
    if infinite.size:
        raise ValueError(
            f"tensor must be finite; {infinite.size} of {entries.size} values are infinite, the first at "
            f"{_place(labels, places[:, infinite[0]])}. Leave a cell empty where the value is missing"
        )
    if fitted is None and absent == "missing" and entries.size <= sum(shape) - len(shape):
        raise ValueError(
            f"a table must list more than {sum(shape) - len(shape)} entries to determine one component of a tensor of "
            f"shape {shape}; got {entries.size}. Are {', '.join(labels.names)} columns of labels, and {value} that of "
            "the values? Name others by `modes` and `value`, as in codiag.io.labelled_tensor(table, value=...)"
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


def _placed(fitted: Labels, mode: int, codes: np.ndarray, found: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the places of labels among those of a fit, and these."""
    known = fitted.values[mode]
    if known is None:
        return codes, found
    numbers = "biuf"
    if known.dtype.kind == found.dtype.kind or (known.dtype.kind in numbers and found.dtype.kind in numbers):
        common = np.result_type(known, found)
        order = {label: place for place, label in enumerate(known.astype(common).tolist())}
        places = np.array([order.get(label, -1) for label in found.astype(common).tolist()])
    else:
        places = np.full(found.size, -1)
    others = found[places < 0]
    if others.size:
        raise ValueError(
            f"new data must have labels that the fit has in all modes but that of the samples; {others.size} of those "
            f"of {fitted.names[mode]!r} differ, such as {others[0]}. Leave these rows out"
        )
    return places[codes], known


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
