"""Crowd-kit's names: its rounds, its data frames, known classes and confusion matrices to start from."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from codiag.drop_in.crowdkit import DawidSkene, OneCoinDawidSkene
from simulated import crowd

FLOOR = 1e-10


@pytest.fixture(scope="module")
def votes():
    task, worker, label = crowd(n=60, n_workers=8, density=0.8).votes
    return pd.DataFrame({"task": task, "worker": [f"w{one}" for one in worker], "label": label})


def rounds(votes, n, start=None, added=0.0, gold=None, one_coin=False):
    """Do as Dawid and Skene write, n rounds from the shares of the votes, with a floor under probabilities.

    With one coin, a worker is right as often as votes are probably right, and otherwise guesses evenly.
    """
    task, label = votes["task"].to_numpy(), votes["label"].to_numpy()
    worker = np.unique(votes["worker"], return_inverse=True)[1]
    held = {} if gold is None else dict(gold)

    def hold(q):
        for one, c in held.items():
            q[one] = np.arange(3) == c
        return q

    def count(q, added=0.0):
        cells = np.zeros((8, 3, 3)) + added
        np.add.at(cells, (worker, label), q[task])
        if one_coin:
            right = np.bincount(worker, weights=q[task, label]) / np.bincount(worker)
            return np.where(np.eye(3) > 0, right[:, None, None], (1 - right[:, None, None]) / 2), q.mean(axis=0)
        return cells / cells.sum(axis=1, keepdims=True), q.mean(axis=0)

    q = np.zeros((60, 3))
    np.add.at(q, (task, label), 1)
    q = hold(q / q.sum(axis=1, keepdims=True))
    errors, priors = count(q, added)
    errors = errors if start is None else start
    for _ in range(n):
        logs = np.tile(np.log(priors), (60, 1))
        np.add.at(logs, task, np.log(np.maximum(errors[worker, label], FLOOR)))
        q = np.exp(logs - logs.max(axis=1, keepdims=True))
        q = hold(q / q.sum(axis=1, keepdims=True))
        errors, priors = count(q)
    return q, errors, priors


def as_frame(cells):
    rows = pd.MultiIndex.from_product([[f"w{one}" for one in range(8)], range(3)], names=["worker", "label"])
    return pd.DataFrame(cells.reshape(24, 3), index=rows, columns=range(3))


@pytest.mark.parametrize("n", [0, 1, 4])
@pytest.mark.parametrize("strategy", [None, "assign", "addition"])
def test_rounds_are_those_of_dawid_and_skene(votes, n, strategy):
    cells = np.random.default_rng(0).dirichlet(np.ones(3), (8, 3)).swapaxes(1, 2) + np.eye(3)
    gold = pd.Series({0: 2, 1: 1})
    options = {} if strategy is None else {"start": cells / 2} if strategy == "assign" else {"added": 9 * cells}
    given = None if strategy is None else as_frame(9 * cells if strategy == "addition" else cells / 2)
    model = DawidSkene(n, 0, strategy).fit(votes, gold, given)
    probas, errors, priors = rounds(votes, n, gold=gold, **options)
    assert_allclose(model.probas_, probas, atol=1e-9)
    assert_allclose(model.errors_, errors.reshape(24, 3), atol=1e-9)
    assert_allclose(model.priors_, priors, atol=1e-9)
    assert_array_equal(model.labels_, probas.argmax(axis=1))
    assert len(model.loss_history_) == n
    assert np.min(np.diff(model.loss_history_), initial=0) > -1e-9


@pytest.mark.parametrize("n", [0, 1, 5])
@pytest.mark.parametrize("gold", [None, pd.Series({0: 2, 1: 1})])
def test_rounds_of_one_coin_are_those_of_its_formulas(votes, n, gold):
    model = OneCoinDawidSkene(n, 0).fit(votes, gold)
    probas, errors, priors = rounds(votes, n, gold=gold, one_coin=True)
    assert_allclose(model.probas_, probas, atol=1e-9)
    assert_allclose(model.errors_, errors.reshape(24, 3), atol=1e-9)
    assert_allclose(model.priors_, priors, atol=1e-9)
    assert_allclose(model.skills_, errors[:, 0, 0], atol=1e-9)


def test_tables_are_called_as_in_crowd_kit(votes):
    model = DawidSkene(n_iter=3).fit(votes)
    assert (model.labels_.name, model.labels_.index.name) == ("agg_label", "task")
    assert (model.probas_.index.name, model.probas_.columns.name) == ("task", "label")
    assert (model.priors_.name, model.priors_.index.name) == ("prior", "label")
    assert list(model.errors_.index.names) == ["worker", "label"]
    assert model.errors_.loc["w2"].loc[1, 0] == model.errors_.loc[("w2", 1), 0]
    assert_array_equal(DawidSkene(n_iter=3).fit_predict(votes), model.labels_)
    assert_array_equal(DawidSkene(n_iter=3).fit_predict_proba(votes), model.probas_)


def test_one_coin_is_one_skill_a_worker(votes):
    model = OneCoinDawidSkene().fit(votes)
    for worker, skill in model.skills_.items():
        expected = np.where(np.eye(3, dtype=bool), skill, (1 - skill) / 2)
        assert_allclose(model.errors_.loc[worker], expected, atol=1e-12)


def test_one_coin_matrices_are_kept_of_those_a_user_gives(votes):
    cells = np.random.default_rng(0).dirichlet(np.ones(3), (8, 3)).swapaxes(1, 2)
    model = OneCoinDawidSkene(0, initial_error_strategy="assign").fit(votes, initial_error=as_frame(cells))
    assert_allclose(model.skills_, np.trace(cells, axis1=1, axis2=2) / 3)
    for worker, skill in model.skills_.items():
        assert_allclose(model.errors_.loc[worker], np.where(np.eye(3, dtype=bool), skill, (1 - skill) / 2))


@pytest.mark.parametrize("gold", [pd.Series(dtype=object), pd.Series({0: None}), pd.Series({10_000: 1})])
def test_known_classes_of_no_task_with_votes_are_ignored(votes, gold):
    expected = DawidSkene(n_iter=3).fit(votes).probas_
    assert_array_equal(DawidSkene(n_iter=3).fit(votes, gold).probas_, expected)


def test_it_agrees_with_crowd_kit(votes):
    theirs = pytest.importorskip("crowdkit.aggregation")
    for ours, other in ((DawidSkene, theirs.DawidSkene), (OneCoinDawidSkene, theirs.OneCoinDawidSkene)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # theirs, of pandas
            expected = other(n_iter=3, tol=0).fit(votes).probas_
        assert_allclose(ours(n_iter=3, tol=0).fit(votes).probas_, expected[[0, 1, 2]].sort_index(), atol=1e-8)


def test_no_votes_are_empty_tables():
    model = DawidSkene().fit(pd.DataFrame([], columns=["task", "worker", "label"]))
    assert model.labels_.empty
    assert model.probas_.empty
    with pytest.raises(ValueError, match="columns task"):
        DawidSkene().fit(pd.DataFrame())


@pytest.mark.parametrize(
    ("strategy", "given", "words"),
    [
        ("assign", lambda cells: as_frame(cells)[:4], "should be 1.0 for every true class.*worker 'w1'"),
        ("assign", lambda cells: as_frame(cells - 2), "counts or probabilities"),
        ("addition", lambda cells: cells, "must be a"),
        ("addition", lambda cells: as_frame(cells).rename(index=str), "no row is."),
        ("addition", lambda cells: as_frame(cells).rename(columns=str), "and 0; no"),
        ("assign", lambda cells: as_frame(cells).reset_index(drop=True), "no row is"),
        (None, as_frame, "initial_error needs initial_error_strategy"),
        ("added", as_frame, "must be 'assign'"),
    ],
)
def test_confusion_matrices_that_do_not_fit_are_refused(votes, strategy, given, words):
    cells = np.tile(np.eye(3), (8, 1, 1))
    with pytest.raises((ValueError, TypeError), match=words):
        DawidSkene(initial_error_strategy=strategy).fit(votes, initial_error=given(cells))
