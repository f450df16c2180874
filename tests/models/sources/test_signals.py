"""Signals that are mixed, and indices of how well they are separated."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose

from codiag.metrics import amari_index, minimum_distance
from codiag.synthetic import mixed_signals
from source_cases import COLORED, CURVED


class TestIndices:
    def test_minimum_distance_is_the_least_over_orders_and_scales(self):
        rng = np.random.default_rng(0)
        for k in (2, 3, 4):
            gain = rng.standard_normal((k, k))
            least = np.inf
            for order in itertools.permutations(range(k)):
                # The best scale of a row against a unit vector projects it.
                rows = [gain[i] * gain[i, j] / (gain[i] @ gain[i]) - np.eye(k)[j] for i, j in enumerate(order)]
                least = min(least, np.linalg.norm(rows))
            assert minimum_distance(gain, np.eye(k)) == pytest.approx(least / np.sqrt(k - 1))

    @pytest.mark.parametrize("index", [minimum_distance, amari_index])
    def test_order_and_scale_make_no_difference_and_the_worst_is_one(self, index):
        rng = np.random.default_rng(1)
        mixing = rng.standard_normal((4, 4))
        unmixing = (rng.standard_normal(4) * np.linalg.inv(mixing).T).T[[2, 0, 3, 1]]
        assert index(unmixing, mixing) == pytest.approx(0, abs=1e-7)
        assert index(np.ones((4, 4)), np.eye(4)) == pytest.approx(1)
        assert index(np.array([[2.0]]), np.array([[3.0]])) == 0
        assert 0 < index(unmixing + 0.1, mixing) < 1
        with pytest.raises(ValueError, match="^unmixing must"):
            index(np.ones((2, 3)), np.ones((2, 3)))


class TestSignals:
    def test_sources_have_unit_variance_and_follow_the_seed(self):
        kinds = [*COLORED, *CURVED, "gaussian"]
        mixed = mixed_signals(500, kinds, noise=0.1, n_channels=14, rng=3)
        assert_allclose(mixed.sources.mean(axis=0), 0, atol=1e-12)
        assert_allclose(mixed.sources.std(axis=0), 1)
        again = mixed_signals(500, kinds, noise=0.1, n_channels=14, rng=3)
        assert np.array_equal(mixed.channels, again.channels)
        noise = mixed.channels - mixed.sources @ mixed.mixing.T
        assert np.std(noise) == pytest.approx(0.1 * np.sqrt(np.mean((mixed.sources @ mixed.mixing.T) ** 2)), rel=0.05)

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            ({"kinds": ["sine"]}, "^kinds must"),
            ({"kinds": "sinusoid"}, "^kinds must"),
            ({"n_samples": 1}, "^n_samples must"),
            ({"n_channels": 1}, "^n_channels must"),
        ],
    )
    def test_arguments_are_checked(self, arguments, words):
        with pytest.raises(ValueError, match=words):
            mixed_signals(**{"n_samples": 10} | arguments)
