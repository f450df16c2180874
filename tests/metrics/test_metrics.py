from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import codiag
from codiag.metrics import nearest_error, overlapping_nmi
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
        (np.eye(3)[:, :2], np.eye(3), "at least as"),
        (np.eye(3), np.eye(4), "rows of the truth"),
        ((np.eye(3), np.eye(3)), np.eye(3), "number of modes"),
        (np.ones(3), np.eye(3), r"shape \(d, k\)"),
    ],
)
def test_factors_that_cannot_be_compared(estimate, truth, words):
    with pytest.raises(ValueError, match=words):
        codiag.factor_error(estimate, truth)


def covers(seed, n=60, k=4):
    rng = np.random.default_rng(seed)
    truth = rng.random((n, k)) < 0.35
    truth[~truth.any(axis=1), 0] = True
    return truth, truth ^ (rng.random((n, k)) < 0.1)


@given(seed=st.integers(0, 1000))
def test_nmi_is_one_for_equals_whatever_the_order_and_symmetric(seed):
    truth, other = covers(seed)
    order = np.random.default_rng(seed).permutation(4)
    assert overlapping_nmi(truth[:, order], truth) == pytest.approx(1)
    both = [overlapping_nmi(*pair) for pair in ((truth, other), (other, truth))]
    assert both[0] == pytest.approx(both[1])
    assert -1e-12 <= both[0] <= 1 + 1e-12


def test_nmi_by_hand():
    """Two halves against two halves that share half of each: nothing in common; opposites count for nothing."""
    left = np.repeat(np.eye(2), 4, axis=0)
    crossed = np.tile(np.eye(2), (4, 1))
    assert overlapping_nmi(left, crossed) == pytest.approx(0)
    one = left[:, :1]
    assert overlapping_nmi(1 - one, one) == pytest.approx(0)
    # One community of 4 of 8 against 3 of those 4: H = 1 and h(3/8), H(X, Y) of counts 3, 1, 0, 4.
    entropy = -sum(p * np.log2(p) for p in (3 / 8, 1 / 8, 4 / 8))
    small = np.array([[1], [1], [1], [0], [0], [0], [0], [0]])
    own = -sum(p * np.log2(p) for p in (3 / 8, 5 / 8))
    assert overlapping_nmi(one, small) == pytest.approx((1 + own - entropy) / 1)
    assert overlapping_nmi(np.ones((8, 1)), one) == 0
    assert overlapping_nmi(np.ones((8, 1)), np.ones((8, 2))) == 1  # both say nothing


def test_nmi_is_that_of_cdlib():
    evaluation = pytest.importorskip("cdlib.evaluation")
    nx = pytest.importorskip("networkx")
    from cdlib import NodeClustering

    for seed in range(5):
        pair = list(covers(seed))
        pair[1][~pair[1].any(axis=1), 1] = True  # cdlib leaves out nodes without a community
        graph = nx.path_graph(60)
        theirs = [
            NodeClustering([np.flatnonzero(c).tolist() for c in cover.T], graph, "", overlap=True) for cover in pair
        ]
        score = evaluation.overlapping_normalized_mutual_information_MGH(*theirs).score
        assert overlapping_nmi(*pair) == pytest.approx(score)


def test_covers_that_cannot_be_compared():
    with pytest.raises(ValueError, match="one row per"):
        overlapping_nmi(np.ones((3, 1)), np.ones((4, 1)))
    with pytest.raises(ValueError, match="threshold first"):
        overlapping_nmi(np.full((3, 1), 0.5), np.ones((3, 1)))
