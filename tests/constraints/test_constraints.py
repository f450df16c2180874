"""What every constraint promises, what `factorize` makes of constraints, and what it says of those that are none."""

from __future__ import annotations

import math

import numpy as np
import pytest
from array_api_compat import array_namespace
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import nnls

import codiag
from assertions import assert_same_factors
from cases import CONSTRAINTS
from codiag._arrays import to_host
from codiag.constraints import Constraint, Fixed, NonNegative, Ridge, Simplex
from codiag.methods import ALS
from codiag.tensors import FactoredTensor
from tensor_cases import LIBRARIES

EVERY = pytest.mark.parametrize("name", CONSTRAINTS)
GRAMS = pytest.mark.parametrize("gram", ["one for all rows", "one for every row"])
SHAPES = [(7, 3), (4, 1), (1, 2), (12, 5)]


def equations(kind, size, rank, seed=0):
    """Return matrices A and right-hand sides b of least squares in every row, with their Gram matrices and products."""
    rng = np.random.default_rng([size, rank, seed])
    matrices = rng.standard_normal((size, rank + 6, rank))
    if kind == "one for all rows":
        matrices[:] = matrices[0]
    targets = rng.standard_normal((size, rank + 6))
    grams = np.einsum("iar,ias->irs", matrices, matrices)
    products = np.einsum("iar,ia->ir", matrices, targets)
    return matrices, targets, grams[0] if kind == "one for all rows" else grams, products


def slope(gram, product, factor):
    return (factor @ gram if gram.ndim == 2 else np.einsum("ir,irs->is", factor, gram)) - product


@EVERY
@pytest.mark.parametrize("shape", SHAPES, ids=str)
class TestLaws:
    def test_projecting_twice_changes_nothing_more(self, name, shape):
        constraint, _ = CONSTRAINTS[name].drawn(*shape)
        once = constraint.project(np.random.default_rng(1).standard_normal(shape))
        assert once.shape == shape
        assert_allclose(constraint.project(once), once, atol=1e-14)

    def test_what_satisfies_it_stays(self, name, shape):
        constraint, factor = CONSTRAINTS[name].drawn(*shape)
        assert_allclose(constraint.project(factor), factor, atol=1e-14)

    def test_nothing_that_satisfies_it_is_nearer(self, name, shape):
        """On a convex set: the way to any other point starts at no acute angle to the way from the factor."""
        constraint, _ = CONSTRAINTS[name].drawn(*shape)
        rng = np.random.default_rng(2)
        factor = rng.standard_normal(shape)
        nearest = constraint.project(factor)
        for scale in (1e-3, 0.1, 1.0, 10.0) * 20:
            other = constraint.project(nearest + scale * rng.standard_normal(shape))
            if CONSTRAINTS[name].is_convex:
                assert np.sum((factor - nearest) * (other - nearest)) <= 1e-12 * (1 + scale)
            assert np.linalg.norm(factor - nearest) <= np.linalg.norm(factor - other) + 1e-12

    @GRAMS
    def test_solutions_are_stationary(self, name, shape, gram):
        """No way into the set leads down: at the minimum a step along the gradient is projected back to where it was.

        Projected gradient steps stop before that, as the next sweep goes on from where they end.
        """
        constraint, _ = CONSTRAINTS[name].drawn(*shape)
        *_, gram, product = equations(gram, *shape)
        found = np.zeros(shape)
        for _ in range(20):
            found = constraint.solve(gram, product, found)
        assert_allclose(constraint.project(found), found, atol=1e-14)
        step = 1 / np.max(np.linalg.norm(gram, ord=2, axis=(-2, -1)))
        assert_allclose(constraint.project(found - step * slope(gram, product, found)), found, atol=1e-6)

    def test_arguments_are_not_changed(self, name, shape):
        constraint, _ = CONSTRAINTS[name].drawn(*shape)
        *_, gram, product = equations("one for all rows", *shape)
        given = [gram, product, np.ones(shape)]
        kept = [array.copy() for array in given]
        constraint.project(given[2])
        constraint.solve(*given)
        for array, before in zip(given, kept, strict=True):
            assert_array_equal(array, before)


@EVERY
class TestFits:
    @staticmethod
    def problem(name, *, noise=0.0, mode=0):
        """Return a tensor whose factor of one mode satisfies a constraint, that constraint by mode, and the factors."""
        shape, rank = (9, 7, 8), 3
        constraint, known = CONSTRAINTS[name].drawn(shape[mode], rank)
        rng = np.random.default_rng(3)
        factors = [known if m == mode else rng.standard_normal((size, rank)) for m, size in enumerate(shape)]
        entries = FactoredTensor(np.ones(rank), factors).to_dense()
        entries = entries + noise * rng.standard_normal(shape)
        return entries, [constraint if m == mode else None for m in range(3)], factors

    @pytest.mark.parametrize("mode", [0, 1, 2])
    def test_factors_that_satisfy_it_are_found(self, name, mode):
        entries, constraints, factors = self.problem(name, mode=mode)
        fit = codiag.factorize(entries, 3, constraints=constraints, rng=0)
        assert fit.converged
        assert_same_factors(fit, factors, 1e-6)

    @pytest.mark.parametrize("method", [None, ALS(init="svd")], ids=["auto", "als"])
    @pytest.mark.parametrize("observed", [False, True])
    def test_results_satisfy_it(self, name, method, observed):
        """Up to the size of columns, which goes into the weights."""
        entries, constraints, _ = self.problem(name, noise=0.5)
        known = np.random.default_rng(4).random(entries.shape) < 0.8 if observed else None
        fit = codiag.factorize(entries, 3, constraints=constraints, mask=known, method=method, rng=0)
        found = fit.factors[0]
        if name == "fixed":
            truth = constraints[0].factor / np.linalg.norm(constraints[0].factor, axis=0)
            overlaps = truth.T @ found
            assert_allclose(np.sort(np.max(np.abs(overlaps), axis=0)), 1, atol=1e-12)
        elif name == "simplex":
            assert_allclose(Simplex.shares(found).sum(axis=1), 1, atol=1e-9)
        else:
            assert_allclose(constraints[0].project(found), found, atol=1e-12)
        assert np.all(fit.weights > 0)
        counted = np.ones(entries.shape, bool) if known is None else known
        assert fit.relative_error * fit._norm == pytest.approx(np.linalg.norm((entries - fit.to_tensor())[counted]))


class TestFixed:
    def test_all_but_one_mode_known_is_a_linear_equation(self):
        rng = np.random.default_rng(0)
        factors = [rng.standard_normal((size, 3)) for size in (5, 6, 7)]
        entries = FactoredTensor(np.ones(3), factors).to_dense() + 0.3 * rng.standard_normal((5, 6, 7))
        fit = codiag.factorize(entries, 3, constraints=[Fixed(factors[0]), Fixed(factors[1]), None], rng=0)
        others = np.einsum("ir,jr->ijr", factors[0], factors[1]).reshape(-1, 3)
        expected = np.linalg.lstsq(others, entries.reshape(-1, 7), rcond=None)[0].T
        assert_allclose(fit.to_tensor(), np.einsum("ir,jr,kr->ijk", *factors[:2], expected), atol=1e-8)

    def test_the_rest_is_solved_for(self):
        """With two factors free, sweeps over these end where those of all modes end from the same start."""
        rng = np.random.default_rng(1)
        factors = [rng.standard_normal((size, 2)) for size in (5, 6, 7)]
        entries = FactoredTensor(np.ones(2), factors).to_dense() + 0.1 * rng.standard_normal((5, 6, 7))
        method = ALS(init=(np.ones(2), factors), tol=1e-15, max_iter=2000)
        fit = codiag.factorize(entries, 2, constraints=[Fixed(factors[0]), None, None], method=method, rng=0)
        first, second, third = factors
        for _ in range(2000):
            second = _least_squares(entries.transpose(1, 0, 2), first, third)
            third = _least_squares(entries.transpose(2, 0, 1), first, second)
        assert_allclose(fit.to_tensor(), np.einsum("ir,jr,kr->ijk", first, second, third), atol=1e-8)

    @pytest.mark.parametrize("observed", [False, True])
    def test_all_modes_known_leaves_the_weights(self, observed):
        """Negative ones, too: no mode is free to take a sign."""
        rng = np.random.default_rng(0)
        factors = [rng.standard_normal((size, 3)) for size in (5, 6, 7)]
        columns = np.einsum("ir,jr,kr->ijkr", *factors)
        entries = columns @ np.array([3.0, -2.0, 1.0]) + 0.1 * rng.standard_normal((5, 6, 7))
        known = rng.random(entries.shape) < 0.5 if observed else np.full(entries.shape, True)
        constraints, mask = [Fixed(factor) for factor in factors], known if observed else None
        fit = codiag.factorize(entries, 3, constraints=constraints, mask=mask, rng=0)
        expected = np.linalg.lstsq(columns[known], entries[known], rcond=None)[0]
        assert_allclose(fit.to_tensor(), columns @ expected, atol=1e-9)
        for found, factor in zip(fit.factors, factors, strict=True):
            assert_allclose(np.max((factor / np.linalg.norm(factor, axis=0)).T @ found, axis=0), 1)  # no sign changed

    def test_the_factor_is_kept_apart_from_the_callers(self):
        constraint = Fixed(np.eye(3))
        assert_array_equal(constraint.project(np.ones((3, 3), np.float32)), np.eye(3))
        assert constraint.project(np.ones((3, 3), np.float32)).dtype == np.float32


def _least_squares(entries, left, right):
    others = np.einsum("ir,jr->ijr", left, right).reshape(-1, left.shape[1])
    return np.linalg.lstsq(others, entries.reshape(len(entries), -1).T, rcond=None)[0].T


class TestNonNegative:
    @GRAMS
    @pytest.mark.parametrize("shape", [*SHAPES, (40, 9)], ids=str)
    @pytest.mark.parametrize("rows_at_a_time", [None, 3])
    def test_solutions_are_those_of_scipy(self, gram, shape, rows_at_a_time, monkeypatch):
        if rows_at_a_time is not None:
            monkeypatch.setattr("codiag._arrays._namespace.BLOCK", rows_at_a_time * shape[1] ** 2)
        matrices, targets, grams, products = equations(gram, *shape)
        start = np.random.default_rng(0).standard_normal(shape)
        found = NonNegative().solve(grams, products, start)
        expected = [nnls(matrix, target)[0] for matrix, target in zip(matrices, targets, strict=True)]
        assert_allclose(found, expected, atol=1e-9)

    def test_equations_that_determine_nothing(self):
        """Equal columns, zeros, and rows that were never observed: the objective is that of the minimum."""
        matrix = np.array([[1.0, 1.0, 0.0], [2.0, 2.0, 0.0], [0.5, 0.5, 0.0]])
        targets = np.random.default_rng(0).standard_normal((5, 3))
        found = NonNegative().solve(matrix.T @ matrix, targets @ matrix, np.ones((5, 3)))
        left = np.linalg.norm(found @ matrix.T - targets, axis=1)
        assert_allclose(left, [nnls(matrix, target)[1] for target in targets], atol=1e-9)
        nothing = NonNegative().solve(np.zeros((2, 3, 3)), np.zeros((2, 3)), np.array([[1.0, -1.0, 0.0]] * 2))
        assert_array_equal(nothing, [[1.0, 0.0, 0.0]] * 2)

    def test_exchanges_that_circle_end_all_the_same(self, monkeypatch):
        """One entry at a time is slow and always ends; all at once may circle, and then gradient steps take over."""
        matrices, targets, grams, products = equations("one for every row", 30, 8)
        expected = [nnls(matrix, target)[0] for matrix, target in zip(matrices, targets, strict=True)]
        monkeypatch.setattr("codiag.constraints._nonnegative.FULL_EXCHANGES", -1)
        assert_allclose(NonNegative().solve(grams, products, np.zeros((30, 8))), expected, atol=1e-9)

    def test_single_precision(self):
        *_, gram, product = equations("one for every row", 12, 5)
        exact = NonNegative().solve(gram, product, np.zeros((12, 5)))
        single = NonNegative().solve(*(array.astype(np.float32) for array in (gram, product, np.zeros((12, 5)))))
        assert single.dtype == np.float32
        assert_allclose(single, exact, atol=1e-4)

    @pytest.mark.parametrize("library", LIBRARIES)
    def test_libraries_agree(self, library):
        *_, gram, product = equations("one for every row", 12, 5)
        given = [LIBRARIES[library](array) for array in (gram, product, np.ones((12, 5)))]
        found = NonNegative().solve(*given)
        assert array_namespace(found) is array_namespace(given[0])
        assert_allclose(to_host(found), NonNegative().solve(gram, product, np.ones((12, 5))), atol=1e-12)

    @pytest.mark.parametrize("library", LIBRARIES)
    def test_factorizations_of_libraries_agree(self, library):
        entries = np.random.default_rng(0).random((5, 6, 7))
        expected = codiag.factorize(entries, 2, constraints="nonnegative", method=ALS(init="svd"), rng=0)
        given = LIBRARIES[library](entries)
        fit = codiag.factorize(given, 2, constraints="nonnegative", method=ALS(init="svd"), rng=0)
        assert array_namespace(fit.weights) is array_namespace(given)
        assert_allclose(to_host(fit.to_tensor()), expected.to_tensor(), atol=1e-6)

    def test_the_fit_is_the_same_as_sweeps_of_scipy(self):
        rng = np.random.default_rng(2)
        entries = rng.random((4, 5, 6))
        factors = [rng.random((size, 2)) for size in (4, 5, 6)]
        method = ALS(init=(np.ones(2), factors), max_iter=3, tol=1e-300)
        with pytest.warns(codiag.ConvergenceWarning):
            fit = codiag.factorize(entries, 2, constraints="nonnegative", method=method, rng=0)
        for _ in range(3):
            for mode in range(3):
                left, right = (factors[other] for other in range(3) if other != mode)
                others = np.einsum("ir,jr->ijr", left, right).reshape(-1, 2)
                rows = np.moveaxis(entries, mode, 0).reshape(entries.shape[mode], -1)
                factors[mode] = np.array([nnls(others, row)[0] for row in rows])
        assert_allclose(fit.to_tensor(), np.einsum("ir,jr,kr->ijk", *factors), atol=1e-9)


class TestMistakes:
    @pytest.mark.parametrize(
        ("constraints", "error", "words"),
        [
            (
                "nonsense",
                ValueError,
                "^constraints must",
            ),
            ([None, "wrong", None], ValueError, "^constraints must"),
            ([NonNegative(), None], ValueError, "^constraints must"),
            ([], ValueError, "^constraints must"),
            (NonNegative, TypeError, "^constraints must"),
            ([None, Fixed, None], TypeError, "^constraints must"),
            (3, TypeError, "^constraints must"),
            (True, TypeError, "^constraints must"),
            ([1, 2, 3], TypeError, "^constraints must"),
            ([Fixed(np.ones((4, 2))), None, None], ValueError, r"constraints\[0\].*shape \(3, 2\).*got \(4, 2\)"),
            ([None, None, Fixed(np.ones((5, 3)))], ValueError, r"constraints\[2\].*shape \(5, 2\).*got \(5, 3\)"),
            (Fixed(np.ones((3, 2))), ValueError, r"constraints\[1\].*shape \(4, 2\)"),
        ],
        ids=str,
    )
    def test_of_constraints(self, constraints, error, words):
        with pytest.raises(error, match=words):
            codiag.factorize(np.ones((3, 4, 5)), 2, constraints=constraints)

    @pytest.mark.parametrize(
        ("factor", "error"),
        [(np.ones(3), ValueError), (np.full((3, 2), math.nan), ValueError), ("wrong", TypeError), (None, TypeError),
         (np.ones((2, 2, 2)), ValueError)],
        ids=["vector", "nan", "text", "none", "cube"],
    )  # fmt: skip
    def test_of_fixed(self, factor, error):
        with pytest.raises(error, match="factor must"):
            Fixed(factor)

    def test_names_are_resolved_in_either_case_and_beside_objects(self):
        problem = codiag.Problem(np.ones((3, 4, 5)), 2, constraints=["NonNegative", None, Fixed(np.ones((5, 2)))])
        assert [type(one) for one in problem.constraints] == [NonNegative, type(None), Fixed]

    def test_a_dict_constrains_some_modes_and_hyphens_are_no_matter(self):
        problem = codiag.Problem(np.ones((3, 4, 5)), 2, constraints={0: "non-negative", -1: Ridge(1.0)})
        assert [type(one) for one in problem.constraints] == [NonNegative, type(None), Ridge]
        with pytest.raises(ValueError, match="numbers of modes"):
            codiag.Problem(np.ones((3, 4, 5)), 2, constraints={"time": "nonnegative"})

    def test_no_constraint_at_all_is_none(self):
        assert codiag.Problem(np.ones((3, 4, 5)), 2, constraints=[None] * 3).constraints is None

    def test_what_must_be_implemented(self):
        with pytest.raises(TypeError, match="abstract"):
            Constraint()


def test_steps_survive_equations_that_are_singular():
    """Components may be scaled against each other, so that undamped equations have no unique solution."""
    tensor = np.random.default_rng(4).random((5, 6, 7)) - 0.3
    fit = codiag.factorize(tensor, 5, constraints="nonnegative", rng=0)
    assert fit.relative_error < 1
    assert all(np.all(factor >= 0) for factor in fit.factors)


@pytest.mark.parametrize(("scale", "strength"), [(1.0, 1e20), (1e-100, 1e-3)])
def test_ridges_that_leave_nothing(scale, strength):
    fit = codiag.factorize(scale * np.random.default_rng(4).random((5, 6, 7)), 2, constraints=Ridge(strength), rng=0)
    assert fit.relative_error == pytest.approx(1)
