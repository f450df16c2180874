"""Votes that are no judgments: errors, refusals and other labels that hardly occur."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from codiag._checks import as_number
from codiag.models.crowd._forms import VOTE_COLUMNS, as_frame, is_missing, vote_columns


def set_aside_invalid(
    votes: Any, *, least_share: float = 0.001, always_valid: Iterable[Any] = (), missing: Any = -1
) -> tuple[Any, dict[Any, int]]:
    """Set votes aside whose labels hardly occur, such as ``"ERROR"`` or ``"I cannot answer"`` among grades.

    As classes of their own they would only add noise: their confusion matrices cannot be estimated. If such labels have
    more than half of all votes, they are no mistakes, and none is set aside.

    Parameters
    ----------
    votes : data frame, mapping, tuple of three columns or array of shape (n_tasks, n_workers)
        Votes, as for `codiag.models.DawidSkene.fit`.
    least_share : float
        Share of all votes below which a label is invalid; 0 if all are valid.
    always_valid : iterable
        Labels that are valid however few votes they have, such as those of known classes.
    missing : object
        Marker of a cell without a vote in a matrix, besides NaN and None.

    Returns
    -------
    votes : as given
        The valid votes, in the form in which votes came: a mapping and a tuple with their three columns, a matrix with
        None for invalid votes.
    invalid : dict
        The number of votes of each invalid label, the most frequent first.

    See Also
    --------
    codiag.models.DawidSkene : Takes the votes.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.io import set_aside_invalid
    >>> task, judge = np.divmod(np.arange(3000), 3)
    >>> verdict = np.where(task % 2 == 0, "good", "poor").astype(object)
    >>> verdict[7] = "ERROR: timeout"
    >>> votes, invalid = set_aside_invalid((task, judge, verdict))
    >>> votes[2].size, invalid
    (2999, {'ERROR: timeout': 1})
    """
    as_number("least_share", least_share, zero=True)
    if isinstance(always_valid, str) or not isinstance(always_valid, Iterable):
        raise TypeError(f"always_valid must be a collection of labels, as [{always_valid!r}]; got {always_valid!r}")
    columns, _, shape = vote_columns(votes, missing)
    absent = is_missing(columns[2])
    labels = [None if gone else label for label, gone in zip(columns[2].tolist(), absent, strict=True)]
    kept = [None, *always_valid]  # the model refuses missing labels by their rows
    invalid = {
        label: count
        for label, count in Counter(labels).most_common()
        if count < least_share * len(labels) and label not in kept
    }
    # if more labels are as rare, they are measurements or texts rather than mistakes
    if sum(invalid.values()) > 0.5 * len(labels):
        invalid = {}
    return _selected(votes, columns, shape, np.array([label not in invalid for label in labels])), invalid


def _selected(votes: Any, columns: Any, shape: tuple[int, ...] | None, is_valid: np.ndarray) -> Any:
    """Return the votes that are valid, in the form of all votes."""
    frame = as_frame(votes)
    if frame is not None:
        return frame.filter(is_valid.tolist()).to_native()
    if shape is not None:
        matrix = np.full(shape, None, dtype=object)
        task, worker, label = (column[is_valid] for column in columns)
        matrix[task, worker] = label
        return matrix
    valid = [column[is_valid] for column in columns]
    return dict(zip(VOTE_COLUMNS, valid, strict=True)) if isinstance(votes, Mapping) else tuple(valid)
