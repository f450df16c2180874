"""More components than any mode measures: modes taken together, and the rank-one matrices in the span of slices."""

from __future__ import annotations

import math

import numpy as np
import pytest

import codiag
from codiag.diagonalize import UWEDGE
from codiag.methods import NOJD
from codiag.starts import gram_null_space, rank_one_roles
from codiag.synthetic import noisy_tensor, unit_factor
from experiments.fitting import silent_fit
from tests.assertions import assert_same_factors

BEYOND = {
    "order four": ((5, 4, 6, 5), 9, False),
    "order four, symmetric": ((5,) * 4, 9, True),
    "order five": ((4, 3, 4, 4, 3), 7, False),
    "order five, symmetric": ((4,) * 5, 9, True),
    "order six, two modes of three together": ((3,) * 6, 11, False),
    "order six, symmetric": ((3,) * 6, 6, True),
    "order three, one long mode": ((5, 6, 14), 12, False),
}


@pytest.mark.parametrize("name", BEYOND)
def test_components_are_exact_without_a_random_start(name):
    shape, rank, symmetric = BEYOND[name]
    problem = noisy_tensor(shape, rank, symmetric=symmetric, rng=3)
    fit = codiag.factorize(problem.tensor, rank, symmetric=symmetric, rng=0)
    assert not [stage.name for stage in fit.history if "random" in stage.name]
    assert_same_factors(fit, problem, 1e-6)


@pytest.mark.parametrize("symmetric", [True, False])
def test_noise_leaves_it_at_the_minimum(symmetric):
    problem = noisy_tensor((6,) * 4, 10, symmetric=symmetric, noise=1e-3, rng=0)
    fit = codiag.factorize(problem.tensor, 10, symmetric=symmetric, rng=0)
    truth = codiag.methods.NLS(init=(problem.weights, problem.factors), max_replacements=0)
    least = codiag.factorize(problem.tensor, 10, symmetric=symmetric, method=truth)
    assert fit.relative_error <= 1.001 * least.relative_error


@pytest.mark.parametrize(("shape", "symmetric"), [((4,) * 5, True), ((4, 3, 4, 4, 3), False)])
@pytest.mark.parametrize("method", [NOJD(), NOJD(plug_in=False, compress=False)], ids=["NOJD1", "NOJD0, uncompressed"])
def test_nojd_takes_modes_together(shape, symmetric, method):
    problem = noisy_tensor(shape, 7, symmetric=symmetric, rng=1)
    assert_same_factors(codiag.factorize(problem.tensor, 7, method=method, rng=0), problem, 1e-6)


@pytest.mark.parametrize(
    ("shape", "rank", "method", "message"),
    [
        ((3,) * 5, 10, "nojd0", "^rank must"),
        ((3,) * 5, 4, "ojd0", "^rank must"),
        ((3,) * 4, 4, "nojd0", "^rank must"),
    ],
)
def test_what_cannot_be_diagonalized_is_refused(shape, rank, method, message):
    tensor = np.random.default_rng(0).standard_normal(shape)
    with pytest.raises(ValueError, match=message):
        codiag.factorize(tensor, rank, method=method)


def test_the_largest_rank_of_a_symmetric_tensor_that_nojd_takes():
    """Pairs of three indices, in either order: six."""
    tensor = noisy_tensor((3,) * 5, 7, symmetric=True, rng=0).tensor
    with pytest.raises(ValueError, match="^rank must"):
        codiag.factorize(tensor, 7, method="nojd0", symmetric=True)


def test_the_null_space_is_spanned_by_the_squares_of_the_coordinates():
    r"""For E_r = sum_t (F^-1)_tr a_t b_t^T, matrices :math:`f_t f_t^\top` solve the equations, and no others do."""
    rng = np.random.default_rng(0)
    a, b, mixing = unit_factor(5, 7, rng), unit_factor(4, 7, rng), rng.standard_normal((7, 7))
    stack = np.einsum("it,jt,tr->rij", a, b, mixing)
    null = gram_null_space(stack).reshape(7, -1)
    coordinates = np.linalg.inv(mixing)
    squares = np.einsum("rt,st->trs", coordinates, coordinates).reshape(7, -1)
    basis = np.linalg.qr(squares.T)[0]
    np.testing.assert_allclose(np.linalg.norm(null @ basis, axis=1), np.linalg.norm(null, axis=1), rtol=1e-8)
    fit = UWEDGE()(null.reshape(7, 7, 7), rng=0)
    products = np.abs(unit(coordinates).T @ unit(fit.factor))
    np.testing.assert_allclose(np.sort(products.max(axis=0)), 1, atol=1e-8)


def unit(columns):
    return columns / np.linalg.norm(columns, axis=0)


@pytest.mark.parametrize("symmetric", [True, False])
def test_there_are_as_many_equations_as_counted(symmetric):
    """Of quadratic forms on all matrices, minors span those that vanish at rank one: I over 2 times J over 2.

    On symmetric matrices of size d, as many less as there are forms of degree four in d numbers.
    """
    size = 4
    pairs = [(i, j) for i in range(size) for j in range(i if symmetric else 0, size)]
    stack = np.zeros((len(pairs), size, size))
    for place, (i, j) in enumerate(pairs):
        stack[place, i, j] = stack[place, j, i] = 1.0
        if not symmetric:
            stack[place, j, i] = float(i == j)
    n = len(pairs)
    system = np.array([equations(stack[r], stack[s]) for r in range(n) for s in range(r, n)])
    counted = math.comb(n + 1, 2) - math.comb(size + 3, 4) if symmetric else math.comb(size, 2) ** 2
    assert np.linalg.matrix_rank(system) == counted
    largest = max(k for k in range(2, n + 1) if math.comb(k, 2) <= counted)
    shape = (size,) * 4 if symmetric else (size, size, 64)
    assert rank_one_roles(shape, largest, symmetric=symmetric) is not None
    assert rank_one_roles(shape, largest + 1, symmetric=symmetric) is None


def equations(x, y):
    """Return all minors of two rows and two columns, polarized."""
    crossed = np.einsum("ik,jl->ijkl", x, y) + np.einsum("ik,jl->ijkl", y, x)
    return (crossed - crossed.transpose(0, 1, 3, 2)).ravel()


@pytest.mark.parametrize("symmetric", [True, False])
def test_fewer_components_than_asked_for_do_no_harm(symmetric):
    tensor = noisy_tensor((4,) * 4, 3, symmetric=symmetric, rng=0).tensor
    assert silent_fit(tensor, 6, symmetric=symmetric, seed=0).relative_error < 1e-6
