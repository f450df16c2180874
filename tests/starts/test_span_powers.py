"""Symmetric tensors of even order with more components than modes measure: power iterations in a span."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import codiag
from codiag.least_squares import Log, symmetric_basis
from codiag.starts import newton_moves, power_iterations, power_roles, power_start, settled, symmetric_powers_in_span
from codiag.synthetic import noisy_tensor, unit_factor
from codiag.tensors import as_tensor, symmetrize
from tests.assertions import assert_same_factors


def random_span(size, order, n_dimensions, seed):
    powers, rng = symmetric_basis(size, order), np.random.default_rng(seed)
    return powers, np.linalg.qr(rng.standard_normal((powers.scales.size, n_dimensions)))[0]


@pytest.mark.parametrize("order", [1, 2, 3])
def test_coordinates_keep_scalar_products_of_powers(order):
    rng, powers = np.random.default_rng(0), symmetric_basis(4, order)
    x, y = rng.standard_normal((2, 4, 5))
    np.testing.assert_allclose(powers.of(x).T @ powers.of(y), (x.T @ y) ** order)
    expected = y * np.sum(x * y, axis=0) ** (order - 1)
    np.testing.assert_allclose(powers.contracted(powers.of(y), x), expected)


def heights_of(powers, basis, vectors):
    return np.sum((basis.T @ powers.of(vectors / np.linalg.norm(vectors, axis=0))) ** 2, axis=0)


@pytest.mark.parametrize(("order", "n_dimensions"), [(2, 6), (2, 14), (3, 10), (3, 40)])
def test_climbs_rise_and_end_at_maxima(order, n_dimensions):
    """In spans of any tensors, which hold no powers: the slope vanishes, and nothing near is higher."""
    powers, basis = random_span(6, order, n_dimensions, 0)
    starts, rng = unit_factor(6, 100, np.random.default_rng(1)), np.random.default_rng(2)
    climbs = power_iterations(powers, basis, starts)[0]
    assert np.all(heights_of(powers, basis, climbs) >= heights_of(powers, basis, starts))
    ends, heights = settled(powers, basis, climbs)
    reached = heights > 0
    assert np.mean(reached) > 0.8  # the others are slow
    ends, heights = ends[:, reached], heights[reached]
    slopes = powers.contracted(basis @ (basis.T @ powers.of(ends)), ends)
    np.testing.assert_allclose(slopes, ends * heights, atol=1e-7)
    near = ends + 1e-2 * rng.standard_normal(ends.shape)
    assert np.mean(heights_of(powers, basis, near) < heights) > 0.95


@pytest.mark.parametrize("order", [2, 3])
def test_a_step_of_newton_squares_the_error(order):
    powers, basis = random_span(5, order, 10, 3)
    ends, heights = settled(
        powers, basis, power_iterations(powers, basis, unit_factor(5, 50, np.random.default_rng(0)))[0]
    )
    ends = ends[:, heights > 0]
    shift = np.random.default_rng(1).standard_normal(ends.shape)
    shift -= ends * np.sum(ends * shift, axis=0)
    errors = []
    for size in (1e-3, 1e-4):
        near = ends + size * shift
        near = near / np.linalg.norm(near, axis=0)
        after = near + newton_moves(powers, basis, near)
        errors.append(np.median(np.linalg.norm(after / np.linalg.norm(after, axis=0) - ends, axis=0)))
    assert errors[1] < 0.02 * errors[0]


@pytest.mark.parametrize(("order", "n_dimensions"), [(2, 4), (2, 18), (3, 8), (3, 50)])
def test_a_shifted_step_never_leads_down(order, n_dimensions, monkeypatch):
    """In small spans, a step without the shift does."""
    monkeypatch.setattr("codiag.starts._span_powers.Limits", lambda: codiag.extending.Limits(max_iter=1))
    powers, basis = random_span(6, order, n_dimensions, 2)
    starts = unit_factor(6, 2000, np.random.default_rng(3))
    before = heights_of(powers, basis, starts)
    assert np.all(heights_of(powers, basis, power_iterations(powers, basis, starts)[0]) >= before - 1e-12)
    unshifted = powers.contracted(basis @ (basis.T @ powers.of(starts)), starts)
    assert np.any(heights_of(powers, basis, unshifted) < before) == (n_dimensions < 10)


@pytest.mark.parametrize(("shape", "rank"), [((6,) * 4, 15), ((10,) * 4, 45), ((4,) * 6, 16)])
@pytest.mark.parametrize("signs", ["positive", "mixed"])
def test_components_are_exact_without_a_random_start(shape, rank, signs):
    """As many as there may be so that the range holds no other powers."""
    rng = np.random.default_rng(4)
    factor = unit_factor(shape[0], rank, rng)
    weights = rng.uniform(1, 2, rank) * (1 if signs == "positive" else rng.choice([-1, 1], rank))
    planted = codiag.tensors.FactoredTensor(weights, [factor] * len(shape))
    fit = codiag.factorize(planted.to_dense(), rank, symmetric=True, rng=0)
    assert fit.history[0].name == "power iterations in the span"
    assert fit.relative_error < 1e-8
    assert_same_factors(fit, (weights, [factor] * len(shape)), 1e-5)


def test_noise_enters_to_first_order():
    """Ten times the noise, ten times the error of the start."""
    errors = []
    for noise in (1e-3, 1e-2):
        planted = noisy_tensor((8,) * 4, 16, symmetric=True, noise=noise, rng=2)
        core = as_tensor(planted.tensor)
        start = power_start(core, power_roles(core.shape, 16, symmetric=True), 16, np.random.default_rng(0), Log())
        errors.append(codiag.factor_error(start, planted))
    assert errors[1] / errors[0] == pytest.approx(10, rel=0.2)


def test_maxima_that_noise_explains_are_kept():
    """Without them, ends that are no components fill the places of those that are left."""
    rng = np.random.default_rng(1)
    factor = unit_factor(10, 40, rng)
    clean = codiag.tensors.FactoredTensor(np.ones(40), [factor] * 4).to_dense()
    noise = symmetrize(rng.standard_normal(clean.shape))
    core = as_tensor(clean + 3e-3 * np.linalg.norm(clean) / np.linalg.norm(noise) * noise)
    start = power_start(core, power_roles(core.shape, 40, symmetric=True), 40, np.random.default_rng(0), Log())
    assert np.min(np.max(np.abs(factor.T @ start.factors[0]), axis=1)) > 0.95


def test_starts_in_the_span_are_repeated_if_a_component_is_hardly_more_than_noise():
    """They agree, while random starts would take far longer and end higher."""
    rng = np.random.default_rng(5)
    truth = codiag.tensors.FactoredTensor(np.r_[np.ones(17), 1e-3], [unit_factor(8, 18, rng)] * 4)
    noise = symmetrize(rng.standard_normal((8,) * 4))
    fit = codiag.factorize(truth.to_dense() + 1e-4 * noise, 18, symmetric=True, rng=0)
    names = [stage.name for stage in fit.history]
    n_ends = sum(name.startswith("rough least squares") for name in names)
    assert names.count("power iterations in the span") == n_ends > 1


def test_rounds_are_few_even_if_the_span_holds_no_powers():
    """Each round leaves at most half of the components."""
    powers, basis = random_span(7, 2, 20, 5)
    calls = []

    class Counted(np.random.Generator):
        def standard_normal(self, *arguments, **options):
            calls.append(arguments)
            return super().standard_normal(*arguments, **options)

    found, _ = symmetric_powers_in_span(powers, basis, np.linspace(1, 2, 20), 0.0, Counted(np.random.PCG64(0)))
    assert found.shape == (7, 20)
    assert len(calls) <= 8
    assert all(abs(found[:, i] @ found[:, j]) < 1 - 1e-6 for i, j in itertools.combinations(range(20), 2))


@pytest.mark.parametrize(
    ("shape", "rank", "symmetric"),
    [((6,) * 4, 16, True), ((6,) * 3, 8, True), ((6,) * 5, 8, True), ((6,) * 4, 10, False), ((70,) * 4, 80, True)],
)
def test_there_are_no_roles_if_the_range_holds_other_powers_or_is_too_large(shape, rank, symmetric):
    assert power_roles(shape, rank, symmetric=symmetric) is None


def test_a_flattening_of_lower_rank_is_refused():
    planted = noisy_tensor((5,) * 4, 4, symmetric=True, rng=0)
    core = as_tensor(planted.tensor)
    with pytest.raises(np.linalg.LinAlgError, match="lower rank"):
        power_start(core, power_roles(core.shape, 8, symmetric=True), 8, np.random.default_rng(0), Log())
    noise = symmetrize(np.random.default_rng(0).standard_normal((5,) * 4))
    fit = codiag.factorize(planted.tensor + 1e-3 * noise, 8, symmetric=True, rng=0)
    assert fit.relative_error < 1e-3 * np.linalg.norm(noise) / np.linalg.norm(planted.tensor)
