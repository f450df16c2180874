"""Grades as thresholds on a quality: probabilities, steps that rise, and when they are chosen."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm

from codiag.models import DawidSkene
from codiag.models.crowd import (
    QUALITY,
    OrderedLabeler,
    OrderedModel,
    as_votes,
    is_order_better,
    may_be_ordered,
    run_ordered,
)
from codiag.synthetic import jury_votes


def test_probabilities_are_those_of_normal_errors():
    model = OrderedModel(np.array([[-0.5, 0.7]]), np.array([1.3]), np.array([0.0]), np.array([-1]))
    chances = model.by_quality()[0]
    assert_allclose(chances.sum(axis=0), 1)
    assert_allclose(chances[0], norm.cdf(-0.5 - 1.3 * QUALITY), atol=1e-9)
    cuts, errors = model.cuts()
    assert_allclose(cuts, np.array([-0.5, 0.7]) / 1.3)
    assert_array_equal(errors, 0)
    workers = model.workers()
    assert_allclose(workers.confusions.sum(axis=1), 1)
    assert_allclose(workers.shares, np.diff(norm.cdf(cuts), prepend=0, append=1), atol=0.01)


def test_where_classes_begin_is_known_as_well_as_the_workers_agree():
    """Between two medians the probability of a class is that of a normal distribution with the error of the median."""
    places, slopes = np.array([[-0.4], [0.0], [0.4]]), np.array([1.0, 2.0, 0.5])
    model = OrderedModel(places * slopes[:, None], slopes, np.zeros(3), np.full(3, -1))
    (cut,), (error,) = model.cuts()
    assert (cut, error) == (0, pytest.approx(np.sqrt(np.pi / 2 / 3) * 0.4))
    sure = np.eye(QUALITY.size)
    width = np.hypot(error, (QUALITY[1] - QUALITY[0]) / np.sqrt(12))
    assert_allclose(model.classes(sure)[:, 0], norm.cdf(-QUALITY / width), atol=1e-9)
    moved = model.classes(sure, np.array([1.0]))[:, 0]
    assert_allclose(moved, norm.cdf((error - QUALITY) / np.sqrt(width**2 - error**2)), atol=1e-9)


@pytest.mark.parametrize("sizes", [(1,) * 6, (3, 2, 1)])
def test_the_likelihood_never_falls(sizes):
    jury = jury_votes(300, sizes, 4, ordered=True, seed=0)
    votes = as_votes(jury.votes)
    family = np.where(np.bincount(jury.families)[jury.families] > 1, jury.families, -1)
    history = run_ordered(votes, family, 40, 0.0).history
    assert np.min(np.diff(history)) > -1e-3 / np.sqrt(votes.label.size)  # up to the prior of the workers
    assert history[-1] > history[0]


def test_thresholds_and_slopes_are_found():
    """From many votes of independent workers, within four standard errors of a probit with known quality."""
    rng, n = np.random.default_rng(0), 6000
    cuts, slopes = np.array([-0.8, 0.1, 0.9]) + rng.normal(0, 0.3, (8, 1)), rng.uniform(0.7, 1.6, 8)
    quality = rng.standard_normal(n)
    labels = np.stack(
        [np.searchsorted(c, s * quality + rng.standard_normal(n)) for c, s in zip(cuts, slopes, strict=True)]
    )
    model = run_ordered(as_votes(labels.T), np.full(8, -1), 100, 1e-7).model
    assert_allclose(model.thresholds, cuts, atol=0.12)
    assert_allclose(model.slopes, slopes, atol=0.15)


def test_grades_are_recognized_by_held_out_votes_and_labelled_better():
    graded = jury_votes(800, (6, 4, 3, 2), 4, ordered=True, shared=0.5, seed=0)
    model = DawidSkene(random_state=0).fit(graded.votes)
    assert isinstance(model._labeler, OrderedLabeler)
    other = DawidSkene(random_state=0, ordered=False).fit(graded.votes)
    assert np.mean(model.labels_ == graded.truth) > np.mean(other.labels_ == graded.truth)
    named = jury_votes(800, (6, 4, 3, 2), 4, shared=0.5, seed=0)
    assert not is_order_better(as_votes(named.votes), named.families, np.random.default_rng(0))
    near = model.worker_table()["within_one"]
    assert np.all((near > model.worker_accuracy_) & (near <= 1))
    assert "within_one" not in DawidSkene(random_state=0).fit(jury_votes(50, (1, 1, 1), 2, seed=0).votes).worker_table()


def test_only_numbers_may_be_grades():
    assert may_be_ordered(np.array([0, 1, 2]))
    assert may_be_ordered(np.array(["1", "2", "3"]))
    assert not may_be_ordered(np.array([0, 1]))
    assert not may_be_ordered(np.array(["bad", "fair", "good"]))


def test_grades_that_are_asked_for_are_ordered_without_families():
    graded = jury_votes(300, (1,) * 7, 3, ordered=True, seed=1)
    model = DawidSkene(random_state=0, ordered=True).fit(graded.votes)
    assert isinstance(model._labeler, OrderedLabeler)
    assert np.mean(model.labels_ == graded.truth) > 0.6
    with pytest.raises(ValueError, match="ordered must be 'auto', True or False"):
        DawidSkene(ordered="yes").fit(graded.votes)


def test_the_mean_decides_where_it_is_asked_to():
    graded = jury_votes(300, (1,) * 7, 4, ordered=True, seed=1)
    options = {"init": "majority", "random_state": 0}
    modes, means = (DawidSkene(decision=each, **options).fit(graded.votes) for each in ("mode", "mean"))
    assert_array_equal(modes.probas_, means.probas_)
    assert_array_equal(means.labels_, np.rint(means.probas_ @ np.arange(4)))
    far = [np.mean((np.asarray(model.labels_) - graded.truth) ** 2) for model in (modes, means)]
    assert far[1] < far[0]
    assert_array_equal(means.label_table()["label"], means.labels_)
    assert_array_equal(means.predict(graded.votes), means.labels_)
    with pytest.raises(ValueError, match="decision must be 'mode' or 'mean'; got 'median'"):
        DawidSkene(decision="median").fit(graded.votes)
