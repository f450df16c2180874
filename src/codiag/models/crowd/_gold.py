"""Gold labels: the classes of some tasks, which are known, in whatever form the user keeps them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from codiag.models.crowd._layout import absent
from codiag.models.crowd._votes import NAMES, Votes
from codiag.models.frame import as_vector

COLUMNS = {"task": NAMES["task"], "label": (*NAMES["label"], "truth", "true_label", "gold", "class")}
"""What the columns of gold labels may be called."""
FORMS = (
    "Pass a mapping from tasks to classes, a pandas Series with the tasks as its index, a data frame with the columns "
    "task and label, or a tuple of these two columns"
)
SHOWN = 8
"""Classes that a message names at most."""


def one_of(y: Any, gold: Any) -> Any:
    """Return the known classes, by whichever of both names they are given."""
    if y is not None and gold is not None:
        raise ValueError("gold and y are both known classes of tasks; got both. Give one of them")
    return gold if y is None else y


def with_gold(votes: Votes, gold: Any, *, any_tasks: bool = False, missing: Any = None) -> Votes:
    """Return votes that know the true classes which `gold` gives for some of their tasks.

    Tasks without votes are left out, and so are labels that are missing (None or NaN; in an entry for each row of a
    matrix of votes also the marker `missing`). If none is left, there are no known classes; where that is because no
    task has votes, it is an error, unless `any_tasks` are welcome.
    """
    gold = _by_row(votes, gold, missing) if _is_vector(gold) else gold
    known = {} if gold is None else _as_mapping(gold)
    rows = {name: place for place, name in enumerate(votes.tasks.tolist())}
    seen = {task: label for task, label in known.items() if task in rows}
    if not known or (any_tasks and not seen):
        return votes
    if not seen:
        raise ValueError(
            f"gold must give the class of a task that has votes; none of its {len(known)} tasks, the first of them "
            f"{next(iter(known))!r}, is one of the {votes.tasks.size}, the first of them {votes.tasks.tolist()[0]!r}. "
            "Are both numbers, or both text?"
        )
    classes = {name: place for place, name in enumerate(votes.classes.tolist())}
    strange = [(task, label) for task, label in seen.items() if label not in classes]
    if strange:
        named = ", ".join(map(repr, votes.classes.tolist()[:SHOWN])) + (", ..." if len(classes) > SHOWN else "")
        raise ValueError(
            f"gold must give classes that votes have, {named}; task {strange[0][0]!r} has {strange[0][1]!r}"
            f"{f', and {len(strange) - 1} more tasks have others' if len(strange) > 1 else ''}. Write labels as votes "
            "do, or leave these tasks out"
        )
    places = np.full(votes.tasks.size, -1, dtype=np.int64)
    places[[rows[task] for task in seen]] = [classes[label] for label in seen.values()]
    return replace(votes, gold=places)


def _is_vector(gold: Any) -> bool:
    """Tell a list, a vector or a series without names from what has a task for each class."""
    if not hasattr(gold, "to_numpy"):
        return isinstance(gold, list) or (isinstance(gold, np.ndarray) and gold.ndim > 0)
    return not (hasattr(gold, "index") or hasattr(gold, "columns"))


def _by_row(votes: Votes, gold: Any, missing: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return tasks and classes where `gold` has an entry for each row of a matrix of votes."""
    if isinstance(gold, np.ndarray) and gold.shape[1:] == (1,):
        gold = gold.ravel()  # a column, as scikit-learn takes it
    if isinstance(gold, np.ndarray) and gold.ndim > 1:
        raise ValueError(f"gold must be a vector; got an array of shape {np.shape(gold)}. {FORMS}")
    labels = as_vector(_as_entries(gold))
    if labels.size == 0:
        return labels, labels
    if not votes.by_row:
        raise TypeError(
            f"gold must say which task each class is of; got a {type(gold).__name__} of {labels.size}, which only a "
            f"matrix of votes has rows for. {FORMS}"
        )
    if labels.size != votes.tasks.size:
        raise ValueError(
            f"gold must have a class for each of the {votes.tasks.size} rows of votes; got {labels.size}. {FORMS}"
        )
    given = ~absent(labels, missing)
    return votes.tasks[given], labels[given]


def _as_mapping(gold: Any) -> dict[Any, Any]:
    """Return the class of each task by its name, or raise where a task has two."""
    gold = gold.collect() if hasattr(gold, "collect") else gold  # a lazy frame of polars
    tasks, labels = (_as_entries(column) for column in _columns(gold))
    if len(tasks) != len(labels):
        raise ValueError(f"gold must have as many labels as tasks; got {len(tasks)} tasks and {len(labels)} labels")
    gone = absent(as_vector(labels)) if labels else ()
    known: dict[Any, Any] = {}
    for task, label, missing in zip(tasks, labels, gone, strict=True):
        try:
            before = label if missing else known.setdefault(task, label)
            hash(label)
        except TypeError as error:
            raise TypeError(f"gold must have tasks and labels that can be told apart (hashable); {error}") from None
        if not missing and before != label:
            raise ValueError(f"gold must give every task one class; task {task!r} has {before!r} and {label!r}")
    return known


def _columns(gold: Any) -> tuple[Any, Any]:
    if hasattr(gold, "columns") and hasattr(gold, "shape"):
        return _named(gold, [str(name) for name in gold.columns])
    if isinstance(gold, Mapping):
        keys = list(gold)
        is_table = len(keys) == 2 and all(isinstance(gold[key], list | tuple | np.ndarray) for key in keys)
        return _named(gold, keys) if is_table else (keys, list(gold.values()))
    if hasattr(gold, "index") and hasattr(gold, "to_numpy"):  # a series of pandas
        return gold.index.to_numpy(), gold.to_numpy()
    if isinstance(gold, tuple) and len(gold) == 2:
        return gold
    raise TypeError(f"gold must hold the classes of tasks; got {type(gold).__name__}. {FORMS}")


def _named(table: Any, columns: list[Any]) -> tuple[Any, Any]:
    places = gold_columns([str(column) for column in columns])
    if places is None:
        raise ValueError(f"gold must have the columns task and {' or '.join(COLUMNS['label'])}; got {columns[:SHOWN]}")
    task, label = (columns[place] for place in places)
    return table[task], table[label]


def gold_columns(columns: list[str]) -> tuple[int, int] | None:
    """Return where the task and the label are among names of columns; None where one is not."""
    given = [column.strip().lower() for column in columns]
    found = [next((given.index(word) for word in words if word in given), -1) for words in COLUMNS.values()]
    return None if min(found) < 0 else (found[0], found[1])


def _as_entries(column: Any) -> list[Any]:
    if isinstance(column, str | bytes) or not isinstance(column, Iterable):
        raise TypeError(f"gold must have sequences of tasks and labels; got {column!r:.40}")
    entries = column.to_numpy() if hasattr(column, "to_numpy") else column
    return list(entries.tolist() if isinstance(entries, np.ndarray) else entries)
