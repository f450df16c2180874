"""Penalties on components, unimodal columns and shares: formulas, invariances, and what they find."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import isotonic_regression

import codiag
from codiag.constraints import L1, NonNegative, Orthogonal, Prior, Ridge, Simplex, Smooth, Unimodal
from codiag.least_squares import LeastSquares
from codiag.methods import ALS
from codiag.problem import Problem
from codiag.tensors import FactoredTensor

SHAPE, RANK = (12, 6, 5), 2


def spectra(size=12):
    place = np.linspace(0, 1, size)[:, None]
    return np.exp(-(((place - [0.3, 0.65]) / 0.15) ** 2))


def noisy(noise=0.05, seed=0, size=12):
    rng = np.random.default_rng(seed)
    factors = [spectra(size), rng.random((6, 2)), rng.random((5, 2))]
    tensor = FactoredTensor(np.ones(2), factors).to_dense()
    return factors, tensor + noise * rng.standard_normal(tensor.shape)


TARGET = np.where(np.arange(12)[:, None] < [8, 12], spectra(), np.nan)
PENALTIES = {"smooth": Smooth(2.0), "first order": Smooth(3.0, order=1), "prior": Prior(TARGET, 1.5)}
EVERY = pytest.mark.parametrize("rule", PENALTIES.values(), ids=PENALTIES)


def roots(rule):
    """Return the matrices whose squares are the second derivatives of the penalty on each column."""
    unit = np.eye(12)
    columns = [rule.penalty_product(np.repeat(row[:, None], 2, axis=1)) for row in unit]
    for r in range(2):
        matrix = np.stack([column[:, r] for column in columns], axis=1)
        values, vectors = np.linalg.eigh(matrix)
        assert values.min() > -1e-12
        yield (vectors * np.sqrt(np.maximum(values, 0))).T


@EVERY
@pytest.mark.parametrize("symmetric", [False, (1, 2)], ids=["free", "shared"])
def test_value_gradient_and_curvature_are_those_of_the_formula(rule, symmetric):
    """Residuals :math:`L^{1/2} a \\otimes b \\otimes c`, one tensor a component, differentiated numerically."""
    rng = np.random.default_rng(1)
    tensor = rng.standard_normal((12, 5, 5))
    tensor = tensor + tensor.transpose(0, 2, 1)
    problem = Problem(tensor, 2, constraints={0: rule}, symmetric=symmetric)
    objective, halves = LeastSquares(problem), list(roots(rule))
    n_rows = sum(objective.tensor.shape[group[0]] for group in objective.parametrization.groups)
    point = rng.standard_normal((n_rows, 2))

    def residuals(flat):
        a, b, c = objective.parametrization.expand(flat.reshape(point.shape))
        return np.concatenate([np.einsum("i,j,k->ijk", half @ a[:, r], b[:, r], c[:, r]).ravel() for r, half in
                               enumerate(halves)])  # fmt: skip

    flat, step = point.ravel(), 1e-6
    jacobian = np.stack([(residuals(flat + step * e) - residuals(flat - step * e)) / (2 * step)
                         for e in np.eye(flat.size)], axis=1)  # fmt: skip
    plain = LeastSquares(problem.with_constraints(None))
    value, gradient = (ours - theirs for ours, theirs in zip(
        objective.value_and_gradient(point), plain.value_and_gradient(point), strict=True))  # fmt: skip
    assert value == pytest.approx(np.sum(residuals(flat) ** 2) / 2)
    assert_allclose(gradient.ravel(), jacobian.T @ residuals(flat), atol=1e-6)
    assert_allclose(objective.penalty_matrix(point), jacobian.T @ jacobian, atol=1e-6)


@pytest.mark.parametrize("rule", [*PENALTIES.values(), L1(0.05), ["nonnegative", Smooth(2.0)]], ids=repr)
def test_units_do_not_matter(rule):
    """Neither those of the tensor nor the mode in which sizes are; the strength of L1 is in units of the data."""
    _, tensor = noisy()
    one = codiag.factorize(tensor, 2, constraints={0: rule}, rng=0)
    rules = L1(50.0) if isinstance(rule, L1) else rule
    other = codiag.factorize(1000 * tensor, 2, constraints={0: rules}, rng=0)
    assert_allclose(other.weights, 1000 * one.weights, rtol=1e-4)
    assert_allclose(other.factors[0], one.factors[0], atol=1e-4)


@EVERY
def test_sweeps_and_gauss_newton_steps_end_at_one_minimum(rule):
    _, tensor = noisy()
    steps = codiag.factorize(tensor, 2, constraints={0: rule}, rng=0)
    sweeps = codiag.factorize(tensor, 2, constraints={0: rule}, method=ALS(tol=1e-12, max_iter=2000), rng=0)
    assert_allclose(sweeps.to_tensor(), steps.to_tensor(), atol=1e-4)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_smooth_leaves_polynomials_below_its_order_alone(order):
    points = np.arange(9.0)
    for degree in range(4):
        product = Smooth(1.0, order=order).penalty_product(points[:, None] ** degree)
        assert bool(np.allclose(product, 0)) == (degree < order)


def test_strengths_have_their_limits():
    _, tensor = noisy()
    plain = codiag.factorize(tensor, 2, rng=0)
    for rule in (Smooth(0.0), Prior(spectra(), 0.0), L1(0.0)):
        same = codiag.factorize(tensor, 2, constraints={0: rule}, rng=0)
        assert_allclose(same.to_tensor(), plain.to_tensor(), atol=1e-5)
    fixed = codiag.factorize(tensor, 2, constraints={0: Prior(spectra()[:, ::-1], 1e6)}, rng=0)
    unit = spectra()[:, ::-1] / np.linalg.norm(spectra()[:, ::-1], axis=0)
    assert_allclose(np.abs(np.sum(fixed.factors[0] * unit, axis=0)), 1, atol=1e-6)  # in the order of the target
    lines = codiag.factorize(tensor, 2, constraints={0: Smooth(1e8)}, rng=0).factors[0]
    assert np.max(np.abs(np.diff(lines, 2, axis=0))) < 1e-4


def test_rows_without_entries_are_interpolated():
    _, tensor = noisy(noise=1e-4, size=40)
    gap = tensor.copy()
    gap[20] = np.nan
    fit = codiag.factorize(gap, 2, constraints={0: Smooth(1e-3)}, rng=0)
    assert_allclose(fit.to_tensor()[20], tensor[20], atol=0.02)


@pytest.mark.slow
def test_auto_follows_a_right_prior_and_leaves_a_wrong_one():
    factors, tensor = noisy(noise=0.2)
    right = codiag.factorize(tensor, 2, constraints={0: Prior(factors[0], "auto")}, rng=0)
    wrong = codiag.factorize(tensor, 2, constraints={0: Prior(np.roll(factors[0], 5, axis=0), "auto")}, rng=0)
    assert right.problem.constraints[0].strength > 10 * wrong.problem.constraints[0].strength
    plain = codiag.factorize(tensor, 2, rng=0)
    errors = [codiag.factor_error([fit.factors[0]], factors[:1]) for fit in (right, plain)]
    assert errors[0] < errors[1] / 2


@pytest.mark.parametrize("seed", range(8))
def test_no_other_peak_is_nearer(seed):
    rng = np.random.default_rng(seed)
    values, candidates = rng.standard_normal(9) + rng.uniform(-1, 2), []
    for peak in range(10):
        left = isotonic_regression(values[:peak]).x if peak else values[:0]
        right = isotonic_regression(values[peak:], increasing=False).x if peak < 9 else values[:0]
        candidates.append(np.maximum(np.concatenate([left, right]), 0))
    best = min(np.sum((values - one) ** 2) for one in candidates)
    found = Unimodal().project(values[:, None])[:, 0]
    assert np.sum((values - found) ** 2) == pytest.approx(best)
    peak = int(np.argmax(found))
    assert np.all(np.diff(found[: peak + 1]) >= 0)
    assert np.all(np.diff(found[peak:]) <= 0)


@pytest.mark.slow
def test_unimodal_columns_are_nearer_to_noisy_peaks():
    errors = []
    for seed in range(6):
        factors, tensor = noisy(noise=0.15, seed=seed, size=40)
        fits = [codiag.factorize(tensor, 2, constraints={0: rule}, rng=0) for rule in ("nonnegative", "unimodal")]
        errors.append([codiag.factor_error([fit.factors[0]], factors[:1]) for fit in fits])
    plain, unimodal = np.mean(errors, axis=0)
    assert unimodal < plain


def test_l1_finds_the_support_and_is_a_minimum():
    rng = np.random.default_rng(2)
    sparse = np.where(rng.random((30, 2)) < 0.3, rng.uniform(1, 2, (30, 2)), 0.0)
    factors = [sparse, rng.standard_normal((8, 2)), rng.standard_normal((7, 2))]
    tensor = FactoredTensor(np.ones(2), factors).to_dense() + 0.3 * rng.standard_normal((30, 8, 7))
    fit = codiag.factorize(tensor, 2, constraints={0: L1(1.0)}, rng=0)
    order = codiag.match_components(fit.factors[:1], [sparse]).permutation
    assert np.mean((fit.factors[0][:, order] != 0) == (sparse != 0)) > 0.9
    objective = LeastSquares(fit.problem)
    point = objective.parametrization.vectorize(fit._components)
    lowest = objective.value(point)
    moves = 1e-3 * rng.standard_normal((20, *point.shape))
    assert all(objective.value(point + move) >= lowest for move in moves)
    zero = np.concatenate([fit.factors[0] == 0, np.zeros((15, 2), dtype=bool)])
    assert all(objective.value(point + 1e-3 * np.where(zero, move, 0)) > lowest for move in moves)


@pytest.mark.slow
def test_shares_are_found():
    rng = np.random.default_rng(3)
    shares = rng.dirichlet([0.5] * 3, 25)
    factors = [shares, rng.random((8, 3)), rng.random((7, 3))]
    tensor = FactoredTensor(np.ones(3), factors).to_dense()
    fit = codiag.factorize(tensor, 3, constraints={0: "simplex"}, rng=0)
    order = codiag.match_components(fit.factors[:1], [shares]).permutation
    assert_allclose(Simplex.shares(fit.factors[0])[:, order], shares, atol=1e-3)


def test_standard_errors_with_a_prior_are_those_of_a_posterior():
    """Of spectra drawn around the target, with the variance that the strength says."""
    ratios = []
    for seed in range(30):
        rng = np.random.default_rng([5, seed])
        target = rng.standard_normal((12, 2))
        others = [np.linalg.qr(rng.standard_normal((size, 2)))[0] * 10 for size in (6, 5)]
        drawn = target + 0.1 / np.sqrt(4.0) / 100 * rng.standard_normal((12, 2))
        tensor = FactoredTensor(np.ones(2), [drawn, *others]).to_dense() + 0.1 * rng.standard_normal((12, 6, 5))
        fit = codiag.factorize(tensor, 2, constraints={0: Prior(target, 4.0)}, rng=0)
        unit = drawn / np.linalg.norm(drawn, axis=0)
        signs = np.sign(np.sum(unit * fit.factors[0], axis=0))
        ratios.append([np.sum((fit.factors[0] * signs - unit) ** 2), np.sum(fit.standard_errors[0] ** 2)])
    errors, expected = np.mean(ratios, axis=0)
    assert np.sqrt(errors / expected) == pytest.approx(1, abs=0.15)  # 1 / sqrt(2 * 30 * 22) is .03


def test_several_constraints_of_a_mode():
    factors, tensor = noisy()
    fit = codiag.factorize(tensor, 2, constraints={0: ["nonnegative", Smooth(0.1), Prior(factors[0], 0.1)]}, rng=0)
    assert fit.converged
    assert np.all(fit.factors[0] >= 0)
    with pytest.raises(ValueError, match="^constraints of one mode"):
        Problem(tensor, 2, constraints={0: [Orthogonal(), NonNegative()]})
    with pytest.raises(ValueError, match="^constraints of one mode"):
        Problem(tensor, 2, constraints={0: [L1(1.0), Smooth(1.0)]})


@pytest.mark.parametrize("wrong", [-1.0, "much", None])
def test_strengths_that_are_none(wrong):
    for make in (Smooth, L1, Ridge, lambda strength: Prior(np.eye(3), strength)):
        with pytest.raises((ValueError, TypeError), match="^strength must"):
            make(wrong)


def test_targets_that_are_none():
    for wrong in (np.ones(3), np.full((3, 2), np.nan), np.full((3, 2), np.inf)):
        with pytest.raises(ValueError, match="^target must"):
            Prior(wrong, 1.0)
    with pytest.raises(ValueError, match=r"constraints\[0\].*shape \(12, 2\)"):
        Problem(noisy()[1], 2, constraints={0: Prior(np.ones((12, 3)), 1.0)})


def test_files_keep_constraints(tmp_path):
    _, tensor = noisy()
    for rule in (Smooth(0.5, order=1), Prior(TARGET, 0.1), L1(0.1), ["unimodal", Smooth(0.1), Prior(TARGET, 0.1)]):
        fit = codiag.factorize(tensor, 2, constraints={0: rule}, rng=0)
        fit.save(tmp_path / "fit")
        again = codiag.Factorization.load(tmp_path / "fit")
        assert repr(again.problem.constraints[0]) == repr(fit.problem.constraints[0])
        assert_allclose(again.standard_errors, fit.standard_errors)
        assert repr(fit.problem.constraints[0]) in fit.describe()
