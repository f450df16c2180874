"""Tensors that nobody would call well posed, and what is right to say of them."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

import codiag
from assertions import assert_same_factors
from codiag.methods import ALS, NLS, NOJD, OJD
from codiag.synthetic import noisy_tensor, unit_factor
from codiag.tensors import DenseTensor, FactoredTensor, SparseTensor, symmetrize

W_STATE = np.zeros((2, 2, 2))
W_STATE[0, 0, 1] = W_STATE[0, 1, 0] = W_STATE[1, 0, 0] = 1
STEPS = np.arange(10.0)


class TestLessThanTheRank:
    """Tensors with fewer components than asked for."""

    @pytest.mark.parametrize("true_rank", [1, 2])
    @pytest.mark.parametrize("rank", [2, 3, 4])
    @pytest.mark.parametrize("symmetric", [True, False])
    def test_they_are_fitted_to_rounding(self, true_rank, rank, symmetric):
        tensor = noisy_tensor((5, 5, 5), true_rank, symmetric=symmetric, rng=0).tensor
        fit = codiag.factorize(tensor, rank, rng=0)
        assert fit.rank == rank
        assert fit.relative_error < 1e-9

    @pytest.mark.parametrize("shape", [(4, 4, 4), (5, 5, 5), (3, 4, 5)], ids=str)
    def test_equal_entries(self, shape):
        for rank in (1, 2, 3):
            assert codiag.factorize(np.ones(shape), rank, rng=0).relative_error < 1e-9

    def test_one_entry(self):
        entries = np.zeros((3, 4, 5))
        entries[0, 0, 0] = 1
        assert codiag.factorize(entries, 2, rng=0).relative_error < 1e-9

    @pytest.mark.parametrize("method", ["nojd0", "nojd1", "ojd1"])
    def test_methods_that_cannot_say_so(self, method):
        with pytest.raises(ValueError, match="^rank must"):
            codiag.factorize(noisy_tensor((6, 6, 6), 2, rng=0).tensor, 4, method=method, rng=0)


class TestDegenerate:
    """No best fit exists: the closer, the larger the components that cancel each other."""

    @pytest.mark.parametrize("seed", range(4))
    @pytest.mark.parametrize("tensor", [W_STATE, STEPS[:, None, None] + STEPS[:, None] + STEPS], ids=["W", "i + j + k"])
    def test_the_fit_is_close_and_the_warning_says_why(self, tensor, seed):
        with pytest.warns(codiag.ConvergenceWarning, match="degenerate|did not converge"):
            fit = codiag.factorize(tensor, 2, rng=seed)
        assert fit.relative_error < 1e-3
        assert np.all(np.isfinite(fit.weights))

    def test_the_warning_names_the_way_out(self):
        rng = np.random.default_rng(0)
        a, b = rng.standard_normal((2, 6))
        tensor = symmetrize(np.einsum("i,j,k->ijk", a, a, b))
        with pytest.warns(codiag.ConvergenceWarning, match="or lower the rank"):
            codiag.factorize(tensor, 2, rng=0)


class TestPoorFits:
    """Where much is left over, random starts may come closer than one: as close as the best of many others."""

    @staticmethod
    def best_of_many(tensor, rank):
        fits = [codiag.factorize(tensor, rank, method=NLS(n_starts=4), symmetric=False, rng=s) for s in range(3)]
        return min(fit.relative_error for fit in fits)

    @pytest.mark.slow
    @pytest.mark.filterwarnings("ignore::codiag.ConvergenceWarning")
    @pytest.mark.parametrize("seed", [0, 1])
    def test_counts(self, seed):
        rng = np.random.default_rng(seed)
        means = np.einsum("ir,jr,kr->ijk", *[rng.gamma(0.5, 1, (size, 4)) for size in (15, 20, 25)])
        tensor = rng.poisson(0.01 * means)
        assert codiag.factorize(tensor, 3, rng=0).relative_error < 1.005 * self.best_of_many(tensor, 3)

    @pytest.mark.filterwarnings("ignore::codiag.ConvergenceWarning")
    def test_noise_alone(self):
        tensor = np.random.default_rng(1).standard_normal((8, 9, 10))
        assert codiag.factorize(tensor, 2, rng=0).relative_error < 1.005 * self.best_of_many(tensor, 2)

    @pytest.mark.filterwarnings("ignore::codiag.ConvergenceWarning")
    def test_an_antisymmetric_tensor(self):
        tensor = np.zeros((3, 3, 3))
        for places in permutations(range(3)):
            tensor[places] = np.linalg.det(np.eye(3)[list(places)])
        assert codiag.factorize(tensor, 3, rng=0).relative_error < 0.58


class TestCollinear:
    """Spectra: smooth, positive, much alike."""

    @pytest.mark.parametrize("seed", range(5))
    @pytest.mark.parametrize("noise", [0.0, 1e-3])
    def test_fluorescence(self, seed, noise):
        rng = np.random.default_rng(seed)

        def peaks(size):
            centres, widths = rng.uniform(0.2, 0.8, 3), rng.uniform(0.1, 0.3, 3)
            return np.exp(-((np.linspace(0, 1, size)[:, None] - centres) ** 2) / (2 * widths**2))

        factors = [rng.uniform(0, 1, (5, 3)), peaks(201), peaks(61)]
        clean = FactoredTensor(np.ones(3), factors).to_dense()
        errors = rng.standard_normal(clean.shape)
        tensor = clean + noise * np.linalg.norm(clean) / np.linalg.norm(errors) * errors
        fit = codiag.factorize(tensor, 3, rng=0)
        truth = NLS(init=(np.ones(3), factors), max_replacements=0)
        oracle = codiag.factorize(tensor, 3, method=truth, rng=0)
        assert codiag.factor_error(fit, factors) <= max(1e-6, 1.05 * codiag.factor_error(oracle, factors))


class TestWeakComponents:
    @pytest.mark.parametrize("weak", [1e-4, 1e-6])
    def test_without_noise_they_are_found_to_rounding(self, weak):
        rng = np.random.default_rng(0)
        factors = [unit_factor(size, 3, rng) for size in (6, 7, 8)]
        tensor = FactoredTensor(np.array([1, 1, weak]), factors).to_dense()
        assert_same_factors(codiag.factorize(tensor, 3, rng=0), factors, 1e-13 / weak)

    def test_the_oracle_leaves_the_truth_for_the_minimum(self):
        """A step that is short for strong components is not the end for a weak one."""
        rng = np.random.default_rng(0)
        factors = [unit_factor(size, 3, rng) for size in (6, 7, 8)]
        weights = np.array([1, 1, 1e-6])
        tensor = FactoredTensor(weights, factors).to_dense() + 1e-11 * rng.standard_normal((6, 7, 8))
        fit = codiag.factorize(tensor, 3, method=NLS(init=(weights, factors), max_replacements=0), rng=0)
        error = codiag.factor_error(fit, factors)
        assert 0.3 * np.mean(fit.standard_errors) < error < 3 * np.mean(fit.standard_errors)


class TestSymmetry:
    def test_noise_does_not_hide_an_asymmetric_mode(self):
        rng = np.random.default_rng(0)
        a, c = rng.standard_normal((2, 5, 3))
        tensor = np.einsum("ir,jr,kr->ijk", a, a, c) + 1e-6 * rng.standard_normal((5, 5, 5))
        with pytest.raises(ValueError, match=r"changes \d+% of this one"):
            codiag.factorize(tensor, 3, symmetric=True)

    def test_signs_of_a_start_are_kept(self):
        """The signs of an even order, in the second factor of a start as TensorLy may return it."""
        factor, weights = unit_factor(5, 3, 0), np.array([2.0, -1.5, 1.0])
        tensor = FactoredTensor(weights, [factor] * 4).to_dense()
        start = (np.abs(weights), [factor, factor * np.sign(weights), factor, factor])
        fit = codiag.factorize(tensor, 3, method=NLS(init=start, max_replacements=0), rng=0)
        assert fit.relative_error < 1e-12


class TestStartsOfAnyKind:
    @pytest.mark.parametrize(
        "init",
        [
            OJD(directions=np.random.default_rng(0).standard_normal((9, 8)), compress=False),
            NOJD(directions=np.random.default_rng(0).standard_normal((9, 8)), compress=False),
            ALS(init=(np.ones(3), [np.linalg.qr(np.random.default_rng(1).standard_normal((8, 3)))[0]] * 3)),
            NLS(init=ALS(max_iter=2)),
        ],
        ids=["OJD", "NOJD", "ALS", "NLS"],
    )
    def test_methods_that_hold_data_of_full_size(self, init):
        factor = np.linalg.qr(np.random.default_rng(0).standard_normal((8, 3)))[0]
        tensor = FactoredTensor(np.array([3.0, 2.0, 1.0]), [factor] * 3).to_dense()
        assert_same_factors(codiag.factorize(tensor, 3, method=NLS(init=init), rng=0), [factor] * 3, 1e-6)

    @pytest.mark.parametrize("method", [ALS, NLS])
    @pytest.mark.parametrize("wrong", [np.nan, 0.0])
    def test_starts_that_lead_nowhere(self, method, wrong):
        with pytest.raises((TypeError, ValueError), match="^init must"):
            method(init=(None, [np.full((4, 2), wrong)] * 3))

    @pytest.mark.parametrize("method", [ALS, NLS])
    def test_complex_starts_of_real_tensors(self, method):
        start = (None, [np.full((4, 2), 1j)] * 3)
        with pytest.raises(TypeError, match="^init must"):
            codiag.factorize(np.ones((4, 4, 4)), 2, method=method(init=start), rng=0)

    def test_single_precision(self):
        problem = noisy_tensor((6, 7, 8), 3, noise=1e-3, rng=0)
        single = problem.tensor.astype(np.float32)
        first = codiag.factorize(single, 3, rng=0)
        again = codiag.factorize(single, 3, method=NLS(init=first), rng=0)
        assert_same_factors(again, first, 1e-4)


class TestNumbers:
    def test_integers_given_by_components(self):
        tensor = FactoredTensor(np.array([3, 2]), [np.eye(6, 2, dtype=int) + 1 for _ in range(3)])
        fit = codiag.factorize(tensor, 2, rng=0)
        assert fit.relative_error < 1e-7
        assert fit.weights.dtype == np.float64

    def test_lists_given_by_components(self):
        assert FactoredTensor([1.0, 2.0], [[[1.0, 0.0], [0.0, 1.0]]] * 3).squared_norm() == 5

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    @pytest.mark.parametrize("power", [-15, 15])
    def test_scales_at_the_end_of_a_precision(self, dtype, power):
        problem = noisy_tensor((5, 6, 7), 3, rng=0)
        scale = 10.0 ** (power if dtype == np.float32 else 9 * power)
        fit = codiag.factorize((scale * problem.tensor).astype(dtype), 3, rng=0)
        assert_same_factors(fit, problem, 1e-4)
        expected = codiag.factorize(problem.tensor, 3, rng=0).weights
        np.testing.assert_allclose(fit.weights / scale, expected, rtol=1e-4)

    @pytest.mark.filterwarnings("error")
    @pytest.mark.parametrize("scale", [1e-150, 1e-90, 1e90, 1e150])
    @pytest.mark.parametrize("options", [{}, {"mask": np.random.default_rng(0).random((5, 6, 7)) < 0.8}], ids=str)
    def test_errors_and_diagnosis_do_not_depend_on_the_unit(self, scale, options):
        tensor = noisy_tensor((5, 6, 7), 2, noise=0.01, rng=0).tensor
        here, there = (codiag.factorize(unit * tensor, 2, rng=0, **options) for unit in (1.0, scale))
        assert there.relative_error == pytest.approx(here.relative_error, rel=1e-9)
        np.testing.assert_allclose(there.standard_errors, here.standard_errors, rtol=1e-9)
        np.testing.assert_allclose(there.weight_standard_errors / scale, here.weight_standard_errors, rtol=1e-9)
        there.conf_int()
        assert there.diagnose().residual_ratio == pytest.approx(here.diagnose().residual_ratio, rel=1e-6)
        assert there.diagnose().advice == here.diagnose().advice

    @pytest.mark.filterwarnings("error")
    @pytest.mark.parametrize("weight", [1e-308, 1e-200, 1e200, 1e308])
    def test_only_ratios_of_weights_matter(self, weight):
        tensor = noisy_tensor((5, 6, 7), 2, noise=0.1, rng=0).tensor
        fit = codiag.factorize(tensor, 2, weights=np.full(tensor.shape, weight), rng=0)
        assert fit.relative_error == pytest.approx(codiag.factorize(tensor, 2, rng=0).relative_error, rel=1e-9)

    @pytest.mark.filterwarnings("error")
    @pytest.mark.parametrize("n_missing", [0, 5])
    @pytest.mark.parametrize("largest", [1.0, 6e4])
    def test_half_precision(self, largest, n_missing):
        """Numbers of half precision are widened before they are summed, or their sums would overflow."""
        problem = noisy_tensor((5, 6, 7), 2, rng=0)
        tensor = (problem.tensor / np.max(np.abs(problem.tensor)) * largest).astype(np.float16)
        tensor.ravel()[:n_missing] = np.nan
        assert_same_factors(codiag.factorize(tensor, 2, rng=0), problem, 1e-2)

    @pytest.mark.parametrize(("dtype", "scale"), [(np.float64, 1e-200), (np.float32, 1e-30)])
    def test_what_underflows_is_not_called_zero(self, dtype, scale):
        with pytest.raises(ValueError, match="whose squares fit into"):
            codiag.factorize((scale * noisy_tensor((5, 6, 7), 3, rng=0).tensor).astype(dtype), 3)

    def test_the_other_order_of_bytes(self):
        assert DenseTensor(np.ones((3, 3, 3), ">f4")).to_dense().dtype == np.float32

    def test_a_fit_is_a_tensor(self):
        problem = noisy_tensor((5, 6, 7), 3, noise=0.1, rng=0)
        fit = codiag.factorize(problem.tensor, 3, rng=0)
        assert codiag.factorize(fit, 3, rng=0).relative_error < 1e-6
        left = DenseTensor(problem.tensor) - fit._components
        assert left.squared_norm() == pytest.approx((fit.relative_error * fit._norm) ** 2, rel=1e-9)

    def test_duplicates_in_a_sparse_tensor_and_their_norm(self):
        with pytest.raises(ValueError, match="finite"):
            codiag.factorize(SparseTensor([[0], [0], [0]], [1e200], (2, 2, 2)), 1)


@pytest.mark.parametrize("seed", ["a", "12", 1.5, -1, [1, -1]])
def test_seeds_that_are_none(seed):
    kind = ValueError if seed in (-1, [1, -1]) else TypeError
    with pytest.raises(kind, match="^rng must"):
        codiag.factorize(np.ones((3, 3, 3)), 1, rng=seed)


def test_one_warning_at_the_line_that_asked():
    problem = noisy_tensor((8, 8, 8), 8, symmetric=True, noise=0.3, rng=0)
    from codiag.diagonalize import QRJ1D

    with pytest.warns(codiag.ConvergenceWarning) as caught:
        codiag.factorize(problem.tensor, 8, method=NOJD(diagonalizer=QRJ1D(max_sweeps=3)), symmetric=True, rng=0)
    assert [item.filename for item in caught] == [__file__]
