"""Results as data frames of the library of the votes, as arrays, or as columns to write to a file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from codiag._checks import as_number
from codiag.models.crowd._dependence import Dependence
from codiag.models.crowd._em import Run
from codiag.models.crowd._forms import VOTE_COLUMNS
from codiag.models.crowd._ordered import may_be_ordered
from codiag.models.crowd._uncertainty import HIGH, LOW
from codiag.models.crowd._votes import Votes


def class_names(classes: np.ndarray, taken: Iterable[str] = ()) -> list[str]:
    """Return names of classes for columns of a table; with numbers if names would not be unique."""
    names = [str(name) for name in classes.tolist()]
    if len({*names, *taken}) < len(names) + len(list(taken)):
        return [f"class {place}: {name}" for place, name in enumerate(names)]
    return names


def frame_of(columns: Mapping[str, np.ndarray], library: str | None) -> Any:
    """Return columns as a data frame of a library, by the name of its module; as they are if that is None."""
    if library is None:
        return columns
    module = import_module(library)
    return (module.table if library == "pyarrow" else module.DataFrame)(dict(columns))


def user_columns(columns: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Return columns with the names of the user's table in place of task, worker and label.

    A name stays as it is if another column is called like that.
    """
    called = dict(zip(VOTE_COLUMNS, names, strict=True))
    called["next label"] = f"next {called['label']}"
    renamed = {name: called.get(name, name) for name in columns}
    taken = Counter(renamed.values())
    return {name if taken[renamed[name]] > 1 else renamed[name]: column for name, column in columns.items()}


class Tables:
    """Results in data frames of the library of the votes; arrays if votes came as arrays.

    Libraries with an index, as pandas, get one; others get the index in the first columns.
    """

    def __init__(self, votes: Votes) -> None:
        self.votes = votes

    def series(self, values: np.ndarray, name: str, index: np.ndarray, index_name: str) -> Any:
        """Return one value for each entry of the index."""
        return self._table({index_name: index}, values, name)

    def by_task(self, values: np.ndarray, name: str) -> Any:
        """Return one value for each task."""
        return self.series(values, name, self.votes.tasks, self.votes.names[0])

    def by_worker(self, values: np.ndarray, name: str) -> Any:
        """Return one value for each worker."""
        return self.series(values, name, self.votes.workers, self.votes.names[1])

    def by_class(self, values: np.ndarray) -> Any:
        """Return a row for each task, with a column for every class."""
        task, _, label = self.votes.names
        return self._table({task: self.votes.tasks}, values, self.votes.classes, label)

    def intervals(self, values: np.ndarray) -> Any:
        """Return a row for each worker, with columns for both ends of the interval of its accuracy."""
        return self._table({self.votes.names[1]: self.votes.workers}, values, np.array([LOW, HIGH]))

    def by_worker_pair(self, values: np.ndarray | sparse.csr_array) -> Any:
        """Return a row and a column for each worker; a sparse array as it is."""
        if sparse.issparse(values):
            return values
        worker = self.votes.names[1]
        return self._table({worker: self.votes.workers}, values, self.votes.workers, worker)

    def confusions(self, values: np.ndarray) -> Any:
        """Return rows by worker and given label, columns by true class; or an array (workers, given, true)."""
        if self.votes.library is None:
            return values
        n, k, _ = values.shape
        _, worker, label = self.votes.names
        rows = {worker: np.repeat(self.votes.workers, k), label: np.tile(self.votes.classes, n)}
        return self._table(rows, values.reshape(-1, k), self.votes.classes)

    def _table(
        self,
        index: Mapping[str, np.ndarray],
        values: np.ndarray,
        columns: str | np.ndarray,
        columns_name: str | None = None,
    ) -> Any:
        if self.votes.library is None:
            return values
        library = import_module(self.votes.library)
        if not hasattr(library, "MultiIndex"):
            names: Sequence[str] = [columns] if isinstance(columns, str) else class_names(columns, taken=index)
            return frame_of({**index, **dict(zip(names, np.atleast_2d(values.T), strict=True))}, self.votes.library)
        if len(index) > 1:
            rows = library.MultiIndex.from_arrays(list(index.values()), names=list(index))
        else:
            rows = library.Index(*index.values(), name=next(iter(index)))
        if isinstance(columns, str):
            return library.Series(values, index=rows, name=columns)
        return library.DataFrame(values, index=rows, columns=library.Index(columns, name=columns_name))


class CrowdTables:
    """The tables of a fitted crowd: labels, uncertain tasks, workers, and families of workers."""

    decision: str
    tasks_: np.ndarray
    workers_: np.ndarray
    classes_: np.ndarray
    _run: Run
    confusion_matrices_: np.ndarray
    _votes_of_tasks: np.ndarray
    _votes_of_workers: np.ndarray
    _family: np.ndarray
    _dependence: Dependence
    _accuracy: tuple[np.ndarray, np.ndarray, np.ndarray]
    _form: tuple[tuple[str, ...], str | None]
    """What the columns task, worker and label are called in the user's table, and the library of that table."""

    def _framed(self, columns: Mapping[str, np.ndarray]) -> Any:
        """Return columns by the user's names, as a data frame if votes came as one."""
        names, library = self._form
        return frame_of(user_columns(columns, names), library)

    def label_table(self) -> Any:
        """Return the labels as a table.

        Returns
        -------
        dict of arrays of shape (n_tasks,), or a data frame if votes came as one
            Task, label, its probability, and the probability of every class. Tasks and labels are called as in the
            user's table.

        See Also
        --------
        codiag.io.write_table : Write it to a file.
        DawidSkene.worker_table : The workers.

        Examples
        --------
        >>> from codiag.models import DawidSkene
        >>> from codiag.synthetic import crowd_votes, worker_confusions
        >>> crowd = crowd_votes(100, worker_confusions(7, 2, seed=0), seed=1)
        >>> list(DawidSkene(random_state=0).fit(crowd.votes).label_table())
        ['task', 'label', 'probability', 'p(0)', 'p(1)']
        """
        return self._framed(label_columns(self))

    def _label_columns(self) -> dict[str, np.ndarray]:
        check_is_fitted(self)
        classes = self._run.classes
        places = self._decided(classes)
        columns = {"task": self.tasks_, "label": self.classes_[places]}
        columns["probability"] = classes[np.arange(places.size), places]
        return columns | {
            f"p({name})": column for name, column in zip(class_names(self.classes_), classes.T, strict=True)
        }

    def _decided(self, classes: np.ndarray) -> np.ndarray:
        """Return the index of the label of every task, from the probabilities of the classes (tasks, classes)."""
        if self.decision == "mode":
            return np.argmax(classes, axis=1)
        return np.rint(classes @ np.arange(classes.shape[1])).astype(np.int64)

    def doubt_table(self, n_tasks: int | None = None) -> Any:
        """Return the tasks with the least certain labels, for which further votes are most useful, as a table.

        Parameters
        ----------
        n_tasks : int, optional
            Number of tasks; by default all, the least certain first.

        Returns
        -------
        dict of arrays of shape (n_tasks,), or a data frame if votes came as one
            Task, number of votes, label, probability of the label, in increasing order, second most probable label, and
            its probability. Tasks whose class was known have probability one. Tasks and labels are called as in the
            user's table.

        Examples
        --------
        >>> from codiag.models import DawidSkene
        >>> votes = [[0, 0, 0, 0], [1, 1, 1, 1], [0, 0, 0, 0], [1, 1, 1, 1], [1, 1, 0, 0]]    # tasks x workers
        >>> DawidSkene(random_state=0).fit(votes).doubt_table(1)["task"].tolist()
        [4]
        """
        return self._framed(doubt_columns(self, n_tasks))

    def _doubt_columns(self, n_tasks: int | None) -> dict[str, np.ndarray]:
        check_is_fitted(self)
        as_number("n_tasks", len(self.tasks_) if n_tasks is None else n_tasks, integer=True)
        classes = self._run.classes
        order = np.argsort(np.max(classes, axis=1), kind="stable")[:n_tasks]
        ranked = np.argsort(-classes[order], axis=1, kind="stable")[:, :2]
        columns = {"task": self.tasks_[order], "votes": self._votes_of_tasks[order]}
        for label, prefix in zip(ranked.T, ("", "next "), strict=False):
            columns[f"{prefix}label"] = self.classes_[label]
            columns[f"{prefix}probability"] = classes[order, label]
        return columns

    def worker_table(self) -> Any:
        """Return the workers as a table.

        Returns
        -------
        dict of arrays of shape (n_workers,)
            Worker, votes, accuracy, its standard error and interval, the number of the family, 0 for none, the mean
            weight that a vote carried, the probability to be at most one grade from the class if classes are three
            numbers or more, and all entries of the confusion matrices.

        See Also
        --------
        codiag.io.write_table : Write it to a file.
        DawidSkene.label_table : The labels.

        Examples
        --------
        >>> from codiag.models import DawidSkene
        >>> from codiag.synthetic import crowd_votes, worker_confusions
        >>> crowd = crowd_votes(100, worker_confusions(7, 2, seed=0), seed=1)
        >>> table = DawidSkene(random_state=0).fit(crowd.votes).worker_table()
        >>> table["accuracy"].shape
        (7,)
        """
        return self._framed(worker_columns(self))

    def _worker_columns(self) -> dict[str, np.ndarray]:
        check_is_fitted(self)
        accuracy, errors, intervals = self._accuracy
        columns = {"worker": self.workers_, "votes": self._votes_of_workers, "accuracy": accuracy}
        columns |= {"standard_error": errors, LOW: intervals[:, 0], HIGH: intervals[:, 1]}
        columns |= {"family": self._family + 1, "weight": self._dependence.weights}
        confusions, shares = np.swapaxes(self.confusion_matrices_, 1, 2), self._run.model.shares
        if may_be_ordered(self.classes_):
            near = np.abs(np.subtract.outer(np.arange(shares.size), np.arange(shares.size))) <= 1
            columns["within_one"] = np.einsum("wlc,lc,c->w", confusions, near, shares)
        names = class_names(self.classes_)
        return columns | {
            f"p({given}|{true})": confusions[:, row, column]
            for column, true in enumerate(names)
            for row, given in enumerate(names)
        }

    def family_table(self) -> Any:
        """Return the workers who think alike as a table, family by family.

        Returns
        -------
        dict of arrays, or a data frame if votes came as one
            The number of the family, from 1; the worker; the mean correlation with the others of the family, beyond
            what the classes explain; and the mean weight that a vote of the worker carried.

        See Also
        --------
        DawidSkene.worker_table : All workers.

        Examples
        --------
        >>> from codiag.models import DawidSkene
        >>> from codiag.synthetic import crowd_votes, worker_confusions
        >>> crowd = crowd_votes(100, worker_confusions(7, 2, seed=0), seed=1)
        >>> DawidSkene(random_state=0).fit(crowd.votes).family_table()["worker"].size
        0
        """
        check_is_fitted(self)
        order = np.argsort(self._family, kind="stable")
        order = order[self._family[order] >= 0]
        alike = np.empty(order.size)
        for number in np.unique(self._family[order]):
            members = self._family[order] == number
            matrix = self._dependence.pairs.among(order[members])
            np.fill_diagonal(matrix, np.nan)
            known = ~np.isnan(matrix)
            alike[members] = np.sum(np.where(known, matrix, 0.0), axis=1) / np.maximum(known.sum(axis=1), 1)
        columns = {"family": self._family[order] + 1, "worker": self.workers_[order], "alike": alike}
        return self._framed(columns | {"weight": self._dependence.weights[order]})


def label_columns(model: CrowdTables) -> dict[str, np.ndarray]:
    """Return the columns of `CrowdTables.label_table` as arrays, with task and label by these names."""
    return model._label_columns()


def doubt_columns(model: CrowdTables, n_tasks: int | None = None) -> dict[str, np.ndarray]:
    """Return the columns of `CrowdTables.doubt_table` as arrays, with task and label by these names."""
    return model._doubt_columns(n_tasks)


def worker_columns(model: CrowdTables) -> dict[str, np.ndarray]:
    """Return the columns of `CrowdTables.worker_table` as arrays, with worker by this name."""
    return model._worker_columns()


def column_names(model: CrowdTables) -> tuple[str, ...]:
    """Return what the columns task, worker and label are called in the user's table."""
    return model._form[0]
