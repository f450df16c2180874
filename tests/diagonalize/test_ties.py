"""Arrays of equal entries, where singular values tie and stationary points need not be minima."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

import codiag
from codiag.least_squares import LeastSquares, Limits, OptimizeResult, best_rank_one, minimize, split_columns
from codiag.reduction import reduce
from codiag.search import LocalMinimum, exchange_steps, leave_saddles, lowest_curvature
from codiag.synthetic import noisy_tensor
from codiag.tensors import DenseTensor, FactoredTensor
from reference.alternating import best_of

pytestmark = pytest.mark.filterwarnings("ignore::codiag.ConvergenceWarning")


def spikes(shape, n):
    tensor = np.zeros(shape)
    for place in range(n):
        tensor[(place,) * len(shape)] = 1
    return tensor


def zeros_and_ones(kind, seed):
    rng = np.random.default_rng([len(kind), seed])
    if kind == "few ones":
        tensor = np.zeros((4, 4, 5))
        tensor.flat[rng.choice(80, rng.integers(1, 5), replace=False)] = 1
        return tensor
    shape = {"cube": (3, 3, 3), "order four": (3, 2, 3, 2)}.get(kind, tuple(rng.integers(2, 6, 3)))
    tensor = (rng.random(shape) < rng.uniform(0.2, 0.6)).astype(float)
    tensor.flat[0] = 1
    return sum(tensor.transpose(turn) for turn in permutations(range(3))) if kind == "cube" else tensor


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("shape", [(3, 4, 5), (3, 3, 3), (200, 150, 120), (3, 3, 3, 4)], ids=str)
def test_equal_spikes(shape, rank):
    """Any of them is a best component; each further one takes the same share away."""
    fit = codiag.factorize(spikes(shape, 3), rank, rng=0)
    assert fit.relative_error == pytest.approx(np.sqrt((3 - rank) / 3), abs=1e-7)
    assert fit.converged


def test_a_matrix_in_disguise():
    tensor = np.zeros((4, 2, 2))
    tensor[[0, 3], :, 0] = tensor[[1, 2], :, 1] = 1
    assert codiag.factorize(tensor, 1, rng=0).relative_error == pytest.approx(np.sqrt(0.5))


@pytest.mark.parametrize("kind", ["few ones", "any", "cube", "order four"])
@pytest.mark.parametrize("rank", [1, 2])
def test_no_worse_than_the_best_of_three_random_starts(kind, rank):
    for seed in range(12 if rank == 1 else 5):
        tensor = zeros_and_ones(kind, seed)
        fit = codiag.factorize(tensor, rank, rng=0)
        assert fit.relative_error <= best_of(tensor, rank, 3, seed) + 1e-3, seed


@pytest.mark.parametrize("method", ["nojd1", "ojd1", "tpm", "als", "nls"])
def test_rank_one_of_equal_spikes_by_every_method(method):
    assert codiag.factorize(spikes((3, 4, 5), 3), 1, method=method, rng=0).relative_error < 0.82


def test_cores_of_tied_tensors_hold_something():
    for tensor in (spikes((6, 7, 8), 5), spikes((6, 6, 6), 5)):
        core = reduce(codiag.Problem(tensor, 2), np.random.default_rng(0)).core
        assert core.squared_norm() >= 2 - 1e-9


def test_a_symmetric_tensor_that_vanishes_along_its_singular_vectors():
    """The permutations of e_0 e_1 e_2: zero along every axis, and at most 6 / 3^(3/2) along (1, 1, 1)."""
    tensor = np.zeros((3, 3, 3))
    for turn in permutations(range(3)):
        tensor[turn] = 1
    assert float(best_rank_one(DenseTensor(tensor, symmetric=True)).weights[0]) == pytest.approx(6 / 3**1.5)
    fit = codiag.factorize(tensor, 1, symmetric=True, rng=0)
    assert fit.relative_error == pytest.approx(np.sqrt(1 - (6 / 3**1.5) ** 2 / 6))


def test_flattened_ties_are_split_into_vectors_that_belong_together():
    flat = spikes((3, 3, 3), 3).reshape(-1, 1)
    factors = split_columns(flat, (3, 3, 3))
    overlap = np.einsum("abc,a,b,c->", spikes((3, 3, 3), 3), *(factor[:, 0] for factor in factors))
    assert abs(overlap) == pytest.approx(1)


def test_saddles_are_seen_and_left():
    """The mean of the spikes is stationary for rank one: the gradient vanishes, and some curvature is negative."""
    tensor = DenseTensor(spikes((3, 3, 3), 3), symmetric=False)
    mean = [np.full((3, 1), 3**-0.5) for _ in range(3)]
    saddle = FactoredTensor(np.array([3 * 3**-1.5]), mean)
    problem = codiag.Problem(tensor, 1)
    objective = LeastSquares(problem, saddle)
    stuck = minimize(problem, saddle, Limits())
    assert stuck.converged  # to first order
    point = objective.parametrization.vectorize(saddle)
    assert lowest_curvature(objective.second_derivative(point, objective.value_and_gradient(point)[1]))[0] < -0.5
    left = leave_saddles(problem, stuck, Limits())
    assert 2 * left.objective == pytest.approx(2)


def test_the_lowest_curvature_is_the_least_eigenvalue():
    problem = noisy_tensor((4, 5, 3), 2, noise=0.5, rng=0)
    components = FactoredTensor(problem.weights, problem.factors)
    objective = LeastSquares(codiag.Problem(problem.tensor, components.rank), components)
    point = objective.parametrization.vectorize(components)
    curvature = objective.second_derivative(point, objective.value_and_gradient(point)[1])
    roots = np.sqrt(curvature.scales.ravel())
    matrix = np.stack([curvature.product(unit.reshape(point.shape)).ravel() for unit in np.eye(point.size)])
    expected = np.linalg.eigvalsh(matrix / np.outer(roots, roots))[0]
    assert lowest_curvature(curvature)[0] == pytest.approx(expected, rel=0.01)


def test_a_component_without_weight_is_given_to_the_residual():
    """Every derivative vanishes there, so that no step leads on; few entries are no reason to leave it."""
    tensor = DenseTensor(spikes((2, 2, 2), 2), symmetric=False)
    stuck = FactoredTensor(np.array([1.0, 0.0]), [np.eye(2, 1) @ np.ones((1, 2)) for _ in range(3)])
    found, n_exchanges = exchange_steps(
        LocalMinimum(codiag.Problem(tensor, stuck.rank), OptimizeResult(stuck, 0.5, 0, True)), 3
    )
    assert n_exchanges == 1
    assert found.objective < 1e-20
