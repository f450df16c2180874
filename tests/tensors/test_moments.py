"""Moments of data: what they contract to, and that nothing large is formed."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

import codiag
from codiag.tensors import CrossMomentTensor, MomentTensor

RNG = np.random.default_rng(0)
COUNTS = RNG.poisson(0.7, (40, 5))
COUNTS[0], COUNTS[1] = [1, 0, 0, 0, 0], 0
SAMPLES = RNG.standard_normal((30, 5))


def test_views_of_both_storages():
    views = SAMPLES, COUNTS[:30, :4], SAMPLES[:, :3]
    mixed, dense = CrossMomentTensor(SAMPLES, sparse.csr_matrix(views[1]), views[2]), CrossMomentTensor(*views)
    factors = [RNG.standard_normal((size, 3)) for size in mixed.shape]
    assert_allclose(mixed.to_dense(), np.einsum("si,sj,sk->ijk", *views) / 30, atol=1e-14)
    assert mixed.squared_norm() == pytest.approx(dense.squared_norm())
    assert_allclose(mixed.project(factors[2].T), dense.project(factors[2].T), atol=1e-12)
    assert_allclose(mixed.compress(*factors).to_dense(), dense.compress(*factors).to_dense(), atol=1e-12)
    for ours, theirs in zip(mixed.mttkrps(factors), dense.mttkrps(factors), strict=True):
        assert_allclose(ours, theirs, atol=1e-12)


def test_norm_by_pairs_of_samples():
    """Few samples of many features: inner products are less work than entries."""
    samples = np.random.default_rng(0).standard_normal((3, 40))
    expected = np.einsum("si,sj,sk->ijk", *[samples] * 3) / 3
    assert MomentTensor(samples).squared_norm() == pytest.approx(np.sum(expected**2))


@pytest.mark.parametrize("store", [np.array, sparse.csr_array])
def test_equal_views_make_a_symmetric_moment(store):
    views = [store(SAMPLES) for _ in range(3)]
    moment = CrossMomentTensor(*views)
    assert moment.symmetric
    assert moment.permute((1, 2, 0)).symmetric
    assert not CrossMomentTensor(*views, symmetric=False).symmetric
    assert not CrossMomentTensor(*views[:2], store(2 * SAMPLES)).symmetric
    with pytest.raises(ValueError, match="symmetric=True needs equal"):
        CrossMomentTensor(*views[:2], store(2 * SAMPLES), symmetric=True)


def test_moments_are_factorized_like_any_tensor():
    rng = np.random.default_rng(0)
    factors = [rng.standard_normal((size, 2)) for size in (5, 6, 7)]
    h = rng.integers(0, 2, 500)
    fit = codiag.factorize(CrossMomentTensor(*(factor.T[h] for factor in factors)), 2, rng=0)
    assert codiag.factor_error(fit, factors) < 1e-10


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (
            lambda: CrossMomentTensor(np.ones((3, 2)), np.ones((4, 2)), np.ones((3, 2))),
            "same number each",
        ),
        (lambda: CrossMomentTensor(np.ones((3, 2)), np.ones((3, 2))), "at least three modes"),
        (lambda: MomentTensor(np.ones(3)), "^views must"),
        (lambda: MomentTensor(np.full((3, 2), np.nan)), "^views must"),
        (lambda: MomentTensor(np.ones((0, 2))), "at least one sample"),
        (lambda: MomentTensor(np.ones((3, 2)), weights=np.ones(2)), "^weights must"),
    ],
)
def test_mistakes(make, words):
    with pytest.raises(ValueError, match=words):
        make()
