"""Least squares from starts of any kind, and what the default makes of them."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import codiag
from assertions import assert_same_factors
from codiag.methods import ALS, NLS, NOJD, Auto
from codiag.synthetic import noisy_tensor, unit_factor
from codiag.tensors import FactoredTensor


class TestLeastSquares:
    def test_starts(self):
        problem = noisy_tensor((6, 7, 8), 3, noise=1e-3, rng=0)
        truth = (problem.weights, problem.factors)
        first = codiag.factorize(problem.tensor, 3, method=ALS(init=truth), rng=0)
        for init in (truth, (None, problem.factors), first, Auto(), NOJD()):
            fit = codiag.factorize(problem.tensor, 3, method=NLS(init=init), rng=0)
            assert fit.relative_error == pytest.approx(first.relative_error, rel=1e-6)

    @pytest.mark.parametrize(
        ("init", "error", "words"),
        [
            (NOJD, TypeError, "did you forget"),
            ("nojd1", (TypeError, ValueError), "^init must"),
            ((np.ones(3), [np.ones(3)] * 3), ValueError, "factors of shape"),
        ],
    )
    def test_starts_that_are_none(self, init, error, words):
        for method in (ALS, NLS):
            with pytest.raises(error, match=words):
                method(init=init)

    def test_a_start_of_another_shape(self):
        problem = noisy_tensor((6, 7, 8), 3, rng=0)
        with pytest.raises(ValueError, match="^init must"):
            codiag.factorize(problem.tensor, 2, method=NLS(init=(problem.weights, problem.factors)))

    def test_not_converging_is_a_warning_with_numbers(self):
        problem = noisy_tensor((6, 7, 8), 3, noise=0.1, rng=0)
        with pytest.warns(
            codiag.ConvergenceWarning, match=r"ALS did not converge in 2 iterations on .*6 x 7 x 8.* rank 3"
        ):
            fit = codiag.factorize(problem.tensor, 3, method=ALS(max_iter=2), rng=0)
        assert not fit.converged

    def test_a_missed_component_is_found_in_the_residual(self):
        """Start with one component on noise and its own direction free: a local optimum without replacements."""
        problem = noisy_tensor((30,) * 3, 30, symmetric=True, noise=0.01, rng=3)
        factor = problem.factors[0].copy()
        wrong = unit_factor(30, 1, 9)[:, 0]
        weights = problem.weights.copy()
        lost = int(np.argsort(np.abs(weights))[5])
        factor[:, lost], weights[lost] = wrong, 1e-3
        start = (weights, [factor] * 3)
        fit = codiag.factorize(problem.tensor, 30, method=NLS(init=start), symmetric=True, rng=0)
        truth = NLS(init=(problem.weights, problem.factors), max_replacements=0)
        oracle = codiag.factorize(problem.tensor, 30, method=truth, symmetric=True, rng=0)
        assert fit.relative_error <= oracle.relative_error * (1 + 1e-6)

    def test_monitors_see_lifted_components_and_true_errors(self):
        problem = noisy_tensor((10, 11, 12), 3, noise=0.01, rng=0)
        seen = []

        def callback(components, error):
            gap = np.linalg.norm(problem.tensor - components.to_dense()) / np.linalg.norm(problem.tensor)
            seen.append((error, gap))

        codiag.factorize(problem.tensor, 3, method=Auto(callback=callback), rng=0)
        assert seen
        for error, gap in seen:
            assert error == pytest.approx(gap, rel=1e-8)

    def test_monitors_of_poor_fits_see_the_whole_tensor_too(self):
        tensor = np.random.default_rng(0).poisson(0.1, (10, 11, 12)).astype(float)
        seen = []

        def callback(components, error):
            seen.append((error, np.linalg.norm(tensor - components.to_dense()) / np.linalg.norm(tensor)))

        codiag.factorize(tensor, 2, method=Auto(callback=callback), rng=0)
        for error, gap in seen:
            assert error == pytest.approx(gap, rel=1e-8)


class TestAuto:
    def test_more_components_than_rows(self):
        """Rank above five thirds of all modes: least squares from several starts, and the stages say so."""
        problem = noisy_tensor((6, 6, 6), 10, rng=1)
        fit = codiag.factorize(problem.tensor, 10, rng=0)
        assert fit.history[0].name == "no diagonalization: the rank is too large"
        assert_same_factors(fit, problem, 1e-6)

    def test_modes_taken_together(self):
        """Rank 9 in a tensor of order five whose modes are of size four: pairs of modes make rows and columns."""
        problem = noisy_tensor((4,) * 5, 9, rng=0)
        fit = codiag.factorize(problem.tensor, 9, rng=0)
        assert fit.history[0].name == "diagonalize"
        assert_same_factors(fit, problem, 1e-8)

    def test_a_rank_larger_than_that_of_the_tensor(self):
        problem = noisy_tensor((6, 7, 8), 2, rng=0)
        fit = codiag.factorize(problem.tensor, 4, rng=0)
        assert fit.relative_error < 1e-7
        assert all(np.all(np.isfinite(array)) for array in (fit.weights, *fit.factors))

    def test_even_order_keeps_signs(self):
        factor, weights = unit_factor(6, 3, 0), np.array([2.0, -1.5, 1.0])
        fit = codiag.factorize(FactoredTensor(weights, [factor] * 4).to_dense(), 3, symmetric=True, rng=0)
        assert_allclose(fit.weights, weights, atol=1e-9)
        assert_same_factors(fit, [factor] * 4, 1e-9)

    @pytest.mark.parametrize("shape", [(2, 2, 2), (1, 4, 5), (1, 1, 3), (3, 1, 1)], ids=str)
    def test_tiny_modes(self, shape):
        tensor = np.random.default_rng(0).standard_normal(shape)
        fit = codiag.factorize(tensor, 1, rng=0)
        assert fit.relative_error <= 1
        best = max(codiag.factorize(tensor, 1, method=NLS(n_starts=5), rng=s).weights[0] for s in range(3))
        assert fit.weights[0] == pytest.approx(best, rel=1e-6)

    @pytest.mark.parametrize("size", [1e-120, 1e120])
    def test_extreme_scales(self, size):
        problem = noisy_tensor((5, 6, 7), 3, rng=0)
        assert_same_factors(codiag.factorize(size * problem.tensor, 3, rng=0), problem, 1e-6)
