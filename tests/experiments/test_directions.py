"""Projections: the law of random directions, expected errors and optimal directions, and the worst noise."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose

import codiag
from codiag.diagonalize import UWEDGE
from codiag.methods import NOJD
from codiag.synthetic import mild_factor, orthonormal_factor, unit_factor
from codiag.tensors import FactoredTensor, symmetrize
from experiments.estimators.optimal import OptimalNOJD
from experiments.simulated import operator_norm
from experiments.theory import (
    error_bound,
    expected_errors,
    first_order_perturbation,
    optimal_directions,
    project_noise,
    projected_diagonals,
    projections_for_ratio,
    random_projection_ratio,
    worst_errors,
    worst_noise,
)

WEIGHTS = np.linspace(1.0, 0.4, 6)


def displacements(factor, weights, noise, directions, orthogonal):
    """Return the first-order displacements for a noise tensor, its projections made symmetric."""
    stack = project_noise(noise, directions)
    diagonals = projected_diagonals(factor, weights, directions)
    stack = (stack + stack.transpose(0, 2, 1)) / 2
    return first_order_perturbation(factor, diagonals, stack, orthogonal=orthogonal).displacements


def squared_errors(factor, weights, directions, orthogonal, symmetric):
    """Return the expected squared errors, exactly: first-order errors of every unit of noise, squared and summed."""
    d = factor.shape[0]
    total = np.zeros(factor.shape[1])
    for index in np.ndindex(d, d, d):
        unit = np.zeros((d, d, d))
        unit[index] = 1
        unit = symmetrize(unit) if symmetric else unit
        total += np.sum(displacements(factor, weights, unit, directions, orthogonal) ** 2, axis=0)
    return total


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("rank", [5, 3])
@pytest.mark.parametrize("orthogonal", [True, False])
def test_expected_errors_are_the_sum_over_all_entries_of_the_noise(orthogonal, rank, symmetric):
    factor = (orthonormal_factor if orthogonal else mild_factor)(5, rank, 0)
    directions = np.random.default_rng(1).standard_normal((7, 5))
    found = expected_errors(factor, -WEIGHTS[:rank], directions, orthogonal=orthogonal, symmetric=symmetric)
    assert_allclose(found**2, squared_errors(factor, WEIGHTS[:rank], directions, orthogonal, symmetric), rtol=1e-9)


@pytest.mark.parametrize(("d", "k", "n"), [(4, 4, 6), (6, 2, 8), (8, 8, 20), (10, 5, 12)])
@pytest.mark.parametrize("symmetric", [True, False])
def test_random_directions_have_their_law_whatever_the_rank(d, k, n, symmetric):
    """The mean of squares over directions is within 4 standard errors; from n = 6 on, fourth moments exist."""
    rng = np.random.default_rng([d, k, n])
    factor, weights = orthonormal_factor(d, k, 0), np.linspace(1, 0.3, k)
    limit = expected_errors(factor, weights, np.eye(d), orthogonal=True, symmetric=symmetric)
    ratios = []
    for _ in range(400):
        errors = expected_errors(factor, weights, rng.standard_normal((n, d)), orthogonal=True, symmetric=symmetric)
        ratios.append(errors[0] ** 2 / limit[0] ** 2)
    law = random_projection_ratio(d, n, symmetric=symmetric) ** 2
    assert abs(np.mean(ratios) - law) < 4 * np.std(ratios) / 20


def test_the_number_of_projections_is_the_least_for_a_ratio():
    for size, symmetric in ((10, True), (57, True), (10, False)):
        number = projections_for_ratio(1.1, size, symmetric=symmetric)
        below, above = (random_projection_ratio(size, n, symmetric=symmetric) for n in (number - 1, number))
        assert above <= 1.1 < below
    assert projections_for_ratio(1.1, 100) == np.ceil(2 + 100 / 0.42)
    assert random_projection_ratio(10, 2) == np.inf


def test_isotropic_directions_are_best_for_orthogonal_factors_and_for_single_coefficients():
    """Gauss and Markov: no other metric has a smaller variance of any coefficient."""
    rng = np.random.default_rng(0)
    factor, free = orthonormal_factor(5, 5, 0), mild_factor(5, 5, 0)
    for _ in range(20):
        directions = rng.standard_normal((6, 5))
        for symmetric in (True, False):
            best, other = (
                expected_errors(factor, WEIGHTS[:5], rows, orthogonal=True, symmetric=symmetric)
                for rows in (np.eye(5), directions)
            )
            assert np.all(best <= other * (1 + 1e-12))
    rows = np.random.default_rng(1).standard_normal((6, 5))
    variances = []
    for metric in (np.eye(5), rows, np.linalg.inv(free)):
        entries = [
            first_order_perturbation(
                free, projected_diagonals(free, WEIGHTS[:5], metric), project_noise(unit, metric), orthogonal=False
            ).matrix
            for unit in white_units(5)
        ]
        variances.append(np.sum(np.square(entries), axis=0))
    assert np.all(variances[0] <= variances[1] * (1 + 1e-9))
    assert np.all(variances[0] <= variances[2] * (1 + 1e-9))


def white_units(d):
    """Yield the noise of independent entries, unit by unit, symmetric in the two modes of the matrices."""
    for index in np.ndindex(d, d, d):
        unit = np.zeros((d, d, d))
        unit[index] += 0.5
        unit[index[1], index[0], index[2]] += 0.5
        yield unit


@pytest.mark.parametrize("symmetric", [True, False])
def test_optimal_directions_beat_isotropic_ones_and_those_of_factors(symmetric):
    factor = unit_factor(6, 6, 3)
    weights = np.ones(6)

    def total(rows):
        return np.sum(expected_errors(factor, weights, rows, orthogonal=False, symmetric=symmetric) ** 2)

    best = optimal_directions(factor, weights, symmetric=symmetric)
    floored = optimal_directions(factor, weights, symmetric=symmetric, floor=0.3)
    assert total(best) < 0.95 * total(np.eye(6))
    assert total(best) <= total(floored) < total(np.eye(6))
    assert total(best) < total(factor.T)
    assert np.linalg.cond(floored) ** 2 <= (6 + 0.3) / 0.3 * (1 + 1e-9)
    rng = np.random.default_rng(0)
    nearby = [total(best @ (np.eye(6) + 1e-4 * rng.standard_normal((6, 6)))) for _ in range(20)]
    assert min(nearby) >= total(best) * (1 - 1e-5)


def test_nojd_projects_along_the_optimal_directions_of_what_it_found():
    factor = unit_factor(5, 5, 4)
    noise = 1e-4 * symmetrize(np.random.default_rng(1).standard_normal((5, 5, 5)))
    tensor = FactoredTensor(np.ones(5), [factor] * 3).to_dense() + noise

    plain = partial(NOJD, plug_in=False)

    def fitted(rows, kind):
        method = kind(directions=rows, compress=False, diagonalizer=UWEDGE(tol=1e-12))
        return codiag.factorize(tensor, 5, method=method, symmetric=True, rng=0)

    first = fitted(np.eye(5), plain)
    rows = optimal_directions(first.factors[0], first.weights, floor=0.3)
    both = fitted(np.eye(5), OptimalNOJD)
    assert codiag.factor_error(both, fitted(rows, plain)) < 1e-8
    assert codiag.factor_error(both, first) > 1e-5


def test_optimal_directions_of_a_tensor_without_symmetry_lower_its_error():
    """Independent entries of noise: the mean gain in squared error, over isotropic directions, is positive."""
    rng = np.random.default_rng(5)
    factors = [unit_factor(4, 4, seed) for seed in (0, 6, 7)]
    clean = FactoredTensor(np.ones(4), factors).to_dense()
    gains = []
    for _ in range(25):
        tensor = clean + 1e-5 * rng.standard_normal((4, 4, 4))
        errors = []
        for kind in (partial(NOJD, plug_in=False), OptimalNOJD):
            method = kind(directions="orthonormal", n_projections=4)
            fit = codiag.factorize(tensor, 4, method=method, symmetric=False, rng=0)
            errors.append(codiag.factor_error(fit, factors) ** 2)
        gains.append(errors[0] - errors[1])
    assert np.mean(gains) > 3 * np.std(gains) / 5


def test_optimal_directions_of_order_four_are_refused():
    with pytest.raises(ValueError, match="order 3"):
        codiag.factorize(np.ones((3, 3, 3, 3)), 2, method=OptimalNOJD())


@pytest.mark.parametrize(("size", "rank"), [(5, 5), (6, 4)])
def test_worst_noise_attains_the_errors_and_none_exceeds_the_bounds(size, rank):
    weights = WEIGHTS[:rank]
    orthonormal, free = orthonormal_factor(size, rank, 0), mild_factor(size, rank, 1)
    inverse = np.linalg.pinv(free)
    rng = np.random.default_rng(2)
    for factor, orthogonal, plug_in, rows in (
        (orthonormal, True, None, np.eye(size)),
        (orthonormal, True, True, orthonormal.T),
        (free, False, True, inverse),
        (free, False, False, np.eye(size)),
    ):
        worst = worst_errors(factor, weights, orthogonal=orthogonal, plug_in=plug_in)
        assert np.all(worst.attained <= worst.bound * (1 + 1e-12))
        for j in range(rank):
            aside = factor @ rng.standard_normal((rank, 1 if plug_in or orthogonal else 100))  # in the range
            aside -= factor[:, [j]] * (factor[:, j] @ aside)
            noises = [worst_noise(np.linalg.pinv(factor)[j], other) for other in (None, *aside.T)]
            moved = [displacements(factor, weights, noise, rows, orthogonal)[:, j] for noise in noises]
            moved = np.linalg.norm(moved, axis=1)
            assert max(moved) <= worst.bound[j] * (1 + 1e-9)
            if orthogonal:
                assert_allclose(moved[0], worst.attained[j], rtol=1e-9)
            elif plug_in:
                assert moved[1] >= worst.attained[j] * (1 - 1e-9)
            else:
                assert max(moved) >= worst.attained[j] * 0.9  # the plane of `worst_errors` is none of these 100
        for _ in range(10):
            noise = symmetrize(rng.standard_normal((size,) * 3))
            noise /= operator_norm(noise)
            moved = np.linalg.norm(displacements(factor, weights, noise, rows, orthogonal), axis=0)
            assert np.all(moved <= worst.bound)


def test_worst_noise_has_unit_operator_norm():
    rng = np.random.default_rng(0)
    direction, other, *_ = vectors = unit_factor(5, 2000, 0).T
    for noise, first in ((worst_noise(3 * direction), direction), (worst_noise(direction, 2 * other), other)):
        assert_allclose(noise, symmetrize(noise), atol=1e-12)
        assert_allclose(abs(np.einsum("abc,a,b,c", noise, first, direction, direction)), 1)
        triples = [rng.permutation(vectors) for _ in range(3)]
        for rows in (triples, [vectors] * 3):
            assert np.max(np.abs(np.einsum("abc,na,nb,nc->n", noise, *rows, optimize=True))) <= 1 + 1e-12


def test_the_sharp_bound_is_below_the_papers_and_both_grow_like_the_root_of_the_rank():
    rng = np.random.default_rng(0)
    for rank in (2, 5, 20):
        weights = rng.uniform(0.1, 2, rank)
        worst = worst_errors(np.eye(rank), weights, orthogonal=True)
        assert np.all(worst.bound <= error_bound(np.eye(rank), weights, 1.0, orthogonal=True) * (1 + 1e-12))
        equal = worst_errors(np.eye(rank), np.ones(rank), orthogonal=True)
        assert_allclose(equal.attained, np.sqrt(rank - 1) / 2)
        papers = error_bound(np.eye(rank), np.ones(rank), 1.0, orthogonal=True)
        assert_allclose(papers / equal.attained, 4 * np.sqrt(rank / (rank - 1)))


def test_the_printed_theorem_of_free_random_projections_needs_the_norm_of_the_factors():
    """Equal cosines of 0.6: the attained error grows like the rank, the bound like its root times constants."""
    ratios = []
    for rank in (30, 120):
        gram = 0.4 * np.eye(rank) + 0.6
        factor = np.linalg.cholesky(gram).T
        attained = worst_errors(factor, np.ones(rank), orthogonal=False, plug_in=False).attained[0]
        printed = error_bound(factor, np.ones(rank), 1.0, orthogonal=False, n_projections=10**18)[0]
        ratios.append(attained / printed)
        assert attained <= printed * np.linalg.norm(factor, 2)
    assert 2 < ratios[1] / ratios[0] < 2.5  # it tends to the root of 4


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: random_projection_ratio(0, 5), "^size must"),
        (lambda: projections_for_ratio(1.0, 5), "^ratio must"),
        (lambda: projections_for_ratio(1 + 1e-16 + 2e-16, 10**6), "^ratio must"),
        (lambda: expected_errors(np.eye(3), np.ones(3), np.eye(3)[:1], orthogonal=False), "tell all pairs"),
        (lambda: optimal_directions(np.ones((3, 2)), np.ones(2)), "parallel columns"),
        (lambda: worst_errors(np.eye(3), np.ones(3), orthogonal=False), "^plug_in must"),
        (lambda: worst_noise(np.zeros(3)), "^direction must"),
        (lambda: worst_noise(np.ones(3), np.ones(3)), "^other must"),
    ],
)
def test_what_has_no_meaning_is_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()
