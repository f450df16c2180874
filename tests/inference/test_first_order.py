"""Measured errors against the perturbation lemmas, and the error bars made of them."""

from __future__ import annotations

import numpy as np
import pytest

from cases import COMPLEX, DIAGONALIZERS
from codiag.metrics import match_components
from codiag.synthetic import matrix_stack, orthonormal_factor, unit_factor
from experiments.theory import first_order_perturbation
from reference.first_order import afsari, cardoso, two_sided

FREE = [name for name, case in DIAGONALIZERS.items() if not case.orthogonal and case.symmetric]
ORTHOGONAL = [name for name, case in DIAGONALIZERS.items() if case.orthogonal and case.symmetric]


def displacements(case, method, size, n, eps):
    """Return the displacement of the factors by noise of size eps, measured and predicted."""
    clean = case.stack(size, n, seed=1)
    noise = matrix_stack(np.zeros((size, size)), n, noise=1.0, rng=2).matrices
    predicted = eps * (cardoso if case.orthogonal else afsari)(clean.factor, clean.diagonals, noise)
    fit = method(clean.matrices + eps * noise, rng=0)
    return match_components(fit.factor, clean.factor).factors[0] - clean.factor, predicted


@pytest.mark.parametrize("eps", [1e-6, 1e-4, 1e-3])
@pytest.mark.parametrize("name", ORTHOGONAL + FREE)
def test_error_is_the_first_order_prediction(name, eps):
    case = DIAGONALIZERS[name]
    measured, predicted = displacements(case, case.exactly, 8, 12, eps)
    assert np.linalg.norm(measured) / np.linalg.norm(predicted) == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize("eps", [1e-6, 1e-4, 1e-3])
@pytest.mark.parametrize("name", ["TwoSided", "TwoSided orthogonal"])
def test_error_of_both_sides_is_the_first_order_prediction(name, eps):
    case = DIAGONALIZERS[name]
    clean = case.stack(8, 12, seed=1)
    noise = np.random.default_rng(2).standard_normal(clean.matrices.shape)
    sides = (clean.factor, clean.right_factor)
    predicted = two_sided(*sides, clean.diagonals, noise, orthogonal=case.orthogonal)
    fit = case.exactly(clean.matrices + eps * noise, rng=0)
    for found, true, expected in zip(match_components(fit, sides).factors, sides, predicted, strict=True):
        assert np.linalg.norm(found - true) / (eps * np.linalg.norm(expected)) == pytest.approx(1, abs=2e-3)
        # The remainder is of second order: eps times what it multiplies, which is of order ten here.
        assert np.linalg.norm(found - true - eps * expected) < 30 * eps * np.linalg.norm(found - true)


@pytest.mark.parametrize("eps", [1e-6, 1e-4])
@pytest.mark.parametrize("name", ["OrthogonalNewton", "UWEDGE"])
def test_defaults_stop_only_where_nothing_visible_is_left(name, eps):
    """The statistical stop leaves under a hundredth of a standard error, so the ratio still holds to that."""
    case = DIAGONALIZERS[name]
    measured, predicted = displacements(case, case.method, 30, 40, eps)
    assert np.linalg.norm(measured) / np.linalg.norm(predicted) == pytest.approx(1, abs=1e-3)
    assert np.linalg.norm(measured - predicted) < 1e-2 * np.linalg.norm(measured)


CALIBRATED = ["OrthogonalNewton", "UWEDGE", "TwoSided", "TwoSided orthogonal"]
CASES = DIAGONALIZERS | COMPLEX
EVERY_CALIBRATED = pytest.mark.parametrize("name", [name for name in CASES if name.split(",")[0] in CALIBRATED])


@EVERY_CALIBRATED
@pytest.mark.parametrize("rank", [12, 4])
def test_standard_errors_are_calibrated(name, rank):
    """Over repeated noise, the mean square error of each factor is the square of its standard error."""
    case = CASES[name]
    method = type(case.method)(**{**vars(case.method), "rank": rank})
    clean = case.stack(12, 9, rank=rank)
    squares, predicted = [], []
    for trial in range(120):
        noise = case.noise(12, 9, seed=trial) * 1e-4
        fit = method(clean.matrices + noise, rng=trial)
        matching = match_components(fit.factor, clean.factor)
        squares.append(np.sum(np.abs(matching.factors[0] - clean.factor) ** 2, axis=0))
        predicted.append(fit.standard_errors[matching.permutation] ** 2)
    # 120 trials of about 11 degrees of freedom per factor: 4 % by chance for one factor, 1-2 % for their mean.
    ratio = np.mean(squares, axis=0) / np.mean(predicted, axis=0)
    assert np.mean(ratio) == pytest.approx(1, abs=0.06)
    np.testing.assert_allclose(ratio, 1, atol=0.25)


@EVERY_CALIBRATED
def test_noise_level_is_estimated(name):
    case = CASES[name]
    stack = case.stack(20, 12, noise=3e-4)
    # (20 * 19 / 2 pairs or twice as many) x 10 degrees of freedom: 2-3 % by chance.
    assert case.method(stack.matrices, rng=0).noise == pytest.approx(3e-4, rel=0.08)


def test_two_matrices_say_nothing_about_the_noise_of_free_factors():
    stack = DIAGONALIZERS["UWEDGE"].stack(5, 2, noise=1e-3)
    fit = DIAGONALIZERS["UWEDGE"].method(stack.matrices, rng=0)
    assert np.isnan(fit.noise)
    assert np.all(np.isnan(fit.standard_errors))


def test_right_standard_errors_are_those_of_the_transposed_problem():
    case = DIAGONALIZERS["TwoSided"]
    stack = case.stack(6, 9, noise=1e-3)
    fit = case.exactly(stack.matrices, rng=0)
    mirrored = case.exactly(stack.matrices.transpose(0, 2, 1), rng=0)
    order = match_components(mirrored.factor, fit.right_factor).permutation
    np.testing.assert_allclose(fit.transposed().standard_errors, mirrored.standard_errors[order], rtol=1e-6)


@pytest.mark.parametrize("orthogonal", [True, False])
@pytest.mark.parametrize("value", [-1.0, 0.0, 3.0])
def test_components_that_diagonals_do_not_separate_have_infinite_errors(orthogonal, value):
    """Noise of any size rotates them; a third component with a diagonal of its own has a finite error."""
    rng = np.random.default_rng(0)
    factor = orthonormal_factor(4, 3, rng) if orthogonal else unit_factor(4, 3, rng)
    noise = rng.standard_normal((5, 4, 4))
    diagonals = np.column_stack([np.full((5, 2), value), rng.standard_normal(5)])
    found = first_order_perturbation(factor, diagonals, noise + noise.transpose(0, 2, 1), orthogonal=orthogonal)
    assert np.isinf(found.errors[:2]).all()
    assert np.isfinite(found.errors[2]) or value == 0
    assert not np.isnan(found.displacements).any()
