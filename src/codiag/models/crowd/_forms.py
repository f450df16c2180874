"""Columns of votes and of known classes, from the forms in which users keep them.

Votes are a data frame of any library that narwhals supports, a mapping or a tuple of three columns, or a matrix of
tasks and workers. Known classes are a mapping, a series, a data frame, a tuple of two columns, or one class for each
row of a matrix of votes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from codiag.labels import as_vector

VOTE_COLUMNS = {"task": ("task",), "worker": ("worker", "judge"), "label": ("label",)}
"""Names of the columns of votes."""
GOLD_COLUMNS = {"task": ("task",), "label": ("label", "truth")}
"""Names of the columns of known classes."""
GOLD_FORMS = (
    "Pass a mapping from tasks to classes, a pandas Series with the tasks as its index, a data frame with the columns "
    "task and label, or a tuple of these two columns"
)
VOTE_FORMS = (
    "votes must be a data frame or a dict with the columns task, worker (or judge) and label, a tuple of three such "
    "columns, or a matrix of tasks x workers"
)
SHOWN = 8
"""Largest number of names in an error message."""


class VoteColumns(NamedTuple):
    """The columns task, worker and label, the library of their data frame, and the shape of a matrix."""

    columns: Sequence[np.ndarray]
    library: str | None = None
    shape: tuple[int, ...] | None = None


def vote_columns(votes: Any, missing: Any = -1) -> VoteColumns:
    """Return the columns of votes in any form; `missing` marks cells without a vote in a matrix."""
    if isinstance(missing, list | tuple | np.ndarray):
        raise TypeError(f"missing must be one marker; got {missing!r}. Replace the others with it")
    if sparse.issparse(votes):
        raise TypeError(
            "votes must not be a sparse matrix, in which zero is no vote; pass a tuple of task, worker, label"
        )
    frame = as_frame(votes)
    if frame is not None:
        import narwhals as nw

        library = nw.get_native_namespace(frame).__name__
        return VoteColumns(named_columns(frame, frame.columns, VOTE_COLUMNS, "votes"), library)
    if isinstance(votes, Mapping):
        return VoteColumns(named_columns(votes, list(votes), VOTE_COLUMNS, "votes"))
    if isinstance(votes, tuple) and len(votes) == 3:
        return VoteColumns(of_one_length([as_column(column) for column in votes]))
    matrix = _as_matrix(votes)
    if matrix.ndim != 2:
        raise ValueError(f"{VOTE_FORMS}; got {type(votes).__name__} of shape {matrix.shape}")
    present = ~is_missing(matrix.ravel(), missing).reshape(matrix.shape)
    return VoteColumns([*np.nonzero(present), matrix[present]], shape=matrix.shape)


def as_frame(data: Any) -> Any:
    """Return a data frame, with the interface of narwhals and in memory; None for other data."""
    if isinstance(data, Mapping | Sequence | np.ndarray):
        return None
    import narwhals as nw

    try:
        frame = nw.from_native(data, pass_through=True)
    except ValueError:  # of narwhals, about columns of the same name
        raise ValueError(f"votes must have columns of different names; got {_listed(data.columns)}") from None
    if isinstance(frame, nw.LazyFrame):
        return frame.collect()
    return frame if isinstance(frame, nw.DataFrame) else None


def named_columns(
    table: Any, names: Iterable[Any], wanted: Mapping[str, Sequence[str]], argument: str
) -> list[np.ndarray]:
    """Return the wanted columns of a table, in this order; each may have one of several names."""
    given = {str(name).strip().lower(): name for name in names}
    found = [next((given[word] for word in words if word in given), None) for words in wanted.values()]
    if None in found:
        listed = ", ".join(" or ".join(words) for words in wanted.values())
        raise ValueError(f"{argument} must have the columns {listed}; got {_listed(names)}. Rename them")
    return of_one_length([as_column(table[name]) for name in found])


def of_one_length(columns: list[np.ndarray]) -> list[np.ndarray]:
    """Return the columns; raise if they are not of one length."""
    if len({column.size for column in columns}) > 1:
        raise ValueError(f"columns must be of one length; got {[column.size for column in columns]}")
    return columns


def as_column(values: Any) -> np.ndarray:
    """Return a vector with unchanged entries: NumPy would turn mixed lists into strings, and tuples into rows."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise ValueError(f"columns must be sequences of values; got {values!r:.40}")
    if not hasattr(values, "__array__"):
        return as_vector(list(values))
    column = np.asarray(values.to_numpy() if hasattr(values, "to_numpy") else values)
    if column.size != max(column.shape, default=0):
        raise ValueError(f"columns must be vectors; got one of shape {column.shape}")
    return column.ravel()


def _as_matrix(votes: Any) -> np.ndarray:
    """Return a matrix with unchanged entries, and None for those that are masked."""
    if isinstance(votes, np.ma.MaskedArray):
        entries = np.ma.getdata(votes).astype(object)
        entries[np.ma.getmaskarray(votes)] = None
        return entries
    if isinstance(votes, np.ndarray):
        return votes
    try:
        matrix = np.array(votes, dtype=object)
        return matrix if len({type(entry) for entry in matrix.ravel()}) > 1 else np.asarray(votes)
    except ValueError as error:  # rows of unequal length
        raise ValueError(f"{VOTE_FORMS}; got {type(votes).__name__}: {error}") from None


def is_missing(column: np.ndarray, marker: Any = None) -> np.ndarray:
    """Return which entries are None, NaN, NaT, the NA of pandas, or the marker."""
    if column.dtype.kind == "f":
        missing = np.isnan(column)
    elif column.dtype.kind in "mM":
        missing = np.isnat(column)
    elif column.dtype != object:
        missing = np.zeros(column.shape, dtype=bool)
    else:
        kinds = ("NAType", "NaTType")
        missing = np.array([e is None or type(e).__name__ in kinds or bool(e != e) for e in column], dtype=bool)
    if marker is not None and marker == marker:
        missing |= np.array([entry == marker for entry in column.tolist()], dtype=bool)
    return missing


def gold_columns(gold: Any) -> tuple[list[Any] | None, list[Any]]:
    """Return tasks and their classes; no tasks if there is one class for each row of a matrix of votes."""
    if isinstance(gold, tuple) and len(gold) == 2:
        return _entries_of(gold[0]), _entries_of(gold[1])
    if isinstance(gold, list) or (isinstance(gold, np.ndarray) and gold.ndim > 0):
        return None, _entries_of(gold)
    if isinstance(gold, Mapping):
        if {"task", "label"} != set(gold):
            return list(gold), list(gold.values())
        task, label = named_columns(gold, list(gold), GOLD_COLUMNS, "y")
    else:
        table = as_frame(gold)
        if table is None:
            return _series_entries(gold)
        task, label = named_columns(table, table.columns, GOLD_COLUMNS, "y")
    return task.tolist(), label.tolist()


def _series_entries(gold: Any) -> tuple[list[Any] | None, list[Any]]:
    """Return the index of a series, or None if it has none, and its entries."""
    import narwhals as nw

    series = nw.from_native(gold, series_only=True, pass_through=True)
    if not isinstance(series, nw.Series):
        raise TypeError(f"y must contain the classes of tasks; got {type(gold).__name__}. {GOLD_FORMS}")
    index = nw.maybe_get_index(series)
    return None if index is None else _entries_of(index), _entries_of(series)


def _entries_of(column: Any) -> list[Any]:
    return list(as_column(column).tolist())


def _listed(names: Iterable[Any]) -> str:
    texts = [str(name) for name in names]
    return ", ".join(texts[:SHOWN]) + (", ..." if len(texts) > SHOWN else "")
