"""What users may not pass, and what they are told."""

from __future__ import annotations

import numpy as np
import pytest

import codiag
from assertions import assert_same_to_rounding
from codiag.diagonalize import UWEDGE, Jacobi, JDi, OrthogonalNewton, TwoSided
from codiag.synthetic import matrix_stack, orthonormal_factor

GOOD = matrix_stack(orthonormal_factor(3, 3, rng=0), 4, rng=1).matrices


def spoiled(value):
    matrices = GOOD.copy()
    matrices[2, 1, 0] = value
    return matrices


@pytest.mark.parametrize("orthogonal", [True, False])
@pytest.mark.parametrize(
    ("matrices", "error", "words"),
    [
        (spoiled(np.nan), ValueError, r"finite.*1 of 36.*\(2, 1, 0\)"),
        (spoiled(np.inf), ValueError, r"finite.*\(2, 1, 0\)"),
        (GOOD[:, :, :2], ValueError, r"square; got 4 of 3 x 2.*moveaxis.*TwoSided"),
        ([np.eye(2), np.eye(3)], ValueError, "same shape; got"),
        ([[[1, 2], [3]], [[1, 2], [3, 4]]], ValueError, r"matrices must"),
        ([], ValueError, r"stack of shape"),
        (np.zeros((0, 3, 3)), ValueError, "empty; got shape"),
        (np.zeros((3, 0, 0)), ValueError, r"empty"),
        (np.triu(GOOD + 1j), ValueError, r"Hermitian or all symmetric; .*conj\(\)\) / 2 .*TwoSided"),
        (GOOD[:1], ValueError, r"at least two matrices.*got 1.*eigh"),
        (GOOD[0], ValueError, r"stack of shape \(n, d, d\); got 2 axes.*eigh"),
        (GOOD[None], ValueError, r"got 4 axes"),
        (np.triu(GOOD), ValueError, r"symmetric; the largest \|M_ij - M_ji\| is .*TwoSided"),
        (GOOD.astype(str), TypeError, "real or complex"),
        (GOOD.astype(object), TypeError, "real or complex"),
        ("matrices", TypeError, "real or complex"),
        (None, TypeError, "real or complex"),
        (np.ma.masked_less(GOOD, 0), TypeError, r"must not be masked"),
        (1e200 * GOOD, ValueError, r"squares fit into float64.*Divide"),
        (1e-200 * GOOD, ValueError, r"squares fit into float64"),
        ((1e20 * GOOD).astype(np.float32), ValueError, r"squares fit into float32"),
        (np.zeros((4, 3, 3)), ValueError, r"not all be zero"),
    ],
)
def test_bad_matrices_are_refused_with_a_sentence(matrices, error, words, orthogonal):
    with pytest.raises(error, match=words):
        codiag.joint_diagonalize(matrices, orthogonal=orthogonal)


def test_integers_are_converted():
    integers = np.round(10 * GOOD).astype(int)
    fit = codiag.joint_diagonalize(integers, orthogonal=True, rng=0)
    same = codiag.joint_diagonalize(integers.astype(float), orthogonal=True, rng=0)
    assert_same_to_rounding(fit.factor, same.factor)
    assert fit.factor.dtype == np.float64


def test_rounding_is_not_asymmetry():
    rotation = orthonormal_factor(3, 3, rng=5)
    codiag.joint_diagonalize(rotation @ GOOD @ rotation.T, orthogonal=True, rng=0)


def test_asymmetry_in_one_entry_is_seen():
    matrices = GOOD.copy()
    matrices[3, 0, 2] += 1e-6
    with pytest.raises(ValueError, match=r"1e-06"):
        codiag.joint_diagonalize(matrices)


def test_asymmetry_is_seen_in_single_precision_and_beside_large_matrices():
    rng = np.random.default_rng(0)
    large = rng.standard_normal((2, 300, 300)).astype(np.float32)
    slightly = (large + large.transpose(0, 2, 1)) / 2 + 3e-3 * large
    with pytest.raises(ValueError, match="symmetric"):
        codiag.joint_diagonalize(slightly)
    beside = np.concatenate([1e8 * GOOD, GOOD + 1e-4 * rng.standard_normal(GOOD.shape)])
    with pytest.raises(ValueError, match="symmetric"):
        codiag.joint_diagonalize(beside)


def test_weights_are_copied():
    weights = np.ones(4)
    fit = codiag.joint_diagonalize(GOOD, sample_weight=weights, rng=0)
    weights[:] = 7
    np.testing.assert_array_equal(fit.sample_weight, 1)


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ([1, 1, 1], r"shape \(4,\).*got \(3,\)"),
        ([1, 1, 1, -1], r"not negative"),
        ([1, 1, 1, np.nan], r"finite"),
        ([1, 0, 0, 0], "at least two"),
        ([1j, 1, 1, 1], "^sample_weight must"),
    ],
)
def test_bad_weights(weights, words):
    with pytest.raises((TypeError, ValueError), match=words):
        codiag.joint_diagonalize(GOOD, sample_weight=weights)


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: Jacobi(tol=0), ValueError, "^tol must"),
        (lambda: Jacobi(tol="small"), TypeError, "^tol must"),
        (lambda: UWEDGE(max_sweeps=0), ValueError, "^max_sweeps must"),
        (lambda: JDi(max_sweeps=2.5), TypeError, "^max_sweeps must"),
        (lambda: UWEDGE(rank=0), ValueError, "^rank must"),
        (lambda: UWEDGE(rank=True), TypeError, "^rank must"),
        (lambda: OrthogonalNewton(rank=2.5), TypeError, "^rank must"),
        (lambda: UWEDGE(rank=4)(GOOD), ValueError, "^rank must"),
        (lambda: UWEDGE(statistical_tol=-1.0), ValueError, "^statistical_tol must"),
        (lambda: UWEDGE(statistical_tol="a"), TypeError, "^statistical_tol must"),
        (lambda: TwoSided(orthogonal="no"), TypeError, "^orthogonal must"),
        (lambda: UWEDGE(rank=2)(np.zeros((3, 4, 4))), ValueError, "not all be zero"),
        (lambda: codiag.joint_diagonalize(GOOD, diagonalizer=Jacobi), TypeError, "forget the parentheses"),
        (lambda: codiag.joint_diagonalize(GOOD, diagonalizer="jacobi"), TypeError, "like Jacobi\\(\\)"),
        (
            lambda: codiag.joint_diagonalize(GOOD, diagonalizer=UWEDGE(), orthogonal=True),
            ValueError,
            "contradicts UWEDGE",
        ),
        (
            lambda: codiag.joint_diagonalize(GOOD, diagonalizer=TwoSided(), orthogonal=True),
            ValueError,
            "TwoSided\\(orthogonal=True\\)",
        ),
    ],
)
def test_bad_options(make, error, words):
    with pytest.raises(error, match=words):
        make()
