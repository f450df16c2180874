"""Preferences between two answers as votes of three classes, and how much the side on which an answer is shown matters.

A judge sees a pair of answers in both orders. A preference that changes with the order is not one: the vote of a judge
on a pair is what it prefers in all orders, and a tie otherwise.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.special import expit

from codiag.labels import encoded
from codiag.models.crowd import SHOWN, as_column, as_frame, is_missing, named_columns, of_one_length

PAIR_COLUMNS = {
    "task": ("task",),
    "worker": ("judge", "worker"),
    "first": ("first", "model_a"),
    "second": ("second", "model_b"),
    "choice": ("choice", "winner"),
}
"""Names that the columns of preferences may have."""
CHOICES = {"first": ("first", "a", "model_a"), "second": ("second", "b", "model_b"), "tie": ("tie",)}
"""Words for the three choices, in small letters."""


class Preferences(NamedTuple):
    """Votes, the position bias of judges, the number of other choices by what they say, and a ranking of answers."""

    votes: dict[str, np.ndarray]
    position_bias: dict[str, np.ndarray]
    invalid: dict[Any, int]
    ranking: dict[str, np.ndarray]


def preference_votes(pairs: Any) -> Preferences:
    r"""Turn choices between two answers into votes that do not depend on the side on which an answer is shown.

    A judge's vote on a pair of answers to a task is the answer that it prefers in all rows, and a tie if rows differ,
    as they do for a judge who prefers a side. The position bias of a judge is :math:`P(\text{first}) - 1/2`, given that
    the choice is no tie, over pairs that it saw in both orders: it is zero for a judge who looks at answers alone,
    whichever are better.

    Parameters
    ----------
    pairs : data frame, mapping or tuple of five columns
        A row for each choice, with the columns task, judge (or worker), first and second, the names of the answers or
        of the models that gave them, in the order in which they were shown, and choice: ``"first"``, ``"second"`` or
        ``"tie"``; ``"A"`` and ``"B"`` for the sides; or the name of the answer.

    Returns
    -------
    Preferences
        A named tuple ``(votes, position_bias, invalid, ranking)``. Votes are a dict of the columns task, worker and
        label, as `codiag.models.DawidSkene` takes them. If all rows compare the same two, labels are their names, and
        ``"tie"``; otherwise a task is named with its pair, as ``"q1: x (A), y (B)"``, and labels are ``"A"``, ``"B"``
        and ``"tie"``. The position bias is a dict of the columns worker, pairs (how many the worker saw in both
        orders), position_bias and standard_error; NaN if there is no such pair, or only ties. Other choices are left
        out, and their numbers are in ``invalid``. The ranking is by the model of Bradley and Terry, ties being half a
        win of each: a dict of the columns answer, strength (log odds against an answer of mean strength), low and high
        (its 95 % interval, for which votes on a task may depend on each other), win rate and choices; the best first.

    See Also
    --------
    codiag.models.DawidSkene : Takes the votes.
    codiag.reports.jury_report : A page about judges, with their position bias.

    Examples
    --------
    >>> from codiag.io import preference_votes
    >>> votes, bias, _, ranking = preference_votes({
    ...     "task": [1, 1, 2, 2], "judge": ["ann"] * 4, "first": ["x", "y"] * 2, "second": ["y", "x"] * 2,
    ...     "choice": ["first", "second", "first", "first"],
    ... })
    >>> votes["label"].tolist()  # x in both orders; and the first in both
    ['x', 'tie']
    >>> bias["position_bias"].tolist()
    [0.25]
    >>> ranking["answer"].tolist(), ranking["win rate"].tolist()
    (['x', 'y'], [0.75, 0.25])
    """
    columns = _pair_columns(pairs)
    _refuse_missing(columns)
    choices, invalid = _choices(columns["choice"], columns["first"], columns["second"])
    chosen = np.flatnonzero(choices >= 0)
    task, worker, first, second = (columns[name][chosen] for name in ("task", "worker", "first", "second"))
    (workers, worker), (tasks, task) = encoded(worker.tolist()), encoded(task.tolist())
    names, answer = encoded([*first.tolist(), *second.tolist()])
    first, second = answer.reshape(2, -1)
    if np.any(first == second):
        name = names.tolist()[first[np.argmax(first == second)]]
        raise ValueError(
            f"first and second must be two answers; {int(np.sum(first == second))} rows have {name!r} twice"
        )
    low, high = np.minimum(first, second), np.maximum(first, second)
    keys, item = np.unique(np.stack([task, low, high]), axis=1, return_inverse=True)
    in_order = first == low
    label = np.where(choices[chosen] == 2, 2, np.where((choices[chosen] == 0) == in_order, 0, 1))
    votes = _votes(item.ravel() * len(workers) + worker, label, len(workers))
    bias = _position_bias(item.ravel(), worker, in_order, choices[chosen], len(workers))
    voted, _, outcome = votes
    ranked = _ranking(keys[1:, voted], np.array([1, 0, 0.5])[outcome], keys[0, voted], names)
    return Preferences(_named(votes, keys, tasks, workers, names), {"worker": workers, **bias}, invalid, ranked)


def are_preferences(names: Iterable[Any]) -> bool:
    """Return whether a table with these columns has choices between two answers, and no votes."""
    given = {str(name).strip().lower() for name in names}
    return "label" not in given and all(given & set(words) for words in PAIR_COLUMNS.values())


def _pair_columns(pairs: Any) -> dict[str, np.ndarray]:
    if isinstance(pairs, tuple) and len(pairs) == len(PAIR_COLUMNS):
        vectors = of_one_length([as_column(column) for column in pairs])
    else:
        table: Any = pairs if isinstance(pairs, Mapping) else as_frame(pairs)
        names = [] if table is None else list(table if table is pairs else table.columns)
        vectors = named_columns(table, names, PAIR_COLUMNS, "pairs")
    try:
        for vector in vectors:
            set(vector.tolist())
    except TypeError as error:
        raise TypeError(f"pairs must contain values that can be hashed; {error}") from error
    return dict(zip(PAIR_COLUMNS, vectors, strict=True))


def _refuse_missing(columns: Mapping[str, np.ndarray]) -> None:
    for name, column in columns.items():
        missing = np.flatnonzero(is_missing(column))
        if missing.size and name != "choice":
            raise ValueError(
                f"pairs must be whole; {missing.size} of {column.size} have no {name}, the first is row {missing[0]}. "
                "Leave them out"
            )


def _choices(column: np.ndarray, first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, dict[Any, int]]:
    """Return 0 for the first, 1 for the second, 2 for a tie and -1 for others, and the numbers of those."""
    codes = {word: code for code, words in enumerate(CHOICES.values()) for word in words}
    entries = [None if absent else entry for entry, absent in zip(column.tolist(), is_missing(column), strict=True)]
    words = [str(entry).strip().lower().partition(" (")[0] for entry in entries]  # as in "tie (bothbad)"
    by_word = np.array([codes.get(word, -1) for word in words], dtype=np.int64)
    answers = zip(entries, first.tolist(), second.tolist(), strict=True)
    by_name = np.array([0 if entry == one else 1 if entry == other else -1 for entry, one, other in answers])
    unclear = np.flatnonzero((by_word >= 0) & (by_name >= 0) & (by_word != by_name))
    if unclear.size:
        raise ValueError(
            f"choice must be a side or an answer; {entries[unclear[0]]!r} of row {unclear[0]} means one side, and is "
            "the name of the answer on the other. Rename that answer"
        )
    choices = np.where(by_word >= 0, by_word, by_name)
    others = Counter(entry for entry, code in zip(entries, choices.tolist(), strict=True) if code < 0)
    if 2 * np.sum(choices < 0) >= choices.size:
        listed = ", ".join(repr(entry) for entry, _ in others.most_common(SHOWN)) or "none"
        raise ValueError(
            "choice must be first, second or tie, A and B for the sides, or the name of an answer; most rows have "
            f"others: {listed}"
        )
    return choices, dict(others.most_common())


def _votes(item_and_worker: np.ndarray, label: np.ndarray, n_workers: int) -> tuple[np.ndarray, ...]:
    """Return the item, the worker and the label of one vote for each item and worker: a tie if its rows differ."""
    keys, group = np.unique(item_and_worker, return_inverse=True)
    lowest, highest = np.full(keys.size, 2), np.zeros(keys.size, dtype=np.int64)
    np.minimum.at(lowest, group, label)
    np.maximum.at(highest, group, label)
    return *np.divmod(keys, n_workers), np.where(lowest == highest, lowest, 2)


def _named(
    votes: tuple[np.ndarray, ...], keys: np.ndarray, tasks: np.ndarray, workers: np.ndarray, names: np.ndarray
) -> dict[str, np.ndarray]:
    """Return votes with the names of tasks, workers and labels."""
    item, worker, label = votes
    task, low, high = keys
    if names.size == 2:
        return {
            "task": tasks[task[item]],
            "worker": workers[worker],
            "label": np.array([*map(str, names), "tie"])[label],
        }
    pairs = zip(tasks[task].tolist(), names[low].tolist(), names[high].tolist(), strict=True)
    titles = np.array([f"{title}: {one} (A), {other} (B)" for title, one, other in pairs])
    return {"task": titles[item], "worker": workers[worker], "label": np.array(["A", "B", "tie"])[label]}


def _position_bias(
    item: np.ndarray, worker: np.ndarray, in_order: np.ndarray, choice: np.ndarray, n_workers: int
) -> dict[str, np.ndarray]:
    r"""Return the number of pairs that each worker saw in both orders, its position bias, and the standard error.

    For pair j, :math:`F_j` is the share of rows that choose the first, and :math:`N_j` that without a tie, each summed
    over both orders. The probability of the first is the ratio :math:`p = \sum F_j / \sum N_j`. Its variance is by the
    delta method :math:`\sum (F_j - p N_j)^2 / (\sum N_j)^2`, with one pair more that is chosen by its side, since a
    judge who never did so might still.
    """
    keys, group = np.unique(item * n_workers + worker, return_inverse=True)
    shares = np.zeros((2, 2, keys.size))  # of the first and of no tie, by order and pair
    for order in (0, 1):
        rows = in_order == order
        counts = np.bincount(group[rows], minlength=keys.size)
        for kind, chosen in enumerate((choice == 0, choice < 2)):
            sums = np.bincount(group[rows], chosen[rows], minlength=keys.size)
            shares[kind, order] = np.divide(sums, counts, out=np.full(keys.size, np.nan), where=counts > 0)
    both = np.flatnonzero(~np.isnan(shares).any(axis=(0, 1)))
    first, decided = shares[:, :, both].sum(axis=1)
    who = keys[both] % n_workers
    totals = np.bincount(who, decided, minlength=n_workers)
    total_first = np.bincount(who, first, minlength=n_workers)
    share = np.divide(total_first, totals, out=np.full(n_workers, np.nan), where=totals > 0)
    squares = np.bincount(who, (first - share[who] * decided) ** 2, minlength=n_workers)
    errors = np.where(totals > 0, np.sqrt(squares + 1) / (totals + 2), np.nan)
    return {"pairs": np.bincount(who, minlength=n_workers), "position_bias": share - 0.5, "standard_error": errors}


def _ranking(pairs: np.ndarray, share: np.ndarray, task: np.ndarray, names: np.ndarray) -> dict[str, np.ndarray]:
    r"""Return strengths by the model of Bradley and Terry, with 95 % intervals, the strongest first.

    The probability that i is preferred to j is :math:`1 / (1 + e^{-(s_i - s_j)})`; a tie is half a win of each. One tie
    of each with an answer of strength zero keeps those finite that always win or lose. `pairs` (2, n) are numbers of
    names, `share` (n,) is 1 if the first wins, 0 if the second does, and 1/2 for a tie. Errors are clustered by task,
    as votes on one depend on each other, and infinite if names fall into groups that no choice compares.
    """
    k, n = names.size, share.size
    compared = np.zeros((n, k))
    compared[np.arange(n), pairs[0]], compared[np.arange(n), pairs[1]] = 1.0, -1.0
    strengths = np.zeros(k)
    for _ in range(100):
        chance, prior = expit(compared @ strengths), expit(strengths)
        gradient = compared.T @ (share - chance) + 0.5 - prior
        curvature = (compared.T * (chance * (1 - chance))) @ compared + np.diag(prior * (1 - prior))
        step = np.linalg.solve(curvature, gradient)
        strengths += step
        if np.max(np.abs(step)) < 1e-10:
            break
    scores = np.zeros((int(task.max(initial=0)) + 1, k))
    np.add.at(scores, task, compared * (share - expit(compared @ strengths))[:, None])
    center = np.eye(k) - 1 / k  # strengths are relative to their mean
    spread = center @ np.linalg.solve(curvature, scores.T)
    errors = np.sqrt(np.sum(spread**2, axis=1))
    if connected_components(coo_array((np.ones(n), tuple(pairs)), (k, k)), directed=False)[0] > 1:
        errors[:] = np.inf
    counts = np.bincount(pairs.ravel(), minlength=k)
    won = np.bincount(pairs.ravel(), np.concatenate([share, 1 - share]), minlength=k)
    strengths = center @ strengths
    order = np.argsort(-strengths, kind="stable")
    columns = {
        "answer": names,
        "strength": strengths,
        "low": strengths - 1.96 * errors,
        "high": strengths + 1.96 * errors,
        "win rate": won / counts,
        "choices": counts,
    }
    return {name: column[order] for name, column in columns.items()}
