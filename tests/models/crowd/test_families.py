"""Workers who think alike: exact likelihoods, families that are found, and what their votes are worth."""

from __future__ import annotations

import itertools
from dataclasses import replace
from math import comb

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from codiag.models import DawidSkene
from codiag.models.crowd import (
    PLAIN,
    CrowdModel,
    FamilyModel,
    as_votes,
    correlations,
    expect,
    expect_families,
    families_of,
    family_evidence,
    family_shares,
    fitted_powers,
    given_classes,
    label_jury,
    model_spread,
    random_groups,
    run_families,
    vote_weights,
)
from codiag.synthetic import crowd_votes, jury_votes, worker_confusions


def outcomes(n_workers, k):
    """Return votes with a task for every outcome of the votes of some workers."""
    labels = np.array(list(itertools.product(range(k), repeat=n_workers)))
    return as_votes(tuple(column.ravel() for column in (*np.indices(labels.shape), labels))), labels


def family_model(k, family, seed=0):
    rng = np.random.default_rng(seed)
    n_families = max(family) + 1
    follows = np.where(np.array(family) >= 0, rng.uniform(0.2, 0.9, len(family)), 0.0)
    own, answers = worker_confusions(len(family), k, seed=[seed, 1]), worker_confusions(n_families, k, seed=[seed, 2])
    return FamilyModel(own, follows, answers, rng.dirichlet(np.ones(k)), np.array(family))


@pytest.mark.parametrize("k", [2, 3])
def test_probabilities_of_votes_are_those_of_all_answers_of_the_families(k):
    """By brute force over the class, the answer of each family, and who follows it."""
    model = family_model(k, [0, 0, 1, -1, 1])
    votes, labels = outcomes(5, k)
    joint = np.zeros((len(labels), k))
    for true, *answers in itertools.product(range(k), range(k), range(k)):
        terms = np.full(len(labels), model.shares[true])
        for family, answer in enumerate(answers):
            terms *= model.answers[family, answer, true]
        for worker, family in enumerate(model.family):
            own = model.own[worker, labels[:, worker], true]
            same = labels[:, worker] == answers[family] if family >= 0 else False
            terms *= model.follows[worker] * same + (1 - model.follows[worker]) * own
        joint[:, true] += terms
    posterior, _ = expect_families(votes, families_of(votes, model.family), model)
    assert_allclose(joint.sum(), 1)
    assert_allclose(posterior.classes, joint / joint.sum(axis=1, keepdims=True), rtol=1e-9)
    assert posterior.log_likelihood == pytest.approx(np.sum(np.log(joint.sum(axis=1))))


def test_votes_of_a_worker_have_the_confusion_matrix_of_all_votes():
    """Summed over the votes of the other workers of the family, by the exact probabilities of all outcomes."""
    model, k = family_model(3, [0, 0, 0]), 3
    votes, labels = outcomes(3, k)
    tasks = [votes.of_tasks(np.arange(len(labels)) == task) for task in range(len(labels))]
    posteriors = [expect_families(one, families_of(one, model.family), model)[0] for one in tasks]
    joint = np.concatenate([np.exp(one.log_likelihood) * one.classes for one in posteriors])
    for worker in range(3):
        given = np.stack([joint[labels[:, worker] == label].sum(axis=0) for label in range(k)])
        assert_allclose(given / model.shares, model.workers.confusions[worker], rtol=1e-6)


def test_without_families_steps_are_those_of_independent_workers():
    crowd = crowd_votes(100, worker_confusions(5, 3, seed=0), seed=1)
    votes, alone = as_votes(crowd.votes), np.full(5, -1)
    run = run_families(votes, alone, votes.shares, PLAIN, 30, 0.0)
    assert_allclose(expect(votes, CrowdModel(run.model.own, run.model.shares)).classes, run.classes, atol=1e-10)
    assert_allclose(family_shares(votes, alone), votes.shares, atol=0.02)


@pytest.mark.parametrize("seed", range(3))
def test_the_objective_of_families_never_falls(seed):
    jury = jury_votes(200, (3, 2, 2), 3, seed=seed)
    votes = as_votes(jury.votes)
    history = run_families(votes, jury.families, votes.shares, PLAIN, 60, 0.0).history
    assert np.min(np.diff(history)) > -1e-10


def test_a_family_has_one_vote():
    votes = as_votes((np.array([0, 0, 0, 0]), np.arange(4), np.array([1, 1, 1, 0])))
    assert_allclose(family_shares(votes, np.array([0, 0, 0, -1])), [[0.5, 0.5]], atol=1e-9)
    assert family_shares(votes, np.full(4, -1))[0, 1] == pytest.approx(0.75, abs=0.01)


def test_groups_do_not_divide_families():
    votes, family = (
        as_votes(jury_votes(20, (4, 3, 2, 1, 1), 2, seed=0).votes),
        np.repeat([0, 1, 2, -1, -1], [4, 3, 2, 1, 1]),
    )
    for seed in range(5):
        groups = random_groups(votes, np.random.default_rng(seed), family)
        assert set(groups.tolist()) == {0, 1, 2}
        assert all(np.unique(groups[family == number]).size == 1 for number in range(3))


def test_correlations_given_the_classes_are_the_squares_of_what_is_shared():
    """Zero for strangers, and rho^2 for two workers who follow one answer, with equal matrices."""
    rng, shared, n = np.random.default_rng(0), 0.6, 20_000
    truth = rng.integers(0, 3, n)
    draw = lambda: np.where(rng.random(n) < 0.7, truth, (truth + rng.integers(1, 3, n)) % 3)  # noqa: E731
    answer = draw()
    labels = np.stack([*(np.where(rng.random(n) < shared, answer, draw()) for _ in range(2)), draw()], axis=1)
    votes = as_votes(labels)
    confusions = np.repeat(np.where(np.eye(3, dtype=bool), 0.7, 0.15)[None], 3, axis=0)
    matrix = correlations(votes, given_classes(votes, confusions, truth)).matrix(3)
    assert matrix[0, 1] == pytest.approx(shared**2, abs=0.02)
    assert_allclose(matrix[:2, 2], 0, atol=0.02)
    assert_array_equal(np.diag(matrix), 1)


def test_sparse_and_dense_correlations_are_the_same(monkeypatch):
    crowd = crowd_votes(300, worker_confusions(8, 3, seed=0), density=0.5, seed=1)
    votes = as_votes(crowd.votes)
    expected = given_classes(votes, crowd.confusions, crowd.truth)
    dense = correlations(votes, expected).matrix(8)
    monkeypatch.setattr("codiag.models.crowd._dependence.MOST_CELLS", 0)
    assert_allclose(correlations(votes, expected).matrix(8), dense)


def test_correlations_of_few_tasks_are_not_too_large():
    """Workers who are mostly right agree on most of ten tasks, and are independent all the same."""
    rng = np.random.default_rng(0)
    rates = np.random.default_rng(1).uniform(0.7, 0.95, 100)
    confusions = np.where(np.eye(3, dtype=bool), rates[:, None, None], (1 - rates[:, None, None]) / 2)
    crowd = crowd_votes(4000, confusions, density=0.05, seed=rng)
    votes = as_votes(crowd.votes)
    found = correlations(votes, given_classes(votes, confusions, crowd.truth[votes.tasks]))
    assert np.mean(found.shared) < 15
    assert np.average(found.values, weights=found.shared) == pytest.approx(0, abs=0.01)


def test_weights_of_votes_are_kish():
    votes, family = as_votes(np.zeros((2, 5), dtype=int)), np.array([0, 0, 0, -1, -1])
    weights = vote_weights(votes, family, np.array([0.5]), 0.0).reshape(2, 5)
    assert_allclose(weights, [[0.5, 0.5, 0.5, 1, 1]] * 2)
    assert_allclose(vote_weights(votes, np.full(5, -1), np.empty(0), 0.25).sum() / 2, 5 / (1 + 4 * 0.25))


@pytest.mark.parametrize("k", [2, 4])
def test_families_are_found_and_labels_are_not_those_of_the_largest(k):
    jury = jury_votes(1000, (10, 3, 2, 2), k, shared=0.7, outsider=0.85, seed=1)
    model = DawidSkene(random_state=0).fit(jury.votes)
    found = {tuple(each.tolist()) for each in model.families_}
    assert found == {tuple(np.flatnonzero(jury.families == number).tolist()) for number in range(4)}
    plain = DawidSkene(random_state=0, families="none").fit(jury.votes)
    assert np.mean(model.labels_ == jury.truth) > np.mean(plain.labels_ == jury.truth) + 0.1
    assert np.mean(model.probas_.max(axis=1)) == pytest.approx(np.mean(model.labels_ == jury.truth), abs=0.05)
    low, high = model.effective_votes_interval_
    assert 4 < low < model.effective_votes_ < high < 12
    assert_array_equal(model.dependence_, model.dependence_.T)
    table = model.worker_table()
    assert_array_equal(table["family"] == 0, np.arange(18) == 17)
    assert table["weight"][0] < table["weight"][10] < table["weight"][17] == pytest.approx(1, abs=0.15)
    assert_allclose(model.predict_proba(jury.votes), model.probas_, atol=1e-3)


@pytest.mark.parametrize(("n_workers", "seed"), [(4, 0), (6, 3)])
def test_copies_are_a_family_and_not_the_truth(n_workers, seed):
    crowd = crowd_votes(300, worker_confusions(n_workers, 2, seed=seed), seed=seed + 1)
    labels = crowd.votes[2].reshape(300, n_workers)
    model = DawidSkene(random_state=0).fit(np.hstack([labels, labels[:, :1]]))
    assert [each.tolist() for each in model.families_] == [[0, n_workers]]
    assert model.worker_accuracy_[0] == pytest.approx(np.mean(labels[:, 0] == crowd.truth), abs=0.1)
    assert model.dependence_[0, n_workers] == pytest.approx(1, abs=0.06)
    assert_allclose(model.worker_table()["weight"][[0, n_workers]], 0.5, atol=0.06)


@pytest.mark.parametrize("seed", range(3))
def test_independent_workers_are_in_no_family_and_nothing_changes(seed):
    crowd = crowd_votes(500, worker_confusions(12, 3, seed=[seed, 1]), density=0.7, seed=[seed, 2])
    model, plain = (DawidSkene(random_state=0, **options).fit(crowd.votes) for options in ({}, {"families": "none"}))
    assert model.families_ == []
    assert_array_equal(model.probas_, plain.probas_)
    assert model.effective_votes_ > 0.85 * crowd.votes[0].size / 500
    between = model.dependence_[np.triu_indices(12, 1)]  # shrunk: less than the error of one correlation, 1 / sqrt(n)
    assert np.sqrt(np.mean(between**2)) < 0.6 / np.sqrt(0.7**2 * 500)


def test_families_may_be_given():
    jury = jury_votes(400, (6, 2, 1, 1), 3, shared=0.8, seed=2)
    names = {judge: f"model {family}" if family < 2 else None for judge, family in enumerate(jury.families.tolist())}
    one = DawidSkene(random_state=0, families=names).fit(jury.votes)
    assert [each.tolist() for each in one.families_] == [[0, 1, 2, 3, 4, 5], [6, 7]]
    other = DawidSkene(random_state=0, families=list(names.values())).fit(jury.votes)
    assert_array_equal(one.probas_, other.probas_)
    with pytest.raises(ValueError, match="families must be of workers who voted; got 'x'"):
        DawidSkene(families={"x": 1}).fit(jury.votes)
    with pytest.raises(ValueError, match="families must give the family of each of 10 workers; got 2"):
        DawidSkene(families=["a", "b"]).fit(jury.votes)
    with pytest.raises(ValueError, match="families must be 'auto', 'none', or give the family"):
        DawidSkene(families="some").fit(jury.votes)


def test_a_jury_of_one_mind_is_said_to_be_so():
    """Two families of copies: either may be right, and labels are those of the majority."""
    jury = jury_votes(500, (5, 3), 3, shared=0.97, seed=0)
    with pytest.warns(
        UserWarning, match="form 2 families and are worth 2.* independent votes.* known classes"
    ) as caught:
        model = DawidSkene(random_state=0, families=jury.families.tolist()).fit(jury.votes)
    assert len(caught) == 1
    counts = np.stack([np.bincount(jury.votes[0], jury.votes[2] == label, 500) for label in range(3)], axis=1)
    assert_array_equal(counts[np.arange(500), model.labels_], counts.max(axis=1))
    assert "too few to tell who is right" in model.diagnostics_.reason


def test_known_classes_help_where_families_disagree():
    jury = jury_votes(1000, (5, 3), 3, shared=0.97, seed=0)
    gold = dict(enumerate(jury.truth[:200].tolist()))
    model = DawidSkene(random_state=0, families=jury.families.tolist()).fit(jury.votes, gold)
    labels = jury.votes[2].reshape(1000, 8)
    best = labels[:, np.argmax(np.mean(labels[:200] == jury.truth[:200, None], axis=0))]
    assert_array_equal(model.labels_[:200], jury.truth[:200])
    right = [np.mean((each == jury.truth)[200:]) for each in (model.labels_, best)]
    assert right[0] > right[1] - 0.01


def test_powers_are_where_the_gradient_vanishes_and_useless_parts_have_none():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 2000)
    useful = rng.normal(size=(2000, 3)) + 2 * np.eye(3)[truth]
    useless = rng.normal(size=(2000, 3))
    powers = fitted_powers(np.stack([useless, useful]), truth)
    assert powers[0] < 0.1
    assert powers[1] == pytest.approx(2, rel=0.1)  # the log-odds of two normal distributions at distance 2


def test_evidence_prefers_the_families_that_there_are():
    jury = jury_votes(600, (4, 3, 2), 3, shared=0.6, seed=3)
    votes = as_votes(jury.votes)
    right = family_evidence(votes, jury.families)
    for other in ([-1] * 9, [0] * 9, [0, 0, 0, 0, 1, 1, 1, 1, 1], [0, 0, 0, 1, 1, 1, 1, 2, 2]):
        assert family_evidence(votes, np.array(other)) < right


def test_intervals_hold_the_uncertainty_of_the_model_which_falls_like_the_root_of_the_tasks():
    """Four families that are often wrong: how good each is depends on all others."""
    widths = []
    for n_tasks in (400, 6400):
        jury = jury_votes(n_tasks, (3, 3, 3, 3), 2, shared=0.9, seed=1)
        votes, family = as_votes(jury.votes), jury.families
        prior = PLAIN._replace(cells=np.zeros((2, 2)))
        options = {"ordered": False, "max_iter": 100, "tol": 1e-6, "rng": np.random.default_rng(0)}
        found, _ = label_jury(votes, family, [family_shares(votes, family)], prior, **options)
        spread = model_spread(votes, found, family, prior, np.random.default_rng(0))
        accuracy = np.mean(jury.votes[2].reshape(n_tasks, -1) == jury.truth[:, None], axis=0)
        right = np.bincount(votes.worker, found.classes[votes.task, votes.label]) / n_tasks
        assert np.sqrt(np.mean((right - accuracy) ** 2)) < 3 * np.sqrt(np.mean(spread**2))
        widths.append(np.sqrt(np.mean(spread**2)))
    assert widths[0] / widths[1] == pytest.approx(4, rel=0.6)
    model = DawidSkene(random_state=0, families=family.tolist()).fit(jury.votes)
    chance = np.sqrt(accuracy * (1 - accuracy) / n_tasks)
    assert np.all(model.worker_accuracy_standard_errors_ > 1.2 * chance)


def test_moments_lead_to_the_classes_if_families_permute_the_labels():
    """Families as one vote each then carry no information; moments of groups that share no family do not need it."""
    jury = jury_votes(3000, (2,) * 8, 6, shared=0.3, seed=0)
    rng = np.random.default_rng(0)
    orders = np.stack([rng.permutation(6) for _ in range(8)])
    labels = orders[jury.families[jury.votes[1]], jury.votes[2]]
    options = {"families": jury.families.tolist(), "ordered": False, "random_state": 0, "max_iter": 300}
    moments, majority = (
        DawidSkene(init=init, **options).fit((*jury.votes[:2], labels)) for init in ("moments", "majority")
    )
    assert moments.log_likelihood_ > majority.log_likelihood_ + 100


def test_all_workers_are_not_one_family():
    """Workers who always agree are right, or there is no telling."""
    votes = (np.repeat(np.arange(300), 3), np.tile(np.arange(3), 300), np.repeat(np.arange(300) % 150, 3))
    model = DawidSkene(init="majority", random_state=0)
    model.learn(votes)
    assert all(members.size < 3 for members in model.families_)


def test_sets_that_could_be_families_have_their_price():
    """Of many workers some two agree by chance; those without votes change nothing else."""
    jury = jury_votes(600, (4, 3, 2), 3, shared=0.6, seed=3)
    few = as_votes(jury.votes)
    many = replace(few, workers=np.arange(29))
    gains = [
        family_evidence(votes, np.append(jury.families, np.full(votes.workers.size - 9, -1)))
        - family_evidence(votes, np.full(votes.workers.size, -1))
        for votes in (few, many)
    ]
    prices = [sum(np.log(comb(n, size)) for size in (4, 3, 2)) for n in (9, 29)]
    assert gains[0] - gains[1] == pytest.approx(prices[1] - prices[0])


def test_correlations_of_many_workers_take_no_dense_matrix(monkeypatch):
    crowd = crowd_votes(300, worker_confusions(6, 2, seed=3), density=0.8, seed=4)
    dense = DawidSkene(random_state=0).fit(crowd.votes)
    monkeypatch.setattr("codiag.models.crowd._dependence.MOST_SHOWN", 5)
    sparse = DawidSkene(random_state=0).fit(crowd.votes)
    assert_allclose(sparse.dependence_.toarray(), dense.dependence_)


def test_tasks_that_are_sampled_keep_their_weights(monkeypatch):
    """A weight of zero leaves a task out, whichever tasks are sampled."""
    crowd = crowd_votes(4000, worker_confusions(6, 2, seed=0), seed=1)
    votes, weights = as_votes(crowd.votes), np.random.default_rng(0).exponential(size=4000)
    weights[::2] = 0
    expected = given_classes(votes, crowd.confusions, crowd.truth)
    monkeypatch.setattr("codiag.models.crowd._dependence.MOST_CELLS", 0)
    monkeypatch.setattr("codiag.models.crowd._dependence.MOST_PRODUCTS", 4000 * 36)  # half of them
    expected[votes.task % 2 == 0] = 0.25  # as if these workers gave other labels than there are
    assert np.abs(correlations(votes, expected, weights).values).max() < 0.15
    assert np.abs(correlations(votes, expected).values).max() > 0.15
