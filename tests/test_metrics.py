from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import codiag
from codiag.metrics import nearest_error
from codiag.synthetic import unit_factor


@given(seed=st.integers(0, 1000), rank=st.integers(1, 6))
def test_order_sign_and_scale_do_not_matter(seed, rank):
    rng = np.random.default_rng(seed)
    truth = unit_factor(6, rank, rng)
    order, scales = rng.permutation(rank), rng.choice([-3.0, 0.1, 7.0], rank)
    assert codiag.factor_error(truth[:, order] * scales, truth) < 1e-12
    matching = codiag.match_components(truth[:, order] * scales, truth)
    np.testing.assert_array_equal(order[matching.permutation], np.arange(rank))
    np.testing.assert_allclose(matching.factors[0], truth, atol=1e-12)


def test_modes_are_matched_together():
    """A component that one mode cannot place is placed by the others."""
    first = np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]])
    second = np.eye(3)
    matching = codiag.match_components((first[:, [1, 2, 0]], second[:, [1, 2, 0]]), (first, second))
    assert matching.permutation.tolist() == [2, 0, 1]


def test_known_distances():
    angle = 0.3
    turned = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    assert codiag.factor_error(turned, np.eye(2)) == pytest.approx(2 * np.sin(angle / 2))


def test_nearest_error_lets_true_factors_share_an_estimate():
    truth, estimate = np.eye(2), np.array([[1.0, 1.0], [0.0, 0.0]])
    assert nearest_error(estimate, truth) == pytest.approx(np.sqrt(2) / 2)
    assert codiag.factor_error(estimate, truth) == pytest.approx(np.sqrt(2) / 2)
    spare = np.array([[1.0, 0.8, 0.9], [0.0, 0.6, 0.1]])
    assert nearest_error(spare, truth) <= codiag.factor_error(spare, truth)


@pytest.mark.parametrize(
    ("estimate", "truth", "words"),
    [
        (np.eye(3)[:, :2], np.eye(3), "at least as many components"),
        (np.eye(3), np.eye(4), "rows of the truth"),
        ((np.eye(3), np.eye(3)), np.eye(3), "number of modes; got 2 and 1"),
        (np.ones(3), np.eye(3), r"shape \(d, k\); got an array of shape \(3,\)"),
    ],
)
def test_factors_that_cannot_be_compared(estimate, truth, words):
    with pytest.raises(ValueError, match=words):
        codiag.factor_error(estimate, truth)
