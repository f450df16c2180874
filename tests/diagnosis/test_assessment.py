"""What is said of a fit: of its data, its components, the model, the rank and the optimum."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest

import codiag
from assertions import assert_same_to_rounding
from benchmarks.judgement import NOISES, bad_trials, components, shifted, with_noise
from benchmarks.noise_kinds import NOISES as KINDS
from benchmarks.noise_kinds import spectra
from codiag.diagnosis import Assessment, Facts, SignFlips, assess, lone_entries
from codiag.io import Labelled, Labels
from codiag.least_squares import LeastSquares, noise_excess, strongest_terms
from codiag.methods import NLS
from codiag.synthetic import noisy_tensor, unit_factor
from codiag.tensors import DenseTensor, FactoredTensor, symmetrize
from reference.alternating import relative_error

pytestmark = pytest.mark.filterwarnings("ignore::codiag.ConvergenceWarning")
DETERMINED, NOT = "determined", "not determined"


def border_rank_tensor(seed=0, noise=1e-3):
    """A limit of tensors of rank two that has rank three, a b g + a e c + d b c, and noise."""
    rng = np.random.default_rng(seed)
    a, b, c, d, e, g = rng.standard_normal((6, 5))
    clean = sum(np.einsum("i,j,k->ijk", *term) for term in ((a, b, g), (a, e, c), (d, b, c)))
    return clean + noise * rng.standard_normal((5, 5, 5))


class TestData:
    def test_an_entry_carries_a_component_alone_if_what_was_observed_says_so(self):
        """The component may be larger at entries that are missing."""
        columns = [np.array([1.0, 3.0, 0.0]), np.array([1.0, 2.0]), np.array([1.0, 1e-3])]
        seen = np.ones((3, 2, 2), dtype=bool)
        seen[1], seen[0, 1] = False, False
        factors = [column[:, None] / np.linalg.norm(column) for column in columns]
        assert lone_entries(np.ones(1), factors, seen) == {0: (0, 0, 0)}
        assert lone_entries(np.ones(1), factors) == {}

    @pytest.mark.parametrize("value", [-5.0, -99.0, -999.0])
    def test_an_entry_that_is_out_of_line_is_named_by_its_labels(self, value):
        rng = np.random.default_rng(0)
        tensor = with_noise(components(rng, (12, 10, 9), 2), rng.standard_normal((12, 10, 9)), 0.05)
        tensor[3, 4, 5] = value
        labels = Labels(("patient", "drug", "time"), ([f"p{i}" for i in range(12)], None, None))
        told = codiag.factorize(Labelled(tensor, labels), 2, rng=0).diagnose()
        assert [entry.place for entry in told.entries] == [(3, 4, 5)]
        assert told.entries[0].value == value
        assert told.entries[0].is_code == (value < -5)
        assert told.advice[0].startswith(f"Entry (patient p3, drug 4, time 5) = {value:g}")

    def test_codes_for_missing_values_are_found_however_many_they_are(self):
        rng = np.random.default_rng(0)
        tensor = with_noise(components(rng, (12, 10, 9), 2), rng.standard_normal((12, 10, 9)), 0.05)
        places = [(0, 1, 2), (3, 4, 5), (11, 9, 8)]
        for place in places:
            tensor[place] = 9999
        told = codiag.factorize(tensor, 2, rng=0).diagnose()
        assert {entry.place for entry in told.entries if entry.is_code} == set(places)
        assert "make them NaN" in told.advice[0]

    def test_spikes_of_a_diagonal_are_components_where_there_is_no_noise(self):
        tensor = np.zeros((3, 4, 5))
        tensor[range(3), range(3), range(3)] = [3.0, 2.0, 1.0]
        told = codiag.factorize(tensor, 3, rng=0).diagnose()
        assert told.entries == ()
        assert told.verdicts == (DETERMINED,) * 3

    def test_samples_that_carry_a_component_alone_are_named(self):
        assert bad_trials(3) == (True, True)

    def test_a_pure_standard_counts_as_a_component(self):
        rng = np.random.default_rng(0)
        amounts = np.array([[2, 0], [0, 3.0], [0, 1], [0, 2], [0, 1], [0, 2]])
        tensor = np.einsum("ir,jr,kr->ijk", amounts, rng.random((20, 2)), rng.random((15, 2)))
        tensor += 0.02 * rng.standard_normal(tensor.shape)
        told = codiag.factorize(tensor, 2, rng=0).diagnose()
        assert told.verdicts == (DETERMINED,) * 2
        assert np.flatnonzero(told.samples["carries"]).tolist() == [0]
        assert "carries component" in told.advice[0]

    def test_a_loud_sample_is_named(self):
        rng = np.random.default_rng(0)
        tensor = with_noise(components(rng, (12, 13, 14), 2), NOISES["a bad sample"](rng, (12, 13, 14)), 0.3)
        told = codiag.factorize(tensor, 2, rng=0).diagnose()
        assert any("index 3 of mode 0" in sentence for sentence in told.advice)
        assert told.samples["residual"][3] > 3

    def test_slices_of_zeros_are_named_unless_they_are_missing(self):
        tensor = noisy_tensor((9, 10, 11), 2, noise=0.1, rng=0).tensor
        tensor[3] = 0
        assert "All entries are zero at index 3 of mode 0" in str(codiag.factorize(tensor, 2, rng=0).diagnose())
        tensor[3] = np.nan
        assert "zero" not in str(codiag.factorize(tensor, 2, rng=0).diagnose())


class TestComponents:
    @pytest.mark.parametrize("kind", NOISES)
    def test_noise_has_no_components(self, kind):
        """By sign flips, whatever the distribution, the variances and the correlations."""
        tensor = NOISES[kind](np.random.default_rng(5), (15, 16, 17))
        told = codiag.factorize(tensor, 1, rng=0).diagnose()
        assert told.verdicts == (NOT,)
        assert told.advised_rank is None

    @pytest.mark.parametrize("kind", KINDS)
    def test_right_fits_are_left_in_peace_whatever_the_noise(self, kind):
        told = codiag.factorize(spectra(kind)[2], 2, rng=0).diagnose()
        assert told.verdicts == (DETERMINED, DETERMINED)
        assert told.is_supported
        assert told.advised_rank is None

    @pytest.mark.parametrize("kind", KINDS)
    def test_one_rank_is_advised_where_a_component_is_missing_or_too_many(self, kind):
        _, _, tensor = spectra(kind, rank=3, shape=(20, 30, 25))
        few, many = (codiag.factorize(tensor, rank, rng=0).diagnose() for rank in (2, 4))
        assert few.advised_rank == 3
        assert not many.is_supported
        assert many.advised_rank in (3, None)
        assert str(many).count("try rank") <= 1

    @pytest.mark.parametrize("noise", [0.01, 0.05])
    def test_components_that_share_a_factor_are_not_determined_in_the_others(self, noise):
        rng = np.random.default_rng(0)
        factors = [rng.standard_normal((size, 3)) for size in (12, 15, 18)]
        factors[0][:, 1] = factors[0][:, 0]
        clean = np.einsum("ir,jr,kr->ijk", *factors)
        fit = codiag.factorize(with_noise(clean, rng.standard_normal(clean.shape), noise), 3, rng=0)
        told = fit.diagnose()
        single = int(np.argmax(np.abs(fit.factors[0].T @ factors[0][:, 2])))
        assert [verdict == DETERMINED for verdict in told.verdicts] == [r == single for r in range(3)]
        assert np.all(np.isinf(np.delete(fit.standard_errors[1:], single, axis=1)))
        assert np.all(fit.standard_errors[0] < 0.3)
        assert np.sum(~told.pairs["separated"]) == 1
        assert "equal profiles along mode 0" in str(told)

    def test_nearly_shared_factors_are_determined(self):
        rng = np.random.default_rng(0)
        factors = [rng.standard_normal((size, 2)) for size in (12, 15, 18)]
        factors[0][:, 1] = factors[0][:, 0] + 0.1 * factors[0][:, 1]
        clean = np.einsum("ir,jr,kr->ijk", *factors)
        fit = codiag.factorize(with_noise(clean, rng.standard_normal(clean.shape), 0.01), 2, rng=0)
        assert fit.diagnose().verdicts == (DETERMINED, DETERMINED)

    def test_components_of_no_weight_have_unit_columns_and_no_certainty(self):
        fit = codiag.factorize(np.ones((6, 2, 4)), 3, rng=0)
        for factor in fit.factors:
            np.testing.assert_allclose(np.linalg.norm(factor, axis=0), 1)
        without = np.flatnonzero(np.asarray(fit.weights) == 0)
        assert all(fit.diagnose().verdicts[component] == NOT for component in without)
        assert np.all(np.isinf(fit.standard_errors[:, np.asarray(fit.weights) == 0]))

    def test_halves_of_the_data_show_what_replicates(self):
        tensor = noisy_tensor((20, 10, 9), 3, noise=0.3, rng=1).tensor
        right, high = (codiag.factorize(tensor, rank, rng=0).diagnose() for rank in (3, 5))
        assert np.all(right.components["replication"] > 0.85)
        assert np.min(high.components["replication"]) < 0.85

    def test_flips_of_noise_are_like_the_noise(self):
        """The level: a few of a hundred residuals of noise exceed the bound; and single large entries never do."""
        rng = np.random.default_rng(1)
        ratios = []
        for _ in range(200):
            entries = rng.standard_normal((8, 9, 10))
            flips = SignFlips(entries, None, [np.ones(n) for n in entries.shape], [None] * 3, (), [slice(None)] * 3)
            ratios.append(flips.residual_ratio)
        assert 0.8 < np.median(ratios) < 1
        assert np.mean(np.array(ratios) > 1) <= 0.05
        entries[1, 2, 3] = 100
        flips = SignFlips(entries, None, [np.ones(n) for n in entries.shape], [None] * 3, (), [slice(None)] * 3)
        assert flips.residual_ratio < 1

    def test_the_strongest_terms_of_a_stack_are_found(self):
        rng = np.random.default_rng(0)
        factors = [rng.standard_normal((5, size)) for size in (6, 7, 8)]
        factors = [factor / np.linalg.norm(factor, axis=1, keepdims=True) for factor in factors]
        stack = 30 * np.einsum("ni,nj,nk->nijk", *factors) + rng.standard_normal((5, 6, 7, 8))
        weights, columns = strongest_terms(stack)
        for column, factor in zip(columns, factors, strict=True):
            assert np.all(np.abs(np.sum(column * factor, axis=1)) > 0.98)
        values = np.einsum("nijk,ni,nj,nk->n", stack, *columns)
        np.testing.assert_allclose(np.abs(values), weights, rtol=1e-10)


class TestModel:
    @pytest.mark.parametrize("seed", range(3))
    def test_border_rank_is_not_blessed(self, seed):
        with pytest.warns(codiag.ConvergenceWarning, match="degenerate.*there may be no best fit with rank 2"):
            fit = codiag.factorize(border_rank_tensor(seed), 2, rng=0)
        told = fit.diagnose()
        assert told.verdicts == (NOT, NOT)
        assert told.pairs["degenerate"].tolist() == [True]
        assert told.pairs["congruence"][0] < -0.95
        assert "constraints='nonnegative'" in told.advice[0]
        assert told.advised_rank is None

    @pytest.mark.parametrize("seed", range(3))
    def test_what_diagnose_says_of_large_pairs_is_warned_of(self, seed):
        """More components than there are: a pair that cancels and has more energy than the tensor is never silent."""
        tensor = noisy_tensor((6, 7, 8), 3, noise=0.02, rng=seed).tensor
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fit = codiag.factorize(tensor, 6, rng=0)
        squares = np.asarray(fit.weights) ** 2
        large = [pair for pair in Facts(fit).degenerate if np.sum(squares[list(pair[:2])]) > fit._norm**2]
        degenerate = any("degenerate" in str(warning.message) for warning in caught)
        assert degenerate == bool((large and fit.converged) or fit.weights[0] > 10 * fit._norm)

    def test_components_that_run_off_are_not_converged(self):
        tensor = np.random.default_rng(0).integers(-3, 4, (5, 2, 6)).astype(float)
        with pytest.warns(codiag.ConvergenceWarning, match="degenerate"):
            fit = codiag.factorize(tensor, 5, rng=0)
        assert fit.weights[0] > 10 * fit._norm
        assert not fit.converged

    def test_correlated_components_that_do_not_cancel_pass(self):
        factors = [unit_factor(8, 2, seed) for seed in range(3)]
        for factor in factors:
            factor[:, 1] = factor[:, 0] + 0.5 * factor[:, 1]
        told = codiag.factorize(FactoredTensor(np.array([2.0, 1.0]), factors).to_dense(), 2, rng=0).diagnose()
        assert not told.pairs["degenerate"].any()
        assert told.verdicts == (DETERMINED, DETERMINED)

    @pytest.mark.parametrize("constraints", [None, "nonnegative"])
    @pytest.mark.parametrize(("points", "is_said"), [(0.0, False), (2.0, True)])
    def test_shifts_are_named(self, points, is_said, constraints):
        assert [shifted(points, False, constraints, seed) for seed in range(3)] == [is_said] * 3

    def test_modes_without_an_order_have_no_shifts_and_no_neighbours(self):
        rng = np.random.default_rng(0)
        tensor = with_noise(components(rng, (12, 13, 40), 2), NOISES["AR .8"](rng, (12, 13, 40)), 0.3)
        text = Labels(("a", "b", "c"), (None, None, [f"n{i}" for i in range(40)]))
        free, named = (codiag.factorize(Labelled(tensor, labels), 2, rng=0) for labels in (None, text))
        ordered = codiag.factorize(Labelled(tensor, replace(text, ordered=("c",))), 2, rng=0)
        assert [bool(fit.diagnose().modes["correlated"][2]) for fit in (free, named, ordered)] == [True, False, True]

    @pytest.mark.parametrize(("offset", "is_said"), [(0.0, False), (-2.0, True), (2.0, False)])
    def test_entries_below_zero_that_nonnegative_factors_cannot_explain_are_named(self, offset, is_said):
        rng = np.random.default_rng(0)
        factors = [rng.gamma(2.0, size=(size, 2)) for size in (9, 10, 11)]
        tensor = 0.1 * np.einsum("ir,jr,kr->ijk", *factors) + offset + rng.standard_normal((9, 10, 11))
        fit = codiag.factorize(tensor, 2, constraints="nonnegative", rng=0)
        assert ("Entries below zero" in str(fit.diagnose())) == is_said
        if is_said:
            assert "leave constraints out" in str(fit.diagnose())
            assert "Entries below zero" not in str(codiag.factorize(tensor, 2, rng=0).diagnose())


class TestRank:
    def test_one_component_is_unique(self):
        tensor = noisy_tensor((4, 5, 6), 1, noise=0.01, rng=0).tensor
        assert str(codiag.factorize(tensor, 1, rng=0).diagnose()) == "1 of 1 component is determined."

    @pytest.mark.parametrize("symmetric", [True, False])
    def test_too_low(self, symmetric):
        problem = noisy_tensor((12,) * 3, 4, noise=0.01, symmetric=symmetric, rng=1)
        told = codiag.factorize(problem.tensor, 3, symmetric=symmetric, rng=0).diagnose()
        assert told.residual_ratio > 1
        assert told.advised_rank in ((None,) if symmetric else (4, None))  # halves of a symmetric tensor are none

    @pytest.mark.parametrize("symmetric", [True, False])
    def test_too_high(self, symmetric):
        problem = noisy_tensor((10,) * 3, 4, noise=0.01, symmetric=symmetric, rng=1)
        told = codiag.factorize(problem.tensor, 5, symmetric=symmetric, rng=0).diagnose()
        assert not told.is_supported
        assert told.advised_rank == 4 or told.pairs["degenerate"].any()

    def test_too_many_components_of_an_exact_tensor_are_not_followed_by_more(self):
        told = codiag.factorize(np.ones((4, 5, 6)), 3, rng=0).diagnose()
        assert told.advised_rank is None or told.advised_rank < 3

    def test_components_without_weight_are_carried_by_no_entry(self):
        choice = codiag.choose_rank(-np.ones((4, 5, 6)), constraints="nonnegative", rng=0)
        assert choice.rank is None
        assert choice.set_aside == ()

    @pytest.mark.parametrize("seed", range(3))
    def test_entries_that_are_zero_for_sure_say_nothing_about_the_noise(self, seed):
        """Counts are zero where all components are: that does not make the dispersion of the others less than one."""
        rng = np.random.default_rng(seed)
        factors = [rng.random((size, 3)) * (rng.random((size, 3)) > 0.5) for size in (10, 12, 14)]
        mean = np.einsum("ir,jr,kr->ijk", *factors)
        counts = rng.poisson(mean * 3 / np.mean(mean))
        choice = codiag.choose_rank(counts, loss="poisson", rng=0)
        assert choice.rank == 3
        assert choice.fit.deviance.dispersion == pytest.approx(1, abs=0.2)

    def test_one_of_two_halves_stays(self):
        rng = np.random.default_rng(0)
        tensor = np.einsum("ir,jr,kr->ijk", *(rng.standard_normal((size, 2)) for size in (6, 7, 8)))
        fit = codiag.factorize(tensor + 0.01 * rng.standard_normal(tensor.shape), 2, rng=0)
        halved = replace(
            fit,
            weights=np.array([fit.weights[0], fit.weights[1] / 2, fit.weights[1] / 2]),
            factors=tuple(factor[:, [0, 1, 1]] for factor in fit.factors),
        )
        told = halved.diagnose()
        assert told.verdicts == (DETERMINED, NOT, NOT)
        assert told.advised_rank == 2

    @pytest.mark.parametrize("symmetric", [True, False])
    @pytest.mark.parametrize("noise", [0.0, 0.01, 0.05])
    def test_right(self, symmetric, noise):
        problem = noisy_tensor((12,) * 3, 4, noise=noise, symmetric=symmetric, rng=2)
        told = codiag.factorize(problem.tensor, 4, symmetric=symmetric, rng=0).diagnose()
        assert str(told) == "4 of 4 components are determined."

    @pytest.mark.slow
    def test_at_most_one_rank_is_advised(self):
        """Fits of anything, at any rank: the advice is one list, and does not contradict itself."""
        for seed in range(300):
            rng = np.random.default_rng(seed)
            shape = tuple(rng.integers(3, 9, 3))
            rank = int(rng.integers(1, 6))
            clean = components(rng, shape, int(rng.integers(1, 4)))
            tensor = with_noise(
                clean, NOISES[list(NOISES)[seed % len(NOISES)]](rng, shape), rng.choice([0.01, 0.3, 2.0])
            )
            told = codiag.factorize(tensor, rank, rng=0).diagnose()
            assert len(told.advice) <= 3
            assert str(told).count("try rank") == (told.advised_rank is not None) <= 1
            assert told.advised_rank is None or told.advised_rank != rank


class TestTables:
    def test_an_assessment_is_computed_once_and_shown(self):
        fit = codiag.factorize(noisy_tensor((6, 7, 8), 2, noise=0.05, rng=0).tensor, 2, rng=0)
        told = fit.diagnose()
        assert fit.diagnose() is told
        assert isinstance(told, Assessment)
        assert {len(column) for column in told.components.values()} == {2}
        assert {len(column) for column in told.samples.values()} == {21}
        assert {len(column) for column in told.pairs.values()} == {1}
        assert {len(column) for column in told.modes.values()} == {3}
        assert "explained_variance" in repr(told.components)
        assert "<table>" in told.modes._repr_html_()
        np.testing.assert_allclose(np.sum(told.samples["leverage"][:6]), 2)
        assert told.core_consistency == pytest.approx(
            codiag.metrics.core_consistency(fit, fit.problem.tensor), abs=1e-8
        )

    def test_components_with_one_reason_share_a_line(self):
        tensor = np.random.default_rng(0).standard_normal((9, 10, 11))
        told = codiag.factorize(tensor, 3, rng=0).diagnose()
        table = told.components | {"verdict": np.array([NOT, DETERMINED, NOT]), "reason": np.array(["so", "", "so"])}
        lines = str(replace(told, components=table, advice=())).splitlines()
        assert lines == ["1 of 3 components are determined.", "Components 1 and 3 are not determined: so."]

    @pytest.mark.parametrize("copied", ["file", "without data"])
    def test_files_keep_it(self, copied, tmp_path):
        tensor = noisy_tensor((9, 8, 7), 2, noise=0.05, rng=0).tensor
        tensor[1, 2, 3] = -999
        fit = codiag.factorize(tensor, 3, rng=0)
        said = str(fit.diagnose())
        (fit.drop_data() if copied == "without data" else fit).save(tmp_path / "fit.npz")
        again = codiag.Factorization.load(tmp_path / "fit.npz").diagnose()
        assert str(again) == said
        assert again.entries == fit.diagnose().entries
        assert_same_to_rounding(again.components["significance"], fit.diagnose().components["significance"])

    def test_what_is_no_fit_is_refused(self):
        with pytest.raises(TypeError, match="^fit must"):
            assess(3)


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


class TestConverged:
    @pytest.mark.slow
    @pytest.mark.filterwarnings("ignore::codiag.ConvergenceWarning")
    def test_a_converged_fit_has_nothing_left_to_gain(self):
        """The Gauss-Newton decrement, by a pseudo-inverse written out here, is a millionth of the objective at most."""
        n_converged = 0
        for seed in range(10):
            rng = np.random.default_rng(seed)
            tensor = rng.integers(-2, 3, rng.integers(3, 6, 3)).astype(float)
            fit = codiag.factorize(tensor, 2, rng=0)
            if not fit.converged:
                continue
            n_converged += 1
            objective = LeastSquares(codiag.Problem(tensor, 2), fit._components)
            point = objective.parametrization.vectorize(fit._components)
            slope = objective.value_and_gradient(point)[1].ravel()
            decrement = slope @ np.linalg.pinv(objective.curvature(point).matrix(), rcond=1e-10) @ slope / 2
            assert decrement <= 2e-6 * fit.deviance.total / 2 + 1e-20
        assert n_converged >= 7

    @pytest.mark.parametrize("max_iter", [1, 2])
    def test_a_sweep_is_a_step_that_was_taken(self, max_iter):
        """Where plain steps are refused, shorter ones are tried: even one sweep lowers the error."""
        rng = np.random.default_rng(0)
        tensor = noisy_tensor((6, 7, 8), 3, noise=0.1, rng=0).tensor
        for _ in range(10):
            start = [rng.uniform(0, 1, (size, 3)) for size in tensor.shape]
            start[2] *= 5  # far too large
            with pytest.warns(codiag.ConvergenceWarning):
                fit = codiag.factorize(
                    tensor, 3, method=NLS(init=(None, start), max_iter=max_iter, max_replacements=0), rng=0
                )
            assert fit.relative_error < 0.9 * relative_error(tensor, start)
