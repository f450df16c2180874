"""Many tensors at once are fitted as each of them alone."""

from __future__ import annotations

import pickle
import weakref

import numpy as np
import pytest
from joblib import parallel_backend
from numpy.testing import assert_allclose, assert_array_equal

import codiag
from assertions import assert_same_to_rounding
from codiag.labels import Labelled, Labels
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
        assert_same_to_rounding(one.weights, other.weights)
        for mine, yours in zip(one.factors, other.factors, strict=True):
            assert_array_equal(mine, yours)


def assert_same_minimum(ours, theirs):
    """Batches take other steps than `factorize` to the same minimum."""
    assert len(ours) == len(theirs)
    for one, other in zip(ours, theirs, strict=True):
        assert_allclose(one.weights, other.weights, rtol=1e-7)
        for mine, yours in zip(one.factors, other.factors, strict=True):
            assert_allclose(mine, yours, rtol=0, atol=1e-7)


def test_each_tensor_is_fitted_as_by_factorize_with_its_seed():
    tensors = stack()
    fits = codiag.factorize_each(tensors, 2, rng=3, method="nls", constraints="nonnegative")
    alone = [
        codiag.factorize(tensor, 2, rng=seed_of(3, place), method="nls", constraints="nonnegative")
        for place, tensor in enumerate(tensors)
    ]
    assert_same(fits, alone)


def test_processes_give_the_same_answers():
    tensors = stack()
    assert_same(codiag.factorize_each(tensors, 2, rng=3, n_jobs=2), codiag.factorize_each(tensors, 2, rng=3))


def test_tensors_of_any_shape_and_rank_from_any_iterable():
    shapes, ranks = [(3, 4, 5), (4, 4, 4), (2, 3, 2, 3)], [2, 3, 1]
    made = (noisy_tensor(shape, rank, rng=0) for shape, rank in zip(shapes, ranks, strict=True))
    fits = codiag.factorize_each((planted.tensor for planted in made), ranks, rng=0)
    assert [tuple(factor.shape for factor in fit.factors) for fit in fits] == [
        tuple((size, rank) for size in shape) for shape, rank in zip(shapes, ranks, strict=True)
    ]
    assert codiag.factorize_each([], 2) == []


def test_problems_say_what_is_known_of_each_tensor():
    tensors = stack(3)
    observed = np.random.default_rng(1).random(tensors.shape) < 0.9
    problems = [codiag.Problem(tensor, 2, mask=seen) for tensor, seen in zip(tensors, observed, strict=True)]
    with_nan = np.where(observed, tensors, np.nan)
    assert_same(codiag.factorize_each(problems, rng=0), codiag.factorize_each(with_nan, 2, rng=0))


def test_a_generator_is_drawn_from_once():
    draws = [np.random.default_rng(5) for _ in range(2)]
    first, second = (codiag.factorize_each(stack(2), 2, rng=rng) for rng in draws)
    assert_same(first, second)
    assert draws[0].integers(2**31) == draws[1].integers(2**31)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_tensors_without_an_answer_are_named(n_jobs):
    tensors = stack()
    tensors[1] = 0
    tensors[4, 0, 0, 0] = np.inf
    with pytest.raises(ValueError, match=r"tensors 1, 4 of 6 did not.*tensors\[1\]: tensor must") as caught:
        codiag.factorize_each(tensors, 2, n_jobs=n_jobs)
    assert "all zero" in str(caught.value.__cause__)


def test_one_warning_names_the_fits_that_are_in_doubt():
    tensors = stack(14)
    with pytest.warns(codiag.ConvergenceWarning) as caught:
        codiag.factorize_each(tensors, 2, method=ALS(max_iter=1), rng=0)
    (warning,) = caught
    text = str(warning.message)
    assert "14 of 14 fits with a warning: tensors 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 4 more" in text
    assert "tensors[0]: ALS did not converge" in text
    assert warning.filename == __file__


def test_the_fits_that_there_are_come_with_the_error():
    tensors = stack(3)
    tensors[1] = 0
    with pytest.raises(codiag.FailedFitsError, match=r"; tensor 1 of 3 did not") as caught:
        codiag.factorize_each(tensors, 2, rng=0)
    kept = pickle.loads(pickle.dumps(caught.value))
    assert kept.fits[1] is None
    assert list(kept.errors) == [1]
    others = [codiag.factorize(tensors[place], 2, rng=seed_of(0, place)) for place in (0, 2)]
    assert_same_minimum([kept.fits[0], kept.fits[2]], others)


@pytest.mark.slow
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_tensors_of_an_iterator_are_let_go_as_they_are_fitted(n_jobs):
    n_tensors, alive, most = 60, [], 0

    def drawn():
        nonlocal most
        for tensor in np.repeat(stack(2), n_tensors // 2, axis=0):
            own = tensor.copy()
            alive.append(weakref.ref(own))
            most = max(most, sum(reference() is not None for reference in alive))
            yield own
            del own

    with parallel_backend("threading"):  # a fit lets go of its tensor when it ends, and nothing is pickled
        assert len(codiag.factorize_each(drawn(), 1, rng=0, n_jobs=n_jobs, method=ALS(max_iter=500))) == n_tensors
    assert most < n_tensors / 2


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_error_of_the_iterator_reaches_the_caller(n_jobs):
    def broken():
        yield from stack(12)
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        codiag.factorize_each(broken(), 2, rng=0, n_jobs=n_jobs)


def test_ranks_are_given_or_chosen_for_each():
    tensors = stack(3, size=4)
    fits = codiag.factorize_each(tensors, [1, "auto", 2], rng=0)
    ranks = [1, "auto", 2]
    assert_same_minimum(fits, [codiag.factorize(tensors[i], ranks[i], rng=seed_of(0, i)) for i in range(3)])


def test_labels_are_kept():
    index = ["a", "b", "c", "d", "e"]
    labels = Labels(("row", "column", "time"), (index, None, None))
    labelled, plain = codiag.factorize_each([Labelled(stack(1)[0], labels), stack(1)[0]], 2, rng=0)
    assert labelled.problem.labels.names == ("row", "column", "time")
    assert labelled.problem.labels.index(0, 5).tolist() == index
    assert plain.problem.labels is None
    with pytest.raises(codiag.FailedFitsError, match=r"tensor 0 of 2 did not.*labels must"):
        codiag.factorize_each([Labelled(stack(1, size=4)[0], labels), stack(1)[0]], 2, rng=0)


@pytest.mark.parametrize(
    ("tensors", "options", "message"),
    [
        (stack(2), {"rank": [1, 2, 3]}, "rank must be one for all"),
        (iter(stack(2)), {"rank": [1, 2, 3]}, "rank must be one for all"),
        (iter(stack(2)), {"rank": [1]}, "rank must be one for all"),
        (stack(2)[0], {"rank": 2}, "tensors must be a stack of shape"),
        ("stack", {"rank": 2}, "tensors must be a stack"),
        (3, {"rank": 2}, "tensors must be a stack"),
        (stack(2), {"rank": 2.5}, "rank must"),
        (stack(2), {"rank": "a"}, "rank must"),
        (stack(2), {"rank": [2, "a"]}, r"tensors must each allow a fit; tensor 1 of 2 .* rank must"),
        (stack(2), {}, "rank must"),
        ([codiag.Problem(one, 2) for one in stack(2)], {"rank": 2}, "rank must be left out"),
        (stack(2), {"rank": 2, "constraints": "round"}, "constraint"),
        (stack(2), {"rank": 2, "symmetric": (0, 7)}, "symmetric"),
        (stack(2), {"rank": 2, "n_jobs": 1.5}, "n_jobs must"),
        (stack(2), {"rank": 2, "n_jobs": 0}, "n_jobs must"),
    ],
)
def test_wrong_arguments(tensors, options, message):
    with pytest.raises((ValueError, TypeError), match=f"^{message}"):
        codiag.factorize_each(tensors, **options)


def test_a_loss_is_that_of_each_fit():
    counts = np.random.default_rng(0).poisson(2.0, (3, 6, 5, 4))
    fits = codiag.factorize_each(counts, 1, loss="poisson", rng=0)
    alone = [codiag.factorize(one, 1, loss="poisson", rng=seed_of(0, place)) for place, one in enumerate(counts)]
    assert_same(fits, alone)
    assert {type(fit.problem.loss).__name__ for fit in fits} == {"Poisson"}
