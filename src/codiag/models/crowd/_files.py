"""Read gold labels, the known classes of some tasks, from a file beside that of the votes.

Read votes of a crowd from a table, whose columns may have other names, or be workers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from codiag._text import ABSENT, is_whole, refuse_lines, table_rows
from codiag.models.crowd._gold import COLUMNS, gold_columns
from codiag.models.crowd._votes import NAMES, column_places, wanted_columns


def read_gold(
    path: Path, votes: Mapping[str, np.ndarray], *, task: str | None = None, label: str | None = None
) -> tuple[list[Any], list[Any]]:
    """Return the tasks and their classes in a table, by the names that votes have for them.

    The columns are called as those of the votes, `task` and `label`, or as `codiag.models.crowd._gold` lists. Names are
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


def votes_in(
    path: Path, columns: Mapping[str, str | None], *, wide: bool, skip_missing: bool
) -> tuple[dict[str, np.ndarray], str]:
    """Return the columns of votes, as `codiag.io.read_votes` does, and a sentence about votes that are left out.

    The sentence is empty where all votes are taken. `columns` are other names of the task, the worker and the label.
    """
    rows = table_rows(path)
    if not rows:
        raise ValueError(f"{path.name} holds no votes")
    n_columns = 3 if wide else len(rows[0][1])
    if wide:
        if columns["worker"] is not None or columns["label"] is not None:
            raise ValueError("worker and label must be left out of a wide table, whose columns are workers")
        rows = _unpivoted(path.name, rows, columns["task"])
        places, named = dict(zip(NAMES, range(3), strict=True)), False
    else:
        places, named = _columns(path.name, rows[0][1], columns)
    votes, left_out = rows[1:] if named else rows, ""
    if skip_missing:
        whole = [one for one in votes if len(one[1]) != n_columns or not _absent_of(one[1], places)]
        if len(whole) < len(votes):
            n_left = len(votes) - len(whole)
            left_out = f"{n_left} of {len(votes)} votes have no task, worker or label, and are left out"
        votes = whole
    _check_rows(path.name, votes, places, n_columns)
    if not votes:
        raise ValueError(f"{path.name} holds no votes, only names of columns or what is missing")
    return {name: _as_column([row[place].strip() for _, row in votes]) for name, place in places.items()}, left_out


def _columns(name: str, first: list[str], given: Mapping[str, str | None]) -> tuple[dict[str, int], bool]:
    """Return the positions of the columns, and whether the first line is a header."""
    wanted = {column: called for column, called in given.items() if called is not None}
    fields = [field.strip() for field in first]
    unknown = [column for column, called in wanted.items() if called not in fields]
    if unknown:
        column = unknown[0]
        raise ValueError(
            f"{column} must be a column of {name}, one of {', '.join(fields)[:200]}; got {wanted[column]!r}"
        )
    taken = {called: column for column, called in wanted.items()}
    if len(taken) < len(wanted):
        raise ValueError(f"task, worker and label must be three columns; got {', '.join(wanted.values())}")
    left = [taken.get(field, "" if field.lower() in wanted else field) for field in fields]
    places = column_places(left)
    if places is not None:
        return places, True
    if not wanted and len(first) == 3 and all(is_whole(field) for field in fields):
        return dict(zip(NAMES, range(3), strict=True)), False
    raise ValueError(
        f"line 1 of {name} must name the columns {wanted_columns()}; it reads {', '.join(first)[:80]}. Name others by "
        "`task`, `worker` and `label`; wide=True is for a table with a row for each task and a column for each worker"
    )


def _unpivoted(name: str, rows: list[tuple[int, list[str]]], task: str | None) -> list[tuple[int, list[str]]]:
    """Return the votes in a table of tasks and workers as rows of task, worker and label."""
    workers = [field.strip() for field in rows[0][1]]
    if task is not None and task not in workers:
        raise ValueError(f"task must be a column of {name}, one of {', '.join(workers)[:200]}; got {task!r}")
    if len(workers) < 2 or len(set(workers)) < len(workers):
        raise ValueError(f"line 1 of {name} must name the tasks' column and, each once, workers; it has {workers[:8]}")
    place = 0 if task is None else workers.index(task)
    bad = [
        f"line {number} has {len(row)} columns, not {len(workers)}" for number, row in rows if len(row) != len(workers)
    ]
    refuse_lines(name, bad, "votes")
    _refuse_repeated_tasks(name, [row[place].strip() for _, row in rows[1:]])
    return [
        (number, [row[place], worker, label])
        for number, row in rows[1:]
        for column, (worker, label) in enumerate(zip(workers, row, strict=True))
        if column != place and label.strip().lower() not in ABSENT
    ]


def _refuse_repeated_tasks(name: str, tasks: list[str]) -> None:
    """Raise where a table that is said to be wide has several rows of a task, as one of votes has."""
    named = Counter(task for task in tasks if task.lower() not in ABSENT)
    task, n_rows = named.most_common(1)[0] if named else ("", 0)
    if n_rows > 1:
        raise ValueError(
            f"wide=True needs each task once in {name}; {task} has {n_rows} rows. Leave `wide` out where a row is one "
            "vote, with its task, worker and label"
        )


def _absent_of(row: list[str], places: Mapping[str, int]) -> list[str]:
    return [column for column, place in places.items() if row[place].strip().lower() in ABSENT]


def _check_rows(name: str, votes: list[tuple[int, list[str]]], places: dict[str, int], n_columns: int) -> None:
    bad, n_absent = [], 0
    for number, row in votes:
        if len(row) != n_columns:
            bad.append(f"line {number} has {len(row)} columns, not {n_columns}")
        else:
            empty = _absent_of(row, places)
            n_absent += bool(empty)
            bad += [f"line {number} has no {' and no '.join(empty)}"] if empty else []
    refuse_lines(name, bad, "votes", "skip_missing=True leaves these out" if n_absent == len(bad) else "")


def _as_column(fields: list[str]) -> np.ndarray:
    """Return an array of integers where all fields are integers without leading zeros, otherwise of text."""
    if all(is_whole(field) for field in fields):
        return np.array([int(field) for field in fields])
    return np.array(fields)
