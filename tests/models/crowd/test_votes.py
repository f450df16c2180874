"""Votes in every form users keep them in, and tables in return."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.metrics import confusion_matrix

from codiag.models import DawidSkene
from codiag.synthetic import crowd_votes, worker_confusions


def crowd(n):
    return crowd_votes(n, worker_confusions(20, 3, adversarial=0.2, seed=[0, 1]), density=0.8, seed=[0, 2])


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
        assert_allclose(other.confusion_, plain.confusion_, atol=1e-9)
    assert set(DawidSkene().fit_predict(named)) == {"a", "b", "c"}


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
    assert model.confusion_.index.names == ["worker", "label"]
    assert_allclose(model.confusion_.loc[3].sum(axis=0), 1)
    assert_allclose(model.probas_.sum(axis=1), 1)
    assert_allclose(model.priors_.sum(), 1)
    assert list(model.probas_.columns) == [0, 1, 2]
    plain = DawidSkene(random_state=0).fit(data.votes)
    assert_allclose(model.confusion_.to_numpy().reshape(-1, 3, 3), plain.confusion_)


def test_polars_comes_back_as_polars():
    pl = pytest.importorskip("polars")
    data = crowd(200)
    frame = pl.DataFrame(dict(zip(("task", "worker", "label"), data.votes, strict=True)))
    model = DawidSkene(random_state=0).fit(frame.lazy())
    assert model.labels_.columns == ["task", "agg_label"]
    assert model.confusion_.columns == ["worker", "label", "0", "1", "2"]
    assert_allclose(model.probas_.drop("task").to_numpy(), DawidSkene(random_state=0).fit(data.votes).probas_)


def test_pyarrow_comes_back_as_pyarrow():
    pa = pytest.importorskip("pyarrow")
    data = crowd(200)
    table = pa.table(dict(zip(("task", "worker", "label"), data.votes, strict=True)))
    gold = pa.table({"task": data.votes[0][:1], "label": data.truth[data.votes[0][:1]]})
    model = DawidSkene(random_state=0).fit(table, gold)
    plain = DawidSkene(random_state=0).fit(data.votes, {int(data.votes[0][0]): int(data.truth[data.votes[0][0]])})
    assert model.labels_.column_names == ["task", "agg_label"]
    assert model.confusion_.column_names == ["worker", "label", "0", "1", "2"]
    assert_allclose(np.stack([model.probas_[name].to_numpy() for name in ("0", "1", "2")], axis=1), plain.probas_)
    assert_allclose(model.worker_accuracy_["accuracy"].to_numpy(), plain.worker_accuracy_)


@pytest.mark.parametrize(
    ("votes", "message"),
    [
        (([0, 1], [0, 1], [0]), "of one length"),
        ({"task": [1, 2, 3], "worker": [2], "label": [3, 1, 3]}, "of one length"),
        (([], [], []), "at least one vote"),
        ({"task": [0], "worker": [1]}, "columns task .*; got task, worker"),
        (
            np.stack([np.arange(90), np.arange(90) % 7, np.arange(90) % 2], axis=1),
            "tuple of three columns, not an array",
        ),
        ((np.arange(40_000), np.arange(40_000) % 9, np.arange(40_000)), "of few classes; 40000 labels"),
        ("votes.csv", "read by codiag.io.read_votes"),
        ([1, 2, 3], "must be a data frame"),
        (([0, 1], [0, 1], [0.0, np.nan]), "1 of 2 have no label, the first is row 1"),
        (([0, 1], [None, 1], ["a", "b"]), "have no worker, the first is row 0"),
    ],
)
def test_bad_votes_are_named(votes, message):
    with pytest.raises(ValueError, match=message):
        DawidSkene().fit(votes)


def test_mixed_masked_and_missing_entries_are_what_they_are():
    assert set(DawidSkene(init="majority").fit([["a", -1, "b"], ["b", "b", "a"]] * 3).classes_) == {"a", "b"}
    masked = np.ma.masked_equal([[0, 9, 0], [1, 9, 1]], 9)
    assert DawidSkene(init="majority").fit(masked).classes_.tolist() == [0, 1]
    data = crowd(100)
    listed = DawidSkene(random_state=0).fit(list(data.votes))
    assert_allclose(listed.probas_, DawidSkene(random_state=0).fit(data.votes).probas_)
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"task": [1, 2], "worker": [1, 1], "label": ["a", None]}).convert_dtypes()
    with pytest.raises(ValueError, match="1 of 2 have no label"):
        DawidSkene().fit(frame)
    with pytest.raises(ValueError, match="1 of 2 have no task"):
        DawidSkene().fit({"task": pd.to_datetime(["2020-01-01", None]), "worker": [1, 1], "label": [0, 1]})
    with pytest.raises(ValueError, match="different names"):
        DawidSkene().fit(pd.DataFrame([[1, 2, 3, 4]], columns=["task", "worker", "label", "label"]))


def test_tables_keep_columns_whose_names_are_classes():
    pl = pytest.importorskip("polars")
    data = crowd(60)
    labels = np.array(["task", "worker", "x"])[data.votes[2]]
    frame = pl.DataFrame({"task": data.votes[0], "worker": data.votes[1], "label": labels})
    model = DawidSkene(init="majority").fit(frame)
    assert model.probas_.columns == ["task", "class 0: task", "class 1: worker", "class 2: x"]


def test_sparse_matrices_are_refused():
    with pytest.raises(TypeError, match="zero is no vote"):
        DawidSkene().fit(sparse.csr_array(np.eye(4)))


def test_names_of_columns_may_differ():
    data = crowd(100)
    votes = dict(zip(("Item", "rater", "ANSWER"), data.votes, strict=True))
    assert_allclose(DawidSkene(random_state=0).fit(votes).probas_, DawidSkene(random_state=0).fit(data.votes).probas_)


def test_labels_that_cannot_be_told_apart_are_refused():
    with pytest.raises(TypeError, match="label must contain values that can be hashed"):
        DawidSkene().fit(([0, 1], [0, 1], [["a"], ["b"]]))


def triples(n_tasks=40, n_workers=6):
    task, worker = (grid.ravel() for grid in np.indices((n_tasks, n_workers)))
    return task, worker, (task + (worker == 0)) % 2


def test_a_list_of_three_lists_is_read_as_the_columns_it_holds():
    task, worker, label = triples()
    expected = DawidSkene(init="majority").fit((task, worker, label))
    named = [[f"t{t:02}" for t in task], [f"w{w}" for w in worker], ["no" if l else "yes" for l in label]]
    for votes in (named, [column.tolist() for column in triples()], list(triples())):
        model = DawidSkene(init="majority").fit(votes)
        assert (model.tasks_.size, model.workers_.size, model.classes_.size) == (40, 6, 2)
        assert_allclose(np.sort(model.probas_, axis=1), np.sort(expected.probas_, axis=1), atol=1e-9)


def test_labels_of_minus_one_are_labels_in_columns():
    task, worker, label = (column.tolist() for column in triples())
    model = DawidSkene(init="majority").fit([task, worker, [2 * l - 1 for l in label]])
    assert model.classes_.tolist() == [-1, 1]


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("kind", [int, str])
def test_arrays_and_rows_of_triples_are_refused_with_the_way_out(kind, turned):
    columns = np.array(triples(), dtype=kind)
    columns = columns if kind is int else np.char.add(np.array([["t"], ["w"], ["l"]]), columns)
    votes = columns.T if turned else columns
    way_out = r"tuple\(votes\.T\)" if turned else r"tuple\(votes\)"
    with pytest.raises(ValueError, match=f"looks like task, worker and label; pass {way_out}"):
        DawidSkene().fit(votes)
    if turned:
        with pytest.raises(ValueError, match=r"pass tuple\(zip\(\*votes\)\)"):
            DawidSkene().fit([tuple(row) for row in votes.tolist()])


def test_triples_of_which_labels_are_missing_are_not_a_matrix():
    votes = np.array(triples(), dtype=object).T
    votes[3, 2] = None
    with pytest.raises(ValueError, match="looks like task, worker and label"):
        DawidSkene().fit(votes)


@pytest.mark.filterwarnings("ignore:no task has votes of two workers")
@pytest.mark.parametrize("shape", [(3, 2), (3, 3), (4, 3), (3, 20), (60, 3)])
def test_matrices_with_three_lines_stay_matrices(shape):
    for seed in range(5):
        votes = np.random.default_rng(seed).integers(-1, 3, shape)
        votes[0, 0] = 0
        assert DawidSkene(init="majority").fit(votes).tasks_.size == shape[0]
    unanimous = np.repeat(np.array([["yes"], ["no"], ["perhaps"]]), 4, axis=1)
    assert DawidSkene(init="majority").fit(unanimous).labels_.tolist() == ["yes", "no", "perhaps"]


@pytest.mark.parametrize(
    ("votes", "message"),
    [
        ([[0, 0, 1, 1], [0, 1, 0, 1], [0, 0, 1, 1]], "these look like both; pass the tuple"),
        ([["a"] * 4, ["b"] * 4, ["c"] * 4], "these look like neither; pass the tuple"),
        ([[0, 1], [0, 1, 2], [1, 1]], "of one length"),
        (("abc", "def", "ghi"), "must be a data frame"),
        ({"task": "abc", "worker": "def", "label": "ghi"}, "must be sequences of values; got 'abc'"),
        ((np.zeros((4, 2)), np.zeros(8), np.zeros(8)), r"must be vectors; got one of shape \(4, 2\)"),
    ],
)
def test_what_could_be_misread_is_refused(votes, message):
    with pytest.raises(ValueError, match=message):
        DawidSkene().fit(votes)


def test_columns_in_another_order_are_refused_before_they_cost_minutes():
    task, worker, label = triples(800, 10)
    with pytest.raises(ValueError, match=r"800 labels of 10 workers on 2 tasks .* another order than task, worker"):
        DawidSkene().fit((label, worker, task))


@pytest.mark.parametrize("kind", [float, str])
def test_measured_numbers_are_no_classes(kind):
    values = np.random.default_rng(0).random(150).round(3).astype(kind)
    with pytest.raises(ValueError, match=r"150 labels are \d+ different numbers such as 0\.\d+, which look measured"):
        DawidSkene(random_state=0).fit((np.arange(150) // 3, np.arange(150) % 3, values))


def test_ratings_in_half_steps_are_classes():
    task, worker = np.divmod(np.arange(90), 9)
    model = DawidSkene(init="majority", random_state=0).fit((task, worker, 1 + (task % 5) / 2))
    assert model.classes_.tolist() == [1.0, 1.5, 2.0, 2.5, 3.0]


def test_confusion_matrices_have_the_rows_of_scikit_learn():
    """Where the truth is certain, they are its shares of labels for each true class."""
    task, worker = np.divmod(np.arange(900), 9)
    truth = task % 3
    label = np.where(worker == 0, np.where(truth == 2, task // 3 % 2, truth), truth)
    model = DawidSkene(init="majority", smoothing=0.0, random_state=0).fit((task, worker, label))
    expected = confusion_matrix(truth[worker == 0], label[worker == 0], normalize="true")
    assert_allclose(model.confusion_matrices_[0], expected, atol=1e-12)


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_a_wide_frame_is_refused_with_what_makes_it_long(package):
    """And what the message says does that."""
    module = pytest.importorskip(package)
    frame = module.DataFrame({"photo": ["a", "b"], "ann": ["x", None], "bob": ["x", "y"]})
    with pytest.raises(ValueError, match="votes must have the columns task") as caught:
        DawidSkene().fit(frame)
    advice = str(caught.value).split(" workers, take ")[1].split(" and rename")[0]
    long = eval(advice, {"frame": frame})
    assert sorted(zip(long["photo"], long["worker"], long["label"], strict=True)) == [
        ("a", "ann", "x"),
        ("a", "bob", "x"),
        ("b", "bob", "y"),
    ]
    assert "rename" in str(caught.value)


@pytest.mark.filterwarnings("ignore:moments do not determine this crowd")
def test_workers_whom_nobody_checks_are_warned_of():
    rng = np.random.default_rng(0)
    votes = np.arange(40), np.arange(40) % 4, rng.integers(2, size=40)
    with pytest.warns(UserWarning, match="no task has votes of two workers, so that the accuracy of the 4 workers"):
        DawidSkene(random_state=0).fit(votes)
    shared = votes[0] // 2, votes[1], votes[2]
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="no task has votes")
        DawidSkene(random_state=0).fit(shared)
