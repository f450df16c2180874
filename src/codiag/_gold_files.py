"""Read gold labels, the known classes of some tasks, from a file beside that of the votes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from codiag._text_rows import ABSENT, refuse_lines, table_rows
from codiag.models._gold import COLUMNS, gold_columns


def read_gold(
    path: Path, votes: Mapping[str, np.ndarray], *, task: str | None = None, label: str | None = None
) -> tuple[list[Any], list[Any]]:
    """Return the tasks and their classes in a table, by the names that votes have for them.

    The columns are called as those of the votes, `task` and `label`, or as `codiag.models._gold` lists. Names are
    compared as text, as columns of numbers in one file may hold words in the other. Rows without a label are left out.
    """
    rows = table_rows(path)
    header = [field.strip() for field in rows[0][1]] if rows else []
    given = {called: word for called, word in ((task, "task"), (label, "label")) if called is not None}
    places = gold_columns([given.get(field, field) for field in header])
    if places is None:
        raise ValueError(
            f"line 1 of {path.name} must name the columns task and {' or '.join(COLUMNS['label'])}, or as the votes "
            f"do; it reads {', '.join(header)[:80] or 'nothing'}"
        )
    bad = [f"line {number} has {len(row)} columns, not {len(header)}" for number, row in rows if len(row) < len(header)]
    refuse_lines(path.name, bad, "gold labels")
    names = [{str(name): name for name in np.unique(votes[column]).tolist()} for column in ("task", "label")]
    cells = [[row[place].strip() for place in places] for _, row in rows[1:]]
    known = [pair for pair in cells if not any(cell.lower() in ABSENT for cell in pair)]
    tasks, labels = ([named.get(pair[i], pair[i]) for pair in known] for i, named in enumerate(names))
    return tasks, labels
