"""Columns of votes and of known classes, from the forms in which users keep them.

Votes are a data frame of any library that narwhals supports, a mapping or a tuple of three columns, or a matrix of
tasks and workers. Known classes are a mapping, a series, a data frame, a tuple of two columns, or one class for each
row of a matrix of votes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from codiag._checks import as_number
from codiag.labels import as_vector

VOTE_COLUMNS = {"task": ("task",), "worker": ("worker", "judge"), "label": ("label",)}
"""Names of the columns of votes."""
GOLD_COLUMNS = {"task": ("task",), "label": ("label", "truth")}
"""Names of the columns of known classes."""
KNOWN_CLASS_FORMS = (
    "Pass a mapping from tasks to classes, a pandas Series, or a data frame with the columns task and label"
)
VOTE_FORMS = (
    "votes must be columns task, worker (or judge) and label in a data frame or dict, or a matrix of tasks x workers"
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

    frame = nw.from_native(data, pass_through=True)
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
        shown = ", ".join(map(str, list(names)[:SHOWN]))
        raise ValueError(f"{argument} must have the columns {listed}; got {shown}. Rename them")
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
    """Return a matrix with unchanged entries."""
    if isinstance(votes, np.ndarray):
        return votes
    try:
        matrix = np.array(votes, dtype=object)
        return matrix if len({type(entry) for entry in matrix.ravel()}) > 1 else np.asarray(votes)
    except ValueError as error:  # rows of unequal length
        raise ValueError(f"{VOTE_FORMS}; got {type(votes).__name__}: {error}") from None


def is_missing(column: np.ndarray, marker: Any = None) -> np.ndarray:
    """Return which entries are None, NaN, NaT, the NA of pandas, or the marker."""
    if column.dtype != object:
        missing = np.asarray(column != column)  # NaN and NaT
    else:
        kinds = ("NAType", "NaTType")
        missing = np.array([e is None or type(e).__name__ in kinds or bool(e != e) for e in column], dtype=bool)
    if marker is not None and marker == marker:
        missing |= np.array([entry == marker for entry in column.tolist()], dtype=bool)
    return missing


def known_class_columns(known_class: Any) -> tuple[list[Any] | None, list[Any]]:
    """Return tasks and their classes; no tasks if there is one class for each row of a matrix of votes."""
    if isinstance(known_class, tuple) and len(known_class) == 2:
        return _entries_of(known_class[0]), _entries_of(known_class[1])
    if isinstance(known_class, list) or (isinstance(known_class, np.ndarray) and known_class.ndim > 0):
        return None, _entries_of(known_class)
    if isinstance(known_class, Mapping):
        return list(known_class), list(known_class.values())
    table = as_frame(known_class)
    if table is not None:
        task, label = named_columns(table, table.columns, GOLD_COLUMNS, "y")
        return task.tolist(), label.tolist()
    if not hasattr(known_class, "to_numpy"):
        raise TypeError(f"y must contain the classes of tasks; got {type(known_class).__name__}. {KNOWN_CLASS_FORMS}")
    return _entries_of(known_class.index) if hasattr(known_class, "index") else None, _entries_of(known_class)


def _entries_of(column: Any) -> list[Any]:
    return list(as_column(column).tolist())


def set_aside_invalid(
    votes: Any, *, least_share: float = 0.001, always_valid: Iterable[Any] = (), missing: Any = -1
) -> tuple[Any, dict[Any, int]]:
    """Set votes aside whose labels hardly occur, such as ``"ERROR"`` or ``"I cannot answer"`` among grades.

    As classes of their own they would only add noise: their confusion matrices cannot be estimated. If such labels have
    more than half of all votes, they are no mistakes, and none is set aside.

    Parameters
    ----------
    votes : data frame, mapping, tuple of three columns or array of shape (n_tasks, n_workers)
        Votes, as for `codiag.models.DawidSkene.fit`.
    least_share : float
        Share of all votes below which a label is invalid; 0 if all are valid.
    always_valid : iterable
        Labels that are valid however few votes they have, such as those of known classes.
    missing : object
        Marker of a cell without a vote in a matrix, besides NaN and None.

    Returns
    -------
    votes : as given
        The valid votes, in the form in which votes came: a mapping and a tuple with their three columns, a matrix with
        None for invalid votes.
    invalid : dict
        The number of votes of each invalid label, the most frequent first.

    See Also
    --------
    codiag.models.DawidSkene : Takes the votes.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.io import set_aside_invalid
    >>> task, judge = np.divmod(np.arange(3000), 3)
    >>> verdict = np.where(task % 2 == 0, "good", "poor").astype(object)
    >>> verdict[7] = "ERROR: timeout"
    >>> votes, invalid = set_aside_invalid((task, judge, verdict))
    >>> votes[2].size, invalid
    (2999, {'ERROR: timeout': 1})
    """
    as_number("least_share", least_share, zero=True)
    if isinstance(always_valid, str) or not isinstance(always_valid, Iterable):
        raise TypeError(f"always_valid must be a collection of labels, as [{always_valid!r}]; got {always_valid!r}")
    columns, _, shape = vote_columns(votes, missing)
    absent = is_missing(columns[2])
    labels = [None if gone else label for label, gone in zip(columns[2].tolist(), absent, strict=True)]
    kept = [None, *always_valid]  # the model refuses missing labels by their rows
    invalid = {
        label: count
        for label, count in Counter(labels).most_common()
        if count < least_share * len(labels) and label not in kept
    }
    # if more labels are as rare, they are measurements or texts rather than mistakes
    if sum(invalid.values()) > 0.5 * len(labels):
        invalid = {}
    return _selected(votes, columns, shape, np.array([label not in invalid for label in labels])), invalid


def _selected(votes: Any, columns: Any, shape: tuple[int, ...] | None, is_valid: np.ndarray) -> Any:
    """Return the votes that are valid, in the form of all votes."""
    frame = as_frame(votes)
    if frame is not None:
        return frame.filter(is_valid.tolist()).to_native()
    if shape is not None:
        matrix = np.full(shape, None, dtype=object)
        task, worker, label = (column[is_valid] for column in columns)
        matrix[task, worker] = label
        return matrix
    valid = [column[is_valid] for column in columns]
    return dict(zip(VOTE_COLUMNS, valid, strict=True)) if isinstance(votes, Mapping) else tuple(valid)
