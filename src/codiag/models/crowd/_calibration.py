"""Whether the probabilities of labels are right: known classes that the model does not see."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from codiag.models.crowd._tables import label_columns
from codiag.models.crowd._votes import collect_votes, with_gold

if TYPE_CHECKING:
    from codiag.models.crowd._model import DawidSkene

EDGES = np.array([0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0])
"""Probabilities that separate the rows of the table."""
LEAST_KNOWN = 20
"""Number of known classes from which they are compared with probabilities (chosen by experience)."""


def held_out_calibration(model: DawidSkene, votes: Any, gold: Any) -> dict[str, np.ndarray] | None:
    """Return how often labels with about the same probability are right, as columns; None if few classes are known.

    The model is fitted twice more, each time with one half of the known classes, and its labels of the other half are
    compared with these. A row has the bounds of the probability, the number of tasks, the mean probability of their
    labels, and the share of labels that are right. Rows without tasks are left out.
    """
    known = with_gold(collect_votes(votes, model.missing), gold, missing=model.missing)
    places = np.flatnonzero(known.gold >= 0) if known.gold is not None else np.empty(0, dtype=np.int64)
    if known.gold is None or places.size < LEAST_KNOWN:
        return None
    places = np.random.default_rng(0).permutation(places)
    tasks, labels = known.tasks.tolist(), known.classes[np.maximum(known.gold, 0)].tolist()
    probability, is_right = [], []
    for seen, unseen in ((places[::2], places[1::2]), (places[1::2], places[::2])):
        fitted = clone(model)
        fitted.learn(votes, ([tasks[place] for place in seen], [labels[place] for place in seen]))
        table = label_columns(fitted)
        probability.append(table["probability"][unseen])
        is_right.append(np.array([table["label"][place] == labels[place] for place in unseen.tolist()]))
    return _binned(np.concatenate(probability), np.concatenate(is_right))


def _binned(probability: np.ndarray, is_right: np.ndarray) -> dict[str, np.ndarray]:
    bins = np.clip(np.searchsorted(EDGES, probability, side="right") - 1, 0, EDGES.size - 2)
    counts = np.bincount(bins, minlength=EDGES.size - 1)
    kept = np.flatnonzero(counts)
    means = [
        np.bincount(bins, values, minlength=counts.size)[kept] / counts[kept] for values in (probability, is_right)
    ]
    columns = {"from": EDGES[kept], "to": EDGES[kept + 1], "tasks": counts[kept]}
    return columns | {"probability": means[0], "right": means[1]}
