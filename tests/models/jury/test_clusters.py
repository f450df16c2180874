"""The model of clusters: exact likelihoods, correlations, the worth of votes, and the evidence of partitions."""

from __future__ import annotations

import itertools
from dataclasses import replace
from math import comb

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from benchmarks.judges import jury_votes
from codiag.models.crowd import CrowdModel, Prior, as_votes, expect, maximize
from codiag.models.jury import (
    GUESSES,
    ClusterModel,
    cluster_evidence,
    cluster_shares,
    clusters_of,
    correlations,
    expect_clusters,
    measure_dependence,
    run_clusters,
)
from codiag.synthetic import crowd_votes, worker_confusions


def outcomes(n_workers, k):
    """Return votes with an item for every outcome of the votes of some judges."""
    labels = np.array(list(itertools.product(range(k), repeat=n_workers)))
    return as_votes(tuple(column.ravel() for column in (*np.indices(labels.shape), labels))), labels


def cluster_model(k, cluster, seed=0):
    rng = np.random.default_rng(seed)
    n_clusters = max(cluster) + 1
    follows = np.where(np.array(cluster) >= 0, rng.uniform(0.2, 0.9, len(cluster)), 0.0)
    own, answers = worker_confusions(len(cluster), k, rng=[seed, 1]), worker_confusions(n_clusters, k, rng=[seed, 2])
    return ClusterModel(own, follows, answers, rng.dirichlet(np.ones(k * GUESSES.size)), np.array(cluster))


@pytest.mark.parametrize("k", [2, 3])
def test_probabilities_of_votes_are_those_of_all_answers_of_the_clusters(k):
    """By brute force over the class, the difficulty, the answer of each cluster, and who follows it."""
    model = cluster_model(k, [0, 0, 1, -1, 1])
    votes, labels = outcomes(5, k)
    joint = np.zeros((len(labels), k, GUESSES.size))
    for true, hard, *answers in itertools.product(range(k), range(GUESSES.size), range(k), range(k)):
        guess = GUESSES[hard]
        terms = np.full(len(labels), model.shares[true * GUESSES.size + hard])
        for cluster, answer in enumerate(answers):
            terms *= (1 - guess) * model.answers[cluster, answer, true] + guess / k
        for worker, cluster in enumerate(model.cluster):
            own = (1 - guess) * model.own[worker, labels[:, worker], true] + guess / k
            same = labels[:, worker] == answers[cluster] if cluster >= 0 else False
            terms *= model.follows[worker] * same + (1 - model.follows[worker]) * own
        joint[:, true, hard] += terms
    joint = joint.reshape(len(labels), -1)
    states, log_likelihood, _ = expect_clusters(votes, clusters_of(votes, model.cluster), model)
    assert_allclose(joint.sum(), 1)
    assert_allclose(states, joint / joint.sum(axis=1, keepdims=True), rtol=1e-9)
    assert log_likelihood == pytest.approx(np.sum(np.log(joint.sum(axis=1))))


@pytest.mark.parametrize("seed", range(3))
def test_the_objective_of_clusters_never_falls(seed):
    jury = jury_votes(200, (3, 2, 2), 3, rng=seed)
    votes = as_votes(jury.votes)
    history = run_clusters(votes, jury.clusters, votes.shares, 60, 0.0).history
    assert np.min(np.diff(history)) > -1e-10


def test_without_clusters_and_hard_items_steps_are_those_of_dawid_and_skene(monkeypatch):
    for name, value in (("GUESSES", np.zeros(1)), ("FIRST_SHARES", np.ones(1))):
        monkeypatch.setattr(f"codiag.models.jury._cluster_model.{name}", value)
    votes = as_votes(crowd_votes(100, worker_confusions(5, 3, rng=0), rng=1).votes)
    run = run_clusters(votes, np.full(5, -1), votes.shares, 3, 0.0)
    classes, prior = votes.shares, Prior(np.full((3, 3), 0.5), 0.5, None, False)
    for _ in range(3):
        model = maximize(votes, classes, prior)
        classes = expect(votes, CrowdModel(*model))[0]
    assert_allclose(run.states, classes, atol=1e-10)


def test_a_cluster_has_one_vote():
    votes = as_votes((np.array([0, 0, 0, 0]), np.arange(4), np.array([1, 1, 1, 0])))
    assert_allclose(cluster_shares(votes, np.array([0, 0, 0, -1])), [[0.5, 0.5]], atol=1e-9)
    assert cluster_shares(votes, np.full(4, -1))[0, 1] == pytest.approx(0.75, abs=0.01)


def test_correlations_given_the_classes_are_the_squares_of_what_is_shared():
    """Zero for strangers, and rho^2 for two judges who follow one answer, with equal matrices."""
    rng, shared, n = np.random.default_rng(0), 0.6, 20_000
    truth = rng.integers(0, 3, n)
    draw = lambda: np.where(rng.random(n) < 0.7, truth, (truth + rng.integers(1, 3, n)) % 3)  # noqa: E731
    answer = draw()
    labels = np.stack([*(np.where(rng.random(n) < shared, answer, draw()) for _ in range(2)), draw()], axis=1)
    votes = as_votes(labels)
    confusion = np.where(np.eye(3, dtype=bool), 0.7, 0.15)
    matrix = correlations(votes, confusion[:, truth[votes.task]].T).among(np.arange(3))
    assert matrix[0, 1] == pytest.approx(shared**2, abs=0.02)
    assert_allclose(matrix[:2, 2], 0, atol=0.02)
    assert_array_equal(np.diag(matrix), 1)


def test_correlations_of_few_items_are_not_too_large():
    """Judges who are mostly right agree on most of ten items, and are independent all the same."""
    rates = np.random.default_rng(1).uniform(0.7, 0.95, 100)
    confusions = np.where(np.eye(3, dtype=bool), rates[:, None, None], (1 - rates[:, None, None]) / 2)
    crowd = crowd_votes(4000, confusions, density=0.05, rng=0)
    votes = as_votes(crowd.votes)
    found = correlations(votes, confusions[votes.worker, :, crowd.truth[votes.tasks][votes.task]])
    assert np.mean(found.shared) < 15
    assert np.average(found.values, weights=found.shared) == pytest.approx(0, abs=0.01)


def test_weights_of_votes_are_kish():
    votes, cluster = as_votes(np.tile(np.arange(6)[:, None] % 2, (1, 5))), np.array([0, 0, 0, -1, -1])
    pairs = correlations(votes, np.full((30, 2), 0.5))
    found = measure_dependence(votes, pairs._replace(values=np.full(pairs.values.size, 0.5)), cluster)
    assert_allclose(found.weights, [0.5, 0.5, 0.5, 1, 1])
    assert found.votes == pytest.approx(3.5)


def test_evidence_prefers_the_clusters_that_there_are():
    jury = jury_votes(600, (4, 3, 2), 3, shared=0.6, rng=3)
    votes = as_votes(jury.votes)
    right = cluster_evidence(votes, jury.clusters)
    for other in ([-1] * 9, [0] * 9, [0, 0, 0, 0, 1, 1, 1, 1, 1], [0, 0, 0, 1, 1, 1, 1, 2, 2]):
        assert cluster_evidence(votes, np.array(other)) < right


def test_sets_that_could_be_clusters_have_their_price():
    """Of many judges some two agree by chance; those without votes change nothing else."""
    jury = jury_votes(600, (4, 3, 2), 3, shared=0.6, rng=3)
    few = as_votes(jury.votes)
    many = replace(few, workers=np.arange(29))
    gains = [
        cluster_evidence(votes, np.append(jury.clusters, np.full(votes.workers.size - 9, -1)))
        - cluster_evidence(votes, np.full(votes.workers.size, -1))
        for votes in (few, many)
    ]
    prices = [sum(np.log(comb(n, size)) for size in (4, 3, 2)) for n in (9, 29)]
    assert gains[0] - gains[1] == pytest.approx(prices[1] - prices[0])
