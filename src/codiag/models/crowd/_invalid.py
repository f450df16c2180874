"""Votes that are no judgments: errors, refusals and other labels that hardly occur."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from codiag._checks import as_number
from codiag.models.crowd._forms import VOTE_COLUMNS, as_frame, is_missing, vote_columns

MOST_INVALID = 0.5
"""Largest share of invalid votes; if more labels are as rare, they are measurements or texts rather than mistakes."""


def set_aside_invalid(
    votes: Any, *, least_share: float = 0.001, keep: Iterable[Any] = (), missing: Any = -1
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
    keep : iterable
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
    columns, _, shape = vote_columns(votes, missing)
    names, codes = _encoded(columns[2])
    counts = np.bincount(codes, minlength=len(names))
    is_rare = (counts < least_share * codes.size) & ~np.isin(np.arange(len(names)), _places(names, keep))
    if np.sum(counts[is_rare]) > MOST_INVALID * codes.size:
        is_rare[:] = False
    rare = np.flatnonzero(is_rare)
    rare = rare[np.argsort(-counts[rare], kind="stable")]
    valid = _selected(votes, columns, shape, ~is_rare[codes])
    return valid, {names[place]: int(counts[place]) for place in rare}


def _encoded(labels: np.ndarray) -> tuple[list[Any], np.ndarray]:
    """Return different labels in the order of their first vote, and the place of each vote's label among them."""
    places: dict[Any, int] = {}
    entries = [None if absent else entry for entry, absent in zip(labels.tolist(), is_missing(labels), strict=True)]
    try:
        codes = [places.setdefault(entry, len(places)) for entry in entries]
    except TypeError as error:
        raise TypeError(f"label must contain values that can be hashed; {error}") from error
    return list(places), np.array(codes, dtype=np.int64)


def _places(names: list[Any], keep: Iterable[Any]) -> list[int]:
    """Return the places of labels to keep; missing labels are among these, since the model refuses them by row."""
    if isinstance(keep, str) or not isinstance(keep, Iterable):
        raise TypeError(f"keep must be a collection of labels, as [{keep!r}]; got {keep!r}")
    kept = [None, *keep]
    return [place for place, name in enumerate(names) if name in kept]


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
