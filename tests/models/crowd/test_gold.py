"""Gold labels: known classes are held, workers are judged by them, and they name the classes of a crowd that errs."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from codiag.models import DawidSkene
from codiag.models.crowd import CrowdModel, as_votes, expect, with_known_classes
from codiag.synthetic import crowd_votes, worker_confusions
from simulated import crowd


def known(data, n):
    return dict(enumerate(data.truth[:n].tolist()))


@pytest.mark.parametrize("init", ["moments", "majority"])
@pytest.mark.parametrize("options", [{}, {"smoothing": 0.5}, {"one_coin": True}, {"max_iter": 0}, {"prior": "uniform"}])
def test_known_classes_are_held_whatever_the_votes(init, options):
    data = crowd(n=300, n_workers=12, density=0.5)
    gold = {task: (label + 1) % 3 for task, label in known(data, 20).items()}  # against all votes
    model = DawidSkene(init=init, random_state=0, **options).fit(data.votes, y=gold)
    assert_array_equal(model.labels_[:20], list(gold.values()))
    assert_array_equal(model.probas_[:20], np.eye(3)[list(gold.values())])
    assert np.min(np.diff(model.loss_history_), initial=0) > -1e-10
    assert_allclose(model.probas_.sum(axis=1), 1)


def test_with_all_classes_known_workers_are_counted():
    data = crowd(n=200, n_workers=6, density=1.0)
    task, worker, label = data.votes
    model = DawidSkene(init="majority", smoothing=1.0).fit(data.votes, y=known(data, 200))
    cells = np.ones((6, 3, 3))
    np.add.at(cells, (worker, label, data.truth[task]), 1)
    assert_allclose(model.confusion_matrices_, cells / cells.sum(axis=1, keepdims=True), atol=1e-12)
    assert_allclose(model.priors_, (np.bincount(data.truth) + 1) / 203, atol=1e-12)


def test_the_likelihood_is_that_of_votes_and_known_classes():
    data = crowd(n=30, n_workers=5, density=1.0)
    votes = with_known_classes(as_votes(data.votes), known(data, 10))
    shares = np.array([0.5, 0.3, 0.2])
    task, worker, label = data.votes
    joint = np.tile(shares, (30, 1))
    for t, w, l in zip(task, worker, label, strict=True):
        joint[t] *= data.confusions[w, l]
    expected = np.log(joint[np.arange(10), data.truth[:10]]).sum() + np.log(joint[10:].sum(axis=1)).sum()
    assert expect(votes, CrowdModel(data.confusions, shares))[1] == pytest.approx(expected, rel=1e-12)


def test_gold_labels_name_the_classes_of_a_crowd_that_is_mostly_wrong():
    data = crowd_votes(500, worker_confusions(12, 3, adversarial=0.8, rng=0), rng=1)
    model = DawidSkene(random_state=0)
    alone, told = (model.fit(data.votes, gold).labels_ for gold in (None, known(data, 10)))
    assert np.mean(alone == data.truth) < 0.1
    assert np.mean(told[10:] == data.truth[10:]) > 0.9


@pytest.mark.parametrize("init", ["moments", "majority"])
def test_one_gold_label_does_not_outweigh_the_crowd(init):
    data = crowd(2, n=300, n_workers=12, density=1.0)
    model = DawidSkene(init=init, random_state=0).fit(data.votes, y={0: 1 - int(data.truth[0])})
    assert np.mean(model.labels_[1:] == data.truth[1:]) > 0.9


def test_forms_of_gold_labels_are_one():
    data = crowd(n=100, n_workers=9, density=1.0)
    gold = known(data, 30)
    columns = {"task": list(gold), "label": list(gold.values())}
    series = pd.Series(gold)
    expected = DawidSkene(random_state=0).fit(data.votes, y=gold).probas_
    forms = [series, tuple(columns.values()), pd.DataFrame(columns), pl.DataFrame(columns)]
    forms.append(pl.LazyFrame(columns))
    forms += [series.reindex(range(60)), {**gold, 10_000: 0}, pd.concat([series, series])]
    for form in forms:
        assert_array_equal(DawidSkene(random_state=0).fit(data.votes, y=form).probas_, expected)
        assert_array_equal(DawidSkene(random_state=0).fit_predict_proba(data.votes, y=form), expected)
    labels = DawidSkene(random_state=0).fit_predict(data.votes, y=gold)
    assert_array_equal(labels, np.argmax(expected, axis=1))


def test_rows_of_a_matrix_have_a_class_each():
    data = crowd(n=60, n_workers=6, density=1.0)
    matrix = data.votes[2].reshape(60, 6)
    wrong = (data.truth + 1) % 3
    expected = DawidSkene(init="majority").fit(matrix, dict(enumerate(wrong[:20].tolist()))).probas_
    marked = np.where(np.arange(60) < 20, wrong, -1)
    some = np.where(marked < 0, np.nan, marked)
    for y in (
        marked,
        marked[:, None],
        marked.tolist(),
        some,
        pd.Series(some),
        pl.Series(marked),
        [*wrong[:20].tolist(), *[None] * 40],
    ):
        assert_array_equal(DawidSkene(init="majority").fit(matrix, y).probas_, expected)
    with pytest.raises(ValueError, match=r"^y must"):
        DawidSkene().fit(matrix, wrong[:20])
    with pytest.raises(ValueError, match="^columns must"):
        DawidSkene().fit(matrix, np.stack([marked, marked], axis=1))
    with pytest.raises(TypeError, match=r"^y must"):
        DawidSkene().fit(matrix, np.array(1))


@pytest.mark.parametrize(
    "gold", [{}, [], np.array([]), pd.Series(dtype=object), {0: None, 1: None}, ([0, 1], [np.nan, np.nan])]
)
def test_gold_labels_of_no_task_are_none(gold):
    votes = as_votes(crowd(n=30, n_workers=5, density=1.0).votes)
    assert with_known_classes(votes, gold).known_class is None


@pytest.mark.parametrize(
    ("gold", "error", "words"),
    [
        ({0: 3}, ValueError, "^y must"),
        ({"0": 1}, ValueError, "^y must"),
        (([0, 0], [1, 2]), ValueError, "^y must"),
        (([0, 1], [1]), ValueError, "^y must"),
        (pd.DataFrame({"task": [0], "colour": [1]}), ValueError, "^y must"),
        ([0, 1, 2], ValueError, "^y must"),
        (3, TypeError, "^y must"),
    ],
)
def test_gold_labels_that_do_not_fit_are_refused_in_a_sentence(gold, error, words):
    with pytest.raises(error, match=words):
        DawidSkene().fit(crowd(n=30, n_workers=5, density=1.0).votes, y=gold)


def test_tasks_in_doubt_come_in_the_order_of_doubt():
    data = crowd(n=100, n_workers=5, density=0.6)
    model = DawidSkene(init="majority", random_state=0).fit(data.votes, y=known(data, 10))
    table = model.least_confident()
    rows = np.searchsorted(model.tasks_, table["task"])
    ranked = np.sort(model.probas_[rows], axis=1)[:, ::-1]
    assert_array_equal(np.sort(table["task"]), model.tasks_)
    assert_array_equal(table["probability"], np.sort(np.max(model.probas_, axis=1)))
    assert_array_equal(table["next probability"], ranked[:, 1])
    assert_array_equal(table["label"], model.labels_[rows])
    assert_array_equal(table["votes"], np.bincount(np.searchsorted(model.tasks_, data.votes[0]))[rows])
    assert {key: column[:7].tolist() for key, column in table.items()} == {
        key: column.tolist() for key, column in model.least_confident(7).items()
    }
    with pytest.raises(ValueError, match=r"^n must"):
        model.least_confident(0)
