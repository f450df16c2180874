"""The paper's lemmas and theorems, each as a test."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import codiag
from codiag.diagnosis import uniqueness_moduli
from codiag.diagonalize import UWEDGE, OrthogonalNewton
from codiag.metrics import match_components
from codiag.synthetic import matrix_stack, mild_factor, orthonormal_factor, unit_factor
from codiag.tensors import FactoredTensor, symmetrize
from experiments.paper.incoherence import coherent_factor
from experiments.simulated import operator_norm, paper_tensor, unit_noise
from experiments.theory import (
    afsari_bound,
    error_bound,
    first_order_perturbation,
    minimum_projections,
    project_noise,
    projected_diagonals,
    projection_concentration,
    projections_needed,
)
from reference.first_order import afsari, cardoso

WEIGHTS = np.linspace(1.0, 0.4, 6)


def factors(orthogonal, size=6, rank=6, seed=0):
    return (orthonormal_factor if orthogonal else mild_factor)(size, rank, seed)


@pytest.mark.parametrize("orthogonal", [True, False])
def test_the_error_matrix_is_that_of_the_lemmas(orthogonal):
    factor = factors(orthogonal)
    diagonals = np.random.default_rng(1).standard_normal((9, 6))
    noise = matrix_stack(np.zeros((6, 6)), 9, noise=1.0, rng=2).matrices
    found = first_order_perturbation(factor, diagonals, noise, orthogonal=orthogonal)
    assert_allclose(found.displacements, (cardoso if orthogonal else afsari)(factor, diagonals, noise), atol=1e-10)
    assert_allclose(found.errors, np.linalg.norm(found.displacements, axis=0))


@pytest.mark.parametrize("orthogonal", [True, False])
def test_below_full_rank_it_is_what_is_measured(orthogonal):
    factor = factors(orthogonal, 9, 4)
    diagonals = np.random.default_rng(1).standard_normal((7, 4))
    noise = matrix_stack(np.zeros((9, 9)), 7, noise=1.0, rng=2).matrices
    method = OrthogonalNewton(rank=4, tol=1e-12) if orthogonal else UWEDGE(rank=4, tol=1e-12)
    fit = method((factor * diagonals[:, None]) @ factor.T + 1e-6 * noise, rng=0)
    moved = match_components(fit.factor, factor).factors[0] - factor
    assert_allclose(
        moved / 1e-6, first_order_perturbation(factor, diagonals, noise, orthogonal=orthogonal).displacements, atol=1e-3
    )


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_afsaris_bound_is_above_every_entry(seed):
    factor = unit_factor(5, 5, seed)
    diagonals = np.random.default_rng(seed).standard_normal((6, 5))
    noise = matrix_stack(np.zeros((5, 5)), 6, noise=1.0, rng=seed).matrices
    entries = np.abs(first_order_perturbation(factor, diagonals, noise, orthogonal=False).matrix)
    assert np.all(entries <= afsari_bound(factor, diagonals, noise) * (1 + 1e-9))


def pair_terms(factor, noise):
    """Return p_ij and r_ij of the paper, (k, k, d)."""
    scaled = factor * WEIGHTS
    inverse = np.linalg.inv(factor)
    return scaled.T[:, None] - scaled.T[None], np.einsum("ia,jb,abc->ijc", inverse, inverse, noise)


def test_entries_concentrate_with_random_projections():
    """Lemma: E_ij is p.r / |p|^2 up to 10 log(2 / delta) / sqrt(L) |r| / |p|, and falls to it like the root of L."""
    factor, noise, off = factors(True), unit_noise(6, 3), ~np.eye(6, dtype=bool)
    p, r = pair_terms(factor, noise)
    limit = np.sum(p * r, axis=2) / np.maximum(np.sum(p**2, axis=2), 1e-300)
    scale = np.linalg.norm(r, axis=2) / np.maximum(np.linalg.norm(p, axis=2), 1e-300)
    deviations = []
    for n in (100, 1600):
        gaps = []
        for seed in range(20):
            directions = np.random.default_rng(seed).standard_normal((n, 6))
            diagonals = projected_diagonals(factor, WEIGHTS, directions)
            found = first_order_perturbation(
                factor, diagonals, project_noise(noise, directions), orthogonal=True
            ).matrix
            gaps.append(np.abs(found - limit)[off] / scale[off])
        assert np.quantile(gaps, 0.95) < 10 * np.log(2 / 0.05) / np.sqrt(n)
        deviations.append(np.mean(gaps))
    assert deviations[0] / deviations[1] == pytest.approx(4, rel=0.2)


def test_entries_of_plug_in_projections_are_the_limit():
    factor, noise, off = factors(True), unit_noise(6, 3), ~np.eye(6, dtype=bool)
    p, r = pair_terms(factor, noise)
    diagonals = projected_diagonals(factor, WEIGHTS, factor.T)
    found = first_order_perturbation(factor, diagonals, project_noise(noise, factor.T), orthogonal=True).matrix
    limit = np.sum(p * r, axis=2) / np.maximum(np.sum(p**2, axis=2), 1e-300)
    assert_allclose(found[off], limit[off], atol=1e-10)


def test_moduli_of_uniqueness_concentrate_and_vanish_with_plug_in():
    """Lemma: rho_ij is u_i.u_j up to 10 log(3 / delta) / sqrt(L) with random projections, and zero along inverses."""
    factor = coherent_factor(6, 6, 0.5, [0])
    for n in (400, 6400):
        directions = np.random.default_rng(1).standard_normal((n, 6))
        rho = uniqueness_moduli(projected_diagonals(factor, WEIGHTS, directions))
        assert np.max(np.abs(rho - factor.T @ factor)) < 10 * np.log(3 / 0.05) / np.sqrt(n)
        assert np.max(np.abs(rho - factor.T @ factor)) < 5 / np.sqrt(n)
    plug_in = uniqueness_moduli(projected_diagonals(factor, WEIGHTS, np.linalg.inv(factor)))
    assert_allclose(plug_in, np.eye(6), atol=1e-10)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), orthogonal=st.booleans())
def test_sums_are_bounded_as_the_auxiliary_lemma_says(seed, orthogonal):
    factor = factors(orthogonal, seed=seed)
    p, r = pair_terms(factor, unit_noise(6, seed))
    sums = np.sum(np.sum(p * r, axis=2) ** 2, axis=0)
    inverse = np.linalg.norm(np.linalg.inv(factor), 2)
    assert np.all(sums <= 4 * WEIGHTS.max() * WEIGHTS.sum() * inverse**4)


@pytest.mark.parametrize("orthogonal", [True, False])
@pytest.mark.parametrize("n_projections", [None, 400])
def test_measured_errors_are_under_the_bounds(orthogonal, n_projections):
    for seed in range(10):
        factor, noise = factors(orthogonal, seed=seed), unit_noise(6, [seed, 1])
        tensor = FactoredTensor(WEIGHTS, (factor,) * 3).to_dense() + 1e-4 * noise
        random = np.random.default_rng([seed, 2]).standard_normal((n_projections or 1, 6))
        directions = np.linalg.inv(factor) if n_projections is None else random
        fit = codiag.joint_diagonalize(project_noise(tensor, directions), orthogonal=orthogonal, rng=0)
        errors = np.linalg.norm(match_components(fit.factor, factor).factors[0] - factor, axis=0)
        bound = error_bound(factor, WEIGHTS, 1e-4, orthogonal=orthogonal, n_projections=n_projections)
        assert np.all(errors < bound)
        predicted = first_order_perturbation(
            factor,
            projected_diagonals(factor, WEIGHTS, directions),
            project_noise(noise, directions),
            orthogonal=orthogonal,
        )
        assert_allclose(errors, 1e-4 * predicted.errors, rtol=0.05)


def test_constants_are_those_of_the_appendix():
    factor, spread, n = coherent_factor(6, 6, 0.3, [0]), np.sqrt(WEIGHTS.sum() * WEIGHTS.max()), 10**6
    inverse = np.linalg.norm(np.linalg.inv(factor), 2)
    free = 8 * 0.01 * spread / WEIGHTS.min() ** 2
    assert_allclose(error_bound(factor, WEIGHTS, 0.01, orthogonal=False), free * inverse**3)
    extra = (20 + 50 / (1 - 0.3**2)) / np.sqrt(n) * np.log(15 * 6 * 5 / 0.05)
    assert projection_concentration(factor, n, orthogonal=False) == pytest.approx(extra)
    random = free / (1 - 0.3**2) * inverse**2 * (1 + extra * np.sqrt(6))
    assert_allclose(error_bound(factor, WEIGHTS, 0.01, orthogonal=False, n_projections=n), random)
    plain = factors(True)
    extra = 20 * np.sqrt(2) * np.log(2 * 6 * 5 / 0.05) * np.sqrt(6 / n)
    random = 0.01 * (2 * np.sqrt(2) * spread / WEIGHTS**2 + extra / WEIGHTS)
    assert_allclose(error_bound(plain, WEIGHTS, 0.01, orthogonal=True, n_projections=n), random)
    assert minimum_projections(factor, orthogonal=False) == int(np.ceil((50 / 0.91 * np.log(15 * 30 / 0.05)) ** 2))


def test_bounds_grow_as_they_should():
    factor = factors(True)
    plug_in = error_bound(factor, WEIGHTS, 0.01, orthogonal=True)
    assert_allclose(plug_in, 0.02 * np.sqrt(WEIGHTS.sum()) / WEIGHTS**2)
    assert_allclose(error_bound(factor, WEIGHTS, 0.02, orthogonal=True), 2 * plug_in)
    many = error_bound(factor, WEIGHTS, 0.01, orthogonal=True, n_projections=10**12)
    assert_allclose(many, np.sqrt(2) * plug_in, rtol=1e-3)
    near, far = (coherent_factor(6, 6, mu, [0]) for mu in (0.9, 0.1))
    assert np.all(
        error_bound(near, WEIGHTS, 0.01, orthogonal=False) > error_bound(far, WEIGHTS, 0.01, orthogonal=False)
    )
    assert projection_concentration(factor, 400, orthogonal=True) == pytest.approx(
        projection_concentration(factor, 100, orthogonal=True) / 2
    )
    assert minimum_projections(factor, orthogonal=True, delta=0.1) == int(np.ceil(16 * np.log(2 * 6 * 5 / 0.1) ** 2))


@pytest.mark.parametrize("orthogonal", [True, False])
def test_the_inverse_problem_finds_the_least_number(orthogonal):
    factor = factors(orthogonal)
    options = {"orthogonal": orthogonal, "delta": 0.1}
    limit = error_bound(factor, WEIGHTS, 1e-3, n_projections=10**18, **options).max()
    wanted = 1.2 * limit
    number = projections_needed(wanted, factor, WEIGHTS, 1e-3, **options)
    assert error_bound(factor, WEIGHTS, 1e-3, n_projections=number, **options).max() <= wanted
    least = minimum_projections(factor, **options)
    fewer = error_bound(factor, WEIGHTS, 1e-3, n_projections=number - 1, **options).max()
    assert number == least or fewer > wanted
    assert projections_needed(0.9 * limit, factor, WEIGHTS, 1e-3, **options) is None
    with pytest.raises(ValueError, match="^delta must"):
        minimum_projections(factor, orthogonal=orthogonal, delta=2)


def test_operator_norms():
    factor = orthonormal_factor(7, 4, 0)
    assert operator_norm(FactoredTensor(np.array([1.0, -3.0, 2.0, 0.5]), (factor,) * 3).to_dense(), 0) == pytest.approx(
        3
    )
    noise = unit_noise(6, 1)
    assert_allclose(noise, symmetrize(noise))
    points = np.random.default_rng(0).standard_normal((6, 2000))
    points /= np.linalg.norm(points, axis=0)
    assert np.max(np.abs(np.einsum("abc,an,bn,cn->n", noise, points, points, points))) <= 1


@pytest.mark.parametrize("model", ["authors", "text", "theory"])
@pytest.mark.parametrize("orthogonal", [True, False])
def test_noise_models_are_as_named(model, orthogonal):
    clean, noisy = (paper_tensor(8, 5, orthogonal=orthogonal, noise=eps, model=model, seed=0) for eps in (0.0, 0.1))
    noise = (noisy.tensor - clean.tensor) / 0.1
    gram = clean.factors[0].T @ clean.factors[0]
    assert_allclose(np.diag(gram), 1)
    assert np.allclose(gram, np.eye(5)) == orthogonal
    assert np.allclose(noise, symmetrize(noise)) == (model == "theory" or (model == "authors" and orthogonal))
    if model == "theory":
        assert operator_norm(noise, 5) == pytest.approx(1, rel=1e-3)
    elif model == "text" or not orthogonal:
        assert noise.std() == pytest.approx(1, rel=0.1)
    assert np.all(clean.weights > 0) or model != "authors"
    with pytest.raises(ValueError, match="^model must"):
        paper_tensor(4, 2, orthogonal=True, noise=0.1, model="mine")


def test_diagonals_whose_products_overflow_are_refused():
    diagonals = np.array([[1e300, 1.0], [1.0, 2.0]])
    for function in (afsari_bound, partial(first_order_perturbation, orthogonal=True)):
        with pytest.raises(ValueError, match="^diagonals must"):
            function(np.eye(2), diagonals, np.ones((2, 2, 2)))
