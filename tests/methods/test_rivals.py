"""The paper's rivals: each finds what it is made for, and fails where theory says."""

from __future__ import annotations

import numpy as np
import pytest

import codiag
from assertions import assert_same_factors
from codiag.diagonalize import QRJ1D, Jacobi, TwoSided
from codiag.methods import ALS, SD2, TPM, Givens, Lathauwer
from codiag.synthetic import noisy_tensor, unit_factor
from codiag.tensors import FactoredTensor
from experiments.simulated import orthogonal_model


class TestRivals:
    @pytest.mark.parametrize("method", [TPM(), Givens(), SD2(), Lathauwer()], ids=lambda method: type(method).__name__)
    def test_made_for(self, method):
        problem = orthogonal_model(12, 12, noise=0.0, seed=0)
        fit = codiag.factorize(problem.tensor, 12, method=method, seed=0)
        assert_same_factors(fit, problem, 1e-6)
        assert sum(stage.flops for stage in fit.stages) > 0

    @pytest.mark.parametrize("method", [SD2(), Lathauwer()], ids=lambda method: type(method).__name__)
    def test_free_factors_without_noise(self, method):
        problem = noisy_tensor((12, 12, 12), 12, symmetric=True, seed=0)
        assert_same_factors(codiag.factorize(problem.tensor, 12, method=method, seed=0), problem, 1e-6)

    @pytest.mark.parametrize("method", [TPM(), Givens()], ids=lambda method: type(method).__name__)
    @pytest.mark.filterwarnings("ignore::codiag.ConvergenceWarning")
    def test_free_factors_without_whitening(self, method):
        factor = unit_factor(10, 10, 3)
        tensor = FactoredTensor(np.linspace(1, 2, 10), [factor] * 3).to_dense()
        assert codiag.factor_error(codiag.factorize(tensor, 10, method=method, seed=0), [factor] * 3) > 0.1

    def test_whitening_helps_the_power_method(self):
        factor, weights = unit_factor(10, 6, 3), np.linspace(1, 2, 6)
        tensor = FactoredTensor(weights, [factor] * 3).to_dense()
        problem = codiag.Problem(tensor, 6, second_moment=(factor * weights) @ factor.T)
        assert_same_factors(codiag.factorize(problem, method=TPM(), seed=0), [factor] * 3, 1e-6)

    def test_two_projections_are_unstable(self):
        """Where many projections at once are not: the paper's point."""
        problem = orthogonal_model(30, 30, noise=0.01, seed=0)
        errors = [
            codiag.factor_error(codiag.factorize(problem.tensor, 30, method=method, seed=0), problem)
            for method in ("sd2", "ojd1")
        ]
        assert errors[0] > 3 * errors[1]

    def test_lathauwer_finds_more_components_than_two_modes_measure(self):
        problem = noisy_tensor((6, 6, 20), 9, seed=0)
        assert_same_factors(codiag.factorize(problem.tensor, 9, method="lathauwer", seed=0), problem, 1e-6)

    @pytest.mark.parametrize(
        ("method", "shape", "rank", "words"),
        [
            (Lathauwer(), (50, 50, 50), 50, r"needs a system of 1500625 x 1275 numbers, 45.9 GB.*use NOJD"),
            (Lathauwer(max_bytes=1e4), (6, 6, 6), 5, "above max_bytes=10000"),
            (Lathauwer(), (3, 3, 4), 5, r"rank must be at most 4, the largest mode.*I = 3 and J = 3"),
            (TPM(), (3, 4, 5), 4, "rank must be at most 3, the smallest mode, for TPM"),
            (SD2(), (3, 4, 5), 5, "rank must be at most 4, the second largest mode, for SD2"),
            (Givens(), (4, 4, 4), 2, "Givens is for symmetric tensors of order three"),
        ],
    )
    def test_what_is_refused(self, method, shape, rank, words):
        with pytest.raises(ValueError, match=words):
            codiag.factorize(np.random.default_rng(0).standard_normal(shape), rank, method=method)

    def test_givens_needs_room(self):
        with pytest.raises(ValueError, match="rank must be at most 3, the size of the modes, for Givens"):
            codiag.factorize(noisy_tensor((3, 3, 3), 2, symmetric=True, seed=0).tensor, 4, method="givens")

    @pytest.mark.parametrize("diagonalizer", [Jacobi(), TwoSided()], ids=["orthogonal", "two-sided"])
    def test_lathauwer_needs_free_symmetric_diagonalizers(self, diagonalizer):
        with pytest.raises(ValueError, match="symmetric diagonalizer with free factors"):
            Lathauwer(diagonalizer=diagonalizer)

    def test_line_search_takes_fewer_sweeps(self):
        """On collinear factors, where plain sweeps creep."""
        rng = np.random.default_rng(0)
        factors = [unit_factor(10, 1, rng) + 0.3 * unit_factor(10, 3, rng) for _ in range(3)]
        tensor = FactoredTensor(np.ones(3), factors).to_dense()
        sweeps = [
            codiag.factorize(tensor, 3, method=ALS(line_search=search, tol=1e-9, max_sweeps=5000), seed=0)
            .stages[-1]
            .sweeps
            for search in (False, True)
        ]
        assert sweeps[1] < 0.7 * sweeps[0]

    def test_flops_are_those_of_the_paper(self):
        """Jacobi: 2 d L (d k - k (k - 1) / 2) a sweep; QRJ1D: 4 d^3 L; the power method: L d^3, times steps and two."""
        assert Jacobi().sweep_flops(7, 10) == 2 * 10 * 7 * (100 - 45)
        assert Jacobi(max_rows=3).sweep_flops(7, 10) == 2 * 10 * 7 * (30 - 3)
        assert QRJ1D().sweep_flops(7, 10) == 4 * 1000 * 7
        problem = orthogonal_model(10, 10, noise=0.0, seed=0)
        stage = codiag.factorize(problem.tensor, 10, method=TPM(n_restarts=3), seed=0).stages[0]
        assert stage.flops == 2 * 3 * 1000 * stage.sweeps
