"""Invariances of joint diagonalization, as laws that hold for any problem."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import codiag
from assertions import assert_same_factors
from cases import COMPLEX, DIAGONALIZERS
from codiag.metrics import unit_factors
from codiag.synthetic import orthonormal_factor

NOISE = 1e-3
CASES = DIAGONALIZERS | COMPLEX
LAWFUL = [name for name, case in CASES.items() if case.settles and not (case.slow and name in COMPLEX)]
problems = st.fixed_dictionaries(
    {"size": st.integers(2, 5), "n": st.integers(4, 8), "seed": st.integers(0, 2**16)},
)
laws = settings(max_examples=8, deadline=None, derandomize=True)


def modes(fit):
    return (fit.factor,) if fit.symmetric or fit.hermitian else (fit.factor, fit.right_factor)


def solve(case, problem, change=lambda matrices: matrices):
    """Return the fit of the problem as it is, and of the changed one."""
    matrices = case.stack(problem["size"], problem["n"], noise=NOISE, seed=problem["seed"]).matrices
    with warnings.catch_warnings():
        if case.slow:  # linear convergence can be as slow as it likes
            warnings.simplefilter("ignore", codiag.ConvergenceWarning)
        fits = case.exactly(matrices, rng=0), case.exactly(change(matrices), rng=1)
    assume(all(fit.converged for fit in fits))
    return fits


def tolerance(fit):
    """Allow what the step tolerance leaves, more of it where components are hard to tell apart, far below the noise."""
    return 1e-5 * max(1.0, np.max(fit.standard_errors) / NOISE)


def resolved(fit):
    return np.max(fit.standard_errors) < 50 * NOISE and not fit.unresolved


@pytest.mark.parametrize("name", LAWFUL)
@laws
@given(problem=problems)
def test_orthogonal_mixing_of_the_matrices_changes_nothing(name, problem):
    """off() is a sum over the span of the matrices, not over the matrices."""
    mixing = orthonormal_factor(problem["n"], problem["n"], problem["seed"])
    plain, mixed = solve(CASES[name], problem, lambda matrices: np.tensordot(mixing, matrices, 1))
    assume(resolved(plain))
    assert_same_factors(mixed, modes(plain), tolerance(plain))
    assert mixed.off_diagonal == pytest.approx(plain.off_diagonal, rel=1e-4)


@pytest.mark.parametrize("name", LAWFUL)
@laws
@given(problem=problems)
def test_order_of_the_matrices_does_not_matter(name, problem):
    order = np.random.default_rng(problem["seed"]).permutation(problem["n"])
    plain, shuffled = solve(CASES[name], problem, lambda matrices: matrices[order])
    assume(resolved(plain))
    assert_same_factors(shuffled, modes(plain), tolerance(plain))


@pytest.mark.parametrize("name", LAWFUL)
@laws
@given(problem=problems, scale=st.floats(1e-3, 1e3))
def test_scale_of_the_matrices_goes_to_the_diagonals(name, problem, scale):
    plain, scaled = solve(CASES[name], problem, lambda matrices: scale * matrices)
    assume(resolved(plain))
    assert_same_factors(scaled, modes(plain), tolerance(plain))
    np.testing.assert_allclose(
        np.sort(np.abs(scaled.diagonals), axis=1),
        scale * np.sort(np.abs(plain.diagonals), axis=1),
        atol=1e-3 * scale,
    )


@pytest.mark.parametrize("name", LAWFUL)
@laws
@given(problem=problems)
def test_rotation_of_the_space_rotates_the_factors(name, problem):
    case = CASES[name]
    kind = replace(case, orthogonal=True)
    left, right = (kind.factor(problem["size"], problem["size"], problem["seed"] + side) for side in (0, 1))
    right = case.mirrored(left) if case.symmetric else right
    plain, turned = solve(case, problem, lambda matrices: _symmetric(left @ matrices @ right.T, case))
    assume(resolved(plain))
    expected = [rotation @ factor for rotation, factor in zip((left, right), modes(plain), strict=False)]
    assert_same_factors(turned, expected, tolerance(plain))


@pytest.mark.parametrize("name", [name for name in LAWFUL if CASES[name].symmetric and not CASES[name].orthogonal])
@laws
@given(problem=problems)
def test_congruence_transforms_free_factors(name, problem):
    """Free factors have no preferred coordinates: C M C^T, or C M C^H, has the factors C U."""
    case = CASES[name]
    change = case.factor(problem["size"], problem["size"], problem["seed"], spread=0.5)
    plain, moved = solve(case, problem, lambda matrices: _symmetric(change @ matrices @ case.mirrored(change).T, case))
    assume(resolved(plain) and resolved(moved))
    expected = unit_factors(change @ plain.factor, "expected")
    assert_same_factors(moved, expected, 10 * tolerance(moved))


def test_the_laws_are_not_vacuous():
    """Most problems of the strategy are resolved, so that the laws above assert something."""
    case = DIAGONALIZERS["UWEDGE"]
    fits = [
        case.method(case.stack(2 + seed % 4, 4 + seed % 5, noise=NOISE, seed=seed).matrices, rng=0)
        for seed in range(40)
    ]
    assert np.mean([resolved(fit) for fit in fits]) > 0.7


def _symmetric(matrices, case):
    return (matrices + case.mirrored(matrices).transpose(0, 2, 1)) / 2 if case.symmetric else matrices
