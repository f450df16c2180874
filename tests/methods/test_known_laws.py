"""Laws of fits under constraints, with missing entries and with weights."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import codiag
from codiag.constraints import Fixed, NonNegative, Ridge
from codiag.tensors import FactoredTensor, SparseTensor

SHAPE, RANK = (6, 7, 8), 3
KNOWN = ["nonnegative", "missing", "weights", "fixed", "ridge", "mixed"]
"""What is told of a tensor, as `said` makes it."""


def truth(seed=0):
    rng = np.random.default_rng(seed)
    factors = [rng.uniform(0.0, 1, (size, RANK)) for size in SHAPE]
    return [np.where(factor < 0.2, 0, factor) for factor in factors]


def noisy(seed=0):
    clean = FactoredTensor(np.ones(RANK), truth(seed)).to_dense()
    return clean + 0.01 * np.random.default_rng(seed + 1).standard_normal(SHAPE)


def mask(share=0.6):
    return np.random.default_rng(7).random(SHAPE) < share


def said(kind):
    """Return constraints and weights of entries, None for what is not said."""
    first = truth()[0]
    weights = mask() * np.random.default_rng(8).uniform(0.1, 2, SHAPE)
    return {
        "nonnegative": ([NonNegative()] * 3, None),
        "missing": (None, mask()),
        "weights": (None, weights),
        "fixed": ([Fixed(first), None, None], None),
        "ridge": ([Ridge(0.01)] * 3, None),
        "mixed": ([Fixed(first), NonNegative(), None], weights),
    }[kind]


def fitted(tensor, constraints=None, observed=None):
    return codiag.factorize(tensor, RANK, constraints=constraints, weights=observed, rng=0)


def assert_same(fit, expected, rtol=1e-6):
    """Fits stop at relative steps of 1e-9, or where the gain is below 1e-8 of what noise explains."""
    assert_allclose(fit.weights, expected.weights, rtol=rtol)
    for own, other in zip(fit.factors, expected.factors, strict=True):
        assert_allclose(own, other, atol=rtol)


@pytest.mark.parametrize("observed", [None, mask(), mask() * 0.7 + 0.1], ids=["all", "missing", "weights"])
def test_one_free_mode_is_linear_least_squares(observed):
    entries, (first, second, _) = noisy(), truth()
    fit = fitted(entries, [Fixed(first), Fixed(second), None], observed)
    design = np.einsum("ir,jr->ijr", first, second).reshape(-1, RANK)
    weights = np.ones(SHAPE) if observed is None else np.asarray(observed, dtype=float)
    third = np.empty((SHAPE[2], RANK))
    for row in range(SHAPE[2]):
        root = np.sqrt(weights[:, :, row].ravel())
        third[row] = np.linalg.lstsq(root[:, None] * design, root * entries[:, :, row].ravel(), rcond=None)[0]
    expected = FactoredTensor(np.ones(RANK), [first, second, third])
    assert_allclose(fit.to_tensor(), expected.to_dense(), atol=1e-10)


def test_an_orthonormal_fixed_factor_leaves_matrices_of_rank_one():
    """The rest is the leading singular pair of what belongs to each of its columns."""
    entries = noisy()
    basis = np.linalg.qr(np.random.default_rng(3).standard_normal((SHAPE[0], RANK)))[0]
    fit = fitted(entries, [Fixed(basis), None, None])
    expected = np.zeros(SHAPE)
    for column in basis.T:
        left, values, right = np.linalg.svd(np.tensordot(column, entries, 1))
        expected += values[0] * np.einsum("i,j,k->ijk", column, left[:, 0], right[0])
    assert_allclose(fit.to_tensor(), expected, atol=1e-10)


def test_a_fixed_factor_is_fitted_on_its_range():
    """Compressed to the range of the fixed factor, the tensor has the same other factors."""
    entries, (first, _, _) = noisy(), truth()
    basis, inner = np.linalg.qr(first)
    smaller = fitted(np.tensordot(basis.T, entries, 1), [Fixed(inner), None, None])
    fit = fitted(entries, [Fixed(first), None, None])
    for own, other in zip(fit.factors[1:], smaller.factors[1:], strict=True):
        assert_allclose(own, other, atol=1e-10)
    assert_allclose(fit.weights, smaller.weights, rtol=1e-10)


def test_fixing_a_factor_where_it_is_changes_nothing():
    entries = noisy()
    fit = fitted(entries)
    again = fitted(entries, [None, Fixed(fit.factors[1]), None])
    assert_allclose(again.to_tensor(), fit.to_tensor(), atol=1e-6)


@pytest.mark.parametrize("order", [(1, 2, 0), (2, 1, 0)])
@pytest.mark.parametrize("kind", KNOWN)
def test_permuted_modes_have_permuted_factors(kind, order):
    constraints, observed = said(kind)
    fit = fitted(noisy(), constraints, observed)
    turned = fitted(
        noisy().transpose(order),
        None if constraints is None else [constraints[mode] for mode in order],
        None if observed is None else observed.transpose(order),
    )
    assert_allclose(turned.weights, fit.weights, rtol=1e-6)
    assert_allclose(turned.to_tensor(), fit.to_tensor().transpose(order), atol=1e-6)
    assert_allclose(turned.standard_errors, fit.standard_errors[list(order)], rtol=1e-4)


@pytest.mark.parametrize("scale", [1e-60, 1e-3, 1e60])
@pytest.mark.parametrize("kind", [kind for kind in KNOWN if kind != "ridge"])  # its strength has a unit
def test_a_multiple_has_the_same_factors_and_multiplied_weights(kind, scale):
    fit, other = (fitted(size * noisy(), *said(kind)) for size in (1, scale))
    assert_allclose(other.weights / scale, fit.weights, rtol=1e-6)
    for own, expected in zip(other.factors, fit.factors, strict=True):
        assert_allclose(own, expected, atol=1e-6)
    assert other.relative_error == pytest.approx(fit.relative_error)
    assert_allclose(other.standard_errors, fit.standard_errors, rtol=1e-4)


@pytest.mark.parametrize("scale", [1e-60, 1e-3, 1e60])
def test_a_multiple_has_the_same_factors_if_ridges_follow_its_scale(scale):
    """Factors of c T are c^(1/3) times those of T, and the objective is c^2 times that of T."""
    fit = fitted(noisy(), [Ridge(0.1)] * 3, None)
    other = fitted(scale * noisy(), [Ridge(0.1 * scale ** (2 - 2 / 3))] * 3, None)
    assert_allclose(other.weights / scale, fit.weights, rtol=1e-6)
    assert other.relative_error == pytest.approx(fit.relative_error)


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_a_multiple_of_the_weights_says_the_same(scale):
    constraints, observed = said("weights")
    fit, other = (fitted(noisy(), constraints, size * observed) for size in (1, scale))
    assert_same(other, fit)
    assert other.relative_error == pytest.approx(fit.relative_error)
    assert_allclose(other.standard_errors, fit.standard_errors, rtol=1e-4)


@pytest.mark.parametrize("kind", KNOWN)
def test_permuted_rows_have_permuted_factors(kind):
    constraints, observed = said(kind)
    rows = np.random.default_rng(9).permutation(SHAPE[1])
    fit = fitted(noisy(), constraints, observed)
    turned = fitted(noisy()[:, rows], constraints, None if observed is None else observed[:, rows])
    assert_allclose(turned.to_tensor(), fit.to_tensor()[:, rows], atol=1e-6)


@pytest.mark.parametrize("ones", [np.ones(SHAPE), np.ones(SHAPE, dtype=bool), np.ones(SHAPE, dtype=int)], ids=str)
@pytest.mark.parametrize("constraints", [None, "nonnegative"])
def test_a_mask_of_ones_is_none(ones, constraints):
    fit, other = (fitted(noisy(), constraints, observed) for observed in (None, ones))
    assert_array_equal(other.to_tensor(), fit.to_tensor())
    assert (other.problem.n_observed, other.noise_model.standard_deviation) == (
        fit.problem.n_observed,
        fit.noise_model.standard_deviation,
    )


@pytest.mark.parametrize("share", [0.6, 0.09])  # the latter are listed
@pytest.mark.parametrize("poison", [1e300, np.nan, np.inf, -np.inf])
def test_entries_that_are_masked_are_never_read(poison, share):
    observed = np.random.default_rng(7).random((12, 12, 12)) < share
    factors = [np.random.default_rng(mode).standard_normal((12, 2)) for mode in range(3)]
    entries = np.where(observed, FactoredTensor(np.ones(2), factors).to_dense(), 0)
    poisoned = np.where(observed, entries, poison)
    fit = codiag.factorize(entries, 2, weights=observed, rng=0)
    masked = np.ma.MaskedArray(poisoned, ~observed)
    for other in (codiag.factorize(poisoned, 2, weights=observed, rng=0), codiag.factorize(masked, 2, rng=0)):
        assert_array_equal(other.to_tensor(), fit.to_tensor())
        assert (other.relative_error, other.problem.n_observed) == (fit.relative_error, observed.sum())


def test_infinite_entries_that_are_observed_are_refused():
    entries = noisy()
    entries[0, 0, 0] = np.inf
    with pytest.raises(ValueError, match="finite"):
        fitted(entries, None, mask() | True)
    with pytest.raises(ValueError, match="finite"):
        fitted(np.where(np.arange(SHAPE[0])[:, None, None] == 3, np.nan, entries))


@pytest.mark.parametrize("constraints", [None, "nonnegative"])
def test_the_order_of_a_list_does_not_matter(constraints):
    places = np.argwhere(mask()).T
    values = noisy()[tuple(places)]
    order = np.random.default_rng(5).permutation(values.size)
    fit, other = (
        fitted(SparseTensor(coords, data, SHAPE, absent="missing"), constraints)
        for coords, data in ((places, values), (places[:, order], values[order]))
    )
    assert_same(other, fit)
    assert_same(fit, fitted(noisy(), constraints, mask()))


def combinations():
    """Yield kinds of constraints for three modes; a ridge takes one in all modes that move, else size leaves it."""
    for kinds in itertools.product(["free", "nonnegative", "fixed", "ridge"], repeat=3):
        if "ridge" not in kinds or not {"free", "nonnegative"} & set(kinds):
            yield kinds


@pytest.mark.parametrize("kinds", list(combinations()), ids="-".join)
def test_weights_are_positive_and_constraints_hold_whatever_else_is_constrained(kinds):
    factors = truth()
    makers = {"nonnegative": lambda _: NonNegative(), "fixed": Fixed, "ridge": lambda _: Ridge(1e-4)}
    known = [makers[kind](factor) if kind in makers else None for kind, factor in zip(kinds, factors, strict=True)]
    fit = fitted(noisy(), known)
    assert np.all(fit.weights > 0)
    assert fit.relative_error < 0.1
    for kind, factor, given in zip(kinds, fit.factors, factors, strict=True):
        if kind == "nonnegative":
            assert np.all(factor >= 0)
        if kind == "fixed":
            unit = given / np.linalg.norm(given, axis=0)
            assert_allclose(np.max(unit.T @ factor, axis=0), 1)


def test_a_negative_component_of_ridges_keeps_its_sign():
    entries = -np.abs(noisy())
    fit = fitted(entries, Ridge(1e-6))
    assert np.all(fit.weights > 0)
    assert fit.relative_error < 0.2
