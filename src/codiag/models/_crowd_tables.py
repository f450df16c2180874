"""What a crowd is found to be, as columns to show or to write to a file."""

from __future__ import annotations

import numpy as np
from sklearn.utils.validation import check_is_fitted

from codiag._validation import as_number
from codiag.models._crowd_copies import Copies
from codiag.models._crowd_em import Run
from codiag.models._vote_tables import class_names


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
        """
        check_is_fitted(self)
        one, other = self.workers_[self._copies.pairs.T]
        columns = {"worker": one, "other": other, "shared": self._copies.shared, "agreed": self._copies.agreed}
        return columns | {"expected": self._copies.expected, "p": self._copies.p_values}
