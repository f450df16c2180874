"""Grades as thresholds on a quality: probabilities, steps that rise, and labels that are better for it."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm

from benchmarks.judges import jury_votes
from codiag.models import Jury
from codiag.models.crowd import as_votes
from codiag.models.jury import QUALITY, OrderedModel, run_ordered


def test_probabilities_are_those_of_normal_errors():
    model = OrderedModel(np.array([[-0.5, 0.7]]), np.array([1.3]), np.array([0.0]), np.array([-1]))
    chances = model.by_state()[0]
    assert_allclose(chances.sum(axis=0), 1)
    assert_allclose(chances[0], norm.cdf(-0.5 - 1.3 * QUALITY), atol=1e-9)
    cuts, errors = model.cuts()
    assert_allclose(cuts, np.array([-0.5, 0.7]) / 1.3)
    assert_array_equal(errors, 0)


def test_where_classes_begin_is_known_as_well_as_the_judges_agree():
    """Between two medians the probability of a class is that of a normal distribution with the error of the median."""
    places, slopes = np.array([[-0.4], [0.0], [0.4]]), np.array([1.0, 2.0, 0.5])
    model = OrderedModel(places * slopes[:, None], slopes, np.zeros(3), np.full(3, -1))
    (cut,), (error,) = model.cuts()
    assert (cut, error) == (0, pytest.approx(np.sqrt(np.pi / 2 / 3) * 0.4))
    sure = np.eye(QUALITY.size)
    width = np.hypot(error, (QUALITY[1] - QUALITY[0]) / np.sqrt(12))
    assert_allclose(model.classes(sure)[:, 0], norm.cdf(-QUALITY / width), atol=1e-9)
    drawn = [model.drawn(np.random.default_rng(seed)).cuts()[0][0] for seed in range(300)]
    assert np.std(drawn) == pytest.approx(error, rel=0.2)


@pytest.mark.parametrize("sizes", [(1,) * 6, (3, 2, 1)])
def test_the_likelihood_never_falls(sizes):
    jury = jury_votes(300, sizes, 4, ordered=True, rng=0)
    votes = as_votes(jury.votes)
    cluster = np.where(np.bincount(jury.clusters)[jury.clusters] > 1, jury.clusters, -1)
    history = run_ordered(votes, cluster, 40, 0.0).history
    assert np.min(np.diff(history)) > -1e-3 / np.sqrt(votes.label.size)  # up to the prior of the judges
    assert history[-1] > history[0]


def test_thresholds_and_slopes_are_found():
    """From many votes of independent judges, within four standard errors of a probit with known quality."""
    rng, n = np.random.default_rng(0), 6000
    cuts, slopes = np.array([-0.8, 0.1, 0.9]) + rng.normal(0, 0.3, (8, 1)), rng.uniform(0.7, 1.6, 8)
    quality = rng.standard_normal(n)
    labels = np.stack(
        [np.searchsorted(c, s * quality + rng.standard_normal(n)) for c, s in zip(cuts, slopes, strict=True)]
    )
    model = run_ordered(as_votes(labels.T), np.full(8, -1), 100, 1e-7).model
    assert_allclose(model.thresholds, cuts, atol=0.12)
    assert_allclose(model.slopes, slopes, atol=0.15)


def test_grades_are_labelled_better_if_they_are_ordered():
    graded = jury_votes(800, (6, 4, 3, 2), 4, ordered=True, shared=0.5, rng=0)
    clusters = graded.clusters.tolist()
    right = [
        np.mean(Jury(clusters=clusters, ordered=ordered, random_state=0).fit_predict(graded.votes) == graded.truth)
        for ordered in (True, False)
    ]
    assert right[0] > right[1] + 0.02


def test_known_grades_are_held():
    graded = jury_votes(200, (1,) * 7, 3, ordered=True, rng=1)
    wrong = {task: int(graded.truth[task] + 1) % 3 for task in range(20)}
    model = Jury(clusters=None, ordered=True, random_state=0).fit(graded.votes, wrong)
    assert model.labels_[:20].tolist() == list(wrong.values())
    with pytest.raises(TypeError, match=r"^ordered must"):
        Jury(ordered="yes").fit(graded.votes)
