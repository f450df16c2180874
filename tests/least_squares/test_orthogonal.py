"""Factors with orthogonal columns."""

from __future__ import annotations

import numpy as np
import pytest
import scipy

import codiag
from codiag.constraints import NonNegative, Orthogonal
from codiag.least_squares import LeastSquares, Limits, minimize
from codiag.methods import ALS, OJD
from codiag.synthetic import orthonormal_factor
from codiag.tensors import FactoredTensor, symmetrize
from experiments.estimators.limits import orthogonal_oracle
from experiments.simulated import paper_tensor


def planted(shape, rank, rng, noise=0.0):
    factors = [orthonormal_factor(size, rank, rng) for size in shape]
    weights = rng.uniform(1, 2, rank) * rng.choice([-1, 1], rank)
    tensor = FactoredTensor(weights, factors).to_dense()
    return tensor + noise * rng.standard_normal(shape), FactoredTensor(weights, factors, symmetric=False)


def overlap(factor):
    """Return the largest inner product of two columns of unit length."""
    gram = factor.T @ factor / np.outer(*[np.linalg.norm(factor, axis=0)] * 2)
    return np.max(np.abs(gram - np.eye(gram.shape[0])))


def oracle(problem, truth):
    return minimize(problem, truth, Limits()).components


def test_the_projection_is_the_nearest_factor_with_orthogonal_columns():
    rng = np.random.default_rng(0)
    factor = rng.standard_normal((7, 4)) * [3, 1, 0.3, 0.1]
    found = Orthogonal().project(factor)
    assert overlap(found) < 1e-12
    np.testing.assert_allclose(Orthogonal().project(found), found, atol=1e-9)
    for _ in range(50):
        near = Orthogonal().project(found + 0.05 * rng.standard_normal((7, 4)))
        assert np.linalg.norm(near - factor) >= np.linalg.norm(found - factor)


def test_a_move_in_the_tangent_leaves_the_set_to_second_order_only():
    rng = np.random.default_rng(1)
    factor, move = orthonormal_factor(7, 4, rng) * [3, 1, 0.3, 0.1], rng.standard_normal((7, 4))
    inside = Orthogonal().tangent(factor, move)
    np.testing.assert_allclose(Orthogonal().tangent(factor, inside), inside, atol=1e-12)  # a projection
    other = rng.standard_normal((7, 4))
    assert np.sum(inside * other) == pytest.approx(np.sum(move * Orthogonal().tangent(factor, other)))  # orthogonal
    gram = factor.T @ inside + inside.T @ factor
    np.testing.assert_allclose(gram - np.diag(np.diag(gram)), 0, atol=1e-12)


@pytest.mark.parametrize("rows", [False, True])
def test_a_factor_solved_for_beats_its_neighbours(rows):
    rng = np.random.default_rng(2)
    grams = rng.standard_normal((6, 9, 3))
    grams = np.swapaxes(grams, 1, 2) @ grams
    gram, product = grams if rows else grams[0], rng.standard_normal((6, 3))
    start = Orthogonal().project(rng.standard_normal((6, 3)))
    for _ in range(20):
        start = Orthogonal().solve(gram, product, start)

    def value(factor):
        return np.sum((factor[:, None, :] @ gram)[:, 0, :] * factor) / 2 - np.sum(factor * product)

    assert overlap(start) < 1e-10
    for _ in range(50):
        near = Orthogonal().project(start + 1e-2 * rng.standard_normal((6, 3)))
        assert value(near) >= value(start) - 1e-9


@pytest.mark.parametrize("missing", [0, 0.5])
@pytest.mark.parametrize("shape", [(6, 8, 7), (5, 6, 5, 4)])
def test_orthogonal_factors_are_recovered_exactly(shape, missing):
    rng = np.random.default_rng(3)
    tensor, truth = planted(shape, 4, rng)
    observed = np.where(rng.random(shape) < missing, np.nan, tensor)
    fit = codiag.factorize(observed, 4, constraints="orthogonal", rng=0)
    assert codiag.factor_error(fit, truth) < 1e-8
    assert max(overlap(factor) for factor in fit.factors) < 1e-12
    assert fit.converged


@pytest.mark.parametrize("missing", [0, 0.4])
@pytest.mark.parametrize(
    "constraints", ["orthogonal", ("orthogonal", "nonnegative", None), (None, "orthogonal", "orthogonal")]
)
def test_noisy_fits_end_where_least_squares_from_the_truth_does(constraints, missing):
    rng = np.random.default_rng(4)
    tensor, truth = planted((7, 8, 6), 3, rng)
    factors = list(truth.factors)
    if not isinstance(constraints, str):
        factors[1 if constraints[0] else 0] = rng.random((8 if constraints[0] else 7, 3))
    truth = FactoredTensor(truth.weights, factors, symmetric=False)
    tensor = truth.to_dense() + 0.02 * rng.standard_normal((7, 8, 6))
    tensor[rng.random(tensor.shape) < missing] = np.nan
    problem = codiag.Problem(tensor, 3, constraints=constraints)
    fit = codiag.factorize(problem, rng=0)
    best = oracle(problem, truth)
    assert fit.relative_error <= LeastSquares(problem).relative_error(best) * (1 + 1e-6)
    assert codiag.factor_error(fit, truth) < 1.01 * codiag.factor_error(best, truth)
    for factor, constraint in zip(fit.factors, problem.constraints, strict=True):
        assert not isinstance(constraint, Orthogonal) or overlap(factor) < 1e-12
        assert not isinstance(constraint, NonNegative) or factor.min() >= 0


@pytest.mark.parametrize("order", [3, 4])
def test_symmetric_tensors_have_one_orthogonal_factor_and_weights_of_either_sign(order):
    rng = np.random.default_rng(5)
    factor, weights = orthonormal_factor(6, 5, rng), np.array([2, -1.8, 1.5, -1.2, 1])
    tensor = FactoredTensor(weights, [factor] * order).to_dense()
    tensor = symmetrize(tensor + 0.02 * rng.standard_normal(tensor.shape))
    fit = codiag.factorize(tensor, 5, constraints="orthogonal", symmetric=True, rng=0)
    assert fit._symmetric
    assert overlap(fit.factors[0]) < 1e-12
    best = orthogonal_oracle(tensor, [factor] * order, symmetric=True)
    assert codiag.factor_error(fit, best) < 1e-6


@pytest.mark.parametrize("model", ["authors", "text", "theory"])
def test_the_default_reaches_the_orthogonal_oracle_of_the_paper(model):
    planted = paper_tensor(12, 12, orthogonal=True, noise=0.01, model=model, seed=0)
    tensor = symmetrize(planted.tensor)
    fit = codiag.factorize(tensor, 12, constraints="orthogonal", symmetric=True, rng=0)
    best = orthogonal_oracle(tensor, planted.factors, symmetric=True)
    assert codiag.factor_error(fit, planted) < 1.05 * codiag.factor_error(best, planted)


def test_least_squares_is_closer_than_the_diagonalization_it_starts_from():
    tensor, _ = planted((9, 9, 9), 9, np.random.default_rng(6), noise=0.05)
    fit = codiag.factorize(tensor, 9, constraints="orthogonal", rng=0)
    start = codiag.factorize(tensor, 9, method=OJD(), rng=0)
    nearest = FactoredTensor(np.ones(9), [scipy.linalg.polar(factor)[0] for factor in start.factors], symmetric=False)
    weights = np.einsum("ijk,ir,jr,kr->r", tensor, *nearest.factors)
    assert np.sum(fit.weights**2) > np.sum(weights**2)


def test_weights_of_entries_count():
    rng = np.random.default_rng(8)
    tensor, truth = planted((6, 7, 8), 3, rng)
    spread = rng.choice([0.005, 0.2], tensor.shape)
    noisy = tensor + spread * rng.standard_normal(tensor.shape)
    known = codiag.factorize(noisy, 3, constraints="orthogonal", weights=spread**-2, rng=0)
    equal = codiag.factorize(noisy, 3, constraints="orthogonal", rng=0)
    assert codiag.factor_error(known, truth) < 0.5 * codiag.factor_error(equal, truth)


def test_alternating_least_squares_honors_it():
    tensor, truth = planted((6, 7, 8), 3, np.random.default_rng(9), noise=0.01)
    fit = codiag.factorize(
        tensor, 3, constraints="orthogonal", method=ALS(init=(truth.weights, truth.factors), tol=1e-12), rng=0
    )
    assert max(overlap(factor) for factor in fit.factors) < 1e-12
    best = codiag.factorize(tensor, 3, constraints="orthogonal", rng=0)
    assert fit.relative_error == pytest.approx(best.relative_error, rel=1e-6)


def test_more_columns_than_rows_cannot_be_orthogonal():
    with pytest.raises(ValueError, match=r"constraints\[2\]: rank must"):
        codiag.factorize(np.ones((5, 5, 3)), 4, constraints="orthogonal")


def test_a_tensor_of_fewer_components_is_fitted_all_the_same():
    tensor, truth = planted((6, 6, 6), 2, np.random.default_rng(10))
    fit = codiag.factorize(tensor, 4, constraints="orthogonal", rng=0)
    assert fit.relative_error < 1e-6
    assert codiag.factor_error([factor[:, :2] for factor in fit.factors], truth) < 1e-6


@pytest.mark.filterwarnings("ignore::codiag.ConvergenceWarning")
@pytest.mark.parametrize("share", [0.1, 0.3, 0.5])
@pytest.mark.parametrize("seed", range(5))
def test_cubes_with_as_many_components_as_rows_and_missing_entries(seed, share):
    """The matrix of the steps is singular where too little is observed; then the step of least norm is taken."""
    rng = np.random.default_rng(seed)
    tensor = rng.standard_normal((3, 3, 3))
    tensor[rng.random(tensor.shape) < share] = np.nan
    fit = codiag.factorize(tensor, 3, constraints="orthogonal", rng=0)
    assert fit.relative_error < 1
