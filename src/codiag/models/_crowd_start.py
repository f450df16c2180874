"""Where expectation maximization starts: from moments, from confusion matrices that are given, or from the majority."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from codiag._validation import as_generator
from codiag.methods import Method
from codiag.models._crowd_em import CrowdModel, Prior, Start, expect, one_coin
from codiag.models._crowd_moments import estimate_crowd, named_by_gold, random_groups
from codiag.models._diagnostics import Diagnostics
from codiag.models._vote_order import Order
from codiag.models._votes import Votes


def start_from_majority(votes: Votes, reason: str | None = None) -> Start:
    """Start from the shares of the votes on each task; the reason is why it is not from moments.

    Where known classes contradict the majority, they tell which class a label stands for.
    """
    classes = votes.held(replace(votes, gold=None).shares[:, labels_of_classes(votes)])
    return Start(classes, diagnostics=Diagnostics(init="majority", reason=reason))


def labels_of_classes(votes: Votes) -> np.ndarray:
    """Return the label that stands for each class: that of its name, unless known classes contradict the majority."""
    names = np.arange(votes.classes.size)
    if votes.gold is None:
        return names
    alone = replace(votes, gold=None).shares
    largest = alone == alone.max(axis=1, keepdims=True)
    return named_by_gold(votes.gold, largest / largest.sum(axis=1, keepdims=True), names)


def with_labels_of_classes(votes: Votes, order: Order) -> tuple[Votes, Order]:
    """Return votes in which every label has the name of the class that it stands for.

    One coin needs it: the wrong labels of its workers are even, so that it cannot say that a label stands for another
    class, unless there are two.
    """
    names = labels_of_classes(votes)
    if votes.classes.size == 2 or np.all(names == np.arange(names.size)):
        return votes, order
    return replace(votes, label=np.argsort(names)[votes.label]), order._replace(labels=order.classes[names])


def start_from_given(votes: Votes, order: Order, init: Any, prior: Prior) -> Start:
    """Start from confusion matrices of the user, for votes in an order of their own."""
    k, n_workers = votes.classes.size, votes.workers.size
    confusions = as_numbers("init", init)
    shape = (n_workers, k, k)
    if confusions.shape != shape or np.any(confusions < 0) or not np.allclose(confusions.sum(axis=1), 1):
        raise ValueError(
            f"init must hold a matrix for each of {n_workers} workers, {shape}, given label by true "
            f"class, with columns of sum one; got shape {confusions.shape}"
        )
    model = _model(order.applied(confusions, "wlc"), np.full(k, 1 / k), prior)
    return Start(expect(votes, model)[0], model, diagnostics=Diagnostics(init="given"))


def start_from_moments(votes: Votes, groups: np.ndarray, method: Method | None, seed: Any, prior: Prior) -> Start:
    """Start from the moments of partitions of the workers; from the majority where these do not determine the crowd."""
    found = estimate_crowd(votes, groups, method, seed)
    if isinstance(found, str):
        return start_from_majority(votes, found)
    model = _model(found.confusions, found.shares, prior)
    diagnostics = Diagnostics(init="moments", n_partitions=found.n_partitions)
    return Start(expect(votes, model)[0], model, found.spread, diagnostics)


def as_groups(votes: Votes, order: Order, groups: Any, n_partitions: int, random_state: Any) -> np.ndarray:
    """Return partitions of the workers (n_partitions, n_workers), in this order: those of the user, or random ones."""
    n_workers = votes.workers.size
    if groups is None:
        rng = as_generator(random_state, "random_state")
        return np.stack([random_groups(votes, rng) for _ in range(n_partitions)])
    given = np.atleast_2d(as_numbers("groups", groups))
    if given.ndim != 2 or given.shape[1] != n_workers or not np.all(np.isin(given, (0, 1, 2))):
        raise ValueError(f"groups must hold 0, 1 or 2 for each of {n_workers} workers; got shape {np.shape(groups)}")
    return order.applied(given.astype(np.int64), ".w")


def as_numbers(name: str, values: Any) -> np.ndarray:
    """Return an option of numbers as an array."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must be an array of numbers; got {values!r:.60}: {error}") from None


def _model(confusions: np.ndarray, shares: np.ndarray, prior: Prior) -> CrowdModel:
    """Return a model that keeps to the shares of the classes where these are known, and to one coin where asked."""
    return CrowdModel(
        one_coin(confusions) if prior.one_coin else confusions, shares if prior.shares is None else prior.shares
    )
