"""Workers who copy: likelihood ratios of mean one, pairs that are found, votes that share a weight."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from codiag.models import DawidSkene
from codiag.models.crowd import RATES, CrowdModel, _joint, _scores, as_votes, common_rate, meetings, with_shared_votes
from codiag.synthetic import crowd_votes, worker_confusions


def copying(seed, k, rate, n=400, n_workers=20, pairs=2):
    """Return votes in which worker 2i + 1 sees what worker 2i sees, and gives the same label on a share of it.

    They are right on two thirds of the tasks: agreement of workers who are nearly always right looks like skill.
    """
    rng = np.random.default_rng([seed, k])
    errors = worker_confusions(n_workers, k, seed=[seed, 1])
    errors[: 2 * pairs] = np.where(np.eye(k, dtype=bool), 2 / 3, 1 / 3 / (k - 1))
    data = crowd_votes(n, errors, seed=[seed, 2])
    labels = data.votes[2].reshape(n, n_workers).copy()
    seen = rng.random(labels.shape) < 0.5
    for one in range(0, 2 * pairs, 2):
        copied = rng.random(n) < rate
        labels[copied, one + 1] = labels[copied, one]
        seen[:, one + 1] = seen[:, one]
    task, worker = np.nonzero(seen)
    return (task, worker, labels[task, worker]), data.truth


def test_likelihood_ratios_have_mean_one_for_workers_who_do_not_copy():
    """Over all labels that two workers may give, whatever the third said, by their exact probabilities."""
    k, errors = 3, worker_confusions(3, 3, seed=0)
    shares = np.array([0.5, 0.3, 0.2])
    labels = np.array(list(itertools.product(range(k), repeat=3)))  # a task for every outcome
    votes = as_votes(tuple(column.ravel() for column in (*np.indices(labels.shape), labels)))
    model = CrowdModel(errors, shares)
    vars(votes)["votes_of_workers"] = np.full(3, 10**12)  # so that the matrices are taken as they are
    chances = np.einsum("c,ac,bc,dc->abd", shares, *errors).ravel()
    met, _ = meetings(votes)
    scores, agreement = _scores(votes, _joint(votes, model), met)
    for pair in ((0, 1), (0, 2), (1, 2)):
        some = (met.first == pair[0]) & (met.second == pair[1])
        weights = chances[met.task[some]]
        assert weights @ scores[some] == pytest.approx(0, abs=1e-6)
        agree = met.label[some] == met.other[some]
        assert weights @ agreement[some] == pytest.approx(weights[agree].sum(), abs=1e-6)
        for common, rate in ((0.0, 0.4), (0.1, 0.4), (0.1, 0.95)):
            ratios = (1 + rate * scores[some]) / (1 + common * scores[some])
            assert weights @ ratios <= 1 + 1e-6
            assert (weights * (1 + common * scores[some])) @ ratios == pytest.approx(1, abs=1e-6)


def test_meetings_are_all_pairs_of_workers_on_a_task():
    rng = np.random.default_rng(0)
    columns = rng.integers(0, 7, 60), rng.integers(0, 5, 60), rng.integers(0, 3, 60)
    votes = as_votes(columns)
    first = {}
    for task, worker, label in zip(votes.task.tolist(), votes.worker.tolist(), votes.label.tolist(), strict=True):
        first.setdefault((task, worker), label)
    expected = {
        (task, one, other, label, second)
        for (task, one), label in first.items()
        for (same, other), second in first.items()
        if same == task and one < other
    }
    found = list(zip(*(column.tolist() for column in meetings(votes)[0][:5]), strict=True))
    assert len(found) == len(expected)
    assert set(found) == expected


def test_the_common_rate_is_the_most_probable():
    rng = np.random.default_rng(1)
    scores = np.where(rng.random(4000) < 0.5 + 0.5 * 0.2, 1.0, -1.0)  # two labels, each as probable: s is 1 or -1
    assert common_rate(scores) == pytest.approx(max(np.mean(scores), 0), abs=1e-3)
    assert common_rate(-np.abs(scores)) == 0
    assert np.all(np.diff(RATES) > 0)


@pytest.mark.parametrize("k", [4])
@pytest.mark.parametrize("options", [{}, {"one_coin": True}, {"smoothing": 0.0}])
def test_pairs_that_copy_are_named_and_no_others(k, options):
    votes, _ = copying(0, k, 1.0)
    model = DawidSkene(init="majority", random_state=0, **options).fit(votes)
    assert {tuple(pair) for pair in model.copies_.tolist()} == {(0, 1), (2, 3)}
    table = model.copy_table()
    assert_array_equal(np.stack([table["worker"], table["other"]], axis=1), model.copies_)
    assert np.all(table["agreed"] > table["expected"])
    assert np.all((table["p"] <= 0.05) & (table["shared"] >= table["agreed"]))
    honest, _ = copying(0, k, 0.0)
    assert DawidSkene(init="majority", random_state=0, **options).fit(honest).copies_.shape == (0, 2)


def test_copies_share_a_vote_where_that_is_asked_for():
    votes = as_votes((np.array([0, 0, 0, 1, 1, 1]), np.array([0, 1, 2, 0, 1, 2]), np.array([1, 1, 1, 0, 1, 1])))
    assert_allclose(with_shared_votes(votes, np.array([[0, 1]])).weights, [0.5, 0.5, 1, 1, 1, 1])
    gains = []
    for seed in range(2):
        data, truth = copying(seed, 4, 1.0, pairs=4)
        models = [DawidSkene(init="majority", copies=copies).fit(data) for copies in ("share", "count")]
        shared, counted = (np.mean(model.labels_ == truth[model.tasks_]) for model in models)
        gains.append(shared - counted)
        assert np.min(np.diff(models[0].loss_history_), initial=0) > -1e-10
    assert np.mean(gains) > 0
    honest, _ = copying(0, 2, 0.0)
    one, other = (DawidSkene(init="majority", copies=copies).fit_predict_proba(honest) for copies in ("share", "count"))
    assert_array_equal(one, other)
    with pytest.raises(ValueError, match="copies must be 'share' or 'count'; got 'drop'"):
        DawidSkene(copies="drop").fit(honest)


@pytest.mark.parametrize("k", [2, 3])
def test_copiers_whom_plain_rounds_take_for_the_truth_are_named_and_no_honest_pair(k):
    """Three of twelve workers give the same labels: as workers who are always right they explain the votes well."""
    rng = np.random.default_rng([0, 3, 12, k])
    truth = rng.integers(0, k, 400)
    right = rng.random((400, 12)) < 0.75
    votes = np.where(right, truth[:, None], (truth[:, None] + rng.integers(1, k, (400, 12))) % k)
    votes[:, 1] = votes[:, 2] = votes[:, 0]
    model = DawidSkene(random_state=0).fit(votes)
    assert {tuple(pair) for pair in model.copies_.tolist()} == {(0, 1), (0, 2), (1, 2)}
    assert np.mean(model.labels_ == truth) > 0.9
    assert np.all(model.worker_accuracy_ < 0.85)
    counted = DawidSkene(random_state=0, copies="count").fit(votes)
    assert_array_equal(counted.copies_, model.copies_)


def test_where_two_explanations_are_nearly_as_probable_nobody_is_named():
    """Four copiers among unequal workers: as the truth itself they explain the votes as well. Known classes tell."""
    rng = np.random.default_rng([50, 4, 12, 2])
    truth = rng.integers(0, 2, 400)
    rates = np.append(np.full(4, 0.7), rng.uniform(0.5, 0.9, 8))
    votes = np.where(rng.random((400, 12)) < rates, truth[:, None], 1 - truth[:, None])
    votes[:, 1:4] = votes[:, :1]
    with pytest.warns(UserWarning, match="it is ambiguous whether some of the workers .* copy") as caught:
        doubted = DawidSkene(random_state=0).fit(votes)
    assert len(caught) == 1
    assert doubted.copies_.shape == (0, 2)
    told = DawidSkene(random_state=0).fit(votes, dict(enumerate(truth[:20].tolist())))
    assert {tuple(pair) for pair in told.copies_.tolist()} == set(itertools.combinations(range(4), 2))
    assert np.mean(told.labels_[20:] == truth[20:]) > 0.85


def test_pairs_of_many_workers_on_few_tasks_are_bounded(monkeypatch):
    monkeypatch.setattr("codiag.models.crowd._copies.MOST_CELLS", 20_000)
    labels = np.random.default_rng(0).integers(0, 2, (20, 1000))
    met, thinned = meetings(as_votes(labels))
    assert thinned
    assert 5_000 < met.task.size <= 20_000
    assert np.unique(met.task).size == 20
    few, _ = meetings(as_votes(labels[:4]))
    assert few.task.size == 0
    assert DawidSkene(init="majority").fit(labels[:4, :50]).copies_.shape == (0, 2)


def test_shared_tasks_are_counted_on_all_tasks_where_some_are_looked_at(monkeypatch):
    votes, _ = copying(0, 4, 1.0)
    columns = as_votes(votes)
    monkeypatch.setattr("codiag.models.crowd._copies.MOST_CELLS", 4 * 10_000)
    assert meetings(columns)[1]
    model = DawidSkene(init="majority", random_state=0).fit(votes)
    table = model.copy_table()
    assert {tuple(pair) for pair in model.copies_.tolist()} == {(0, 1), (2, 3)}
    for one, other, shared, agreed in zip(
        *(table[key] for key in ("worker", "other", "shared", "agreed")), strict=True
    ):
        seen = [{(t, l) for t, w, l in zip(*votes, strict=True) if w == worker} for worker in (one, other)]
        assert shared == len({t for t, _ in seen[0]} & {t for t, _ in seen[1]})
        assert agreed == len(seen[0] & seen[1])
