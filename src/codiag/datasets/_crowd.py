"""Votes of crowds, and true labels."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from codiag._text import as_file, open_text, readable
from codiag.datasets._registry import check_contents, locate, source_of


@dataclass(frozen=True, eq=False)
class CrowdData:
    """Votes of a crowd, and the true labels of some tasks.

    Attributes
    ----------
    votes : dict of arrays
        ``task``, ``worker`` and ``label`` of every vote, as `codiag.models.DawidSkene` takes them.
    truth : dict of arrays
        ``task`` and ``truth``, for tasks whose true label is known.

    See Also
    --------
    load_crowd : Load a data set by name.
    read_crowd : Read files in the same format.
    codiag.models.DawidSkene : Takes `votes`.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.datasets import CrowdData
    >>> votes = {"task": np.array([1, 1, 2]), "worker": np.array([0, 1, 0]), "label": np.array([5, 5, 6])}
    >>> data = CrowdData(votes, {"task": np.array([1, 2]), "truth": np.array([5, 5])})
    >>> data.accuracy([1, 2], [5, 6])
    0.5
    """

    votes: dict[str, np.ndarray]
    truth: dict[str, np.ndarray]

    def accuracy(self, tasks: ArrayLike, labels: ArrayLike, n_tasks: int | None = None) -> float:
        """Return the share of labels that are right.

        Parameters
        ----------
        tasks, labels : array of shape (n,)
            Tasks, and the labels that a method gives them.
        n_tasks : int, optional
            The number of tasks to divide by; by default the number of those whose true label is known.

        Returns
        -------
        float
            Between 0 and 1.

        See Also
        --------
        codiag.models.DawidSkene.label_table : The labels of a model by task.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.datasets import CrowdData
        >>> truth = {"task": np.array([0, 1, 2, 3]), "truth": np.array(["cat", "dog", "cat", "cat"])}
        >>> CrowdData(votes={}, truth=truth).accuracy([0, 1, 2, 3], ["cat", "dog", "dog", "cat"])
        0.75
        """
        given = dict(zip(np.asarray(tasks).tolist(), np.asarray(labels).tolist(), strict=True))
        known = zip(self.truth["task"].tolist(), self.truth["truth"].tolist(), strict=True)
        return sum(given.get(task) == truth for task, truth in known) / (n_tasks or self.truth["task"].size)


def load_crowd(name: str, *, download: bool = False) -> CrowdData:
    """Load votes of a real crowd, and check that they are the published ones.

    Parameters
    ----------
    name : {"bluebird", "rte", "dog", "web", "anesthesia"}
        Which data set.
    download : bool
        Whether to download it if it is neither in ``CODIAG_DATA_DIR`` nor in the cache.

    Returns
    -------
    CrowdData
        ``votes``, a dict of the arrays ``task``, ``worker`` and ``label``; ``truth``, a dict of the arrays ``task`` and
        ``truth``; and ``accuracy(tasks, labels)``, the share of labels that are right.

    See Also
    --------
    read_crowd : Read votes from files of your own.
    codiag.io.read_votes : Read votes of other formats.
    codiag.models.DawidSkene : Estimate labels and workers from votes.
    names : The names of all data sets.

    Examples
    --------
    >>> from codiag.datasets import load_crowd
    >>> data = load_crowd("bluebird", download=True)  # doctest: +SKIP
    >>> data.votes["label"].size, data.truth["task"].size  # doctest: +SKIP
    (4212, 108)
    """
    source_of(name, "crowd")
    data = read_crowd(*locate(name, download=download))
    votes = np.stack(list(data.votes.values()), axis=1)
    truth = np.stack(list(data.truth.values()), axis=1)
    check_contents(name, [_sorted(votes), _sorted(truth)])
    return data


def read_crowd(votes: str | Path, truth: str | Path | None = None) -> CrowdData:
    r"""Read votes and truth: columns of whole numbers, with or without a line of names.

    Parameters
    ----------
    votes : str or Path
        A file, also ``.gz``, with the columns task, worker and label between commas, tabs or blanks.
    truth : str or Path, optional
        A file with the columns task and truth; rows may be repeated.

    Returns
    -------
    CrowdData
        As from `load_crowd`; ``truth`` is empty if no file of it is given.

    See Also
    --------
    load_crowd : Load a data set by name.
    codiag.io.read_votes : Read votes whose columns have other names.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from codiag.datasets import read_crowd
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "votes.txt"
    ...     _ = path.write_text("1 1 0\n1 2 0\n2 1 1\n")
    ...     read_crowd(path).votes["label"].tolist()
    [0, 0, 1]
    """
    task, worker, label = _numbers(as_file("votes", votes), 3).T
    known = np.zeros((0, 2), dtype=np.int64)
    if truth is not None:
        known = np.unique(_numbers(as_file("truth", truth), 2), axis=0)
    if np.unique(known[:, 0]).size < known.shape[0]:
        raise ValueError(f"{Path(str(truth)).name} must give every task one truth; some have two")
    return CrowdData({"task": task, "worker": worker, "label": label}, {"task": known[:, 0], "truth": known[:, 1]})


def _numbers(path: Path, n_columns: int) -> np.ndarray:
    """Return the first columns of a table of integers; an error names the first line that lacks some."""
    with readable(path), open_text(path) as lines:
        rows = [(number, line.replace(",", " ").split()) for number, line in enumerate(lines, 1) if line.strip()]
    if rows and not rows[0][1][0].lstrip("-").isdigit():
        rows = rows[1:]
    try:
        return np.array([[int(field) for field in fields[:n_columns]] for _, fields in rows]).reshape(-1, n_columns)
    except ValueError:
        bad = next(number for number, fields in rows if not _is_whole(fields, n_columns))
        raise ValueError(f"{path.name}, line {bad}, must contain {n_columns} whole numbers") from None


def _is_whole(fields: list[str], n_columns: int) -> bool:
    return len(fields) >= n_columns and all(field.lstrip("-").isdigit() for field in fields[:n_columns])


def _sorted(rows: np.ndarray) -> np.ndarray:
    return rows[np.lexsort(rows.T[::-1])]
