"""What a fit says about itself where it must not be trusted, and where it may."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest

import codiag
from codiag.least_squares import LeastSquares, noise_excess
from codiag.methods import NLS
from codiag.synthetic import noisy_tensor, unit_factor
from codiag.tensors import DenseTensor, FactoredTensor, symmetrize
from codiag.theory import inflation
from reference.alternating import relative_error


def border_rank_tensor(seed=0, noise=1e-3):
    """A limit of tensors of rank two that has rank three, a b g + a e c + d b c, and noise."""
    rng = np.random.default_rng(seed)
    a, b, c, d, e, g = rng.standard_normal((6, 5))
    clean = sum(np.einsum("i,j,k->ijk", *term) for term in ((a, b, g), (a, e, c), (d, b, c)))
    return clean + noise * rng.standard_normal((5, 5, 5))


class TestCancelling:
    @pytest.mark.parametrize("seed", range(3))
    def test_border_rank_is_not_blessed(self, seed):
        with pytest.warns(codiag.ConvergenceWarning, match="cancel each other.*there may be no best fit with rank 2"):
            fit = codiag.factorize(border_rank_tensor(seed), 2, seed=0)
        told = fit.diagnose()
        assert told.verdicts == ("not", "not")
        assert [pair[:2] for pair in told.degenerate] == [(0, 1)]
        assert told.degenerate[0][2] < -0.95
        assert "There may be no best fit with rank 2; try rank 1" in str(told)

    @pytest.mark.parametrize("seed", range(3))
    def test_what_diagnose_says_of_large_pairs_is_warned_of(self, seed):
        """More components than there are: a pair that cancels and has more energy than the tensor is never silent."""
        tensor = noisy_tensor((6, 7, 8), 3, noise=0.02, seed=seed).tensor
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fit = codiag.factorize(tensor, 6, seed=0)
        told = fit.diagnose()
        large = [pair for pair in told.degenerate if np.sum(np.asarray(fit.weights)[list(pair[:2])] ** 2) > fit.norm**2]
        cancelling = any("cancel each other" in str(warning.message) for warning in caught)
        assert cancelling == bool((large and fit.converged) or fit.weights[0] > 10 * fit.norm)

    def test_components_that_run_off_are_not_converged(self):
        tensor = np.random.default_rng(0).integers(-3, 4, (5, 2, 6)).astype(float)
        with pytest.warns(codiag.ConvergenceWarning, match="cancel each other"):
            fit = codiag.factorize(tensor, 5, seed=0)
        assert fit.weights[0] > 1e2 * fit.norm
        assert not fit.converged

    def test_correlated_components_that_do_not_cancel_pass(self):
        factors = [unit_factor(8, 2, seed) for seed in range(3)]
        for factor in factors:
            factor[:, 1] = factor[:, 0] + 0.5 * factor[:, 1]
        told = codiag.factorize(FactoredTensor(np.array([2.0, 1.0]), factors).to_dense(), 2, seed=0).diagnose()
        assert told.degenerate == ()
        assert told.verdicts == ("well", "well")


class TestRank:
    def test_one_component_is_unique(self):
        tensor = noisy_tensor((4, 5, 6), 1, noise=0.01, seed=0).tensor
        assert str(codiag.factorize(tensor, 1, seed=0).diagnose()) == "1 of 1 component is well determined."

    @pytest.mark.parametrize("symmetric", [True, False])
    @pytest.mark.parametrize("noise", [0.0, 0.01])
    def test_too_low(self, symmetric, noise):
        problem = noisy_tensor((10,) * 3, 4, noise=noise, symmetric=symmetric, seed=1)
        fit = codiag.factorize(problem.tensor, 2, symmetric=symmetric, seed=0)
        told = fit.diagnose()
        assert fit._residual_excess > 1
        assert "well" not in told.verdicts
        assert "The residual is not white noise" in str(told)
        assert "try rank 3" in str(told)

    @pytest.mark.parametrize("symmetric", [True, False])
    @pytest.mark.parametrize("noise", [0.0, 0.01])
    @pytest.mark.filterwarnings("ignore::codiag.ConvergenceWarning")
    def test_too_high(self, symmetric, noise):
        problem = noisy_tensor((10,) * 3, 4, noise=noise, symmetric=symmetric, seed=1)
        told = codiag.factorize(problem.tensor, 5, symmetric=symmetric, seed=0).diagnose()
        assert told.superfluous
        assert "rank 5 may be too high; try rank 4" in str(told)

    @pytest.mark.parametrize("seed", range(3))
    @pytest.mark.filterwarnings("ignore::codiag.ConvergenceWarning")
    def test_far_too_high(self, seed):
        rng = np.random.default_rng(seed)
        tensor = np.einsum("ir,jr,kr->ijk", *(rng.random((size, 3)) ** 2 for size in (24, 22, 20)))
        tensor += 0.01 * rng.standard_normal(tensor.shape)
        told = str(codiag.factorize(tensor, 6, seed=0).diagnose())
        assert "could be left out, all together: rank 6 may be too high; try rank 3, or see codiag.choose_rank." in told

    def test_one_of_two_halves_stays(self):
        rng = np.random.default_rng(0)
        tensor = np.einsum("ir,jr,kr->ijk", *(rng.standard_normal((size, 2)) for size in (6, 7, 8)))
        fit = codiag.factorize(tensor + 0.01 * rng.standard_normal(tensor.shape), 2, seed=0)
        halved = replace(
            fit,
            weights=np.array([fit.weights[0], fit.weights[1] / 2, fit.weights[1] / 2]),
            factors=tuple(factor[:, [0, 1, 1]] for factor in fit.factors),
        )
        told = halved.diagnose()
        assert told.superfluous == (1, 2)
        assert "components 1 and 2 could be left out, though not together: rank 3 may be too high; try rank 2" in str(
            told
        )

    @pytest.mark.parametrize("symmetric", [True, False])
    @pytest.mark.parametrize("noise", [0.0, 0.01, 0.05])
    def test_right(self, symmetric, noise):
        problem = noisy_tensor((12,) * 3, 4, noise=noise, symmetric=symmetric, seed=2)
        told = codiag.factorize(problem.tensor, 4, symmetric=symmetric, seed=0).diagnose()
        assert str(told) == "4 of 4 components are well determined."

    def test_components_of_no_weight_have_unit_columns_and_no_certainty(self):
        fit = codiag.factorize(np.ones((6, 2, 4)), 3, seed=0)
        for factor in fit.factors:
            np.testing.assert_allclose(np.linalg.norm(factor, axis=0), 1)
        without = np.flatnonzero(np.asarray(fit.weights) == 0)
        assert all(fit.diagnose().verdicts[component] == "not" for component in without)
        assert np.all(np.isinf(fit.standard_errors[:, np.asarray(fit.weights) == 0]))


def excess_of(tensor):
    return noise_excess(codiag.Problem(tensor, 1), tensor)


class TestResidual:
    @pytest.mark.parametrize(
        ("shape", "symmetric"), [((8, 9, 10), False), ((4, 30, 6), False), ((12,) * 3, True), ((5,) * 4, True)]
    )
    def test_noise_passes(self, shape, symmetric):
        """By the definition of the edge, all but one in a thousand."""
        rng = np.random.default_rng(0)
        excesses = []
        for _ in range(100):
            entries = rng.standard_normal(shape)
            entries = symmetrize(entries) if symmetric else entries
            excesses.append(excess_of(DenseTensor.of(entries, symmetric=symmetric)))
        assert np.sum(np.array(excesses) > 1) <= 2

    def test_rows_without_entries_change_nothing(self):
        entries = np.random.default_rng(0).standard_normal((10, 9, 8))
        wide = np.zeros((30, 9, 8))
        wide[::3] = entries
        assert excess_of(DenseTensor(wide)) == pytest.approx(excess_of(DenseTensor(entries)))

    def test_a_component_well_above_the_noise_shows(self):
        rng = np.random.default_rng(0)
        sides = [unit_factor(size, 1, rng) for size in (10, 11, 12)]
        weight = 3 * sum(np.sqrt(size) for size in (10, 11, 12))
        entries = FactoredTensor(np.array([weight]), sides).to_dense() + rng.standard_normal((10, 11, 12))
        assert excess_of(DenseTensor(entries)) > 1.5

    def test_a_fit_keeps_what_it_saw(self, tmp_path):
        fit = codiag.factorize(noisy_tensor((6, 7, 8), 2, noise=0.1, seed=0).tensor, 1, seed=0)
        fit.save(tmp_path / "fit.npz")
        assert codiag.Factorization.load(tmp_path / "fit.npz")._residual_excess == fit._residual_excess


class TestConverged:
    @pytest.mark.slow
    @pytest.mark.filterwarnings("ignore::codiag.ConvergenceWarning")
    def test_a_converged_fit_has_nothing_left_to_gain(self):
        """The Gauss-Newton decrement, by a pseudo-inverse written out here, is a millionth of the objective at most."""
        n_converged = 0
        for seed in range(10):
            rng = np.random.default_rng(seed)
            tensor = rng.integers(-2, 3, rng.integers(3, 6, 3)).astype(float)
            fit = codiag.factorize(tensor, 2, seed=0)
            if not fit.converged:
                continue
            n_converged += 1
            objective = LeastSquares(codiag.Problem(tensor, 2), fit.tensor)
            point = objective.layout.pack(fit.tensor)
            slope = objective.value_and_gradient(point)[1].ravel()
            decrement = slope @ np.linalg.pinv(objective.curvature(point).matrix(), rcond=1e-10) @ slope / 2
            assert decrement <= 2e-6 * (fit.relative_error * fit.norm) ** 2 / 2 + 1e-20
        assert n_converged >= 7

    @pytest.mark.parametrize("max_sweeps", [1, 2])
    def test_a_sweep_is_a_step_that_was_taken(self, max_sweeps):
        """Where plain steps are refused, shorter ones are tried: even one sweep lowers the error."""
        rng = np.random.default_rng(0)
        tensor = noisy_tensor((6, 7, 8), 3, noise=0.1, seed=0).tensor
        for _ in range(10):
            start = [rng.uniform(0, 1, (size, 3)) for size in tensor.shape]
            start[2] *= 5  # far too large
            with pytest.warns(codiag.ConvergenceWarning):
                fit = codiag.factorize(
                    tensor, 3, method=NLS(init=(None, start), max_sweeps=max_sweeps, max_replacements=0), seed=0
                )
            assert fit.relative_error < 0.9 * relative_error(tensor, start)


class TestAdvice:
    def test_other_components_multiply_errors_unless_they_are_orthogonal(self):
        """Two components of cosine c in every mode: errors of the least determined direction grow by 1 / (1 - c^2)."""
        rng, found = np.random.default_rng(0), []
        for cosine in (0.0, 0.7):
            turn = np.linalg.cholesky((1 - cosine) * np.eye(2) + cosine).T
            factors = [np.linalg.qr(rng.standard_normal((size, 2)))[0] @ turn for size in (14, 15, 16)]
            tensor = 4 * np.einsum("ir,jr,kr->ijk", *factors) + 0.02 * rng.standard_normal((14, 15, 16))
            fit = codiag.factorize(tensor, 2, seed=0)
            found.append(inflation(fit, 0, fit.weights))
        assert found[0] == pytest.approx(1, abs=0.1)
        assert 1.1 < found[1] < 1 / (1 - 0.7**2)

    def test_components_with_one_reason_share_a_line(self):
        tensor = np.random.default_rng(0).standard_normal((9, 10, 11))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            diagnosis = codiag.factorize(tensor, 3, seed=0).diagnose()
        reason = "removing it"
        told = replace(diagnosis, verdicts=("not", "well", "not"), reasons=(reason, "", reason), advice=())
        assert str(told).splitlines()[1].startswith("Components 0 and 2 are not determined (standard errors up to ")
        assert str(told).splitlines()[1].endswith("removing any one of them.")

    @pytest.mark.parametrize(("offset", "is_said"), [(0.0, False), (-2.0, True), (2.0, False)])
    def test_entries_below_zero_that_nonnegative_factors_cannot_explain_are_named(self, offset, is_said):
        rng = np.random.default_rng(0)
        factors = [rng.gamma(2.0, size=(size, 2)) for size in (9, 10, 11)]
        tensor = 0.1 * np.einsum("ir,jr,kr->ijk", *factors) + offset + rng.standard_normal((9, 10, 11))
        fit = codiag.factorize(tensor, 2, constraints="nonnegative", seed=0)
        assert ("Entries below zero" in str(fit.diagnose())) == is_said
        if is_said:
            assert "leave constraints out" in str(fit.diagnose())
            assert "a component is missing" not in str(fit.diagnose())
            assert "Entries below zero" not in str(codiag.factorize(tensor, 2, seed=0).diagnose())

    def test_slices_of_zeros_are_named_unless_they_are_missing(self):
        tensor = noisy_tensor((9, 10, 11), 2, noise=0.1, seed=0).tensor
        tensor[3] = 0
        found = str(codiag.factorize(tensor, 2, seed=0).diagnose())
        assert "All entries are zero at mode 0, row 3: if they were not measured, mark them as missing" in found
        tensor[3] = np.nan
        assert "zero" not in str(codiag.factorize(tensor, 2, seed=0).diagnose())
