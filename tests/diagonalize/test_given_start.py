"""Diagonalization from a start that is given."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import scipy.linalg

import codiag
from assertions import assert_same_factors
from cases import COMPLEX, DIAGONALIZERS
from codiag.diagonalize import UWEDGE, JDi, OrthogonalNewton, TwoSided
from tensor_cases import LIBRARIES

CASES = DIAGONALIZERS | {name: case for name, case in COMPLEX.items() if not case.slow}
EVERY = pytest.mark.parametrize("name", CASES)


def rows_of(case, fit):
    """Return the inverse factors in the form that `init` takes."""
    return fit.inverse if case.symmetric else (fit.inverse, fit.right_inverse)


def factors_of(case, fit):
    return fit.factor if case.symmetric else (fit.factor, fit.right_factor)


def turned(case, rows, rng):
    """Return other rows with the same properties: orthonormal where the method wants them."""
    if not case.symmetric:
        return tuple(np.linalg.qr(side + 0.1 * rng.standard_normal(side.shape))[0] for side in rows)
    return np.linalg.qr(rows + 0.1 * rng.standard_normal(rows.shape))[0]


@EVERY
def test_a_solution_stays_where_it_is(name):
    case = CASES[name]
    case.skip_unless_it_settles()
    matrices = case.stack(6, 9, noise=1e-3).matrices
    fit = case.exactly(matrices, rng=0)
    again = case.exactly(matrices, init=rows_of(case, fit), rng=1)
    assert again.converged
    assert again.n_sweeps <= (fit.n_sweeps / 2 if case.slow else 4)
    assert_same_factors(again, factors_of(case, fit), 1e-7)


@EVERY
def test_a_warm_start_finds_the_factors_of_similar_matrices(name):
    case = CASES[name]
    case.skip_unless_it_settles()
    stack = case.stack(6, 9, noise=1e-3)
    near = stack.matrices + 1e-4 * case.stack(6, 9, seed=1).matrices
    cold, first = case.exactly(near, rng=0), case.exactly(stack.matrices, rng=0)
    warm = case.exactly(near, init=rows_of(case, first), rng=0)
    assert warm.converged
    assert_same_factors(warm, factors_of(case, cold), 1e-6)


@EVERY
def test_a_start_elsewhere_ends_at_the_same_factors(name):
    case = CASES[name]
    stack = case.stack(4, 9)
    rows = rows_of(case, case.method(stack.matrices, rng=0))
    fit = case.method(stack.matrices, init=turned(case, rows, np.random.default_rng(0)), rng=0)
    assert_same_factors(fit, stack.factor if case.symmetric else (stack.factor, stack.right_factor), 1e-6)


@EVERY
def test_rows_of_a_start_are_components(name):
    """Matrices of low rank, and the rank given or not: a start has a row for each component."""
    case = CASES[name]
    stack = case.stack(7, 9, rank=3)
    fit = dataclasses.replace(case.method, rank=3)(stack.matrices, rng=0)
    again = case.method(stack.matrices, init=rows_of(case, fit), rng=0)
    assert again.factor.shape == (7, 3)
    assert_same_factors(again, factors_of(case, fit), 1e-6)


@EVERY
def test_identity_is_no_trap(name):
    """Matrices without diagonals make a saddle, or a point that is no start at all, of the identity."""
    case = CASES[name]
    diagonals = np.random.default_rng(0).standard_normal((6, 4))
    diagonals -= diagonals.mean(axis=1, keepdims=True)
    hadamard = scipy.linalg.hadamard(4) / 2 if case.field == "real" else scipy.linalg.dft(4, scale="sqrtn")
    diagonals = diagonals * (1 if case.field in ("real", "hermitian") else np.exp(1j * diagonals))
    matrices = (hadamard * diagonals[:, None, :]) @ case.mirrored(hadamard).T
    fit = case.method(matrices, init=np.eye(4) if case.symmetric else (np.eye(4), np.eye(4)), rng=0)
    assert fit.converged
    assert fit.off_diagonal < 1e-12


@pytest.mark.parametrize("method", [OrthogonalNewton(), TwoSided(orthogonal=True)], ids=["one side", "two sides"])
def test_a_saddle_that_steps_cannot_leave_is_no_solution(method):
    """Proportional matrices: opposite diagonals everywhere, so that no pair is resolved from any point."""
    matrices = np.array([[[0.0, 1.0], [1.0, 0.0]], [[0.0, 2.0], [2.0, 0.0]]])
    fit = method(matrices, init=np.eye(2) if method.symmetric else (np.eye(2), np.eye(2)), rng=0)
    assert fit.converged == (fit.off_diagonal < 1e-12)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("method", [UWEDGE(), OrthogonalNewton(), JDi(), TwoSided()], ids=lambda method: method.name)
def test_starts_come_from_any_library(library, method):
    case = DIAGONALIZERS[method.name]
    stack = case.stack(4, 5)
    fit = method(stack.matrices, rng=0)
    init = rows_of(case, fit)
    given = LIBRARIES[library](init) if case.symmetric else tuple(LIBRARIES[library](side) for side in init)
    again = method(LIBRARIES[library](stack.matrices), init=given, rng=0)
    assert type(again.factor) is type(LIBRARIES[library](fit.factor))
    assert again.converged


def test_scale_of_a_start_does_not_matter():
    matrices = DIAGONALIZERS["UWEDGE"].stack(5, 8, noise=0.01).matrices
    init = UWEDGE()(matrices, rng=0).inverse + 0.05 * np.random.default_rng(0).standard_normal((5, 5))
    scales = 10.0 ** np.array([3, -4, 0, 2, -1])[:, None]
    one, two = (codiag.joint_diagonalize(matrices, init=start, rng=0) for start in (init, scales * init))
    np.testing.assert_allclose(one.factor, two.factor, atol=1e-10)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("size", [1e-300, 1e-160, 1e160, 1e300])
@pytest.mark.parametrize("name", DIAGONALIZERS)
def test_huge_and_tiny_starts(name, size):
    """Free factors start from rows of any size; orthonormal ones refuse rows that are not, without overflow."""
    case = DIAGONALIZERS[name]
    stack = case.stack(4, 5).matrices
    init = size * np.eye(4) if case.symmetric else (size * np.eye(4), np.eye(4))
    if case.orthogonal:
        with pytest.raises(ValueError, match="^init must have orthonormal rows"):
            case.method(stack, init=init)
    else:
        assert case.method(stack, init=init, rng=0).converged


STACK = DIAGONALIZERS["UWEDGE"].stack(4, 5).matrices
LOW = DIAGONALIZERS["UWEDGE"].stack(4, 5, rank=2).matrices


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: UWEDGE()(STACK, init=np.eye(3)), ValueError, "^init must"),
        (lambda: UWEDGE()(STACK, init=np.ones((5, 4))), ValueError, "^init must"),
        (
            lambda: UWEDGE()(STACK, init=np.ones((4, 4))),
            ValueError,
            "^init must",
        ),
        (lambda: UWEDGE()(STACK, init=np.full((4, 4), np.nan)), ValueError, "^init must"),
        (lambda: UWEDGE()(STACK, init=1j * np.eye(4)), TypeError, "^init must"),
        (lambda: UWEDGE(rank=3)(STACK, init=np.eye(4)), ValueError, "^init must"),
        (lambda: UWEDGE()(LOW, init=np.eye(4)), ValueError, "^init must"),
        (lambda: OrthogonalNewton()(STACK, init=2 * np.eye(4)), ValueError, "^init must"),
        (lambda: TwoSided()(STACK, init=np.eye(4)), TypeError, "^init must"),
        (lambda: TwoSided()(STACK, init=(np.eye(4), np.eye(3))), ValueError, r"init\[1\] must have"),
        (lambda: codiag.joint_diagonalize(STACK, init="random"), TypeError, "init must"),
    ],
)
def test_starts_that_are_refused(call, kind, message):
    with pytest.raises(kind, match=message):
        call()
