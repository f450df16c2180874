"""Columns of votes and of known classes, from the forms in which users keep them.

Votes are a data frame of any library that narwhals supports, a mapping or a tuple of three columns, or a matrix of
tasks and workers. Known classes are a mapping, a series, a data frame, a tuple of two columns, or one class for each
row of a matrix of votes.

An array or a list may be a matrix or three columns. All entries of a matrix are labels, so that its lines share most of
their values. The columns task, worker and label seldom share values, and few pairs of task and worker occur twice. Data
that fit only one of the two are read as such if they were passed as such, and refused otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from codiag.labels import as_vector
from codiag.parts import is_dask

VOTE_COLUMNS = {
    "task": ("task", "item", "question", "task_id", "item_id", "question_id", "sample_id", "id"),
    "worker": ("worker", "rater", "annotator", "performer", "judge", "judge_model", "model"),
    "label": ("label", "rating", "vote", "verdict", "judgment", "grade", "choice", "answer", "response", "score"),
}
"""Names that the columns of votes may have; if a table has several, the first counts."""
TEXTS = ("answer", "response")
"""Names of columns that hold votes, or the texts that votes are about if there is also a score."""
GOLD_COLUMNS = {"task": VOTE_COLUMNS["task"], "label": (*VOTE_COLUMNS["label"], "truth", "true_label", "gold", "class")}
"""Names that the columns of known classes may have."""
GOLD_FORMS = (
    "Pass a mapping from tasks to classes, a pandas Series with the tasks as its index, a data frame with the columns "
    "task and label, or a tuple of these two columns"
)
VOTE_FORMS = (
    "pass the tuple (task, worker, label), or a dict or data frame with these columns; a matrix of tasks x workers is "
    "passed as an array"
)
RESHAPING = {
    "pandas": "frame.melt(id_vars={!r}, var_name='worker', value_name='label').dropna()",
    "polars": "frame.unpivot(index={!r}, variable_name='worker', value_name='label').drop_nulls()",
}
"""By library: the call that turns a table with a row for each task and a column for each worker into votes."""
FEW_NUMBERS = 5
"""Up to this number of different numeric values, columns of tasks or workers may be labels as well (by experience)."""
SHOWN = 8
"""Largest number of names in an error message."""


class NamedVotes(dict[str, np.ndarray]):
    """The columns task, worker and label, with the names that they have in the user's table."""

    def __init__(self, columns: Mapping[str, np.ndarray], names: Sequence[str] = tuple(VOTE_COLUMNS)) -> None:
        super().__init__(columns)
        self.names = tuple(names)


class VoteColumns(NamedTuple):
    """The columns task, worker and label, the library of their data frame, the shape of a matrix, and their names."""

    columns: Sequence[np.ndarray]
    library: str | None = None
    shape: tuple[int, ...] | None = None
    names: tuple[str, ...] = tuple(VOTE_COLUMNS)


def vote_columns(votes: Any, missing: Any = -1) -> VoteColumns:
    """Return the columns of votes in any form; `missing` marks cells without a vote in a matrix."""
    if isinstance(missing, list | tuple | np.ndarray):
        raise TypeError(f"missing must be one marker; got {missing!r}. Replace the others with it")
    frame = as_frame(votes)
    if frame is not None:
        import narwhals as nw

        library = nw.get_native_namespace(frame).__name__
        columns, names = _named_columns(frame, frame.columns, library)
        return VoteColumns(columns, library, names=names)
    if isinstance(votes, Mapping):
        columns, names = _named_columns(votes, list(votes))
        return VoteColumns(columns, names=votes.names if isinstance(votes, NamedVotes) else names)
    if not is_matrix(votes, missing):
        return VoteColumns(_three_columns(votes))
    matrix = _as_matrix(votes)
    present = ~is_missing(matrix.ravel(), missing).reshape(matrix.shape)
    return VoteColumns([*np.nonzero(present), matrix[present]], shape=matrix.shape)


def is_table(data: Any) -> bool:
    """Return whether data is a data frame, a mapping, or a tuple of three columns."""
    if isinstance(data, tuple):
        return len(data) == 3 and not any(is_table(column) or np.isscalar(column) for column in data)
    return isinstance(data, Mapping) or _wrapped(data) is not None


def as_frame(data: Any) -> Any:
    """Return a data frame, with the interface of narwhals and in memory; None for other data."""
    frame = _wrapped(data)
    return frame.collect() if hasattr(frame, "collect") else frame


def _wrapped(data: Any) -> Any:
    if isinstance(data, Mapping | Sequence | np.ndarray) or is_dask(data):
        return None
    import narwhals as nw

    try:
        frame = nw.from_native(data, pass_through=True)
    except ValueError:  # of narwhals, about columns of the same name
        raise ValueError(f"votes must have columns of different names; got {_listed(data.columns)}") from None
    return frame if isinstance(frame, nw.DataFrame | nw.LazyFrame) else None


def find_columns(names: Iterable[Any], wanted: Mapping[str, Sequence[str]]) -> dict[str, int] | None:
    """Return the position of each wanted column among names of columns; None if one is not there."""
    given = [str(name).strip().lower() for name in names]
    places = {
        column: next((given.index(word) for word in words if word in given), -1) for column, words in wanted.items()
    }
    return places if min(places.values()) >= 0 else None


def refuse_scored_texts(names: Sequence[Any], place: int) -> None:
    """Raise if the column of votes at this place may hold texts, whose scores are the votes."""
    given = [str(name).strip().lower() for name in names]
    if given[place] in TEXTS and "score" in given:
        raise ValueError(
            f"votes must be in one column, and both {given[place]} and score may have them; call the right one label, "
            "or name it by `label` if it is in a file"
        )


def wanted_columns() -> str:
    """Return a list of the names that the columns of votes may have."""
    return "; ".join(f"{name} (or {', '.join(words[1:])})" for name, words in VOTE_COLUMNS.items())


def _named_columns(
    table: Any, names: list[Any], library: str | None = None
) -> tuple[list[np.ndarray], tuple[str, ...]]:
    places = find_columns(names, VOTE_COLUMNS)
    if places is None:
        way_out = "Name them so; a matrix of tasks x workers is passed as an array"
        if library in RESHAPING:
            first = str(names[0]) if names else "task"
            way_out = (
                "Rename others by frame.rename; if a row is a task and the other columns are workers, take "
                f"{RESHAPING[library].format(first)} and rename {first!r} to 'task'"
            )
        raise ValueError(f"votes must have the columns {wanted_columns()}; got {_listed(names)}. {way_out}")
    if len({str(name).strip().lower() for name in names}) < len(names):
        raise ValueError(f"votes must have columns of different names; got {_listed(names)}")
    refuse_scored_texts(names, places["label"])
    found = [names[place] for place in places.values()]
    return of_one_length([as_column(table[name]) for name in found]), tuple(map(str, found))


def _three_columns(votes: Any) -> list[np.ndarray]:
    if not isinstance(votes, list | tuple) or len(votes) != 3 or any(np.isscalar(column) for column in votes):
        raise ValueError(
            "votes must be a data frame with the columns task, worker and label, a tuple of three such columns, or a "
            f"matrix of tasks x workers; got {type(votes).__name__}. Files are read by codiag.io.read_votes"
        )
    return of_one_length([as_column(column) for column in votes])


def of_one_length(columns: list[np.ndarray], name: str = "task, worker and label") -> list[np.ndarray]:
    """Return the columns; raise if they are not of one length."""
    if len({column.size for column in columns}) > 1:
        raise ValueError(f"{name} must be of one length; got {[column.size for column in columns]}")
    return columns


def as_column(values: Any, name: str = "task, worker and label") -> np.ndarray:
    """Return a vector with unchanged entries: NumPy would turn mixed lists into strings, and tuples into rows."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise ValueError(f"{name} must be sequences of values; got {values!r:.40}")
    if not hasattr(values, "__array__"):
        return as_vector(list(values))
    column = np.asarray(values.to_numpy() if hasattr(values, "to_numpy") else values)
    if column.size != max(column.shape, default=0):
        raise ValueError(f"{name} must be vectors; got one of shape {column.shape}")
    return column.ravel()


def _as_matrix(votes: Any) -> np.ndarray:
    """Return a matrix with unchanged entries, and None for those that are masked."""
    if isinstance(votes, np.ma.MaskedArray):
        entries = np.ma.getdata(votes).astype(object)
        entries[np.ma.getmaskarray(votes)] = None
        return entries
    if isinstance(votes, np.ndarray):
        return votes
    matrix = np.array(votes, dtype=object)
    return matrix if len({type(entry) for entry in matrix.ravel()}) > 1 else np.asarray(votes)


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
    if isinstance(gold, list):
        return None, gold
    if isinstance(gold, np.ndarray) and gold.ndim > 0:
        if gold.shape[1:] not in ((), (1,)):
            raise ValueError(f"gold must be a vector; got an array of shape {gold.shape}. {GOLD_FORMS}")
        return None, gold.ravel().tolist()
    table = gold
    if not isinstance(gold, Mapping):
        table = as_frame(gold)
        if table is None:
            return _series_entries(gold)
    elif len(gold) != 2 or not all(isinstance(column, list | tuple | np.ndarray) for column in gold.values()):
        return list(gold), list(gold.values())
    names = list(table.keys() if table is gold else table.columns)
    places = find_columns(names, GOLD_COLUMNS)
    if places is None:
        raise ValueError(
            f"gold must have the columns task and {' or '.join(GOLD_COLUMNS['label'])}; got {names[:SHOWN]}"
        )
    tasks, labels = (_entries_of(table[names[place]]) for place in places.values())
    return tasks, labels


def _series_entries(gold: Any) -> tuple[list[Any] | None, list[Any]]:
    """Return the index of a series, or None if it has none, and its entries."""
    import narwhals as nw

    series = nw.from_native(gold, series_only=True, pass_through=True)
    if not isinstance(series, nw.Series):
        raise TypeError(f"gold must contain the classes of tasks; got {type(gold).__name__}. {GOLD_FORMS}")
    index = nw.maybe_get_index(series)
    return None if index is None else _entries_of(index), _entries_of(series)


def _entries_of(column: Any) -> list[Any]:
    return list(as_column(column, "tasks and labels of gold").tolist())


def is_matrix(votes: Any, missing: Any) -> bool:
    """Return whether votes are a matrix of tasks and workers rather than three columns; refuse ambiguous data.

    A tuple of three is three columns. A list of three is either, and is refused if it looks like both or neither.
    Everything else with two dimensions is a matrix, and is refused if it only looks like three columns.
    """
    if sparse.issparse(votes):
        raise TypeError(
            "votes must not be a sparse matrix, in which zero is no vote; pass a tuple of task, worker, label"
        )
    if isinstance(votes, tuple) and len(votes) == 3:
        return False
    try:
        shape = np.shape(votes)
    except ValueError:  # rows of unequal length
        return False
    if len(shape) != 2:
        return False
    if isinstance(votes, list) and len(votes) == 3:
        as_rows, as_columns = _may_be_rows(votes, missing), _may_be_columns(votes)
        if as_rows == as_columns:
            raise ValueError(
                f"votes must say what they are: a list of three may be task, worker and label of {shape[1]} votes, or "
                f"the votes of {shape[1]} workers on three tasks, and these look like "
                f"{'both' if as_rows else 'neither'}; {VOTE_FORMS}"
            )
        return as_rows
    for lines, way_out in _possible_columns(votes, shape):
        if _may_be_columns(lines) and not _may_be_rows(lines, missing):
            raise ValueError(
                "votes must be a tuple of three columns, not an array of them: an array is read as tasks x workers, "
                f"and this one of shape {shape} looks like task, worker and label; pass {way_out}, or if it is a "
                "matrix the columns it makes, (*np.indices(votes.shape).reshape(2, -1), votes.ravel())"
            )
    return True


def _possible_columns(votes: Any, shape: tuple[int, ...]) -> Iterable[tuple[list[Any], str]]:
    """Yield lines of a matrix that may be three columns, and the expression that passes them as such."""
    if shape[1] == 3:
        if isinstance(votes, np.ndarray):
            yield list(votes.T), "tuple(votes.T)"
        else:
            yield [list(column) for column in zip(*votes, strict=True)], "tuple(zip(*votes))"
    if shape[0] == 3:
        yield list(votes), "tuple(votes)"


def _may_be_rows(lines: list[Any], missing: Any) -> bool:
    """Return whether at least half of all values occur in two lines or more, or all are few numbers."""
    values = [_different_values(line, missing) for line in lines]
    union = set().union(*values)
    shared = (values[0] & values[1]) | (values[0] & values[2]) | (values[1] & values[2])
    few = len(union) <= FEW_NUMBERS and not any(isinstance(value, str) for value in union)
    return few or 2 * len(shared) >= len(union)


def _may_be_columns(lines: list[Any]) -> bool:
    """Return whether all votes have a task and a worker, most pairs of these occur once, and labels recur."""
    tasks, workers, labels = (as_column(line) for line in lines)
    if np.any(is_missing(tasks)) or np.any(is_missing(workers)):
        return False
    try:
        n_pairs, n_labels = len(set(zip(tasks.tolist(), workers.tolist(), strict=True))), len(set(labels.tolist()))
    except TypeError:  # values that cannot be hashed are refused later
        return True
    return 2 * n_pairs > labels.size and (n_labels < labels.size or labels.size < 3)


def _different_values(line: Any, missing: Any) -> set[Any]:
    entries = as_column(line)
    try:
        return set(entries[~is_missing(entries, missing)].tolist())
    except TypeError:
        return set()


def _listed(names: Iterable[Any]) -> str:
    texts = [str(name) for name in names]
    return ", ".join(texts[:SHOWN]) + (", ..." if len(texts) > SHOWN else "")
