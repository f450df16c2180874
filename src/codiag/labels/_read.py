"""Tensors with labels: from xarray, pandas Series with several index levels, and data frames of any library."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from codiag.labels._labels import Labelled, Labels, as_labels
from codiag.tensors import SparseTensor
from codiag.tensors.entries import LISTED_SHARE


def labelled_tensor(table: Any, *, modes: Any = None, value: Any = None, absent: str = "missing") -> Labelled:
    """Turn a long table, a row for each entry, into a tensor with labels.

    Parameters
    ----------
    table : data frame, or pandas Series whose index has a level for each mode
        A frame of any library that narwhals knows: pandas, polars, pyarrow, dask, DuckDB and others, with one value
        for each combination of labels. Labels that are numbers or dates are sorted, and categories are in their order.
        Other text is in the order of its first appearance, as Jan, Feb, Mar.
    modes : sequence of str, optional
        The columns with labels, one for each mode; by default all but that of the values.
    value : str, optional
        The column with the entries; by default the last.
    absent : {"missing", "zero"}
        The value of combinations of labels that are not listed: not observed, as in measurements and ratings, or zero,
        as in counts. Entries whose value is NaN, or an empty cell, are missing in either case.

    Returns
    -------
    Labelled
        A named tuple ``(tensor, labels)``, which `codiag.factorize` takes as it is: an array, or a
        `codiag.tensors.SparseTensor` if few combinations are listed; and the `Labels` of its modes.

    See Also
    --------
    codiag.factorize : Takes the result, or the table.
    codiag.tensors.SparseTensor : Entries by their coordinates, without labels.

    Examples
    --------
    >>> import codiag
    >>> from codiag.io import labelled_tensor
    >>> import pandas as pd
    >>> dishes = {"rice": 2.0, "fish soup": 4.0}
    >>> rows = [(person, dish, day, dishes[dish]) for person in "ab" for dish in dishes for day in (1, 2)]
    >>> table = pd.DataFrame(rows, columns=["person", "dish", "day", "rating"])
    >>> tensor, labels = labelled_tensor(table.iloc[:-1])
    >>> tensor.shape, labels.names, labels.values[1].tolist()
    ((2, 2, 2), ('person', 'dish', 'day'), ['rice', 'fish soup'])
    >>> fit = codiag.factorize(table, 1, rng=0)
    >>> fit.to_xarray()["factor_dish"].to_pandas()[0].round(2).to_dict()
    {'rice': 0.45, 'fish soup': 0.89}
    """
    frame = _as_long(table) if modes is None else _as_frame(table)
    if frame is None:
        raise TypeError(f"table must be a data frame, or a Series with several levels; got {type(table).__name__}")
    return _of_frame(frame, modes, value, absent)


def read_labelled(raw: Any, absent: str = "missing") -> Labelled:
    """Return a tensor with its labels, which an xarray.DataArray, a pandas Series or a data frame has.

    Combinations that a table does not list are missing, or zeros.
    """
    if isinstance(raw, Labelled):
        return raw
    if is_xarray(raw):
        values = [np.asarray(raw.coords[name]) if name in raw.coords else None for name in raw.dims]
        attributes = [getattr(raw.coords[name], "attrs", {}) if name in raw.coords else {} for name in raw.dims]
        return Labelled(raw.data, Labels(raw.dims, tuple(values), tuple(attributes)))
    frame = _as_long(raw)
    return Labelled(raw, None) if frame is None else _of_frame(frame, None, None, absent)


def read_like(raw: Any, fitted: Labels | None, mode: int | None = None, absent: str = "missing") -> Labelled:
    """Return new data with the modes of a fit, in their order and with their labels; refuse data with other labels.

    Modes are matched by their names. Rows of a table are matched by their labels, and combinations that are not listed
    are missing, or zeros. Labels of the samples, along `mode`, may be new; if all are those of the fit, they are in its
    order. Data without labels is returned as it is.
    """
    if fitted is None:
        return read_labelled(raw, absent)
    frame = None if isinstance(raw, Labelled) or is_xarray(raw) else _as_long(raw)
    if frame is not None:
        named = {str(name): name for name in frame.columns}
        values = [name for name in frame.columns if str(name) not in fitted.names]
        if values and set(fitted.names) <= named.keys():
            columns = [frame.get_column(named[name]) for name in fitted.names]
            entries = _entries(values[-1], frame.get_column(values[-1]))
            return _of_columns(fitted.names, columns, entries, absent, fitted, mode)
    if is_xarray(raw) and set(map(str, raw.dims)) == set(fitted.names):
        raw = raw.transpose(*sorted(raw.dims, key=lambda name: fitted.names.index(str(name))))
    given = read_labelled(raw, absent)
    if given.labels is not None and len(given.labels.names) == len(fitted.names):
        name = fitted.difference(given.labels, -1 if mode is None else mode)
        if name is not None:
            raise ValueError(
                "new data must have the labels of the fit, in their order, in all modes but that of the samples; those "
                f"of {name!r} differ. Reindex by fit.problem.labels"
            )
    return given


def is_xarray(raw: Any) -> bool:
    return all(hasattr(raw, name) for name in ("dims", "coords", "data"))


def is_table(raw: Any) -> bool:
    """Return whether rows of something given are entries of a tensor, so that some may not be listed."""
    return not isinstance(raw, Labelled) and not is_xarray(raw) and _as_long(raw) is not None


def _as_long(raw: Any) -> Any:
    """Return a data frame with a column for each mode and one of values; None if `raw` is no table.

    The levels of a pandas index become columns if `raw` is a Series, or a frame of one column with several levels.
    """
    index: Any = getattr(raw, "index", None)
    if not hasattr(index, "get_level_values") or (raw.ndim == 2 and (index.nlevels == 1 or raw.shape[1] != 1)):
        return _as_frame(raw)
    series = raw if raw.ndim == 1 else raw.iloc[:, 0]
    names = [f"mode_{level}" if name is None else name for level, name in enumerate(index.names)]
    return _as_frame(series.rename_axis(names).reset_index(name="value" if series.name is None else series.name))


def _as_frame(raw: Any) -> Any:
    """Return a data frame as one of narwhals, collected if it is lazy; None if `raw` is no data frame."""
    if isinstance(raw, np.ndarray):  # without loading narwhals
        return None
    import narwhals.stable.v1 as nw

    try:
        frame = nw.from_native(raw, pass_through=True)
        frame = frame.collect() if isinstance(frame, nw.LazyFrame) else frame
        return frame if isinstance(frame, nw.DataFrame) and frame.columns is not None else None
    except ValueError as error:  # two columns of one name
        raise ValueError(f"a table must have columns of different names: {' '.join(str(error).split())}") from error


def _of_frame(frame: Any, modes: Any, value: Any, absent: str) -> Labelled:
    names = list(frame.columns)
    value = names[-1] if value is None and names else value
    modes = [name for name in names if name != value] if modes is None else list(modes)
    unknown = [name for name in (*modes, value) if name not in names]
    if unknown:
        raise ValueError(f"modes and value must be columns of the table, {names}; {unknown[0]!r} is none of them")
    if len(modes) < 3 or len(set(modes)) < len(modes):
        raise ValueError(
            f"modes must be three columns or more, by different names; got {list(map(str, modes))}. A table has a "
            "column of labels for each mode, and the values in its last column, or in `value`; one with columns of "
            "values becomes such a table by melt"
        )
    entries = _entries(value, frame.get_column(value))
    labelled = _of_columns(modes, [frame.get_column(name) for name in modes], entries, absent)
    shape = labelled.tensor.shape
    n_needed = sum(shape) - len(shape)
    if absent == "missing" and entries.size <= n_needed:
        raise ValueError(
            f"a table must list more than {n_needed} entries to determine one component of a tensor of shape {shape}; "
            f"got {entries.size}. Modes are {', '.join(map(str, modes))}, and values {value}: name others by `modes` "
            "and `value`, or bring a wide table to long form, as with melt"
        )
    return labelled


def _of_columns(
    names: Sequence[Any],
    columns: Sequence[Any],
    entries: np.ndarray,
    absent: str,
    fitted: Labels | None = None,
    mode: int | None = None,
) -> Labelled:
    """Return the tensor of columns of labels and values; labels are those of a fit, if one is given."""
    if absent not in ("missing", "zero"):
        raise ValueError(f"absent must be 'missing' or 'zero', what combinations not listed are; got {absent!r}")
    coded = [_coded(name, column) for name, column in zip(names, columns, strict=True)]
    if fitted is not None:
        coded = [_matched(fitted, at, *pair, is_sample=at == mode) for at, pair in enumerate(coded)]
    coords, shape = np.stack([codes for codes, _ in coded]), tuple(len(values) for _, values in coded)
    labels = Labels(tuple(names), tuple(values for _, values in coded))
    _refuse_duplicates(coords, labels)
    return Labelled(_filled(coords, entries, shape, absent), labels)


def _values(column: Any) -> np.ndarray:
    """Return a column as an array; missing cells are None among objects, NaN among numbers, NaT among times."""
    values: np.ndarray = column.to_numpy()
    if values.dtype.kind == "O":
        values = values.copy()
        values[column.is_null().to_numpy()] = None
    return values


def _entries(name: Any, column: Any) -> np.ndarray:
    """Return a column of numbers; raise and name the first value that is none."""
    entries = _values(column)
    if not entries.size:
        raise ValueError("tensor must not be empty; the table has no rows")
    if entries.dtype.kind in "biuf":
        return entries.astype(np.float64)
    cells = entries.tolist()
    bad = [row for row, cell in enumerate(cells) if cell is not None and not isinstance(cell, int | float | Decimal)]
    if bad:
        raise TypeError(
            f"value must be a column of numbers; {len(bad)} of {len(cells)} in {str(name)!r} are not, the first in row "
            f"{bad[0]}: {cells[bad[0]]!r:.60}. Name another column by `value`, or leave a cell empty if it is missing"
        )
    return np.array([np.nan if cell is None else cell for cell in cells], dtype=np.float64)


def _coded(name: Any, column: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the number of every row's label, and the labels.

    Numbers and dates are sorted; text is in the order of its categories if it has any, else of its first rows.
    """
    values = _values(column)
    n_missing = max(int(column.is_null().sum()), int(np.sum(values != values)))  # NaN are not null in every library
    if n_missing:
        raise ValueError(
            f"labels must not be missing; {n_missing} in column {str(name)!r} are. Fill them (ffill) or drop these rows"
        )
    labels, first, codes = np.unique(as_labels(values), return_index=True, return_inverse=True)
    if (categories := _categories(column)) is not None:
        place = {label: rank for rank, label in enumerate(as_labels(categories).tolist())}
        first = np.array([place[label] for label in labels.tolist()])
    elif labels.dtype.kind != "U":
        return codes, labels
    order = np.argsort(first)
    return np.argsort(order)[codes], labels[order]


def _categories(column: Any) -> list[Any] | None:
    """Return the categories of a column in their order; None if it has none, or if polars sorts them as text."""
    import narwhals.stable.v1 as nw

    if column.dtype not in (nw.Categorical, nw.Enum):
        return None
    if column.dtype == nw.Categorical and column.implementation.is_polars():
        return None
    categories: list[Any] = column.cat.get_categories().to_list()
    return categories


def _matched(
    fitted: Labels, mode: int, codes: np.ndarray, labels: np.ndarray, *, is_sample: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of every row's label among the labels of a fit, and these.

    Labels of samples may be others: they are in the order of the fit if they are all of its labels, else in their own.
    """
    known = fitted.values[mode]
    if known is None:
        return codes, labels
    comparable = labels.astype(known.dtype) if known.dtype.kind == labels.dtype.kind == "M" else labels
    order = {label: number for number, label in enumerate(known.tolist())}
    numbers = np.array([order.get(label, -1) for label in comparable.tolist()])
    others = labels[numbers < 0]
    if is_sample and (others.size or labels.size < known.size):
        return codes, labels
    if others.size:
        raise ValueError(
            f"new data must have labels that the fit has in all modes but that of the samples; {others.size} of those "
            f"of {fitted.names[mode]!r} differ, such as {others[0]}. Leave these rows out"
        )
    return numbers[codes], known


def _filled(coords: np.ndarray, entries: np.ndarray, shape: tuple[int, ...], absent: str) -> np.ndarray | SparseTensor:
    """Return an array if many combinations are listed, and a list if few are; NaN are missing in both."""
    known = ~np.isnan(entries)
    if entries.size < LISTED_SHARE * math.prod(shape) and (absent == "missing" or known.all()):
        return SparseTensor(coords[:, known], entries[known], shape, absent=absent)
    whole = np.full(shape, np.nan if absent == "missing" else 0.0)
    whole[tuple(coords)] = entries
    return whole


def _refuse_duplicates(coords: np.ndarray, labels: Labels) -> None:
    shape = tuple(len(labels.index(mode, 0)) for mode in range(len(coords)))
    flat = np.ravel_multi_index(tuple(coords), shape) if math.prod(shape) < 2**62 else coords
    _, first, counts = np.unique(flat, axis=-1, return_index=True, return_counts=True)
    if np.all(counts == 1):
        return
    place = coords[:, int(first[np.argmax(counts)])]
    where = ", ".join(f"{name} {labels.index(mode, 0)[place[mode]]}" for mode, name in enumerate(labels.names))
    raise ValueError(
        f"a table must have one value for each combination of labels; {int(np.sum(counts > 1))} have several, as "
        f"{where} has {int(np.max(counts))}. Average or add them first, as with groupby"
    )
