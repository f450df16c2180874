"""What every diagonalizer promises."""

from __future__ import annotations

import dataclasses
import pickle

import numpy as np
import pytest

import codiag
from assertions import assert_same_factors, assert_same_to_rounding, assert_unit_columns
from cases import COMPLEX, DIAGONALIZERS, SYMMETRIC
from codiag.diagonalize import Diagonalizer

CASES = DIAGONALIZERS | COMPLEX
EVERY = pytest.mark.parametrize("name", CASES)
SIZES = [(2, 2), (7, 5), (33, 6)]


def with_rank(method: Diagonalizer, rank: int) -> Diagonalizer:
    return dataclasses.replace(method, rank=rank)


@EVERY
@pytest.mark.parametrize(("size", "n"), SIZES)
def test_noiseless_factors_are_found(name, size, n):
    case = CASES[name]
    if size > (15 if case.field == "real" else 7) and (case.slow or case.field != "real"):
        pytest.skip("linear convergence, or complex: the small sizes show the same")
    stack = case.stack(size, n)
    fit = case.method(stack.matrices, rng=0)
    assert fit.converged
    # Shears stop at steps of 1e-8, which for linear convergence leaves a few times that.
    assert_same_factors(fit, case.truth(stack), 1e-7)


@EVERY
def test_convention(name):
    """matrices[l] = factor @ diag(diagonals[l]) @ right_factor.T, unit columns, inverses that are inverses."""
    case = CASES[name]
    stack = case.stack(6, 8)
    fit = case.method(stack.matrices, rng=0)
    for l, matrix in enumerate(stack.matrices):
        np.testing.assert_allclose(fit.factor @ np.diag(fit.diagonals[l]) @ fit.right_factor.T, matrix, atol=1e-6)
    np.testing.assert_allclose(fit.reconstruct(), stack.matrices, atol=1e-6)
    for factor, inverse in ((fit.factor, fit.inverse), (fit.right_factor, fit.right_inverse)):
        assert_unit_columns(factor, 1e-14)
        np.testing.assert_allclose(inverse @ factor, np.eye(6), atol=1e-12)
        largest = factor[np.argmax(np.abs(factor), axis=0), range(6)]
        assert np.all(largest.real > 0)
        np.testing.assert_allclose(largest.imag, 0, atol=1e-15)
    energy = np.sum(np.abs(fit.diagonals) ** 2, axis=0)
    assert np.all(np.diff(energy) <= 0)
    assert fit.hermitian == (case.field == "hermitian")
    assert np.array_equal(fit.right_factor, fit.factor.conj() if fit.hermitian else fit.factor) == case.symmetric
    assert (fit.right_factor is fit.factor) == (case.symmetric and not fit.hermitian)
    assert np.iscomplexobj(fit.diagonals) == (case.field in ("symmetric", "general"))


@EVERY
def test_residuals_are_what_the_inverse_factors_leave(name):
    case = CASES[name]
    case.skip_unless_it_settles()
    stack = case.stack(6, 8, noise=0.01)
    fit = case.method(stack.matrices, rng=0)
    transformed = fit.inverse @ stack.matrices @ fit.right_inverse.T
    np.testing.assert_allclose(np.diagonal(transformed, axis1=1, axis2=2), fit.diagonals, atol=1e-12)
    expected = np.sum(np.abs(transformed) ** 2, axis=0) * (1 - np.eye(6))
    np.testing.assert_allclose(fit.residuals, expected, rtol=1e-9, atol=1e-20)
    assert fit.off_diagonal == pytest.approx(expected.sum())


@EVERY
def test_orthogonal_methods_return_orthonormal_factors(name):
    case = CASES[name]
    if not case.orthogonal:
        pytest.skip("the factors are free")
    fit = case.method(case.stack(9, 7, noise=0.05).matrices, rng=0)
    for factor in (fit.factor, fit.right_factor):
        np.testing.assert_allclose(factor.conj().T @ factor, np.eye(9), atol=1e-13)


@EVERY
def test_low_rank_is_compressed(name):
    case = CASES[name]
    stack = case.stack(9, 6, rank=4, noise=1e-6)
    fit = with_rank(case.method, 4)(stack.matrices, rng=0)
    assert fit.factor.shape == (9, 4)
    assert_same_factors(fit, case.truth(stack), 1e-4)
    np.testing.assert_allclose(fit.inverse @ fit.factor, np.eye(4), atol=1e-12)


@EVERY
def test_singular_matrices_are_compressed_by_default(name):
    """Null directions never converge (a trap), so a stack that is singular to rounding shrinks to its range."""
    case = CASES[name]
    stack = case.stack(9, 6, rank=4)
    fit = case.method(stack.matrices, rng=0)
    assert fit.factor.shape == (9, 4)
    assert_same_factors(fit, case.truth(stack), 1e-6)


@EVERY
def test_rank_one(name):
    case = CASES[name]
    stack = case.stack(5, 4, rank=1)
    fit = case.method(stack.matrices, rng=0)
    assert_same_factors(fit, case.truth(stack), 1e-12)
    np.testing.assert_allclose(fit.reconstruct(), stack.matrices, atol=1e-12)
    assert fit.off_diagonal == 0


@EVERY
def test_weight_two_is_the_matrix_twice(name):
    case = CASES[name]
    case.skip_unless_it_settles()
    matrices = case.stack(5, 6, noise=0.02).matrices
    weighted = case.exactly(matrices, sample_weight=[2, 1, 1, 1, 1, 3], rng=0)
    repeated = case.exactly(matrices[[0, 0, 1, 2, 3, 4, 5, 5, 5]], rng=0)
    assert_same_factors(weighted, case.truth(repeated), 1e-6)
    assert weighted.off_diagonal == pytest.approx(repeated.off_diagonal, rel=1e-6)
    assert weighted.diagonals.shape == (6, 5)


@EVERY
def test_weight_zero_is_no_matrix_at_all(name):
    case = CASES[name]
    case.skip_unless_it_settles()
    matrices = case.stack(5, 7, noise=0.02).matrices
    weighted = case.exactly(matrices, sample_weight=[0, 1, 1, 1, 1, 1, 1], rng=0)
    fewer = case.exactly(matrices[1:], rng=0)
    assert_same_factors(weighted, case.truth(fewer), 1e-6)
    np.testing.assert_allclose(weighted.noise, fewer.noise, rtol=1e-5)


@EVERY
def test_same_seed_same_answer(name):
    case = CASES[name]
    matrices = case.stack(5, 20, noise=0.05 if case.settles else 0.0).matrices
    first, second = (case.method(matrices, rng=3) for _ in range(2))
    assert_same_to_rounding(first.factor, second.factor)
    assert_same_to_rounding(first.diagonals, second.diagonals)


@EVERY
def test_any_seed_same_answer(name):
    """Ten seeds agree far below the noise: the start is random, the solution is not."""
    case = CASES[name]
    case.skip_unless_it_settles()
    if case.slow and name in COMPLEX:
        pytest.skip("linear convergence: real matrices show the same")
    matrices = case.stack(8, 40, noise=1e-3).matrices
    reference = case.exactly(matrices, rng=0)
    for seed in range(1, 10):
        np.testing.assert_allclose(case.exactly(matrices, rng=seed).factor, reference.factor, atol=1e-6)


@EVERY
def test_input_is_not_modified(name):
    case = CASES[name]
    case.skip_unless_it_settles()
    matrices = case.stack(5, 6, noise=0.01).matrices
    copy = matrices.copy()
    matrices.flags.writeable = False
    case.method(matrices, sample_weight=np.arange(1.0, 7.0), rng=0)
    np.testing.assert_array_equal(matrices, copy)


@EVERY
def test_single_precision_stays_single(name):
    case = CASES[name]
    stack = case.stack(6, 8)
    fit = case.method(stack.matrices.astype(np.float32 if case.field == "real" else np.complex64), rng=0)
    dtypes = {array.dtype for array in (fit.factor, fit.inverse, fit.diagonals, fit.residuals)}
    assert dtypes == {np.dtype("float32")} if case.field == "real" else {np.dtype("float32"), np.dtype("complex64")}
    assert fit.converged
    assert_same_factors(fit, case.truth(stack), 1e-4)
    if case.orthogonal:
        np.testing.assert_allclose(fit.factor.conj().T @ fit.factor, np.eye(6), atol=1e-6)


@EVERY
@pytest.mark.parametrize("scale", [1e-140, 1e140])
def test_no_scale_is_too_small_or_too_large(name, scale):
    case = CASES[name]
    stack = case.stack(4, 5)
    fit = case.method(scale * stack.matrices, rng=0)
    assert_same_factors(fit, case.truth(stack), 1e-6)
    assert fit.off_diagonal < 1e-10 * scale**2
    np.testing.assert_allclose(fit.reconstruct() / scale, stack.matrices, atol=1e-6)


@EVERY
def test_methods_are_values(name):
    method = CASES[name].method
    assert pickle.loads(pickle.dumps(method)) == method
    assert hash(method) == hash(dataclasses.replace(method))
    with pytest.raises(dataclasses.FrozenInstanceError):
        method.tol = 1.0


@EVERY
def test_not_converging_is_data_of_the_objects_and_one_warning_of_the_function(name):
    case = CASES[name]
    rng = np.random.default_rng(0)
    hopeless = rng.standard_normal((4, 12, 12)) + (0 if case.field == "real" else 1j * rng.standard_normal((4, 12, 12)))
    hopeless = hopeless + case.mirrored(hopeless).transpose(0, 2, 1) if case.symmetric else hopeless
    method = dataclasses.replace(case.exactly, max_sweeps=2)
    if name.startswith("UWEDGE"):
        pytest.skip("it falls back on J-Di; see test_newton_like.py")
    fit = method(hopeless, rng=0)  # the suite turns warnings into errors
    assert not fit.converged
    assert np.all(np.isfinite(fit.factor))
    with pytest.warns(codiag.ConvergenceWarning, match="did not converge") as caught:
        codiag.joint_diagonalize(hopeless, diagonalizer=method, rng=0)
    assert [warning.filename for warning in caught] == [__file__]


@pytest.mark.parametrize("name", SYMMETRIC)
def test_joint_diagonalize_takes_every_symmetric_method(name):
    case = SYMMETRIC[name]
    stack = case.stack(4, 5)
    fit = codiag.joint_diagonalize(stack.matrices, diagonalizer=case.method, orthogonal=case.orthogonal, rng=0)
    assert_same_factors(fit, stack.factor, 1e-7)
    assert "4 components" in repr(fit)
