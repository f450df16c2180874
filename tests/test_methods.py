"""What every method of factorization promises."""

from __future__ import annotations

import dataclasses
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import codiag
from assertions import assert_same_factors, assert_unit_columns, largest_distance
from cases import METHODS, TENSORS
from codiag.diagonalize import QRJ1D, UWEDGE, Jacobi, TwoSided, symmetrized
from codiag.methods import ALS, NLS, NOJD, OJD, SD2, TPM, Auto, Givens, Lathauwer
from codiag.metrics import nearest_error
from codiag.synthetic import noisy_tensor, orthogonal_model, unit_factor
from codiag.tensors import FactoredTensor

EVERY = pytest.mark.parametrize("name", METHODS)
SHAPES = [
    ((6, 6, 6), 6, True),
    ((9, 9, 9), 4, True),
    ((6, 7, 8), 5, False),
    ((5, 6, 5, 7), 3, False),
    ((5,) * 4, 4, True),
]
SHAPES += [((4,) * 5, 3, False), ((5, 5, 5), 1, True), ((4, 5, 6), 1, False)]
ANY_SHAPE = pytest.mark.parametrize(("shape", "rank", "symmetric"), SHAPES, ids=str)


@EVERY
@ANY_SHAPE
def test_noiseless_components_are_found(name, shape, rank, symmetric):
    case = METHODS[name]
    case.skip_unless_it_takes(shape, symmetric)
    problem = case.problem(shape, rank, symmetric=symmetric)
    fit = codiag.factorize(problem.tensor, rank, method=case.method, seed=0)
    assert fit.converged
    # Alternating sweeps stop when the error no longer falls, some way before the factors stop moving.
    assert_same_factors(fit, problem, 1e-4 if name.startswith("als") else 1e-7)
    assert fit.relative_error < 1e-4
    assert fit.symmetric == symmetric


@EVERY
@pytest.mark.parametrize("symmetric", [True, False])
def test_convention(name, symmetric):
    """Unit columns, weights by size and positive, one array for all modes if symmetric, stages, the error it leaves."""
    case = METHODS[name]
    case.skip_unless_it_takes((6, 6, 6), symmetric)
    problem = case.problem((7, 7, 7), 4, symmetric=symmetric, noise=0.01)
    fit = codiag.factorize(problem.tensor, 4, method=case.method, seed=0)
    for factor in fit.factors:
        assert_unit_columns(factor, 1e-12)
    assert np.all(np.diff(fit.weights) <= 0)
    assert np.all(fit.weights > 0)
    assert symmetric == all(factor is fit.factors[0] for factor in fit.factors)
    if not symmetric:
        for factor in fit.factors[:-1]:
            assert np.all(factor[np.argmax(np.abs(factor), axis=0), range(4)] > 0)
    left = np.linalg.norm(problem.tensor - fit.to_tensor()) / np.linalg.norm(problem.tensor)
    assert fit.relative_error == pytest.approx(left, rel=1e-9)
    assert fit.norm == pytest.approx(np.linalg.norm(problem.tensor))
    assert fit.stages
    assert all(stage.seconds >= 0 for stage in fit.stages)


@EVERY
def test_the_same_seed_gives_the_same_answer_and_no_global_state_is_touched(name):
    case = METHODS[name]
    problem = case.problem((7, 7, 7), 4, symmetric=True, noise=0.01)
    kept = problem.tensor.copy()
    np.random.seed(3)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    fits = [codiag.factorize(problem.tensor, 4, method=case.method, seed=5) for _ in range(2)]
    assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002
    assert_array_equal(problem.tensor, kept)
    for first, second in zip(fits[0].factors, fits[1].factors, strict=True):
        assert_array_equal(first, second)
    generator = np.random.default_rng(1)
    codiag.factorize(problem.tensor, 4, method=case.method, seed=generator)  # a generator serves as well


@EVERY
@pytest.mark.parametrize("kind", TENSORS)
@pytest.mark.parametrize("symmetric", [True, False])
def test_storage_does_not_matter(name, kind, symmetric):
    case = METHODS[name]
    case.skip_unless_it_takes((6, 6, 6), symmetric)
    problem = case.problem((6, 6, 6), 4, symmetric=symmetric, noise=1e-4)
    expected = codiag.factorize(problem.tensor, 4, method=case.method, symmetric=symmetric, seed=0)
    fit = codiag.factorize(TENSORS[kind](problem.tensor, symmetric), 4, method=case.method, seed=0)
    # Diagonalizations stop at a hundredth of a standard error, which rounding may shift by a step.
    assert_same_factors(fit, expected, 1e-6 if case.least_squares else 1e-5)


@EVERY
def test_scale_and_order_of_modes_do_not_matter(name):
    case = METHODS[name]
    case.skip_unless_it_takes((6, 7, 8), False)
    problem = case.problem((6, 7, 8), 4, symmetric=False, noise=1e-3)
    fit = codiag.factorize(problem.tensor, 4, method=case.method, seed=0)
    scaled = codiag.factorize(1e6 * problem.tensor, 4, method=case.method, seed=0)
    assert_allclose(scaled.weights, 1e6 * fit.weights, rtol=1e-4)
    turned = codiag.factorize(problem.tensor.transpose(2, 0, 1), 4, method=case.method, seed=0)
    error = max(largest_distance(fit, problem), 1e-4)
    assert_same_factors((turned.factors[1], turned.factors[2], turned.factors[0]), fit.factors, error)
    assert_same_factors(scaled, fit, error)


@EVERY
@pytest.mark.parametrize("symmetric", [True, False])
def test_single_precision(name, symmetric):
    case = METHODS[name]
    case.skip_unless_it_takes((6, 6, 6), symmetric)
    problem = case.problem((6, 6, 6), 4, symmetric=symmetric)
    method = dataclasses.replace(case.method, tol=1e-5) if isinstance(case.method, ALS) else case.method
    fit = codiag.factorize(problem.tensor.astype(np.float32), 4, method=method, symmetric=symmetric, seed=0)
    assert {array.dtype for array in (fit.weights, *fit.factors)} == {np.dtype(np.float32)}
    assert_same_factors(fit, problem, 1e-2 if isinstance(method, ALS) else 1e-4)


@EVERY
def test_methods_are_values(name):
    method = METHODS[name].method
    with pytest.raises(dataclasses.FrozenInstanceError):
        method.anything = 1
    assert repr(pickle.loads(pickle.dumps(method))) == repr(method)


@pytest.mark.parametrize(
    "name", [name for name, case in METHODS.items() if case.least_squares and not case.random_start]
)
@pytest.mark.parametrize("symmetric", [True, False])
def test_least_squares_ends_at_the_minimum_near_the_truth(name, symmetric):
    case = METHODS[name]
    problem = case.problem((8, 8, 8), 5, symmetric=symmetric, noise=0.01)
    start = (problem.weights, problem.factors)
    oracle = codiag.factorize(problem.tensor, 5, method=NLS(init=start, max_replacements=0), symmetric=symmetric)
    fit = codiag.factorize(problem.tensor, 5, method=case.method, symmetric=symmetric, seed=0)
    if symmetric and isinstance(case.method, ALS):
        # It fits the modes apart and averages: the objective is flat there to first order, not to second.
        assert fit.relative_error < oracle.relative_error * (1 + 1e-3)
    else:
        assert fit.relative_error == pytest.approx(oracle.relative_error, rel=1e-9)
        assert_same_factors(fit, oracle, 1e-4 if isinstance(case.method, ALS) else 1e-6)


class TestJoint:
    """The paper's method and its choices."""

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
        assert_same_factors(codiag.factorize(problem.tensor, 6, method=method, seed=0), problem, 1e-6)

    @pytest.mark.parametrize(
        "method",
        [OJD(diagonalizer=symmetrized(Jacobi())), OJD(diagonalizer=TwoSided(orthogonal=True))],
        ids=["doubled", "two-sided"],
    )
    def test_both_ways_to_asymmetric_tensors(self, method):
        problem = METHODS["ojd1"].problem((5, 6, 7), 4, symmetric=False)
        assert_same_factors(codiag.factorize(problem.tensor, 4, method=method, seed=0), problem, 1e-7)

    def test_free_factors_through_doubled_matrices(self):
        problem = METHODS["nojd1"].problem((5, 6, 7), 4, symmetric=False)
        method = NOJD(diagonalizer=symmetrized(QRJ1D(max_sweeps=2000)))
        assert_same_factors(codiag.factorize(problem.tensor, 4, method=method, seed=0), problem, 1e-4)

    def test_directions_of_ones_own(self):
        problem = METHODS["nojd1"].problem((6, 6, 6), 6, symmetric=True)
        own = np.random.default_rng(0).standard_normal((7, 6))
        method = NOJD(directions=own, plug_in=False, compress=False)
        assert_same_factors(codiag.factorize(problem.tensor, 6, method=method, seed=0), problem, 1e-7)
        with pytest.raises(ValueError, match="directions must have shape"):
            codiag.factorize(problem.tensor, 6, method=NOJD(directions=own[:, :5]), seed=0)

    def test_plug_in_lowers_the_error_under_noise(self):
        """The paper's claim, on its orthogonal model."""
        errors = {False: [], True: []}
        for seed in range(10):
            problem = orthogonal_model(20, 20, noise=0.01, seed=seed)
            for plug_in, found in errors.items():
                fit = codiag.factorize(problem.tensor, 20, method=OJD(plug_in=plug_in), seed=seed)
                found.append(nearest_error(fit, problem))
        assert np.mean(errors[True]) < 0.8 * np.mean(errors[False])

    def test_whitening_by_the_tensor_itself(self):
        """Factors with positive entries: the tensor contracted with itself is definite."""
        factor = np.abs(unit_factor(8, 5, 0))
        tensor = FactoredTensor(np.linspace(1, 2, 5), [factor] * 3).to_dense()
        fit = codiag.factorize(tensor, 5, method="ojd1", seed=0)
        assert fit.stages[0].name == "whiten"
        assert_same_factors(fit, [factor] * 3, 1e-7)

    def test_whitening_by_a_second_moment(self):
        factor, weights = unit_factor(8, 5, 0), np.linspace(1, 2, 5)
        tensor = FactoredTensor(weights, [factor] * 3).to_dense()
        square = unit_factor(20, 20, 1)
        with pytest.raises(ValueError, match=r"OJD needs orthogonal factors.*second_moment"):
            codiag.factorize(FactoredTensor(np.ones(20), [square] * 3), 20, method="ojd1", seed=0)
        method = OJD(second_moment=(factor * weights) @ factor.T)
        assert_same_factors(codiag.factorize(tensor, 5, method=method, seed=0), [factor] * 3, 1e-9)
        with pytest.raises(ValueError, match="positive definite on 5 dimensions"):
            codiag.factorize(tensor, 5, method=OJD(second_moment=np.diag([1.0] * 3 + [0] * 5)), seed=0)
        with pytest.raises(ValueError, match=r"second_moment must have shape \(8, 8\)"):
            codiag.factorize(tensor, 5, method=OJD(second_moment=np.eye(3)), seed=0)

    def test_noise_does_not_pass_for_free_factors(self):
        problem = orthogonal_model(15, 15, noise=0.1, seed=0)
        assert codiag.factorize(problem.tensor, 15, method="ojd1", seed=0).stages[0].name == "diagonalize"

    @pytest.mark.parametrize(
        ("method", "words"),
        [
            (OJD(), r"OJD needs orthogonal factors.*use NOJD"),
            (OJD(second_moment=np.eye(5)), "second_moment is for symmetric tensors"),
            (NOJD(diagonalizer=UWEDGE()), "is for symmetric matrices"),
        ],
    )
    def test_what_does_not_fit_an_asymmetric_tensor(self, method, words):
        problem = noisy_tensor((5, 5, 5), 4, seed=0)
        with pytest.raises(ValueError, match=words):
            codiag.factorize(problem.tensor, 4, method=method, seed=0)

    @pytest.mark.parametrize(
        ("make", "words"),
        [
            (lambda: NOJD(diagonalizer=Jacobi()), "NOJD needs a diagonalizer with free factors"),
            (lambda: OJD(diagonalizer=UWEDGE()), "OJD needs a diagonalizer with orthonormal factors"),
            (lambda: NOJD(directions="best"), "directions must be one of random, orthonormal"),
            (lambda: NOJD(plug_in="twice"), "plug_in must be True, False"),
            (lambda: NOJD(n_projections=1), "n_projections must be at least 2"),
            (lambda: NOJD(plug_in=[1]), "plug_in must be True, False"),
        ],
    )
    def test_contradictions(self, make, words):
        with pytest.raises(ValueError, match=words):
            make()

    @pytest.mark.parametrize("diagonalizer", ["jacobi", UWEDGE])
    def test_diagonalizers_that_are_none(self, diagonalizer):
        with pytest.raises(TypeError, match="diagonalizer must be an object of codiag"):
            NOJD(diagonalizer=diagonalizer)

    def test_one_matrix_is_not_enough(self):
        with pytest.raises(ValueError, match="needs two matrices or more"):
            codiag.factorize(np.random.default_rng(0).standard_normal((5, 5, 1)), 3, method="nojd0")

    @pytest.mark.parametrize("name", ["ojd0", "nojd1"])
    def test_a_rank_that_cannot_be_diagonalized(self, name):
        with pytest.raises(ValueError, match=r"rank must be at most 4, the second largest mode.*method=None"):
            codiag.factorize(np.random.default_rng(0).standard_normal((3, 4, 5)), 5, method=name)


class TestRivals:
    """Each finds what it is made for, and fails where theory says."""

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
        method = TPM(second_moment=(factor * weights) @ factor.T)
        assert_same_factors(codiag.factorize(tensor, 6, method=method, seed=0), [factor] * 3, 1e-6)

    def test_two_projections_are_unstable(self):
        """Where many projections at once are not: the paper's point."""
        problem = orthogonal_model(30, 30, noise=0.01, seed=0)
        errors = [
            codiag.factor_error(codiag.factorize(problem.tensor, 30, method=method, seed=0), problem)
            for method in ("sd2", "nojd1")
        ]
        assert errors[0] > 5 * errors[1]

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
            (TPM(second_moment=np.eye(5)), (3, 4, 5), 2, "second_moment is for symmetric tensors"),
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


class TestLeastSquares:
    def test_starts(self):
        problem = noisy_tensor((6, 7, 8), 3, noise=1e-3, seed=0)
        truth = (problem.weights, problem.factors)
        first = codiag.factorize(problem.tensor, 3, method=ALS(init=truth), seed=0)
        for init in (truth, (None, problem.factors), first, Auto(), NOJD()):
            fit = codiag.factorize(problem.tensor, 3, method=NLS(init=init), seed=0)
            assert fit.relative_error == pytest.approx(first.relative_error, rel=1e-6)

    @pytest.mark.parametrize(
        ("init", "error", "words"),
        [
            (NOJD, TypeError, "did you forget the parentheses"),
            ("nojd1", (TypeError, ValueError), "init must be"),
            ((np.ones(3), [np.ones(3)] * 3), ValueError, "factors of shape"),
        ],
    )
    def test_starts_that_are_none(self, init, error, words):
        for method in (ALS, NLS):
            with pytest.raises(error, match=words):
                method(init=init)

    def test_a_start_of_another_shape(self):
        problem = noisy_tensor((6, 7, 8), 3, seed=0)
        with pytest.raises(ValueError, match=r"init must have factors of shapes \[\(6, 2\), \(7, 2\), \(8, 2\)\]"):
            codiag.factorize(problem.tensor, 2, method=NLS(init=(problem.weights, problem.factors)))

    def test_not_converging_is_a_warning_with_numbers(self):
        problem = noisy_tensor((6, 7, 8), 3, noise=0.1, seed=0)
        with pytest.warns(codiag.ConvergenceWarning, match=r"ALS did not converge in 2 sweeps on .*6 x 7 x 8.* rank 3"):
            fit = codiag.factorize(problem.tensor, 3, method=ALS(max_sweeps=2), seed=0)
        assert not fit.converged

    def test_a_missed_component_is_found_in_the_residual(self):
        """Start with one component on noise and its own direction free: a local optimum without replacements."""
        problem = noisy_tensor((30,) * 3, 30, symmetric=True, noise=0.01, seed=3)
        factor = problem.factors[0].copy()
        wrong = unit_factor(30, 1, 9)[:, 0]
        weights = problem.weights.copy()
        lost = int(np.argsort(np.abs(weights))[5])
        factor[:, lost], weights[lost] = wrong, 1e-3
        start = (weights, [factor] * 3)
        fit = codiag.factorize(problem.tensor, 30, method=NLS(init=start), seed=0)
        oracle = codiag.factorize(
            problem.tensor, 30, method=NLS(init=(problem.weights, problem.factors), max_replacements=0), seed=0
        )
        assert fit.relative_error <= oracle.relative_error * (1 + 1e-6)

    def test_monitors_see_lifted_components_and_true_errors(self):
        problem = noisy_tensor((10, 11, 12), 3, noise=0.01, seed=0)
        seen = []

        def monitor(components, error):
            gap = np.linalg.norm(problem.tensor - components.to_dense()) / np.linalg.norm(problem.tensor)
            seen.append((error, gap))

        codiag.factorize(problem.tensor, 3, method=Auto(monitor=monitor), seed=0)
        assert seen
        for error, gap in seen:
            assert error == pytest.approx(gap, rel=1e-8)

    def test_monitors_of_poor_fits_see_the_whole_tensor_too(self):
        tensor = np.random.default_rng(0).poisson(0.1, (10, 11, 12)).astype(float)
        seen = []

        def monitor(components, error):
            seen.append((error, np.linalg.norm(tensor - components.to_dense()) / np.linalg.norm(tensor)))

        codiag.factorize(tensor, 2, method=Auto(monitor=monitor), seed=0)
        for error, gap in seen:
            assert error == pytest.approx(gap, rel=1e-8)


class TestAuto:
    def test_more_components_than_rows(self):
        """Rank above all modes: least squares from several starts, and the stages say so."""
        problem = noisy_tensor((6, 6, 6), 8, seed=1)
        fit = codiag.factorize(problem.tensor, 8, seed=0)
        assert fit.stages[0].name == "random starts: the rank is too large to diagonalize"
        assert_same_factors(fit, problem, 1e-6)

    def test_modes_taken_together(self):
        """Rank 9 in a tensor of order five whose modes are of size four: pairs of modes make rows and columns."""
        problem = noisy_tensor((4,) * 5, 9, seed=0)
        fit = codiag.factorize(problem.tensor, 9, seed=0)
        assert fit.stages[0].name == "diagonalize"
        assert_same_factors(fit, problem, 1e-8)

    def test_a_rank_larger_than_that_of_the_tensor(self):
        problem = noisy_tensor((6, 7, 8), 2, seed=0)
        fit = codiag.factorize(problem.tensor, 4, seed=0)
        assert fit.relative_error < 1e-7
        assert all(np.all(np.isfinite(array)) for array in (fit.weights, *fit.factors))

    def test_even_order_keeps_signs(self):
        factor, weights = unit_factor(6, 3, 0), np.array([2.0, -1.5, 1.0])
        fit = codiag.factorize(FactoredTensor(weights, [factor] * 4).to_dense(), 3, seed=0)
        assert_allclose(fit.weights, weights, atol=1e-9)
        assert_same_factors(fit, [factor] * 4, 1e-9)

    @pytest.mark.parametrize("shape", [(2, 2, 2), (1, 4, 5), (1, 1, 3), (3, 1, 1)], ids=str)
    def test_tiny_modes(self, shape):
        tensor = np.random.default_rng(0).standard_normal(shape)
        fit = codiag.factorize(tensor, 1, seed=0)
        assert fit.relative_error <= 1
        best = max(codiag.factorize(tensor, 1, method=NLS(n_starts=5), seed=s).weights[0] for s in range(3))
        assert fit.weights[0] == pytest.approx(best, rel=1e-6)

    @pytest.mark.parametrize("size", [1e-120, 1e120])
    def test_extreme_scales(self, size):
        problem = noisy_tensor((5, 6, 7), 3, seed=0)
        assert_same_factors(codiag.factorize(size * problem.tensor, 3, seed=0), problem, 1e-6)
