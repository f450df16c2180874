"""Sparse tensors with few entries and enormous shapes: memory follows the entries."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import codiag
from assertions import assert_same_factors
from codiag.io import read_tns
from codiag.methods import ALS, NLS, NOJD, OJD, TPM
from codiag.synthetic import mild_factor
from codiag.tensors import SparseTensor

RANK = 3
INSIDE = (7, 6, 8)


def scattered(shape, seed=0, *, symmetric=False, precision=np.float64):
    """A tensor of rank three on a few indices of each mode; the indices, and the factors there."""
    rng = np.random.default_rng(seed)
    sizes = (INSIDE[0],) * 3 if symmetric else INSIDE
    rows = [np.sort(rng.choice(size, few, replace=False)) for size, few in zip(shape, sizes, strict=True)]
    factors = [mild_factor(few, RANK, rng) for few in sizes]
    rows, factors = (rows[:1] * 3, factors[:1] * 3) if symmetric else (rows, factors)
    entries = np.einsum("r,ir,jr,kr->ijk", np.arange(RANK, 0, -1.0), *factors)
    places = np.array(np.meshgrid(*rows, indexing="ij")).reshape(3, -1)
    tensor = SparseTensor(places, entries.ravel().astype(precision), shape, symmetric=symmetric)
    return tensor, rows, factors


class TestLeavingThemOut:
    def test_indices_without_entries_are_left_out(self):
        tensor, rows, _ = scattered((30, 40, 50))
        smaller, kept = tensor.without_empty_rows()
        assert smaller.shape == INSIDE
        for indices, expected in zip(kept, rows, strict=True):
            assert_array_equal(indices, expected)
        assert_array_equal(smaller.to_dense(), tensor.to_dense()[np.ix_(*kept)])

    def test_as_many_are_kept_as_are_asked_for(self):
        tensor = SparseTensor([[4, 1], [3, 3], [0, 1]], [1.0, 2.0], (6, 5, 2))
        smaller, kept = tensor.without_empty_rows(at_least=4)
        assert [indices.tolist() for indices in kept] == [[0, 1, 2, 4], [0, 1, 2, 3], [0, 1]]
        assert_array_equal(smaller.to_dense(), tensor.to_dense()[np.ix_(*kept)])

    def test_a_symmetric_tensor_keeps_the_same_everywhere(self):
        tensor = SparseTensor([[1, 1, 9], [1, 9, 1], [9, 1, 1]], [1.0, 1.0, 1.0], (10, 10, 10), symmetric=True)
        smaller, kept = tensor.without_empty_rows()
        assert smaller.symmetric
        assert [indices.tolist() for indices in kept] == [[1, 9]] * 3

    def test_multiples_of_a_sparse_tensor_are_sparse(self):
        tensor, _, _ = scattered((30, 40, 50))
        assert isinstance(-2.0 * tensor, SparseTensor)
        assert_array_equal((-2.0 * tensor).to_dense(), -2 * tensor.to_dense())


@pytest.mark.parametrize("precision", [np.float32, np.float64])
@pytest.mark.parametrize("symmetric", [True, False])
def test_factors_are_zero_where_there_are_no_entries(symmetric, precision):
    tensor, rows, factors = scattered((40, 40, 40), symmetric=symmetric, precision=precision)
    fit = codiag.factorize(tensor, RANK, rng=0)
    assert fit.shape == tensor.shape
    assert fit._symmetric == symmetric
    assert {factor.dtype for factor in fit.factors} == {np.dtype(precision)}
    for factor, places in zip(fit.factors, rows, strict=True):
        assert not np.any(np.delete(factor, places, axis=0))
    assert_same_factors([factor[places] for factor, places in zip(fit.factors, rows, strict=True)], factors, 1e-5)
    dense = tensor.to_dense().astype(np.float64)
    gap = dense - fit.to_tensor()
    assert fit.relative_error == pytest.approx(np.linalg.norm(gap) / np.linalg.norm(dense), abs=1e-6)
    assert fit._norm == pytest.approx(np.linalg.norm(dense))


@pytest.mark.parametrize("method", [None, "als", "tpm", "nojd0", "nojd1", "nls", NOJD(compress=False)], ids=str)
def test_memory_is_that_of_the_factors(method):
    """A million rows a mode, of which a few have entries: what is returned, and little else."""
    tensor, _, _ = scattered((1_000_000, 1_100_000, 1_200_000))
    tracemalloc.start()
    fit = codiag.factorize(tensor, RANK, method=method, rng=0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < sum(factor.nbytes for factor in fit.factors) + 2e6


def test_more_components_than_indices_with_entries():
    tensor = SparseTensor([[1], [2], [3]], [2.0], (9, 9, 9))
    fit = codiag.factorize(tensor, 4, rng=0)
    assert fit.rank == 4
    assert fit.relative_error < 1e-6


class TestTooLargeToReturn:
    SHAPE = (200_000_000, 200_000_000, 400_000_000)

    def test_it_is_refused_with_a_way_out(self):
        tensor, _, factors = scattered((*self.SHAPE[:2], 1000))
        tracemalloc.start()
        with pytest.raises(ValueError, match=r"indices without entries.* GB .*without_empty_rows"):
            codiag.factorize(tensor, RANK)
        smaller, kept = tensor.without_empty_rows()
        fit = codiag.factorize(smaller, RANK, rng=0)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 5e6
        assert_same_factors(fit.factors, factors, 1e-6)
        assert [indices.size for indices in kept] == [factor.shape[0] for factor in fit.factors]

    def test_eleven_entries(self):
        rng = np.random.default_rng(0)
        coords = np.array([rng.integers(0, size, 11) for size in self.SHAPE])
        with pytest.raises(ValueError, match=r"12\.8 GB"):
            codiag.factorize(SparseTensor(coords, np.ones(11), self.SHAPE), 2)

    def test_two_lines_of_a_file(self, tmp_path):
        path = tmp_path / "two.tns"
        path.write_text("1 1 1 1.0\n2000000000 2000000000 2000000000 2.0\n")
        tensor = read_tns(path)
        with pytest.raises(ValueError, match="indices without entries"):
            codiag.factorize(tensor, 2)
        fit = codiag.factorize(tensor.without_empty_rows()[0], 2, rng=0)
        assert_allclose(fit.weights, [2.0, 1.0])


class TestOptionsThatBelongToAllIndices:
    """Starts, moments and directions are of the size of the tensor, and stay what they are."""

    @pytest.mark.slow
    @pytest.mark.filterwarnings("ignore::codiag.ConvergenceWarning")
    def test_starts(self):
        tensor, _, _ = scattered((20, 25, 30))
        rng = np.random.default_rng(0)
        start = (None, [rng.standard_normal((size, RANK)) for size in tensor.shape])
        for method in (NLS(init=start), ALS(init=start), NLS(init=ALS(init=start))):
            assert codiag.factorize(tensor, RANK, method=method, rng=0).shape == tensor.shape

    def test_second_moments(self):
        tensor, rows, factors = scattered((20, 20, 20), symmetric=True)
        whole = np.zeros((20, RANK))
        whole[rows[0]] = factors[0]
        problem = codiag.Problem(tensor, RANK, second_moment=whole @ whole.T)
        for method in (OJD(), TPM()):
            assert codiag.factorize(problem, method=method, rng=0).relative_error < 1e-6

    def test_directions(self):
        tensor, _, _ = scattered((20, 25, 30))
        directions = np.random.default_rng(0).standard_normal((6, 20))
        fit = codiag.factorize(tensor, RANK, method=NOJD(directions=directions, compress=False), rng=0)
        assert fit.relative_error < 1e-6

    def test_monitors_see_all_indices(self):
        tensor, _, _ = scattered((20, 25, 30))
        seen = []
        codiag.factorize(tensor, RANK, method=NLS(callback=lambda found, _: seen.append(found.shape)), rng=0)
        assert set(seen) == {tensor.shape}
