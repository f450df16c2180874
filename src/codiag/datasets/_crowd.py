"""Votes of crowds, and true labels."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

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
    codiag.models.DawidSkene : Estimate labels and workers from votes.
    names : The names of all data sets.

    References
    ----------
    Y. Zhang, X. Chen, D. Zhou and M. I. Jordan, "Spectral Methods Meet EM", JMLR 17(102), 2016; "anesthesia" is of
    A. P. Dawid and A. M. Skene, Applied Statistics 28(1), 1979.

    Examples
    --------
    >>> from codiag.datasets import load_crowd
    >>> data = load_crowd("bluebird", download=True)  # doctest: +SKIP
    >>> data.votes["label"].size, data.truth["task"].size  # doctest: +SKIP
    (4212, 108)
    """
    source_of(name, "crowd")
    votes, *known = [_rows(path) for path in locate(name, download=download)]
    truth = np.unique(known[0], axis=0) if known else np.zeros((0, 2), dtype=np.int64)
    check_contents(name, [votes[np.lexsort(votes.T[::-1])], truth])
    votes_by_column = dict(zip(("task", "worker", "label"), votes.T, strict=True))
    return CrowdData(votes_by_column, {"task": truth[:, 0], "truth": truth[:, 1]})


def _rows(path: Path) -> np.ndarray:
    """Return a table of whole numbers: with commas and a line of names, or as published, without."""
    names = {"delimiter": ",", "skiprows": 1} if ".csv" in path.suffixes else {}
    return np.loadtxt(path, dtype=np.int64, ndmin=2, **names)  # type: ignore[call-overload]
