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
        (np.zeros((3, 4, 5)), ValueError, "tensor must be finite, and not all zero"),
        (SparseTensor(np.zeros((3, 0), int), [], (3, 4, 5)), ValueError, "tensor must be finite, and not all zero"),
        (with_entry(-np.inf), ValueError, r"tensor must be finite; 1 of 64"),
        (np.full((2, 3, 4), 1e200), ValueError, "entries whose squares fit into float64"),
        (
            np.ones((4, 4)),
            ValueError,
            r"at least three modes; got 2, shape \(4, 4\); for one matrix use numpy.linalg.svd",
        ),
        (np.ones(4), ValueError, "at least three modes; got 1"),
        (np.ones((4, 0, 3)), ValueError, r"must not be empty; got shape \(4, 0, 3\), mode 1 is"),
        (np.full((2, 2, 2), "a"), TypeError, "tensor must contain real or complex numbers"),
        (
            np.full((2, 2, 2), None),
            TypeError,
            r"numpy.asarray\(tensor, float\) makes numbers of objects, and NaN of None",
        ),
        (Path("x.csv"), TypeError, "Open the file first: a table by pandas.read_csv"),
        (np.full((2, 2, 2), None), TypeError, "tensor must contain real or complex numbers"),
        ("tensor.npy", TypeError, "got 'tensor.npy'. Open the file first.*zarr.open"),
        (CUBE * np.nan, ValueError, "tensor must have entries that are numbers; all 64 are NaN"),
        ([[[1.0, 2.0]], [[1.0]]], ValueError, "tensor must"),
    ],
)
def test_tensors_that_are_none(tensor, error, words):
    with pytest.raises(error, match=words):
        codiag.factorize(tensor, 2)


@pytest.mark.parametrize(
    ("rank", "error", "words"),
    [
        (0, ValueError, "rank must be positive; got 0"),
        (-1, ValueError, "rank must be positive; got -1"),
        (2.5, TypeError, "rank must be an integer; got float 2.5"),
        ("2", TypeError, "rank must be an integer, or 'auto' for what choose_rank chooses; got '2'"),
        (None, TypeError, "rank must be an integer, or 'auto' for what choose_rank chooses; got None"),
        (True, TypeError, "rank must be an integer; got bool"),
        (17, ValueError, r"rank must be at most 16, which is enough for every tensor of shape \(4, 4, 4\); got 17"),
    ],
)
def test_ranks_that_are_none(rank, error, words):
    with pytest.raises(error, match=words):
        codiag.factorize(CUBE, rank)


@pytest.mark.parametrize("rank", [2.0, np.int64(2), np.float32(2)])
def test_a_rank_is_any_number_that_is_an_integer(rank):
    assert codiag.factorize(CUBE, rank, seed=0).rank == 2


def test_a_rank_of_numpy_is_a_rank():
    assert codiag.factorize(CUBE, np.int64(1), seed=0).rank == 1


@pytest.mark.parametrize(
    ("method", "error", "words"),
    [
        ("ojd2", ValueError, r"method must be one of auto, ojd0, ojd1, nojd0, .*; got 'ojd2'"),
        (NOJD, TypeError, "did you forget the parentheses"),
        (3, TypeError, "method must be a name or an object"),
    ],
)
def test_methods_that_are_none(method, error, words):
    with pytest.raises(error, match=words):
        codiag.factorize(CUBE, 2, method=method)


@pytest.mark.parametrize(
    ("tensor", "symmetric", "error", "words"),
    [
        (np.ones((3, 4, 5)), True, ValueError, r"symmetric=True needs modes of one size; got shape \(3, 4, 5\)"),
        (CUBE, True, ValueError, r"changes \d+% of this one"),
        (Plain(symmetrize(CUBE)), True, ValueError, "Build it with symmetric=True"),
        (CUBE, "yes", TypeError, "^symmetric must be"),
    ],
)
def test_symmetry_that_is_none(tensor, symmetric, error, words):
    with pytest.raises(error, match=words):
        codiag.factorize(tensor, 2, symmetric=symmetric)


def test_symmetry_that_noise_has_broken():
    """Averaging over permutations of the modes loses nothing: as good as symmetric noise."""
    problem = noisy_tensor((8, 8, 8), 4, symmetric=True, seed=0)
    noise = 1e-3 * np.random.default_rng(1).standard_normal((8, 8, 8))
    fit = codiag.factorize(problem.tensor + noise, 4, symmetric=True, seed=0)
    even = codiag.factorize(problem.tensor + symmetrize(noise), 4, seed=0)
    assert fit.symmetric
    np.testing.assert_allclose(fit.factors[0], even.factors[0], atol=1e-9)


def test_symmetry_can_be_left_aside():
    problem = noisy_tensor((6, 6, 6), 3, symmetric=True, seed=0)
    fit = codiag.factorize(problem.tensor, 3, symmetric=False, seed=0)
    assert not fit.symmetric
    assert codiag.factor_error(fit, problem) < 1e-9


@pytest.mark.parametrize("name", METHODS)
def test_names_stand_for_objects_whatever_their_case(name):
    factor = np.linalg.qr(np.random.default_rng(0).standard_normal((5, 3)))[0]
    tensor = FactoredTensor(np.array([3.0, 2.0, 1.0]), [factor] * 3)
    by_name = codiag.factorize(tensor, 3, method=name.upper(), seed=0)
    by_object = codiag.factorize(tensor, 3, method=METHODS[name], seed=0)
    np.testing.assert_array_equal(by_name.factors[0], by_object.factors[0])


def test_the_default_is_auto():
    fits = [codiag.factorize(CUBE, 2, method=method, seed=0) for method in (None, Auto())]
    np.testing.assert_array_equal(fits[0].factors[0], fits[1].factors[0])


def test_lists_and_integers_are_tensors():
    fit = codiag.factorize([[[1, 2], [2, 4]], [[3, 6], [6, 12]]], 1)
    assert fit.relative_error < 1e-12
    assert fit.weights.dtype == np.float64


def test_a_seed_that_made_the_tensor_does_not_make_the_start():
    """A random start equal to the truth would look like a very good method."""
    problem = noisy_tensor((12, 12, 12), 12, seed=0)
    with pytest.warns(codiag.ConvergenceWarning):
        fit = codiag.factorize(problem.tensor, 12, method=ALS(max_sweeps=1), seed=0)
    assert codiag.factor_error(fit, problem) > 0.3
