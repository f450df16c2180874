"""Expectation maximization after moments: when it ends, and what other starts are for."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from codiag.models import HiddenMarkov, MultiviewMixture, SphericalGaussianMixture
from codiag.models.base import is_near_limit, random_groups

pytestmark = pytest.mark.filterwarnings("ignore:.*may be more than the data shows")


def clusters(seed, n=600):
    """Return points of four clusters with heavy tails, which no mixture of spherical Gaussians describes."""
    rng = np.random.default_rng(seed)
    means = 1.2 * rng.standard_normal((4, 6))
    return means[rng.integers(0, 4, n)] + rng.standard_t(4, (n, 6))


def chain(seed, n=1000):
    """Return symbols of four states, which moments of so few hardly show."""
    rng = np.random.default_rng(seed)
    transitions, emissions = 0.3 * rng.dirichlet(np.ones(4), 4) + 0.7 * np.eye(4), rng.dirichlet(np.full(8, 0.3), 4)
    states = [0]
    for _ in range(n - 1):
        states.append(int(rng.choice(4, p=transitions[states[-1]])))
    return np.array([rng.choice(8, p=emissions[state]) for state in states])


def test_steps_end_where_a_geometric_series_is_near_its_limit():
    levels = [-(0.5**step) for step in range(20)]
    ends = [step for step in range(20) if is_near_limit(levels[: step + 1])]
    assert ends[0] == 7  # what is left is 2 ** -7, the first below 0.01
    assert not is_near_limit([0.0, 0.1, 0.3])  # it gains more and more
    assert not is_near_limit([np.nan] * 5)  # a model whose steps have no likelihood
    assert is_near_limit([1.0, 1.0, 1.0])


@pytest.mark.parametrize("kind", ["spherical", "diag"])
def test_further_steps_gain_nothing(kind):
    samples = clusters(0)
    model = SphericalGaussianMixture(4, covariance_type=kind, random_state=0).fit(samples)
    before = float(np.sum(model.score_samples(samples)))
    assert model.diagnostics_.n_iter < 500
    after = model.to_sklearn().set_params(max_iter=300, tol=1e-9, reg_covar=0, warm_start=False)
    after.set_params(weights_init=model.weights_, means_init=model.means_).fit(samples)
    assert float(np.sum(after.score_samples(samples))) < before + 0.1
    assert_allclose(model.diagnostics_.log_likelihood, before, atol=0.02)


def test_the_best_of_all_starts_is_kept():
    """With 40 steps or fewer there are the moments alone."""
    gains = []
    for seed in range(3):
        symbols = chain(seed)
        alone = HiddenMarkov(4, max_iter=40, random_state=0).fit(symbols)
        best = HiddenMarkov(4, random_state=0).fit(symbols)
        gains.append(best.score(symbols) - alone.score(symbols))
        assert alone.diagnostics_.start == 0
        assert_allclose(best.diagnostics_.log_likelihood, best.score(symbols), atol=0.05)
    assert min(gains) > -0.01
    assert max(gains) > 1


def test_views_end_at_a_maximum():
    rng = np.random.default_rng(0)
    centers, labels = [rng.standard_normal((3, 5)) * 2 for _ in range(3)], rng.integers(0, 3, 800)
    views = [center[labels] + rng.standard_normal((800, 5)) for center in centers]
    model = MultiviewMixture(3, max_iter=200, random_state=0).fit(views)
    assert model.diagnostics_.n_iter < 200
    longer = MultiviewMixture(3, max_iter=model.diagnostics_.n_iter + 1, random_state=0).fit(views)
    assert_allclose(longer.means_[0], model.means_[0], atol=1e-3)


def test_replicates_of_the_jackknife_take_the_steps_of_the_fit():
    rng = np.random.default_rng(0)
    samples = 2 * np.eye(3, 5)[rng.integers(0, 3, 900)] + rng.standard_normal((900, 5))
    model = SphericalGaussianMixture(3, random_state=0).fit(samples)
    replicate = model._refit(samples[random_groups(len(samples), 10) != 3])
    assert replicate._path == (model.diagnostics_.start, model.diagnostics_.n_iter)
    assert np.max(np.abs(replicate._components.means - model.means_)) < 1
