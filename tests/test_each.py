"""Many tensors at once are fitted as each of them alone."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import codiag
from codiag.methods import ALS
from codiag.synthetic import noisy_tensor


def stack(n=6, size=5, rank=2):
    rng = np.random.default_rng(0)
    clean = np.einsum("nir,njr,nkr->nijk", *rng.standard_normal((3, n, size, rank)))
    return clean + 0.1 * rng.standard_normal(clean.shape)


def seed_of(seed, place):
    return np.random.SeedSequence(seed, spawn_key=(place,))


def assert_same(ours, theirs):
    assert len(ours) == len(theirs)
    for one, other in zip(ours, theirs, strict=True):
        assert_array_equal(one.weights, other.weights)
        for mine, yours in zip(one.factors, other.factors, strict=True):
            assert_array_equal(mine, yours)


def test_each_tensor_is_fitted_as_by_factorize_with_its_seed():
    tensors = stack()
    fits = codiag.factorize_each(tensors, 2, seed=3, method="nls", constraints="nonnegative")
    alone = [
        codiag.factorize(tensor, 2, seed=seed_of(3, place), method="nls", constraints="nonnegative")
        for place, tensor in enumerate(tensors)
    ]
    assert_same(fits, alone)


def test_processes_give_the_same_answers():
    tensors = stack()
    assert_same(codiag.factorize_each(tensors, 2, seed=3, n_jobs=2), codiag.factorize_each(tensors, 2, seed=3))


def test_tensors_of_any_shape_and_rank_from_any_iterable():
    shapes, ranks = [(3, 4, 5), (4, 4, 4), (2, 3, 2, 3)], [2, 3, 1]
    made = (noisy_tensor(shape, rank, seed=0) for shape, rank in zip(shapes, ranks, strict=True))
    fits = codiag.factorize_each((planted.tensor for planted in made), ranks, seed=0)
    assert [tuple(factor.shape for factor in fit.factors) for fit in fits] == [
        tuple((size, rank) for size in shape) for shape, rank in zip(shapes, ranks, strict=True)
    ]
    assert codiag.factorize_each([], 2) == []


def test_problems_say_what_is_known_of_each_tensor():
    tensors = stack(3)
    observed = np.random.default_rng(1).random(tensors.shape) < 0.9
    problems = [codiag.Problem(tensor, 2, observed=seen) for tensor, seen in zip(tensors, observed, strict=True)]
    with_nan = np.where(observed, tensors, np.nan)
    assert_same(codiag.factorize_each(problems, seed=0), codiag.factorize_each(with_nan, 2, seed=0))


def test_a_generator_is_drawn_from_once():
    draws = [np.random.default_rng(5) for _ in range(2)]
    first, second = (codiag.factorize_each(stack(2), 2, seed=rng) for rng in draws)
    assert_same(first, second)
    assert draws[0].integers(2**31) == draws[1].integers(2**31)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_tensors_without_an_answer_are_named(n_jobs):
    tensors = stack()
    tensors[1] = 0
    tensors[4, 0, 0, 0] = np.inf
    with pytest.raises(
        ValueError, match=r"tensors 1, 4 do not.*tensors\[1\]: tensor must be finite, and not all zero"
    ) as caught:
        codiag.factorize_each(tensors, 2, n_jobs=n_jobs)
    assert "all zero" in str(caught.value.__cause__)


def test_one_warning_names_the_fits_that_are_in_doubt():
    tensors = stack(14)
    with pytest.warns(codiag.ConvergenceWarning) as caught:
        codiag.factorize_each(tensors, 2, method=ALS(max_sweeps=1), seed=0)
    (warning,) = caught
    text = str(warning.message)
    assert "14 of 14 fits are in doubt: tensors 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 4 more" in text
    assert "tensors[0]: ALS did not converge" in text
    assert warning.filename == __file__


@pytest.mark.parametrize(
    ("tensors", "rank", "message"),
    [
        (stack(2), [1, 2, 3], "rank must be one integer, or one for each of 2 tensors; got 3"),
        (stack(2)[0], 2, "tensor must have at least three modes"),
        ("stack", 2, "tensors must be a stack"),
        (3, 2, "tensors must be a stack"),
        (stack(2), 2.5, "rank"),
    ],
)
def test_wrong_arguments(tensors, rank, message):
    with pytest.raises((ValueError, TypeError), match=message):
        codiag.factorize_each(tensors, rank)
