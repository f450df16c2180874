"""Votes in every form users keep them in, and tables in return."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from codiag.models import DawidSkene
from codiag.synthetic import crowd_votes, worker_confusions


def crowd(n):
    return crowd_votes(n, worker_confusions(20, 3, adversarial=0.2, rng=[0, 1]), density=0.8, rng=[0, 2])


def test_kinds_of_votes_give_one_answer():
    data = crowd(300)
    task, worker, label = data.votes
    matrix = np.full((300, 20), -1)
    matrix[task, worker] = label
    plain = DawidSkene(random_state=0).fit(data.votes)
    named = {"task": [f"t{t:03}" for t in task], "worker": worker, "label": [("a", "b", "c")[l] for l in label]}
    for votes, missing in ((matrix, -1), (np.where(matrix < 0, np.nan, matrix), -1), (matrix + 1, 0), (named, -1)):
        other = DawidSkene(random_state=0, missing=missing).fit(votes)
        assert_allclose(other.probas_, plain.probas_, atol=1e-9)
        assert_allclose(other.confusion_matrices_, plain.confusion_matrices_, atol=1e-9)
    assert set(DawidSkene().fit_predict(named)) == {"a", "b", "c"}


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_frames_of_other_libraries_are_read_and_tables_come_back_as_such(library):
    module = pytest.importorskip(library)
    data = crowd(200)
    columns = dict(zip(("task", "worker", "label"), data.votes, strict=True))
    frame = (module.table if library == "pyarrow" else module.DataFrame)(columns)
    model, plain = DawidSkene(random_state=0).fit(frame), DawidSkene(random_state=0).fit(data.votes)
    assert_allclose(model.probas_, plain.probas_)
    assert type(model.label_table()) is type(frame)


def test_labels_may_be_of_any_hashable_kind():
    data = crowd(200)
    kinds = [(0, "x"), None.__class__, frozenset({1})]
    votes = (data.votes[0].tolist(), data.votes[1].tolist(), [kinds[l] for l in data.votes[2]])
    model = DawidSkene(random_state=0).fit(votes)
    labels = [kinds.index(label) for label in model.labels_]
    assert np.mean(np.array(labels) == data.truth[model.tasks_]) > 0.9


def test_pandas_comes_back_as_crowd_kit_has_it():
    pd = pytest.importorskip("pandas")
    data = crowd(200)
    frame = pd.DataFrame(dict(zip(("task", "worker", "label"), data.votes, strict=True)))
    model = DawidSkene(random_state=0).fit(frame)
    assert model.labels_.index.name == "task"
    assert model.labels_.name == "agg_label"
    assert model.confusion_matrices_.index.names == ["worker", "label"]
    assert_allclose(model.confusion_matrices_.loc[3].sum(axis=0), 1)
    assert_allclose(model.probas_.sum(axis=1), 1)
    assert_allclose(model.priors_.sum(), 1)
    assert list(model.probas_.columns) == [0, 1, 2]
    plain = DawidSkene(random_state=0).fit(data.votes)
    assert_allclose(model.confusion_matrices_.to_numpy().reshape(-1, 3, 3), plain.confusion_matrices_)


@pytest.mark.parametrize(
    ("votes", "message"),
    [
        (([0, 1], [0, 1], [0]), "^columns must"),
        ({"task": [1, 2, 3], "worker": [2], "label": [3, 1, 3]}, "^columns must"),
        (([], [], []), "^votes must"),
        ({"task": [0], "worker": [1]}, "^votes must"),
        ((np.arange(4000), np.arange(4000) % 9, np.arange(4000)), "^votes must"),
        ("votes.csv", "^votes must"),
        ([1, 2, 3], "^votes must"),
        ([[0, 1], [0, 1, 2], [1, 1]], "^votes must"),
        (("abc", "def", "ghi"), "^columns must"),
        ((np.zeros((4, 2)), np.zeros(8), np.zeros(8)), "^columns must"),
        (([0, 1], [0, 1], [0.0, np.nan]), "^votes must"),
        (([0, 1], [None, 1], ["a", "b"]), "^votes must"),
    ],
)
def test_bad_votes_are_named(votes, message):
    with pytest.raises(ValueError, match=message):
        DawidSkene().fit(votes)


def test_mixed_and_missing_entries_are_what_they_are():
    assert set(DawidSkene(init="majority").fit([["a", -1, "b"], ["b", "b", "a"]] * 3).classes_) == {"a", "b"}
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"task": [1, 2], "worker": [1, 1], "label": ["a", None]}).convert_dtypes()
    with pytest.raises(ValueError, match="1 of 2 have no label"):
        DawidSkene().fit(frame)
    with pytest.raises(ValueError, match="1 of 2 have no task"):
        DawidSkene().fit({"task": pd.to_datetime(["2020-01-01", None]), "worker": [1, 1], "label": [0, 1]})


def test_labels_that_cannot_be_told_apart_are_refused():
    with pytest.raises(TypeError, match="^label must"):
        DawidSkene().fit(([0, 1], [0, 1], [["a"], ["b"]]))


@pytest.mark.parametrize("shape", [(3, 2), (3, 3), (4, 3), (3, 20), (60, 3)])
def test_matrices_with_three_lines_stay_matrices(shape):
    for seed in range(5):
        votes = np.random.default_rng(seed).integers(-1, 3, shape)
        votes[0, 0] = 0
        assert DawidSkene(init="majority").fit(votes).tasks_.size == shape[0]
    unanimous = np.repeat(np.array([["yes"], ["no"], ["perhaps"]]), 4, axis=1)
    assert DawidSkene(init="majority").fit(unanimous).labels_.tolist() == ["yes", "no", "perhaps"]


def test_ratings_in_half_steps_are_classes():
    task, worker = np.divmod(np.arange(90), 9)
    model = DawidSkene(init="majority", random_state=0).fit((task, worker, 1 + (task % 5) / 2))
    assert model.classes_.tolist() == [1.0, 1.5, 2.0, 2.5, 3.0]
