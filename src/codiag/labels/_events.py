"""Tables of events, a row for each, which are counted; and tables in which somebody has counted them already."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from codiag._text import as_frame, column_of, values_of
from codiag.labels._labels import Labelled, Labels
from codiag.labels._read import coded_labels, of_table, without_row_numbers
from codiag.tensors import SparseTensor

logger = logging.getLogger("codiag.reading")

COUNTED = re.compile(
    r"n|nr|num|number|size|total|counts?|cnt|freq|frequency|occurrences"
    r"|(n|num|number|count)[_ ].+|.+[_ ](n|counts?|freq)",
    re.IGNORECASE,
)
"""Names that people and programs give to a column of counts."""


def count_rows(table: Any, modes: Any = None, *, absent: str = "zero", sort: bool = False) -> Labelled:
    """Return how many rows of a table have each combination of labels, a row for each event.

    If the events were counted before, so that the table has a column of counts, the entries are these. `absent` says
    what combinations are that the table does not list: without counts, that there were no events.
    """
    frame = as_frame(table)
    names = without_row_numbers(frame, list(frame.columns)) if modes is None else list(modes)
    unknown = [name for name in names if name not in frame.columns]
    if unknown:
        raise ValueError(f"modes must be columns of the table, {list(frame.columns)}; {unknown[0]!r} is none of them")
    column = _counts_among(frame, names, absent) if modes is None and names else None
    if column is not None:
        return of_table(frame, [name for name in names if name != column], column, absent, sort=sort)
    if len(names) < 3 or len(set(names)) < len(names):
        raise ValueError(f"events must have three columns of labels or more, by different names; got {names}")
    coded = [coded_labels(name, column_of(frame, name), sort=sort) for name in names]
    coords, shape = np.stack([codes for codes, _ in coded]), tuple(len(values) for _, values in coded)
    if not coords.size:
        raise ValueError("tensor must not be empty; the table has no rows")
    tensor = SparseTensor(coords, np.ones(coords.shape[1]), shape)
    return Labelled(tensor, Labels(tuple(names), tuple(values for _, values in coded)))


def _counts_among(frame: Any, names: Sequence[Any], absent: str) -> Any:
    """Return the column in which events were counted before, if one is called so, and say so; else None.

    Its entries are whole numbers, and no combination of the other labels occurs twice. If the last column is like that
    but has another name, a sentence tells how to say so.
    """
    named = [name for name in names if isinstance(name, str) and COUNTED.fullmatch(name)]
    column = named[0] if len(named) == 1 else names[-1]
    others = [name for name in names if name != column]
    counts = values_of(column_of(frame, column))
    is_plain = counts.dtype.kind in "iuf" and bool(np.all((counts % 1 == 0) & (counts >= 0)))
    if len(others) < 3 or not is_plain or not _are_distinct(frame, others):
        return None
    found = f"column {column!r} has whole numbers, and no combination of the other columns occurs twice"
    if not named:
        logger.info("%s; rows are counted, and it is a mode. If it is a count, say value=%r", found, str(column))
        return None
    rest = f"combinations that are not listed are {absent}" + ("; absent=missing changes that" * (absent == "zero"))
    logger.info("%s: it is read as counts, and %s. modes=%s counts rows", found, rest, [*map(str, names)])
    return column


def _are_distinct(frame: Any, names: Sequence[Any]) -> bool:
    """Return whether no combination of labels occurs twice."""
    coords = np.stack(
        [np.unique(values_of(column_of(frame, name)).astype(str), return_inverse=True)[1] for name in names]
    )
    return np.unique(coords, axis=1).shape[1] == coords.shape[1]
