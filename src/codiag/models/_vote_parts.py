"""Votes that come in parts of a table: three whole numbers are kept of each, and names once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from codiag._parts import as_parts
from codiag.models._names import sorted_names
from codiag.models._sums import MomentSums
from codiag.models._votes import Votes, as_votes, check_cells, check_classes

COLUMNS = "task", "worker", "label"
NAMES = "tasks", "workers", "classes"


@dataclass(eq=False)
class VoteSums(MomentSums):
    """Votes by number, with the names that the numbers stand for; those of several parts are merged by name."""

    own: ClassVar[frozenset[str]] = frozenset({"votes"})

    votes: Votes | None = None

    @property
    def size(self) -> int:
        return 0 if self.votes is None else self.votes.label.size

    def of(self, part: Any) -> Self:
        """Return the votes of one part of a table."""
        if not _is_table(part):
            raise TypeError(
                "X must have parts that are tables, a data frame, a dict or a tuple of the columns task, worker and "
                f"label; got {type(part).__name__}"
            )
        return type(self)(as_votes(part) if _n_rows(part) else None)

    def merge(self, other: Self) -> Self:
        """Add other votes to these, by the names of tasks, workers and labels, and return these."""
        if self.votes is None or other.votes is None:
            self.votes = other.votes if self.votes is None else self.votes
            return self
        codes: list[np.ndarray] = []
        names: list[np.ndarray] = []
        for column, name in zip(COLUMNS, NAMES, strict=True):
            _check_kinds(column, getattr(self.votes, name), getattr(other.votes, name))
            known, places = _union(getattr(self.votes, name), getattr(other.votes, name))
            parts = (self.votes, other.votes)
            codes.append(np.concatenate([place[getattr(v, column)] for v, place in zip(parts, places, strict=True)]))
            names.append(known)
        task, worker, label = codes
        tasks, workers, classes = names
        self.votes = Votes(task, worker, label, tasks, workers, classes, self.votes.container)
        return self

    def finish(self) -> Votes:
        """Return all votes."""
        if self.votes is None:
            raise ValueError("votes must hold at least one vote; got none")
        check_cells(self.votes)
        return self.votes


def votes_at_hand(data: Any, missing: Any) -> Votes:
    """Return votes in whatever form they are, or in parts of a table."""
    parts = None if _is_table(data) else as_parts(data, _is_table)
    found = as_votes(data, missing) if parts is None else parts.reduce(_votes_of_part).finish()
    check_classes(found)
    return found


def refuse_parts(data: Any) -> None:
    """Raise where votes to predict from come in parts."""
    if not _is_table(data) and as_parts(data, _is_table) is not None:
        raise TypeError(
            f"X must be votes in one table for predict; got a {type(data).__name__} of parts. Votes of a task may be "
            "in several: put them together, or predict from each part where they are not"
        )


def _votes_of_part(part: Any) -> VoteSums:
    if isinstance(part, list) and not _is_table(part):  # of a bag
        total = VoteSums()
        for table in part:
            total.update(table)
        return total
    return VoteSums().of(part)


def _is_table(data: Any) -> bool:
    """Tell whether this is a data frame, a dict, or a tuple of three columns."""
    if isinstance(data, Mapping):
        return True
    if isinstance(data, tuple):
        return len(data) == 3 and not any(_is_table(column) or np.isscalar(column) for column in data)
    return type(data).__module__.split(".")[0] in ("pandas", "polars")


def _n_rows(table: Any) -> int:
    if isinstance(table, tuple):
        return max(len(column) for column in table)
    return max((len(column) for column in table.values()), default=0) if isinstance(table, Mapping) else len(table)


def _check_kinds(column: str, first: np.ndarray, second: np.ndarray) -> None:
    """Raise where one part has names of other kinds than another: 1 and "1" would be two names."""
    kinds = [{_kind(name) for name in names.tolist()} for names in (first, second)]
    if kinds[0].isdisjoint(kinds[1]):
        mine, theirs = (" and ".join(sorted(kind)) for kind in kinds)
        raise TypeError(
            f"{column} must be of one kind in all parts of X; got {mine} in some and {theirs} in others. Convert the "
            "column before"
        )


def _kind(name: Any) -> str:
    return "numbers" if isinstance(name, int | float) else type(name).__name__


def _union(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return all names, in their order, and the place that each of both has among them."""
    if first.dtype != object and second.dtype != object and first.dtype.kind == second.dtype.kind:
        known, places = np.unique(np.concatenate([first, second]), return_inverse=True)
        return known, [places.ravel()[: first.size], places.ravel()[first.size :]]
    known = sorted_names([*first.tolist(), *second.tolist()])
    numbers = {name: place for place, name in enumerate(known.tolist())}
    return known, [np.array([numbers[name] for name in part.tolist()], dtype=np.int64) for part in (first, second)]
