"""Recovery of overlapping communities, as the paper measures it."""

from __future__ import annotations

import numpy as np

from experiments.estimators.recovery import recovery_curve


def test_recovery_by_hand():
    """Two of three groups found, one of them with five of its twenty missing."""
    truth = np.repeat(np.eye(3), 20, axis=0)
    found = np.zeros((60, 2))
    found[:20, 0], found[20:35, 1] = 0.9, 0.4
    curve = recovery_curve(found, truth, [0.3, 0.5])
    np.testing.assert_allclose(curve.recovery, [2 / 3, 1 / 3])
    np.testing.assert_allclose(curve.error, [5 / (60 * 3), 0])
    np.testing.assert_allclose(curve.distance, [(0 + 5) / 2 / 60, 0])
    nothing = recovery_curve(found, truth, [1.0])
    assert nothing.recovery[0] == 0
    assert np.isnan(nothing.distance[0])


def test_matches_are_those_of_a_t_test():
    from scipy import stats

    rng = np.random.default_rng(0)
    truth = rng.random((50, 6)) < 0.3
    found = truth[:, :3] ^ (rng.random((50, 3)) < 0.25)
    matched = [
        any((test := stats.pearsonr(a, b)).statistic > 0 and test.pvalue < 0.01 for b in found.T.astype(float))
        for a in truth.T.astype(float)
    ]
    assert recovery_curve(found, truth, [0.5]).recovery[0] == np.mean(matched)
    assert 0 < np.mean(matched) < 1
