"""Entries that were observed: what least squares asks of them, and fits to lists of them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import codiag
from codiag._arrays import to_host
from codiag.least_squares import LeastSquares, Limits, minimize
from codiag.reduction import reduce_listed
from codiag.tensors import DaskTensor, FactoredTensor, SparseTensor
from codiag.tensors.entries import ChunkedEntries, DenseEntries, ListedEntries, ObservedEntries
from tensor_cases import LIBRARIES

SHAPES = [(4, 5, 3), (3, 2, 4, 3)]
RANK = 2


class Case:
    """A tensor with weights, factors, and the derivative of every entry by every unknown."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        rng = np.random.default_rng(len(shape))
        self.shape = shape
        self.tensor = rng.standard_normal(shape)
        self.weights = np.where(rng.random(shape) < 0.6, rng.uniform(0.5, 2, shape), 0.0)
        self.factors = [rng.standard_normal((size, RANK)) for size in shape]
        self.moves = [rng.standard_normal((size, RANK)) for size in shape]
        self.components = FactoredTensor(np.ones(RANK), self.factors, symmetric=False)

    @property
    def gap(self) -> np.ndarray:
        return self.components.to_dense() - self.tensor

    @property
    def jacobian(self) -> np.ndarray:
        columns = []
        for mode, size in enumerate(self.shape):
            for unit in np.eye(size * RANK).reshape(-1, size, RANK):
                moved = [unit if other == mode else factor for other, factor in enumerate(self.factors)]
                columns.append(FactoredTensor(np.ones(RANK), moved, symmetric=False).to_dense().ravel())
        return np.stack(columns, axis=1)

    @property
    def matrix(self) -> np.ndarray:
        return self.jacobian.T @ (self.weights.ravel()[:, None] * self.jacobian)

    def stacked(self, parts: list[np.ndarray]) -> np.ndarray:
        return np.concatenate([to_host(part).ravel() for part in parts])

    def listed(self) -> ListedEntries:
        places = np.nonzero(self.weights)
        return ListedEntries(np.stack(places), self.tensor[places], self.weights[places], self.shape)

    def chunked(self) -> ChunkedEntries:
        """Return the entries in chunks, with NaN where nothing was observed, whatever its weight."""
        array = pytest.importorskip("dask.array", reason="dask is not installed; it is the extra 'dask'")
        hidden = np.where(self.weights > 0, self.tensor, np.nan)
        cut = [(1, size - 1) for size in self.shape[:2]]
        tensor = DaskTensor(array.from_array(hidden, chunks=(*cut, *self.shape[2:])))
        return ChunkedEntries(tensor, tensor.weights_of(np.where(self.weights > 0, self.weights, 1.0)))


@pytest.fixture(params=SHAPES, ids=["order 3", "order 4"])
def case(request: pytest.FixtureRequest) -> Case:
    return Case(request.param)


@pytest.fixture(params=["dense", "listed", "listed in parts", "chunked"])
def entries(request: pytest.FixtureRequest, case: Case, monkeypatch: pytest.MonkeyPatch) -> ObservedEntries:
    if request.param == "dense":
        return DenseEntries(case.tensor, case.weights)
    if request.param == "chunked":
        return case.chunked()
    if request.param == "listed in parts":
        monkeypatch.setattr("codiag.tensors.entries._entries.CHUNK", 7 * RANK)
    return case.listed()


def test_the_distance_is_the_weighted_sum_of_squares(entries: ObservedEntries, case: Case) -> None:
    assert_allclose(entries.distance(case.components), np.sum(case.weights * case.gap**2))
    assert_allclose(entries.squared_norm(), np.sum(case.weights * case.tensor**2))
    scaled = FactoredTensor(np.array([2.0, -3.0]), case.factors, symmetric=False)
    assert_allclose(entries.distance(scaled), np.sum(case.weights * (scaled.to_dense() - case.tensor) ** 2))


def test_slopes_are_the_derivative_of_half_the_distance(entries: ObservedEntries, case: Case) -> None:
    distance, slopes = entries.distance_and_slopes(case.factors)
    assert_allclose(distance, np.sum(case.weights * case.gap**2))
    expected = case.jacobian.T @ (case.weights * case.gap).ravel()
    assert_allclose(case.stacked(slopes), expected, atol=1e-12)


def test_the_gauss_newton_matrix_is_that_of_the_derivatives(entries: ObservedEntries, case: Case) -> None:
    assert_allclose(entries.gauss_newton_matrix(case.factors), case.matrix, atol=1e-12)


def test_curved_is_the_matrix_times_moves(entries: ObservedEntries, case: Case) -> None:
    curved = entries.gauss_newton_product(case.factors, case.moves)
    assert_allclose(case.stacked(curved), case.matrix @ case.stacked(case.moves), atol=1e-12)


def test_row_grams_and_products_are_the_equations_of_one_mode(entries: ObservedEntries, case: Case) -> None:
    ends = np.cumsum([0, *(size * RANK for size in case.shape)])
    for mode, size in enumerate(case.shape):
        own = slice(ends[mode], ends[mode + 1])
        blocks = case.matrix[own, own].reshape(size, RANK, size, RANK)
        assert_allclose(entries.row_grams(case.factors, mode), np.einsum("iaib->iab", blocks), atol=1e-12)
        products = case.jacobian[:, own].T @ (case.weights * case.tensor).ravel()
        assert_allclose(entries.row_products(case.factors, mode), products.reshape(size, RANK), atol=1e-12)


def test_counts_are_entries_of_each_slice(entries: ObservedEntries, case: Case) -> None:
    for mode, count in enumerate(entries.counts()):
        others = tuple(other for other in range(len(case.shape)) if other != mode)
        assert_array_equal(count, np.sum(case.weights > 0, axis=others))


def test_different_entries_are_those_in_order(entries: ObservedEntries, case: Case) -> None:
    index = np.stack(np.nonzero(case.weights))
    for groups in ([(0, 1), (2,)], [(0, 2), (1,)], [(0,), (1,), (2,)]):
        expected = np.all([np.all(np.diff(index[list(group)], axis=0) >= 0, axis=0) for group in groups], axis=0)
        assert entries.n_independent(groups) == np.count_nonzero(expected)
    assert_allclose(entries.mean_weight(), np.mean(case.weights[case.weights > 0]))


def test_the_residual_of_a_list_is_the_weighted_gap(case: Case) -> None:
    assert_allclose(case.listed().residual(case.components).to_dense(), -case.weights * case.gap, atol=1e-12)


def _sparse(shape: tuple[int, ...] = (5, 6, 7), count: int = 60) -> SparseTensor:
    rng = np.random.default_rng(0)
    coords = np.stack(np.unravel_index(rng.permutation(math.prod(shape))[:count], shape))
    return SparseTensor(coords, rng.standard_normal(count), shape, absent="missing")


def test_what_is_absent_stays_missing() -> None:
    tensor = _sparse()
    kept = [tensor.permute((2, 0, 1)), tensor * 2.0, -tensor, tensor.without_empty_rows()[0]]
    assert [other.absent for other in kept] == ["missing"] * 4


def test_contractions_take_missing_entries_for_zeros() -> None:
    tensor = _sparse()
    zeros = SparseTensor(tensor.coords, tensor.values, tensor.shape)
    rng = np.random.default_rng(1)
    factors = [rng.standard_normal((size, 2)) for size in tensor.shape]
    assert_allclose(tensor.compress(*factors).to_dense(), zeros.compress(*factors).to_dense())
    for mode in range(3):
        assert_allclose(tensor.mttkrp(factors, mode), zeros.mttkrp(factors, mode))


def test_a_zero_that_was_observed_stays_in_the_list() -> None:
    tensor = SparseTensor([[0, 1], [0, 1], [0, 1]], [0.0, 1.0], (2, 2, 2), absent="missing")
    assert tensor.values.tolist() == [0.0, 1.0]


def test_an_entry_listed_twice_is_refused() -> None:
    with pytest.raises(ValueError, match=r"entry \(1, 2, 0\) occurs more than once"):
        SparseTensor([[1, 0, 1], [2, 0, 2], [0, 0, 0]], [1.0, 2.0, 3.0], (3, 3, 3), absent="missing")
    with pytest.raises(ValueError, match="occurs more than once"):
        SparseTensor([[1, 1], [2, 2], [0, 0]], [1.0, 2.0], (10**9,) * 3, absent="missing")


def _observed(size: int, count: int, rank: int, noise: float = 0.01) -> tuple[SparseTensor, FactoredTensor]:
    """Return a list of noisy entries of random components, and these."""
    rng = np.random.default_rng(0)
    factors = [rng.standard_normal((size, rank)) for _ in range(3)]
    coords = np.stack(np.unravel_index(np.unique(rng.integers(0, size**3, count)), (size,) * 3))
    values = np.sum(np.prod([factor[row] for factor, row in zip(factors, coords, strict=True)], axis=0), axis=1)
    values += noise * np.std(values) * rng.standard_normal(values.size)
    truth = FactoredTensor(np.ones(rank), factors, symmetric=False)
    return SparseTensor(coords, values, (size,) * 3, absent="missing"), truth


def _best(tensor: SparseTensor, truth: FactoredTensor) -> float:
    problem = codiag.Problem(tensor, truth.rank)
    best = minimize(problem, truth, Limits())
    return LeastSquares(problem).relative_error(best.components)


@pytest.mark.parametrize(("size", "count"), [(25, 3000), (150, 60000)], ids=["small", "large"])
def test_a_fit_to_a_list_reaches_least_squares_from_the_truth(
    size: int, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(tensor: SparseTensor) -> None:
        raise AssertionError(f"{tensor!r} was formed")

    monkeypatch.setattr(SparseTensor, "to_dense", refuse)
    tensor, truth = _observed(size, count, 3)
    fit = codiag.factorize(tensor, 3, rng=0)
    assert fit.converged
    assert fit.relative_error <= _best(tensor, truth) * (1 + 1e-6)


def test_the_core_of_a_list_estimates_that_of_the_complete_tensor() -> None:
    tensor, truth = _observed(150, 200000, 3, noise=0)
    reduction = reduce_listed(codiag.Problem(tensor, 3), np.random.default_rng(0))
    lifted = reduction.core.compress(*(basis.T for basis in reduction.bases))
    gap = truth.squared_norm() - 2 * lifted.inner(truth.weights, truth.factors) + lifted.squared_norm()
    assert gap < 0.1 * truth.squared_norm()  # 5.9 % of the entries were read


@pytest.mark.parametrize("library", LIBRARIES)
def test_entries_of_every_library_agree_with_numpy(library: str, case: Case) -> None:
    if library == "jax" and len(case.shape) > 3:
        pytest.skip("JAX compiles every operation for every shape; order three shows the same")
    put = LIBRARIES[library]
    pairs = [(DenseEntries(case.tensor, case.weights), DenseEntries(put(case.tensor), put(case.weights)))]
    if library == "torch":
        places = np.nonzero(case.weights)
        lists = [put(np.stack(places)), put(case.tensor[places]), put(case.weights[places])]
        pairs.append((case.listed(), ListedEntries(*lists, case.shape)))
    factors, moves = [put(factor) for factor in case.factors], [put(move) for move in case.moves]
    for expected, found in pairs:
        distance, slopes = found.distance_and_slopes(factors)
        assert_allclose(distance, expected.distance(case.components))
        assert_allclose(found.squared_norm(), expected.squared_norm())
        assert_allclose(case.stacked(slopes), case.stacked(expected.distance_and_slopes(case.factors)[1]), atol=1e-12)
        curved = expected.gauss_newton_product(case.factors, case.moves)
        assert_allclose(case.stacked(found.gauss_newton_product(factors, moves)), case.stacked(curved), atol=1e-12)
        matrix = expected.gauss_newton_matrix(case.factors)
        assert_allclose(to_host(found.gauss_newton_matrix(factors)), matrix, atol=1e-12)
        grams = expected.row_grams(case.factors, 1)
        assert_allclose(to_host(found.row_grams(factors, 1)), grams, atol=1e-12)
        products = expected.row_products(case.factors, 1)
        assert_allclose(to_host(found.row_products(factors, 1)), products, atol=1e-12)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("share", [0.5, 0.09])
def test_fits_to_what_was_observed_agree_with_numpy(library: str, share: float) -> None:
    rng = np.random.default_rng(0)
    factors = [rng.standard_normal((20, 2)) for _ in range(3)]
    tensor = np.einsum("ir,jr,kr->ijk", *factors) + 0.01 * rng.standard_normal((20, 20, 20))
    observed = rng.random(tensor.shape) < share
    expected = codiag.factorize(tensor, 2, weights=observed, rng=0)
    given = LIBRARIES[library](tensor)
    fit = codiag.factorize(given, 2, weights=LIBRARIES[library](observed), rng=0)
    assert isinstance(fit.weights, type(given))
    assert_allclose(fit.relative_error, expected.relative_error, rtol=1e-9)
    for one, other in zip(fit.factors, expected.factors, strict=True):
        assert_allclose(to_host(one), other, atol=1e-6)
