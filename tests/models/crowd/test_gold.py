"""Gold labels: known classes are held, workers are judged by them, and they name the classes of a crowd that errs."""

from __future__ import annotations

import contextlib
import csv

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from typer.testing import CliRunner

from codiag.cli import app
from codiag.models import DawidSkene
from codiag.models.crowd import CrowdModel, as_votes, expect, with_gold
from codiag.synthetic import crowd_votes, worker_confusions
from simulated import crowd


def known(data, n):
    return dict(enumerate(data.truth[:n].tolist()))


@pytest.mark.parametrize("init", ["moments", "majority"])
@pytest.mark.parametrize("options", [{}, {"smoothing": 0.5}, {"one_coin": True}, {"max_iter": 0}, {"prior": "uniform"}])
def test_known_classes_are_held_whatever_the_votes(init, options):
    data = crowd(n=300, n_workers=12, density=0.5)
    gold = {task: (label + 1) % 3 for task, label in known(data, 20).items()}  # against all votes
    model = DawidSkene(init=init, random_state=0, **options).fit(data.votes, gold=gold)
    assert_array_equal(model.labels_[:20], list(gold.values()))
    assert_array_equal(model.probas_[:20], np.eye(3)[list(gold.values())])
    assert np.min(np.diff(model.loss_history_), initial=0) > -1e-10
    assert_allclose(model.probas_.sum(axis=1), 1)


def test_with_all_classes_known_workers_are_counted():
    data = crowd(n=200, n_workers=6, density=1.0)
    task, worker, label = data.votes
    model = DawidSkene(init="majority", smoothing=1.0).fit(data.votes, gold=known(data, 200))
    cells = np.ones((6, 3, 3))
    np.add.at(cells, (worker, label, data.truth[task]), 1)
    assert_allclose(model.confusion_, cells / cells.sum(axis=1, keepdims=True), atol=1e-12)
    assert_allclose(model.priors_, (np.bincount(data.truth) + 1) / 203, atol=1e-12)


def test_the_likelihood_is_that_of_votes_and_known_classes():
    data = crowd(n=30, n_workers=5, density=1.0)
    votes = with_gold(as_votes(data.votes), known(data, 10))
    shares = np.array([0.5, 0.3, 0.2])
    task, worker, label = data.votes
    joint = np.tile(shares, (30, 1))
    for t, w, l in zip(task, worker, label, strict=True):
        joint[t] *= data.confusions[w, l]
    expected = np.log(joint[np.arange(10), data.truth[:10]]).sum() + np.log(joint[10:].sum(axis=1)).sum()
    assert expect(votes, CrowdModel(data.confusions, shares))[1] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("init", ["moments", "majority"])
def test_gold_labels_name_the_classes_of_a_crowd_that_is_mostly_wrong(init):
    data = crowd_votes(500, worker_confusions(12, 3, adversarial=0.8, seed=0), seed=1)
    model = DawidSkene(init=init, random_state=0)
    alone, told = (model.fit(data.votes, gold=gold).labels_ for gold in (None, known(data, 10)))
    assert np.mean(alone == data.truth) < 0.1
    assert np.mean(told[10:] == data.truth[10:]) > 0.9


@pytest.mark.parametrize(("init", "one_coin"), [("majority", True), ("moments", True), ("moments", False)])
def test_gold_labels_name_the_classes_of_two_workers_who_are_mostly_wrong(init, one_coin):
    """Of two workers there are no moments: it starts from the majority."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 300)
    votes = np.where(rng.random((300, 2)) < 0.2, truth[:, None], 1 - truth[:, None])
    model = DawidSkene(init=init, one_coin=one_coin, random_state=0)
    with contextlib.nullcontext() if init == "majority" else pytest.warns(UserWarning, match="it takes three workers"):
        model.fit(votes, gold=dict(enumerate(truth[:30].tolist())))
    assert np.mean(model.labels_[30:] == truth[30:]) > 0.75
    assert np.all(model.worker_accuracy_ < 0.3)


@pytest.mark.parametrize("init", ["moments", "majority", "given"])
def test_one_coin_learns_from_gold_labels_what_labels_stand_for(init):
    """Most workers give the label after the true one: as mistakes, which one coin makes evenly, that cannot be said."""
    errors = worker_confusions(12, 3, adversarial=0.8, seed=0)
    data = crowd_votes(400, errors, seed=1)
    model = DawidSkene(init=errors if init == "given" else init, one_coin=True, random_state=0)
    model.fit(data.votes, known(data, 40))
    assert np.mean(model.labels_[40:] == data.truth[40:]) > 0.9
    assert_allclose(model.predict_proba(data.votes)[40:], model.probas_[40:], atol=1e-9)
    # A worker gives the label after the true one with one probability, and the other two as often as each other.
    assert_allclose(model.confusion_.sum(axis=1), 1)
    after = model.confusion_[:, [1, 2, 0], [0, 1, 2]]
    others = model.confusion_[:, [0, 1, 2, 2, 0, 1], [0, 1, 2, 0, 1, 2]]
    assert_allclose(after, after[:, :1].repeat(3, axis=1))
    assert_allclose(others, (1 - after[:, :1]).repeat(6, axis=1) / 2)
    rates = np.einsum("wcc,c->w", errors, np.bincount(data.truth) / 400)
    low, high = model.worker_accuracy_interval_.T
    assert np.all((low <= model.worker_accuracy_) & (model.worker_accuracy_ <= high))
    assert_allclose(model.worker_accuracy_[:10], rates[:10], atol=0.1)


@pytest.mark.parametrize("init", ["moments", "majority"])
def test_one_gold_label_does_not_outweigh_the_crowd(init):
    data = crowd(2, n=300, n_workers=12, density=1.0)
    model = DawidSkene(init=init, random_state=0).fit(data.votes, gold={0: 1 - int(data.truth[0])})
    assert np.mean(model.labels_[1:] == data.truth[1:]) > 0.9


def test_forms_of_gold_labels_are_one():
    data = crowd(n=100, n_workers=9, density=1.0)
    gold = known(data, 30)
    columns = {"task": list(gold), "truth": list(gold.values())}
    series = pd.Series(gold)
    expected = DawidSkene(random_state=0).fit(data.votes, gold=gold).probas_
    forms = [series, columns, tuple(columns.values()), pd.DataFrame(columns), pl.DataFrame(columns)]
    forms.append(pl.LazyFrame(columns))
    forms += [series.reindex(range(60)), {**gold, 10_000: 0}, pd.concat([series, series])]
    for form in forms:
        assert_array_equal(DawidSkene(random_state=0).fit(data.votes, gold=form).probas_, expected)
        assert_array_equal(DawidSkene(random_state=0).fit_predict_proba(data.votes, gold=form), expected)
    labels = DawidSkene(random_state=0).fit_predict(data.votes, gold=gold)
    assert_array_equal(labels, np.argmax(expected, axis=1))


@pytest.mark.parametrize("step", ["fit", "fit_predict", "fit_predict_proba"])
def test_the_second_argument_is_gold(step):
    """As in scikit-learn and crowd-kit: nobody's known classes are ignored in silence."""
    data = crowd(n=60, n_workers=6, density=1.0)
    gold = {task: (label + 1) % 3 for task, label in known(data, 20).items()}
    model, named = DawidSkene(init="majority"), DawidSkene(init="majority").fit(data.votes, gold=gold)
    getattr(model, step)(data.votes, gold)
    assert_array_equal(model.probas_, named.probas_)
    assert_array_equal(model.labels_[:20], list(gold.values()))
    with pytest.raises(ValueError, match="gold and y are both known classes of tasks; got both"):
        getattr(model, step)(data.votes, gold, gold=gold)


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
    with pytest.raises(ValueError, match="gold must have a class for each of the 60 rows of votes; got 20"):
        DawidSkene().fit(matrix, wrong[:20])
    with pytest.raises(ValueError, match=r"gold must be a vector; got an array of shape \(60, 2\)"):
        DawidSkene().fit(matrix, np.stack([marked, marked], axis=1))
    with pytest.raises(TypeError, match="gold must contain the classes of tasks"):
        DawidSkene().fit(matrix, np.array(1))


@pytest.mark.parametrize(
    "gold", [{}, [], np.array([]), pd.Series(dtype=object), {0: None, 1: None}, ([0, 1], [np.nan, np.nan])]
)
def test_gold_labels_of_no_task_are_none(gold):
    votes = as_votes(crowd(n=30, n_workers=5, density=1.0).votes)
    assert with_gold(votes, gold).gold is None


@pytest.mark.parametrize(
    ("gold", "error", "words"),
    [
        ({0: 3}, ValueError, "gold must give classes that votes have, 0, 1, 2; task 0 has 3"),
        ({0: "a", 1: "b"}, ValueError, "task 0 has 'a', and 1 more tasks have others"),
        ({"0": 1}, ValueError, "none of its 1 tasks, the first of them '0'"),
        (([0, 0], [1, 2]), ValueError, "task 0 has 1 and 2"),
        (([0, 1], [1]), ValueError, "2 tasks and 1 labels"),
        (pd.DataFrame({"task": [0], "colour": [1]}), ValueError, "gold must have the columns task and label"),
        ([0, 1, 2], TypeError, "which task each class is of; got 3 classes without tasks, which only a matrix"),
        (3, TypeError, "gold must contain the classes of tasks; got int. Pass a mapping"),
        ({0: [1]}, TypeError, "can be hashed"),
    ],
)
def test_gold_labels_that_do_not_fit_are_refused_in_a_sentence(gold, error, words):
    with pytest.raises(error, match=words):
        DawidSkene().fit(crowd(n=30, n_workers=5, density=1.0).votes, gold=gold)


def write(path, header, rows):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])


def test_the_command_takes_gold_labels_by_the_names_of_the_votes(tmp_path):
    data = crowd(n=60, n_workers=6, density=1.0)
    votes, gold, out = (tmp_path / name for name in ("votes.csv", "gold.csv", "labels.csv"))
    names = [f"t{task}" if task > 40 else str(task) for task in range(60)]  # words here, numbers alone in the other
    write(votes, ["image", "who", "label"], [(names[t], w, l) for t, w, l in zip(*data.votes, strict=True)])
    wrong = [(task, (int(data.truth[task]) + 1) % 3) for task in range(10)]
    write(gold, ["image", "truth"], [*wrong, (11, "")])
    options = ["--task", "image", "--worker", "who", "--gold", str(gold), "--out", str(out), "--doubtful", "3"]
    result = CliRunner().invoke(app, ["label", str(votes), *options])
    assert result.exit_code == 0, result.output
    assert "tasks most in doubt" in result.stdout
    with out.open(newline="") as file:
        labels = {row["image"]: int(row["label"]) for row in csv.DictReader(file)}
    assert [labels[str(task)] for task, _ in wrong] == [label for _, label in wrong]
    write(gold, ["image", "truth"], [(0, "cat")])
    result = CliRunner().invoke(app, ["label", str(votes), *options, "--force"])
    assert result.exit_code == 2
    assert "gold must give classes that votes have, 0, 1, 2; task '0' has 'cat'" in " ".join(result.output.split())


def test_tasks_in_doubt_come_in_the_order_of_doubt():
    data = crowd(n=100, n_workers=5, density=0.6)
    model = DawidSkene(init="majority", random_state=0).fit(data.votes, gold=known(data, 10))
    table = model.doubt_table()
    rows = np.searchsorted(model.tasks_, table["task"])
    ranked = np.sort(model.probas_[rows], axis=1)[:, ::-1]
    assert_array_equal(np.sort(table["task"]), model.tasks_)
    assert_array_equal(table["probability"], np.sort(np.max(model.probas_, axis=1)))
    assert_array_equal(table["next probability"], ranked[:, 1])
    assert_array_equal(table["label"], model.labels_[rows])
    assert_array_equal(table["votes"], np.bincount(np.searchsorted(model.tasks_, data.votes[0]))[rows])
    assert {key: column[:7].tolist() for key, column in table.items()} == {
        key: column.tolist() for key, column in model.doubt_table(7).items()
    }
    with pytest.raises(ValueError, match="n_tasks must be"):
        model.doubt_table(0)
