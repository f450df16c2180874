"""Standard errors of models by leaving out blocks of the same sums."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import linear_sum_assignment

from codiag.models import LatentDirichlet, SingleTopic, SphericalGaussianMixture
from simulated import gaussians, mixed_corpus, single_topic_corpus

GAUSSIAN = "means", "weights", "covariances"


def _aligned(rows, truth):
    return linear_sum_assignment(np.linalg.norm(truth[:, None] - rows[None], axis=2))[1]


class TestStandardErrors:
    """From sums over blocks that are left out in turn."""

    @pytest.mark.parametrize(
        ("model", "draw", "rows", "names"),
        [
            (LatentDirichlet(3, max_iter=0, random_state=0), mixed_corpus, "components_", ("components", "weights")),
            (SingleTopic(4, random_state=0), single_topic_corpus, "components_", ("components", "weights")),
            (SphericalGaussianMixture(3, max_iter=0, random_state=0), gaussians, "means_", GAUSSIAN),
        ],
        ids=["dirichlet", "single", "gaussian"],
    )
    def test_they_are_the_spread_over_data_sets(self, model, draw, rows, names):
        """Over 40 data sets, a spread is known to 11 %; standard errors from 20 blocks, of five data sets, to 7 %."""
        truth, estimates, errors = draw(10, 0)[1], [], []
        for seed in range(40):
            found = copy.deepcopy(model).fit(draw(2000, seed)[0])
            order = _aligned(getattr(found, rows), truth)
            estimates.append([getattr(found, f"{name}_")[order] for name in names])
        for seed in range(5):
            found = copy.deepcopy(model).set_params(n_jackknife=20).fit(draw(2000, seed)[0])
            order = _aligned(getattr(found, rows), truth)
            errors.append([getattr(found, f"{name}_standard_errors_")[order] for name in names])
        for place in range(len(names)):
            spread = np.std([one[place] for one in estimates], axis=0)
            told = np.sqrt(np.mean([np.square(one[place]) for one in errors], axis=0))
            used = spread > 0.2 * np.max(spread)  # words that topics hardly have are clipped at zero
            known = used & np.isfinite(told)  # NaN where they are held there without each block, too
            assert known.sum() > 0.9 * used.sum()
            assert 0.75 < np.mean(told[known] / spread[known]) < 1.25

    def test_one_gaussian_is_the_mean_of_its_samples(self):
        """Whose standard error is known: the spread of a feature over the root of the number."""
        samples = np.random.default_rng(0).standard_normal((4000, 3)) * [1, 2, 3]
        model = SphericalGaussianMixture(1, max_iter=0, n_jackknife=100).fit(samples)
        assert_allclose(model.means_standard_errors_[0], samples.std(axis=0) / np.sqrt(4000), rtol=0.25)

    @pytest.mark.filterwarnings("ignore:.*may be more than the data shows")  # of the first chunk, of few Gaussians
    def test_they_do_not_depend_on_parts(self):
        """Nor on an order of parts that means something: errors from 20 blocks are known to 16 %."""
        samples = gaussians(3000, 0)[0]
        samples = samples[np.argsort(samples[:, 0])]
        options = {"max_iter": 0, "random_state": 0, "n_jackknife": 20}
        parts = np.array_split(samples, 10)
        whole = SphericalGaussianMixture(3, **options).fit(samples)
        found = SphericalGaussianMixture(3, **options).fit(parts)
        chunked = SphericalGaussianMixture(3, **options)
        for part in (parts[0], np.concatenate(parts[1:])):
            chunked.partial_fit(part)
        for other in (found, chunked):
            ratios = other.means_standard_errors_ / whole.means_standard_errors_
            assert 0.75 < np.exp(np.mean(np.log(ratios))) < 1.35
        one = SphericalGaussianMixture(3, **options).fit([samples])
        assert_allclose(one.means_standard_errors_, whole.means_standard_errors_)
        again = found.set_params(n_jackknife=0).fit(samples)
        assert not hasattr(again, "means_standard_errors_")

    def test_blocks_are_kept_by_partial_fit_only(self):
        samples = gaussians(600, 0)[0]
        model = SphericalGaussianMixture(3, max_iter=0, n_jackknife=20, random_state=0).fit([samples])
        plain = SphericalGaussianMixture(3, max_iter=0, random_state=0).fit([samples])
        assert len(pickle.dumps(model)) < 1.2 * len(pickle.dumps(plain))
        with pytest.raises(ValueError, match="n_jackknife must be 0, as with the sums that data is added to; got 20"):
            model.partial_fit(samples)

    @pytest.mark.parametrize(
        ("options", "given", "words"),
        [
            ({"n_jackknife": 1}, None, "n_jackknife must be 0, for no standard errors, or at least 2"),
            ({"n_jackknife": -1}, None, "n_jackknife must"),
            ({"n_jackknife": 2000, "max_iter": 0}, 4, "n_jackknife must be at most 300, the number of"),
            ({"n_jackknife": 2000, "max_iter": 0}, None, "n_jackknife must be at most 300, the number of"),
        ],
    )
    @pytest.mark.parametrize("kind", [LatentDirichlet, SphericalGaussianMixture])
    def test_invalid_numbers_of_blocks_are_refused(self, kind, options, given, words):
        data = mixed_corpus(300, 0)[0] if kind is LatentDirichlet else gaussians(300, 0)[0]
        with pytest.raises(ValueError, match=words):
            kind(3, **options).fit(data if given is None else np.array_split(data, given))
