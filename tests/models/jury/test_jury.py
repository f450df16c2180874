"""Juries: clusters beyond the difficulty of items, copies, labels that no cluster dictates, and honest intervals."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from assertions import assert_same_to_rounding
from benchmarks.judges import jury_votes
from codiag.models import DawidSkene, Jury
from codiag.models.crowd import as_votes
from codiag.models.jury import find_clusters, run_clusters
from codiag.synthetic import crowd_votes, worker_confusions

HARD = [(1000, 10, 0.5, 0.6, 0.95), (400, 12, 0.3, 0.6, 0.9), (400, 8, 0.4, 0.55, 0.95)]
"""Items, judges, share of hard items, and accuracy on hard and on easy ones."""


def hard_items(n, n_workers, share_hard, hard, easy, seed):
    """Return votes (items, judges) of two classes, of judges who are independent, and the truth."""
    rng = np.random.default_rng(seed)
    truth, rate = rng.integers(0, 2, n), np.where(rng.random(n) < share_hard, hard, easy)
    return np.where(rng.random((n, n_workers)) < rate[:, None], truth[:, None], 1 - truth[:, None]), truth


@pytest.mark.parametrize("setting", HARD)
@pytest.mark.parametrize("seed", range(2))
def test_hard_items_make_no_clusters(setting, seed):
    votes, truth = hard_items(*setting, seed)
    model = Jury(random_state=0).fit(votes)
    assert model.clusters_ == []
    assert np.mean(model.labels_ == truth) > np.mean((votes.mean(axis=1) > 0.5) == truth) - 0.01
    between = model.dependence_[np.triu_indices(setting[1], 1)]
    assert abs(np.mean(between)) < 0.05


def test_without_difficulties_hard_items_would_make_clusters(monkeypatch):
    """The first setting again: what the difficulty explains is else taken for clusters."""
    for name, value in (("GUESSES", np.zeros(1)), ("FIRST_SHARES", np.ones(1))):
        monkeypatch.setattr(f"codiag.models.jury._cluster_model.{name}", value)
    votes, _ = hard_items(*HARD[0], 0)
    assert np.any(find_clusters(as_votes(votes), [], np.random.default_rng(0)) >= 0)


@pytest.mark.slow
@pytest.mark.parametrize("setting", HARD)
def test_hard_items_make_no_clusters_in_many_juries(setting):
    assert all(Jury(random_state=0).fit(hard_items(*setting, [seed, 1])[0]).clusters_ == [] for seed in range(17))


def test_a_cluster_is_found_among_hard_items():
    """Three judges who follow one answer, and seven who do not; half of the items are hard for all."""
    votes, truth = hard_items(*HARD[0], 3)
    rng = np.random.default_rng(4)
    common = votes[:, 0].copy()
    votes[:, :3] = np.where(rng.random((1000, 3)) < 0.8, common[:, None], votes[:, :3])
    model = Jury(random_state=0).fit(votes)
    assert [each.tolist() for each in model.clusters_] == [[0, 1, 2]]
    assert np.mean(model.labels_ == truth) > np.mean(DawidSkene(random_state=0).fit_predict(votes) == truth)


@pytest.mark.parametrize("k", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_clusters_are_found_and_labels_are_not_those_of_the_largest(k):
    jury = jury_votes(1000, (10, 3, 2, 2), k, shared=0.7, outsider=0.85, rng=1)
    model = Jury(random_state=0).fit(jury.votes)
    for number, members in enumerate(model.clusters_):
        assert_array_equal(members, np.flatnonzero(jury.clusters == number))
    assert len(model.clusters_) == 4
    plain = DawidSkene(random_state=0).fit(jury.votes)
    assert np.mean(model.labels_ == jury.truth) > np.mean(plain.labels_ == jury.truth) + 0.1
    assert np.mean(model.probas_.max(axis=1)) == pytest.approx(np.mean(model.labels_ == jury.truth), abs=0.05)
    low, high = model.effective_annotators_interval_
    assert 4 < low < model.n_effective_annotators_ < high < 12
    assert_array_equal(model.dependence_, model.dependence_.T)
    table = model.worker_table()
    assert_array_equal(table["cluster"] == 0, np.arange(18) == 17)
    assert table["weight"][0] < table["weight"][10] < table["weight"][17] == 1
    assert_allclose(model.predict_proba(jury.votes), model.probas_)
    assert_array_equal(model.predict(jury.votes), model.labels_)
    assert model.copies_ == []
    assert_array_equal(np.concatenate(model.clusters_), np.arange(17))


@pytest.mark.parametrize(("n_workers", "seed"), [(4, 0), (6, 3)])
def test_copies_are_named_and_are_a_cluster(n_workers, seed):
    crowd = crowd_votes(300, worker_confusions(n_workers, 2, rng=seed), rng=seed + 1)
    labels = crowd.votes[2].reshape(300, n_workers)
    model = Jury(random_state=0).fit(np.hstack([labels, labels[:, :1]]))
    assert model.copies_ == [(0, n_workers)]
    assert [each.tolist() for each in model.clusters_] == [[0, n_workers]]
    assert model.worker_accuracy_[0] == pytest.approx(np.mean(labels[:, 0] == crowd.truth), abs=0.1)
    assert_allclose(model.worker_table()["weight"][[0, n_workers]], 0.5, atol=0.06)


def test_judges_who_all_agree_are_no_copies():
    votes = np.repeat(np.arange(60)[:, None] % 3, 4, axis=1)
    model = Jury(random_state=0).fit(votes)
    assert model.copies_ == []
    assert_array_equal(model.labels_, votes[:, 0])


@pytest.mark.parametrize("seed", range(3))
def test_independent_judges_are_in_no_cluster(seed):
    crowd = crowd_votes(500, worker_confusions(12, 3, rng=[seed, 1]), density=0.7, rng=[seed, 2])
    model = Jury(random_state=0).fit(crowd.votes)
    assert model.clusters_ == []
    assert model.n_effective_annotators_ == pytest.approx(crowd.votes[0].size / 500)
    assert np.mean(model.labels_ == DawidSkene(random_state=0).fit_predict(crowd.votes)) > 0.98


def test_clusters_may_be_given():
    jury = jury_votes(400, (6, 2, 1, 1), 3, shared=0.8, rng=2)
    names = {judge: f"model {cluster}" if cluster < 2 else None for judge, cluster in enumerate(jury.clusters.tolist())}
    one = Jury(random_state=0, clusters=names).fit(jury.votes)
    assert [each.tolist() for each in one.clusters_] == [[0, 1, 2, 3, 4, 5], [6, 7]]
    other = Jury(random_state=0, clusters=list(names.values())).fit(jury.votes)
    assert_same_to_rounding(one.probas_, other.probas_)
    assert Jury(random_state=0, clusters=None).fit(jury.votes).clusters_ == []
    for wrong in ({"x": 1}, ["a", "b"], "some"):
        with pytest.raises(ValueError, match=r"^clusters must"):
            Jury(clusters=wrong).fit(jury.votes)


def test_a_jury_of_one_mind_is_said_to_be_so():
    """Two clusters of copies: either may be right, and labels are those of the majority."""
    jury = jury_votes(500, (5, 3), 3, shared=0.97, rng=0)
    with pytest.warns(UserWarning, match="form 2 clusters, with 2.* known classes"):
        model = Jury(random_state=0, clusters=jury.clusters.tolist()).fit(jury.votes)
    counts = np.stack([np.bincount(jury.votes[0], jury.votes[2] == label, 500) for label in range(3)], axis=1)
    assert_array_equal(counts[np.arange(500), model.labels_], counts.max(axis=1))
    assert "too few to tell who is right" in model.reason_


def test_known_classes_help_where_clusters_disagree():
    jury = jury_votes(1000, (5, 3), 3, shared=0.97, rng=0)
    gold = dict(enumerate(jury.truth[:200].tolist()))
    model = Jury(random_state=0, clusters=jury.clusters.tolist()).fit(jury.votes, gold)
    labels = jury.votes[2].reshape(1000, 8)
    best = labels[:, np.argmax(np.mean(labels[:200] == jury.truth[:200, None], axis=0))]
    assert_array_equal(model.labels_[:200], jury.truth[:200])
    right = [np.mean((each == jury.truth)[200:]) for each in (model.labels_, best)]
    assert right[0] > right[1] - 0.01


@pytest.mark.slow
def test_intervals_have_the_uncertainty_of_the_model_which_falls_like_the_root_of_the_items():
    """Four clusters that are often wrong: how good each is depends on all others."""
    widths = []
    for n_tasks in (400, 6400):
        jury = jury_votes(n_tasks, (3, 3, 3, 3), 2, shared=0.9, rng=1)
        model = Jury(random_state=0, clusters=jury.clusters.tolist()).fit(jury.votes)
        accuracy = np.mean(jury.votes[2].reshape(n_tasks, -1) == jury.truth[:, None], axis=0)
        errors = model.worker_accuracy_standard_errors_
        assert np.sqrt(np.mean((model.worker_accuracy_ - accuracy) ** 2)) < 3 * np.sqrt(np.mean(errors**2))
        assert np.mean(errors) > 1.2 * np.mean(np.sqrt(accuracy * (1 - accuracy) / n_tasks))
        widths.append(np.mean(errors))
    assert widths[0] / widths[1] == pytest.approx(4, rel=0.6)


def test_one_coin_has_one_accuracy_for_all_classes():
    jury = jury_votes(300, (3, 1, 1, 1), 3, rng=0)
    model = Jury(one_coin=True, random_state=0).fit(jury.votes)
    right = np.einsum("wcc->wc", model.confusion_matrices_)
    assert_allclose(right, right[:, :1].repeat(3, axis=1))


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_frames_come_back_as_frames(package):
    module = pytest.importorskip(package)
    jury = jury_votes(200, (3, 1, 1, 1), 2, shared=0.8, rng=0)
    frame = module.DataFrame(dict(zip(("task", "judge", "label"), (c.tolist() for c in jury.votes), strict=True)))
    model, plain = (Jury(random_state=0).fit(votes) for votes in (frame, jury.votes))
    for name in ("label_table", "worker_table", "least_confident"):
        table, expected = getattr(model, name)(), getattr(plain, name)()
        assert list(table.columns) == list(expected)
    assert_array_equal(np.asarray(model.label_table()["label"]), plain.labels_)


def test_all_judges_are_not_one_cluster():
    """Judges who always agree are right, or there is no telling."""
    votes = as_votes((np.repeat(np.arange(90), 3), np.tile(np.arange(3), 90), np.repeat(np.arange(90) % 30, 3)))
    assert not np.all(find_clusters(votes, [(0, 1), (0, 2), (1, 2)], np.random.default_rng(0)) == 0)


def test_steps_that_end_too_early_are_warned_of():
    votes = jury_votes(200, (3, 1, 1, 1), 2, rng=0).votes
    with pytest.warns(UserWarning, match="max_iter=2"):
        assert not Jury(clusters=None, max_iter=2, random_state=0).fit(votes).converged_
    assert run_clusters(as_votes(votes), np.full(6, -1), as_votes(votes).shares, 500, 1e-5).converged
    with pytest.raises(ValueError, match=r"^max_iter must"):
        Jury(max_iter=0).fit(votes)
