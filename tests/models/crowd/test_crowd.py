"""Crowd labels: the paper's row exactly, likelihoods that never fall, starts that no majority spoils."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

import codiag
from codiag.models import DawidSkene
from codiag.models.crowd import as_votes
from codiag.synthetic import crowd_votes, worker_confusions
from real_data import needs_data
from simulated import crowd

PAPER = {"web": (83.68, 2665), "rte": (92.75, 800), "bluebird": (88.89, 108), "dog": (83.89, 807)}


@needs_data
@pytest.mark.parametrize("name", PAPER)
def test_five_rounds_from_the_majority_are_the_row_of_the_paper(name):
    from codiag.datasets import load_crowd

    printed, n_tasks = PAPER[name]
    data = load_crowd(name)
    model = DawidSkene(init="majority", max_iter=5, prior="uniform", smoothing=0, tol=0).fit(data.votes)
    assert round(100 * data.accuracy(model.tasks_, model.labels_, n_tasks), 2) == printed


@needs_data
@pytest.mark.parametrize("name", PAPER)
def test_seeds_hardly_matter(name):
    from codiag.datasets import load_crowd

    data = load_crowd(name)
    models = [DawidSkene(random_state=seed).fit(data.votes) for seed in range(3)]
    assert all(model.init_ == "moments" for model in models)
    for model in models[1:]:
        assert np.mean(model.labels_ == models[0].labels_) > 0.975
        assert_allclose(model.worker_accuracy_, models[0].worker_accuracy_, atol=0.05)


@needs_data
def test_a_rater_who_rates_three_times_counts_three_times():
    from codiag.datasets import load_crowd

    data = load_crowd("anesthesia")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = DawidSkene(random_state=0).fit(data.votes)
    assert as_votes(data.votes).counts.max() == 3
    assert_allclose(np.sum(model.confusion_matrices_, axis=1), 1)


def em_by_hand(votes, k, n_workers, n_rounds, one_coin):
    """Do as Dawid and Skene write, vote by vote."""
    task, worker, label = (column.tolist() for column in votes)
    n = max(task) + 1
    q = np.zeros((n, k))
    for t, l in zip(task, label, strict=True):
        q[t, l] += 1
    q /= q.sum(axis=1, keepdims=True)
    for _ in range(n_rounds):
        errors = np.full((n_workers, k, k), 0.5)
        for t, w, l in zip(task, worker, label, strict=True):
            errors[w, l] += q[t]
        if one_coin:  # all that is right of a worker, and half a vote for every label in all
            right = np.trace(errors - 0.5 + 0.5 / k, axis1=1, axis2=2) / (errors - 0.5 + 0.5 / k).sum(axis=(1, 2))
            errors[:] = ((1 - right) / (k - 1))[:, None, None]
            errors[:, range(k), range(k)] = right[:, None]
        errors /= errors.sum(axis=1, keepdims=True)
        shares = (q.sum(axis=0) + 0.5) / (n + 0.5 * k)
        q = np.tile(shares, (n, 1))
        for t, w, l in zip(task, worker, label, strict=True):
            q[t] *= errors[w, l]
        q /= q.sum(axis=1, keepdims=True)
    return q, errors, shares


@pytest.mark.parametrize("one_coin", [False, True])
def test_expectation_maximization_is_that_of_dawid_and_skene(one_coin):
    data = crowd(n=60, n_workers=8, density=1.0)
    model = DawidSkene(init="majority", max_iter=3, smoothing=0.5, tol=0, one_coin=one_coin).fit(data.votes)
    probas, errors, shares = em_by_hand(data.votes, 3, 8, 3, one_coin)
    assert_allclose(model.probas_, probas, atol=1e-12)
    assert_allclose(model.confusion_matrices_, errors, atol=1e-12)
    assert_allclose(model.priors_, shares, atol=1e-12)


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    k=st.integers(2, 4),
    smoothing=st.sampled_from(["estimated", 0.0, 0.1, 1.0, 3.0]),
    init=st.sampled_from(["moments", "majority"]),
    prior=st.sampled_from(["estimated", "uniform"]),
    one_coin=st.booleans(),
)
def test_the_objective_never_falls(seed, k, smoothing, init, prior, one_coin):
    rng = np.random.default_rng(seed)
    votes = tuple(rng.integers(0, size, 60) for size in (15, 6, k))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = DawidSkene(init=init, prior=prior, smoothing=smoothing, one_coin=one_coin, max_iter=30, tol=0).fit(
            votes
        )
    assert np.min(np.diff(model.loss_history_), initial=0) > -1e-10
    assert_allclose(np.sum(model.confusion_matrices_, axis=1), 1)
    assert_allclose(np.sum(model.probas_, axis=1), 1)


@pytest.mark.slow
@pytest.mark.parametrize("k", [2, 3, 5])
def test_moments_lead_to_the_optimum_beside_the_truth(k):
    for seed in range(3):
        data = crowd(k, seed=seed)
        options = {"smoothing": 0.01, "max_iter": 500, "tol": 1e-9}
        found = DawidSkene(random_state=seed, **options).fit(data.votes)
        beside = DawidSkene(init=data.confusions, **options).fit(data.votes)
        assert found.init_ == "moments"
        assert abs(found.log_likelihood_ - beside.log_likelihood_) < 1e-4 * data.votes[0].size


@pytest.mark.slow
def test_moments_recover_classes_if_every_worker_permutes_the_labels():
    """The majority vote then carries no information; moments do not need it."""
    gaps = []
    for seed in range(3):
        rng = np.random.default_rng([seed, 9])
        errors = np.stack([one[rng.permutation(8)] for one in worker_confusions(40, 8, rng=[seed, 1])])
        votes = crowd_votes(5000, errors, density=0.25, rng=[seed, 2]).votes
        options = {"smoothing": 0.01, "max_iter": 500, "tol": 1e-7}
        truth, moments, majority = (
            DawidSkene(init=init, random_state=seed, **options).fit(votes).log_likelihood_ / votes[0].size
            for init in (errors, "moments", "majority")
        )
        assert moments > truth - 1e-4
        gaps.append(truth - majority)
    assert np.median(gaps) > 0.05


def test_moments_separate_workers_if_half_of_them_swap_the_classes():
    """Added up their votes say little; partitions that say more count more."""
    for seed in range(3):
        errors = worker_confusions(40, 2, rng=[seed, 1])
        errors[::2] = errors[::2, ::-1]
        votes = crowd_votes(5000, errors, density=0.25, rng=[seed, 2]).votes
        options = {"smoothing": 0.01, "max_iter": 500, "tol": 1e-8}
        found, beside = (
            DawidSkene(init=init, random_state=seed, **options).fit(votes).log_likelihood_
            for init in ("moments", errors)
        )
        assert abs(found - beside) < 1e-4 * votes[0].size


def test_classes_are_named_so_that_most_votes_are_right():
    """Though the rare class is answered like the frequent one, and more often."""
    errors = np.tile(np.array([[0.6, 0.8], [0.4, 0.2]]), (15, 1, 1))
    data = crowd_votes(20_000, errors, priors=np.array([0.9, 0.1]), rng=0)
    model = DawidSkene(random_state=0).fit(data.votes)
    assert np.mean(model.labels_[data.votes[0]] == data.votes[2]) > 0.5


@pytest.mark.parametrize("method", [None, "tpm", "als", "ojd1"])
def test_small_votes_of_any_kind_get_an_answer(method):
    """Constant, repeated, contradictory, nearly empty: where moments fail, the majority is asked."""
    for seed in range(4 if method is None else 2):
        rng = np.random.default_rng(seed)
        votes = rng.integers(-1, 3, (rng.integers(2, 20), rng.integers(2, 7)))
        votes = np.tile(votes[:4], (2, 1)) if seed % 3 == 0 else votes
        votes[0] = 0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            model = DawidSkene(method=method, random_state=0).fit(votes)
        assert np.all(np.isfinite(model.probas_))


def test_votes_that_no_class_explains_leave_the_prior():
    votes = np.random.default_rng(0).integers(0, 3, (50, 8))
    model = DawidSkene(init=np.tile(np.eye(3), (8, 1, 1))).fit(votes)
    assert np.all(np.isfinite(model.probas_))
    assert np.min(np.diff(model.loss_history_), initial=0) > -1e-10


def test_accuracy_of_workers_is_over_tasks_like_these():
    errors = np.tile(np.array([[0.95, 0.4], [0.05, 0.6]]), (12, 1, 1))
    shares = np.array([0.2, 0.8])
    misses, predicted = [], []
    for seed in range(8):
        data = crowd_votes(1500, errors, density=0.5, priors=shares, rng=seed)
        model = DawidSkene(smoothing=0.01, random_state=0).fit(data.votes)
        misses.append(model.worker_accuracy_ - (0.2 * 0.95 + 0.8 * 0.6))
        predicted.append(model.worker_accuracy_standard_errors_)
    ratio = np.sqrt(np.mean(np.square(misses)) / np.mean(np.square(predicted)))
    assert 0.75 < ratio < 1.3


@pytest.mark.parametrize("smoothing", [0.5, 2.0])
def test_of_a_worker_without_votes_only_the_prior_is_known(smoothing):
    """Of a cell of 1/k under s added votes in each of k: the variance of a Dirichlet distribution."""
    data = crowd(3, n=300)
    matrix = np.full((300, 21), -1)
    matrix[data.votes[0], data.votes[1]] = data.votes[2]
    model = DawidSkene(smoothing=smoothing, random_state=0).fit(matrix)
    assert_allclose(model.confusion_matrices_[20], 1 / 3)
    assert_allclose(model.confusion_matrices_standard_errors_[20], np.sqrt(1 / 3 * (1 - 1 / 3) / (3 * smoothing + 1)))


@pytest.mark.slow
@pytest.mark.parametrize("one_coin", [False, True])
def test_standard_errors_are_the_deviations_from_the_truth(one_coin):
    errors = worker_confusions(15, 3, rng=0)
    if one_coin:
        right = np.linspace(0.5, 0.9, 15)[:, None, None]
        errors = np.where(np.eye(3, dtype=bool), right, (1 - right) / 2)
    measured, predicted = [], []
    for seed in range(20):
        data = crowd_votes(1500, errors, density=0.4, rng=seed)
        model = DawidSkene(smoothing=0.01, tol=1e-8, one_coin=one_coin, random_state=0).fit(data.votes)
        measured.append(model.confusion_matrices_ - errors)
        predicted.append(model.confusion_matrices_standard_errors_)
    ratio = np.sqrt(np.mean(np.square(measured)) / np.mean(np.square(predicted)))
    assert 0.9 < ratio < 1.1


def test_one_coin_finds_one_number_a_worker():
    right = np.linspace(0.3, 0.9, 12)
    errors = np.where(np.eye(4, dtype=bool), right[:, None, None], (1 - right[:, None, None]) / 3)
    data = crowd_votes(4000, errors, density=0.5, rng=0)
    model = DawidSkene(one_coin=True, random_state=0).fit(data.votes)
    assert_allclose(model.worker_accuracy_, right, atol=0.03)
    off = model.confusion_matrices_[:, ~np.eye(4, dtype=bool)]
    assert_allclose(off, np.broadcast_to(off[:, :1], off.shape))


def test_predictions_repeat_the_fit_and_refuse_strangers():
    data = crowd(n=300)
    model = DawidSkene(random_state=0).fit(data.votes)
    assert_allclose(model.predict_proba(data.votes), model.probas_, atol=1e-9)
    assert_array_equal(model.predict(data.votes), model.labels_)
    with pytest.raises(ValueError, match="worker 99 was"):
        model.predict(([0], [99], [1]))
    with pytest.raises(ValueError, match="label 7 was"):
        model.predict(([0], [1], [7]))


def test_one_class_one_vote_and_tasks_nobody_saw():
    assert DawidSkene().fit((["a"], ["w"], ["yes"])).labels_.tolist() == ["yes"]
    matrix = np.array([[0, 0, 1], [-1, -1, -1], [1, 1, 0]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = DawidSkene().fit(matrix)
    assert_allclose(model.probas_[1], model.priors_)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"init": "best"}, "^init must"),
        ({"init": np.ones((2, 3, 3))}, "^init must"),
        ({"prior": "flat"}, "^prior must"),
        ({"prior": [0.5, 0.5]}, "^prior must"),
        ({"max_iter": -1}, "max_iter"),
        ({"smoothing": -1.0}, "smoothing"),
        ({"smoothing": np.inf}, "^smoothing must"),
        ({"n_partitions": 0}, "n_partitions"),
    ],
)
def test_bad_options_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        DawidSkene(**options).fit(crowd(n=200).votes)


def test_parameters_are_stored_and_cloned():
    model = DawidSkene(max_iter=3, one_coin=True)
    assert clone(model).get_params() == model.get_params()


OPTIONS = [{}, {"one_coin": True}, {"smoothing": 1.0}, {"max_iter": 0}]


def votes_with_copies_and_repetitions():
    """Return columns of votes in which worker 9 copies worker 0 and 30 votes are given twice, and the true classes."""
    data, rng = crowd_votes(150, worker_confusions(9, 3, rng=0), density=0.6, rng=1), np.random.default_rng(2)
    matrix = np.full((150, 10), -1)
    matrix[data.votes[0], data.votes[1]] = data.votes[2]
    matrix[:, 9] = matrix[:, 0]
    task, worker = np.nonzero(matrix >= 0)
    twice = np.stack([task[:30], worker[:30], rng.integers(0, 3, 30)])
    return np.hstack([np.stack([task, worker, matrix[task, worker]]), twice]), data.truth


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("n_gold", [0, 20])
def test_the_order_of_votes_does_not_matter(options, n_gold):
    columns, truth = votes_with_copies_and_repetitions()
    shuffled = np.random.default_rng(3).permutation(columns.shape[1])
    gold = dict(enumerate(truth[:n_gold].tolist()))
    one, other = (
        DawidSkene(random_state=0, **options).fit(tuple(columns[:, rows]), gold) for rows in (slice(None), shuffled)
    )
    for name in (
        "probas_",
        "priors_",
        "confusion_matrices_",
        "confusion_matrices_standard_errors_",
        "worker_accuracy_interval_",
    ):
        assert_allclose(getattr(other, name), getattr(one, name), rtol=1e-12, err_msg=name)


@pytest.mark.parametrize(
    ("options", "init", "tolerance"),
    [(options, init, 1e-9) for options in OPTIONS for init in ("majority", "given")]
    + [(options, "moments", 0.05) for options in OPTIONS[:3]],  # without steps afterwards, partitions differ by more
)
def test_estimates_do_not_depend_on_names(options, init, tolerance):
    """To rounding if the start is not random; for moments, workers are partitioned in the order of their names."""
    columns, truth = votes_with_copies_and_repetitions()
    rng = np.random.default_rng(4)
    cells = rng.dirichlet(np.ones(3), (10, 3)).swapaxes(1, 2)
    fits, names = [], [np.stack([np.arange(size), rng.permutation(size)]) for size in (150, 10, 3)]
    for place in range(2):
        tasks, workers, classes = (name[place] for name in names)
        first, second = np.argsort(workers), np.argsort(classes)
        start = cells[first][:, second][:, :, second] if init == "given" else init
        votes = tuple(name[column] for name, column in zip((tasks, workers, classes), columns, strict=True))
        gold = {int(tasks[task]): int(classes[truth[task]]) for task in range(15)}
        fits.append(DawidSkene(init=start, random_state=0, **options).fit(votes, gold))
    one, other = fits
    tasks, workers, classes = (name[1] for name in names)
    assert_allclose(other.probas_[tasks][:, classes], one.probas_, atol=tolerance)
    assert_allclose(other.priors_[classes], one.priors_, atol=tolerance)
    assert_allclose(
        other.confusion_matrices_[workers][:, classes][:, :, classes], one.confusion_matrices_, atol=tolerance
    )
    assert_allclose(other.worker_accuracy_[workers], one.worker_accuracy_, atol=tolerance)


def test_too_few_steps_are_warned_of():
    votes = crowd(3).votes
    with pytest.warns(codiag.ConvergenceWarning, match=r"did not converge in max_iter=2 steps.*tol=1e-06") as caught:
        model = DawidSkene(max_iter=2, smoothing=1.0, random_state=0).fit(votes)
    assert [one.filename for one in caught] == [__file__]
    assert not model.converged_
    for asked in ({}, {"max_iter": 2, "tol": 0}, {"max_iter": 0}):
        assert DawidSkene(smoothing=1.0, random_state=0, **asked)._fit(votes) == ()


@pytest.mark.parametrize("step", ["fit", "fit_predict", "fit_predict_proba"])
def test_warnings_point_at_the_line_that_called(step):
    votes = np.arange(4) // 2, np.arange(4) % 2, np.array([0, 1, 0, 1])
    (told,) = DawidSkene(random_state=0)._fit(votes)
    with pytest.warns(UserWarning, match="^The method of moments") as caught:
        getattr(DawidSkene(random_state=0), step)(votes)
    assert [(str(one.message), one.filename) for one in caught] == [(str(told), __file__)]


@pytest.mark.parametrize("max_iter", [0, 5])
def test_workers_without_a_task_of_a_class_have_uniform_labels_for_it(max_iter):
    """Votes say nothing about such a column of the confusion matrix: without smoothing it is still a distribution."""
    task, worker, label = [0, 0, 1, 1, 2, 2, 0], [0, 1, 0, 1, 0, 1, 2], [0, 0, 1, 1, 2, 2, 0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = DawidSkene(smoothing=0, max_iter=max_iter, random_state=0).fit((task, worker, label))
    assert_allclose(model.confusion_matrices_.sum(axis=1), 1)


@pytest.mark.parametrize(
    ("n", "n_workers", "share_hard", "hard", "easy"),
    [(1000, 10, 0.5, 0.6, 0.95), (400, 12, 0.3, 0.6, 0.9), (400, 8, 0.4, 0.55, 0.95)],
)
def test_where_tasks_differ_in_difficulty_labels_are_about_those_of_the_majority(n, n_workers, share_hard, hard, easy):
    """Workers are alike and independent: nothing is better than the majority."""
    gains = []
    for seed in range(8):
        rng = np.random.default_rng([seed, n])
        truth, rate = rng.integers(0, 2, n), np.where(rng.random(n) < share_hard, hard, easy)
        votes = np.where(rng.random((n, n_workers)) < rate[:, None], truth[:, None], 1 - truth[:, None])
        majority = np.mean(votes, axis=1) + 1e-3 * rng.standard_normal(n) > 0.5
        gains.append(np.mean(DawidSkene(random_state=0).fit_predict(votes) == truth) - np.mean(majority == truth))
    assert np.mean(gains) > -0.01
