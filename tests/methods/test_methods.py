"""What every method of factorization promises."""

from __future__ import annotations

import dataclasses
import functools
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import codiag
from assertions import assert_same_factors, assert_same_to_rounding, assert_unit_columns, largest_distance
from cases import METHODS
from codiag.methods import ALS, NLS
from tensor_cases import LIBRARIES, TENSORS

EVERY = pytest.mark.parametrize("name", METHODS)
SHAPES = [
    ((6, 6, 6), 6, True),
    ((9, 9, 9), 4, True),
    ((6, 7, 8), 5, False),
    ((5, 6, 5, 7), 3, False),
    ((5,) * 4, 4, True),
]
SHAPES += [((4,) * 5, 3, False), ((5, 5, 5), 1, True), ((4, 5, 6), 1, False)]
ANY_SHAPE = pytest.mark.parametrize(("shape", "rank", "symmetric"), SHAPES, ids=str)


@EVERY
@ANY_SHAPE
def test_noiseless_components_are_found(name, shape, rank, symmetric):
    case = METHODS[name]
    problem = case.problem(shape, rank, symmetric=symmetric)
    fit = codiag.factorize(problem.tensor, rank, method=case.method, symmetric=symmetric, rng=0)
    assert fit.converged
    # Alternating sweeps stop when the error no longer falls, some way before the factors stop moving.
    assert_same_factors(fit, problem, 1e-4 if name.startswith("als") else 1e-7)
    assert fit.relative_error < 1e-4
    assert fit._symmetric == symmetric


@EVERY
@pytest.mark.parametrize("symmetric", [True, False])
def test_convention(name, symmetric):
    """Unit columns, weights by size and positive, one array for all modes if symmetric, stages, the error it leaves."""
    case = METHODS[name]
    problem = case.problem((7, 7, 7), 4, symmetric=symmetric, noise=0.01)
    fit = codiag.factorize(problem.tensor, 4, method=case.method, symmetric=symmetric, rng=0)
    for factor in fit.factors:
        assert_unit_columns(factor, 1e-12)
    assert np.all(np.diff(fit.weights) <= 0)
    assert np.all(fit.weights > 0)
    assert symmetric == all(factor is fit.factors[0] for factor in fit.factors)
    if not symmetric:
        for factor in fit.factors[:-1]:
            assert np.all(factor[np.argmax(np.abs(factor), axis=0), range(4)] > 0)
    left = np.linalg.norm(problem.tensor - fit.to_tensor()) / np.linalg.norm(problem.tensor)
    assert fit.relative_error == pytest.approx(left, rel=1e-9)
    assert fit._norm == pytest.approx(np.linalg.norm(problem.tensor))
    assert fit.history
    assert all(stage.seconds >= 0 for stage in fit.history)


@EVERY
def test_the_same_seed_gives_the_same_answer_and_no_global_state_is_touched(name):
    case = METHODS[name]
    problem = case.problem((7, 7, 7), 4, symmetric=True, noise=0.01)
    kept = problem.tensor.copy()
    np.random.seed(3)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    fits = [codiag.factorize(problem.tensor, 4, method=case.method, rng=5) for _ in range(2)]
    assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002
    assert_array_equal(problem.tensor, kept)
    for first, second in zip(fits[0].factors, fits[1].factors, strict=True):
        assert_same_to_rounding(first, second)
    generator = np.random.default_rng(1)
    codiag.factorize(problem.tensor, 4, method=case.method, rng=generator)  # a generator serves as well


# Whatever is stored, a method asks for projections, for compression or for products: one method for each on every kind
# of tensor, and every method where all comes from the base class and where entries are few. Dense tensors of other
# libraries are those of tests/arrays/test_libraries.py, for every method.
STORED = [kind for kind in TENSORS if kind not in LIBRARIES]
STORAGES = [(name, kind) for name in ("auto", "nojd1", "als") for kind in STORED]
STORAGES += [(name, kind) for name in METHODS for kind in ("plain", "sparse") if (name, kind) not in STORAGES]


@functools.cache
def stored_dense(name, symmetric):
    """Return a problem, and the fit to its entries as an array."""
    problem = METHODS[name].problem((6, 6, 6), 4, symmetric=symmetric, noise=1e-4)
    return problem, codiag.factorize(problem.tensor, 4, method=METHODS[name].method, symmetric=symmetric, rng=0)


@pytest.mark.parametrize(("name", "kind"), STORAGES)
@pytest.mark.parametrize("symmetric", [True, False])
def test_storage_does_not_matter(name, kind, symmetric):
    case = METHODS[name]
    problem, expected = stored_dense(name, symmetric)
    fit = codiag.factorize(TENSORS[kind](problem.tensor, symmetric), 4, method=case.method, rng=0)
    # Diagonalizations stop at a hundredth of a standard error, which rounding may shift by a step.
    assert_same_factors(fit, expected, 1e-6 if case.least_squares else 1e-5)


@EVERY
def test_scale_and_order_of_modes_do_not_matter(name):
    case = METHODS[name]
    problem = case.problem((6, 7, 8), 4, symmetric=False, noise=1e-3)
    fit = codiag.factorize(problem.tensor, 4, method=case.method, rng=0)
    scaled = codiag.factorize(1e6 * problem.tensor, 4, method=case.method, rng=0)
    assert_allclose(scaled.weights, 1e6 * fit.weights, rtol=1e-4)
    turned = codiag.factorize(problem.tensor.transpose(2, 0, 1), 4, method=case.method, rng=0)
    error = max(largest_distance(fit, problem), 1e-4)
    assert_same_factors((turned.factors[1], turned.factors[2], turned.factors[0]), fit.factors, error)
    assert_same_factors(scaled, fit, error)


@EVERY
@pytest.mark.parametrize("symmetric", [True, False])
def test_single_precision(name, symmetric):
    case = METHODS[name]
    problem = case.problem((6, 6, 6), 4, symmetric=symmetric)
    method = dataclasses.replace(case.method, tol=1e-5) if isinstance(case.method, ALS) else case.method
    fit = codiag.factorize(problem.tensor.astype(np.float32), 4, method=method, symmetric=symmetric, rng=0)
    assert {array.dtype for array in (fit.weights, *fit.factors)} == {np.dtype(np.float32)}
    assert_same_factors(fit, problem, 1e-2 if isinstance(method, ALS) else 1e-4)


@EVERY
def test_methods_are_values(name):
    method = METHODS[name].method
    with pytest.raises(dataclasses.FrozenInstanceError):
        method.anything = 1
    assert repr(pickle.loads(pickle.dumps(method))) == repr(method)


@pytest.mark.parametrize(
    "name", [name for name, case in METHODS.items() if case.least_squares and not case.random_start]
)
@pytest.mark.parametrize("symmetric", [True, False])
def test_least_squares_ends_at_the_minimum_near_the_truth(name, symmetric):
    case = METHODS[name]
    problem = case.problem((8, 8, 8), 5, symmetric=symmetric, noise=0.01)
    start = (problem.weights, problem.factors)
    oracle = codiag.factorize(problem.tensor, 5, method=NLS(init=start, max_replacements=0), symmetric=symmetric)
    fit = codiag.factorize(problem.tensor, 5, method=case.method, symmetric=symmetric, rng=0)
    if symmetric and isinstance(case.method, ALS):
        # It fits the modes apart and averages: the objective is flat there to first order, not to second.
        assert fit.relative_error < oracle.relative_error * (1 + 1e-3)
    else:
        assert fit.relative_error == pytest.approx(oracle.relative_error, rel=1e-9)
        assert_same_factors(fit, oracle, 1e-4 if isinstance(case.method, ALS) else 1e-6)
