"""The shared parts of the Newton-like methods: products, steps, acceleration, stopping, fallback."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import scipy.linalg

from assertions import assert_same_factors
from codiag._arrays import Extrapolation
from codiag.diagonalize import (
    UWEDGE,
    JDi,
    MatrixStack,
    OrthogonalNewton,
    QuadraticModel,
    Step,
    criterion,
    rotate,
    shear,
)
from codiag.synthetic import matrix_stack, mild_factor, orthonormal_factor, unit_factor
from simulated import projection_stack


@pytest.mark.parametrize("elements", [1, 60, 10**6])
def test_moments_are_those_of_the_transformed_matrices(monkeypatch, elements):
    """Whatever the size of the slabs, from one matrix at a time to all at once."""
    monkeypatch.setattr("codiag.diagonalize._stack.CACHED_ELEMENTS", elements)
    rng = np.random.default_rng(0)
    stack, left, right = rng.standard_normal((7, 4, 5)), rng.standard_normal((3, 4)), rng.standard_normal((3, 5))
    weights, probe = rng.uniform(size=7), rng.choice([-1.0, 1.0], 3)
    transformed = np.einsum("ia,lab,jb->lij", left, stack, right)
    diagonals, sums, energy = MatrixStack(stack).moments(left, right, probe)
    expected = np.einsum("lii->il", transformed)
    np.testing.assert_allclose(diagonals, expected)
    np.testing.assert_allclose(sums @ right.T, np.einsum("il,lij->ij", expected, transformed))
    rest = transformed * (1 - np.eye(3))
    np.testing.assert_allclose(energy, np.sum((rest @ probe) ** 2, axis=0))
    full_diagonals, residuals = MatrixStack(stack).residuals(left, right, weights)
    np.testing.assert_allclose(full_diagonals, expected.T)
    np.testing.assert_allclose(residuals, np.einsum("l,lij->ij", weights, rest**2), atol=1e-14)


def test_probed_energy_is_unbiased():
    rng = np.random.default_rng(0)
    stack, inverse = rng.standard_normal((5, 6, 6)), rng.standard_normal((6, 6))
    probed = [np.sum(MatrixStack(stack).moments(inverse, inverse, rng.choice([-1.0, 1.0], 6))[2]) for _ in range(2000)]
    assert np.mean(probed) == pytest.approx(np.sum(MatrixStack(stack).residuals(inverse, inverse, None)[1]), rel=0.03)


@pytest.mark.parametrize("size", [1e-8, 0.01, 0.05, 0.5])
def test_cayley_transform_is_a_rotation(size):
    skew = np.random.default_rng(0).standard_normal((5, 5)) * size
    skew = skew - skew.T
    rotation = rotate(skew, np.eye(5))
    exact = np.linalg.solve(np.eye(5) - skew / 2, np.eye(5) + skew / 2)
    # The series is used up to a norm of 0.3 of the half step, and stops at its fifth power.
    bound = (np.linalg.norm(skew) / 2) ** 5 if np.linalg.norm(skew) / 2 <= 0.3 else 0
    np.testing.assert_allclose(rotation, exact, atol=2 * bound + 1e-14)
    np.testing.assert_allclose(rotation @ rotation.T, np.eye(5), atol=4 * bound + 1e-14)


def test_near_identity_system_is_solved():
    rng = np.random.default_rng(1)
    move, target = rng.standard_normal((2, 4, 4)), rng.standard_normal((2, 4, 4))
    solution = shear(move, target)
    np.testing.assert_allclose(solution - move @ solution, target, atol=1e-10)


def test_anderson_solves_a_linear_fixed_point_in_as_many_steps_as_it_remembers():
    """On x -> A x + b with n unknowns, n + 1 accelerated steps are exact; plain ones contract by 0.7 a step."""
    rng = np.random.default_rng(0)
    basis = orthonormal_factor(4, 4, rng)
    contraction = basis @ np.diag([0.7, 0.5, -0.5, 0.2]) @ basis.T
    shift = rng.standard_normal((4, 1))
    exact = np.linalg.solve(np.eye(4) - contraction, shift)
    point, path = np.zeros((4, 1)), Extrapolation()
    for _ in range(6):
        point = point + path.step(contraction @ point + shift - point)
    np.testing.assert_allclose(point, exact, atol=1e-6)


def test_acceleration_pays_where_contraction_is_slow():
    """Noise that drowns some pairs makes plain steps crawl: hundreds of them, against tens."""
    stack = projection_stack(orthonormal_factor(50, 50, rng=0), np.ones(50), 50, noise=0.05, seed=1)
    assert OrthogonalNewton()(stack.matrices, rng=0).n_sweeps < 50


def test_noise_does_not_pass_for_convergence_far_from_a_solution():
    """At a bad point the noise looks enormous, and every move small beside it; only near a solution does that count."""
    limits = UWEDGE()._limits(np.zeros((1, 1, 1)))
    before = Step(None, None, merit=1.0, largest=0.7, standardized=26.0, contraction=0.1)
    far = Step(None, None, merit=1.0, largest=0.54, standardized=0.1, contraction=0.1)
    assert not limits.reached(far, before)
    assert limits.reached(far._replace(largest=0.05), before)
    assert not limits.reached(far._replace(largest=0.05), None)  # one point shows no contraction
    assert limits.reached(far._replace(largest=1e-9), None)


@pytest.mark.parametrize("method", [OrthogonalNewton(), UWEDGE()], ids=lambda method: type(method).__name__)
def test_looser_tolerance_takes_fewer_sweeps(method):
    make = orthonormal_factor if isinstance(method, OrthogonalNewton) else mild_factor
    matrices = matrix_stack(make(20, 20, rng=0), 20, noise=0.02, rng=1).matrices
    strict = type(method)(statistical_tol=0.0)(matrices, rng=0)
    default = method(matrices, rng=0)
    assert default.n_sweeps < strict.n_sweeps
    assert np.max(np.linalg.norm(default.factor - strict.factor, axis=0)) < 0.02 * np.min(strict.standard_errors)


@pytest.mark.parametrize("orthogonal", [True, False])
def test_sketch_changes_the_way_not_the_answer(monkeypatch, orthogonal):
    """From 32 matrices on, the first steps are taken on a few combinations of them, unless all steps are cheap."""
    kind, make = (OrthogonalNewton, orthonormal_factor) if orthogonal else (UWEDGE, mild_factor)
    matrices = matrix_stack(make(20, 20, rng=0), 50, noise=1e-3, rng=1).matrices
    exact = kind(statistical_tol=1e-12, tol=1e-11)
    with_sketch = exact(matrices, rng=0)
    for module in ("_orthogonal_newton", "_uwedge"):
        monkeypatch.setattr(f"codiag.diagonalize.{module}.sketched", lambda *_: None)
    without = exact(matrices, rng=0)
    assert without.n_sweeps < with_sketch.n_sweeps
    np.testing.assert_allclose(with_sketch.factor, without.factor, atol=1e-9)


def test_uwedge_falls_back_on_jdi():
    """Steps cut short converge from no start, and the answer is that of J-Di, to its tolerance of 1e-4."""
    stack = matrix_stack(unit_factor(12, 12, rng=0), 12, noise=0.02, rng=1)
    fit = UWEDGE(max_sweeps=1)(stack.matrices, rng=0)
    assert fit.converged
    assert fit.n_sweeps > 1
    assert_same_factors(fit.factor, JDi()(stack.matrices).factor, 1e-3)


def test_noise_without_common_factors_takes_bounded_work():
    """Steps from three starts, at most a hundred each, and no sweeps of J-Di: they would take as long as thousands."""
    noise = np.random.default_rng(0).standard_normal((50, 40, 40))
    matrices = noise + noise.transpose(0, 2, 1)
    assert UWEDGE(statistical_tol=0.0)(matrices, rng=0).n_sweeps <= 3 * 100 + 20


def test_a_second_start_is_tried_only_if_contraction_is_uncertain(monkeypatch):
    monkeypatch.setattr("codiag.diagonalize._uwedge.whitened_start", lambda *_: pytest.fail("no other start is needed"))
    make = partial(matrix_stack, mild_factor(10, 10, rng=0), 20, rng=1)
    assert UWEDGE()(make(noise=1e-3).matrices, rng=0).converged
    with pytest.raises(pytest.fail.Exception):
        UWEDGE()(make(noise=0.5).matrices, rng=0)


def test_uwedge_does_not_fall_back_where_that_would_take_minutes(monkeypatch):
    monkeypatch.setattr("codiag.diagonalize._uwedge.MAX_SWEPT_SIZE", 8)
    matrices = matrix_stack(unit_factor(12, 12, rng=0), 40, noise=0.02, rng=1).matrices
    assert not UWEDGE(max_sweeps=1)(matrices, rng=0).converged


def test_large_problems_start_from_a_symmetric_eigenproblem(monkeypatch):
    """Above a size, no nonsymmetric eigenproblem is solved if the symmetric start converges, as it does for mild U."""
    stack = matrix_stack(mild_factor(20, 20, rng=0), 40, noise=1e-3, rng=1)
    exact = UWEDGE(statistical_tol=1e-12, tol=1e-11)
    usual = exact(stack.matrices, rng=0)
    monkeypatch.setattr("codiag.diagonalize._uwedge.LARGE", 10)
    monkeypatch.setattr("codiag.diagonalize._uwedge.pencil_start", lambda *_: pytest.fail("the pencil was not needed"))
    assert_same_factors(exact(stack.matrices, rng=0), usual.factor, 1e-9)


def test_iterations_leave_a_saddle_that_repels_them_slowly():
    """Plain moves multiply the distance from the saddle at zero by 1.02: from 1e-4 they need 460 steps to the end."""
    path, point, n_steps = Extrapolation(), np.array([1e-4, 0.3]), 0
    while abs(point[0] - 1) > 1e-6:
        point = point + path.step(np.array([0.02 * point[0] * (1 - point[0] ** 2), -0.5 * point[1]]))
        n_steps += 1
        assert n_steps < 200


def few_noisy_matrices(size, seed):
    """Return five matrices in which many pairs are hardly told apart."""
    rng = np.random.default_rng([size, seed])
    weights = rng.standard_normal(size) ** 2
    return projection_stack(orthonormal_factor(size, size, rng), weights, 5, noise=0.05, seed=rng).matrices


def test_curvature_is_the_derivative_of_the_gradient():
    matrices, rng = few_noisy_matrices(7, 0), np.random.default_rng(0)
    draws = rng.standard_normal((2, 7, 7))
    turn, inverse = draws[0] - draws[0].T, np.linalg.qr(draws[1])[0]
    rotated = [scipy.linalg.expm(t * turn) @ inverse for t in (-1e-4, 0, 1e-4)]
    energies = [QuadraticModel.at(MatrixStack(matrices), rows).energy / -4 for rows in rotated]
    model = QuadraticModel.at(MatrixStack(matrices), inverse)
    assert (energies[2] - energies[0]) / 2e-4 == pytest.approx(np.sum(model.gradient * turn), rel=1e-5)
    curvature = (energies[2] - 2 * energies[1] + energies[0]) / 1e-8
    assert curvature == pytest.approx(np.sum(turn * model.curvature(turn)), rel=1e-4)


@pytest.mark.parametrize("seed", range(2))
def test_few_noisy_matrices_converge_to_a_minimum(seed):
    """Steps of single pairs creep here, and Jacobi sweeps too: neither ends in two hundred."""
    matrices = few_noisy_matrices(40, seed)
    fit = OrthogonalNewton(statistical_tol=0.0)(matrices, rng=0)
    assert fit.converged
    model = QuadraticModel.at(MatrixStack(matrices), fit.inverse)
    assert np.max(np.abs(model.gradient)) < 1e-8 * model.energy
    rng = np.random.default_rng(seed)
    for _ in range(20):
        draws = rng.standard_normal((40, 40))
        assert np.sum((draws - draws.T) * model.curvature(draws - draws.T)) > 0


def test_steps_that_are_asked_for_are_all_that_are_taken():
    fit = OrthogonalNewton(statistical_tol=0.0, max_sweeps=20)(few_noisy_matrices(40, 0), rng=0)
    assert not fit.converged


def test_criterion_does_not_depend_on_the_scale_of_rows():
    rng = np.random.default_rng(0)
    core, rows = MatrixStack(few_noisy_matrices(6, 0)), rng.standard_normal((6, 6))
    scaled = rows * 10.0 ** rng.integers(-3, 4, (6, 1))
    assert criterion(core, scaled, scaled) == pytest.approx(criterion(core, rows, rows))
