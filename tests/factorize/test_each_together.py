"""Tensors of one shape are fitted in batches, to the minima that `factorize` finds."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import codiag
from assertions import assert_same_to_rounding
from codiag.result import solve_together
from codiag.synthetic import noisy_tensor


def noisy(shape, rank, noise, n, first=0):
    return np.stack([noisy_tensor(shape, rank, noise=noise, rng=first + i).tensor for i in range(n)])


def seeds(n):
    return [np.random.SeedSequence(0, spawn_key=(i,)) for i in range(n)]


def together(tensors, rank, **stated):
    return solve_together([codiag.Problem(tensor, rank, **stated) for tensor in tensors], seeds(len(tensors)))


@pytest.mark.parametrize(
    ("shape", "rank", "noise"),
    [
        ((20, 20, 20), 5, 0.01),
        ((12, 11, 10), 4, 0.3),
        ((5, 6, 7, 4), 3, 0.1),
        ((6, 4, 30), 3, 0.1),
        ((7, 6, 5), 1, 0.2),
    ],
)
def test_errors_are_those_of_factorize(shape, rank, noise):
    tensors = noisy(shape, rank, noise, 8)
    fits = codiag.factorize_each(tensors, rank, rng=0)
    for tensor, seed, fit in zip(tensors, seeds(8), fits, strict=True):
        alone = codiag.factorize(tensor, rank, rng=seed)
        assert fit.converged
        assert fit.relative_error <= alone.relative_error * (1 + 1e-6)
        assert fit.relative_error == pytest.approx(np.linalg.norm(tensor - fit.to_tensor()) / np.linalg.norm(tensor))


@pytest.mark.parametrize("constraints", ["nonnegative", {1: "nonnegative"}], ids=str)
def test_factors_that_are_not_negative(constraints):
    rng = np.random.default_rng(0)
    factors = rng.random((3, 8, 9, 3)) * (rng.random((3, 8, 9, 3)) < 0.7)
    tensors = np.einsum("nir,njr,nkr->nijk", *factors) + 0.1 * rng.standard_normal((8, 9, 9, 9))
    assert sum(fit is None for fit in together(tensors, 3, constraints=constraints)) <= 2
    for tensor, seed, fit in zip(
        tensors, seeds(8), codiag.factorize_each(tensors, 3, constraints=constraints, rng=0), strict=True
    ):
        alone = codiag.factorize(tensor, 3, constraints=constraints, rng=seed)
        assert fit.relative_error <= alone.relative_error * (1 + 1e-6)
        assert np.all(fit.factors[1] >= 0)


def test_a_batch_solves_nearly_all_tensors_that_are_components_and_noise():
    """One in ten has components that no one finds again."""
    for noise in (0.01, 0.3):
        assert sum(fit is None for fit in together(noisy((14, 13, 12), 4, noise, 20), 4)) <= 2


def test_tensors_that_fit_no_model_are_left_to_the_usual_search():
    tensors = np.random.default_rng(0).standard_t(2, (4, 8, 8, 8)) + noisy((8, 8, 8), 3, 0.0, 4)
    assert together(tensors, 2) == [None] * 4
    fits = codiag.factorize_each(tensors, 2, rng=0)
    alone = [codiag.factorize(tensor, 2, rng=seed) for tensor, seed in zip(tensors, seeds(4), strict=True)]
    assert [fit.relative_error for fit in fits] == [fit.relative_error for fit in alone]


def test_no_answer_depends_on_the_other_tensors():
    tensors, others = noisy((10, 9, 8), 3, 0.3, 6), noisy((10, 9, 8), 3, 0.1, 3, first=50)
    fits = codiag.factorize_each(tensors, 3, rng=0)
    among_others = codiag.factorize_each([*tensors, *others, np.ones((2, 3, 4))], [3] * 9 + [1], rng=0)
    for few in (
        among_others,
        codiag.factorize_each(tensors[:2], 3, rng=0),
        codiag.factorize_each(tensors[:1], 3, rng=0),
    ):
        for one, other in zip(fits, few, strict=False):
            assert_same_to_rounding(one.weights, other.weights)
            for mine, yours in zip(one.factors, other.factors, strict=True):
                assert_same_to_rounding(mine, yours)


def test_shapes_and_ranks_may_be_mixed():
    shapes = [(6, 7, 8), (8, 7, 6), (6, 7, 8), (5, 5, 5)]
    tensors = [noisy_tensor(shape, 2, noise=0.1, rng=i).tensor for i, shape in enumerate(shapes)]
    fits = codiag.factorize_each(tensors, [2, 2, 1, 2], rng=0)
    assert [fit.shape for fit in fits] == shapes
    assert [fit.rank for fit in fits] == [2, 2, 1, 2]
    for tensor, fit in zip(tensors, fits, strict=True):
        assert fit.relative_error == pytest.approx(np.linalg.norm(tensor - fit.to_tensor()) / np.linalg.norm(tensor))


def test_exact_tensors_are_fitted_exactly():
    fits = codiag.factorize_each(noisy((9, 8, 7), 4, 0.0, 5), 4, rng=0)
    assert max(fit.relative_error for fit in fits) < 1e-11
    assert max(fit.history[-1].p_missed for fit in fits) == 0


def test_complex_tensors():
    rng = np.random.default_rng(0)
    parts = rng.standard_normal((6, 3, 2, 9, 3))
    factors = parts[:, :, 0] + 1j * parts[:, :, 1]
    clean = np.einsum("nir,njr,nkr->nijk", *np.moveaxis(factors, 1, 0))
    tensors = clean + 0.1 * (rng.standard_normal(clean.shape) + 1j * rng.standard_normal(clean.shape))
    assert sum(fit is None for fit in together(tensors, 3)) <= 1
    for tensor, seed, fit in zip(tensors, seeds(6), codiag.factorize_each(tensors, 3, rng=0), strict=True):
        assert fit.relative_error <= codiag.factorize(tensor, 3, rng=seed).relative_error * (1 + 1e-6)


@pytest.mark.parametrize("scale", [1e-60, 1e60])
def test_extreme_scales_go_the_usual_way(scale):
    tensors = scale * noisy((6, 5, 4), 2, 0.1, 3)
    assert together(tensors, 2) == [None] * 3
    assert all(fit.converged for fit in codiag.factorize_each(tensors, 2, rng=0))


def test_torch_tensors_give_the_fits_of_arrays():
    torch = pytest.importorskip("torch")
    tensors = noisy((10, 9, 8), 3, 0.3, 5)
    ours, theirs = codiag.factorize_each(torch.asarray(tensors), 3, rng=0), codiag.factorize_each(tensors, 3, rng=0)
    for one, other in zip(ours, theirs, strict=True):
        assert isinstance(one.weights, torch.Tensor)
        assert_allclose(one.weights.numpy(), other.weights, rtol=1e-7)


def test_arrays_that_are_not_on_the_host_are_judged_there(monkeypatch):
    """What is not known of a minimum from the batch is computed on a copy."""
    tensors = noisy((10, 9, 8), 3, 0.3, 5)
    here = together(tensors, 3)
    monkeypatch.setattr("codiag.search._together.on_host", lambda _: False)
    for one, other in zip(here, together(tensors, 3), strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            assert_same_to_rounding(one.weights, other.weights)
