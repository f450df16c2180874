"""Moments of data: what they contract to, and that nothing large is formed."""

from __future__ import annotations

import itertools
import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

import codiag
from codiag.tensors import (
    CrossMomentTensor,
    MomentTensor,
    PlacementTensor,
    WordMomentTensor,
    WordPairs,
    word_frequencies,
)
from codiag.tensors import _moments as moments

RNG = np.random.default_rng(0)
COUNTS = RNG.poisson(0.7, (40, 5))
COUNTS[0], COUNTS[1] = [1, 0, 0, 0, 0], 0
SAMPLES = RNG.standard_normal((30, 5))
MATRIX = RNG.standard_normal((5, 5))


def triples_by_hand(counts):
    """Average over ordered triples of distinct positions in every document, then over documents."""
    total, n = np.zeros((counts.shape[1],) * 3), 0
    for document in counts:
        words = np.repeat(np.arange(counts.shape[1]), document)
        if words.size < 3:
            continue
        places = np.array(list(itertools.permutations(range(words.size), 3)))
        share = np.zeros_like(total)
        np.add.at(share, tuple(words[places].T), 1 / len(places))
        total, n = total + share, n + 1
    return total / n


def placed(matrix, vector):
    return sum(np.einsum(f"{pair},{one}->ijk", matrix, vector) for pair, one in (("ij", "k"), ("ik", "j"), ("jk", "i")))


KINDS = {
    "samples": (MomentTensor(SAMPLES), np.einsum("si,sj,sk->ijk", *[SAMPLES] * 3) / 30),
    "sparse samples": (MomentTensor(sparse.csr_matrix(COUNTS)), np.einsum("si,sj,sk->ijk", *[COUNTS] * 3) / 40),
    "weights": (
        MomentTensor(SAMPLES, weights=np.arange(30.0)),
        np.einsum("s,si,sj,sk->ijk", np.arange(30.0), *[SAMPLES] * 3),
    ),
    "views": (
        CrossMomentTensor(SAMPLES, sparse.csr_matrix(COUNTS[:30, :4]), SAMPLES[:, :3]),
        np.einsum("si,sj,sk->ijk", SAMPLES, COUNTS[:30, :4], SAMPLES[:, :3]) / 30,
    ),
    "placements": (PlacementTensor(MATRIX + MATRIX.T, SAMPLES[0]), placed(MATRIX + MATRIX.T, SAMPLES[0])),
    "words": (WordMomentTensor(sparse.csr_matrix(COUNTS)), triples_by_hand(COUNTS)),
}
EVERY = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture(params=[None, 7])
def blocks(request, monkeypatch):
    if request.param:
        monkeypatch.setattr(moments, "BLOCK", request.param)


@EVERY
def test_entries(kind, blocks):
    tensor, expected = KINDS[kind]
    assert_allclose(tensor.to_dense(), expected, atol=1e-12)
    assert tensor.squared_norm() == pytest.approx(np.sum(expected**2), rel=1e-10)
    assert tensor.shape == expected.shape


@EVERY
def test_contractions(kind, blocks):
    tensor, expected = KINDS[kind]
    rng = np.random.default_rng(1)
    factors = [rng.standard_normal((size, 3)) for size in tensor.shape]
    w = rng.standard_normal((2, tensor.shape[2]))
    assert_allclose(tensor.project(w), np.einsum("ijk,nk->nij", expected, w), atol=1e-11)
    assert_allclose(
        tensor.compress(*factors).to_dense(), np.einsum("ijk,ia,jb,kc->abc", expected, *factors), atol=1e-10
    )
    letters = "ijk"
    for mode in range(3):
        rest = [letter for place, letter in enumerate(letters) if place != mode]
        others = [factor for place, factor in enumerate(factors) if place != mode]
        image = np.einsum(f"ijk,{rest[0]}r,{rest[1]}r->{letters[mode]}r", expected, *others)
        assert_allclose(tensor.mttkrp(factors, mode), image, atol=1e-10)
        assert_allclose(tensor.mttkrps(factors)[mode], image, atol=1e-10)
    assert_allclose(tensor.permute((2, 0, 1)).to_dense(), expected.transpose(2, 0, 1), atol=1e-12)
    opened = tensor.compress(None, factors[1], None)
    assert_allclose(opened.to_dense(), np.einsum("ijk,jb->ibk", expected, factors[1]), atol=1e-10)


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
    with pytest.raises(ValueError, match="symmetric=True needs equal views"):
        CrossMomentTensor(*views[:2], store(2 * SAMPLES), symmetric=True)


def test_words_are_unbiased_for_any_length():
    """Raw counts are not: the mean over many documents is the moment of three independent words."""
    rng = np.random.default_rng(0)
    word = rng.dirichlet(np.ones(4))
    counts = np.stack([rng.multinomial(length, word) for length in rng.integers(3, 9, 200_000)])
    expected = np.einsum("i,j,k->ijk", word, word, word)
    assert_allclose(WordMomentTensor(counts).to_dense(), expected, atol=3e-3)
    assert_allclose(WordPairs(counts) @ np.eye(4), np.outer(word, word), atol=3e-3)
    assert_allclose(word_frequencies(counts), word, atol=3e-3)


def test_a_large_vocabulary_is_contracted_without_a_matrix_of_words():
    """50,000 words: words x words would be 20 GB, and their pairs in these documents 16 MB."""
    counts = sparse.random(200, 50_000, density=2e-3, random_state=0, data_rvs=lambda n: np.ones(n)).tocsr()
    tensor = WordMomentTensor(counts)
    basis = np.linalg.qr(np.random.default_rng(0).standard_normal((50_000, 3)))[0]
    tracemalloc.start()
    assert tensor.compress(basis, basis, basis).shape == (3, 3, 3)
    assert tensor.mttkrp([basis] * 3, 0).shape == (50_000, 3)
    assert tracemalloc.get_traced_memory()[1] < 3e7
    tracemalloc.stop()


def test_moments_are_factorized_like_any_tensor():
    rng = np.random.default_rng(0)
    factors = [rng.standard_normal((size, 2)) for size in (5, 6, 7)]
    h = rng.integers(0, 2, 500)
    fit = codiag.factorize(CrossMomentTensor(*(factor.T[h] for factor in factors)), 2, seed=0)
    assert codiag.factor_error(fit, factors) < 1e-10


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (
            lambda: CrossMomentTensor(np.ones((3, 2)), np.ones((4, 2)), np.ones((3, 2))),
            r"same number each; got \[3, 4, 3\]",
        ),
        (lambda: CrossMomentTensor(np.ones((3, 2)), np.ones((3, 2))), "at least three modes"),
        (lambda: MomentTensor(np.ones(3)), r"views must have shape \(n, d\)"),
        (lambda: MomentTensor(np.full((3, 2), np.nan)), "views must be finite"),
        (lambda: MomentTensor(np.ones((0, 2))), "at least one sample"),
        (lambda: MomentTensor(np.ones((3, 2)), weights=np.ones(2)), r"weights must have shape \(3,\)"),
        (lambda: WordMomentTensor(-np.ones((3, 4))), "counts must not be negative; the least is -1"),
        (lambda: WordMomentTensor(np.eye(4)), "at least one document of three words"),
        (lambda: WordMomentTensor(np.full((3, 4), np.inf)), "counts must be finite"),
        (lambda: PlacementTensor(np.eye(3), np.ones(4)), "matrix must have shape"),
    ],
)
def test_mistakes(make, words):
    with pytest.raises(ValueError, match=words):
        make()
