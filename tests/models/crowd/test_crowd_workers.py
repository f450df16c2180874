"""Workers of a crowd: votes nobody contests stand, workers with few votes are judged fairly, and intervals hold."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from codiag.models import DawidSkene
from codiag.models.crowd import SKILL, CrowdModel, added_votes, beta_intervals, estimate_prior
from codiag.synthetic import crowd_votes, worker_confusions
from real_data import needs_data

BANDS = ((1, 2), (3, 9), (10, 29), (30, 99), (100, 10**9))


def fitted(votes, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # moments cannot determine so little
        return DawidSkene(random_state=0, **options).fit(votes)


@pytest.mark.parametrize("one_coin", [False, True])
@pytest.mark.parametrize(("n", "k"), [(10, 3), (4, 2), (100, 4)])
def test_the_only_vote_on_a_task_is_its_label(n, k, one_coin):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        labels = rng.choice(k, n, p=rng.dirichlet(np.ones(k)))
        model = fitted((np.arange(n), np.zeros(n, dtype=int), labels), one_coin=one_coin)
        assert_array_equal(model.labels_, labels)
        assert model.worker_accuracy_[0] > 0.5 or model.classes_.size == 1


def test_strangers_with_one_vote_each_are_believed():
    labels = np.random.default_rng(0).integers(0, 3, 30)
    model = fitted((np.arange(30), np.arange(30), labels))
    assert_array_equal(model.labels_, labels)
    assert np.all(model.worker_accuracy_ > 0.5)


@pytest.mark.parametrize("n_workers", [2, 3, 5])
def test_workers_who_agree_on_everything_are_believed(n_workers):
    labels = np.random.default_rng(1).integers(0, 3, 10)
    model = fitted(np.repeat(labels[:, None], n_workers, axis=1))
    assert_array_equal(model.labels_, labels)
    assert np.min(np.max(model.probas_, axis=1)) > 0.95
    assert np.all(model.worker_accuracy_ > 0.9)


def birds():
    """Four careful workers, one who says parrot whatever there is, and one who takes chickens for geese."""
    truth = dict(zip("abcdefghij", ["goose"] * 3 + ["parrot"] * 4 + ["chicken"] * 3, strict=True))
    seen = {"w1": "adbcef", "w2": "dhgijb", "w3": "hacef", "w4": "ahbj"}
    votes = [(task, worker, truth[task]) for worker, tasks in seen.items() for task in tasks]
    votes += [(task, "w5", "parrot") for task in "adgijc"]
    votes += [(task, "w6", "goose" if truth[task] == "chicken" else truth[task]) for task in "dhefgi"]
    return tuple(zip(*votes, strict=True)), np.array(list(truth.values()))


def test_a_small_crowd_with_a_spammer_is_labelled_as_well_as_by_the_majority():
    votes, truth = birds()
    model = fitted(votes)
    assert np.mean(model.labels_ == truth) >= 0.9
    accuracy = dict(zip(model.workers_, model.worker_accuracy_, strict=True))
    assert max(accuracy["w5"], accuracy["w6"]) < min(accuracy[f"w{place}"] for place in range(1, 5))


def uneven(kind, k, seed, n_workers=60, n_tasks=400, per_task=5):
    """Votes of workers some of whom gave one and some hundreds, and their true accuracies."""
    rng = np.random.default_rng([seed, k])
    rates = {"even": rng.uniform(0.5, 0.95, n_workers), "good": rng.beta(6, 2, n_workers)}.get(kind)
    if rates is not None:
        errors = np.where(np.eye(k, dtype=bool), rates[:, None, None], (1 - rates[:, None, None]) / (k - 1))
    else:
        errors = worker_confusions(n_workers, k, adversarial=0.15 if kind == "adversarial" else 0, rng=[seed, 1])
        errors = errors[rng.permutation(n_workers)]
    priors = rng.dirichlet(np.full(k, 5.0))
    appetite = np.exp(rng.normal(0, 1.6, n_workers))
    counts = np.clip(rng.poisson(appetite / appetite.sum() * n_tasks * per_task), 1, n_tasks)
    truth = rng.choice(k, n_tasks, p=priors)
    worker = np.repeat(np.arange(n_workers), counts)
    task = np.concatenate([rng.choice(n_tasks, count, replace=False) for count in counts])
    ladder = np.cumsum(errors, axis=1)[worker, :, truth[task]]
    label = np.minimum(np.sum(ladder < rng.random((worker.size, 1)), axis=1), k - 1)
    return (task, worker, label), counts, np.einsum("wcc,c->w", errors, priors)


def test_intervals_of_accuracy_hold_for_every_number_of_votes():
    """In 82 to 95 % of the workers, give or take three standard errors of that share; see benchmarks/RESULTS.md."""
    rows = []
    for kind in ("even", "good", "unequal", "adversarial"):
        for k in (2, 4):
            votes, counts, rates = uneven(kind, k, seed=k)
            model = fitted(votes)
            low, high = model.worker_accuracy_interval_.T
            assert np.all((low <= model.worker_accuracy_) & (model.worker_accuracy_ <= high))
            rows.append(np.stack([counts, (low <= rates) & (rates <= high), model.worker_accuracy_, rates]))
    counts, held, reported, rates = np.concatenate(rows, axis=1)
    for least, most in BANDS:
        some = (counts >= least) & (counts <= most)
        slack = 3 * np.sqrt(0.9 * 0.1 / some.sum())
        assert 0.82 - slack < held[some].mean() < 0.95 + slack
        assert abs(reported[some].mean() - rates[some].mean()) < 3 * 0.25 / np.sqrt(some.sum()) + 0.02


def test_intervals_are_narrower_the_more_votes_there_are():
    votes, counts, _ = uneven("even", 3, seed=0)
    low, high = fitted(votes).worker_accuracy_interval_.T
    widths = [(high - low)[(counts >= least) & (counts <= most)].mean() for least, most in BANDS]
    assert np.all(np.diff(widths) < 0)


@needs_data
def test_workers_with_few_votes_are_as_accurate_as_reported():
    """Dog: those with fewer than ten votes are right in 0.71 of them, give or take what 1/sqrt(votes) allows."""
    from codiag.datasets import load_crowd

    data = load_crowd("dog")
    truth = dict(zip(data.truth["task"].tolist(), data.truth["truth"].tolist(), strict=True))
    model = fitted(data.votes)
    right = np.array([truth[t] for t in data.votes["task"].tolist()]) == data.votes["label"]
    place = np.searchsorted(model.workers_, data.votes["worker"])
    counts = np.bincount(place)
    rates = np.bincount(place, weights=right) / counts
    for least, most in BANDS:
        some = (counts >= least) & (counts <= most)
        deviation = np.sqrt(np.mean(rates[some] * (1 - rates[some]) / counts[some] + 0.15**2) / some.sum())
        assert abs(model.worker_accuracy_[some].mean() - rates[some].mean()) < 3 * deviation


def test_the_prior_finds_the_kinds_of_workers_there_are():
    """Of 300 workers with 200 votes each, a third are right in 0.3 and two thirds in 0.9."""
    rng = np.random.default_rng(0)
    rates = np.where(np.arange(300) % 3 == 0, 0.3, 0.9)
    right = rng.binomial(100, rates[:, None], (300, 2)).astype(float)
    cells = np.empty((300, 2, 2))
    cells[:, [0, 1], [0, 1]], cells[:, [1, 0], [0, 1]] = right, 100 - right
    prior = estimate_prior(cells, one_coin=False)
    assert_allclose(prior.frequencies[SKILL < 0.5].sum(), 1 / 3, atol=0.02)
    assert_allclose(prior.frequencies @ SKILL, 0.7, atol=0.02)


@pytest.mark.parametrize("one_coin", [False, True])
def test_with_added_votes_a_stranger_is_like_the_crowd_and_a_known_worker_like_the_votes(one_coin):
    rng = np.random.default_rng(0)
    right = rng.binomial(1000, 0.8, (50, 3)).astype(float)
    cells = np.where(np.eye(3, dtype=bool), right[:, None], (1000 - right[:, None]) / 2)
    cells[0] = 0
    added = added_votes(cells, estimate_prior(cells, one_coin=one_coin))
    stranger = np.trace(added[0]) / added[0].sum()
    assert_allclose(stranger, 0.8, atol=0.03)
    together = cells[1] + added[1]
    assert_allclose(np.trace(together) / together.sum(), np.trace(cells[1]) / cells[1].sum(), atol=0.02)


def test_intervals_of_beta_distributions_have_their_quantiles():
    low, high = beta_intervals(np.array([0.5]), np.array([1 / np.sqrt(12)]))[0]
    assert_allclose([low, high], [0.05, 0.95], atol=1e-6)  # the even distribution


@pytest.mark.parametrize("smoothing", ["estimated", 1.0])
def test_intervals_come_as_the_votes_do(smoothing):
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    columns = crowd_votes(60, worker_confusions(6, 2, rng=0), rng=1).votes
    votes = dict(zip(("task", "worker", "label"), columns, strict=True))
    makes = (votes, pd.DataFrame(votes), pl.DataFrame(votes))
    plain, frame, other = (fitted(one, smoothing=smoothing) for one in makes)
    assert plain.worker_accuracy_interval_.shape == (6, 2)
    assert frame.worker_accuracy_interval_.index.name == "worker"
    assert_allclose(frame.worker_accuracy_interval_["accuracy_low_90"], plain.worker_accuracy_interval_[:, 0])
    assert_allclose(other.worker_accuracy_interval_, plain.worker_accuracy_interval_)
    assert_array_equal(plain.worker_table()["accuracy_high_90"], plain.worker_accuracy_interval_[:, 1])


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_tables_are_frames_of_the_library_of_the_votes(library):
    module = pytest.importorskip(library)
    columns = crowd_votes(60, worker_confusions(6, 2, rng=0), rng=1).votes
    votes = dict(zip(("task", "judge", "label"), columns, strict=True))
    frame = (module.table if library == "pyarrow" else module.DataFrame)(votes)
    plain, model = fitted(columns), fitted(frame)
    for name in ("label_table", "least_confident", "worker_table"):
        table, expected = getattr(model, name)(), getattr(plain, name)()
        assert type(table) is type(frame)
        names = table.column_names if library == "pyarrow" else list(table.columns)
        assert names == list(expected)
        for column, values in zip(names, expected.values(), strict=True):
            assert_array_equal(np.asarray(table[column]), values)


def test_standard_errors_of_the_default_are_the_deviations_from_the_truth():
    """Of workers drawn from one distribution, on average over them."""
    measured, predicted = [], []
    for seed in range(6):
        errors = worker_confusions(25, 2, rng=[seed, 3])
        data = crowd_votes(300, errors, density=0.3, rng=seed)
        model = fitted(data.votes)
        measured.append(model.confusion_matrices_ - errors)
        predicted.append(model.confusion_matrices_standard_errors_)
    ratio = np.sqrt(np.mean(np.square(measured)) / np.mean(np.square(predicted)))
    assert 0.75 < ratio < 1.25


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"prior": [np.nan]}, ValueError, "^prior must"),
        ({"prior": [np.nan, np.nan]}, ValueError, "^prior must"),
        ({"prior": [np.inf, 0.5]}, ValueError, "^prior must"),
        ({"prior": ["a", "b"]}, TypeError, "^prior must"),
        ({"init": [["a"]]}, TypeError, "^init must"),
        ({"smoothing": "some"}, ValueError, "^smoothing must"),
        ({"smoothing": np.nan}, ValueError, "^smoothing must"),
    ],
)
def test_bad_options_are_named(options, kind, message):
    with pytest.raises(kind, match=message):
        fitted(crowd_votes(40, worker_confusions(6, 2, rng=0), rng=1).votes, **options)


def test_a_prior_that_is_not_a_number_is_refused_for_one_class_too():
    with pytest.raises(ValueError, match="^prior must"):
        DawidSkene(prior=[np.nan]).fit(([0], [0], ["yes"]))


def test_models_are_those_that_labels_come_from():
    data = crowd_votes(200, worker_confusions(10, 3, rng=0), density=0.5, rng=1)
    model = fitted(data.votes)
    assert_allclose(
        model.worker_accuracy_, np.einsum("wcc,c->w", *CrowdModel(model.confusion_matrices_, model.priors_))
    )
    assert_allclose(model.predict_proba(data.votes), model.probas_, atol=1e-9)
