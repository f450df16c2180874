"""Moments of a crowd: what any method finds from them, what they cannot tell, and the groups they are taken over."""

from __future__ import annotations

import numpy as np
import pytest

from codiag.methods import ALS, NLS, NOJD
from codiag.models import DawidSkene
from codiag.models.crowd import as_votes, estimate_crowd, random_groups
from codiag.synthetic import crowd_votes, worker_confusions
from simulated import crowd


@pytest.mark.slow
def test_errors_of_moments_fall_like_the_root_of_the_tasks():
    sizes = [1000, 4000, 16000]
    errors = []
    for n in sizes:
        runs = [crowd(3, n=n, n_workers=30, seed=seed) for seed in range(3)]
        fits = [DawidSkene(max_iter=0, random_state=0).fit(run.votes) for run in runs]
        errors.append(
            np.mean(
                [np.abs(fit.confusion_matrices_ - run.confusions).mean() for fit, run in zip(fits, runs, strict=True)]
            )
        )
    slope = np.polyfit(np.log(sizes), np.log(errors), 1)[0]
    assert -0.6 < slope < -0.4


@pytest.mark.parametrize("method", ["nojd0", "nojd1", "ojd1", "tpm", "als"])
def test_any_method_serves(method):
    data = crowd(3)
    method = ALS(init=NOJD()) if method == "als" else method
    model = DawidSkene(method=method, max_iter=0, n_partitions=5, random_state=0).fit(data.votes)
    assert model.init_ == "moments"
    assert np.abs(model.confusion_matrices_ - data.confusions).mean() < 0.06


@pytest.mark.parametrize(
    ("method", "words"),
    [(NLS(init=(np.ones(2), [np.ones((5, 2))] * 3)), "^init must")],
)
def test_what_a_method_has_against_its_options_is_not_blamed_on_the_votes(method, words):
    with pytest.raises(ValueError, match=words):
        DawidSkene(method=method, n_partitions=2, random_state=0).fit(crowd(3).votes)


@pytest.mark.parametrize("method", ["nojd1", "ojd1"])
def test_votes_of_fewer_classes_are_no_mistake_of_the_user(method, monkeypatch):
    """The votes of two classes, asked for three: every partition is found to have no third one, by every method."""
    monkeypatch.setattr(
        "codiag.models.crowd._starts._weakest_pair", lambda *_: (1.0, 0.0)
    )  # which would find it before
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 60)
    votes = np.tile(truth[:, None], 9)
    votes[0, 0] = 2
    with pytest.warns(UserWarning, match="^The method of moments"):
        DawidSkene(method=method, n_partitions=2, random_state=0).fit(votes)


@pytest.mark.parametrize(
    "votes",
    [
        ([0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 1, 1]),  # two workers
        (np.arange(60) // 2, np.arange(60) % 3, np.arange(60) % 2),  # two votes on a task
        (np.repeat(np.arange(6), 6), np.tile(np.arange(6), 6), np.arange(36) % 9),  # six tasks, nine classes
    ],
)
def test_what_moments_cannot_tell_is_asked_of_the_majority(votes):
    with pytest.warns(UserWarning, match="^The method of moments"):
        model = DawidSkene().fit(votes)
    assert model.init_ == "majority"
    assert np.all(np.isfinite(model.probas_))


def test_partitions_that_tell_more_count_more():
    """Of workers of whom half swap the classes, few partitions hold unlike groups; those decide."""
    misses = []
    for seed in range(4):
        errors = worker_confusions(40, 2, rng=[seed, 1])
        errors[::2] = errors[::2, ::-1]
        data = crowd_votes(5000, errors, density=0.25, rng=[seed, 2])
        found = DawidSkene(max_iter=0, random_state=0).fit(data.votes).confusion_matrices_
        misses.append(min(np.abs(found[..., order] - errors).mean() for order in ([0, 1], [1, 0])))
    assert np.mean(misses) < 0.04


def test_directions_are_judged_by_tasks_that_had_no_say():
    """Otherwise those of meaningless votes seem to mean something: in 6 of 40 sets, which are these."""
    for seed in (1, 6, 14, 17, 18, 32):
        rng = np.random.default_rng(seed)
        votes = as_votes(tuple(rng.integers(0, size, 4000) for size in (400, 20, 3)))
        assert estimate_crowd(votes, 10, None, rng) is None


def test_votes_without_meaning_are_not_taken_for_classes():
    rng = np.random.default_rng(0)
    votes = tuple(rng.integers(0, size, 3000) for size in (400, 30, 4))
    with pytest.warns(UserWarning, match="^The method of"):
        DawidSkene().fit(votes)


def test_groups_have_like_numbers_of_votes():
    data = crowd(n=1000)
    votes = as_votes(data.votes)
    groups = random_groups(votes, np.random.default_rng(0))
    totals = np.bincount(groups, weights=votes.votes_of_workers)
    assert totals.max() < 1.3 * totals.min()


def test_many_classes_are_left_to_the_majority():
    votes = (np.repeat(np.arange(300), 3), np.tile(np.arange(3), 300), np.repeat(np.arange(300) % 150, 3))
    with pytest.warns(UserWarning, match="^The method of moments"):
        assert DawidSkene(max_iter=1, tol=0).fit(votes).classes_.size == 150
