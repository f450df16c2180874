"""Read votes and known classes from tables in text, JSON lines or Parquet files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from codiag._text import ABSENT, is_whole, refuse_lines, table_rows
from codiag.models.crowd._forms import (
    GOLD_COLUMNS,
    VOTE_COLUMNS,
    NamedVotes,
    find_columns,
    refuse_scored_texts,
    wanted_columns,
)
from codiag.models.crowd._preferences import PAIR_COLUMNS, wanted_pair_columns

Line = tuple[int, list[str]]
"""Number and fields of a line."""


def read_gold(
    path: Path, votes: Mapping[str, np.ndarray], *, task: str | None = None, label: str | None = None
) -> tuple[list[Any], list[Any]]:
    """Return the tasks and their known classes in a table, by the names that votes have for them.

    The columns have the names `task` and `label`, or one of `GOLD_COLUMNS`. Names of tasks and classes are compared as
    text, since a column may hold only numbers in one file and words in the other. Rows without a label are ignored.
    """
    lines = _with_joined_column(path.name, table_rows(path), task)
    header = [field.strip() for field in lines[0][1]] if lines else []
    renamed = {name: column for name, column in ((task, "task"), (label, "label")) if name is not None}
    places = find_columns([renamed.get(field, field) for field in header], GOLD_COLUMNS)
    if places is None:
        raise ValueError(
            f"line 1 of {path.name} must name the columns task and {' or '.join(GOLD_COLUMNS['label'])}, or as the "
            f"votes do; it reads {', '.join(header)[:80] or 'nothing'}"
        )
    bad = [
        f"line {number} has {len(row)} columns, not {len(header)}" for number, row in lines if len(row) < len(header)
    ]
    refuse_lines(path.name, bad, "gold labels")
    cells = [[row[place].strip() for place in places.values()] for _, row in lines[1:]]
    present = [pair for pair in cells if not any(_is_absent(cell) for cell in pair)]
    names = [{str(name): name for name in np.unique(votes[column]).tolist()} for column in GOLD_COLUMNS]
    tasks, labels = ([known.get(pair[i], pair[i]) for pair in present] for i, known in enumerate(names))
    return tasks, labels


def votes_in(
    path: Path, columns: Mapping[str, str | None], *, wide: bool | None, skip_missing: bool
) -> tuple[NamedVotes, str]:
    """Return the columns of votes, as `codiag.io.read_votes` does, and a sentence about votes that were left out.

    The sentence is empty if no vote was left out. `columns` has the names of the columns task, worker and label; None
    for the usual ones. If `wide` is None, tables that can only have a column for each worker are read as such.
    """
    lines = _with_joined_column(path.name, table_rows(path), columns["task"])
    if not lines or not lines[0][1]:
        raise ValueError(f"{path.name} holds no votes")
    if wide is None:
        wide = not any(columns.values()) and _is_wide(lines)
    n_columns, sentence = 3 if wide else len(lines[0][1]), ""
    places = {column: place for place, column in enumerate(VOTE_COLUMNS)}
    header, names = [field.strip() for field in lines[0][1]], list(VOTE_COLUMNS)
    if wide:
        if columns["worker"] is not None or columns["label"] is not None:
            raise ValueError("worker and label must be left out of a wide table, whose columns are workers")
        votes = _unpivoted(path.name, lines, columns["task"])
        names[0] = columns["task"] or header[0] or names[0]
    else:
        named = _named_places(path.name, lines[0][1], columns)
        places, votes = (places, lines) if named is None else (named, lines[1:])
        names = names if named is None else [header[place] for place in named.values()]
    if skip_missing:
        complete = [line for line in votes if len(line[1]) != n_columns or not _absent_columns(line[1], places)]
        if len(complete) < len(votes):
            n_incomplete = len(votes) - len(complete)
            sentence = f"{n_incomplete} of {len(votes)} votes have no task, worker or label, and are left out"
        votes = complete
    _check_rows(path.name, votes, places, n_columns)
    if not votes:
        raise ValueError(f"{path.name} holds no votes, only names of columns or missing values")
    read = {name: _as_column([row[place].strip() for _, row in votes]) for name, place in places.items()}
    return NamedVotes(read, names), sentence


def pairs_in(path: Path, columns: Mapping[str, str | None]) -> tuple[dict[str, np.ndarray], str]:
    """Return the columns of preferences, as `preference_votes` takes them, and a sentence about rows left out.

    The sentence is empty if no row was left out. `columns` has the names of the columns task, worker and label, the
    choice; None for the usual ones.
    """
    (_, header), *rows = _with_joined_column(path.name, table_rows(path), columns["task"]) or [(1, [])]
    renamed = _renamed(path.name, [field.strip() for field in header], columns)
    named = PAIR_COLUMNS if columns["label"] is None else PAIR_COLUMNS | {"choice": ("label",)}
    places = find_columns(renamed, named)
    if places is None:
        raise ValueError(
            f"line 1 of {path.name} must name the columns {wanted_pair_columns()}; it reads "
            f"{', '.join(header)[:80] or 'nothing'}"
        )
    bad = [
        f"line {number} has {len(row)} columns, not {len(header)}" for number, row in rows if len(row) != len(header)
    ]
    refuse_lines(path.name, bad, "preferences")
    complete = [row for _, row in rows if not _absent_columns(row, places)]
    if not complete:
        raise ValueError(f"{path.name} holds no preferences, only names of columns or missing values")
    n_incomplete = len(rows) - len(complete)
    sentence = f"{n_incomplete} of {len(rows)} rows lack one of {', '.join(places)}, and are left out"
    read = {name: _as_column([row[place].strip() for row in complete]) for name, place in places.items()}
    return read, sentence if n_incomplete else ""


def _named_places(name: str, first: list[str], given: Mapping[str, str | None]) -> dict[str, int] | None:
    """Return the positions of the columns; None if the first line is a vote, and columns have no names."""
    wanted = [called for called in given.values() if called is not None]
    fields = [field.strip() for field in first]
    places = find_columns(_renamed(name, fields, given), VOTE_COLUMNS)
    if places is None and (wanted or len(first) != 3 or not all(is_whole(field) for field in fields)):
        raise ValueError(
            f"line 1 of {name} must name the columns {wanted_columns()}; it reads {', '.join(first)[:80]}. Name others "
            "by `task`, `worker` and `label`; wide=True is for a table with a row for each task and a column for each "
            "worker"
        )
    if places is not None and given["label"] is None:
        refuse_scored_texts(fields, places["label"])
    return places


def _with_joined_column(name: str, lines: list[Line], column: str | None) -> list[Line]:
    """Return lines with one more column, if `column` names several with commas between: their texts, joined."""
    fields = [field.strip() for field in lines[0][1]] if lines else []
    parts = [part.strip() for part in (column or "").split(",")]
    if column is None or column in fields or len(parts) == 1 or not set(parts) <= set(fields):
        return lines
    bad = [
        f"line {number} has {len(row)} columns, not {len(fields)}" for number, row in lines if len(row) != len(fields)
    ]
    refuse_lines(name, bad, "votes")
    places = [fields.index(part) for part in parts]
    joined = [(number, [*row, " / ".join(row[place].strip() for place in places)]) for number, row in lines[1:]]
    return [(lines[0][0], [*lines[0][1], column]), *joined]


def _renamed(name: str, fields: Sequence[str], given: Mapping[str, str | None]) -> list[str]:
    """Return the names of columns, with the usual ones in place of those that the user names for them."""
    wanted = {column: called for column, called in given.items() if called is not None}
    for column, called in wanted.items():
        if called not in fields:
            raise ValueError(f"{column} must be a column of {name}, one of {', '.join(fields)[:200]}; got {called!r}")
    columns = {called: column for column, called in wanted.items()}
    if len(columns) < len(wanted):
        raise ValueError(f"task, worker and label must be three columns; got {', '.join(wanted.values())}")
    return [columns.get(field, "" if field.lower() in wanted else field) for field in fields]


def _is_wide(lines: Sequence[Line]) -> bool:
    """Return whether a table can only have a row for each task, named in its first column, and a column a worker.

    Tasks must occur once, and no other column may have a name of those of votes or of known classes. All other columns
    hold labels, so that at least half of their values must occur in two columns.
    """
    (_, header), *rows = lines
    fields = [field.strip().lower() for field in header]
    reserved = {*VOTE_COLUMNS["worker"], *VOTE_COLUMNS["label"], *GOLD_COLUMNS["label"]}
    if len(fields) < 3 or len(set(fields)) < len(fields) or all(map(is_whole, fields)) or reserved & {*fields}:
        return False
    if not rows or any(len(row) != len(fields) for _, row in rows):
        return False
    tasks, *workers = zip(*(row for _, row in rows), strict=True)
    columns = Counter(value for cells in workers for value in {cell.strip() for cell in cells if not _is_absent(cell)})
    n_shared = sum(count > 1 for count in columns.values())
    return len(set(tasks)) == len(tasks) and n_shared > 0 and 2 * n_shared >= len(columns)


def _unpivoted(name: str, lines: Sequence[Line], task: str | None) -> list[Line]:
    """Return a table with a row for each task and a column for each worker as rows of task, worker and label."""
    workers = [field.strip() for field in lines[0][1]]
    if task is not None and task not in workers:
        raise ValueError(f"task must be a column of {name}, one of {', '.join(workers)[:200]}; got {task!r}")
    if len(workers) < 2 or len(set(workers)) < len(workers):
        raise ValueError(f"line 1 of {name} must name the tasks' column and, each once, workers; it has {workers[:8]}")
    place, width = 0 if task is None else workers.index(task), len(workers)
    bad = [f"line {number} has {len(row)} columns, not {width}" for number, row in lines if len(row) != width]
    refuse_lines(name, bad, "votes")
    repeated = Counter(row[place].strip() for _, row in lines[1:] if not _is_absent(row[place])).most_common(1)
    if repeated and repeated[0][1] > 1:
        raise ValueError(
            f"wide=True needs each task once in {name}; {repeated[0][0]} has {repeated[0][1]} rows. Leave `wide` out "
            "if a row is one vote, with its task, worker and label"
        )
    return [
        (number, [row[place], worker, label])
        for number, row in lines[1:]
        for column, (worker, label) in enumerate(zip(workers, row, strict=True))
        if column != place and not _is_absent(label)
    ]


def _check_rows(name: str, votes: Sequence[Line], places: Mapping[str, int], n_columns: int) -> None:
    bad, way_out = [], "skip_missing=True leaves these out"
    for number, row in votes:
        if len(row) != n_columns:
            bad.append(f"line {number} has {len(row)} columns, not {n_columns}")
            way_out = ""
        elif absent := _absent_columns(row, places):
            bad.append(f"line {number} has no {' and no '.join(absent)}")
    refuse_lines(name, bad, "votes", way_out)


def _absent_columns(row: list[str], places: Mapping[str, int]) -> list[str]:
    return [column for column, place in places.items() if _is_absent(row[place])]


def _is_absent(cell: str) -> bool:
    return cell.strip().lower() in ABSENT


def _as_column(fields: list[str]) -> np.ndarray:
    """Return an array of integers if all fields are integers without leading zeros, otherwise of text."""
    return np.array([int(field) for field in fields] if all(map(is_whole, fields)) else fields)
