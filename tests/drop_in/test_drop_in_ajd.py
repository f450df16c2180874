"""pyriemann's functions of joint diagonalization, done by codiag: their arguments and conventions."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

from assertions import assert_same_factors
from cases import DIAGONALIZERS
from codiag._checks import ConvergenceWarning
from codiag.diagonalize import Jacobi
from codiag.drop_in import ajd
from tensor_cases import LIBRARIES

SIGNATURES = {  # of pyriemann 0.12, and of 0.13 for jade
    "ajd": "(X, method='ajd_pham', init=None, eps=1e-06, n_iter_max=100, **kwargs)",
    "jade": "(X, *, init=None, eps=1e-08, n_iter_max=100)",
    "rjd": "(X, *, init=None, eps=1e-08, n_iter_max=100)",
    "uwedge": "(X, *, init=None, eps=1e-07, n_iter_max=100)",
    "ajd_pham": "(X, *, init=None, eps=1e-06, n_iter_max=20, sample_weight=None)",
}
INDEFINITE = DIAGONALIZERS["UWEDGE"].stack(5, 8, noise=0.01).matrices


def covariances(n=12, size=4, seed=0, *, imaginary=0.0):
    """Return positive definite matrices that nothing diagonalizes exactly."""
    rng = np.random.default_rng(seed)
    samples = rng.standard_normal((n, size, 3 * size))
    if imaginary:
        samples = samples + 1j * imaginary * rng.standard_normal(samples.shape)
    return samples @ samples.conj().swapaxes(1, 2) / (3 * size)


def likelihood(rows, matrices, weights=None):
    diagonals = np.real(np.einsum("ia,lab,ib->li", rows, matrices, rows.conj()))
    return np.average(np.sum(np.log(diagonals), axis=1), weights=weights) - 2 * np.linalg.slogdet(rows)[1]


@pytest.mark.parametrize("name", ajd.__all__)
def test_signatures_are_those_of_pyriemann(name):
    parameters = inspect.signature(getattr(ajd, name)).parameters.values()
    plain = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in parameters]
    assert str(inspect.Signature(plain)) == SIGNATURES[name]


def test_rjd_diagonalizes_by_orthonormal_columns():
    case = DIAGONALIZERS["OrthogonalNewton"]
    stack = case.stack(6, 9, noise=0.02)
    columns, entries = ajd.rjd(stack.matrices)
    np.testing.assert_allclose(entries, columns.T @ stack.matrices @ columns, atol=1e-12)
    np.testing.assert_allclose(columns.T @ columns, np.eye(6), atol=1e-12)
    off = np.sum((entries * (1 - np.eye(6))) ** 2)
    assert off == pytest.approx(Jacobi(tol=1e-11)(stack.matrices).off_diagonal)


def test_jade_is_the_transpose_of_rjd():
    matrices, start = covariances(), np.linalg.qr(np.random.default_rng(0).standard_normal((4, 4)))[0]
    for init in (None, start):
        rows, entries = ajd.jade(matrices, init=init)
        columns, same = ajd.rjd(matrices, init=None if init is None else init.T)
        np.testing.assert_allclose(rows, columns.T, atol=1e-12)
        np.testing.assert_allclose(entries, same, atol=1e-12)
        np.testing.assert_allclose(entries, rows @ matrices @ rows.T, atol=1e-12)


def test_uwedge_scales_the_first_matrix_to_ones():
    case = DIAGONALIZERS["UWEDGE"]
    stack = case.stack(6, 9)
    rows, entries = ajd.uwedge(stack.matrices)
    np.testing.assert_allclose(entries, rows @ stack.matrices @ rows.T, atol=1e-12)
    np.testing.assert_allclose(np.abs(np.diag(entries[0])), 1)
    factor = np.linalg.inv(rows)
    assert_same_factors(factor / np.linalg.norm(factor, axis=0), stack.factor, 1e-7)


@pytest.mark.parametrize("imaginary", [0.0, 1.0], ids=["real", "complex"])
def test_ajd_pham_is_at_a_maximum_of_the_likelihood(imaginary):
    """The relative gradient vanishes, and no small step in any direction raises the likelihood."""
    matrices = covariances(imaginary=imaginary)
    rows, entries = ajd.ajd_pham(matrices, eps=1e-9)
    np.testing.assert_allclose(entries, rows @ matrices @ rows.conj().T, atol=1e-12)
    diagonals = np.real(np.einsum("lii->li", entries))
    gradient = np.mean(entries / diagonals[:, :, None], axis=0)
    np.testing.assert_allclose(gradient, np.eye(4), atol=1e-8)
    rng = np.random.default_rng(1)
    for _ in range(20):
        step = rng.standard_normal((4, 4)) + 1j * imaginary * rng.standard_normal((4, 4))
        assert likelihood(rows + 1e-2 * step @ rows, matrices) > likelihood(rows, matrices)


def test_ajd_pham_finds_complex_factors():
    rng = np.random.default_rng(0)
    factor = rng.standard_normal((4, 4)) + 1j * rng.standard_normal((4, 4))
    rows, entries = ajd.ajd_pham(factor @ (np.eye(4) * rng.uniform(1, 3, (7, 1, 4))) @ factor.conj().T, eps=1e-12)
    np.testing.assert_allclose(entries * (1 - np.eye(4)), 0, atol=1e-9)
    shares = np.abs(rows @ factor)
    np.testing.assert_allclose(np.sort(shares, axis=1)[:, :-1], 0, atol=1e-8)


def test_ajd_pham_weighs_as_copies_and_whatever_the_coordinates():
    matrices = covariances()
    weights = np.ones(12)
    weights[0] = 3
    weighted, _ = ajd.ajd_pham(matrices, eps=1e-10, sample_weight=weights)
    repeated, _ = ajd.ajd_pham(np.concatenate([matrices[[0, 0]], matrices]), eps=1e-10)
    np.testing.assert_allclose(weighted, repeated, atol=1e-7)
    mixing = np.random.default_rng(2).standard_normal((4, 4))
    mixed, _ = ajd.ajd_pham(mixing @ matrices @ mixing.T, init=np.linalg.inv(mixing), eps=1e-10, sample_weight=weights)
    np.testing.assert_allclose(mixed @ mixing, weighted, atol=1e-7)


@pytest.mark.parametrize("name", ["jade", "rjd", "uwedge", "ajd_pham"])
def test_a_solution_as_start_is_returned(name):
    """In its own order and with its own signs: rows (columns, for rjd) shuffled and flipped stay so."""
    matrices = covariances(n=8, size=5)
    axis = 1 if name == "rjd" else 0
    solution = ajd.ajd(matrices, method=name, eps=1e-10)[0]
    flips = np.expand_dims(np.array([1, -1, 1, -1, -1]), 1 - axis)
    start = np.take(solution, [3, 1, 4, 0, 2], axis=axis) * flips
    found, entries = ajd.ajd(matrices, method=name, init=start, eps=1e-10)
    np.testing.assert_allclose(found, start, atol=1e-6)
    assert entries.shape == matrices.shape


@pytest.mark.parametrize("name", ["jade", "rjd", "uwedge"])
def test_singular_matrices_have_square_diagonalizers(name):
    case = DIAGONALIZERS["UWEDGE" if name == "uwedge" else "OrthogonalNewton"]
    matrices = case.stack(6, 9, rank=4).matrices
    found, entries = ajd.ajd(matrices, method=name)
    assert np.linalg.matrix_rank(found) == 6
    np.testing.assert_allclose(entries * (1 - np.eye(6)), 0, atol=1e-7)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("name", ["jade", "rjd", "uwedge", "ajd_pham"])
def test_results_are_of_the_library_of_the_matrices(name, library):
    given = LIBRARIES[library](covariances())
    found = ajd.ajd(given, method=name)
    assert all(type(array) is type(given) and array.dtype == given.dtype for array in found)


def test_ajd_calls_a_function():
    assert ajd.ajd(INDEFINITE, method=lambda matrices, **options: (matrices, options), init=1) == (
        INDEFINITE,
        {"init": 1, "eps": 1e-6, "n_iter_max": 100},
    )


@pytest.mark.parametrize("name", ["jade", "rjd", "uwedge", "ajd_pham"])
def test_too_few_iterations_are_a_warning(name):
    with pytest.warns(ConvergenceWarning, match=f"{name} did not converge"):
        ajd.ajd(covariances(n=40, size=20), method=name, init=np.eye(20), n_iter_max=1, eps=0)


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: ajd.ajd(INDEFINITE, method="abc"), ValueError, "^method must"),
        (lambda: ajd.ajd_pham(INDEFINITE), ValueError, "^X must"),
        (lambda: ajd.rjd(covariances() + 1j), ValueError, "^X must"),
        (lambda: ajd.ajd_pham(1j * covariances()), ValueError, "^X must"),
        (lambda: ajd.ajd_pham(1j * covariances()[:, :, :-1]), ValueError, "^matrices must"),
        (lambda: ajd.ajd_pham(covariances(), sample_weight=np.zeros(12)), ValueError, "^sample_weight must"),
        (lambda: ajd.ajd_pham(covariances(), sample_weight=np.ones(3)), ValueError, "^sample_weight must"),
        (lambda: ajd.uwedge(INDEFINITE, init=np.eye(3)), ValueError, "^init must"),
        (lambda: ajd.uwedge(INDEFINITE, init=np.ones((5, 5))), ValueError, "^init must"),
        (lambda: ajd.uwedge(INDEFINITE, eps=-1), ValueError, "eps must"),
        (lambda: ajd.uwedge(INDEFINITE, n_iter_max=0.5), TypeError, "n_iter_max must"),
    ],
)
def test_what_is_refused(call, kind, message):
    with pytest.raises(kind, match=message):
        call()
