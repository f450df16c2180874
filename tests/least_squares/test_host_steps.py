"""Steps on NumPy arrays are those for arrays of any library; where they creep, and where components run off."""

import itertools
import math

import array_api_strict as strict
import numpy as np
import pytest

import codiag
from codiag._arrays import Extrapolation
from codiag._checks import ConvergenceWarning
from codiag.constraints import NonNegative, Ridge
from codiag.least_squares import (
    DIRECT_UNKNOWNS,
    ROUGH,
    LeastSquares,
    Limits,
    Steps,
    minimize,
    random_components,
)
from codiag.problem import Problem
from codiag.reduction import with_sides
from codiag.search import bounded, polish
from codiag.synthetic import noisy_tensor
from codiag.tensors import DenseTensor

SHAPES = [((4, 5, 6), 3), ((3, 9, 4), 6), ((6, 5, 4, 7), 6), ((4, 3, 3, 2, 3), 2), ((12, 12, 12), 15)]
SYMMETRIC = [((7, 7, 7), 4), ((5, 5, 5, 5), 6)]
BORDER = np.zeros((2, 2, 2))
BORDER[0, 0, 1] = BORDER[0, 1, 0] = BORDER[1, 0, 0] = 1.0
"""A tensor of rank 3 that tensors of rank 2 come arbitrarily near to, so that there is no best one."""


def draw(shape, rank, *, symmetric=False, constraints=None, observed=None, library=np.asarray):
    """Return an objective, with a point near no minimum."""
    rng = np.random.default_rng(0)
    tensor = rng.standard_normal(shape)
    if symmetric:
        tensor = sum(tensor.transpose(axes) for axes in itertools.permutations(range(tensor.ndim)))
    weights = None if observed is None else library(observed)
    problem = Problem(library(tensor), rank, constraints=constraints, weights=weights, symmetric=symmetric)
    start = random_components(problem.tensor, rank, rng)
    objective = LeastSquares(problem, start)
    return objective, objective.projected(objective.parametrization.vectorize(start))


CASES = [(shape, rank, False) for shape, rank in SHAPES] + [(shape, rank, True) for shape, rank in SYMMETRIC]


@pytest.mark.parametrize(("shape", "rank", "symmetric"), CASES)
@pytest.mark.parametrize("constraints", [None, Ridge(0.3), NonNegative()], ids=["free", "ridge", "nonnegative"])
def test_steps_are_those_of_any_library(shape, rank, symmetric, constraints):
    options = {"symmetric": symmetric, "constraints": constraints}
    (here, point), (there, same) = (draw(shape, rank, library=kind, **options) for kind in (np.asarray, strict.asarray))
    steps, others = Steps(here), Steps(there)
    state, other = steps.evaluated(point), others.evaluated(same)
    gradient = np.asarray(other.gradient)
    assert state.objective == pytest.approx(other.objective, rel=1e-12)
    np.testing.assert_allclose(state.gradient, gradient, atol=1e-11 * np.abs(gradient).max())
    for damping in (1e-1, 1e-3):
        (move, promised), (image, told) = steps.step(state, damping), others.step(other, damping)
        assert promised == pytest.approx(told, rel=1e-2)  # conjugate gradients end early
        if constraints is None or (isinstance(constraints, NonNegative) and point.size <= DIRECT_UNKNOWNS):
            np.testing.assert_allclose(move, np.asarray(image), atol=1e-6 * np.abs(move).max())


@pytest.mark.parametrize(("shape", "rank", "symmetric"), CASES)
def test_gradient_is_the_derivative(shape, rank, symmetric):
    objective, point = draw(shape, rank, symmetric=symmetric, constraints=Ridge(0.2))
    steps = Steps(objective)
    direction = np.random.default_rng(1).standard_normal(point.shape)
    values = [steps.evaluated(point + change * direction).objective for change in (1e-5, -1e-5)]
    slope = float(np.sum(steps.evaluated(point).gradient * direction))
    assert (values[0] - values[1]) / 2e-5 == pytest.approx(slope, rel=1e-5)


def test_steps_with_few_entries_missing_use_the_expected_matrix():
    """Its share of the complete matrix differs from that of the observed entries by about 2 sqrt(p q / n)."""
    shape, rank = (30, 31, 32), 3
    weights = np.where(np.random.default_rng(3).random(shape) < 0.2, 0.0, 2.0)
    objective, point = draw(shape, rank, observed=weights)
    assert objective.expected_share == pytest.approx(weights.mean())
    exact = objective.curvature(point).matrix()
    expected = objective.step_curvature(point, np.zeros_like(point)).matrix()
    roots = np.linalg.cholesky(expected + 1e-9 * np.trace(expected) * np.eye(expected.shape[0]))
    whitened = np.linalg.solve(roots, np.linalg.solve(roots, exact).T)
    values = np.linalg.eigvalsh(whitened)
    inside = values[values > 1e-3]  # sizes that move between modes change nothing
    bound = 2 * math.sqrt(objective.problem.n_parameters * 0.2 / objective.entries.size)
    assert np.all(np.abs(inside - 1) < 2 * bound)


@pytest.mark.parametrize(("missing", "is_expected"), [(0.01, True), (0.2, False), (0.7, False)])
def test_steps_with_too_many_entries_missing_use_the_observed_ones(missing, is_expected):
    observed = np.random.default_rng(3).random((10, 11, 12)) > missing
    objective, _ = draw((10, 11, 12), 3, observed=observed)
    assert (objective.expected_share is not None) is is_expected


def test_steps_that_are_linear_in_the_point_are_extrapolated_to_where_they_vanish():
    rng = np.random.default_rng(0)
    values = np.array([0.05, 0.2, 0.4])
    end = rng.standard_normal((3, 1))
    point = np.zeros((3, 1))
    path = Extrapolation(end, memory=6)
    for _ in range(6):
        move = values[:, None] * (end - point)
        path.add(point, move)
        point = point + move
    np.testing.assert_allclose(path.target(point), end, atol=1e-9)


def test_no_end_is_above_that_of_single_steps():
    planted = noisy_tensor((8, 9, 10), 3, noise=0.3, rng=0)
    problem = Problem(planted.tensor, 5)
    start = random_components(problem.tensor, 5, np.random.default_rng(0))
    values = []

    def callback(_, value):
        values.append(value)
        return False

    found = minimize(problem, start, Limits(max_iter=500, callback=callback))
    assert found.converged
    assert np.all(np.diff(values) <= 1e-12)


def test_components_that_run_off_are_bounded():
    problem = Problem(BORDER, 2, symmetric=True)
    found = minimize(problem, random_components(problem.tensor, 2, np.random.default_rng(0)), Limits(max_iter=10_000))
    assert found.runs_off
    assert not found.converged
    end = bounded(problem, found)
    assert end.objective < (1 + 1e-5) * 2 / 3 < found.objective  # 2 / 3 is the infimum along this path
    assert end.n_iter <= found.n_iter + 4 * ROUGH.max_iter
    assert not end.converged


def test_no_best_fit_is_said():
    with pytest.warns(ConvergenceWarning, match="no best fit"):
        fit = codiag.factorize(BORDER, 2, rng=0)
    assert not fit.converged
    assert fit.relative_error < 0.05  # the infimum is zero
    assert "Components 1 and 2 are degenerate" in str(fit.diagnose())


def test_a_ridge_holds_components_back():
    problem = Problem(BORDER, 2)
    start = random_components(problem.tensor, 2, np.random.default_rng(0))
    sizes = []
    for strength in (1e-2, 1e-4):
        found = minimize(problem.with_constraints((Ridge(strength),) * 3), start, Limits(max_iter=500))
        assert found.converged
        sizes.append(max(float(np.max(np.abs(factor))) for factor in found.components.factors))
    assert sizes[0] < sizes[1]


def test_polishing_never_ends_above_its_start():
    rng = np.random.default_rng(0)
    tensor = DenseTensor(rng.standard_normal((9, 10, 11)))
    problem = Problem(tensor, 3)
    bases = tuple(np.linalg.qr(rng.standard_normal((size, 3)))[0] for size in tensor.shape)
    reduction = with_sides(problem, tensor, bases)
    core = random_components(reduction.core, 3, rng)
    # Two components that nearly cancel each other: an undamped step leads far away.
    factors = [np.concatenate([f[:, :1], f[:, :1] + 1e-7 * f[:, 1:2], f[:, 2:]], axis=1) for f in core.factors]
    core = core.changed(lambda _, mode: factors[mode], np.array([1e3, -1e3, 1.0]))
    start = reduction.to_tensor(core)
    begin = tensor.squared_distance(start.weights, start.factors)
    assert polish(problem, start, reduction.sides).squared_distance <= begin * (1 + 1e-9)
