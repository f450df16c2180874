"""Votes as indices into names: which worker gave which label to which task, and which classes are known."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from codiag.labels import as_vector, encoded
from codiag.models.crowd._forms import (
    KNOWN_CLASS_FORMS,
    SHOWN,
    VOTE_COLUMNS,
    is_missing,
    known_class_columns,
    vote_columns,
)

MOST_CELLS = 5 * 10**7
"""Largest number of entries of all confusion matrices; more must be a mistake, and would not fit into memory."""


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
    known_class : array of int, shape (n_tasks,), or None
        The index of the known class of each task; -1 if it is not known.
    by_row : bool
        Whether tasks are the rows of a matrix.
    """

    task: np.ndarray
    worker: np.ndarray
    label: np.ndarray
    tasks: np.ndarray
    workers: np.ndarray
    classes: np.ndarray
    library: str | None = None
    known_class: np.ndarray | None = None
    by_row: bool = False

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
    def votes_of_tasks(self) -> np.ndarray:
        """Number of votes on each task."""
        return np.bincount(self.task, minlength=self.tasks.size)

    @cached_property
    def labels_of_tasks(self) -> np.ndarray:
        """Number of votes for each label on each task, (n_tasks, n_classes)."""
        k = self.classes.size
        return np.bincount(self.task * k + self.label, minlength=self.tasks.size * k).reshape(-1, k)

    @cached_property
    def shares(self) -> np.ndarray:
        """Share of each class among the votes on each task, (n_tasks, n_classes); equal shares without votes.

        The share of a known class is one.
        """
        k, counts, totals = self.classes.size, self.labels_of_tasks, self.votes_of_tasks[:, None]
        return self.with_known(np.where(totals > 0, counts / np.maximum(totals, 1), 1 / k))

    def with_known(self, classes: np.ndarray) -> np.ndarray:
        """Return probabilities of classes (n_tasks, n_classes), zero or one for tasks whose class is known."""
        if self.known_class is None:
            return classes
        return np.where(
            self.known_class[:, None] >= 0, self.known_class[:, None] == np.arange(self.classes.size), classes
        )

    def of_tasks(self, chosen: np.ndarray) -> Votes:
        """Return the votes on some of the tasks, given as a mask; workers and classes stay."""
        rows, numbers = chosen[self.task], np.cumsum(chosen) - 1
        known_class = None if self.known_class is None else self.known_class[chosen]
        columns = {"task": numbers[self.task[rows]], "worker": self.worker[rows], "label": self.label[rows]}
        return replace(self, **columns, tasks=self.tasks[chosen], known_class=known_class)


def as_votes(
    votes: Any, missing: Any = -1, *, workers: np.ndarray | None = None, classes: np.ndarray | None = None
) -> Votes:
    """Return votes in any form of `vote_columns` as `Votes`, sorted by task, worker and label.

    Other workers and classes than those given are refused.
    """
    given = vote_columns(votes, missing)
    if given.columns[0].size == 0:
        raise ValueError("votes must contain at least one vote; got none")
    names = [None, workers, classes]
    if given.shape is not None:
        names[:2] = np.arange(given.shape[0]), np.arange(given.shape[1]) if workers is None else workers
    triples = zip(given.columns, VOTE_COLUMNS, names, strict=True)
    (task, tasks), (worker, workers), (label, classes) = (_encode(*triple) for triple in triples)
    rows = np.lexsort((label, worker, task))  # so that the order of the votes does not matter
    form: dict[str, Any] = {"library": given.library, "by_row": given.shape is not None}
    encoded = Votes(task[rows], worker[rows], label[rows], tasks, workers, classes, **form)
    _check_size(encoded)
    return encoded


def _encode(column: np.ndarray, name: str, known: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return the index of every entry among the names, and the names."""
    missing = is_missing(column)
    if np.any(missing):
        raise ValueError(
            f"votes must be whole; {int(np.sum(missing))} of {column.size} have no {name}, the first is row "
            f"{int(np.argmax(missing))}. Leave them out, as with votes.dropna() of pandas"
        )
    if known is None and column.dtype != object:
        names, codes = np.unique(column, return_inverse=True)
        return codes.ravel(), names
    entries = column.tolist()
    try:
        if known is None:
            return encoded(entries)[::-1]
        places = {entry: place for place, entry in enumerate(known.tolist())}
        return np.fromiter((places[entry] for entry in entries), dtype=np.int64, count=len(entries)), known
    except TypeError as error:
        raise TypeError(f"{name} must contain values that can be hashed; {error}") from error
    except KeyError as error:
        raise ValueError(f"{name} {error.args[0]!r} was not among those of fit; refit with its votes") from None


def _check_size(votes: Votes) -> None:
    """Raise if there are too many labels to be classes."""
    n_tasks, n_workers, k = votes.tasks.size, votes.workers.size, votes.classes.size
    if n_workers * k**2 > MOST_CELLS:
        raise ValueError(
            f"votes must be of few classes; got {k} labels of {n_workers} workers on {n_tasks} tasks. Are labels "
            "numbers that were measured, or are the columns in another order than task, worker, label?"
        )


def with_known_classes(votes: Votes, known_class: Any, *, any_tasks: bool = False, missing: Any = None) -> Votes:
    """Return votes with the known classes that `known_class` gives for some of their tasks.

    Tasks without votes are ignored, as are labels that are None or NaN, or, in one entry for each row of a matrix of
    votes, the marker `missing`. If all tasks are without votes, this is an error unless `any_tasks` is true.
    """
    known = {} if known_class is None else _known_classes(votes, *known_class_columns(known_class), missing)
    rows = {name: place for place, name in enumerate(votes.tasks.tolist())}
    with_votes = {task: label for task, label in known.items() if task in rows}
    if not known or (any_tasks and not with_votes):
        return votes
    if not with_votes:
        raise ValueError(
            f"y must give the class of a task that has votes, such as {votes.tasks.tolist()[0]!r}; got "
            f"{next(iter(known))!r}. Are both numbers, or both text?"
        )
    classes = {name: place for place, name in enumerate(votes.classes.tolist())}
    strange = [repr(task) for task, label in with_votes.items() if label not in classes]
    if strange:
        raise ValueError(f"y must give classes that votes have, as {list(classes)[:SHOWN]}; task {strange[0]} has none")
    places = np.full(votes.tasks.size, -1, dtype=np.int64)
    places[[rows[task] for task in with_votes]] = [classes[label] for label in with_votes.values()]
    return replace(votes, known_class=places)


def _known_classes(votes: Votes, tasks: list[Any] | None, labels: list[Any], missing: Any) -> dict[Any, Any]:
    """Return the class of each task by its name; raise if a task has two."""
    if not labels:
        return {}
    absent = is_missing(as_vector(labels), missing if tasks is None else None)
    if tasks is None:
        if not votes.by_row or len(labels) != votes.tasks.size:
            raise ValueError(
                f"y must say which task each class is of, or have a class for each row of a matrix of votes; got "
                f"{len(labels)} classes for {votes.tasks.size} tasks. {KNOWN_CLASS_FORMS}"
            )
        tasks = votes.tasks.tolist()
    if len(tasks) != len(labels):
        raise ValueError(f"y must have as many labels as tasks; got {len(tasks)} tasks and {len(labels)} labels")
    known: dict[Any, Any] = {}
    for task, label, is_absent in zip(tasks, labels, absent, strict=True):
        if not is_absent and known.setdefault(task, label) != label:
            raise ValueError(f"y must give every task one class; task {task!r} has {known[task]!r} and {label!r}")
    return known
