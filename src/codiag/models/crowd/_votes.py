"""Votes as indices into names: which worker gave which label to which task, and which classes are known."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse

from codiag.labels import as_vector, sorted_names
from codiag.models.crowd._forms import (
    GOLD_FORMS,
    SHOWN,
    VOTE_COLUMNS,
    VoteColumns,
    gold_columns,
    is_missing,
    is_table,
    vote_columns,
)
from codiag.models.base import MomentSums
from codiag.parts import as_parts

MOST_CELLS = 5 * 10**7
"""Largest number of entries of all confusion matrices; more must be a mistake, and would not fit into memory."""
MANY_CELLS = 10**6
"""Number of entries of all confusion matrices above which there must be fewer labels than tasks."""
FEW_CLASSES, VOTES_A_CLASS = 10, 10
"""Fractional numbers are accepted as labels if at most so many are different, or each has so many votes on average."""


@dataclass(frozen=True, eq=False)
class Votes:
    """Votes as indices, and the names that these refer to.

    Attributes
    ----------
    task, worker, label : arrays of int, shape (n_votes,)
        Indices into `tasks`, `workers` and `classes`.
    tasks, workers, classes : arrays
        The names, sorted; in the order of their first appearance if they cannot be compared.
    library : str or None
        Module of the data frames that the votes came in, such as ``"pandas"``: results are returned in the same.
    gold : array of int, shape (n_tasks,), or None
        The index of the known class of each task; -1 if it is not known.
    by_row : bool
        Whether tasks are the rows of a matrix.
    names : tuple of str
        What the columns task, worker and label are called in the user's table.
    """

    task: np.ndarray
    worker: np.ndarray
    label: np.ndarray
    tasks: np.ndarray
    workers: np.ndarray
    classes: np.ndarray
    library: str | None = None
    gold: np.ndarray | None = None
    by_row: bool = False
    names: tuple[str, ...] = tuple(VOTE_COLUMNS)

    @cached_property
    def counts(self) -> sparse.csr_array:
        """Number of votes by task and by worker and label: (n_tasks, n_workers * n_classes)."""
        k = self.classes.size
        shape = self.tasks.size, self.workers.size * k
        return sparse.csr_array((np.ones(self.task.size), (self.task, self.worker * k + self.label)), shape=shape)

    @cached_property
    def by_worker(self) -> sparse.csr_array:
        """The transpose of `counts`, with a row for every worker and label."""
        return sparse.csr_array(self.counts.T)

    @cached_property
    def votes_of_workers(self) -> np.ndarray:
        """Number of votes of each worker."""
        return np.bincount(self.worker, minlength=self.workers.size)

    @cached_property
    def shares(self) -> np.ndarray:
        """Share of each class among the votes on each task, (n_tasks, n_classes); equal shares without votes.

        The share of a known class is one.
        """
        k = self.classes.size
        counts = np.bincount(self.task * k + self.label, minlength=self.tasks.size * k).reshape(-1, k)
        totals = counts.sum(axis=1, keepdims=True)
        return self.with_known(np.where(totals > 0, counts / np.maximum(totals, 1), 1 / k))

    def with_known(self, classes: np.ndarray) -> np.ndarray:
        """Return probabilities of classes (n_tasks, n_classes), zero or one for tasks whose class is known."""
        if self.gold is None:
            return classes
        return np.where(self.gold[:, None] >= 0, self.gold[:, None] == np.arange(self.classes.size), classes)

    def of_tasks(self, chosen: np.ndarray) -> Votes:
        """Return the votes on some of the tasks, given as a mask; workers and classes stay."""
        some, numbers = self.select(chosen[self.task]), np.cumsum(chosen) - 1
        gold = None if self.gold is None else self.gold[chosen]
        return replace(some, task=numbers[some.task], tasks=self.tasks[chosen], gold=gold)

    def select(self, rows: np.ndarray) -> Votes:
        """Return some of the votes, given as a mask; tasks, workers and classes stay."""
        return replace(self, task=self.task[rows], worker=self.worker[rows], label=self.label[rows])


def views_of(family: np.ndarray) -> np.ndarray:
    """Return the view that each worker is part of: a family, by its number, or the worker alone, from n_workers on."""
    return np.where(family >= 0, family, family.size + np.arange(family.size))


def as_votes(
    votes: Any, missing: Any = -1, *, workers: np.ndarray | None = None, classes: np.ndarray | None = None
) -> Votes:
    """Return votes in any form of `vote_columns` as `Votes`; other workers and classes than those given are refused."""
    return _encoded(vote_columns(votes, missing), workers, classes)


def _encoded(votes: VoteColumns, workers: np.ndarray | None = None, classes: np.ndarray | None = None) -> Votes:
    if votes.columns[0].size == 0:
        raise ValueError("votes must contain at least one vote; got none")
    names = [None, workers, classes]
    if votes.shape is not None:
        names[:2] = np.arange(votes.shape[0]), np.arange(votes.shape[1]) if workers is None else workers
    triples = zip(votes.columns, VOTE_COLUMNS, names, strict=True)
    (task, tasks), (worker, workers), (label, classes) = (_encode(*triple) for triple in triples)
    form: dict[str, Any] = {"library": votes.library, "by_row": votes.shape is not None, "names": votes.names}
    encoded = Votes(task, worker, label, tasks, workers, classes, **form)
    _check_size(encoded)
    return encoded


def _encode(column: np.ndarray, name: str, known: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return the index of every entry among the names, and the names."""
    missing = is_missing(column)
    if np.any(missing):
        raise ValueError(
            f"votes must be whole; {int(np.sum(missing))} of {column.size} have no {name}, the first is row "
            f"{int(np.argmax(missing))}. Leave them out, as with votes.dropna() of pandas or votes.drop_nulls() of "
            "polars"
        )
    if column.dtype.kind == "f" and np.any(np.isinf(column)):
        raise ValueError(f"votes must be finite; the {name} in row {int(np.argmax(np.isinf(column)))} is infinite")
    if known is None and column.dtype != object:
        names, codes = np.unique(column, return_inverse=True)
        return codes.ravel(), names
    entries = column.tolist()
    try:
        names = sorted_names(entries) if known is None else known
    except TypeError as error:
        raise TypeError(f"{name} must contain values that can be hashed; {error}") from error
    places = {entry: place for place, entry in enumerate(names.tolist())}
    try:
        return np.fromiter((places[entry] for entry in entries), dtype=np.int64, count=len(entries)), names
    except KeyError as error:
        raise ValueError(f"{name} {error.args[0]!r} was not among those of fit; refit with its votes") from None


def _check_size(votes: Votes) -> None:
    """Raise if there are too many labels to be classes."""
    n_tasks, n_workers, k = votes.tasks.size, votes.workers.size, votes.classes.size
    n_cells = n_workers * k**2
    if n_cells > MOST_CELLS or (n_cells > MANY_CELLS and k > n_tasks):
        raise ValueError(
            f"votes must be of few classes; {k} labels of {n_workers} workers on {n_tasks} tasks make {n_cells} "
            "numbers in confusion matrices. Are labels numbers that were measured, or are the columns in another order "
            "than task, worker, label?"
        )


def _check_classes(votes: Votes) -> None:
    """Raise if labels are fractional numbers that hardly recur: measurements rather than classes."""
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
            f"{fractions[0]:g}, which look measured. Put them into classes first, as by rounding; if they are "
            "classes, name them by words"
        )


def warnings_for(votes: Votes) -> Iterator[Warning]:
    """Yield a warning if no task has votes of two workers."""
    pairs = np.unique(np.stack([votes.task, votes.worker]), axis=1)
    if np.bincount(pairs[0]).max() < 2:
        yield UserWarning(
            f"no task has votes of two workers, so that the accuracy of the {votes.workers.size} workers cannot be "
            "estimated: accuracies are those of the prior, and labels those that were given. Let several workers see "
            "each task"
        )


@dataclass(eq=False)
class VoteSums(MomentSums):
    """Votes of several parts of a table, merged by the names of tasks, workers and labels."""

    own: ClassVar[frozenset[str]] = frozenset({"votes"})

    votes: Votes | None = None

    @property
    def size(self) -> int:
        return 0 if self.votes is None else self.votes.label.size

    def of(self, part: Any) -> Self:
        """Return the votes of one part of a table."""
        if not is_table(part):
            raise TypeError(
                "X must have parts that are tables, a data frame, a dict or a tuple of the columns task, worker and "
                f"label; got {type(part).__name__}"
            )
        votes = vote_columns(part)
        return type(self)(_encoded(votes) if votes.columns[0].size else None)

    def merge(self, other: Self) -> Self:
        """Add other votes to these, and return these."""
        if self.votes is None or other.votes is None:
            self.votes = other.votes if self.votes is None else self.votes
            return self
        fields: dict[str, Any] = {}
        for column, names in (("task", "tasks"), ("worker", "workers"), ("label", "classes")):
            first, second = getattr(self.votes, names), getattr(other.votes, names)
            _check_kinds(column, first, second)
            codes, fields[names] = _encode(np.concatenate([first, second]), column)
            parts = codes[: first.size][getattr(self.votes, column)], codes[first.size :][getattr(other.votes, column)]
            fields[column] = np.concatenate(parts)
        self.votes = replace(self.votes, **fields)
        return self

    def finish(self) -> Votes:
        """Return all votes."""
        if self.votes is None:
            raise ValueError("votes must contain at least one vote; got none")
        _check_size(self.votes)
        return self.votes


def _check_kinds(column: str, first: np.ndarray, second: np.ndarray) -> None:
    """Raise if names are of one type in one part and of another in the other: 1 and "1" would be two names."""
    kinds = [
        {"numbers" if isinstance(name, int | float) else type(name).__name__ for name in names.tolist()}
        for names in (first, second)
    ]
    if kinds[0].isdisjoint(kinds[1]):
        some, others = (" and ".join(sorted(kind)) for kind in kinds)
        raise TypeError(
            f"{column} must be of one kind in all parts of X; got {some} in some and {others} in others. Convert the "
            "column before"
        )


def collect_votes(data: Any, missing: Any) -> Votes:
    """Return votes in any form, or in parts of a table, sorted by task, worker and label."""
    parts = None if is_table(data) else as_parts(data, is_table)
    votes = as_votes(data, missing) if parts is None else parts.reduce(_votes_of_part).finish()
    _check_classes(votes)
    rows = np.lexsort((votes.label, votes.worker, votes.task))  # so that the order of the votes does not matter
    return replace(votes, task=votes.task[rows], worker=votes.worker[rows], label=votes.label[rows])


def _votes_of_part(part: Any) -> VoteSums:
    if isinstance(part, list) and not is_table(part):  # a partition of a dask bag
        total = VoteSums()
        for table in part:
            total.update(table)
        return total
    return VoteSums().of(part)


def refuse_parts(data: Any) -> None:
    """Raise if votes to predict from come in parts."""
    if not is_table(data) and as_parts(data, is_table) is not None:
        raise TypeError(
            f"X must be votes in one table for predict; got a {type(data).__name__} of parts. Votes of a task may be "
            "in several parts: concatenate them, or predict from each part if no task is in two"
        )


def with_gold(votes: Votes, gold: Any, *, any_tasks: bool = False, missing: Any = None) -> Votes:
    """Return votes with the known classes that `gold` gives for some of their tasks.

    Tasks without votes are ignored, as are labels that are None or NaN, or, in one entry for each row of a matrix of
    votes, the marker `missing`. If all tasks are without votes, this is an error unless `any_tasks` is true.
    """
    known = {} if gold is None else _known_classes(votes, *gold_columns(gold), missing)
    rows = {name: place for place, name in enumerate(votes.tasks.tolist())}
    with_votes = {task: label for task, label in known.items() if task in rows}
    if not known or (any_tasks and not with_votes):
        return votes
    if not with_votes:
        raise ValueError(
            f"gold must give the class of a task that has votes; none of its {len(known)} tasks, the first of them "
            f"{next(iter(known))!r}, is one of the {votes.tasks.size}, the first of them {votes.tasks.tolist()[0]!r}. "
            "Are both numbers, or both text?"
        )
    classes = {name: place for place, name in enumerate(votes.classes.tolist())}
    strange = [(task, label) for task, label in with_votes.items() if label not in classes]
    if strange:
        names = ", ".join(map(repr, list(classes)[:SHOWN])) + (", ..." if len(classes) > SHOWN else "")
        raise ValueError(
            f"gold must give classes that votes have, {names}; task {strange[0][0]!r} has {strange[0][1]!r}"
            f"{f', and {len(strange) - 1} more tasks have others' if len(strange) > 1 else ''}. Write labels as votes "
            "do, or leave these tasks out"
        )
    places = np.full(votes.tasks.size, -1, dtype=np.int64)
    places[[rows[task] for task in with_votes]] = [classes[label] for label in with_votes.values()]
    return replace(votes, gold=places)


def _known_classes(votes: Votes, tasks: list[Any] | None, labels: list[Any], missing: Any) -> dict[Any, Any]:
    """Return the class of each task by its name; raise if a task has two."""
    if not labels and not tasks:
        return {}
    absent = is_missing(as_vector(labels), missing if tasks is None else None)
    if tasks is None:
        if not votes.by_row:
            raise TypeError(
                f"gold must say which task each class is of; got {len(labels)} classes without tasks, which only a "
                f"matrix of votes has rows for. {GOLD_FORMS}"
            )
        if len(labels) != votes.tasks.size:
            raise ValueError(
                f"gold must have a class for each of the {votes.tasks.size} rows of votes; got {len(labels)}. "
                + GOLD_FORMS
            )
        tasks = votes.tasks.tolist()
    if len(tasks) != len(labels):
        raise ValueError(f"gold must have as many labels as tasks; got {len(tasks)} tasks and {len(labels)} labels")
    known: dict[Any, Any] = {}
    for task, label, is_absent in zip(tasks, labels, absent, strict=True):
        try:
            before = label if is_absent else known.setdefault(task, label)
            hash(label)
        except TypeError as error:
            raise TypeError(f"gold must have tasks and labels that can be hashed; {error}") from None
        if not is_absent and before != label:
            raise ValueError(f"gold must give every task one class; task {task!r} has {before!r} and {label!r}")
    return known
