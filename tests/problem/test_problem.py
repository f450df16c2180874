"""What is asked, as an object: checked once, and never changed."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import codiag
from assertions import assert_same_to_rounding
from codiag._arrays import to_host
from codiag.constraints import Fixed, NonNegative
from codiag.tensors import DenseTensor, FactoredTensor, SparseTensor, symmetrize
from tensor_cases import TENSORS

ENTRIES = np.random.default_rng(0).random((3, 4, 5))
CUBE = symmetrize(np.random.default_rng(1).random((4, 4, 4)))


def test_it_is_frozen():
    problem = codiag.Problem(ENTRIES, 2)
    for name in ("tensor", "rank", "constraints", "weights", "second_moment", "symmetric"):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(problem, name, None)


def test_what_is_not_given_is_none():
    problem = codiag.Problem(ENTRIES, 2)
    assert (problem.constraints, problem.weights, problem.second_moment) == (None, None, None)
    assert isinstance(problem.tensor, DenseTensor)
    assert not problem.symmetric
    assert problem.required_features == frozenset()


def test_what_is_asked_beyond_a_free_fit():
    given = {"constraints": "nonnegative", "weights": np.arange(60).reshape(3, 4, 5)}
    features = {"constraints": "constraints", "weights": "missing entries"}
    for name, value in given.items():
        assert codiag.Problem(ENTRIES, 2, **{name: value}).required_features == {features[name]}
    assert codiag.Problem(ENTRIES, 2, **given).required_features == set(features.values())
    assert (
        codiag.Problem(CUBE, 2, symmetric=True, second_moment=np.eye(4)).required_features == frozenset()
    )  # methods may leave it


@pytest.mark.parametrize(
    ("rank", "error", "words"),
    [
        (None, TypeError, "^rank must"),
        (0, ValueError, "rank must"),
        (-1, ValueError, "rank must"),
        (1.5, TypeError, "rank must"),
        ("two", TypeError, "rank must"),
        (True, TypeError, "rank must"),
        (13, ValueError, "^rank must"),
    ],
)
def test_ranks_that_are_none(rank, error, words):
    with pytest.raises(error, match=words):
        codiag.Problem(ENTRIES, rank)


@pytest.mark.parametrize(
    ("tensor", "error", "words"),
    [
        (np.ones((3, 4)), ValueError, "^tensor must"),
        (np.full((3, 4, 5), np.inf), ValueError, "^tensor must"),
        ("file.npy", TypeError, "^tensor must"),
    ],
    ids=["matrix", "infinite", "text"],
)
def test_tensors_that_are_none(tensor, error, words):
    with pytest.raises(error, match=words):
        codiag.Problem(tensor, 2)


class TestSymmetry:
    def test_never_detected(self):
        assert codiag.Problem(CUBE, 2).symmetric is False
        assert codiag.Problem(CUBE, 2, symmetric=True).symmetric is True

    @pytest.mark.parametrize("kind", TENSORS)
    def test_declared_by_tensors(self, kind):
        for declared in (True, False):
            assert codiag.Problem(TENSORS[kind](CUBE, declared), 2).symmetric == declared

    def test_declared_for_what_is_not(self):
        with pytest.raises(ValueError, match="symmetric=True needs modes"):
            codiag.Problem(ENTRIES, 2, symmetric=True)
        with pytest.raises(ValueError, match="symmetric=True contradicts"):
            codiag.Problem(SparseTensor([[0], [1], [2]], [1.0], (3, 3, 3)), 1, symmetric=True)
        with pytest.raises(TypeError, match="^symmetric must"):
            codiag.Problem(CUBE, 2, symmetric="yes")


class TestSecondMoment:
    def test_of_a_tensor_that_is_not_symmetric(self):
        with pytest.raises(ValueError, match=r"second_moment is for symmetric tensors.*leave it out, and use NOJD"):
            codiag.Problem(ENTRIES, 2, second_moment=np.eye(3))
        with pytest.raises(ValueError, match="second_moment is for"):
            codiag.Problem(CUBE, 2, second_moment=np.eye(4))

    def test_of_another_size(self):
        with pytest.raises(ValueError, match="^second_moment must"):
            codiag.Problem(CUBE, 2, symmetric=True, second_moment=np.eye(3))

    def test_methods_that_need_none_ignore_it(self):
        plain = codiag.Problem(CUBE, 2, symmetric=True)
        problem = codiag.Problem(CUBE, 2, symmetric=True, second_moment=np.eye(4))
        fits = [codiag.factorize(asked, rng=0) for asked in (problem, plain)]
        assert_same_to_rounding(fits[0].factors[0], fits[1].factors[0])


class TestFactorize:
    def test_a_problem_is_the_same_as_its_parts(self):
        parts = {"constraints": [NonNegative(), None, None], "weights": np.random.default_rng(2).random((3, 4, 5))}
        whole = codiag.factorize(codiag.Problem(ENTRIES, 2, **parts), rng=0)
        apart = codiag.factorize(ENTRIES, 2, **parts, rng=0)
        assert_same_to_rounding(whole.weights, apart.weights)

    @pytest.mark.parametrize(
        ("name", "value"),
        [("rank", 2), ("symmetric", True), ("constraints", "nonnegative"), ("weights", np.ones((3, 4, 5)))],
    )
    def test_nothing_is_said_twice(self, name, value):
        with pytest.raises(TypeError, match=f"{name} must be left out if a Problem is given, which has its own"):
            codiag.factorize(codiag.Problem(ENTRIES, 2), **{name: value})

    def test_a_problem_may_be_solved_many_times(self):
        problem = codiag.Problem(ENTRIES, 2)
        first, _, again = (codiag.factorize(problem, method=method, rng=0) for method in ("als", "nojd", "als"))
        assert_same_to_rounding(first.weights, again.weights)


class TestDerived:
    def test_multiples_keep_all_else(self):
        problem = codiag.Problem(ENTRIES, 2, constraints=[Fixed(np.ones((3, 2))), None, None], weights=ENTRIES)
        larger = problem.scaled(4.0)
        np.testing.assert_allclose(larger.tensor.to_dense(), 4 * ENTRIES)
        assert larger.constraints == problem.constraints
        assert_array_equal(larger.weights, problem.weights)
        assert problem.scaled(1) is problem

    def test_another_tensor_is_free(self):
        problem = codiag.Problem(ENTRIES, 2, constraints="nonnegative", weights=ENTRIES)
        other = problem.with_tensor(FactoredTensor(np.ones(2), [np.ones((size, 2)) for size in (2, 3, 4)]))
        assert (other.rank, other.required_features) == (2, frozenset())

    def test_counts_of_entries_and_parameters(self):
        assert codiag.Problem(ENTRIES, 2).n_independent == 60
        assert codiag.Problem(CUBE, 2, symmetric=True).n_independent == 4 * 5 * 6 // 6
        assert codiag.Problem(ENTRIES, 2, mask=ENTRIES > 0.5).n_independent == np.sum(ENTRIES > 0.5)
        assert codiag.Problem(ENTRIES, 2).n_parameters == 2 * (3 + 4 + 5 - 2)
        assert codiag.Problem(CUBE, 2, symmetric=True).n_parameters == 2 * 4


def test_observed_entries_are_in_the_precision_of_the_tensor():
    problem = codiag.Problem(ENTRIES.astype(np.float32), 2, mask=ENTRIES > 0.5)
    assert problem.weights.dtype == np.float32
    assert_array_equal(to_host(problem.weights), ENTRIES > 0.5)


HOLES = np.random.default_rng(1).random((6, 6, 6)) > 0.2


@pytest.mark.parametrize(
    "stated",
    [{}, {"weights": HOLES}, {"weights": HOLES, "constraints": "nonnegative"}, {"symmetric": True}],
    ids=["free", "holes", "non-negative with holes", "symmetric"],
)
@pytest.mark.parametrize("rank", [3, "auto"])
def test_a_fit_checks_its_problem_at_most_twice(rank, stated, monkeypatch):
    """All problems of other ranks, on cores and without constraints are derived from the first one."""
    factor = np.random.default_rng(0).random((6, 3))
    tensor = np.einsum("ir,jr,kr->ijk", factor, factor, factor)
    checks = []
    original = codiag.Problem.__init__
    monkeypatch.setattr(
        codiag.Problem, "__init__", lambda *given, **named: checks.append(1) or original(*given, **named)
    )
    codiag.factorize(tensor, rank, rng=0, **stated)
    assert 1 <= len(checks) <= 2
