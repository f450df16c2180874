"""Tensors some of whose modes share a factor, such as stacks of symmetric matrices."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

import codiag
from codiag.constraints import Fixed, NonNegative, Ridge
from codiag.least_squares import LeastSquares, Limits, Parametrization, damped_step, minimize, noise_excess
from codiag.methods import ALS
from codiag.tensors import DenseTensor, FactoredTensor, SparseTensor

SHAPES = [
    ((6, 6, 5), (0, 1)),
    ((5, 6, 6), (1, 2)),
    ((6, 5, 6), (0, 2)),
    ((6, 6, 6, 3), (0, 1, 2)),
    ((4, 6, 6, 3), (1, 2)),
]


def planted(shape, shared, rank, rng, draw=np.random.Generator.standard_normal):
    factors = [draw(rng, (size, rank)) for size in shape]
    for mode in shared:
        factors[mode] = factors[shared[0]]
    return FactoredTensor(rng.uniform(1, 2, rank), factors, symmetric=False)


def exchange_steps(tensor, shared):
    """Yield a tensor with modes that share a factor permuted."""
    for turn in permutations(shared):
        axes = dict(zip(shared, turn, strict=True))
        yield np.transpose(tensor, [axes.get(mode, mode) for mode in range(tensor.ndim)])


@pytest.mark.parametrize("missing", [0, 0.4])
@pytest.mark.parametrize(("shape", "shared"), SHAPES)
def test_components_are_recovered_exactly_with_one_factor(shape, shared, missing):
    rng = np.random.default_rng(0)
    truth = planted(shape, shared, 4, rng)
    tensor = np.where(rng.random(shape) < missing, np.nan, truth.to_dense())
    fit = codiag.factorize(tensor, 4, symmetric=shared, rng=0)
    assert codiag.factor_error(fit, truth) < 1e-8
    assert all(np.array_equal(fit.factors[mode], fit.factors[shared[0]]) for mode in shared)
    assert (fit.weights > 0).all()
    assert fit.converged


@pytest.mark.parametrize("missing", [0, 0.4])
@pytest.mark.parametrize(("shape", "shared"), SHAPES)
def test_noisy_fits_end_where_least_squares_from_the_truth_does(shape, shared, missing):
    rng = np.random.default_rng(1)
    truth = planted(shape, shared, 4, rng)
    tensor = truth.to_dense() + 0.05 * rng.standard_normal(shape)
    tensor[rng.random(shape) < missing] = np.nan
    problem = codiag.Problem(tensor, 4, symmetric=shared)
    fit, best = codiag.factorize(problem, rng=0), minimize(problem, truth, Limits()).components
    assert fit.relative_error == pytest.approx(LeastSquares(problem).relative_error(best), rel=1e-6)
    assert codiag.factor_error(fit, truth) < 1.01 * codiag.factor_error(best, truth)


def test_sharing_takes_away_noise():
    rng = np.random.default_rng(2)
    errors = []
    for _ in range(5):
        truth = planted((8, 8, 4), (0, 1), 4, rng)
        tensor = truth.to_dense() + 0.1 * rng.standard_normal((8, 8, 4))
        fits = [codiag.factorize(tensor, 4, symmetric=symmetric, rng=0) for symmetric in ((0, 1), False)]
        errors.append([codiag.factor_error(fit, truth) for fit in fits])
    shared, apart = np.median(errors, axis=0)
    assert shared < 0.95 * apart


@pytest.mark.parametrize("observed", [False, True])
@pytest.mark.parametrize(("shape", "shared"), SHAPES)
def test_derivatives_are_those_of_the_objective(shape, shared, observed):
    rng = np.random.default_rng(3)
    start = planted(shape, shared, 3, rng)
    weights = rng.random(shape) if observed else None
    tensor = start.to_dense() + 0.1 * rng.standard_normal(shape)
    objective = LeastSquares(codiag.Problem(tensor, 3, weights=weights, symmetric=shared))
    parametrization = objective.parametrization
    point = parametrization.vectorize(start)
    np.testing.assert_allclose(parametrization.components(point).to_dense(), start.to_dense(), atol=1e-10)
    slope = objective.value_and_gradient(point)[1]
    for _ in range(3):
        move = rng.standard_normal(point.shape)
        change = (objective.value(point + 1e-5 * move) - objective.value(point - 1e-5 * move)) / 2e-5
        assert np.sum(slope * move) == pytest.approx(change, rel=1e-6)
    curvature, move = objective.curvature(point), rng.standard_normal(point.shape)
    np.testing.assert_allclose(curvature.matrix() @ move.ravel(), curvature.product(move).ravel(), atol=1e-8)
    step, _ = damped_step(curvature, slope, 1e-3, objective.squared_norm)
    damped = curvature.product(step) + 1e-3 * curvature.scales * step
    np.testing.assert_allclose(damped, -slope, atol=1e-8 * np.abs(slope).max())


def test_the_second_derivative_is_that_of_the_objective():
    rng = np.random.default_rng(4)
    start = planted((5, 5, 4), (0, 1), 3, rng)
    tensor = start.to_dense() + 0.3 * rng.standard_normal((5, 5, 4))
    objective = LeastSquares(codiag.Problem(tensor, 3, symmetric=(0, 1)))
    point = objective.parametrization.vectorize(start)
    exact, move = (
        objective.second_derivative(point, objective.value_and_gradient(point)[1]),
        rng.standard_normal(point.shape),
    )
    values = [objective.value(point + size * move) for size in (-1e-3, 0, 1e-3)]
    assert np.sum(move * exact.product(move)) == pytest.approx((values[0] - 2 * values[1] + values[2]) / 1e-6, rel=1e-4)


@pytest.mark.parametrize(("shape", "shared"), SHAPES)
def test_folding_is_the_transpose_of_expanding(shape, shared):
    rng = np.random.default_rng(5)
    parametrization = Parametrization(shape, None, shared)
    point = rng.standard_normal((sum(shape[group[0]] for group in parametrization.groups), 2))
    parts = [rng.standard_normal((size, 2)) for size in shape]
    inner = sum(np.sum(one * two) for one, two in zip(parametrization.expand(point), parts, strict=True))
    assert np.sum(parametrization.accumulate(parts) * point) == pytest.approx(inner)


@pytest.mark.parametrize(("shape", "shared"), SHAPES)
def test_swapping_the_shared_modes_changes_nothing(shape, shared):
    rng = np.random.default_rng(6)
    tensor = planted(shape, shared, 3, rng).to_dense() + 0.05 * rng.standard_normal(shape)
    first = codiag.factorize(tensor, 3, symmetric=shared, rng=0)
    for other in exchange_steps(tensor, shared):
        fit = codiag.factorize(other, 3, symmetric=shared, rng=0)
        assert fit.relative_error == pytest.approx(first.relative_error, rel=1e-9)
        assert codiag.factor_error(fit, first) < 1e-5


def test_an_entry_that_is_missing_is_taken_from_its_mirror():
    rng = np.random.default_rng(7)
    tensor = planted((5, 5, 4), (0, 1), 3, rng).to_dense()
    upper = np.triu(np.ones((5, 5)))[:, :, None] * np.ones(4) > 0
    half = codiag.Problem(np.where(upper, tensor, np.nan), 3, symmetric=(0, 1))
    np.testing.assert_allclose(half.tensor.to_dense(), tensor, atol=1e-12)
    poisoned = codiag.factorize(np.where(upper, tensor, 1e300), 3, mask=upper, symmetric=(0, 1), rng=0)
    assert poisoned.relative_error < 1e-9


def test_a_mask_of_ones_is_none_and_listed_entries_are_enough():
    rng = np.random.default_rng(8)
    truth = planted((6, 6, 5), (0, 1), 3, rng)
    tensor = truth.to_dense() + 0.02 * rng.standard_normal((6, 6, 5))
    fit = codiag.factorize(tensor, 3, symmetric=(0, 1), rng=0)
    masked = codiag.factorize(tensor, 3, symmetric=(0, 1), mask=np.ones((6, 6, 5)), rng=0)
    assert codiag.factor_error(masked, fit) < 1e-6
    coords = np.stack(np.nonzero(np.ones(tensor.shape)))
    listed = SparseTensor(coords, tensor[tuple(coords)], tensor.shape, absent="missing")
    found = codiag.factorize(listed, 3, symmetric=(0, 1), rng=0)
    assert codiag.factor_error(found, fit) < 1e-6


def test_all_modes_are_plain_symmetry():
    factor = np.random.default_rng(9).standard_normal((5, 3))
    tensor = FactoredTensor(np.ones(3), [factor] * 3).to_dense()
    assert codiag.Problem(tensor, 3, symmetric=(0, 1, 2)).symmetric is True
    assert codiag.factorize(tensor, 3, symmetric=(2, 1, 0), rng=0)._symmetric


@pytest.mark.parametrize(
    "constraints", [(NonNegative(), None, None), ("nonnegative", "nonnegative", None), Ridge(1e-6)]
)
def test_a_constraint_of_one_shared_mode_holds_for_all(constraints):
    rng = np.random.default_rng(10)
    truth = planted((7, 7, 5), (0, 1), 3, rng, np.random.Generator.random)
    tensor = truth.to_dense() + 1e-3 * rng.standard_normal((7, 7, 5))
    problem = codiag.Problem(tensor, 3, constraints=constraints, symmetric=(0, 1))
    assert type(problem.constraints[0]) is type(problem.constraints[1])
    fit = codiag.factorize(problem, rng=0)
    assert np.array_equal(fit.factors[0], fit.factors[1])
    assert isinstance(constraints, Ridge) or fit.factors[1].min() >= 0
    assert codiag.factor_error(fit, truth) < 0.05


def test_a_fixed_factor_is_that_of_both_modes():
    truth = planted((6, 6, 5), (0, 1), 3, np.random.default_rng(11))
    fixed = truth.factors[0]
    fit = codiag.factorize(truth.to_dense(), 3, constraints=(None, Fixed(fixed), None), symmetric=(0, 1), rng=0)
    assert fit.relative_error < 1e-10
    for factor in fit.factors[:2]:
        assert codiag.factor_error(factor, fixed) < 1e-12


def test_alternating_least_squares_brings_modes_together():
    rng = np.random.default_rng(12)
    truth = planted((6, 6, 5), (0, 1), 3, rng)
    fit = codiag.factorize(truth.to_dense(), 3, symmetric=(0, 1), method=ALS(init="svd", tol=1e-14), rng=0)
    assert np.array_equal(fit.factors[0], fit.factors[1])
    assert codiag.factor_error(fit, truth) < 1e-4


@pytest.mark.parametrize("missing", [0, 0.4])
def test_constraints_leave_a_symmetric_tensor_its_one_factor(missing):
    rng = np.random.default_rng(13)
    factor = rng.random((6, 3))
    truth = FactoredTensor(np.ones(3), [factor] * 3)
    tensor = np.where(rng.random((6, 6, 6)) < missing, np.nan, truth.to_dense())
    fit = codiag.factorize(tensor, 3, constraints="nonnegative", symmetric=True, rng=0)
    assert fit._symmetric
    assert fit.factors[0].min() >= 0
    assert codiag.factor_error(fit, truth) < 1e-6


def test_a_symmetry_that_was_only_detected_gives_way_to_constraints():
    factor = np.random.default_rng(14).random((6, 3))
    tensor = FactoredTensor(np.ones(3), [factor] * 3).to_dense()
    problem = codiag.Problem(tensor, 3, constraints=(NonNegative(), Ridge(0.1), None))
    assert problem.symmetric is False


def test_noise_as_symmetric_as_the_tensor_passes_for_noise_and_a_component_does_not():
    rng = np.random.default_rng(18)
    found = []
    for _ in range(20):
        noise = rng.standard_normal((6, 6, 40))
        noise = noise + np.swapaxes(noise, 0, 1)
        found.append(noise_excess(codiag.Problem(noise, 1, symmetric=(0, 1)), DenseTensor(noise)))
    assert np.mean(np.array(found) <= 1) >= 0.9
    component = planted((6, 6, 40), (0, 1), 1, rng).to_dense()
    assert noise_excess(codiag.Problem(noise, 1, symmetric=(0, 1)), DenseTensor(noise + component)) > 1


@pytest.mark.parametrize(
    ("symmetric", "error", "words"),
    [
        ((0, 2), ValueError, "^symmetric must"),
        ((0, 3), ValueError, "^symmetric must"),
        ((-1, 0), ValueError, "^symmetric must"),
        ((0,), ValueError, "^symmetric must"),
        ((0, 0), ValueError, "^symmetric must"),
        ((0, 1.5), TypeError, "or the modes"),
        ("01", TypeError, "or the modes"),
        (1, TypeError, "or the modes"),
        ((0, 1), ValueError, "permuting the modes"),
    ],
)
def test_wrong_modes_are_named(symmetric, error, words):
    tensor = np.random.default_rng(15).standard_normal((4, 4, 5))
    with pytest.raises(error, match=words):
        codiag.factorize(tensor, 2, symmetric=symmetric)


def test_different_constraints_of_one_factor_are_refused():
    tensor = planted((4, 4, 5), (0, 1), 2, np.random.default_rng(16)).to_dense()
    with pytest.raises(ValueError, match="^constraints must"):
        codiag.factorize(tensor, 2, constraints=("nonnegative", Ridge(0.1), None), symmetric=(0, 1))


def test_methods_that_cannot_share_say_so():
    tensor = planted((4, 4, 5), (0, 1), 2, np.random.default_rng(17)).to_dense()
    with pytest.raises(ValueError, match="NOJD cannot take"):
        codiag.factorize(tensor, 2, method="nojd1", symmetric=(0, 1))
