"""More components than modes measure, at order three: kernels of Koszul flattenings."""

from __future__ import annotations

import math

import numpy as np
import pytest

import codiag
from codiag.problem import Log
from codiag.starts import flattening, koszul_equations, koszul_kernel, koszul_roles, koszul_start, wedge_signs
from codiag.synthetic import noisy_tensor, unit_factor
from codiag.tensors import as_tensor, symmetrize
from tests.assertions import assert_same_factors


@pytest.mark.parametrize(("first", "second"), [(1, 1), (1, 2), (2, 2), (1, 3)])
def test_products_of_forms_commute_up_to_sign_and_associate(first, second):
    size = 5
    one, other = wedge_signs(size, first, second), wedge_signs(size, second, first)
    np.testing.assert_array_equal(one, (-1) ** (first * second) * other.transpose(0, 2, 1))
    if first + second < size:
        left = np.einsum("hgm,glk->hlkm", wedge_signs(size, first + second, 1), one)
        right = np.einsum("hlg,gkm->hlkm", wedge_signs(size, first, second + 1), wedge_signs(size, second, 1))
        np.testing.assert_array_equal(left, right)


@pytest.mark.parametrize(("degree", "size", "rank"), [(1, 6, 8), (2, 6, 9), (3, 8, 13)])
def test_forms_of_the_kernel_are_divisible_by_the_components(degree, size, rank):
    """The kernel has the dimension that is left, and P a ^ y(b) = 0 for every component and every y in it."""
    rng = np.random.default_rng(0)
    alpha, b, c = unit_factor(2 * degree + 1, rank, rng), unit_factor(size, rank, rng), unit_factor(size, rank, rng)
    kernel = koszul_kernel(np.einsum("jr,br,cr->jbc", alpha, b, c), rank, degree)
    left = math.comb(2 * degree + 1, degree) * size - math.comb(2 * degree, degree) * rank
    assert np.einsum("lblb->", kernel) == pytest.approx(left)
    images = np.einsum("lbmd,dr->lbmr", kernel, b)
    products = np.einsum("hjm,jr,lbmr->lbhr", wedge_signs(2 * degree + 1, 1, degree), alpha, images)
    np.testing.assert_allclose(products, 0, atol=1e-6)


@pytest.mark.parametrize(("shape", "rank"), [((7, 7, 7), 10), ((5, 6, 7), 8), ((4, 6, 8), 8)])
def test_products_of_factors_alone_solve_the_equations(shape, rank):
    problem = noisy_tensor(shape, rank, seed=0)
    roles = koszul_roles(shape, rank, symmetric=False)
    plan = flattening(shape, roles, rank, symmetric=False)
    entries = problem.tensor.transpose(roles.columns + roles.rows + roles.others)
    gram = koszul_equations(entries, rank, plan, np.random.default_rng(0))
    gram = gram.reshape(2 * (entries.shape[0] * entries.shape[1],))
    values, vectors = np.linalg.eigh(gram)
    assert values[rank - 1] < 1e-8 * values[rank]
    a, b = problem.factors[roles.columns[0]], problem.factors[roles.rows[0]]
    products = np.einsum("ar,br->abr", a, b).reshape(-1, rank)
    np.testing.assert_allclose(vectors[:, rank:].T @ products, 0, atol=1e-5)


@pytest.mark.parametrize(
    ("shape", "rank", "symmetric"),
    [((7, 7, 7), 11, False), ((7, 7, 7), 10, True), ((5, 6, 7), 9, False), ((3, 7, 9), 10, False)],
)
def test_components_are_exact_without_a_random_start(shape, rank, symmetric):
    problem = noisy_tensor(shape, rank, symmetric=symmetric, seed=1)
    fit = codiag.factorize(problem.tensor, rank, symmetric=symmetric, seed=0)
    assert fit.stages[0].name == "diagonalize Koszul equations"
    assert not [stage.name for stage in fit.stages if "random" in stage.name]
    assert_same_factors(fit, problem, 1e-6)


def test_noise_enters_to_first_order():
    """Ten times the noise, ten times the error of the start."""
    errors = []
    for noise in (1e-6, 1e-5):
        problem = noisy_tensor((8, 8, 8), 10, noise=noise, seed=2)
        roles = koszul_roles((8, 8, 8), 10, symmetric=False)
        start = koszul_start(as_tensor(problem.tensor), roles, 10, np.random.default_rng(0), Log())
        errors.append(codiag.factor_error(start, problem))
    assert errors[1] / errors[0] == pytest.approx(10, rel=0.1)


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_some_of_the_kernel_of_a_symmetric_tensor_tells_nothing(degree):
    """Of any symmetric tensor, one of full rank too: the products P b ^ w with forms w of degree p - 1."""
    rng, n = np.random.default_rng(0), 2 * degree + 1
    projection = np.linalg.qr(rng.standard_normal((8, n)))[0]
    tensor = symmetrize(rng.standard_normal((8, 8, 8)))
    flat = np.einsum("hjl,ja,abc->lbhc", wedge_signs(n, 1, degree), projection.T, tensor, optimize=True)
    empty = math.comb(n, degree) * 8 - np.linalg.matrix_rank(flat.reshape(math.comb(n, degree) * 8, -1))
    assert empty >= math.comb(n, degree - 1)


@pytest.mark.parametrize(("shape", "rank"), [((6, 6, 6), 10), ((4, 4, 4), 6), ((100, 100, 100), 120)])
def test_where_the_kernels_are_empty_or_too_large_there_are_no_roles(shape, rank):
    assert koszul_roles(shape, rank, symmetric=False) is None
