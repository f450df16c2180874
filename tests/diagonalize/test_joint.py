"""The paper's method and its choices."""

from __future__ import annotations

import numpy as np
import pytest

import codiag
from assertions import assert_same_factors
from cases import METHODS
from codiag.diagonalize import QRJ1D, UWEDGE, Jacobi, TwoSided
from codiag.methods import NOJD, OJD
from codiag.metrics import nearest_error
from codiag.synthetic import noisy_tensor, unit_factor
from codiag.tensors import FactoredTensor
from experiments.simulated import orthogonal_model


class TestJoint:
    @pytest.mark.parametrize(
        "method",
        [
            OJD(diagonalizer=Jacobi()),
            NOJD(diagonalizer=QRJ1D(max_sweeps=2000)),
            NOJD(directions="orthonormal", n_projections=5, diagonalizer=UWEDGE()),
        ],
        ids=["OJD Jacobi", "NOJD QRJ1D", "NOJD few"],
    )
    def test_any_diagonalizer(self, method):
        problem = METHODS["ojd1"].problem((6, 6, 6), 6, symmetric=True)
        assert_same_factors(codiag.factorize(problem.tensor, 6, method=method, symmetric=True, rng=0), problem, 1e-6)

    def test_asymmetric_tensors(self):
        method = OJD(diagonalizer=TwoSided(orthogonal=True))
        problem = METHODS["ojd1"].problem((5, 6, 7), 4, symmetric=False)
        assert_same_factors(codiag.factorize(problem.tensor, 4, method=method, rng=0), problem, 1e-7)

    def test_directions_of_ones_own(self):
        problem = METHODS["nojd1"].problem((6, 6, 6), 6, symmetric=True)
        own = np.random.default_rng(0).standard_normal((7, 6))
        method = NOJD(directions=own, plug_in=False, compress=False)
        assert_same_factors(codiag.factorize(problem.tensor, 6, method=method, symmetric=True, rng=0), problem, 1e-7)
        with pytest.raises(ValueError, match="^directions must"):
            codiag.factorize(problem.tensor, 6, method=NOJD(directions=own[:, :5]), rng=0)

    def test_plug_in_lowers_the_error_under_noise(self):
        """The paper's claim, on its orthogonal model."""
        errors = {False: [], True: []}
        for seed in range(10):
            problem = orthogonal_model(20, 20, noise=0.01, seed=seed)
            for plug_in, found in errors.items():
                fit = codiag.factorize(problem.tensor, 20, method=OJD(plug_in=plug_in), symmetric=True, rng=seed)
                found.append(nearest_error(fit, problem))
        assert np.mean(errors[True]) < 0.8 * np.mean(errors[False])

    def test_whitening_by_a_second_moment(self):
        factor, weights = unit_factor(8, 5, 0), np.linspace(1, 2, 5)
        tensor = FactoredTensor(weights, [factor] * 3).to_dense()
        forced = codiag.factorize(tensor, 5, method=OJD(), symmetric=True, rng=0).factors[0]
        np.testing.assert_allclose(forced.T @ forced, np.eye(5), atol=1e-8)
        moment = (factor * weights) @ factor.T

        def asked(second_moment):
            return codiag.Problem(tensor, 5, symmetric=True, second_moment=second_moment)

        assert_same_factors(codiag.factorize(asked(moment), method="ojd1", rng=0), [factor] * 3, 1e-9)
        with pytest.raises(ValueError, match="positive definite on"):
            codiag.factorize(asked(np.diag([1.0] * 3 + [0] * 5)), method="ojd1", rng=0)
        with pytest.raises(ValueError, match="^second_moment must"):
            asked(np.eye(3))

    def test_what_does_not_fit_an_asymmetric_tensor(self):
        problem = noisy_tensor((5, 5, 5), 4, rng=0)
        with pytest.raises(ValueError, match="is for symmetric matrices"):
            codiag.factorize(problem.tensor, 4, method=NOJD(diagonalizer=UWEDGE()), rng=0)

    @pytest.mark.parametrize(
        ("make", "words"),
        [
            (lambda: NOJD(diagonalizer=Jacobi()), "NOJD needs a"),
            (lambda: OJD(diagonalizer=UWEDGE()), "OJD needs a"),
            (lambda: NOJD(directions="best"), "^directions must"),
            (lambda: NOJD(plug_in="twice"), "^plug_in must"),
            (lambda: NOJD(n_projections=1), "^n_projections must"),
            (lambda: NOJD(plug_in=[1]), "^plug_in must"),
        ],
    )
    def test_contradictions(self, make, words):
        with pytest.raises(ValueError, match=words):
            make()

    @pytest.mark.parametrize("diagonalizer", ["jacobi", UWEDGE])
    def test_diagonalizers_that_are_none(self, diagonalizer):
        with pytest.raises(TypeError, match="^diagonalizer must"):
            NOJD(diagonalizer=diagonalizer)

    def test_one_matrix_is_not_enough(self):
        with pytest.raises(ValueError, match="must have at"):
            codiag.factorize(np.random.default_rng(0).standard_normal((5, 5, 1)), 3, method="nojd0")

    @pytest.mark.parametrize("name", ["ojd0", "nojd1"])
    def test_a_rank_that_cannot_be_diagonalized(self, name):
        with pytest.raises(ValueError, match="^rank must"):
            codiag.factorize(np.random.default_rng(0).standard_normal((3, 4, 5)), 5, method=name)
