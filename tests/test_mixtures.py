"""Mixtures by moments, of Gaussians and of views."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import linear_sum_assignment

from codiag.models import MultiviewMixture, SphericalGaussianMixture
from simulated import gaussians, matched, views


class TestMixtures:
    def test_gaussians(self):
        samples, means, weights, variances = gaussians(50_000, 0)
        for polish in (0, 10):
            model = SphericalGaussianMixture(3, polish=polish, random_state=0).fit(samples)
            assert matched(model.means_, means) < 0.05
            assert_allclose(model.weights_, weights, atol=0.03)
            assert_allclose(model.covariances_, variances, atol=0.2 if polish == 0 else 0.05)
        shares = model.predict_proba(samples[:100])
        assert_allclose(shares.sum(axis=1), 1, atol=1e-12)
        assert_array_equal(model.predict(samples[:100]), shares.argmax(axis=1))
        theirs = model.to_sklearn()
        assert_allclose(theirs.predict_proba(samples[:100]), shares, atol=1e-8)
        assert theirs.score(samples[:100]) == pytest.approx(model.score(samples[:100]))

    @pytest.mark.parametrize("shift", [0.0, 1.0, -100.0, 1e5])
    @pytest.mark.parametrize("scale", [1.0, 1e-6])
    def test_the_origin_and_the_unit_do_not_matter(self, shift, scale):
        samples, means, *_ = gaussians(20_000, 0)
        centre = samples.mean(axis=0)
        moved = scale * (samples - centre + shift)
        model = SphericalGaussianMixture(3, random_state=0).fit(moved)
        assert matched(model.means_ / scale - shift + centre, means) < 0.02
        assert_allclose(model.covariances_ / scale**2, [0.5, 1.0, 1.5], atol=0.1)

    def test_scikit_learn_starts_from_it(self):
        samples, *_ = gaussians(3000, 0)
        model = SphericalGaussianMixture(3, random_state=0).fit(samples)
        assert matched(model.to_sklearn().fit(samples).means_, model.means_) < 0.05

    def test_more_gaussians_than_there_are(self):
        with pytest.warns(UserWarning, match="n_components=5 may be more than the data shows"):
            SphericalGaussianMixture(5, polish=0, random_state=0).fit(gaussians(3000, 0)[0])

    def test_a_view_smaller_than_the_mixture(self):
        rng = np.random.default_rng(0)
        means, weights = [rng.standard_normal((3, d)) for d in (2, 5, 6)], np.array([0.5, 0.3, 0.2])
        h = rng.choice(3, 100_000, p=weights)
        data = [mean[h] + 0.3 * rng.standard_normal((h.size, mean.shape[1])) for mean in means]
        model = MultiviewMixture(3, random_state=0).fit(data)
        assert_allclose(model.weights_, weights, atol=0.02)
        for found, mean in zip(model.means_, means, strict=True):
            assert matched(found, mean) < 0.05

    def test_views_that_do_not_correlate(self):
        rng = np.random.default_rng(0)
        with pytest.warns(UserWarning, match="may be more than the data shows"):
            MultiviewMixture(3, random_state=0).fit([rng.standard_normal((2000, 4)) for _ in range(3)])

    def test_polished_views(self):
        """Gaussian noise, and white: steps of EM improve on moments, and samples are told apart."""
        rng = np.random.default_rng(0)
        means, weights = [2 * rng.standard_normal((3, d)) for d in (4, 5, 6)], np.array([0.5, 0.3, 0.2])
        h = rng.choice(3, 3000, p=weights)
        noise = (0.5, 1.0, 1.5)
        data = [
            mean[h] + s * rng.standard_normal((h.size, mean.shape[1])) for mean, s in zip(means, noise, strict=True)
        ]
        errors = []
        for polish in (0, 10):
            model = MultiviewMixture(3, polish=polish, random_state=0).fit(data)
            errors.append(np.mean([matched(found, mean) for found, mean in zip(model.means_, means, strict=True)]))
        assert errors[1] < errors[0]
        assert_allclose(np.sqrt(model.variances_), noise, rtol=0.05)
        assert_allclose(model.predict_proba(data).sum(axis=1), 1, atol=1e-12)
        order = np.argsort(linear_sum_assignment(np.linalg.norm(model.means_[0][:, None] - means[0][None], axis=2))[1])
        assert np.mean(order[h] == model.predict(data)) > 0.95

    def test_more_gaussians_than_features(self):
        with pytest.raises(ValueError, match="n_components must be at most 6, the number of features"):
            SphericalGaussianMixture(7).fit(gaussians(100, 0)[0])

    def test_views(self):
        data, means, weights = views(50_000, 0)
        model = MultiviewMixture(3, random_state=0).fit(data)
        for found, mean in zip(model.means_, means, strict=True):
            assert matched(found, mean) < 0.1
        assert_allclose(model.weights_, weights, atol=0.03)
        assert model.diagnostics_["weights_sum"] == pytest.approx(1, abs=0.1)

    @pytest.mark.parametrize(
        ("data", "words"),
        [
            ([np.ones((4, 3))] * 2, "X must be three views"),
            ([np.ones((4, 3)), np.ones((5, 3)), np.ones((4, 3))], "the same number each"),
            ([np.ones((4, 3)), np.ones((4, 2)), np.ones((4, 2))], "n_components must be at most 2"),
        ],
    )
    def test_views_that_are_none(self, data, words):
        with pytest.raises(ValueError, match=words):
            MultiviewMixture(3).fit(data)
