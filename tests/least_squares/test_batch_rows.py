"""Sweeps of a batch on the observed entries of a tensor, and steps from which the rows of one factor are eliminated."""

from __future__ import annotations

import numpy as np
import pytest

from codiag.least_squares import ROUGH, Batch, LeastSquares, Steps, random_components
from codiag.problem import Problem
from codiag.search import approach


def drawn(shape, rank, *, has_phases=False, n_members=3):
    rng = np.random.default_rng(0)

    def numbers(size):
        return rng.standard_normal(size) + (1j * rng.standard_normal(size) if has_phases else 0)

    weights = (rng.random(shape) < 0.7) * rng.uniform(0.5, 1.0, shape)
    return numbers(shape), weights, [numbers((n_members, size, rank)) for size in shape]


def model(factors):
    letters = "abcd"[: len(factors)]
    return np.einsum(",".join(letter + "r" for letter in letters) + "->" + letters, *factors)


def _product(vectors):
    product = vectors[0]
    for vector in vectors[1:]:
        product = np.multiply.outer(product, vector)
    return product


@pytest.mark.parametrize("has_phases", [False, True])
@pytest.mark.parametrize("shape", [(4, 6, 5), (3, 7, 4, 2)], ids=str)
def test_sweeps_end_at_the_least_squares_solution_of_every_row(shape, has_phases):
    """The objective is that of the factors, and each row of the last mode solves its own weighted problem."""
    entries, weights, factors = drawn(shape, 2, has_phases=has_phases)
    batch = Batch(entries, factors, shares=weights)
    objectives = batch.sweep(3)
    for place in range(3):
        found = batch.member(place)
        gap = np.sum(weights * np.abs(entries - model(found)) ** 2) - np.sum(weights * np.abs(entries) ** 2)
        np.testing.assert_allclose(gap / 2, objectives[place], rtol=1e-9)
    last = int(np.argmax(shape))
    others = [factor for mode, factor in enumerate(found) if mode != last]
    rows = np.stack([_product([factor[:, i] for factor in others]).ravel() for i in range(2)], axis=1)
    unfolded, roots = (np.moveaxis(part, last, 0).reshape(shape[last], -1) for part in (entries, np.sqrt(weights)))
    for row, value, root in zip(found[last], unfolded, roots, strict=True):
        expected = np.linalg.lstsq(root[:, None] * rows, root * value, rcond=None)[0]
        np.testing.assert_allclose(row, expected, rtol=1e-6, atol=1e-8)


def test_entries_with_equal_weights_are_swept_like_a_complete_tensor():
    entries, weights, factors = drawn((4, 5, 6), 2)
    complete = Batch(entries, factors).sweep(20)
    np.testing.assert_allclose(Batch(entries, factors, shares=np.ones_like(weights)).sweep(20), complete, rtol=1e-6)


def test_members_do_not_depend_on_the_others():
    """The same start ends at the same point, alone or beside others, one-sided factors included."""
    entries, weights, factors = drawn((4, 6, 5), 2)
    signs = (True, True, False)
    factors = [np.abs(factor) if sign else factor for factor, sign in zip(factors, signs, strict=True)]
    together = Batch(entries, factors, signs, shares=weights).sweep(20)
    alone = Batch(entries, [factor[1:2] for factor in factors], signs, shares=weights)
    np.testing.assert_allclose(alone.sweep(20)[0], together[1], rtol=1e-9)
    assert all(np.all(factor >= 0) for factor in alone.member(0)[:2])


@pytest.mark.parametrize("has_phases", [False, True])
def test_eliminating_rows_solves_the_same_equations(has_phases):
    entries, weights, _ = drawn((4, 60, 5), 3, has_phases=has_phases)
    problem = Problem(np.where(weights > 0, entries, np.nan), 3)
    objective, rng = LeastSquares(problem), np.random.default_rng(1)
    point = objective.parametrization.vectorize(random_components(problem.complete().tensor, 3, rng))
    assert objective.parametrization.independent_rows == slice(4, 64)
    state = Steps(objective).evaluated(point)
    curvature = objective.step_curvature(point, state.gradient)
    matrix = curvature.matrix() + 1e-3 * np.diag(np.ravel(curvature.scales))
    expected = np.linalg.solve(matrix, -np.ravel(state.gradient))
    np.testing.assert_allclose(np.ravel(Steps(objective).step(state, 1e-3)[0]), expected, rtol=1e-6)


def test_a_start_with_missing_entries_comes_near_a_minimum_at_the_price_of_few_steps():
    entries, weights, _ = drawn((6, 9, 7), 2)
    problem = Problem(np.where(weights > 0, entries, np.nan), 2)
    start = random_components(problem.complete().tensor, 2, np.random.default_rng(1))
    found, objective = approach(problem, start, ROUGH), LeastSquares(problem)
    state = Steps(objective).evaluated(objective.parametrization.vectorize(found.components))
    _, promised = Steps(objective).step(state, 1e-9)
    assert promised < 1e-3 * found.objective
    np.testing.assert_allclose(found.objective, objective.distance(found.components) / 2)
