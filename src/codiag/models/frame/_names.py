"""Names of tasks, workers, nodes and symbols: hashable objects in arrays that do not convert them."""

from __future__ import annotations

from typing import Any

import numpy as np


def as_vector(entries: list[Any]) -> np.ndarray:
    """Return a vector of unchanged entries; NumPy would convert mixed lists to strings and tuples to rows."""
    if len({type(entry) for entry in entries}) == 1 and isinstance(entries[0], str | int | float | np.generic):
        return np.asarray(entries)
    vector = np.empty(len(entries), dtype=object)
    vector[:] = entries
    return vector


def sorted_names(entries: list[Any]) -> np.ndarray:
    """Return the different entries, sorted if they can be compared, else in the order of their first occurrence."""
    names = list(dict.fromkeys(entries))
    try:
        return as_vector(sorted(names))
    except TypeError:
        return as_vector(names)
