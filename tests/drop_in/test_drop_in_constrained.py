"""TensorLy's functions with masks, regularization, non-negative and fixed factors, done by codiag."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import codiag
from codiag import drop_in
from codiag.drop_in import CP, CP_NN, CP_NN_HALS, non_negative_parafac, non_negative_parafac_hals, parafac

NONNEGATIVE = [non_negative_parafac, non_negative_parafac_hals]
EVERY = pytest.mark.parametrize("function", NONNEGATIVE, ids=lambda function: function.__name__)


def planted(noise=0.02, seed=0):
    rng = np.random.default_rng(seed)
    factors = [rng.exponential(size=(size, 3)) * (rng.random((size, 3)) < 0.7) for size in (6, 7, 8)]
    entries = np.einsum("ir,jr,kr->ijk", *factors)
    return factors, entries + noise * np.sqrt(np.mean(entries**2)) * rng.standard_normal(entries.shape)


FACTORS, TENSOR = planted()
MASK = np.random.default_rng(1).random(TENSOR.shape) < 0.7


def rebuilt(weights, factors):
    return np.einsum("r,ar,br,cr->abc", weights, *factors)


OF_PYTTB = {"gcp_opt", "cp_apr"}


def relative_error(components, tensor=TENSOR, mask=1.0):
    return np.linalg.norm(mask * (tensor - rebuilt(*components))) / np.linalg.norm(mask * tensor)


@pytest.mark.parametrize("name", [name for name in drop_in.__all__ if name not in OF_PYTTB])
def test_the_signatures_are_theirs(name):
    tensorly = pytest.importorskip("tensorly.decomposition", reason="TensorLy is not installed")
    ours, theirs = (inspect.signature(getattr(module, name)).parameters for module in (drop_in, tensorly))
    assert list(ours) == list(theirs)
    assert {name: item.default for name, item in ours.items()} == {name: item.default for name, item in theirs.items()}


@pytest.mark.parametrize("init", ["svd", "random", (None, FACTORS)], ids=["svd", "random", "given"])
def test_masked_entries_are_never_read(init):
    plain, poisoned = (
        parafac(np.where(MASK, TENSOR, hidden), 3, mask=MASK, init=init, random_state=0, return_errors=True)
        for hidden in (0.0, 1e300)
    )
    assert_array_equal(rebuilt(*plain[0]), rebuilt(*poisoned[0]))
    assert plain[1][-1] == pytest.approx(relative_error(plain[0], mask=MASK))
    assert codiag.factor_error(plain[0], FACTORS) < 0.05
    as_nan = parafac(np.where(MASK, TENSOR, np.nan), 3, init=init, random_state=0)
    assert_allclose(rebuilt(*as_nan), rebuilt(*plain[0]), atol=1e-10)


def test_a_mask_of_ones_is_none():
    first, second = (parafac(TENSOR, 3, mask=mask, random_state=0) for mask in (None, np.ones(TENSOR.shape)))
    assert_array_equal(rebuilt(*first), rebuilt(*second))


def test_masked_fits_are_as_good_as_theirs():
    tensorly = pytest.importorskip("tensorly.decomposition", reason="TensorLy is not installed")
    theirs = tensorly.parafac(TENSOR * MASK, 3, mask=MASK * 1.0, n_iter_max=3000, tol=1e-12)
    ours = parafac(TENSOR, 3, mask=MASK, random_state=0)
    assert relative_error(ours, mask=MASK) <= relative_error(theirs, mask=MASK) * (1 + 1e-6)


def test_a_sparse_part_has_nothing_where_the_mask_hides():
    components, rest = parafac(np.where(MASK, TENSOR, 1e6), 3, mask=MASK, sparsity=5, random_state=0)
    assert np.count_nonzero(rest) == 5
    assert not np.any(rest[~MASK])
    assert_allclose(rest[rest != 0], (TENSOR - rebuilt(*components))[rest != 0])


def test_regularized_fits_minimize_what_their_updates_lower():
    tensorly = pytest.importorskip("tensorly.decomposition", reason="TensorLy is not installed")
    strength = 0.3

    def objective(components):
        squares = sum(np.sum(factor**2) for factor in components[1])
        return np.sum((TENSOR - rebuilt(*components)) ** 2) / 2 + strength * squares / 2

    ours = parafac(TENSOR, 3, l2_reg=strength, random_state=0)
    theirs = tensorly.parafac(TENSOR, 3, l2_reg=strength, n_iter_max=5000, tol=1e-14)
    assert objective(ours) == pytest.approx(objective(theirs), rel=1e-8)
    lengths = [np.linalg.norm(factor, axis=0) for factor in ours[1]]
    assert_allclose(lengths[1:], lengths[:-1], rtol=1e-4)
    normalized = parafac(TENSOR, 3, l2_reg=strength, normalize_factors=True, random_state=0)
    assert_allclose(rebuilt(*normalized), rebuilt(*ours), atol=1e-10)


def test_regularization_of_free_modes_beside_fixed_ones():
    first, second, third = FACTORS
    _, factors = parafac(TENSOR, 3, init=(None, [first, second, third]), fixed_modes=[0, 1], l2_reg=2.0)
    columns = np.einsum("ar,br->abr", first, second).reshape(-1, 3)
    expected = np.linalg.solve(columns.T @ columns + 2.0 * np.eye(3), columns.T @ TENSOR.reshape(-1, 8)).T
    assert_allclose(factors[2], expected, atol=1e-9)


@EVERY
@pytest.mark.parametrize("init", ["svd", "random", (None, FACTORS)], ids=["svd", "random", "given"])
def test_factors_are_non_negative_and_fit_best(function, init):
    (weights, factors), errors = function(TENSOR, 3, init=init, random_state=0, return_errors=True)
    best = codiag.factorize(TENSOR, 3, constraints="nonnegative", rng=0)
    assert_array_equal(weights, 1)
    assert all((factor >= 0).all() for factor in factors)
    assert errors[-1] == pytest.approx(relative_error((weights, factors)))
    assert errors[-1] == pytest.approx(best.relative_error, rel=1e-5)


@EVERY
def test_they_fit_as_well_as_theirs(function):
    tensorly = pytest.importorskip("tensorly.decomposition", reason="TensorLy is not installed")
    theirs = getattr(tensorly, function.__name__)(TENSOR, 3, n_iter_max=500, tol=1e-12)
    assert relative_error(function(TENSOR, 3, random_state=0)) <= relative_error(theirs) * (1 + 1e-6)


@EVERY
def test_normalized(function):
    weights, factors = function(TENSOR, 3, normalize_factors=True, random_state=0)
    assert_allclose([np.linalg.norm(factor, axis=0) for factor in factors], 1, atol=1e-12)
    assert (weights > 0).all()
    assert relative_error((weights, factors)) < 0.03


@EVERY
def test_a_start_keeps_its_order_and_loses_its_signs(function):
    order = [2, 0, 1]
    start = [-factor[:, order] for factor in FACTORS]
    _, factors = function(TENSOR, 3, init=(None, start))
    for found, true in zip(factors, FACTORS, strict=True):
        assert (found >= 0).all()
        cosines = np.sum(found * true[:, order], axis=0) / np.linalg.norm(found, axis=0)
        assert_allclose(cosines, np.linalg.norm(true[:, order], axis=0), rtol=0.01)


@pytest.mark.parametrize(
    ("function", "mode"), [(non_negative_parafac, 0), (non_negative_parafac_hals, 0), (non_negative_parafac_hals, 2)]
)
def test_fixed_modes_stay(function, mode):
    start = [np.ones_like(factor) + np.eye(*factor.shape) for factor in FACTORS]
    start[mode] = FACTORS[mode]
    _, factors = function(TENSOR, 3, init=(np.full(3, 2.0), start), fixed_modes=[mode], n_iter_max=2000)
    assert_array_equal(factors[mode], FACTORS[mode])
    assert all((factor >= 0).all() for factor in factors)
    assert relative_error((np.ones(3), factors)) < 0.03


def test_the_last_mode_is_fitted_where_theirs_does_so():
    with pytest.warns(UserWarning, match="fixed_modes holds the") as caught:
        non_negative_parafac(TENSOR, 3, init=(None, FACTORS), fixed_modes=[2])
    assert caught[0].filename == __file__


def test_masks_of_non_negative_fits():
    fits = [
        non_negative_parafac(np.where(MASK, TENSOR, hidden), 3, mask=MASK, random_state=0) for hidden in (0.0, 1e300)
    ]
    assert_array_equal(rebuilt(*fits[0]), rebuilt(*fits[1]))
    assert codiag.factor_error(fits[0], FACTORS) < 0.05


def test_some_modes_may_be_free():
    rng = np.random.default_rng(3)
    signed = [FACTORS[0], rng.standard_normal((7, 3)), FACTORS[2]]
    tensor = rebuilt(np.ones(3), signed) + 0.01 * rng.standard_normal(TENSOR.shape)
    _, factors = non_negative_parafac_hals(tensor, 3, nn_modes=[0, 2], random_state=0)
    assert [bool((factor >= 0).all()) for factor in factors] == [True, False, True]
    assert codiag.factor_error(factors, signed) < 0.05
    free = non_negative_parafac_hals(tensor, 3, nn_modes=None, random_state=0)
    assert_allclose(rebuilt(*free), rebuilt(*parafac(tensor, 3, random_state=0)), atol=1e-5)


@pytest.mark.parametrize(
    ("function", "options", "words"),
    [
        (parafac, {"mask": np.ones((2, 2))}, "^mask must"),
        (parafac, {"mask": np.zeros((6, 7, 8))}, "^mask must"),
        (parafac, {"l2_reg": -1.0}, "l2_reg must"),
        (non_negative_parafac_hals, {"sparsity_coefficients": [None, 0.1, None]}, "sparsity_coefficients=.*supported"),
        (non_negative_parafac_hals, {"nn_modes": "some"}, "^nn_modes must"),
        (non_negative_parafac_hals, {"nn_modes": [3]}, "^nn_modes must"),
        (non_negative_parafac_hals, {"fixed_modes": [0, 1, 2], "init": (None, FACTORS)}, "must leave a mode to fit"),
        (non_negative_parafac, {"init": "best"}, "^init must"),
        (non_negative_parafac, {"n_iter_max": -1}, "^n_iter_max must"),
    ],
)
def test_what_is_refused(function, options, words):
    with pytest.raises(ValueError, match=words):
        function(TENSOR, 3, **options)


def test_matrices_and_complex_arrays_are_refused_where_they_make_no_sense():
    with pytest.raises(ValueError, match="^tensor must"):
        non_negative_parafac(TENSOR[0], 2)
    with pytest.raises(ValueError, match="constraints of a"):
        non_negative_parafac(TENSOR * 1j, 2)


def test_complex_arrays_take_ridges_and_masks_as_real_ones_do():
    """A tensor times a phase has the components of the tensor, and the phase in one factor."""
    mask = np.random.default_rng(0).random(TENSOR.shape) < 0.9
    for options in ({"l2_reg": 0.1}, {"mask": mask}):
        real = parafac(TENSOR, 3, random_state=0, tol=1e-12, normalize_factors=True, **options)
        turned = parafac(TENSOR * np.exp(0.3j), 3, random_state=0, tol=1e-12, normalize_factors=True, **options)
        np.testing.assert_allclose(turned[0], real[0], rtol=1e-6)


@pytest.mark.parametrize(
    ("kind", "function"), [(CP, parafac), (CP_NN, non_negative_parafac), (CP_NN_HALS, non_negative_parafac_hals)]
)
def test_the_classes_are_the_functions(kind, function):
    model = kind(3, random_state=0, normalize_factors=True)
    found, errors = function(TENSOR, 3, random_state=0, normalize_factors=True, return_errors=True)
    assert_array_equal(model.fit_transform(TENSOR)[0], found[0])
    assert model.errors_ == errors
    assert model.fit(TENSOR) is model
    tensorly = pytest.importorskip("tensorly.decomposition", reason="TensorLy is not installed")
    assert vars(kind(2)) == vars(getattr(tensorly, kind.__name__)(2))
    assert repr(kind(2)) == repr(getattr(tensorly, kind.__name__)(2))


@pytest.mark.parametrize("seed", [3, 25, 29])
def test_a_masked_tensor_of_one_component_is_found_from_a_random_start(seed):
    """One local run from this random start runs off to infinity."""
    tensor = np.einsum("i,j,k->ijk", *np.random.default_rng(seed).random((3, 4)))
    mask = np.ones(tensor.shape)
    mask[1, :, 3] = mask[:, 2, 3] = 0
    fit = parafac(tensor, 1, mask=mask, init="random", random_state=1234)
    assert_allclose(rebuilt(*fit), tensor, atol=1e-6)


@pytest.mark.parametrize(
    ("options", "holds"),
    [
        ({"non_negative": True}, lambda factors: all(np.all(factor >= 0) for factor in factors)),
        ({"non_negative": {1: True}}, lambda factors: np.all(factors[1] >= 0)),
        ({"unimodality": [True, False, None], "non_negative": True}, lambda factors: one_peak(factors[0])),
        ({"l2_square_reg": 1e-2}, lambda factors: len({round(float(np.linalg.norm(f)), 6) for f in factors}) == 1),
        ({"l1_reg": {0: 3.0}}, lambda factors: np.any(factors[0] == 0)),
        ({"smoothness": {2: 1e6}}, lambda factors: np.max(np.abs(np.diff(factors[2], axis=0))) < 1e-3),
    ],
    ids=["non-negative", "one mode", "unimodal", "ridge", "sparse", "smooth"],
)
@pytest.mark.filterwarnings("ignore::codiag.ConvergenceWarning")
def test_constraints_of_tensorly_hold(options, holds):
    (weights, factors), errors = drop_in.constrained_parafac(TENSOR, 3, return_errors=True, random_state=0, **options)
    assert_array_equal(weights, np.ones(3))
    assert errors[-1] == pytest.approx(relative_error((weights, factors)))
    assert holds(factors)


def one_peak(factor):
    return all(np.all(np.diff(np.sign(np.diff(column[np.r_[True, np.diff(column) != 0]]))) <= 0) for column in factor.T)


def test_constraints_that_codiag_has_not():
    with pytest.raises(ValueError, match="^monotonicity must be left out"):
        drop_in.constrained_parafac(TENSOR, 3, monotonicity={0: True})
    with pytest.raises(ValueError, match="^l1_reg must"):
        drop_in.constrained_parafac(TENSOR, 3, l1_reg=[1.0])
    with pytest.raises(TypeError, match="^smoothness must"):
        drop_in.constrained_parafac(TENSOR, 3, smoothness="much")
