"""Accelerated sweeps of many members together."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import codiag
from codiag.least_squares import (
    LeastSquares,
    NormalEquations,
    columnwise_kronecker,
    noise_excess,
    settle,
    stacked_excess,
    sweep,
)
from codiag.tensors import DenseTensor

SIZES = (7, 6, 5)


def problem(n, rank, seed=0, kind="normal"):
    """Return tensors with noise, and starts near their components."""
    rng = np.random.default_rng(seed)
    draw = rng.random if kind == "positive" else rng.standard_normal
    drawn = [draw((n, size, rank)) for size in SIZES]
    clean = np.reshape(drawn[0] @ np.swapaxes(columnwise_kronecker(drawn[1:]), 1, 2), (n, *SIZES))
    return clean + 0.1 * rng.standard_normal(clean.shape), [own + 0.1 * rng.random(own.shape) for own in drawn]


def test_a_sweep_is_that_of_alternating_least_squares():
    tensors, starts = problem(4, 3)
    swept, values = sweep(NormalEquations(tensors), starts)
    for place, tensor in enumerate(tensors):
        objective = LeastSquares(codiag.Problem(tensor, 3))
        one = objective.sweep([start[place] for start in starts], unit=False)
        model = np.einsum("ir,jr,kr->ijk", *[factor[place] for factor in swept])
        assert_allclose(model, one.to_dense(), atol=1e-10)
        assert values[place] + objective.squared_norm / 2 == pytest.approx(objective.distance(one) / 2)


@pytest.mark.parametrize("one_sided", [(), (True, True, True), (False, True, False)], ids=str)
def test_members_settle_where_no_sweep_moves_them(one_sided):
    tensors, starts = problem(5, 3, kind="positive")
    ends = settle(NormalEquations(tensors, one_sided), starts, max_sweeps=300, tol=1e-10)
    assert ends.converged.all()
    again, values = sweep(NormalEquations(tensors, one_sided), ends.factors)
    assert_allclose(values, ends.objectives, rtol=1e-12)
    for before, after, sign in zip(ends.factors, again, one_sided or (False,) * 3, strict=True):
        assert_allclose(after, before, atol=1e-8)
        assert not sign or np.all(after >= 0)


def test_collinear_components_settle_in_few_sweeps():
    """Plain sweeps take thousands."""
    rng = np.random.default_rng(0)
    factors = [rng.standard_normal((3, size, 2)) + 2 * rng.standard_normal((3, size, 1)) for size in (12, 11, 10)]
    tensors = np.einsum("nir,njr,nkr->nijk", *factors)
    starts = [factor + 0.3 * rng.standard_normal(factor.shape) for factor in factors]
    ends = settle(NormalEquations(tensors), starts, max_sweeps=60, tol=1e-9)
    assert ends.converged.all()
    assert np.all(2 * ends.objectives + np.sum(tensors**2, axis=(1, 2, 3)) < 1e-12 * np.sum(tensors**2, axis=(1, 2, 3)))


def test_several_members_share_a_tensor():
    tensors, starts = problem(2, 3)
    twice = [np.repeat(start, 2, axis=0) * np.tile([1.0, 2.0], 2)[:, None, None] for start in starts]
    swept, values = sweep(NormalEquations(tensors), twice)
    for place in range(4):
        one, value = sweep(
            NormalEquations(tensors[place // 2 : place // 2 + 1]), [own[place : place + 1] for own in twice]
        )
        assert_allclose(values[place], value[0])
        for mine, yours in zip(swept, one, strict=True):
            assert_allclose(mine[place], yours[0], atol=1e-10)


@pytest.mark.parametrize("mode", [0, 1, 2])
def test_counts_are_repeated_rows(mode):
    (tensor,), starts = problem(1, 2)
    rng = np.random.default_rng(1)
    rows = np.stack([np.sort(rng.integers(SIZES[mode], size=SIZES[mode])) for _ in range(3)])
    counts = np.stack([np.bincount(own, minlength=SIZES[mode]) for own in rows]).astype(float)
    begun = [np.repeat(start, 3, axis=0) for start in starts]
    ends = settle(NormalEquations(tensor[None], counts=counts, mode=mode), begun, max_sweeps=100, tol=1e-9)
    assert ends.converged.all()
    for place, own in enumerate(rows):
        part = np.take(tensor, own, axis=mode)
        kept = [factor[:1, own, :] if other == mode else factor[:1] for other, factor in enumerate(starts)]
        alone = settle(NormalEquations(part[None]), kept, max_sweeps=100, tol=1e-9)
        assert ends.objectives[place] == pytest.approx(alone.objectives[0])
        models = [
            np.einsum("ir,jr,kr->ijk", *[factor[at] for factor in end.factors])
            for end, at in ((ends, place), (alone, 0))
        ]
        assert_allclose(np.take(models[0], own, axis=mode), models[1], atol=1e-6)


def test_excess_of_many_residuals_is_that_of_each():
    residuals = np.random.default_rng(0).standard_normal((4, 9, 8, 7))
    residuals[1] += 3 * np.einsum("i,j,k->ijk", *[np.ones(size) for size in (9, 8, 7)])
    residuals[2, 0] = 0
    found = stacked_excess(residuals)
    assert np.isinf(found[2])
    for place in (0, 1, 3):
        alone = noise_excess(codiag.Problem(residuals[place], 1), DenseTensor.of(residuals[place], symmetric=False))
        assert found[place] == pytest.approx(alone)
