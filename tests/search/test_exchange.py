"""Swaps of components, what a fit loses with one, and starts that stop."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

import codiag
from codiag.diagnosis import Facts, advice_on_optimum
from codiag.least_squares import (
    FIRST_DAMPING,
    LeastSquares,
    Limits,
    OptimizeResult,
    largest_term_of_unit_noise,
    minimize,
)
from codiag.methods import NLS, Auto
from codiag.result import solve
from codiag.search import LocalMinimum, exchange_steps, objectives_without, removal_bounds, should_stop
from codiag.synthetic import noisy_tensor, unit_factor
from codiag.tensors import FactoredTensor, symmetrize
from experiments.fitting import silent_fit


def truth_of(problem):
    return FactoredTensor(problem.weights, problem.factors)


PROBLEMS = {
    "free": lambda planted: codiag.Problem(planted.tensor, planted.weights.size, symmetric=False),
    "symmetric": lambda planted: codiag.Problem(planted.tensor, planted.weights.size, symmetric=True),
    "partly symmetric": lambda planted: codiag.Problem(planted.tensor, planted.weights.size, symmetric=(0, 1)),
}


@pytest.mark.parametrize("kind", list(PROBLEMS))
def test_the_objective_without_a_component_is_that_of_a_damped_step(kind, monkeypatch):
    """Against the equations of the step written down, at a point that is no minimum."""
    monkeypatch.setattr("codiag.search._contributions.BRIEF", Limits(max_products=300, tol=1e-12))
    planted = noisy_tensor((4, 4, 4), 3, symmetric=True, noise=0.3, rng=0)
    problem = PROBLEMS[kind](planted)
    components = FactoredTensor(planted.weights, planted.factors, symmetric=kind == "symmetric")
    expected = []
    for place in range(3):
        others = components.columns([other for other in range(3) if other != place])
        objective = LeastSquares(problem.with_rank(2), others)
        point = objective.parametrization.vectorize(others)
        value, slope = objective.value_and_gradient(point)
        curvature = objective.curvature(point)
        matrix = curvature.matrix()
        damped = matrix + FIRST_DAMPING * np.diag(curvature.scales.ravel())
        step = -np.linalg.solve(damped, slope.ravel())
        expected.append(value + step @ slope.ravel() + step @ matrix @ step / 2)
    assert_allclose(objectives_without(problem, components), expected, rtol=1e-6)
    assert_allclose(objectives_without(problem, components, [2, 0]), [expected[0], np.inf, expected[2]], rtol=1e-6)


def test_three_components_where_two_would_do():
    """A tensor with two components in 2 x 2 x 2 has a family of fits with three, none of which is small."""
    rng = np.random.default_rng(3)
    two = FactoredTensor(np.ones(2), [rng.standard_normal((2, 2)) for _ in range(3)])
    problem = codiag.Problem(two.to_dense(), 3)
    for _ in range(20):
        start = FactoredTensor(np.ones(3), [rng.standard_normal((2, 3)) for _ in range(3)])
        three = minimize(problem, start, Limits(200))
        if three.objective < 1e-20 * two.squared_norm():
            break
    smallest = min(three.components.columns([place]).squared_norm() for place in range(3))
    assert smallest > 1e-3 * two.squared_norm()
    assert objectives_without(problem, three.components).min() < 0.01 * smallest


@pytest.mark.parametrize("kind", ["free", "symmetric"])
def test_swaps_lead_out_of_local_minima(kind):
    """From starts that least squares alone does not lead to the truth; some do not get there by swaps either."""
    symmetric = kind == "symmetric"
    planted = noisy_tensor((9,) * 3, 10, symmetric=symmetric, noise=1e-3, rng=0)
    problem = PROBLEMS[kind](planted)
    truth = FactoredTensor(planted.weights, planted.factors, symmetric=symmetric)
    oracle, ends = minimize(problem, truth, Limits()), []
    for seed in range(3):
        start = np.random.default_rng(seed + 100).standard_normal((3, 9, 10))
        factors = [start[0]] * 3 if symmetric else list(start)
        stuck = minimize(problem, FactoredTensor(np.ones(10), factors, symmetric=symmetric), Limits(15))
        assert stuck.objective > 2 * oracle.objective
        found, n_exchanges = exchange_steps(LocalMinimum(problem, stuck), 20)
        assert n_exchanges > 0
        assert found.objective < stuck.objective
        ends.append(found.objective)
    assert min(ends) < 1.01 * oracle.objective


def test_a_minimum_is_left_as_it_is():
    planted = noisy_tensor((8, 9, 10), 4, noise=1e-2, rng=0)
    problem = codiag.Problem(planted.tensor, 4)
    best = minimize(problem, truth_of(planted), Limits())
    found, n_exchanges = exchange_steps(LocalMinimum(problem, best), 5)
    assert n_exchanges == 0
    assert found.result is best


@pytest.mark.parametrize("asked", [{"constraints": "nonnegative"}, {"weights": "some"}, {"symmetric": (0, 1)}], ids=str)
def test_swaps_honor_what_is_known(asked):
    """One component twice and another not at all: the swap finds it, within the constraints."""
    rng = np.random.default_rng(0)
    first, last = rng.random((6, 3)), rng.random((7, 3))
    factors = [first, first if "symmetric" in asked else rng.random((6, 3)), last]
    tensor = FactoredTensor(np.ones(3), factors, symmetric=False).to_dense()
    if "weights" in asked:
        asked = {"weights": rng.random(tensor.shape) < 0.7}
    problem = codiag.Problem(tensor, 3, **asked)
    twice = FactoredTensor(np.array([0.5, 0.5, 1.0]), [factor[:, [0, 0, 1]] for factor in factors], symmetric=False)
    value = LeastSquares(problem).distance(twice) / 2
    found, n_exchanges = exchange_steps(LocalMinimum(problem, OptimizeResult(twice, value, 0, False)), 3)
    assert n_exchanges > 0
    assert found.objective < 1e-6 * value
    if "constraints" in asked:
        assert all((factor >= 0).all() for factor in found.result.components.factors)


def test_swaps_end_where_no_entry_is_left_to_tell_noise():
    """As many parameters as entries, and no best fit: least squares gains a little by itself, forever."""
    tensor = np.array(
        [
            [[-2, -3, -1, -1, -1], [-3, 3, 3, 3, -2], [0, -2, -2, 0, -1]],
            [[2, 3, 2, -3, 0], [0, -2, 0, 2, 1], [-1, -2, 0, -2, 2]],
            [[2, 0, 2, -3, 0], [-2, 1, 0, 2, -3], [-1, 2, 1, -2, -2]],
        ],
        dtype=float,
    )
    problem, rng = codiag.Problem(tensor, 5), np.random.default_rng(0)
    start = FactoredTensor(np.ones(5), [rng.standard_normal((size, 5)) for size in tensor.shape])
    assert exchange_steps(LocalMinimum(problem, minimize(problem, start, Limits(100, 1e-6))), 20)[1] < 20


def test_terms_of_few_entries_are_not_taken_for_noise():
    """Noise of a symmetric 4 x 4 x 4 tensor may be all in one term: components are no less for that."""
    tensor = np.zeros((4, 4, 4))
    for places in ((0, 1, 2), (0, 0, 3), (1, 1, 2), (2, 3, 3)):
        for place in set(itertools.permutations(places)):
            tensor[place] = 1
    lowest = silent_fit(tensor, 3, method=NLS(init="random", n_starts=4), symmetric=True, seed=1)
    assert silent_fit(tensor, 3, symmetric=True, seed=0).relative_error < lowest.relative_error + 1e-3


@pytest.mark.parametrize("shape", [(2, 2, 2), (2, 4, 2), (1, 3, 3), (2, 2, 2, 2)])
def test_no_component_joins_where_any_tensor_has_enough(shape):
    tensor = np.zeros(shape)
    tensor[(0,) * len(shape)] = 2
    rank = math.prod(sorted(shape)[:-1])
    for max_iter in (1, 50):
        fit = silent_fit(tensor, rank, method=NLS(init="random", max_iter=max_iter), symmetric=False, seed=1)
        assert fit.rank == rank


@pytest.mark.parametrize(("symmetric", "noise"), [(False, 0.0), (False, 1e-2), (True, 0.0), (True, 1e-2)])
def test_more_components_than_dimensions_are_found(symmetric, noise):
    planted = noisy_tensor((9,) * 3, 11, symmetric=symmetric, noise=noise, rng=0)
    truth = NLS(init=(planted.weights, planted.factors), max_replacements=0)
    oracle = silent_fit(planted.tensor, 11, method=truth, symmetric=symmetric)
    fit = silent_fit(planted.tensor, 11, symmetric=symmetric, seed=0)
    assert fit.relative_error <= max(1.001 * oracle.relative_error, 1e-8)


def test_starts_stop_and_are_counted():
    planted = noisy_tensor((6,) * 3, 7, noise=0.3, rng=2)
    fit = silent_fit(planted.tensor, 7, method=Auto(max_starts=12), seed=0)
    assert 1 < sum(stage.name.startswith("rough least squares") for stage in fit.history) < 12
    oracle = silent_fit(planted.tensor, 7, method=NLS(init=(planted.weights, planted.factors)), seed=0)
    assert fit.relative_error < 1.02 * oracle.relative_error


@pytest.mark.parametrize("kind", ["free", "nonnegative", "incomplete"])
def test_a_minimum_that_three_starts_reach_is_enough(kind):
    """If the residual is no noise, nothing else is; ends are compared at the accuracy that rough ends have."""
    rng = np.random.default_rng(0)
    tensor = np.einsum("ir,jr,kr->ijk", *(rng.random((size, 5)) for size in (7, 8, 9)))
    stated = {"free": {}, "nonnegative": {"constraints": "nonnegative"}, "incomplete": {"weights": tensor < 2}}
    problem = codiag.Problem(tensor, 3, **stated[kind])
    start = FactoredTensor(np.ones(3), [rng.random((size, 3)) for size in (7, 8, 9)], symmetric=False)
    lowest = minimize(problem, start, Limits())
    same = lowest._replace(objective=(1 + 0.2 * LeastSquares(problem).noise_variance) * lowest.objective)
    above = lowest._replace(objective=1.1 * lowest.objective)
    assert not LocalMinimum(problem, lowest).is_noise
    assert should_stop([LocalMinimum(problem, result) for result in (lowest, above, same, lowest)])
    assert not should_stop([LocalMinimum(problem, result) for result in (lowest, above, above, same)])


def test_components_that_are_hardly_more_than_noise():
    """Several components that are hardly more than noise leave a doubt that one end does not settle; one does not."""
    rng = np.random.default_rng(0)
    factors = [np.linalg.qr(rng.standard_normal((12, 3)))[0] for _ in range(3)]
    weak = FactoredTensor(np.array([60.0, 22.0, 22.0]), factors, symmetric=False)
    problem = codiag.Problem(weak.to_dense() + rng.standard_normal((12, 12, 12)), 3)
    lowest = minimize(problem, weak, Limits())
    above = lowest._replace(objective=1.2 * lowest.objective)
    end = LocalMinimum(problem, lowest)
    assert end.is_noise
    assert end.weak == [1, 2]
    assert not should_stop([end, LocalMinimum(problem, above), end])
    assert should_stop([end, LocalMinimum(problem, above), end, end])


@pytest.mark.parametrize(
    "stated", [{}, {"constraints": "nonnegative"}, {"weights": np.arange(216).reshape(6, 6, 6) > 20}], ids=str
)
def test_a_lower_minimum_that_may_have_been_missed_is_spoken_of(stated):
    """Noise alone has many minima: those that no two starts share leave a chance that a further one is lower."""
    tensor = np.abs(np.random.default_rng(0).standard_normal((6, 6, 6)))
    fit = solve(codiag.Problem(tensor, 7, **stated), Auto(max_starts=2), 0)
    assert fit.diagnose().p_missed >= 0.1
    assert sum("lower minimum may have been missed" in sentence for sentence in advice_on_optimum(Facts(fit))) == 1
    sure = replace(fit, history=tuple(stage._replace(p_missed=0.05) for stage in fit.history))
    assert not any("lower minimum" in sentence for sentence in advice_on_optimum(Facts(sure)))


def test_doubt_is_kept_in_files(tmp_path):
    fit = silent_fit(np.random.default_rng(0).standard_normal((6, 6, 6)), 7, method=Auto(max_starts=2), seed=0)
    fit.save(tmp_path / "fit.npz")
    assert codiag.Factorization.load(tmp_path / "fit.npz").history == fit.history


@pytest.mark.parametrize("shape", [(5, 6, 7), (4, 5, 4, 5)])
@pytest.mark.parametrize("kind", ["free", "missing", "nonnegative"])
def test_a_component_costs_at_least_its_bound(shape, kind):
    """At a minimum, where the gradient vanishes; for orthogonal factors the bound is the cost itself."""
    rng = np.random.default_rng(0)
    planted = noisy_tensor(shape, 4, noise=0.05, rng=1)
    options = {
        "free": {},
        "missing": {"weights": rng.random(shape) < 0.7},
        "nonnegative": {"constraints": "nonnegative"},
    }[kind]
    problem = codiag.Problem(abs(planted.tensor) if kind == "nonnegative" else planted.tensor, 4, **options)
    result = minimize(problem, FactoredTensor(planted.weights, planted.factors), Limits())
    rises = objectives_without(problem, result.components) - result.objective
    bounds = removal_bounds(problem, result.components)
    assert np.all(bounds > 0)
    assert np.all(bounds <= rises * (1 + 1e-6))


def test_the_bound_of_orthogonal_components_is_their_cost():
    rng = np.random.default_rng(0)
    factors = [np.linalg.qr(rng.standard_normal((6, 3)))[0] for _ in range(3)]
    weights = np.array([3.0, 2.0, 1.0])
    components = FactoredTensor(weights, factors)
    assert_allclose(removal_bounds(codiag.Problem(components.to_dense(), 3), components), weights**2 / 2)


def test_columns_that_depend_on_others_have_no_bound():
    """More components than dimensions, in all modes but one."""
    rng = np.random.default_rng(0)
    components = FactoredTensor(np.ones(5), [rng.standard_normal((size, 5)) for size in (3, 4, 6)])
    assert np.all(removal_bounds(codiag.Problem(components.to_dense(), 5), components) == 0)


def test_the_cost_of_components_that_stand_out_takes_no_steps(monkeypatch):
    planted = noisy_tensor((9, 9, 9), 3, noise=0.01, rng=0)
    problem = codiag.Problem(planted.tensor, 3)
    end = LocalMinimum(problem, minimize(problem, FactoredTensor(planted.weights, planted.factors), Limits()))
    monkeypatch.setattr("codiag.search._local_minimum.objectives_without", None)
    assert end.weak == []


@pytest.mark.parametrize("order", [3, 4])
def test_one_end_is_not_enough_beside_a_weak_component(order):
    """Noise may have displaced it: only further starts that end there show that no minimum is lower."""
    rng, size, rank = np.random.default_rng(0), 24 if order == 3 else 11, 26
    noise = symmetrize(rng.standard_normal((size,) * order))
    largest = largest_term_of_unit_noise((size,) * order, [tuple(range(order))])
    weights = np.where(np.arange(rank) == 0, 1.5 * largest, 1000.0)
    truth = FactoredTensor(weights, [unit_factor(size, rank, rng)] * order, symmetric=True)
    problem = codiag.Problem(truth.to_dense() + noise, rank, symmetric=True)
    end = LocalMinimum(problem, minimize(problem, truth, Limits()))
    assert end.is_noise
    assert end.weak == [0]
    assert not should_stop([end])
    assert should_stop([end] * 3)


def test_weak_components_among_many_are_not_missed():
    """As many components as dimensions, some hardly more than noise: a fit that is at once sure must be the best."""
    planted = noisy_tensor((30,) * 3, 30, noise=0.2, rng=1)
    truth = NLS(init=(planted.weights, planted.factors), max_replacements=0)
    oracle, fit = silent_fit(planted.tensor, 30, method=truth, seed=0), silent_fit(planted.tensor, 30, seed=1)
    assert fit.relative_error <= 1.001 * oracle.relative_error
