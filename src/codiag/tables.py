"""Tables of data: read votes and graphs from files, turn long tables into tensors, and write tables to files.

==================== ====================================================================================
`labelled_tensor`    A long table, one row for each entry, as a tensor with labels (`Labelled`, `Labels`).
`read_votes`         Votes of a crowd: task, worker and label.
`read_edges`         The edges of a network.
`read_graph`         A network with the weights of its edges.
`write_table`        Columns, to a file that spreadsheets read.
==================== ====================================================================================

Examples
--------
>>> import pandas as pd
>>> from codiag.tables import labelled_tensor
>>> table = pd.DataFrame({"who": list("aabb"), "what": list("xyxy"), "year": [1, 1, 2, 2], "count": range(4)})
>>> labelled_tensor(table).labels.names
('who', 'what', 'year')
"""

from __future__ import annotations

import csv
import io
import itertools
import logging
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from codiag._frames import SEPARATORS
from codiag._graph_files import read_edges, read_graph
from codiag._labelled import of_series, of_table
from codiag._labels import Labelled, Labels
from codiag._reading import as_path
from codiag._text_rows import ABSENT, checked_ending, is_whole, refuse_lines, table_rows
from codiag._writing import inert, written_at_once
from codiag.models._votes import NAMES, column_places, wanted_columns

told = logging.getLogger("codiag.reading")

__all__ = ["Labelled", "Labels", "labelled_tensor", "read_edges", "read_graph", "read_votes", "write_table"]


def read_votes(
    path: str | Path,
    *,
    task: str | None = None,
    worker: str | None = None,
    label: str | None = None,
    wide: bool = False,
    skip_missing: bool = False,
) -> dict[str, np.ndarray]:
    r"""Read votes: the columns task, worker and label of a table, or a table of tasks and workers.

    Parameters
    ----------
    path : str or Path
        A ``.csv`` or ``.tsv`` file, also ``.gz``, or a ``.parquet`` file. The first line names the columns (task, item
        or question; worker, rater, annotator or performer; label, rating, answer or response); other columns are
        ignored. Without a header there must be three columns of integers. Columns of integers are read as such, others
        as text.
    task, worker, label : str, optional
        The names of these columns, where they are others.
    wide : bool
        Whether the table has a row for each task, named in its first column or that called `task`, and a column for
        each worker, which the first line names. Cells that are empty, or NA, are no votes.
    skip_missing : bool
        Whether to leave out votes without a task, a worker or a label; by default these are refused.

    Returns
    -------
    dict of numpy.ndarray of shape (n_votes,)
        The columns ``task``, ``worker`` and ``label``: what `codiag.models.DawidSkene` takes.

    See Also
    --------
    codiag.models.DawidSkene : Takes the votes.
    codiag.datasets.load_crowd : Votes of published crowds.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from codiag.tables import read_votes
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "votes.csv"
    ...     _ = path.write_text("item,rater,rating\n1,ann,yes\n1,bob,no\n")
    ...     votes = read_votes(path)
    >>> votes["task"].tolist(), votes["worker"].tolist(), votes["label"].tolist()
    ([1, 1], ['ann', 'bob'], ['yes', 'no'])
    """
    path = as_path("path", path)
    rows = table_rows(path)
    if not rows:
        raise ValueError(f"{path.name} holds no votes")
    n_columns = 3 if wide else len(rows[0][1])
    if wide:
        if worker is not None or label is not None:
            raise ValueError("worker and label must be left out of a wide table, whose columns are workers")
        rows = _unpivoted(path.name, rows, task)
        places, named = dict(zip(NAMES, range(3), strict=True)), False
    else:
        places, named = _columns(path.name, rows[0][1], {"task": task, "worker": worker, "label": label})
    votes = rows[1:] if named else rows
    if skip_missing:
        whole = [one for one in votes if len(one[1]) != n_columns or not _absent_of(one[1], places)]
        if len(whole) < len(votes):
            n_left = len(votes) - len(whole)
            told.info("%d of %d votes have no task, worker or label, and are left out", n_left, len(votes))
        votes = whole
    _check_rows(path.name, votes, places, n_columns)
    if not votes:
        raise ValueError(f"{path.name} holds no votes, only names of columns or what is missing")
    return {name: _as_column([row[place].strip() for _, row in votes]) for name, place in places.items()}


def labelled_tensor(table: Any, *, modes: Any = None, value: Any = None, absent: str = "missing") -> Labelled:
    """Turn a long table, a row for each entry, into a tensor with labels.

    Parameters
    ----------
    table : data frame of pandas or polars, or pandas Series whose index has a level for each mode
        Labels of a mode are sorted, or in the order of their categories; there is one value for each combination.
    modes : sequence of str, optional
        The columns that hold labels, one for each mode; by default all but that of the values.
    value : str, optional
        The column that holds the entries; by default the last.
    absent : {"missing", "zero"}
        What combinations of labels that are not listed are: not observed, as in measurements and ratings, or zero, as
        in counts. NaN are missing in any case, unless few combinations are listed and the others are zero.

    Returns
    -------
    Labelled
        Tensor and labels, which `codiag.factorize` takes as they are.

    See Also
    --------
    codiag.factorize : Takes tensor and labels as they are.
    codiag.tensors.SparseTensor : Entries by their coordinates, without labels.

    Examples
    --------
    >>> import codiag
    >>> from codiag.tables import labelled_tensor
    >>> import pandas as pd
    >>> dishes = {"rice": 2.0, "fish soup": 4.0}
    >>> rows = [(person, dish, day, dishes[dish]) for person in "ab" for dish in dishes for day in (1, 2)]
    >>> table = pd.DataFrame(rows, columns=["person", "dish", "day", "rating"])
    >>> tensor, labels = labelled_tensor(table.iloc[:-1])
    >>> tensor.shape, labels.names, labels.values[1].tolist()
    ((2, 2, 2), ('person', 'dish', 'day'), ['fish soup', 'rice'])
    >>> fit = codiag.factorize(table, 1, seed=0)
    >>> fit.to_frames()["dish"][0].round(2).to_dict()
    {'fish soup': 0.89, 'rice': 0.45}
    """
    if hasattr(table, "columns"):
        return of_table(table, modes, value, absent)
    if hasattr(table, "index") and hasattr(table.index, "get_level_values"):
        if modes is not None or value is not None:
            raise TypeError("modes and value are for data frames; the index of a Series says both")
        return of_series(table, absent)
    raise TypeError(f"table must be a data frame, or a pandas Series with several levels; got {type(table).__name__}")


def write_table(path: str | Path, columns: Mapping[str, Iterable[Any]]) -> None:
    r"""Write columns to a ``.csv`` or ``.tsv`` file, completely or not at all.

    Text that a spreadsheet would run as a formula gets a single quote before it, as OWASP advises; numbers stay.

    Parameters
    ----------
    path : str or Path
        Where to write.
    columns : mapping of str to iterable
        Columns of one length, by name.

    See Also
    --------
    codiag.models.DawidSkene.label_table : Columns to write.
    codiag.models.MixedMembershipCommunities.membership_table : Columns to write.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from codiag.tables import write_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_table(Path(folder) / "labels.csv", {"task": [1, 2], "label": ["yes", "=1+1"]})
    ...     (Path(folder) / "labels.csv").read_text()
    "task,label\n1,yes\n2,'=1+1\n"
    """
    path = as_path("path", path)
    separator = SEPARATORS[checked_ending(path, tuple(SEPARATORS), must_exist=False)]
    rows = _checked_rows(columns)
    with written_at_once(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
        writers = [
            csv.writer(text, delimiter=separator, lineterminator="\n", quoting=quoting)
            for quoting in (csv.QUOTE_MINIMAL, csv.QUOTE_ALL)
        ]
        for row in itertools.chain([columns], rows):
            cells = [inert(cell) for cell in row]
            broken = any(isinstance(cell, str) and "\r" in cell for cell in cells)  # which csv leaves without quotes
            writers[broken].writerow(cells)
        text.detach()


def _checked_rows(columns: Mapping[str, Iterable[Any]]) -> list[tuple[Any, ...]]:
    """Return the rows of a table, or raise where its columns are not of one length."""
    if not isinstance(columns, Mapping):
        raise TypeError(f"columns must be a mapping from names to columns; got {type(columns).__name__}")
    single = [
        name for name, column in columns.items() if not isinstance(column, Iterable) or getattr(column, "ndim", 1) == 0
    ]
    if single:
        raise TypeError(f"columns must hold sequences; {single[0]!r} is {type(columns[single[0]]).__name__}")
    held = [list(column) for column in columns.values()]
    if len({len(column) for column in held}) > 1:
        lengths = ", ".join(f"{name} {len(column)}" for name, column in zip(columns, held, strict=True))
        raise ValueError(f"columns must be of one length; got {lengths}")
    return list(zip(*held, strict=True))


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
