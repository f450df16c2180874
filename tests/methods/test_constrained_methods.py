"""`ALS` and `NLS` with constraints and missing entries: they end where the default does, and read nothing hidden."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import nnls

import codiag
from codiag.constraints import Fixed, NonNegative, Ridge
from codiag.least_squares import LeastSquares
from codiag.methods import ALS, NLS, NOJD
from codiag.tensors import FactoredTensor

METHODS = {
    "als": ALS(tol=1e-11, max_iter=2000),
    "als from svd": ALS(init="svd", tol=1e-11, max_iter=2000),
    "nls": NLS(n_starts=3),
    "nls from als": NLS(init=ALS(max_iter=20)),
    "nls from a method without constraints": NLS(init=NOJD()),
}
EVERY = pytest.mark.parametrize("name", METHODS)


def nonnegative_tensor(seed=0, noise=0.02):
    rng = np.random.default_rng(seed)
    factors = [rng.exponential(size=(size, 3)) * (rng.random((size, 3)) < 0.6) for size in (8, 9, 10)]
    entries = np.einsum("ir,jr,kr->ijk", *factors)
    return entries + noise * np.sqrt(np.mean(entries**2)) * rng.standard_normal(entries.shape)


def hidden(share, seed=1):
    return np.random.default_rng(seed).random((8, 9, 10)) < share


def distance(fit, tensor):
    return np.sqrt(np.nansum((tensor - fit.to_tensor()) ** 2))


@EVERY
@pytest.mark.parametrize("share", [0.0, 0.4])
def test_they_end_at_the_optimum_of_the_default(name, share):
    tensor = np.where(hidden(share), np.nan, nonnegative_tensor())
    best = codiag.factorize(tensor, 3, constraints="nonnegative", rng=0)
    fit = codiag.factorize(tensor, 3, method=METHODS[name], constraints="nonnegative", rng=0)
    assert all((factor >= 0).all() for factor in fit.factors)
    assert fit.converged
    assert distance(fit, tensor) == pytest.approx(distance(best, tensor), rel=1e-6)
    assert codiag.factor_error(fit, best) < 1e-3


@EVERY
def test_hidden_entries_are_never_read(name):
    tensor, mask = nonnegative_tensor(), ~hidden(0.3)
    fits = [
        codiag.factorize(np.where(mask, tensor, poison), 3, method=METHODS[name], mask=mask, rng=0)
        for poison in (0.0, 1e300)
    ]
    assert_array_equal(fits[0].to_tensor(), fits[1].to_tensor())


def test_the_best_of_random_starts_is_kept():
    tensor = nonnegative_tensor(noise=1.0)  # so much noise that there are local optima
    values = []
    for n_starts in (1, 6):
        seen = []
        method = NLS(n_starts=n_starts, callback=lambda _, error, seen=seen: seen.append(error))
        fit = codiag.factorize(tensor, 3, method=method, constraints="nonnegative", rng=5)
        values.append(fit.relative_error)
        assert min(seen) == pytest.approx(fit.relative_error, rel=1e-4)  # but for the last step
    assert values[1] <= values[0] * (1 + 1e-9)


@pytest.mark.filterwarnings("ignore::codiag.ConvergenceWarning")
def test_a_monitor_sees_relative_errors_and_can_stop():
    tensor, seen = nonnegative_tensor(), []

    def stop(components, error):
        seen.append((components, error))
        return len(seen) == 2

    codiag.factorize(tensor, 3, method=NLS(n_starts=4, callback=stop), constraints=Ridge(0.5), rng=0)
    assert len(seen) == 2
    for components, error in seen:
        assert error == pytest.approx(np.linalg.norm(tensor - components.to_dense()) / np.linalg.norm(tensor))


@pytest.mark.parametrize("per_row", [False, True])
def test_rows_of_non_negative_least_squares_are_those_of_scipy(per_row):
    rng = np.random.default_rng(0)
    matrices = rng.standard_normal((30, 12, 6)) if per_row else np.repeat(rng.standard_normal((1, 12, 6)), 30, axis=0)
    targets = rng.standard_normal((30, 12))
    grams = np.einsum("iar,ias->irs", matrices, matrices)
    products = np.einsum("iar,ia->ir", matrices, targets)
    found = NonNegative().solve(grams if per_row else grams[0], products, np.zeros((30, 6)))
    expected = [nnls(matrix, target)[0] for matrix, target in zip(matrices, targets, strict=True)]
    assert_allclose(found, expected, atol=1e-8)
    assert np.count_nonzero(expected) < 180 * 0.8  # signs matter


def test_the_ridge_of_a_fit_is_a_stationary_point():
    tensor, strength = nonnegative_tensor(), 0.7
    for method in (None, NLS(n_starts=3), NLS(init=ALS(max_iter=20)), NLS(init=NOJD())):
        fit = codiag.factorize(tensor, 3, method=method, constraints=Ridge(strength), rng=0)
        share = fit.weights ** (1 / 3)
        first, second, third = (factor * share for factor in fit.factors)
        columns = np.einsum("jr,kr->jkr", second, third).reshape(-1, 3)
        solved = np.linalg.solve(columns.T @ columns + strength * np.eye(3), columns.T @ tensor.reshape(8, -1).T).T
        assert_allclose(solved, first, atol=1e-4)


def test_signs_that_constraints_turn_go_to_a_mode_that_may_have_either():
    rng = np.random.default_rng(0)
    factors = [-rng.random((4, 2)), rng.standard_normal((5, 2)), rng.standard_normal((6, 2))]
    start = FactoredTensor(np.array([2.0, -3.0]), factors, symmetric=False)
    for second, third in ((None, None), (None, Ridge(1.0)), (Ridge(1.0), Fixed(factors[2]))):
        problem = codiag.Problem(start.to_dense(), 2, constraints=[NonNegative(), second, third], symmetric=False)
        feasible = LeastSquares(problem).feasible(start)
        sizes = np.array([2.0, 3.0]) ** (1 / 3) if isinstance(third, Fixed) else 1.0
        assert (feasible.factors[0] >= 0).all()
        assert_allclose(FactoredTensor(sizes * feasible.weights, feasible.factors).to_dense(), start.to_dense())
