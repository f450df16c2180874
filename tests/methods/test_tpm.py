"""The power method and alternating least squares: what they find, where they fail, and what they cost."""

from __future__ import annotations

import numpy as np
import pytest

import codiag
from assertions import assert_same_factors
from codiag.diagonalize import QRJ1D, Jacobi
from codiag.methods import TPM
from codiag.synthetic import unit_factor
from codiag.tensors import FactoredTensor
from experiments.simulated import orthogonal_model


class TestPowerMethod:
    def test_made_for(self):
        problem = orthogonal_model(12, 12, noise=0.0, seed=0)
        fit = codiag.factorize(problem.tensor, 12, method=TPM(), symmetric=True, rng=0)
        assert_same_factors(fit, problem, 1e-6)
        assert sum(stage.flops for stage in fit.history) > 0

    @pytest.mark.filterwarnings("ignore::codiag.ConvergenceWarning")
    def test_free_factors_without_whitening(self):
        factor = unit_factor(10, 10, 3)
        tensor = FactoredTensor(np.linspace(1, 2, 10), [factor] * 3).to_dense()
        fit = codiag.factorize(tensor, 10, method=TPM(), symmetric=True, rng=0)
        assert codiag.factor_error(fit, [factor] * 3) > 0.1

    def test_whitening_helps_the_power_method(self):
        factor, weights = unit_factor(10, 6, 3), np.linspace(1, 2, 6)
        tensor = FactoredTensor(weights, [factor] * 3).to_dense()
        problem = codiag.Problem(tensor, 6, symmetric=True, second_moment=(factor * weights) @ factor.T)
        assert_same_factors(codiag.factorize(problem, method=TPM(), rng=0), [factor] * 3, 1e-6)

    def test_what_is_refused(self):
        with pytest.raises(ValueError, match="^rank must"):
            codiag.factorize(np.random.default_rng(0).standard_normal((3, 4, 5)), 4, method=TPM())

    def test_flops_are_those_of_the_paper(self):
        """Jacobi: 2 d L (d k - k (k - 1) / 2) a sweep; QRJ1D: 4 d^3 L; the power method: L d^3, times steps and two."""
        assert Jacobi().sweep_flops(7, 10) == 2 * 10 * 7 * (100 - 45)
        assert QRJ1D().sweep_flops(7, 10) == 4 * 1000 * 7
        problem = orthogonal_model(10, 10, noise=0.0, seed=0)
        stage = codiag.factorize(problem.tensor, 10, method=TPM(n_restarts=3), symmetric=True, rng=0).history[0]
        assert stage.flops == 2 * 3 * 1000 * stage.n_iter
