"""Votes of crowds: `DawidSkene`, and what turns other data into votes."""

from __future__ import annotations

from typing import Any

import numpy as np

from codiag.io import preference_votes, valid_votes
from codiag.models import DawidSkene
from codiag.models.crowd import HIGH, LOW, label_columns, worker_columns
from codiag.synthetic import crowd_votes, worker_confusions

from ..arrays import choose
from ..case import Case, covers
from ..invariants import Problems, has_shape, not_finite, simplex

NAMED = ("votes", "task", "worker", "label")


def _votes(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the columns of votes: of good crowds, of few votes, of workers who always agree, of one worker."""
    kind = choose(rng, "crowd", "crowd", "crowd", "few", "agree", "one worker", "one class", "noise")
    tasks, workers, classes = int(rng.integers(1, 40)), int(rng.integers(1, 9)), int(rng.integers(2, 5))
    if kind == "crowd":
        crowd = crowd_votes(
            tasks, worker_confusions(max(workers, 3), classes, seed=rng), density=choose(rng, 0.5, 1.0), seed=rng
        )
        if crowd.votes[0].size:
            return crowd.votes
    if kind == "few":
        n = int(rng.integers(1, 8))
        return rng.integers(0, 5, n), rng.integers(0, 4, n), rng.integers(0, classes, n)
    workers = 1 if kind == "one worker" else workers
    task, worker = (grid.ravel() for grid in np.meshgrid(np.arange(tasks), np.arange(workers), indexing="ij"))
    truth = rng.integers(0, classes, tasks)
    label = rng.integers(0, classes, task.size) if kind == "noise" else truth[task]
    return task, worker, np.zeros_like(label) if kind == "one class" else label


def _in_some_form(rng: np.random.Generator, columns: tuple[np.ndarray, ...]) -> Any:
    import pandas as pd
    import polars as pl

    form = choose(rng, "tuple", "tuple", "dict", "matrix", "pandas", "polars", "strings", "list of arrays")
    named = dict(zip(("task", "worker", "label"), columns, strict=True))
    if form == "dict":
        return named
    if form == "pandas":
        return pd.DataFrame(named)
    if form == "polars":
        return pl.DataFrame(named)
    if form == "strings":
        return tuple(np.array([f"{name}{entry}" for entry in column]) for name, column in named.items())
    if form == "matrix":
        matrix = np.full((columns[0].max() + 1, columns[1].max() + 1), -1)
        matrix[columns[0], columns[1]] = columns[2]
        return matrix
    return list(columns) if form == "list of arrays" else columns


@covers("codiag.models.DawidSkene", weight=5)
def crowds(rng: np.random.Generator) -> Case:
    """Votes in every form they come in."""
    columns = _votes(rng)
    data = _in_some_form(rng, columns)
    options: dict[str, Any] = {
        "random_state": int(rng.integers(100)),
        "init": choose(rng, "moments", "moments", "majority"),
    }
    for name, values in (("max_iter", (0, 3, 100)), ("smoothing", (0.01, 1.0)), ("one_coin", (True, False))):
        if rng.random() < 0.3:
            options[name] = choose(rng, *values)
    if rng.random() < 0.2:
        options["prior"] = choose(rng, "uniform", "estimated")
    if rng.random() < 0.2:
        options["n_partitions"] = int(rng.integers(1, 5))

    def fit(X: Any, **given: Any) -> Any:  # noqa: N803
        return DawidSkene(**given).fit(X)

    checks = (about_crowd,) if rng.random() < 0.7 else (about_crowd, shuffled(columns, options, rng))
    valid = None if isinstance(data, list) else True  # a list of three may also be three tasks, and is asked about
    return Case("codiag.models.DawidSkene", fit, {"X": data, **options}, valid, checks, NAMED, advice=True)


def about_crowd(fitted: Any, given: dict[str, Any]) -> Problems:
    """Probabilities, shapes, and votes that nobody contests."""
    tasks, workers, k = fitted.tasks_.size, fitted.workers_.size, fitted.classes_.size
    table, people = label_columns(fitted), worker_columns(fitted)
    chances = np.stack([table[name] for name in list(table)[3:]], axis=1)
    yield from has_shape(chances, (tasks, k), "probas_")
    yield from simplex(chances, 1, "probas_")
    errors = np.stack([people[name] for name in people if name.startswith("p(")], axis=1).reshape(workers, k, k)
    yield from simplex(errors, 2, "confusion_")
    accuracy = np.asarray(people["accuracy"], dtype=float)
    if np.any(accuracy < 0) or np.any(accuracy > 1 + 1e-9):
        yield "model", f"accuracies from {accuracy.min()} to {accuracy.max()}"
    low, high = (np.asarray(people[name], dtype=float) for name in (LOW, HIGH))
    if not (np.all(low >= 0) and np.all(low <= accuracy) and np.all(accuracy <= high) and np.all(high <= 1 + 1e-9)):
        yield "model", f"accuracies of {accuracy[:3]} in intervals from {low[:3]} to {high[:3]}"
    if np.shape(fitted.worker_accuracy_interval_) not in ((workers, 2), (workers, 3)):  # polars keeps names in a column
        yield "shape", f"worker_accuracy_interval_ has {np.shape(fitted.worker_accuracy_interval_)}"
    bad = not_finite([accuracy, np.asarray(people["standard_error"], dtype=float), fitted.log_likelihood_])
    if bad:
        yield "not finite", bad
    if np.any(np.diff(fitted.loss_history_) < -1e-7):
        yield "model", "the objective falls during expectation maximization"
    best = fitted.classes_[np.argmax(chances, axis=1)]
    if not np.array_equal(np.asarray(table["label"]), best):
        yield "model", "labels are not the most probable classes"


def shuffled(columns: tuple[np.ndarray, ...], options: dict[str, Any], rng: np.random.Generator) -> Any:
    """Return the check that the order of votes makes no difference."""
    order = rng.permutation(columns[0].size)

    def check(fitted: Any, given: dict[str, Any]) -> Problems:
        first = DawidSkene(**options).fit(tuple(columns))
        second = DawidSkene(**options).fit(tuple(column[order] for column in columns))
        gap = float(np.max(np.abs(np.asarray(first.probas_) - np.asarray(second.probas_))))
        if gap > 1e-6:
            yield "order", f"votes in another order move probabilities by {gap:.2g}"

    return check


@covers("codiag.io.valid_votes", weight=1)
def votes_with_mistakes(rng: np.random.Generator) -> Case:
    """Votes in every form they come in, with limits that leave all or none."""
    data = _in_some_form(rng, _votes(rng))
    arguments = {
        "votes": data,
        "least_share": choose(rng, 0, 0.001, 0.1, 0.4),
        "keep": choose(rng, (), [0], ["label1"]),
    }

    def about_valid(result: Any, given: dict[str, Any]) -> Problems:
        n_all = DawidSkene(max_iter=0, init="majority").fit(given["votes"])._votes_of_tasks.sum()
        n_valid = DawidSkene(max_iter=0, init="majority").fit(result.votes)._votes_of_tasks.sum()
        if n_valid + sum(result.invalid.values()) != n_all:
            yield "votes", f"{n_all} votes are {n_valid} and {result.invalid}"
        if set(result.invalid) & set(given["keep"]):
            yield "votes", f"{given['keep']} are to be kept, and {result.invalid} are not"

    valid = None if isinstance(data, list) else True
    return Case("codiag.io.valid_votes", valid_votes, arguments, valid, (about_valid,), NAMED)


@covers("codiag.io.preference_votes", weight=1)
def preferences(rng: np.random.Generator) -> Case:
    """Choices between answers of two models or more, in one order or both."""
    n, answers = int(rng.integers(1, 60)), np.array(["x", "y", "z"])[: int(rng.integers(2, 4))]
    first = rng.integers(0, answers.size, n)
    second = (first + rng.integers(1, answers.size, n)) % answers.size
    columns = rng.integers(0, 9, n), rng.integers(0, 3, n), answers[first], answers[second]
    named = dict(zip(("task", "judge", "first", "second"), columns, strict=True))
    named["choice"] = np.array(choose(rng, ["first", "second", "tie"], ["A", "B", "tie"], ["A", "B"]))[
        rng.integers(0, 2, n)
    ]

    def about_preferences(result: Any, given: dict[str, Any]) -> Problems:
        votes, bias = result.votes, result.position_bias
        pairs = set(zip(votes["task"].tolist(), votes["worker"].tolist(), strict=True))
        if len(pairs) != votes["label"].size or len(set(votes["label"].tolist())) > 3:
            yield "votes", f"{votes['label'].size} votes of {len(pairs)} pairs of task and judge"
        measured = bias["pairs"] > 0
        if not_finite(bias["standard_error"][measured]) or np.any(np.abs(bias["position_bias"][measured]) > 0.5 + 1e-9):
            yield "model", f"position bias {bias['position_bias']} +- {bias['standard_error']}"

    pairs: Any = named if rng.random() < 0.5 else tuple(named.values())
    arguments, words = {"pairs": pairs}, ("choice", "first")  # bias is NaN if no pair was shown in both orders
    return Case(
        "codiag.io.preference_votes", preference_votes, arguments, True, (about_preferences,), words, infinite=True
    )
