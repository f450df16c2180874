"""Votes: who gave which label to what, however the user keeps them, and tables of the same make in return."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from codiag.models._vote_layout import absent, is_matrix

NAMES = {
    "task": ("task", "item", "question"),
    "worker": ("worker", "rater", "annotator", "performer"),
    "label": ("label", "rating", "answer", "response"),
}
"""What the columns of votes may be called."""
LARGEST, LARGE = 5 * 10**7, 10**6
"""Numbers in confusion matrices beyond which labels are a mistake, and beyond which they are one if there are more of
them than tasks."""


@dataclass(frozen=True, eq=False)
class Votes:
    """Votes as numbers, and what the numbers stand for.

    Attributes
    ----------
    task, worker, label : arrays of shape (n_votes,)
        Places in `tasks`, `workers` and `classes`.
    tasks, workers, classes : arrays
        The names, sorted where they can be, else in the order they appear in.
    make : str
        What the votes came as, ``"pandas"``, ``"polars"`` or ``"arrays"``; tables are given back as the same.
    """

    task: np.ndarray
    worker: np.ndarray
    label: np.ndarray
    tasks: np.ndarray
    workers: np.ndarray
    classes: np.ndarray
    make: str = "arrays"

    @cached_property
    def counts(self) -> sparse.csr_array:
        """How often a worker gave a label to a task: (n_tasks, n_workers * n_classes), worker by worker."""
        k = self.classes.size
        places = self.task, self.worker * k + self.label
        shape = self.tasks.size, self.workers.size * k
        return sparse.csr_array((np.ones(self.task.size), places), shape=shape)

    @cached_property
    def by_worker(self) -> sparse.csr_array:
        """The same with a row for every worker and label."""
        return sparse.csr_array(self.counts.T)

    @cached_property
    def votes_of_workers(self) -> np.ndarray:
        """Votes that each worker gave."""
        return np.bincount(self.worker, minlength=self.workers.size)

    @cached_property
    def shares(self) -> np.ndarray:
        """The share of each class in the votes on each task, (n_tasks, n_classes); equal where there is no vote."""
        k = self.classes.size
        totals = np.bincount(self.task * k + self.label, minlength=self.tasks.size * k).reshape(-1, k)
        cast = totals.sum(axis=1, keepdims=True)
        return np.where(cast > 0, totals / np.maximum(cast, 1), 1 / k)


def as_votes(
    votes: Any, missing: Any = -1, *, workers: np.ndarray | None = None, classes: np.ndarray | None = None
) -> Votes:
    """Turn a data frame, three columns, or a matrix (tasks, workers) with a marker for no vote, into `Votes`.

    A data frame or a dict has columns by name, a tuple holds three columns, an array or a list of rows is a matrix.
    What has three rows or three columns may also be task, worker and label: see `codiag.models._vote_layout`. Where
    workers and classes are given, others are refused.
    """
    make = _make(votes)
    if isinstance(missing, list | tuple | np.ndarray):
        raise TypeError(f"missing must be one marker; got {missing!r}. Replace the others with it")
    votes = votes.collect() if make == "polars" and hasattr(votes, "collect") else votes
    names: list[np.ndarray | None] = [None, workers, classes]
    if make != "arrays" or isinstance(votes, Mapping):
        columns = _named_columns(votes)
    elif is_matrix(votes, missing):
        matrix = _as_matrix(votes)
        columns = _from_matrix(matrix, missing)
        names[0], names[1] = np.arange(matrix.shape[0]), np.arange(matrix.shape[1]) if workers is None else workers
    else:
        columns = _three_columns(votes)
    if columns[0].size == 0:
        raise ValueError("votes must hold at least one vote; got none")
    coded = [_encode(column, name, known) for column, name, known in zip(columns, NAMES, names, strict=True)]
    (task, tasks), (worker, workers), (label, classes) = coded
    numbers = workers.size * classes.size**2
    if numbers > LARGEST or (numbers > LARGE and classes.size > tasks.size):
        raise ValueError(
            f"votes must be of few classes; {classes.size} labels of {workers.size} workers on {tasks.size} tasks make "
            f"{numbers} numbers in confusion matrices. Are labels numbers that were measured, or are the columns in "
            "another order than task, worker, label?"
        )
    return Votes(task, worker, label, tasks, workers, classes, make)


def _make(votes: Any) -> str:
    origin = type(votes).__module__.split(".")[0]
    return origin if origin in ("pandas", "polars") else "arrays"


def column_places(columns: Sequence[str]) -> dict[str, int] | None:
    """Return where task, worker and label are among names of columns; None where one is not."""
    given = [column.strip().lower() for column in columns]
    places = {name: next((given.index(word) for word in words if word in given), -1) for name, words in NAMES.items()}
    return places if min(places.values()) >= 0 else None


def wanted_columns() -> str:
    """Say which names columns may have."""
    return "; ".join(f"{name} (or {', '.join(words[1:])})" for name, words in NAMES.items())


def _named_columns(frame: Any) -> list[np.ndarray]:
    keys = list(frame.keys() if isinstance(frame, Mapping) else frame.columns)
    columns = [str(key) for key in keys]
    places = column_places(columns)
    if places is None:
        shown = ", ".join(columns[:8]) + (", ..." if len(columns) > 8 else "")
        raise ValueError(
            f"votes must have the columns {wanted_columns()}; got {shown}. "
            "A table of tasks x workers is taken as an array, frame.to_numpy()"
        )
    if len({column.strip().lower() for column in columns}) < len(columns):
        raise ValueError(f"votes must have columns of different names; got {', '.join(columns[:8])}")
    return _of_one_length([_as_column(frame[keys[place]]) for place in places.values()])


def _as_matrix(votes: Any) -> np.ndarray:
    """Return a matrix whose entries are what they were, and None where they are masked."""
    if isinstance(votes, np.ma.MaskedArray):
        entries = np.ma.getdata(votes).astype(object)
        entries[np.ma.getmaskarray(votes)] = None
        return entries
    if isinstance(votes, np.ndarray):
        return votes
    matrix = np.array(votes, dtype=object)
    return matrix if len({type(entry) for entry in matrix.ravel()}) > 1 else np.asarray(votes)


def _from_matrix(matrix: np.ndarray, missing: Any) -> list[np.ndarray]:
    given = ~absent(matrix.ravel(), missing).reshape(matrix.shape)
    tasks, workers = np.nonzero(given)
    return [tasks, workers, matrix[given]]


def _three_columns(votes: Any) -> list[np.ndarray]:
    if not isinstance(votes, list | tuple) or len(votes) != 3 or any(np.isscalar(column) for column in votes):
        raise ValueError(
            "votes must be a data frame with the columns task, worker and label, a tuple of three such columns, or a "
            f"matrix of tasks x workers; got {type(votes).__name__}. Files are read by codiag.tables.read_votes"
        )
    return _of_one_length([_as_column(column) for column in votes])


def _of_one_length(columns: list[np.ndarray]) -> list[np.ndarray]:
    if len({column.size for column in columns}) > 1:
        raise ValueError(f"task, worker and label must be of one length; got {[column.size for column in columns]}")
    return columns


def _as_column(values: Iterable[Any]) -> np.ndarray:
    """Return a vector whose entries are what they were: NumPy would make strings of mixed lists, rows of tuples."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise ValueError(f"task, worker and label must be sequences of values; got {values!r:.40}")
    if hasattr(values, "to_numpy"):
        values = np.asarray(values.to_numpy())
    if isinstance(values, np.ndarray):
        if values.size != max(values.shape, default=0):
            raise ValueError(f"task, worker and label must be vectors; got one of shape {values.shape}")
        return values.ravel()
    entries = list(values)
    if len({type(entry) for entry in entries}) == 1 and isinstance(entries[0], str | int | float | np.generic):
        return np.asarray(entries)
    column = np.empty(len(entries), dtype=object)
    column[:] = entries
    return column


def _encode(column: np.ndarray, name: str, known: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the place of every entry among the names, and the names."""
    _check_present(column, name)
    if known is None and column.dtype != object:
        names, codes = np.unique(column, return_inverse=True)
        return codes.ravel(), names
    entries = column.tolist()
    try:
        names = sorted_names(entries) if known is None else known
    except TypeError as error:
        raise TypeError(f"{name} must hold values that can be told apart (hashable); {error}") from error
    places = {entry: place for place, entry in enumerate(names.tolist())}
    try:
        return np.fromiter((places[entry] for entry in entries), dtype=np.int64, count=len(entries)), names
    except KeyError as error:
        raise ValueError(f"{name} {error.args[0]!r} was not among those of fit; refit with its votes") from None


def _check_present(column: np.ndarray, name: str) -> None:
    gone = absent(column)
    if np.any(gone):
        first = int(np.argmax(gone))
        raise ValueError(
            f"votes must be whole; {int(np.sum(gone))} of {column.size} have no {name}, the first is row {first}. "
            "Leave them out"
        )


def sorted_names(entries: list[Any]) -> np.ndarray:
    """Return what is among the entries, each once, sorted where that can be."""
    names = list(dict.fromkeys(entries))
    try:
        names = sorted(names)
    except TypeError:  # kinds that have no order among them stay in the order they came in
        return _as_column(names)
    return _as_column(names)


def class_names(classes: np.ndarray, taken: Iterable[str] = ()) -> list[str]:
    """Return names of classes for columns of a table; numbered where they would not be told apart."""
    names = [str(name) for name in classes.tolist()]
    if len({*names, *taken}) < len(names) + len(list(taken)):
        return [f"class {place}: {name}" for place, name in enumerate(names)]
    return names


class Tables:
    """Results in the make of the votes: data frames for those who brought one, arrays for the rest."""

    def __init__(self, votes: Votes) -> None:
        self.votes = votes

    def series(self, values: np.ndarray, name: str, index: np.ndarray, index_name: str) -> Any:
        """Return one value for each of the index."""
        if self.votes.make == "pandas":
            import pandas as pd

            return pd.Series(values, index=pd.Index(index, name=index_name), name=name)
        if self.votes.make == "polars":
            import polars as pl

            return pl.DataFrame({index_name: index, name: values})
        return values

    def by_class(self, values: np.ndarray) -> Any:
        """Return a row for each task, with a column for every class."""
        if self.votes.make == "pandas":
            import pandas as pd

            index, columns = pd.Index(self.votes.tasks, name="task"), pd.Index(self.votes.classes, name="label")
            return pd.DataFrame(values, index=index, columns=columns)
        if self.votes.make == "polars":
            return self._polars({"task": self.votes.tasks}, values)
        return values

    def intervals(self, values: np.ndarray) -> Any:
        """Return a row for each worker, with the columns low and high."""
        if self.votes.make == "pandas":
            import pandas as pd

            return pd.DataFrame(values, index=pd.Index(self.votes.workers, name="worker"), columns=["low", "high"])
        if self.votes.make == "polars":
            import polars as pl

            return pl.DataFrame({"worker": self.votes.workers, "low": values[:, 0], "high": values[:, 1]})
        return values

    def confusions(self, values: np.ndarray) -> Any:
        """Return rows by worker and given label, columns by true class; or an array (workers, given, true)."""
        k = self.votes.classes.size
        if self.votes.make == "pandas":
            import pandas as pd

            return pd.DataFrame(values.reshape(-1, k), index=self._pairs, columns=pd.Index(self.votes.classes))
        if self.votes.make == "polars":
            rows = {"worker": np.repeat(self.votes.workers, k), "label": np.tile(self.votes.classes, values.shape[0])}
            return self._polars(rows, values.reshape(-1, k))
        return values

    @cached_property
    def _pairs(self) -> Any:
        import pandas as pd

        return pd.MultiIndex.from_product([self.votes.workers, self.votes.classes], names=["worker", "label"])

    def _polars(self, index: dict[str, np.ndarray], values: np.ndarray) -> Any:
        import polars as pl

        names = class_names(self.votes.classes, taken=index)
        return pl.DataFrame(index | {name: values[:, place] for place, name in enumerate(names)})
