"""Votes: who gave which label to which task, in whatever form the user keeps them.

Votes that come in parts of a table: three whole numbers are kept of each, and names once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse

from codiag.models.crowd._layout import absent, is_matrix
from codiag.models.frame import MomentSums, as_vector, sorted_names
from codiag.parts import as_parts

NAMES = {
    "task": ("task", "item", "question"),
    "worker": ("worker", "rater", "annotator", "performer"),
    "label": ("label", "rating", "answer", "response"),
}
"""What the columns of votes may be called."""
MOST_CELLS, MANY_CELLS = 5 * 10**7, 10**6
"""Cells of all confusion matrices beyond which labels must be a mistake, and beyond which they are one if there are
more labels than tasks."""

FEW_CLASSES, VOTES_A_CLASS = 10, 10
"""Numbers with fractions are taken for classes where there are so few of them, or so many votes for each."""


@dataclass(frozen=True, eq=False)
class Votes:
    """Votes as numbers, and what the numbers stand for.

    Attributes
    ----------
    task, worker, label : arrays of shape (n_votes,)
        Places in `tasks`, `workers` and `classes`.
    tasks, workers, classes : arrays
        The names, sorted where they can be, else in the order they appear in.
    container : str
        What the votes came in, ``"pandas"``, ``"polars"`` or ``"arrays"``; tables are returned in the same.
    gold : array of shape (n_tasks,) or None
        The place in `classes` of the true class of each task, where it is known, and -1 where it is not.
    weights : array of shape (n_votes,) or None
        How much each vote counts, where that is not one.
    by_row : bool
        Whether tasks are the rows of a matrix.
    """

    task: np.ndarray
    worker: np.ndarray
    label: np.ndarray
    tasks: np.ndarray
    workers: np.ndarray
    classes: np.ndarray
    container: str = "arrays"
    gold: np.ndarray | None = None
    weights: np.ndarray | None = None
    by_row: bool = False

    @cached_property
    def counts(self) -> sparse.csr_array:
        """How often a worker gave a label to a task: (n_tasks, n_workers * n_classes), worker by worker."""
        k = self.classes.size
        places = self.task, self.worker * k + self.label
        shape = self.tasks.size, self.workers.size * k
        weights = np.ones(self.task.size) if self.weights is None else self.weights
        return sparse.csr_array((weights, places), shape=shape)

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
        """The share of each class in the votes on each task, (n_tasks, n_classes); equal where there is no vote.

        Where the true class is known, its share is one.
        """
        k = self.classes.size
        totals = np.bincount(self.task * k + self.label, minlength=self.tasks.size * k).reshape(-1, k)
        cast = totals.sum(axis=1, keepdims=True)
        return self.held(np.where(cast > 0, totals / np.maximum(cast, 1), 1 / k))

    def held(self, classes: np.ndarray) -> np.ndarray:
        """Return classes of tasks (n_tasks, n_classes) with those that are known held at their true class."""
        if self.gold is None:
            return classes
        return np.where(self.gold[:, None] >= 0, self.gold[:, None] == np.arange(self.classes.size), classes)


def as_votes(
    votes: Any, missing: Any = -1, *, workers: np.ndarray | None = None, classes: np.ndarray | None = None
) -> Votes:
    """Turn a data frame, three columns, or a matrix (tasks, workers) with a marker for no vote, into `Votes`.

    A data frame or a dict has columns by name, a tuple holds three columns, an array or a list of rows is a matrix.
    What has three rows or three columns may also be task, worker and label: see `codiag.models.crowd._layout`. Where
    workers and classes are given, others are refused.
    """
    container = _container(votes)
    if isinstance(missing, list | tuple | np.ndarray):
        raise TypeError(f"missing must be one marker; got {missing!r}. Replace the others with it")
    votes = votes.collect() if container == "polars" and hasattr(votes, "collect") else votes
    names: list[np.ndarray | None] = [None, workers, classes]
    if container != "arrays" or isinstance(votes, Mapping):
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
    found = Votes(task, worker, label, tasks, workers, classes, container, by_row=names[0] is not None)
    check_cells(found)
    return found


def check_cells(votes: Votes) -> None:
    """Raise where there are so many labels that they must be a mistake."""
    tasks, workers, classes = votes.tasks, votes.workers, votes.classes
    n_cells = workers.size * classes.size**2
    if n_cells > MOST_CELLS or (n_cells > MANY_CELLS and classes.size > tasks.size):
        raise ValueError(
            f"votes must be of few classes; {classes.size} labels of {workers.size} workers on {tasks.size} tasks make "
            f"{n_cells} numbers in confusion matrices. Are labels numbers that were measured, or are the columns in "
            "another order than task, worker, label?"
        )


def check_classes(votes: Votes) -> None:
    """Raise where labels are numbers with fractions that hardly recur: they were measured, and are no classes."""
    classes, n_votes = votes.classes, votes.label.size
    if classes.size <= FEW_CLASSES or n_votes >= VOTES_A_CLASS * classes.size:
        return
    try:
        numbers = np.array(classes.tolist(), dtype=str).astype(np.float64)
    except ValueError:
        return
    fractions = numbers[numbers != np.floor(numbers)]
    if fractions.size:
        raise ValueError(
            f"votes must be of few classes; the {n_votes} labels are {classes.size} different numbers such as "
            f"{fractions[0]:g}, which look measured. Put them into classes first, as by rounding; where they are "
            "classes, name them by words"
        )


def complaints_about(votes: Votes) -> Iterator[Warning]:
    """Yield what is to be said of votes that cannot be held against those of anybody else."""
    pairs = np.unique(np.stack([votes.task, votes.worker]), axis=1)
    if np.bincount(pairs[0]).max() < 2:
        yield UserWarning(
            f"no task has votes of two workers, so that nothing tells how good the {votes.workers.size} of them are: "
            "accuracies are those of the prior, and labels those that were given. Let several workers see each task"
        )


def _container(votes: Any) -> str:
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
        raise ValueError(f"votes must have the columns {wanted_columns()}; got {shown}. {_ways_out(frame, columns)}")
    if len({column.strip().lower() for column in columns}) < len(columns):
        raise ValueError(f"votes must have columns of different names; got {', '.join(columns[:8])}")
    return _of_one_length([_as_column(frame[keys[place]]) for place in places.values()])


def _ways_out(frame: Any, columns: list[str]) -> str:
    """Say how columns get these names, and how a table with a row for each task gets these columns."""
    first = columns[0] if columns else "task"
    if _container(frame) == "pandas":
        renamed = f"frame.rename(columns={{{first!r}: 'task', ...}})"
        long = f"frame.melt(id_vars={first!r}, var_name='worker', value_name='label').dropna()"
    elif _container(frame) == "polars":
        renamed = f"frame.rename({{{first!r}: 'task', ...}})"
        long = f"frame.unpivot(index={first!r}, variable_name='worker', value_name='label').drop_nulls()"
    else:
        return "Name them so; a matrix of tasks x workers is passed as an array"
    return (
        f"Rename others, {renamed}; where a row is a task and the other columns are workers, take {long} and rename "
        f"{first!r} to 'task'"
    )


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
            f"matrix of tasks x workers; got {type(votes).__name__}. Files are read by codiag.io.read_votes"
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
    return as_vector(list(values))


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
            "Leave them out, as with votes.dropna() of pandas or votes.drop_nulls() of polars"
        )


COLUMNS = "task", "worker", "label"
PART_NAMES = "tasks", "workers", "classes"


@dataclass(eq=False)
class VoteSums(MomentSums):
    """Votes by number, with the names that the numbers stand for; those of several parts are merged by name."""

    own: ClassVar[frozenset[str]] = frozenset({"votes"})

    votes: Votes | None = None

    @property
    def size(self) -> int:
        return 0 if self.votes is None else self.votes.label.size

    def of(self, part: Any) -> Self:
        """Return the votes of one part of a table."""
        if not _is_table(part):
            raise TypeError(
                "X must have parts that are tables, a data frame, a dict or a tuple of the columns task, worker and "
                f"label; got {type(part).__name__}"
            )
        return type(self)(as_votes(part) if _n_rows(part) else None)

    def merge(self, other: Self) -> Self:
        """Add other votes to these, by the names of tasks, workers and labels, and return these."""
        if self.votes is None or other.votes is None:
            self.votes = other.votes if self.votes is None else self.votes
            return self
        codes: list[np.ndarray] = []
        names: list[np.ndarray] = []
        for column, name in zip(COLUMNS, PART_NAMES, strict=True):
            _check_kinds(column, getattr(self.votes, name), getattr(other.votes, name))
            known, places = _union(getattr(self.votes, name), getattr(other.votes, name))
            parts = (self.votes, other.votes)
            codes.append(np.concatenate([place[getattr(v, column)] for v, place in zip(parts, places, strict=True)]))
            names.append(known)
        task, worker, label = codes
        tasks, workers, classes = names
        self.votes = Votes(task, worker, label, tasks, workers, classes, self.votes.container)
        return self

    def finish(self) -> Votes:
        """Return all votes."""
        if self.votes is None:
            raise ValueError("votes must hold at least one vote; got none")
        check_cells(self.votes)
        return self.votes


def votes_at_hand(data: Any, missing: Any) -> Votes:
    """Return votes in whatever form they are, or in parts of a table."""
    parts = None if _is_table(data) else as_parts(data, _is_table)
    found = as_votes(data, missing) if parts is None else parts.reduce(_votes_of_part).finish()
    check_classes(found)
    rows = np.lexsort((found.label, found.worker, found.task))  # so that results do not depend on the order of votes
    return replace(found, task=found.task[rows], worker=found.worker[rows], label=found.label[rows])


def refuse_parts(data: Any) -> None:
    """Raise where votes to predict from come in parts."""
    if not _is_table(data) and as_parts(data, _is_table) is not None:
        raise TypeError(
            f"X must be votes in one table for predict; got a {type(data).__name__} of parts. Votes of a task may be "
            "in several: put them together, or predict from each part where they are not"
        )


def _votes_of_part(part: Any) -> VoteSums:
    if isinstance(part, list) and not _is_table(part):  # of a bag
        total = VoteSums()
        for table in part:
            total.update(table)
        return total
    return VoteSums().of(part)


def _is_table(data: Any) -> bool:
    """Tell whether this is a data frame, a dict, or a tuple of three columns."""
    if isinstance(data, Mapping):
        return True
    if isinstance(data, tuple):
        return len(data) == 3 and not any(_is_table(column) or np.isscalar(column) for column in data)
    return type(data).__module__.split(".")[0] in ("pandas", "polars")


def _n_rows(table: Any) -> int:
    if isinstance(table, tuple):
        return max(len(column) for column in table)
    return max((len(column) for column in table.values()), default=0) if isinstance(table, Mapping) else len(table)


def _check_kinds(column: str, first: np.ndarray, second: np.ndarray) -> None:
    """Raise where one part has names of other kinds than another: 1 and "1" would be two names."""
    kinds = [{_kind(name) for name in names.tolist()} for names in (first, second)]
    if kinds[0].isdisjoint(kinds[1]):
        mine, theirs = (" and ".join(sorted(kind)) for kind in kinds)
        raise TypeError(
            f"{column} must be of one kind in all parts of X; got {mine} in some and {theirs} in others. Convert the "
            "column before"
        )


def _kind(name: Any) -> str:
    return "numbers" if isinstance(name, int | float) else type(name).__name__


def _union(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return all names, in their order, and the place that each of both has among them."""
    if first.dtype != object and second.dtype != object and first.dtype.kind == second.dtype.kind:
        known, places = np.unique(np.concatenate([first, second]), return_inverse=True)
        return known, [places.ravel()[: first.size], places.ravel()[first.size :]]
    known = sorted_names([*first.tolist(), *second.tolist()])
    numbers = {name: place for place, name in enumerate(known.tolist())}
    return known, [np.array([numbers[name] for name in part.tolist()], dtype=np.int64) for part in (first, second)]
