"""Complex tensors: the engine of real ones, with conjugates where least squares has them, and phases as free scales."""

from __future__ import annotations

import numpy as np
import pytest

import codiag
from assertions import assert_same_factors, assert_unit_columns
from cases import METHODS
from codiag.constraints import Fixed, Ridge
from codiag.extending import Start
from codiag.least_squares import LeastSquares, Steps, noise_excess, random_components
from codiag.methods import NLS, Auto
from codiag.tensors import DenseTensor, FactoredTensor, symmetrize
from tensor_cases import LIBRARIES

REAL_ONLY = {"nojd optimal"}  # an option of a method that takes complex tensors otherwise
TAKING = [name for name, case in METHODS.items() if "complex numbers" in case.method.supports and name not in REAL_ONLY]
REFUSING = [name for name in METHODS if name not in TAKING]
SHAPE, RANK = (7, 6, 8), 3


def draws(rng, shape):
    """Return circular noise of unit variance."""
    return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)) / np.sqrt(2)


def planted(shape=SHAPE, rank=RANK, noise=0.0, seed=0, symmetric=False):
    """Return a tensor, its weights and its unit factors."""
    rng = np.random.default_rng([seed, *shape, rank])
    factors = [draws(rng, (size, rank)) for size in shape]
    factors = [factors[0]] * len(shape) if symmetric else factors
    factors = [factor / np.linalg.norm(factor, axis=0) for factor in factors]
    weights, errors = np.linspace(2, 1, rank), draws(rng, shape)
    clean = FactoredTensor(weights, factors).to_dense()
    return clean + noise * (symmetrize(errors) if symmetric else errors), weights, factors


@pytest.mark.parametrize("name", TAKING)
def test_methods_find_complex_components(name):
    tensor, weights, factors = planted()
    fit = codiag.factorize(tensor, RANK, method=METHODS[name].method, rng=0)
    assert_same_factors(fit, factors, 1e-4 if METHODS[name].least_squares else 1e-6)
    np.testing.assert_allclose(fit.weights, weights, rtol=1e-4)
    np.testing.assert_allclose(fit.to_tensor(), tensor, atol=1e-4)


@pytest.mark.parametrize("name", [name for name in TAKING if METHODS[name].least_squares])
def test_least_squares_ends_where_it_does_from_the_truth(name):
    tensor, weights, factors = planted(noise=0.02)
    oracle = codiag.factorize(tensor, RANK, method=NLS(init=(weights, factors)), rng=0)
    fit = codiag.factorize(tensor, RANK, method=METHODS[name].method, rng=0)
    assert fit.relative_error == pytest.approx(oracle.relative_error, rel=1e-7)
    assert fit.relative_error == pytest.approx(np.linalg.norm(tensor - fit.to_tensor()) / np.linalg.norm(tensor))


@pytest.mark.parametrize("name", REFUSING)
def test_other_methods_refuse_complex_tensors_with_a_sentence(name):
    tensor = planted((6, 6, 6))[0]
    with pytest.raises(ValueError, match="cannot take complex"):
        codiag.factorize(tensor, RANK, method=METHODS[name].method, rng=0)


def test_phases_stand_in_the_last_factor():
    """Weights are real and positive, columns have unit length and a largest entry that is real and positive."""
    fit = codiag.factorize(planted(noise=0.01)[0], RANK, rng=0)
    assert fit.weights.dtype == np.float64
    assert np.all(fit.weights > 0)
    for mode, factor in enumerate(fit.factors):
        assert_unit_columns(factor, 1e-14)
        largest = factor[np.argmax(np.abs(factor), axis=0), range(RANK)]
        if mode < 2:
            np.testing.assert_allclose(largest, np.abs(largest), atol=1e-15)
    assert np.abs(np.angle(largest)).max() > 0.1


def test_conjugates_phases_and_unitary_maps_of_the_tensor_are_those_of_the_components():
    tensor, _, _ = planted(noise=0.01)
    unitary = np.linalg.qr(draws(np.random.default_rng(0), (7, 7)))[0]
    plain = codiag.factorize(tensor, RANK, rng=0)
    conjugated = codiag.factorize(tensor.conj(), RANK, rng=0)
    turned = codiag.factorize(1j * np.tensordot(unitary, tensor, 1), RANK, rng=0)
    assert_same_factors(conjugated, [factor.conj() for factor in plain.factors], 1e-7)
    assert_same_factors(turned, [unitary @ plain.factors[0], *plain.factors[1:]], 1e-7)
    np.testing.assert_allclose(turned.weights, plain.weights, rtol=1e-7)


def test_complex_numbers_without_imaginary_parts_have_the_fit_of_real_ones():
    tensor = codiag.synthetic.noisy_tensor((8, 7, 6), 3, noise=0.02, rng=0).tensor
    real, other = codiag.factorize(tensor, 3, rng=0), codiag.factorize(tensor.astype(complex), 3, rng=0)
    assert other.relative_error == pytest.approx(real.relative_error, rel=1e-8)
    assert_same_factors(other, real.factors, 1e-6)


@pytest.mark.parametrize("order", [3, 4])
def test_symmetric_tensors_have_one_factor(order):
    tensor, _, factors = planted((8,) * order, noise=1e-4, symmetric=True)
    fit = codiag.factorize(tensor, RANK, symmetric=True, rng=0)
    assert fit._symmetric
    assert_same_factors(fit, factors, 1e-3)


def test_some_modes_share_a_factor():
    _, weights, factors = planted((7, 7, 8))
    shared = [factors[0], factors[0], factors[2]]
    fit = codiag.factorize(FactoredTensor(weights, shared).to_dense(), RANK, symmetric=(0, 1), rng=0)
    assert_same_factors(fit, shared, 1e-6)


@pytest.mark.parametrize("kind", ["missing", "few", "nan", "weights", "ridge", "fixed"])
def test_missing_entries_weights_ridges_and_known_factors(kind):
    tensor, _, factors = planted((9, 8, 7), noise=1e-4)
    rng = np.random.default_rng(0)
    mask = rng.random(tensor.shape) < (0.35 if kind == "few" else 0.7)
    options = {
        "missing": {"weights": mask},
        "few": {"weights": mask},
        "weights": {"weights": rng.uniform(0.5, 2, tensor.shape)},
        "ridge": {"constraints": Ridge(1e-6)},
        "fixed": {"constraints": [None, Fixed(factors[1] * np.exp(1j * np.arange(3))), None]},
    }
    given = np.where(mask, tensor, np.nan) if kind == "nan" else tensor
    fit = codiag.factorize(given, RANK, rng=0, **options.get(kind, {}))
    assert_same_factors(fit, factors, 2e-3)


def test_a_ridge_shrinks_weights_as_it_does_those_of_real_tensors():
    """One component: the minimum over the weight w of half (w - t)^2 + strength * 3/2 * w^(2/3)."""
    tensor, _, _ = planted((4, 5, 6), 1)
    fit = codiag.factorize(tensor, 1, constraints=Ridge(0.1), rng=0)
    weight = float(fit.weights[0])
    assert weight - np.linalg.norm(tensor) + 0.1 * weight ** (-1 / 3) == pytest.approx(0, abs=1e-6)


LAYOUTS = {
    "free": {},
    "conjugate gradients": {"shape": (12, 13, 14), "rank": 9},
    "order four": {"shape": (4, 5, 3, 6)},
    "symmetric": {"shape": (6, 6, 6), "symmetric": True},
    "even order": {"shape": (4, 4, 4, 4), "symmetric": True},
    "two modes": {"shape": (6, 6, 5), "shared": (0, 1)},
    "ridge": {"constraints": Ridge(0.3)},
    "missing": {"missing": True},
}


def objective_at(shape=SHAPE, rank=RANK, symmetric=False, shared=False, constraints=None, missing=False):
    """Return an objective, and a point near no minimum."""
    rng = np.random.default_rng(0)
    tensor = planted(shape, rank, noise=0.3, symmetric=symmetric)[0]
    tensor = tensor if not shared else tensor + tensor.swapaxes(*shared)
    observed = rng.uniform(0.5, 1, shape) * (rng.random(shape) < 0.8) if missing else None
    problem = codiag.Problem(tensor, rank, constraints=constraints, weights=observed, symmetric=shared or symmetric)
    start = random_components(problem.tensor, rank, rng)
    objective = LeastSquares(problem, start)
    return objective, objective.parametrization.vectorize(start if not shared else objective.feasible(start))


@pytest.mark.parametrize("kind", LAYOUTS)
def test_gradients_and_second_derivatives_are_those_of_the_objective(kind):
    r"""For a move x, the objective changes by Re <g, x>, and the gradient by H x, real-linear in x."""
    objective, point = objective_at(**LAYOUTS[kind])
    move, step = draws(np.random.default_rng(1), point.shape), 1e-6
    steps = Steps(objective)
    state, ahead, behind = (steps.evaluated(point + length * move) for length in (0, step, -step))
    slope = (ahead.objective - behind.objective) / (2 * step)
    assert slope == pytest.approx(np.vdot(state.gradient, move).real, rel=1e-6)
    if kind != "missing":  # whose curvature for steps is an expectation
        image = objective.second_derivative(point, state.gradient).product(move)
        change = (ahead.gradient - behind.gradient) / (2 * step)
        np.testing.assert_allclose(image, change, atol=1e-5 * np.abs(change).max())
        curvature = objective.restricted(objective.curvature(point), state.gradient)
        product = np.reshape(curvature.matrix() @ move.ravel(), move.shape)
        np.testing.assert_allclose(product, curvature.product(move), atol=1e-11 * np.abs(product).max())


@pytest.mark.parametrize("library", [name for name in LIBRARIES if name != "jax"])
@pytest.mark.parametrize("precision", ["complex128", "complex64"])
def test_other_libraries_and_single_precision(library, precision):
    tensor, _, factors = planted(noise=1e-3)
    fit = codiag.factorize(LIBRARIES[library](tensor.astype(precision)), RANK, rng=0)
    assert type(fit.factors[0]) is type(LIBRARIES[library](tensor))
    assert str(fit.factors[0].dtype).endswith(precision)
    assert_same_factors([np.asarray(factor) for factor in fit.factors], factors, 0.02)


@pytest.mark.parametrize("share", [1.0, 0.6])
def test_standard_errors_are_those_of_circular_noise(share):
    tensor, weights, factors = planted()
    squares, predicted, shifts = [], [], []
    for trial in range(60):
        rng = np.random.default_rng(trial)
        observed = None if share == 1 else rng.random(SHAPE) < share
        start = NLS(init=(weights, factors))
        fit = codiag.factorize(tensor + 1e-3 * draws(rng, SHAPE), RANK, weights=observed, method=start, rng=0)
        pairs = zip(codiag.match_components(fit, factors).factors, factors, strict=True)
        squares.append([np.sum(np.abs(found - true) ** 2, axis=0) for found, true in pairs])
        predicted.append(np.asarray(fit.standard_errors) ** 2)
        shifts.append((fit.weights - weights) / fit.weight_standard_errors)
    # 60 trials of some 35 real degrees of freedom: 3 % by chance; 180 weights: 5 %.
    assert np.mean(squares) / np.mean(predicted) == pytest.approx(1, abs=0.1)
    assert np.std(shifts) == pytest.approx(1, abs=0.16)
    assert fit.noise_model.standard_deviation == pytest.approx(1e-3, rel=0.2)


def test_components_without_noise_are_found_whatever_the_rank():
    """At the oracle: 20^3 of rank 15, the least squares from the truth."""
    for seed in range(3):
        tensor, weights, factors = planted((20, 20, 20), 15, noise=0.01, seed=seed)
        oracle = codiag.factorize(tensor, 15, method=NLS(init=(weights, factors)), rng=0)
        assert codiag.factorize(tensor, 15, rng=0).relative_error <= oracle.relative_error * (1 + 1e-6)


def test_what_a_fit_can_do(tmp_path):
    tensor, _, _ = planted(noise=0.01)
    fit = codiag.factorize(tensor, RANK, rng=0)
    np.testing.assert_allclose(fit.transform(tensor, mode=1), fit.factors[1] * fit.weights, atol=1e-7)
    with pytest.raises(TypeError, match="^new must"):
        fit.transform(tensor.real, mode=1)
    fit.save(tmp_path / "fit.npz")
    np.testing.assert_array_equal(codiag.Factorization.load(tmp_path / "fit.npz").to_tensor(), fit.to_tensor())
    assert len(fit._repr_html_()) > 0
    pytest.importorskip("matplotlib").use("Agg")
    heights = [line.get_ydata() for axes in fit.plot().axes for line in axes.lines]
    assert all(not np.iscomplexobj(height) for height in heights)  # magnitudes
    assert fit.diagnose().verdicts == ("determined",) * RANK
    assert codiag.metrics.core_consistency(fit, tensor) > 99
    assert codiag.choose_rank(tensor, range(1, 5), rng=0).rank == RANK
    with pytest.raises(ValueError, match="intervals are of"):
        fit.conf_int()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"constraints": "nonnegative"}, "constraints of a"),
        ({"constraints": "orthogonal"}, "constraints of a"),
        ({"loss": "poisson"}, "^tensor must"),
    ],
)
def test_what_orders_numbers_is_refused(options, words):
    with pytest.raises(ValueError, match=words):
        codiag.factorize(planted()[0], RANK, **options)


class Drawn(Start):
    """One start of random factors, in one kind of numbers."""

    def __init__(self, draw):
        super().__init__()
        object.__setattr__(self, "draw", draw)

    def generate(self, problem, rng, log):
        yield FactoredTensor(np.ones(problem.rank), [self.draw(rng, (n, problem.rank)) for n in problem.tensor.shape])


def test_a_start_may_be_real_where_the_tensor_is_complex_but_not_the_other_way_round():
    tensor, _, factors = planted()
    real = Auto(starts=[Drawn(lambda rng, shape: rng.standard_normal(shape))])
    assert_same_factors(codiag.factorize(tensor, RANK, method=real, rng=0), factors, 1e-4)
    with pytest.raises(TypeError, match="^starts must"):
        codiag.factorize(tensor.real, RANK, method=Auto(starts=[Drawn(draws)]), rng=0)


def test_a_complex_factor_of_a_real_tensor_is_refused():
    with pytest.raises(ValueError, match="^constraints must"):
        codiag.factorize(np.ones((3, 4, 5)), 1, constraints=[Fixed(np.ones((3, 1)) * 1j), None, None])


def test_noise_passes_for_noise_and_a_component_does_not():
    """The largest eigenvalue of complex noise is below the bound of one in a thousand, and near it."""
    problem = codiag.Problem(planted((12, 10, 11))[0], RANK)
    rng = np.random.default_rng(0)
    excesses = [noise_excess(problem, DenseTensor(draws(rng, (12, 10, 11)))) for _ in range(200)]
    assert np.mean(np.array(excesses) > 1) <= 0.01
    assert np.quantile(excesses, 0.99) > 0.9
    component = planted((12, 10, 11), 1)[0]
    assert noise_excess(problem, DenseTensor(draws(rng, (12, 10, 11)) + 8 * component)) > 1


def test_noise_of_complex_entries_is_two_numbers_each():
    problem = codiag.Problem(planted()[0], RANK)
    assert problem.n_independent == 2 * np.prod(SHAPE)
    assert problem.n_parameters == 2 * RANK * (sum(SHAPE) - 2)


def test_halves_of_complex_tensors_agree():
    """Components of two halves differ by phases, which are not in the data."""
    rng = np.random.default_rng(0)
    factors = [rng.standard_normal((size, 2)) + 1j * rng.standard_normal((size, 2)) for size in (20, 6, 7)]
    tensor = np.einsum("ir,jr,kr->ijk", *factors)
    tensor += 0.05 * (rng.standard_normal(tensor.shape) + 1j * rng.standard_normal(tensor.shape))
    choice = codiag.choose_rank(tensor, [2], rng=0)
    assert choice.table["congruence"][0] > 0.99


def test_reports_and_residuals_of_complex_fits_are_refused():
    pytest.importorskip("matplotlib")
    tensor = np.full((3, 4, 5), 1 + 1j)
    with pytest.raises(TypeError, match="^fit must"):
        codiag.plotting.residuals(codiag.factorize(tensor, 1, rng=0), tensor)
