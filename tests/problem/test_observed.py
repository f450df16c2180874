"""Entries that were not observed, and weights of those that were."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import codiag
from assertions import assert_same_factors
from cases import METHODS
from codiag.least_squares import LeastSquares
from codiag.methods import ALS, Auto
from codiag.tensors import FactoredTensor
from tensor_cases import LIBRARIES

HONORING = {name: case for name, case in METHODS.items() if "missing entries" in case.method.supports}
EVERY = pytest.mark.parametrize("name", HONORING)
SHAPE, RANK = (8, 9, 10), 3


def planted(noise=0.0, seed=0):
    """Return a tensor with components, those, and which of its entries are known: seven in ten."""
    rng = np.random.default_rng(seed)
    factors = [rng.standard_normal((size, RANK)) for size in SHAPE]
    entries = FactoredTensor(np.ones(RANK), factors).to_dense() + noise * rng.standard_normal(SHAPE)
    return entries, factors, rng.random(SHAPE) < 0.7


def brute_force(entries, weights, factors, mode):
    """Return the best factor of one mode by least squares over all entries, each counted by the root of its weight."""
    left, right = (factors[other] for other in range(3) if other != mode)
    others = np.einsum("ir,jr->ijr", left, right).reshape(-1, RANK)
    rows = []
    for values, counts in zip(np.moveaxis(entries, mode, 0), np.moveaxis(weights, mode, 0), strict=True):
        root = np.sqrt(counts.ravel())
        rows.append(np.linalg.lstsq(root[:, None] * others, root * values.ravel(), rcond=None)[0])
    return np.array(rows)


@EVERY
class TestEveryMethodThatCan:
    def test_all_observed_is_the_same_as_nothing_said(self, name):
        entries, _, _ = planted(noise=0.1)
        method = ALS(init="svd", tol=1e-14) if isinstance(HONORING[name].method, ALS) else HONORING[name].method
        plain = codiag.factorize(entries, RANK, method=method, rng=0)
        for ones in (np.ones(SHAPE), np.ones(SHAPE, bool), np.full(SHAPE, 3)):
            fit = codiag.factorize(entries, RANK, method=method, weights=ones, rng=0)
            # Sweeps end when the error no longer falls, which is seen in a different place of the same way.
            assert_allclose(fit.to_tensor(), plain.to_tensor(), atol=1e-5)
            assert fit.relative_error == pytest.approx(plain.relative_error, abs=1e-8)

    def test_components_are_found_from_what_was_observed(self, name):
        entries, factors, known = planted()
        fit = codiag.factorize(entries, RANK, method=HONORING[name].method, mask=known, rng=0)
        assert fit.converged
        assert fit.relative_error < 1e-4
        assert_same_factors(fit, factors, 1e-3)

    def test_what_was_not_observed_is_never_read(self, name):
        """Whatever stands there, the fit is the same."""
        entries, _, known = planted(noise=0.1)
        poisoned = [np.where(known, entries, hidden) for hidden in (0.0, 1e150)]
        method = HONORING[name].method
        fits = [codiag.factorize(tensor, RANK, method=method, mask=known, rng=0) for tensor in poisoned]
        assert_allclose(fits[1].to_tensor(), fits[0].to_tensor(), atol=1e-9)
        assert fits[1].relative_error == pytest.approx(fits[0].relative_error, rel=1e-12)
        assert fits[1]._norm == pytest.approx(np.linalg.norm(entries[known]))

    def test_the_error_is_that_of_the_observed(self, name):
        entries, _, known = planted(noise=0.1)
        weights = known * np.random.default_rng(1).random(SHAPE)
        fit = codiag.factorize(entries, RANK, method=HONORING[name].method, weights=weights, rng=0)
        relative = weights / weights[known].mean()
        left = np.sqrt(np.sum(relative * (entries - fit.to_tensor()) ** 2))
        assert fit._norm == pytest.approx(np.sqrt(np.sum(relative * entries**2)))
        assert fit.relative_error == pytest.approx(left / fit._norm)

    def test_fits_end_where_each_mode_fits_best(self, name):
        """The normal equations are those of weighted least squares, in every mode."""
        entries, _, known = planted(noise=0.1)
        weights = known * np.random.default_rng(1).random(SHAPE)
        fit = codiag.factorize(entries, RANK, method=HONORING[name].method, weights=weights, rng=0)
        scaled = [fit.factors[0] * fit.weights, *fit.factors[1:]]
        for mode in range(3):
            best = brute_force(entries, weights, scaled, mode)
            model = [best if other == mode else factor for other, factor in enumerate(scaled)]
            reached = np.sum(weights * (entries - np.einsum("ir,jr,kr->ijk", *model)) ** 2)
            share = np.sqrt(reached / np.sum(weights * entries**2))
            assert share == pytest.approx(fit.relative_error, rel=1e-5)


@pytest.mark.parametrize("mode", [0, 1, 2])
def test_one_mode_is_weighted_least_squares(mode):
    entries, _, known = planted(noise=1.0)
    rng = np.random.default_rng(1)
    weights, factors = known * rng.random(SHAPE), [rng.standard_normal((size, RANK)) for size in SHAPE]
    objective = LeastSquares(codiag.Problem(entries, RANK, weights=weights))
    assert_allclose(objective.solve_mode(factors, mode), brute_force(entries, weights, factors, mode), atol=1e-8)


def test_weights_decide_between_values_that_contradict_each_other():
    """Two measurements of one tensor, stacked: weights are inverse variances, and the noisy one hardly counts."""
    entries, factors, _ = planted()
    rng = np.random.default_rng(2)
    both = np.concatenate([entries + 1e-3 * rng.standard_normal(SHAPE), entries + rng.standard_normal(SHAPE)], axis=2)
    truth = [factors[0], factors[1], np.concatenate([factors[2]] * 2)]
    weights = np.concatenate([np.full(SHAPE, 1e6), np.ones(SHAPE)], axis=2)
    fits = [codiag.factorize(both, RANK, weights=counts, rng=0) for counts in (None, weights)]
    plain, weighted = (codiag.factor_error(fit.factors[:2], truth[:2]) for fit in fits)
    assert weighted < 0.1 * plain


@pytest.mark.parametrize("asked", ["missing entries", "constraints"])
@pytest.mark.parametrize("name", METHODS)
def test_methods_that_cannot_say_so_in_one_sentence(name, asked):
    method = METHODS[name].method
    given = (
        {"weights": np.arange(125).reshape(5, 5, 5) > 0}
        if asked == "missing entries"
        else {"constraints": "nonnegative"}
    )
    problem = codiag.Problem(np.random.default_rng(0).random((5, 5, 5)), 2, **given)
    assert problem.required_features == {asked}
    if asked in method.supports:
        method.check_supported(problem)
        return
    refused = f"{type(method).__name__} cannot take {asked} into account; use ALS or NLS, or leave method out"
    with pytest.raises(ValueError, match=refused):
        method.check_supported(problem)
    with pytest.raises(ValueError, match=refused):
        codiag.factorize(problem, method=method)


@pytest.mark.parametrize(
    ("observed", "error", "words"),
    [
        (np.ones((3, 4)), ValueError, "^mask and weights must"),
        (np.zeros((3, 4, 5)), ValueError, "^mask and weights must"),
        (-np.ones((3, 4, 5)), ValueError, "^mask and weights must"),
        (np.full((3, 4, 5), np.nan), ValueError, "^mask and weights must"),
        (np.full((3, 4, 5), "yes"), TypeError, "^mask and weights must"),
        ("all", TypeError, "^mask and weights must"),
        (1j * np.ones((3, 4, 5)), TypeError, "^mask and weights must"),
    ],
    ids=["shape", "nothing", "negative", "nan", "text", "word", "complex"],
)
def test_mistakes(observed, error, words):
    with pytest.raises(error, match=words):
        codiag.factorize(np.ones((3, 4, 5)), 1, weights=observed)


def test_the_mask_is_not_changed():
    entries, _, known = planted()
    kept = known.copy()
    codiag.factorize(entries, RANK, mask=known, method=Auto(), rng=0)
    np.testing.assert_array_equal(known, kept)


@pytest.mark.parametrize(
    ("library", "constraints"), [("numpy", "nonnegative"), *((library, None) for library in ("numpy", *LIBRARIES))]
)
def test_single_precision_is_that_of_the_result_alone(library, constraints):
    """Steps are taken in double precision; what comes back has the library and the precision of the tensor."""
    if library == "jax":
        pytest.skip("the registry enables double precision in JAX, for which this is another case")
    entries, factors, known = planted(noise=0.1)
    if constraints is not None:
        entries += np.einsum("ir,jr,kr->ijk", *map(np.abs, factors)) - np.einsum("ir,jr,kr->ijk", *factors)
    single = entries.astype(np.float32)
    given = single if library == "numpy" else LIBRARIES[library](single)
    exact = codiag.factorize(single.astype(float), RANK, mask=known, constraints=constraints, rng=0)
    fit = codiag.factorize(given, RANK, mask=known, constraints=constraints, rng=0)
    assert str(fit.weights.dtype).endswith("float32")
    assert fit.relative_error == pytest.approx(exact.relative_error, rel=1e-5)
    assert_allclose(np.asarray(fit.weights), exact.weights, rtol=1e-4)


def test_masked_booleans_are_missing_like_masked_numbers():
    entries = np.random.default_rng(0).random((5, 6, 7)) < 0.5
    hidden = np.random.default_rng(1).random(entries.shape) < 0.1
    fits = [codiag.factorize(np.ma.array(entries.astype(kind), mask=hidden), 2, rng=0) for kind in (bool, float)]
    assert fits[0].relative_error == pytest.approx(fits[1].relative_error, rel=1e-10)
