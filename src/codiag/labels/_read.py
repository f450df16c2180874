"""Tensors with labels: from xarray, pandas Series with several index levels, and data frames of any library."""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from codiag._text import as_frame, categories_of, column_of, is_number, values_of
from codiag.labels._labels import Labelled, Labels, as_labels
from codiag.labels._order import order_of_texts
from codiag.tensors import SparseTensor

logger = logging.getLogger("codiag.reading")
ROW_NUMBERS = re.compile(r"|Unnamed: \d+(_level_\d+)?")
"""Names that pandas gives to an index of rows which was written to a file and read again."""
LISTED = 0.1
"""Share of all combinations of labels below which the entries of a table are kept as a list; chosen by experience."""
LARGEST = 2**27
"""Entries of an array, 1 GiB in double precision, up to which zeros are stored beside missing entries."""
NUMBERS = (int, float, np.number, Decimal)
REAL = "biuf"
"""Kinds of dtypes of NumPy that are real numbers."""


def read_labelled(raw: Any) -> Labelled:
    """Return a tensor with its labels, which an xarray.DataArray, a pandas Series or a data frame has."""
    if isinstance(raw, Labelled):
        return raw
    if is_xarray(raw):
        values = [np.asarray(raw.coords[name]) if name in raw.coords else None for name in raw.dims]
        attributes = [getattr(raw.coords[name], "attrs", {}) if name in raw.coords else {} for name in raw.dims]
        return Labelled(raw.data, Labels(raw.dims, tuple(values), tuple(attributes)))
    frame = _as_long(raw)
    return Labelled(raw, None) if frame is None else _of_frame(frame, raw, None, None, "missing")


def read_like(raw: Any, fitted: Labels | None, mode: int | None = None) -> Labelled:
    """Return new data with the modes of a fit, in their order and with their labels; refuse data with other labels.

    Modes are matched by their names. Rows of a table are matched by their labels, and combinations that are not listed
    are missing. Labels of the samples, along `mode`, may be new; if all are those of the fit, they are in its order.
    Data without labels is returned as it is.
    """
    if fitted is None:
        return read_labelled(raw)
    frame = None if isinstance(raw, Labelled) or is_xarray(raw) else _as_long(raw)
    if frame is not None:
        named = {str(name): name for name in frame.columns}
        values = [name for name in frame.columns if str(name) not in fitted.names]
        if values and set(fitted.names) <= named.keys():
            columns = [column_of(frame, named[name]) for name in fitted.names]
            return _of_columns(fitted.names, columns, values[-1], column_of(frame, values[-1]), "missing", fitted, mode)
    if is_xarray(raw) and set(map(str, raw.dims)) == set(fitted.names):
        raw = raw.transpose(*sorted(raw.dims, key=lambda name: fitted.names.index(str(name))))
    given = read_labelled(raw)
    if given.labels is not None and len(given.labels.names) == len(fitted.names):
        _refuse_others(fitted, given.labels, mode)
    return given


def of_table(
    table: Any, modes: Any = None, value: Any = None, absent: str = "missing", *, sort: bool = False
) -> Labelled:
    """Return the tensor of a long table: what `codiag.io.labelled_tensor` does."""
    if getattr(table, "ndim", 2) == 1 and (modes is not None or value is not None):
        raise TypeError("modes and value are for data frames; the index of a Series says both")
    frame = _as_long(table) if modes is None else as_frame(table)
    if frame is None:
        kind = type(table).__name__
        raise TypeError(f"table must be a data frame, or a pandas Series with several levels; got {kind}")
    return _of_frame(frame, table, modes, value, absent, sort=sort)


def _of_frame(frame: Any, table: Any, modes: Any, value: Any, absent: str, *, sort: bool = False) -> Labelled:
    names = list(frame.columns)
    value = names[-1] if value is None and names else value
    if modes is None:
        modes = without_row_numbers(frame, [name for name in names if name != value])
    modes = list(modes)
    unknown = [name for name in (*modes, value) if name not in names]
    if unknown:
        raise ValueError(f"modes and value must be columns of the table, {names}; {unknown[0]!r} is none of them")
    columns = {name: column_of(frame, name) for name in modes}
    try:
        labelled = [columns[name] for name in modes]
        return _of_columns(modes, labelled, value, column_of(frame, value), absent, sort=sort)
    except ValueError:
        _refuse_pivoted(table, columns)
        raise


def without_row_numbers(frame: Any, names: list[Any]) -> list[Any]:
    """Return the names of columns without that of an index which pandas wrote, numbers that differ in every row."""
    first = names[0] if names else None
    if not isinstance(first, str) or not ROW_NUMBERS.fullmatch(first) or not is_row_number(column_of(frame, first)):
        return names
    called = repr(first) if first else "without a name"
    logger.info(f"the first column, {called}, numbers the rows, as an index that pandas wrote; it is left out")
    return names[1:]


def is_row_number(column: Any) -> bool:
    """Return whether a column has a different integer in every row."""
    numbers = values_of(column)
    return numbers.dtype.kind in "iu" and np.unique(numbers).size == numbers.size


def is_xarray(raw: Any) -> bool:
    return all(hasattr(raw, name) for name in ("dims", "coords", "data"))


def _as_long(raw: Any) -> Any:
    """Return a data frame with a column for each mode and one of values; None if `raw` is no table.

    The levels of a pandas index become columns if `raw` is a Series, or a frame of one column with several levels.
    """
    if isinstance(raw, np.ndarray):  # without loading narwhals
        return None
    index: Any = getattr(raw, "index", None)
    if not hasattr(index, "get_level_values") or (raw.ndim == 2 and (index.nlevels == 1 or raw.shape[1] != 1)):
        return as_frame(raw)
    series = raw if raw.ndim == 1 else raw.iloc[:, 0]
    names = [f"mode_{level}" if name is None else name for level, name in enumerate(index.names)]
    value = "value" if series.name is None else series.name
    while value in names:
        value = f"{value}_"
    return as_frame(series.rename_axis(names).reset_index(name=value))


def _of_columns(
    names: Sequence[Any],
    columns: Sequence[Any],
    value: Any,
    values: Any,
    absent: str,
    fitted: Labels | None = None,
    mode: int | None = None,
    *,
    sort: bool = False,
) -> Labelled:
    """Return the tensor of columns of labels and one of values; labels are those of a fit, if one is given."""
    if absent not in ("missing", "zero"):
        raise ValueError(f"absent must be 'missing' or 'zero', what combinations not listed are; got {absent!r}")
    if len(names) < 3 or len(set(names)) < len(names):
        raise ValueError(
            f"tensor must have three modes or more, by different names; got the columns {list(map(str, names))}. "
            "A table has a column of labels for each mode, and the values in its last column, or in `value`. If every "
            "row is an event, count them first: table.value_counts().reset_index(), or --counts on the command line"
        )
    entries = _as_entries(value, values)
    coded = [coded_labels(name, column, sort=sort) for name, column in zip(names, columns, strict=True)]
    if fitted is not None:
        coded = [
            pair if at == mode and not _are_those(fitted.values[at], pair[1]) else _matched(fitted, at, *pair)
            for at, pair in enumerate(coded)
        ]
    coords, shape = np.stack([codes for codes, _ in coded]), tuple(len(values) for _, values in coded)
    labels = Labels(tuple(names), tuple(values for _, values in coded))
    _refuse_duplicates(coords, labels)
    _refuse_infinite(entries, coords, labels)
    n_needed = sum(shape) - len(shape)
    if fitted is None and absent == "missing" and entries.size <= n_needed:
        _refuse_row_numbers(names, columns)
        raise ValueError(
            f"a table must list more than {n_needed} entries to determine one component of a tensor of shape {shape}; "
            f"got {entries.size}. Are {', '.join(labels.names)} columns of labels, and {value} that of the values? "
            "Name others by `modes` and `value`, as in codiag.io.labelled_tensor(table, value=...)"
        )
    return Labelled(_filled(coords, entries, shape, absent), labels)


def _refuse_row_numbers(names: Sequence[Any], columns: Sequence[Any]) -> None:
    """Raise if a column differs in every row, and there are three others."""
    numbers = [name for name, column in zip(names, columns, strict=True) if is_row_number(column)]
    others = [name for name in names if name not in numbers]
    if len(numbers) == 1 and len(others) >= 3:
        raise ValueError(
            f"column {str(numbers[0])!r} differs in every row and looks like a row number. Use "
            f"modes={[str(name) for name in others]}"
        )


def _as_entries(name: Any, column: Any) -> np.ndarray:
    """Return a column of numbers; raise and name the first value that is none."""
    entries = values_of(column)
    if not entries.size:
        raise ValueError("tensor must not be empty; the table has no rows")
    if entries.dtype.kind in REAL:
        return entries.astype(np.float64)
    if entries.dtype.kind == "O" and all(cell is None or isinstance(cell, NUMBERS) for cell in entries.tolist()):
        return np.array([np.nan if cell is None else cell for cell in entries.tolist()], dtype=np.float64)
    texts = ["" if cell is None else str(cell) for cell in entries.tolist()]
    bad = [row for row, text in enumerate(texts) if text and not is_number(text)] or list(range(len(texts)))
    way_out = "Leave a cell empty if it is missing"
    if len(bad) == len(texts):
        way_out = "Name another column by `value`, as in codiag.io.labelled_tensor(table, value=...)"
    raise TypeError(
        f"the values of a table, column {str(name)!r}, must be numbers; {len(bad)} of {len(texts)} are not, the first "
        f"in row {bad[0] + 1}: {texts[bad[0]]!r:.60}. {way_out}"
    )


def coded_labels(name: Any, column: Any, *, sort: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Return the number of every row's label, and the labels.

    Numbers and dates are sorted, text is in the order of its categories if it has any, and else of `order_of_texts`.
    """
    raw = values_of(column)
    n_missing = _n_missing(raw)
    if n_missing:
        raise ValueError(
            f"labels must not be missing; {n_missing} of those in column {str(name)!r} are. Drop these rows"
        )
    labels, first, codes = np.unique(as_labels(raw), return_index=True, return_inverse=True)
    categories = categories_of(column)
    if categories is not None:
        place = {label: rank for rank, label in enumerate(as_labels(categories).tolist())}
        order = np.argsort([place[label] for label in labels.tolist()])
    elif labels.dtype.kind == "U":
        order = order_of_texts(labels, first, is_sorted=sort)
    else:
        return codes, labels
    return np.argsort(order)[codes], labels[order]


def _n_missing(labels: np.ndarray) -> int:
    if labels.dtype.kind == "O":
        return sum(label is None for label in labels.tolist())
    if labels.dtype.kind in "mM":
        return int(np.isnat(labels).sum())
    return int(np.isnan(labels).sum()) if labels.dtype.kind == "f" else 0


def _are_those(known: np.ndarray | None, labels: np.ndarray) -> bool:
    """Return whether labels of samples are those of a fit, in any order; the samples are then in the fit's order."""
    return known is not None and known.dtype.kind == labels.dtype.kind and set(known.tolist()) == set(labels.tolist())


def _matched(fitted: Labels, mode: int, codes: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of every row's label among the labels of a fit, and these."""
    known = fitted.values[mode]
    if known is None:
        return codes, labels
    numbers = np.full(labels.size, -1)
    if known.dtype.kind == labels.dtype.kind or (known.dtype.kind in REAL and labels.dtype.kind in REAL):
        common = np.result_type(known, labels)
        order = {label: number for number, label in enumerate(known.astype(common).tolist())}
        numbers = np.array([order.get(label, -1) for label in labels.astype(common).tolist()])
    others = labels[numbers < 0]
    if others.size:
        raise ValueError(
            f"new data must have labels that the fit has in all modes but that of the samples; {others.size} of those "
            f"of {fitted.names[mode]!r} differ, such as {others[0]}. Leave these rows out"
        )
    return numbers[codes], known


def _filled(coords: np.ndarray, entries: np.ndarray, shape: tuple[int, ...], absent: str) -> np.ndarray | SparseTensor:
    """Return an array if many combinations are listed, and a list if few are; NaN are missing in both."""
    known = ~np.isnan(entries)
    if entries.size < LISTED * math.prod(shape) and (absent == "missing" or known.all()):
        return SparseTensor(coords[:, known], entries[known], shape, absent=absent)
    if absent == "zero":
        return zeros_and(coords, entries, shape)
    whole = np.full(shape, np.nan)
    whole[tuple(coords)] = entries
    return whole


def zeros_and(coords: np.ndarray, entries: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    """Return an array with these entries, added up where coordinates repeat, and zeros elsewhere.

    It holds missing entries, as NaN, which a `SparseTensor` with zeros elsewhere cannot.
    """
    if math.prod(shape) > LARGEST:
        raise ValueError(
            f"tensor must have at most {LARGEST} entries if some are missing and those that are not listed are zero; "
            f"one of shape {tuple(shape)} has {math.prod(shape):,}. Leave missing entries out, which makes them zero"
        )
    whole = np.zeros(shape)
    np.add.at(whole, tuple(coords), entries)
    return whole


def _labels_at(labels: Labels, coords: np.ndarray) -> str:
    """Return the labels of an entry."""
    return ", ".join(f"{name} {labels.index(mode, 0)[coords[mode]]}" for mode, name in enumerate(labels.names))


def _refuse_infinite(entries: np.ndarray, coords: np.ndarray, labels: Labels) -> None:
    infinite = np.flatnonzero(np.isinf(entries))
    if infinite.size:
        raise ValueError(
            f"tensor must be finite; {infinite.size} of {entries.size} values are infinite, the first at "
            f"{_labels_at(labels, coords[:, infinite[0]])}. Leave a cell empty if the value is missing"
        )


def _refuse_duplicates(coords: np.ndarray, labels: Labels) -> None:
    shape = tuple(len(labels.index(mode, 0)) for mode in range(len(coords)))
    flat = np.ravel_multi_index(tuple(coords), shape) if math.prod(shape) < 2**62 else coords
    _, first, counts = np.unique(flat, axis=-1, return_index=True, return_counts=True)
    if np.all(counts == 1):
        return
    where = _labels_at(labels, coords[:, int(first[np.argmax(counts)])])
    raise ValueError(
        f"a table must have one value for each combination of labels; {int(np.sum(counts > 1))} have several, as "
        f"{where} has {int(np.max(counts))}. Average or add them first, as with groupby"
    )


def _refuse_pivoted(table: Any, columns: dict[Any, Any]) -> None:
    """Raise if columns hold measured values rather than labels."""
    measured = [name for name, column in columns.items() if _is_measured(values_of(column))]
    if len(measured) >= 2:
        index = [name for name in getattr(getattr(table, "index", None), "names", ()) if name is not None]
        others = [*index, *(name for name in columns if name not in measured)]
        long = f"table{'.reset_index()' if index else ''}.melt(id_vars={others})"
        raise ValueError(
            f"a table must have one row for each entry of the tensor, with a column of labels for each mode and one of "
            f"values; this one seems to be pivoted, with values in the columns {measured[0]}, {measured[1]}"
            f"{' and others' if len(measured) > 2 else ''}. Bring it to long form first, as with {long}"
        )


def _is_measured(column: np.ndarray) -> bool:
    """Return whether numbers have fractions and hardly ever occur twice, as measurements do and labels do not."""
    if column.dtype.kind != "f":
        return False
    known = column[np.isfinite(column)]
    return known.size > 1 and bool(np.any(known % 1 != 0)) and 2 * np.unique(known).size > known.size


def _refuse_others(fitted: Labels, given: Labels, mode: int | None) -> None:
    name = fitted.difference(given, -1 if mode is None else mode)
    if name is None:
        return
    where = "all modes" if mode is None else "all modes but that of the samples"
    at = fitted.names.index(name)
    ours, theirs = fitted.values[at], given.values[at]
    if given.names[at] != name:
        how = f"mode {at} is {name!r} in the fit, and {given.names[at]!r} here"
    else:
        how = f"those of {name!r} differ: {_first_difference(ours, theirs)}"  # type: ignore[arg-type]
    raise ValueError(
        f"new data must have the labels of the fit, in their order, in {where}; {how}. Reindex by fit.labels"
    )


def _first_difference(ours: np.ndarray, theirs: np.ndarray) -> str:
    if ours.size != theirs.size:
        return f"there are {ours.size} in the fit, and {theirs.size} here"
    at = next((at for at in range(ours.size) if str(ours[at]) != str(theirs[at])), 0)
    return f"at index {at} the fit has {ours[at]}, and this has {theirs[at]}"
