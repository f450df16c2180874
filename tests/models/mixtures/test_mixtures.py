"""Mixtures by moments, of Gaussians and of views."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.optimize import linear_sum_assignment

from codiag.methods import NLS
from codiag.models import MultiviewMixture, SphericalGaussianMixture
from codiag.models.mixtures import Samples, gaussian_moments, unique_variances
from simulated import gaussians, matched, views


class TestMixtures:
    def test_gaussians(self):
        samples, means, weights, variances = gaussians(50_000, 0)
        for max_iter in (0, 10):
            model = SphericalGaussianMixture(3, max_iter=max_iter, random_state=0).fit(samples)
            assert matched(model.means_, means) < 0.05
            assert_allclose(model.weights_, weights, atol=0.03)
            assert_allclose(model.covariances_, variances, atol=0.2 if max_iter == 0 else 0.05)
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
        with pytest.warns(UserWarning, match="n_components=5 may be"):
            SphericalGaussianMixture(5, max_iter=0, random_state=0).fit(gaussians(3000, 0)[0])

    def test_criteria_are_those_of_scikit_learn(self):
        samples = gaussians(3000, 0)[0]
        model = SphericalGaussianMixture(3, random_state=0).fit(samples)
        theirs = model.to_sklearn()
        assert model.bic(samples) == pytest.approx(theirs.bic(samples))
        assert model.aic(samples) == pytest.approx(theirs.aic(samples))

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
        with pytest.warns(UserWarning, match="may be more"):
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
        for max_iter in (0, 10):
            model = MultiviewMixture(3, max_iter=max_iter, random_state=0).fit(data)
            errors.append(np.mean([matched(found, mean) for found, mean in zip(model.means_, means, strict=True)]))
        assert errors[1] < errors[0]
        assert_allclose(np.sqrt(model.variances_), noise, rtol=0.05)
        assert_allclose(model.predict_proba(data).sum(axis=1), 1, atol=1e-12)
        order = np.argsort(linear_sum_assignment(np.linalg.norm(model.means_[0][:, None] - means[0][None], axis=2))[1])
        assert np.mean(order[h] == model.predict(data)) > 0.95

    def test_more_gaussians_than_features(self):
        with pytest.raises(ValueError, match="^n_components must"):
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
            ([np.ones((4, 3))] * 2, "^X must"),
            ([np.ones((4, 3)), np.ones((5, 3)), np.ones((4, 3))], "the same number each"),
            ([np.ones((4, 3)), np.ones((4, 2)), np.ones((4, 2))], "^n_components must"),
        ],
    )
    def test_invalid_views_are_refused(self, data, words):
        with pytest.raises(ValueError, match=words):
            MultiviewMixture(3).fit(data)


def all_finite(model):
    numbers = [*model.diagnostics_.values(), model.weights_, *np.atleast_1d(model.means_[0])]
    return all(np.all(np.isfinite(np.asarray(number, dtype=float))) for number in numbers if number is not None)


class TestDiagonalCovariances:
    """Variances that differ from feature to feature: moments of spherical Gaussians are where EM starts."""

    truth = np.array([[6.0, 0, 0, 0, 0], [0, 6.0, 0, 0, 0], [0, 0, 6.0, 0, 0]])
    widths = np.array([[0.2, 1, 2, 1, 0.5], [1, 0.5, 1, 2, 0.2], [2, 1, 0.3, 0.5, 1]])

    def samples(self, n, closeness=1.0):
        rng = np.random.default_rng(0)
        h = rng.choice(3, n, p=[0.5, 0.3, 0.2])
        return self.truth[h] / closeness + np.sqrt(self.widths[h]) * rng.standard_normal((n, 5))

    def test_variances_by_feature_are_found(self):
        samples = self.samples(20_000)
        model = SphericalGaussianMixture(3, covariance_type="diag", random_state=0).fit(samples)
        assert_allclose(model.means_, self.truth, atol=0.1)
        assert_allclose(model.covariances_, self.widths, rtol=0.1)

    def test_second_moments_are_freed_of_variances_by_feature(self):
        """What is left is the second moment of the means, which spherical Gaussians would leave far more in."""
        rng = np.random.default_rng(1)
        truth, shares = 3 * np.linalg.qr(rng.standard_normal((12, 3)))[0].T, np.array([0.4, 0.35, 0.25])
        widths = rng.permutation(np.geomspace(0.2, 5, 12))
        samples = truth[rng.choice(3, 20_000, p=shares)] + np.sqrt(widths) * rng.standard_normal((20_000, 12))
        errors = []
        for by_feature in (True, False):
            found = gaussian_moments(Samples.of(samples), 3, NLS(), by_feature=by_feature)
            means = found.samples.location.inside(truth) - found.samples.mean + found.offset
            expected = (means.T * shares) @ means
            errors.append(np.linalg.norm(found.second - expected) / np.linalg.norm(expected))
        assert errors[0] < 0.1
        assert errors[1] > 3 * errors[0]

    def test_means_along_axes_are_found_too(self):
        """Features then share no variance, and only moments of spherical Gaussians are a start."""
        rng = np.random.default_rng(1)
        truth, widths = 8 * np.eye(3, 5), rng.uniform(0.5, 2, 5)
        samples = truth[rng.choice(3, 3000, p=[0.4, 0.35, 0.25])] + np.sqrt(widths) * rng.standard_normal((3000, 5))
        model = SphericalGaussianMixture(3, covariance_type="diag", random_state=0).fit(samples)
        distances = np.linalg.norm(model.means_[:, None] - truth, axis=2)
        assert np.max(distances[linear_sum_assignment(distances)]) < 0.2

    def test_unique_variances_are_those_of_the_definition(self):
        rng = np.random.default_rng(0)
        factors, widths = rng.standard_normal((10, 3)), rng.uniform(0.5, 2, 10)
        assert_allclose(unique_variances(factors @ factors.T + np.diag(widths), 3), widths, atol=0.02)

    def test_results_agree_with_scikit_learn(self):
        samples = self.samples(3000)
        model = SphericalGaussianMixture(3, covariance_type="diag", random_state=0).fit(samples)
        theirs = model.to_sklearn()
        for name in ("score", "bic", "aic"):
            assert getattr(model, name)(samples) == pytest.approx(getattr(theirs, name)(samples))
        assert_allclose(model.score_samples(samples), theirs.score_samples(samples), rtol=1e-9)
        assert_allclose(theirs.fit(samples).means_, model.means_, atol=0.05)

    @pytest.mark.parametrize("kind", ["spherical", "diag"])
    def test_steps_raise_the_likelihood(self, kind):
        samples = self.samples(5000, closeness=2)  # more than are worked on together
        models = [SphericalGaussianMixture(3, covariance_type=kind, max_iter=n, random_state=0) for n in (1, 2, 5)]
        scores = [model.fit(samples).score(samples) for model in models]
        assert scores[0] < scores[1] < scores[2]

    @pytest.mark.parametrize("kind", ["spherical", "diag"])
    def test_what_is_drawn_is_found_again(self, kind):
        model = SphericalGaussianMixture(3, covariance_type=kind, random_state=0).fit(self.samples(5000))
        samples, labels = model.sample(20_000, random_state=1)
        assert [one.shape for one in (samples, labels)] == [one.shape for one in model.to_sklearn().sample(20_000)]
        again = SphericalGaussianMixture(3, covariance_type=kind, random_state=0).fit(samples)
        assert_allclose(again.means_, model.means_, atol=0.1)
        assert_allclose(again.covariances_, model.covariances_, rtol=0.1)
        assert_allclose(np.bincount(labels) / labels.size, model.weights_, atol=0.02)
        assert_array_equal(model.sample(5)[0], model.sample(5, random_state=0)[0])

    @pytest.mark.parametrize(
        ("options", "name", "words"),
        [
            ({"covariance_type": "full"}, "fit", "^covariance_type must"),
            ({"covariance_type": "diag", "max_iter": 0}, "fit", "^max_iter must"),
            ({"covariance_type": "diag"}, "partial_fit", "Call fit"),
        ],
    )
    def test_mistakes(self, options, name, words):
        with pytest.raises(ValueError, match=words):
            getattr(SphericalGaussianMixture(3, **options), name)(self.samples(50))


class TestDegenerateSamples:
    @pytest.mark.parametrize("max_iter", [0, 10])
    @pytest.mark.parametrize("scale", [1.0, 1e-150, 1e150])
    @pytest.mark.filterwarnings("ignore:.*may be more than the data shows")
    def test_points_that_coincide(self, scale, max_iter):
        """Every Gaussian is a point: the means are the points, whatever their unit."""
        points = np.array([[0.0, 1.0, 2.0], [3.0, 4.0, 0.0], [5.0, 0.0, -2.0]])
        for chosen, n in ((points[:2], 1), (points[:2], 10), (points, 7)):
            samples = scale * np.repeat(chosen, n, axis=0)
            model = SphericalGaussianMixture(len(chosen), max_iter=max_iter, random_state=0).fit(samples)
            assert matched(model.means_ / scale, chosen) < 1e-6
            assert np.all(model.covariances_ > 0)
            assert_allclose(model.weights_, 1 / len(chosen), atol=1e-6)
            assert all_finite(model)
            assert np.all(np.isfinite(model.score_samples(samples)))

    @pytest.mark.parametrize("max_iter", [0, 10])
    @pytest.mark.filterwarnings("ignore:.*may be more than the data shows")
    def test_samples_on_a_line_have_means_on_it(self, max_iter):
        rng = np.random.default_rng(0)
        origin, direction = np.array([7.0, 0.0, 1.0]), np.array([2.0, -1.0, 3.0]) / np.sqrt(14)
        samples = origin + np.outer(np.concatenate([rng.normal(0, 1, 50), rng.normal(20, 1, 30)]), direction)
        for k in (1, 2):
            model = SphericalGaussianMixture(k, max_iter=max_iter, random_state=0).fit(samples)
            away = model.means_ - origin
            assert_allclose(away - np.outer(away @ direction, direction), 0, atol=1e-6)
            assert all_finite(model)
        assert_allclose(np.sort(away @ direction), [0, 20], atol=1)
        with pytest.raises(ValueError, match="n_components=3 is more"):
            SphericalGaussianMixture(3, max_iter=max_iter).fit(samples)

    def test_features_that_never_change_keep_their_value(self):
        samples = np.c_[gaussians(500, 0)[0], np.full(500, 4.0)]
        for max_iter in (0, 5):
            model = SphericalGaussianMixture(3, max_iter=max_iter, random_state=0).fit(samples)
            assert_allclose(model.means_[:, -1], 4, atol=1e-6)

    @pytest.mark.parametrize("scale", [1e-140, 1e148])
    def test_units_that_are_far_from_one(self, scale):
        samples, *_ = gaussians(2000, 0)
        plain, scaled = (SphericalGaussianMixture(3, random_state=0).fit(unit * samples) for unit in (1.0, scale))
        assert_allclose(scaled.means_ / scale, plain.means_, atol=1e-8)
        assert_allclose(scaled.predict_proba(scale * samples), plain.predict_proba(samples), atol=1e-8)
        data, *_ = views(2000, 0)
        plain, scaled = (
            MultiviewMixture(3, max_iter=2, random_state=0).fit([data[0], unit * data[1], data[2] / unit])
            for unit in (1.0, scale)
        )
        assert_allclose(scaled.means_[1] / scale, plain.means_[1], atol=1e-8)
        assert_allclose(scaled.means_[2] * scale, plain.means_[2], atol=1e-8)

    @pytest.mark.parametrize(
        ("samples", "k", "words"),
        [
            (np.ones((9, 3)), 1, "^X must"),
            (np.ones((9, 3)), 2, "^X must"),
            (np.eye(3)[:2], 3, "^n_components must"),
            (1e200 * np.eye(3), 2, "^X must"),
            (1e-200 * np.eye(3), 2, "^X must"),
            (np.repeat(np.eye(3)[:2], 9, axis=0), 3, "n_components=3 is more"),
        ],
    )
    def test_degenerate_samples_are_refused(self, samples, k, words):
        with pytest.raises(ValueError, match=words):
            SphericalGaussianMixture(k).fit(samples)

    @pytest.mark.parametrize(
        ("data", "error", "words"),
        [
            (5, TypeError, "^X must"),
            ("abc", TypeError, "^X must"),
            ([np.ones((4, 3)), np.ones((4, 3)), np.zeros((4, 3))], ValueError, r"X\[2\] must .* zero everywhere"),
            ([np.ones((4, 3)), np.ones(4), np.ones((4, 3))], ValueError, r"X\[1\] must have shape"),
            ([np.ones((4, 3))] * 2 + [np.full((4, 3), np.nan)], ValueError, r"X\[2\] must be finite"),
            ([np.ones((4, 3))] * 2 + [sparse.csr_array(np.full((4, 3), np.nan))], ValueError, r"X\[2\] must be finite"),
            ([1e200 * np.ones((4, 3))] * 3, ValueError, r"X\[0\] must .* divide it by that"),
            ([np.ones((1, 3))] * 3, ValueError, "^n_components must"),
        ],
    )
    def test_degenerate_views_are_refused(self, data, error, words):
        with pytest.raises(error, match=words):
            MultiviewMixture(2).fit(data)

    def test_other_views_than_in_fit(self):
        data, *_ = views(500, 0)
        model = MultiviewMixture(3, random_state=0).fit(data)
        with pytest.raises(ValueError, match="^X must"):
            model.predict([data[0], data[1], data[1]])

    def test_one_gaussian_is_never_more_than_the_data_shows(self):
        """Warnings are errors here."""
        for samples in (np.array([[0.0, 1.0], [3.0, 4.0]]), np.random.default_rng(0).standard_normal((30, 4))):
            SphericalGaussianMixture(1).fit(samples)


def test_orthogonal_methods_need_a_last_view_as_large_as_the_number_of_components():
    rng = np.random.default_rng(0)
    views = [rng.standard_normal((50, size)) for size in (5, 4, 2)]
    with pytest.raises(ValueError, match="^n_components must"):
        MultiviewMixture(3, method="tpm", random_state=0).fit(views)
