"""Names of tasks, workers, nodes and symbols: anything hashable, in arrays that leave them as they are."""

from __future__ import annotations

from typing import Any

import numpy as np


def as_vector(entries: list[Any]) -> np.ndarray:
    """Return a vector whose entries are what they were: NumPy would make strings of mixed lists, rows of tuples."""
    if len({type(entry) for entry in entries}) == 1 and isinstance(entries[0], str | int | float | np.generic):
        return np.asarray(entries)
    vector = np.empty(len(entries), dtype=object)
    vector[:] = entries
    return vector


def sorted_names(entries: list[Any]) -> np.ndarray:
    """Return the different entries, sorted where they have an order, else in the order of their first appearance."""
    names = list(dict.fromkeys(entries))
    try:
        return as_vector(sorted(names))
    except TypeError:
        return as_vector(names)
