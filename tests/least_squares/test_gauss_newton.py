"""The derivatives of the fit against differences, and the steps against theory."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import codiag
from codiag.inference import sensitivity
from codiag.least_squares import (
    GaussNewtonOperator,
    LeastSquares,
    Limits,
    conjugate_gradients,
    damped_step,
    inner_product,
    minimize,
    solve_directly,
)
from codiag.search import polish
from codiag.synthetic import noisy_tensor
from codiag.tensors import DenseTensor, FactoredTensor, symmetrize

KINDS = {
    "three modes": ((4, 3, 5), 3, False),
    "four modes": ((3, 2, 4, 2), 2, False),
    "symmetric": ((4, 4, 4), 3, True),
    "symmetric of even order": ((3, 3, 3, 3), 2, True),
    "more components than rows": ((3, 2, 3), 4, False),
}
EVERY = pytest.mark.parametrize("kind", KINDS)


def setting(kind):
    shape, rank, symmetric = KINDS[kind]
    rng = np.random.default_rng(0)
    entries = rng.standard_normal(shape)
    tensor = DenseTensor(symmetrize(entries) if symmetric else entries, symmetric=symmetric)
    factors = [rng.standard_normal((size, rank)) for size in (shape[:1] if symmetric else shape)]
    components = FactoredTensor(rng.standard_normal(rank), factors * (len(shape) if symmetric else 1))
    objective = LeastSquares(codiag.Problem(tensor, rank), components)
    return objective, components, objective.parametrization.vectorize(components)


def jacobian(parametrization, point):
    """Differentiate the entries of the model by central differences."""
    step = 1e-6
    columns = []
    for index in range(point.size):
        move = np.zeros(point.size)
        move[index] = step
        ends = [parametrization.components(point + sign * move.reshape(point.shape)).to_dense() for sign in (1, -1)]
        columns.append((ends[0] - ends[1]).ravel() / (2 * step))
    return np.stack(columns, axis=1)


@EVERY
def test_packing_keeps_the_tensor(kind):
    objective, components, point = setting(kind)
    assert_allclose(objective.parametrization.components(point).to_dense(), components.to_dense(), atol=1e-12)


@EVERY
def test_gradient(kind):
    objective, _, point = setting(kind)
    residual = objective.parametrization.components(point).to_dense() - objective.tensor.to_dense()
    expected = jacobian(objective.parametrization, point).T @ residual.ravel()
    assert_allclose(objective.value_and_gradient(point)[1].ravel(), expected, atol=1e-7)


@EVERY
def test_curvature_is_the_square_of_the_jacobian(kind):
    objective, _, point = setting(kind)
    curvature = objective.curvature(point)
    derivative = jacobian(objective.parametrization, point)
    assert_allclose(curvature.matrix(), derivative.T @ derivative, atol=1e-6)
    move = np.random.default_rng(1).standard_normal(point.shape)
    assert_allclose(curvature.product(move).ravel(), curvature.matrix() @ move.ravel(), atol=1e-10)


@EVERY
@pytest.mark.parametrize("damping", [1.0, 1e-6])
def test_steps_solve_the_damped_equations(kind, damping):
    """Moves out of the ranges of the factors are solved for apart, and the step is that of all equations together."""
    objective, _, point = setting(kind)
    curvature, slope = objective.curvature(point), objective.value_and_gradient(point)[1]
    step, promised = damped_step(curvature, slope, damping, objective.squared_norm)
    damped = curvature.product(step) + damping * curvature.scales * step
    assert_allclose(damped, -slope, atol=1e-8 * np.abs(slope).max())
    assert promised == pytest.approx(-np.sum(step * slope) - np.sum(step * curvature.product(step)) / 2)


@EVERY
def test_second_derivatives(kind):
    """With the term of the residual it is the derivative of the gradient."""
    objective, _, point = setting(kind)
    curvature = objective.second_derivative(point, objective.value_and_gradient(point)[1])
    move, step = np.random.default_rng(1).standard_normal(point.shape), 1e-5
    ends = [objective.value_and_gradient(point + sign * step * move)[1] for sign in (1, -1)]
    assert_allclose(curvature.product(move), (ends[0] - ends[1]) / (2 * step), atol=1e-5)


@EVERY
def test_preconditioner_is_the_inverse_of_the_own_terms(kind):
    objective, _, point = setting(kind)
    curvature = objective.curvature(point)
    move = np.random.default_rng(1).standard_normal(point.shape)
    back = curvature.preconditioner(0.5)(move)
    parts = objective.parametrization.factors(back)
    damped = [own + 0.5 * np.diag(np.abs(np.diag(own))) for own in curvature.own]
    again = [part @ own for part, own in zip(parts, damped, strict=True)]
    assert_allclose(np.concatenate(again), move, atol=1e-9)


@pytest.mark.parametrize("symmetric", [True, False])
def test_explicit_and_matrix_free_steps_agree(symmetric, monkeypatch):
    problem = noisy_tensor((6, 6, 6), 4, symmetric=symmetric, noise=0.01, rng=0)
    tensor = DenseTensor(problem.tensor, symmetric=symmetric)
    start = FactoredTensor(problem.weights, problem.factors)
    ends = []
    for limit in (10**6, 0):
        for module in ("_linear_solve",):
            monkeypatch.setattr(f"codiag.least_squares.{module}.DIRECT_UNKNOWNS", limit)
        ends.append(minimize(codiag.Problem(tensor, 4), start, Limits(tol=1e-12, gain=0)).components.to_dense())
    assert_allclose(ends[0], ends[1], atol=1e-9)


@EVERY
def test_steps_end_where_the_gradient_vanishes(kind):
    noise, components, _ = setting(kind)
    # Pure noise may have no best fit: it can run off to infinity.
    entries = components.to_dense() + 0.05 * noise.tensor.to_dense()
    tensor = DenseTensor(entries, symmetric=noise.tensor.symmetric)
    problem = codiag.Problem(tensor, components.rank)
    result = minimize(problem, components, Limits(max_iter=2000, tol=1e-12, gain=0))
    objective = LeastSquares(problem, components)
    end = objective.value_and_gradient(objective.parametrization.vectorize(result.components))[1]
    assert np.abs(end).max() < 1e-5 * tensor.squared_norm() ** 0.5
    assert result.objective == pytest.approx(
        np.sum((tensor.to_dense() - result.components.to_dense()) ** 2) / 2, rel=1e-9, abs=1e-20
    )


class IterationCallback:
    """Keeps the objectives of all steps."""

    def __init__(self, stopped=False):
        self.seen, self.stopped = [], stopped

    def __call__(self, components, objective):
        self.seen.append(objective)
        return self.stopped


def test_every_step_lowers_the_objective():
    objective, components, _ = setting("three modes")
    callback = IterationCallback()
    minimize(objective.problem, components, Limits(callback=callback))
    assert len(callback.seen) > 3
    assert np.all(np.diff(callback.seen) <= 1e-14 * callback.seen[0])


def test_watching_can_stop():
    objective, components, _ = setting("three modes")
    result = minimize(objective.problem, components, Limits(callback=IterationCallback(stopped=True)))
    assert result.n_iter < 10
    assert not result.converged


@pytest.mark.parametrize("symmetric", [True, False])
def test_polish_reaches_the_minimum_in_a_few_passes(symmetric):
    problem = noisy_tensor((9, 9, 9), 3, symmetric=symmetric, noise=0.01, rng=1)
    tensor = DenseTensor(problem.tensor, symmetric=symmetric)
    truth = FactoredTensor(problem.weights, problem.factors)
    asked = codiag.Problem(tensor, 3)
    best = minimize(asked, truth, Limits(tol=1e-13, gain=0)).components
    polished = polish(asked, truth, None)
    assert polished.n_reads <= 4
    assert polished.converged
    left, least = (tensor.squared_distance(one.weights, one.factors) for one in (polished.components, best))
    assert left == pytest.approx(least, rel=1e-3 / 700)  # a thousandth of a variance of the noise
    assert polished.squared_distance == pytest.approx(left, rel=1e-8)


@pytest.mark.parametrize("symmetric", [True, False])
def test_polish_is_not_done_before_it_is_at_a_minimum(symmetric):
    problem = noisy_tensor((9, 9, 9), 3, symmetric=symmetric, noise=0.1, rng=1)
    tensor = DenseTensor(problem.tensor, symmetric=symmetric)
    far = FactoredTensor(problem.weights, [factor + 0.1 for factor in problem.factors], symmetric=symmetric)
    polished = polish(codiag.Problem(tensor, 3), far, None, max_reads=1)
    assert not polished.converged
    at_start = tensor.squared_distance(far.weights, far.factors)
    assert polished.squared_distance == pytest.approx(at_start)  # measured: no step was taken that it could not trust
    assert polish(codiag.Problem(tensor, 3), far, None, max_reads=30).converged


def test_polish_keeps_a_start_that_steps_would_spoil():
    """Single precision: the gradient is rounding, and size may slip from one mode to another unseen."""
    problem = noisy_tensor((20, 20, 20), 3, rng=1)
    tensor = DenseTensor(problem.tensor.astype(np.float32))
    truth = FactoredTensor(problem.weights, problem.factors)
    polished = polish(codiag.Problem(tensor, 3), truth, None)
    assert polished.converged
    assert_allclose(polished.components.to_dense(), problem.tensor, atol=1e-5)


@pytest.mark.parametrize("kind", ["three modes", "symmetric", "symmetric of even order"])
def test_spread_is_that_of_the_linear_model(kind):
    """Propagate unit noise through the pseudo-inverse of the Jacobian and look at the unit factors."""
    objective, components, point = setting(kind)
    parametrization = objective.parametrization
    derivative = jacobian(parametrization, point)
    covariance = np.linalg.pinv(derivative.T @ derivative, rcond=1e-8)
    rank = point.shape[1]
    blocks = [np.arange(point.shape[0])]
    if parametrization.signs is None:
        blocks = np.split(blocks[0], np.cumsum(parametrization.shape)[:-1])
    expected = []
    for rows in blocks:
        for i in range(rank):
            column = point[rows, i]
            across = (np.eye(rows.size) - np.outer(column, column) / (column @ column)) / np.linalg.norm(column)
            index = rows * rank + i
            expected.append(np.sqrt(np.trace(across @ covariance[np.ix_(index, index)] @ across)))
    found = sensitivity(components).factors
    assert_allclose(found[: len(blocks)].ravel(), expected, rtol=1e-4)


@pytest.mark.parametrize("share", [0.0, 0.6])
def test_steps_of_orthogonal_factors_are_tangent_and_solve_the_restricted_equations(share):
    """The factorized matrix and conjugate gradients, which never leave the tangent space, agree."""
    rng = np.random.default_rng(0)
    tensor = rng.standard_normal((5, 4, 6))
    tensor[rng.random(tensor.shape) < share] = np.nan
    objective = LeastSquares(codiag.Problem(tensor, 3, constraints="orthogonal"))
    factors = [np.linalg.qr(rng.standard_normal((size, 3)))[0] for size in tensor.shape]
    point = objective.parametrization.vectorize(FactoredTensor(np.array([3.0, 2.0, 1.0]), factors))
    gradient = objective.value_and_gradient(point)[1]
    curvature = objective.restricted(objective.curvature(point), gradient)
    gradient, shift = curvature.project(gradient), 0.1 * curvature.scales
    step = solve_directly(curvature, gradient, 0.1)
    assert_allclose(curvature.project(step), step, atol=1e-12)
    expected = conjugate_gradients(
        lambda move: curvature.product(move) + shift * move, curvature.preconditioner(0.1), -gradient, inner_product,
        scale=1e-30, max_products=500, accuracy=1e-12,
    ).move  # fmt: skip
    assert_allclose(step, expected, atol=1e-8 * np.abs(expected).max())


@pytest.mark.parametrize("angle", [1.0, 1e-2, 1e-5, 0.0])
@pytest.mark.parametrize("is_complex", [False, True])
def test_ranges_of_columns_that_nearly_depend_on_each_other(angle, is_complex):
    """A basis has orthonormal columns and holds the factor, however it is computed."""
    rng = np.random.default_rng(0)
    factors = [rng.standard_normal((9, 3)) + 1j * is_complex * rng.standard_normal((9, 3)) for _ in range(3)]
    factors = [factor if is_complex else factor.real for factor in factors]
    factors[0][:, 2] = factors[0][:, 0] + angle * factors[0][:, 2]
    problem = codiag.Problem(np.ones((9, 9, 9)) * factors[0][0, 0], 3)
    parametrization = LeastSquares(problem).parametrization
    separation = GaussNewtonOperator(parametrization, np.concatenate(factors)).separation
    inside = separation.inside
    for basis, inner, factor in zip(
        separation.bases, inside.parametrization.factors(inside.point), factors, strict=True
    ):
        assert_allclose(basis.conj().T @ basis, np.eye(3), atol=1e-9)
        assert_allclose(basis @ inner, factor, atol=1e-12)


def test_conjugate_gradients_solve_for_what_matters_only():
    """The errors of a solution are relative to the whole right-hand side, and need not be below what is negligible."""
    rng = np.random.default_rng(0)
    factor = rng.standard_normal((40, 40))
    matrix, right = factor @ factor.T + np.eye(40), 1e-3 * rng.standard_normal((40, 1))
    counts = []
    for options in ({}, {"negligible": 1e-7}, {"beside": 1e-3}, {"beside": 1e6}):
        n_products = 0

        def multiply(move):
            nonlocal n_products
            n_products += 1
            return matrix @ move

        conjugate_gradients(multiply, lambda move: move, right, inner_product, scale=1.0, max_products=100, **options)
        counts.append(n_products)
    assert counts[0] > counts[1] > 0
    assert counts[0] > counts[2] > counts[3] == 0
