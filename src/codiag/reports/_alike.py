"""Sentences about workers who think alike, for pages and for the command line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from codiag.models.crowd import worker_columns
from codiag.plotting import dependence_matrix

if TYPE_CHECKING:
    from codiag.models.crowd import DawidSkene

DUPLICATES = 0.9
"""Mean correlation from which members of a family are called duplicates of each other."""
MOST_NAMES = 6
"""Largest number of names in a sentence."""
NEARLY_ALL = 0.9
"""Share of the judges who vote on an item from which all are said to vote on it."""


def worth_of(model: DawidSkene) -> str:
    """Return a sentence with the number of independent judges, or votes, that the votes on an item are worth."""
    n_judges, (low, high) = len(model.workers_), np.asarray(model.effective_votes_interval_).tolist()
    n_votes = float(np.sum(worker_columns(model)["votes"])) / len(model.tasks_)
    worth = f"worth {model.effective_votes_:.1f} independent ones ({low:.1f} to {high:.1f})."
    if n_votes < NEARLY_ALL * n_judges:
        return f"The {n_votes:.1f} votes that an item has on average, of {n_judges} judges, are {worth}"
    return f"1 judge is {worth}" if n_judges == 1 else f"{n_judges} judges are {worth}"


def families_in_words(model: DawidSkene, most: int | None = None) -> list[str]:
    """Return a sentence for each family: the names of `most` members, by default of all, and how alike they are."""
    places = {name: place for place, name in enumerate(model.workers_.tolist())}
    lines = []
    families = model.families_
    for number, names in enumerate(families, 1):
        rows = [places[name] for name in names.tolist()]
        pairs = dependence_matrix(model, np.array(rows))[np.triu_indices(len(rows), 1)]
        known = pairs[~np.isnan(pairs)]
        mean = float(np.mean(known)) if known.size else 0.0
        likeness = "are duplicates of each other" if mean >= DUPLICATES else "think alike"
        extent = f": their errors correlate at {mean:.2f}" if known.size else ""
        lines.append(f"Family {number}: {in_words(names.tolist(), most or len(names))} {likeness}{extent}.")
    return lines


def in_words(names: Sequence[object], most: int = MOST_NAMES) -> str:
    """Return names as a list in words, of which only the first are named if there are more than `most`."""
    words = [str(name) for name in names[:most]] + ([f"{len(names) - most} more"] if len(names) > most else [])
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
