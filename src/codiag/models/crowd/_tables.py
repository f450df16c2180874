"""Tables of results: data frames of pandas or polars, or arrays, as the votes were.

What a crowd is found to be, as columns to show or to write to a file.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from codiag._checks import as_number
from codiag.models.crowd._copies import Copies
from codiag.models.crowd._em import Run
from codiag.models.crowd._votes import Votes


def class_names(classes: np.ndarray, taken: Iterable[str] = ()) -> list[str]:
    """Return names of classes for columns of a table; numbered where they would not be told apart."""
    names = [str(name) for name in classes.tolist()]
    if len({*names, *taken}) < len(names) + len(list(taken)):
        return [f"class {place}: {name}" for place, name in enumerate(names)]
    return names


class Tables:
    """Results in the container of the votes: a data frame where votes came in one, an array otherwise."""

    def __init__(self, votes: Votes) -> None:
        self.votes = votes

    def series(self, values: np.ndarray, name: str, index: np.ndarray, index_name: str) -> Any:
        """Return one value for each of the index."""
        if self.votes.container == "pandas":
            import pandas as pd

            return pd.Series(values, index=pd.Index(index, name=index_name), name=name)
        if self.votes.container == "polars":
            import polars as pl

            return pl.DataFrame({index_name: index, name: values})
        return values

    def by_class(self, values: np.ndarray) -> Any:
        """Return a row for each task, with a column for every class."""
        if self.votes.container == "pandas":
            import pandas as pd

            index, columns = pd.Index(self.votes.tasks, name="task"), pd.Index(self.votes.classes, name="label")
            return pd.DataFrame(values, index=index, columns=columns)
        if self.votes.container == "polars":
            return self._polars({"task": self.votes.tasks}, values)
        return values

    def intervals(self, values: np.ndarray) -> Any:
        """Return a row for each worker, with the columns low and high."""
        if self.votes.container == "pandas":
            import pandas as pd

            return pd.DataFrame(values, index=pd.Index(self.votes.workers, name="worker"), columns=["low", "high"])
        if self.votes.container == "polars":
            import polars as pl

            return pl.DataFrame({"worker": self.votes.workers, "low": values[:, 0], "high": values[:, 1]})
        return values

    def confusions(self, values: np.ndarray) -> Any:
        """Return rows by worker and given label, columns by true class; or an array (workers, given, true)."""
        k = self.votes.classes.size
        if self.votes.container == "pandas":
            import pandas as pd

            return pd.DataFrame(values.reshape(-1, k), index=self._pairs, columns=pd.Index(self.votes.classes))
        if self.votes.container == "polars":
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


class CrowdTables:
    """The tables of a fitted crowd: labels, the tasks most in doubt, and workers."""

    tasks_: np.ndarray
    workers_: np.ndarray
    classes_: np.ndarray
    _run: Run
    _votes_of_tasks: np.ndarray
    _votes_of_workers: np.ndarray
    _copies: Copies
    _accuracy: tuple[np.ndarray, np.ndarray, np.ndarray]

    def label_table(self) -> dict[str, np.ndarray]:
        """Return the labels as columns to write to a file.

        Returns
        -------
        dict of arrays of shape (n_tasks,)
            Task, label, its probability, and the probability of every class.

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
        check_is_fitted(self)
        best = np.argmax(self._run.classes, axis=1)
        columns = {"task": self.tasks_, "label": self.classes_[best], "probability": np.max(self._run.classes, axis=1)}
        named = zip(class_names(self.classes_), self._run.classes.T, strict=True)
        return columns | {f"p({name})": column for name, column in named}

    def doubt_table(self, n_tasks: int | None = None) -> dict[str, np.ndarray]:
        """Return the tasks whose labels are least certain, on which further votes are worth most, as columns.

        Parameters
        ----------
        n_tasks : int, optional
            How many tasks; by default all, in the order of doubt.

        Returns
        -------
        dict of arrays of shape (n_tasks,)
            Task, its number of votes, label, the probability of the label, which rises, the next best label and the
            probability of that. Tasks whose class was known have probability one.

        Examples
        --------
        >>> from codiag.models import DawidSkene
        >>> votes = [[0, 0, 0, 0], [1, 1, 1, 1], [0, 0, 0, 0], [1, 1, 1, 1], [1, 1, 0, 0]]    # tasks x workers
        >>> DawidSkene(random_state=0).fit(votes).doubt_table(1)["task"].tolist()
        [4]
        """
        check_is_fitted(self)
        as_number("n_tasks", len(self.tasks_) if n_tasks is None else n_tasks, integer=True)
        classes = self._run.classes
        order = np.argsort(np.max(classes, axis=1), kind="stable")[:n_tasks]
        ranked = np.argsort(-classes[order], axis=1, kind="stable")[:, :2]
        columns = {"task": self.tasks_[order], "votes": self._votes_of_tasks[order]}
        for place, name in zip(ranked.T, ("", "next "), strict=False):
            columns[f"{name}label"] = self.classes_[place]
            columns[f"{name}probability"] = classes[order, place]
        return columns

    def worker_table(self) -> dict[str, np.ndarray]:
        """Return the workers as columns to write to a file.

        Returns
        -------
        dict of arrays of shape (n_workers,)
            Worker, votes, accuracy, its standard error and interval, and all entries of the confusion matrices.

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
        check_is_fitted(self)
        accuracy, deviations, intervals = self._accuracy
        columns = {
            "worker": self.workers_,
            "votes": self._votes_of_workers,
            "accuracy": accuracy,
            "standard_error": deviations,
            "low": intervals[:, 0],
            "high": intervals[:, 1],
        }
        names = class_names(self.classes_)
        cells = {
            f"p({given}|{true})": self._run.model.confusions[:, row, column]
            for column, true in enumerate(names)
            for row, given in enumerate(names)
        }
        return columns | cells

    def copy_table(self) -> dict[str, np.ndarray]:
        """Return the pairs of workers who copy from each other as columns, the most certain first.

        Returns
        -------
        dict of arrays of shape (n_pairs,)
            Both workers, the tasks they share, on how many of these they agree, on how many they would if they voted
            independently, and a bound of the probability that any honest pair of this crowd seems to copy as much.

        See Also
        --------
        DawidSkene.worker_table : The workers by themselves.

        Examples
        --------
        >>> from codiag.models import DawidSkene
        >>> from codiag.synthetic import crowd_votes, worker_confusions
        >>> crowd = crowd_votes(100, worker_confusions(7, 2, seed=0), seed=1)
        >>> list(DawidSkene(random_state=0).fit(crowd.votes).copy_table())[:3]
        ['worker', 'other', 'shared']
        """
        check_is_fitted(self)
        one, other = self.workers_[self._copies.pairs.T]
        columns = {"worker": one, "other": other, "shared": self._copies.shared, "agreed": self._copies.agreed}
        return columns | {"expected": self._copies.expected, "p": self._copies.p_values}
