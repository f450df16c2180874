"""The entry point: what it refuses, and how it says so."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import codiag
from codiag.methods import ALS, METHODS, NOJD, Auto
from codiag.synthetic import noisy_tensor
from codiag.tensors import FactoredTensor, SparseTensor, symmetrize
from tensor_cases import Plain

CUBE = np.random.default_rng(0).standard_normal((4, 4, 4))


def with_entry(value):
    entries = CUBE.copy()
    entries[1, 2, 3] = value
    return entries


@pytest.mark.parametrize(
    ("tensor", "error", "words"),
    [
        (np.zeros((3, 4, 5)), ValueError, "^tensor must"),
        (SparseTensor(np.zeros((3, 0), int), [], (3, 4, 5)), ValueError, "^tensor must"),
        (with_entry(-np.inf), ValueError, "^tensor must"),
        (np.full((2, 3, 4), 1e200), ValueError, "entries whose squares"),
        (
            np.ones((4, 4)),
            ValueError,
            "at least three",
        ),
        (np.ones(4), ValueError, "at least three"),
        (np.ones((4, 0, 3)), ValueError, "must not be"),
        (np.full((2, 2, 2), "a"), TypeError, "^tensor must"),
        (
            np.full((2, 2, 2), None),
            TypeError,
            r"numpy.asarray\(tensor, float\) makes",
        ),
        (Path("x.csv"), TypeError, "Open the file"),
        (np.full((2, 2, 2), None), TypeError, "^tensor must"),
        ("tensor.npy", TypeError, "got 'tensor.npy'. Open the file first.*zarr.open"),
        (CUBE * np.nan, ValueError, "^tensor must"),
        ([[[1.0, 2.0]], [[1.0]]], ValueError, "tensor must"),
    ],
)
def test_tensors_that_are_none(tensor, error, words):
    with pytest.raises(error, match=words):
        codiag.factorize(tensor, 2)


@pytest.mark.parametrize(
    ("rank", "error", "words"),
    [
        (0, ValueError, "^rank must"),
        (-1, ValueError, "^rank must"),
        (2.5, TypeError, "^rank must"),
        ("2", TypeError, "^rank must"),
        (None, TypeError, "^rank must"),
        (True, TypeError, "^rank must"),
        (17, ValueError, "^rank must"),
    ],
)
def test_ranks_that_are_none(rank, error, words):
    with pytest.raises(error, match=words):
        codiag.factorize(CUBE, rank)


@pytest.mark.parametrize("rank", [2.0, np.int64(2), np.float32(2)])
def test_a_rank_is_any_number_that_is_an_integer(rank):
    assert codiag.factorize(CUBE, rank, rng=0).rank == 2


def test_a_rank_of_numpy_is_a_rank():
    assert codiag.factorize(CUBE, np.int64(1), rng=0).rank == 1


@pytest.mark.parametrize(
    ("method", "error", "words"),
    [
        ("ojd2", ValueError, "^method must"),
        (NOJD, TypeError, "did you forget"),
        (3, TypeError, "^method must"),
    ],
)
def test_methods_that_are_none(method, error, words):
    with pytest.raises(error, match=words):
        codiag.factorize(CUBE, 2, method=method)


@pytest.mark.parametrize(
    ("tensor", "symmetric", "error", "words"),
    [
        (np.ones((3, 4, 5)), True, ValueError, "symmetric=True needs modes"),
        (CUBE, True, ValueError, r"changes \d+% of this one"),
        (Plain(symmetrize(CUBE)), True, ValueError, "Build it with"),
        (CUBE, "yes", TypeError, "^symmetric must"),
    ],
)
def test_symmetry_that_is_none(tensor, symmetric, error, words):
    with pytest.raises(error, match=words):
        codiag.factorize(tensor, 2, symmetric=symmetric)


def test_symmetry_that_noise_has_broken():
    """Averaging over permutations of the modes loses nothing: as good as symmetric noise."""
    problem = noisy_tensor((8, 8, 8), 4, symmetric=True, rng=0)
    noise = 1e-3 * np.random.default_rng(1).standard_normal((8, 8, 8))
    fit = codiag.factorize(problem.tensor + noise, 4, symmetric=True, rng=0)
    even = codiag.factorize(problem.tensor + symmetrize(noise), 4, rng=0)
    assert fit._symmetric
    np.testing.assert_allclose(fit.factors[0], even.factors[0], atol=1e-9)


def test_symmetry_can_be_left_aside():
    problem = noisy_tensor((6, 6, 6), 3, symmetric=True, rng=0)
    fit = codiag.factorize(problem.tensor, 3, symmetric=False, rng=0)
    assert not fit._symmetric
    assert codiag.factor_error(fit, problem) < 1e-9


@pytest.mark.parametrize("name", METHODS)
def test_names_stand_for_objects_whatever_their_case(name):
    factor = np.linalg.qr(np.random.default_rng(0).standard_normal((5, 3)))[0]
    tensor = FactoredTensor(np.array([3.0, 2.0, 1.0]), [factor] * 3)
    by_name = codiag.factorize(tensor, 3, method=name.upper(), rng=0)
    by_object = codiag.factorize(tensor, 3, method=METHODS[name], rng=0)
    np.testing.assert_array_equal(by_name.factors[0], by_object.factors[0])


def test_the_default_is_auto():
    fits = [codiag.factorize(CUBE, 2, method=method, rng=0) for method in (None, Auto())]
    np.testing.assert_array_equal(fits[0].factors[0], fits[1].factors[0])


def test_lists_and_integers_are_tensors():
    fit = codiag.factorize([[[1, 2], [2, 4]], [[3, 6], [6, 12]]], 1)
    assert fit.relative_error < 1e-12
    assert fit.weights.dtype == np.float64


def test_a_seed_that_made_the_tensor_does_not_make_the_start():
    """A random start equal to the truth would look like a very good method."""
    problem = noisy_tensor((12, 12, 12), 12, rng=0)
    with pytest.warns(codiag.ConvergenceWarning):
        fit = codiag.factorize(problem.tensor, 12, method=ALS(max_iter=1), rng=0)
    assert codiag.factor_error(fit, problem) > 0.3
