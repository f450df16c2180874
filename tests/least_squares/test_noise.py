"""Terms of a residual, and whether it passes for noise."""

from __future__ import annotations

import numpy as np
import pytest

import codiag
from codiag.constraints import NonNegative
from codiag.least_squares import (
    ROUGH,
    LeastSquares,
    Limits,
    distinct_terms,
    independent_columns,
    is_noise,
    largest_noise_term,
    minimize,
    noise_excess,
    symmetric_basis,
)
from codiag.synthetic import unit_factor
from codiag.tensors import DenseTensor, FactoredTensor, as_tensor, symmetrize


def test_terms_are_the_strongest_ones():
    factors = [np.linalg.qr(np.random.default_rng(mode).standard_normal((9, 4)))[0] for mode in range(3)]
    tensor = FactoredTensor(np.array([9.0, 3.0, 2.0, 1.0]), factors, symmetric=False)
    terms = distinct_terms(as_tensor(tensor.to_dense()))
    assert [float(term.weights[0]) for term in terms] == pytest.approx([9.0, 3.0, 2.0])


def test_a_dominant_term_counts_once():
    """Power iterations from most vectors end there."""
    rng = np.random.default_rng(0)
    unit = [vector / np.linalg.norm(vector) for vector in rng.standard_normal((3, 9))]
    tensor = 50 * np.einsum("i,j,k->ijk", *unit) + rng.standard_normal((9, 9, 9))
    weights = [float(term.weights[0]) for term in distinct_terms(as_tensor(tensor))]
    assert weights == pytest.approx([50], rel=0.1)


@pytest.mark.parametrize("holes", [False, True])
def test_noise_passes_for_noise_and_a_component_does_not(holes):
    """At a level of one in a thousand, for complete tensors (Tracy-Widom) and with missing entries (random signs)."""
    n_passed = n_found = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        noise = rng.standard_normal((9, 8, 7))
        observed = rng.random(noise.shape) > 0.3 if holes else None
        problem = codiag.Problem(noise, 1, weights=observed)
        residual = as_tensor(np.where(observed, noise, 0.0) if holes else noise)
        n_passed += is_noise(problem, residual)
        unit = [vector / np.linalg.norm(vector) for vector in (rng.standard_normal(size) for size in noise.shape)]
        component = 20 * np.einsum("i,j,k->ijk", *unit)
        shown = as_tensor(residual.to_dense() + (np.where(observed, component, 0.0) if holes else component))
        n_found += not is_noise(problem, shown)
    assert n_passed >= 39
    assert n_found >= 38


def symmetric_noise(size, order, rng):
    """White noise of variance one, averaged over permutations of the modes."""
    powers = symmetric_basis(size, order)
    return (rng.standard_normal(powers.scales.size) / powers.scales)[powers.elements]


@pytest.mark.parametrize(("size", "order"), [(6, 3), (5, 4), (4, 6)])
def test_symmetric_noise_scatters_as_its_number_of_independent_columns_says(size, order):
    """The squared mean of the diagonal of R R^T over the variance off it, computed from 3000 draws."""
    rng = np.random.default_rng(0)
    unfolded = (symmetric_noise(size, order, rng).reshape(size, -1) for _ in range(3000))
    grams = np.stack([noise @ noise.T for noise in unfolded])
    off, on = np.triu_indices(size, 1), np.diag_indices(size)
    n_columns = np.mean(grams[:, *on]) ** 2 / np.mean(grams[:, *off] ** 2)
    assert n_columns == pytest.approx(independent_columns(size, order), rel=0.05)


@pytest.mark.parametrize(("size", "order", "rank"), [(10, 3, 10), (8, 4, 14), (5, 6, 8)])
def test_what_a_right_fit_of_many_components_leaves_passes_for_noise(size, order, rank):
    """Directions with few components keep more noise than others, as expected, and are no component."""
    rng, n_passed, n_uneven = np.random.default_rng(1), 0, 0
    for _ in range(40):
        truth = FactoredTensor(np.full(rank, 1e4), [unit_factor(size, rank, rng)] * order, symmetric=True)
        problem = codiag.Problem(truth.to_dense() + symmetric_noise(size, order, rng), rank, symmetric=True)
        fitted = minimize(problem, truth, ROUGH).components
        residual = LeastSquares(problem, fitted).residual(fitted)
        n_passed += is_noise(problem, residual, fitted)
        n_uneven += not is_noise(problem, residual)
        unit = unit_factor(size, 1, rng)
        missed = DenseTensor(
            residual.to_dense() + FactoredTensor(np.full(1, 20.0), [unit] * order, symmetric=True).to_dense()
        )
        assert not is_noise(problem, missed, fitted)
    assert n_passed >= 39
    assert n_uneven > 1 or order > 3


def test_noise_terms_are_below_the_bound():
    """The largest rank-one term of white noise exceeds the bound in one of a thousand tensors."""
    problem = codiag.Problem(np.random.default_rng(0).standard_normal((9, 8, 7)), 1)
    bound = largest_noise_term(problem, float(9 * 8 * 7 - problem.n_parameters))
    terms = [
        distinct_terms(as_tensor(np.random.default_rng(seed).standard_normal((9, 8, 7))), 1)[0] for seed in range(99)
    ]
    largest = max(float(term.weights[0]) ** 2 for term in terms)
    assert 0.3 * bound < largest < bound


def test_terms_of_symmetric_noise_are_below_a_bound_of_their_own():
    """Modes that share a factor leave noise less room: the root of three times the size, not three times the root."""
    size, noises = 12, [symmetrize(np.random.default_rng(seed).standard_normal((12,) * 3)) for seed in range(99)]
    problem = codiag.Problem(noises[0], 1, symmetric=True)
    bound = largest_noise_term(problem, float(problem.n_independent - problem.n_parameters))
    largest = max(float(distinct_terms(as_tensor(noise, symmetric=True), 1)[0].weights[0]) ** 2 for noise in noises)
    assert 0.3 * bound < largest < bound < 0.5 * (3 * size**0.5) ** 2 * 3


@pytest.mark.parametrize("holes", [False, True])
def test_what_is_left_beside_some_components_passes_for_noise(holes):
    rng = np.random.default_rng(0)
    noise, observed = rng.standard_normal((22, 23, 24)), rng.random((22, 23, 24)) > (0.3 if holes else -1)
    factors = [np.linalg.qr(rng.standard_normal((size, 2)))[0] for size in noise.shape]
    tensor = np.where(observed, noise + 60 * np.einsum("ir,jr,kr->ijk", *factors), 0.0)
    problem = codiag.Problem(tensor, 1, weights=observed if holes else None)
    excesses = [noise_excess(problem, as_tensor(tensor), n_left_out) for n_left_out in range(3)]
    assert [excess > 1 for excess in excesses] == [True, True, False]


def test_a_minimum_is_within_a_fraction_of_a_standard_error():
    """Even if the objective, which grows with the number of entries, hardly changes over a fifth of it."""
    rng, size = np.random.default_rng(0), 40
    factors = [vector / np.linalg.norm(vector) for vector in rng.standard_normal((3, size, 1))]
    noise = rng.standard_normal((size,) * 3)
    problem = codiag.Problem(FactoredTensor(np.array([300.0]), factors, symmetric=False).to_dense() + noise, 1)
    fit = minimize(problem, FactoredTensor(np.array([300.0]), factors, symmetric=False), Limits())
    assert fit.converged
    orthogonal = np.cross(fit.components.factors[0][:3, 0], [1.0, 2.0, 3.0])
    move = np.zeros((size, 1))
    move[:3, 0] = 0.2 / 300 * orthogonal / np.linalg.norm(orthogonal)
    nearby = fit.components.changed(lambda factor, mode: factor + move * np.linalg.norm(factor) * (mode == 0))
    assert not minimize(problem, nearby, Limits(max_iter=0)).converged
    assert minimize(problem, fit.components, Limits(max_iter=0)).converged


@pytest.mark.parametrize("seed", range(5))
def test_terms_of_one_sign_are_at_least_as_strong_as_the_largest_entry(seed):
    """Projected power iterations never lower a weight, and one of them begins at that entry."""
    entries = np.random.default_rng(seed).standard_normal((4, 5, 6)) - 1.0
    strongest = distinct_terms(as_tensor(entries), 1, (NonNegative(), None, NonNegative()))[0]
    assert float(strongest.weights[0]) >= entries.max() > 0
    assert all(np.all(strongest.factors[mode] >= 0) for mode in (0, 2))
    free = distinct_terms(as_tensor(entries), 1)[0]
    assert float(strongest.weights[0]) <= abs(float(free.weights[0])) * (1 + 1e-9)
    below = distinct_terms(as_tensor(-np.abs(entries)), 1, (NonNegative(),) * 3)[0]
    assert float(below.weights[0]) == 0
