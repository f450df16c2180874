"""Tell a matrix of tasks and workers from three columns task, worker and label that were put into an array or a list.

In a matrix all entries are labels, so that its lines share their values. In three columns they seldom do, and a worker
has seldom voted twice on a task, so that pairs of the first two hardly recur. Data that fit only one of the two are
read as that where they were passed as that, and refused otherwise.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

WAYS_OUT = (
    "pass the tuple (task, worker, label), or a dict or data frame with these columns; a matrix of tasks x workers is "
    "passed as an array"
)


FEW = 5
"""Numbers so few that they may be labels, wherever they are."""


def is_matrix(votes: Any, missing: Any) -> bool:
    """Tell a matrix of tasks and workers from three columns; refuse what is passed as one and looks like the other.

    A tuple of three is three columns. A list of three is either, and is refused where it looks like both or neither.
    Everything else of two dimensions is a matrix, and is refused where it looks like three columns alone.
    """
    if sparse.issparse(votes):
        raise TypeError("votes must not be a sparse matrix, where zero is no vote; pass a tuple of task, worker, label")
    if isinstance(votes, tuple) and len(votes) == 3:
        return False
    shape = _shape(votes)
    if len(shape) != 2:
        return False
    if isinstance(votes, list) and len(votes) == 3:
        return _is_list_of_rows(votes, shape, missing)
    for lines, way_out in _lines(votes, shape):
        if _may_be_columns(lines) and not _may_be_matrix(lines, missing):
            raise ValueError(
                "votes must be a tuple of three columns, not an array of them: an array is read as tasks x workers, "
                f"and this one of shape {shape} looks like task, worker and label; pass {way_out}, or if it is a "
                "matrix the columns it makes, (*np.indices(votes.shape).reshape(2, -1), votes.ravel())"
            )
    return True


def absent(column: np.ndarray, missing: Any = None) -> np.ndarray:
    """Tell where entries are None, NaN, NaT, what pandas has for them, or the marker `missing`."""
    if column.dtype.kind == "f":
        gone = np.isnan(column)
    elif column.dtype.kind in "mM":
        gone = np.isnat(column)
    elif column.dtype != object:
        gone = np.zeros(column.shape, dtype=bool)
    else:
        kinds = ("NAType", "NaTType")
        gone = np.array([e is None or type(e).__name__ in kinds or bool(e != e) for e in column], dtype=bool)
    if missing is not None and missing == missing:
        gone |= np.array([entry == missing for entry in column.tolist()], dtype=bool)
    return gone


def _shape(votes: Any) -> tuple[int, ...]:
    try:
        return np.shape(votes)
    except ValueError:  # rows of unequal length
        return ()


def _is_list_of_rows(votes: list[Any], shape: tuple[int, ...], missing: Any) -> bool:
    rows, columns = _may_be_matrix(votes, missing), _may_be_columns(votes)
    if rows == columns:
        raise ValueError(
            f"votes must say what they are: a list of three may be task, worker and label of {shape[1]} votes, or the "
            f"votes of {shape[1]} workers on three tasks, and these look like {'both' if rows else 'neither'}; "
            f"{WAYS_OUT}"
        )
    return rows


def _lines(votes: Any, shape: tuple[int, ...]) -> list[tuple[list[Any], str]]:
    """Return what may be three columns, with how to pass it as such."""
    found = []
    if shape[1] == 3:
        turned = isinstance(votes, np.ndarray)
        columns = list(votes.T) if turned else [list(column) for column in zip(*votes, strict=True)]
        found.append((columns, "tuple(votes.T)" if turned else "tuple(zip(*votes))"))
    if shape[0] == 3:
        found.append((list(votes), "tuple(votes)"))
    return found


def _may_be_matrix(lines: list[Any], missing: Any) -> bool:
    """Tell whether lines share their values, at least half of which are in two lines or more, or are few numbers."""
    values = [_values(line, missing) for line in lines]
    together = set().union(*values)
    shared = (values[0] & values[1]) | (values[0] & values[2]) | (values[1] & values[2])
    few = len(together) <= FEW and not any(isinstance(value, str) for value in together)
    return few or 2 * len(shared) >= len(together)


def _may_be_columns(lines: list[Any]) -> bool:
    """Tell whether votes have a task and a worker, most pairs of them occur once, and labels recur."""
    entries = [_entries(line) for line in lines]
    if any(np.any(absent(_objects(line))) for line in entries[:2]):
        return False
    try:
        pairs, labels = set(zip(*entries[:2], strict=True)), set(entries[2])
    except TypeError:  # values that cannot be told apart are named later
        return True
    n = len(entries[2])
    return 2 * len(pairs) > n and (len(labels) < n or n < 3)


def _values(line: Any, missing: Any) -> set[Any]:
    entries = _entries(line)
    gone = absent(_objects(entries), missing)
    try:
        return {entry for entry, none in zip(entries, gone, strict=True) if not none}
    except TypeError:
        return set()


def _entries(line: Any) -> list[Any]:
    return line.tolist() if hasattr(line, "tolist") else list(line)


def _objects(entries: list[Any]) -> np.ndarray:
    column = np.empty(len(entries), dtype=object)
    column[:] = entries
    return column
