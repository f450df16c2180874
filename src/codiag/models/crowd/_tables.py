"""Results as data frames of the library of the votes, as arrays, or as columns."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from codiag._checks import as_number
from codiag.models.base import Model
from codiag.models.crowd._prior import HIGH, LOW
from codiag.models.crowd._votes import Votes


def class_names(classes: np.ndarray) -> list[str]:
    """Return names of classes for columns of a table; with numbers if names would not be unique."""
    names = [str(name) for name in classes.tolist()]
    if len(set(names)) < len(names):
        return [f"class {place}: {name}" for place, name in enumerate(names)]
    return names


def frame_of(columns: Mapping[str, np.ndarray], library: str | None) -> Any:
    """Return columns as a data frame of a library, by the name of its module; as they are if that is None."""
    if library is None:
        return columns
    module = import_module(library)
    return (module.table if library == "pyarrow" else module.DataFrame)(dict(columns))


class Tables:
    """Results as series and data frames of pandas if votes came in one, as arrays otherwise."""

    def __init__(self, votes: Votes) -> None:
        self.votes = votes

    def by_task(self, values: np.ndarray, name: str) -> Any:
        """Return one value for each task."""
        return self._table({"task": self.votes.tasks}, values, name)

    def by_worker(self, values: np.ndarray, columns: Any) -> Any:
        """Return one value for each worker, or one for each worker and each of these columns."""
        return self._table({"worker": self.votes.workers}, values, columns)

    def by_label(self, values: np.ndarray, name: str) -> Any:
        """Return one value for each class."""
        return self._table({"label": self.votes.classes}, values, name)

    def by_class(self, values: np.ndarray) -> Any:
        """Return a row for each task, with a column for every class."""
        return self._table({"task": self.votes.tasks}, values, self.votes.classes, "label")

    def confusions(self, values: np.ndarray) -> Any:
        """Return rows by worker and given label, columns by true class; or an array (workers, given, true)."""
        if self.votes.library != "pandas":
            return values
        n, k, _ = values.shape
        rows = {"worker": np.repeat(self.votes.workers, k), "label": np.tile(self.votes.classes, n)}
        return self._table(rows, values.reshape(-1, k), self.votes.classes)

    def _table(
        self, index: Mapping[str, np.ndarray], values: np.ndarray, columns: Any, columns_name: str | None = None
    ) -> Any:
        if self.votes.library != "pandas":
            return values
        import pandas as pd

        rows = (
            pd.Index(*index.values(), name=next(iter(index)))
            if len(index) == 1
            else pd.MultiIndex.from_arrays(list(index.values()), names=list(index))
        )
        if isinstance(columns, str):
            return pd.Series(values, index=rows, name=columns)
        return pd.DataFrame(values, index=rows, columns=pd.Index(columns, name=columns_name))


class CrowdTables(Model):
    """The tables of fitted votes: labels, the least certain of them, and workers."""

    def label_table(self) -> Any:
        """Return the labels as a table.

        Returns
        -------
        dict of arrays of shape (n_tasks,), or a data frame if votes came as one
            Task, label, its probability, and the probability of every class.

        Examples
        --------
        >>> from codiag.models import DawidSkene
        >>> from codiag.synthetic import crowd_votes, worker_confusions
        >>> crowd = crowd_votes(100, worker_confusions(7, 2, rng=0), rng=1)
        >>> list(DawidSkene(random_state=0).fit(crowd.votes).label_table())
        ['task', 'label', 'probability', 'p(0)', 'p(1)']
        """
        return frame_of(label_columns(self), self._votes.library)

    def least_confident(self, n: int | None = None) -> Any:
        """Return the tasks with the least certain labels, for which further votes are most useful, as a table.

        Parameters
        ----------
        n : int, optional
            Number of tasks; by default all.

        Returns
        -------
        dict of arrays of shape (n,), or a data frame if votes came as one
            Task, number of votes, label, probability of the label, in increasing order, second most probable label, and
            its probability. Tasks whose class was known have probability one.

        Examples
        --------
        >>> from codiag.models import DawidSkene
        >>> votes = [[0, 0, 0, 0], [1, 1, 1, 1], [0, 0, 0, 0], [1, 1, 1, 1], [1, 1, 0, 0]]    # tasks x workers
        >>> DawidSkene(init="majority").fit(votes).least_confident(1)["task"].tolist()
        [4]
        """
        return frame_of(least_confident_columns(self, n), self._votes.library)

    def worker_table(self) -> Any:
        """Return the workers as a table.

        Returns
        -------
        dict of arrays of shape (n_workers,), or a data frame if votes came as one
            Worker, votes, accuracy, its standard error and interval, and all entries of the confusion matrices; of a
            `Jury` also the number of the cluster, 0 for none, and the mean weight that a vote carried.

        Examples
        --------
        >>> from codiag.models import DawidSkene
        >>> from codiag.synthetic import crowd_votes, worker_confusions
        >>> crowd = crowd_votes(100, worker_confusions(7, 2, rng=0), rng=1)
        >>> table = DawidSkene(random_state=0).fit(crowd.votes).worker_table()
        >>> table["accuracy"].shape
        (7,)
        """
        return frame_of(worker_columns(self), self._votes.library)


def label_columns(model: CrowdTables) -> dict[str, np.ndarray]:
    """Return the columns of `CrowdTables.label_table` as arrays."""
    check_is_fitted(model)
    places = np.argmax(model._classes, axis=1)
    columns = {"task": model.tasks_, "label": model.classes_[places]}
    columns["probability"] = model._classes[np.arange(places.size), places]
    names = class_names(model.classes_)
    return columns | {f"p({name})": column for name, column in zip(names, model._classes.T, strict=True)}


def least_confident_columns(model: CrowdTables, n: int | None = None) -> dict[str, np.ndarray]:
    """Return the columns of `CrowdTables.least_confident` as arrays."""
    check_is_fitted(model)
    as_number("n", len(model.tasks_) if n is None else n, integer=True)
    order = np.argsort(np.max(model._classes, axis=1), kind="stable")[:n]
    ranked = np.argsort(-model._classes[order], axis=1, kind="stable")[:, :2]
    columns = {"task": model.tasks_[order], "votes": model._votes.votes_of_tasks[order]}
    for label, prefix in zip(ranked.T, ("", "next "), strict=False):
        columns[f"{prefix}label"] = model.classes_[label]
        columns[f"{prefix}probability"] = model._classes[order, label]
    return columns


def worker_columns(model: CrowdTables) -> dict[str, np.ndarray]:
    """Return the columns of `CrowdTables.worker_table` as arrays."""
    check_is_fitted(model)
    names = class_names(model.classes_)
    return model._workers | {
        f"p({given}|{true})": model._confusions[:, row, column]
        for column, true in enumerate(names)
        for row, given in enumerate(names)
    }


def keep_results(
    model: Any, votes: Votes, classes: np.ndarray, confusions: np.ndarray, shares: np.ndarray, workers: dict[str, Any]
) -> None:
    """Set the attributes that all models of votes have.

    `workers` has the columns accuracy, standard_error and both ends of the interval, and others of the table of
    workers.
    """
    tables = Tables(votes)
    model._votes, model._classes, model._confusions = votes, classes, confusions
    model._workers = {"worker": votes.workers, "votes": votes.votes_of_workers, **workers}
    model.tasks_, model.workers_, model.classes_ = votes.tasks, votes.workers, votes.classes
    model.labels_ = tables.by_task(votes.classes[np.argmax(classes, axis=1)], "agg_label")
    model.probas_ = tables.by_class(classes)
    model.confusion_matrices_ = tables.confusions(confusions)
    model.priors_ = tables.by_label(shares, "prior")
    model.worker_accuracy_ = tables.by_worker(workers["accuracy"], "accuracy")
    model.worker_accuracy_standard_errors_ = tables.by_worker(workers["standard_error"], "standard_error")
    model.worker_accuracy_interval_ = tables.by_worker(np.stack([workers[LOW], workers[HIGH]], axis=1), [LOW, HIGH])
