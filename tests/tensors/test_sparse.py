"""Lists of entries: whatever their order, blocks and threads, they are one tensor with one set of sums."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from threadpoolctl import threadpool_limits

import codiag
from codiag._arrays import in_threads, n_threads
from codiag.tensors import Core, DenseTensor, Products, SparseTensor, SquaredDistance, SquaredNorm

SHAPES = [(7, 5, 6), (40, 3, 9), (12, 11, 10), (4, 5, 3, 6), (3, 2, 4, 2, 3)]


def listed(shape, rng, share=0.5, **options):
    """Return a sparse tensor and its entries as an array."""
    dense = rng.standard_normal(shape) * (rng.random(shape) < share)
    places = np.nonzero(dense)
    order = rng.permutation(places[0].size)
    return SparseTensor(np.stack(places)[:, order], dense[places][order], shape, **options), dense


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def many_blocks(monkeypatch):
    """Let small lists go the way of large ones: in blocks, parts and threads."""
    monkeypatch.setattr("codiag.tensors._sparse_products.BLOCK", 64)
    monkeypatch.setattr("codiag.tensors._sparse_products.PART", 128)
    monkeypatch.setattr("codiag.tensors._sparse_products.n_threads", lambda: 3)


@pytest.mark.usefixtures("many_blocks")
@pytest.mark.parametrize("shape", SHAPES, ids=str)
class TestSums:
    @pytest.mark.parametrize("turned", [False, True])
    def test_compression_is_that_of_the_array_whatever_modes_stay_open(self, shape, turned, rng):
        tensor, dense = listed(shape, rng)
        if turned:  # entries are then not in the order of memory
            axes = rng.permutation(len(shape)).tolist()
            tensor, dense = tensor.permute(axes), dense.transpose(axes)
        known = [rng.standard_normal((size, 2 + mode)) for mode, size in enumerate(dense.shape)]
        for kept in itertools.product([True, False], repeat=dense.ndim):
            bases = [basis if keep else None for basis, keep in zip(known, kept, strict=True)]
            expected = DenseTensor(dense, symmetric=False).compress(*bases).to_dense()
            assert_allclose(tensor.compress(*bases).to_dense(), expected, atol=1e-12)

    def test_one_read_gives_what_each_sum_gives(self, shape, rng):
        tensor, dense = listed(shape, rng)
        factors = [rng.standard_normal((size, 3)) for size in shape]
        weights = rng.standard_normal(3)
        bases = [factors[0], None, *factors[2:]]
        asked = [SquaredNorm(), Products(factors), Core(factors), Core(bases), SquaredDistance(weights, factors)]
        norm, products, core, opened, distance = tensor.read(*asked)
        array = DenseTensor(dense, symmetric=False)
        assert norm == pytest.approx(array.squared_norm(), rel=1e-12)
        for product, expected in zip(products, array.mttkrps(factors), strict=True):
            assert_allclose(product, expected, atol=1e-11)
        assert_allclose(core.to_dense(), array.compress(*factors).to_dense(), atol=1e-11)
        assert_allclose(opened.to_dense(), array.compress(*bases).to_dense(), atol=1e-11)
        assert distance == pytest.approx(array.squared_distance(weights, factors), rel=1e-12)
        assert tensor.inner(weights, factors) == pytest.approx(array.inner(weights, factors), rel=1e-9)


@pytest.mark.usefixtures("many_blocks")
def test_results_do_not_depend_on_the_number_of_threads(rng, monkeypatch):
    tensor, dense = listed((12, 11, 10), rng, share=0.9)
    factors = [rng.standard_normal((size, 3)) for size in tensor.shape]
    found, asked = [], []
    for threads in (1, 2, 5):
        counted = "codiag.tensors._sparse_products.n_threads"
        monkeypatch.setattr(counted, lambda threads=threads: asked.append(threads) or threads)
        products, core = tensor.read(Products(factors), Core(factors))
        found.append(np.concatenate([*(product.ravel() for product in products), core.to_dense().ravel()]))
    assert asked == [1, 2, 5]  # asked for only where there is more than one part
    assert_array_equal(found[1], found[0])
    assert_array_equal(found[2], found[0])
    assert_allclose(products[0], np.einsum("ijk,jr,kr->ir", dense, factors[1], factors[2]), atol=1e-11)


@pytest.mark.parametrize("absent", ["zero", "missing"])
@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint16])
def test_every_order_and_width_of_coordinates_is_the_same_tensor(absent, dtype, rng):
    first, dense = listed((7, 5, 6), rng, absent=absent)
    for _ in range(3):
        order = rng.permutation(first.values.size)
        other = SparseTensor(first.coords[:, order].astype(dtype), first.values[order], dense.shape, absent=absent)
        assert_array_equal(other.coords, first.coords)
        assert_array_equal(other.values, first.values)
        assert other.coords.dtype == np.int32


@pytest.mark.parametrize("shape", [(4, 5, 6), (2**40, 2**40, 2**40)], ids=["short", "too long for one number"])
def test_equal_coordinates_are_added_wherever_they_stand(shape, rng):
    places = rng.integers(0, 3, (3, 200))
    values = rng.standard_normal(200)
    tensor = SparseTensor(places, values, shape)
    expected = np.zeros((3, 3, 3))
    np.add.at(expected, tuple(places), values)
    assert tensor.coords.dtype == (np.int32 if max(shape) < 2**31 else np.int64)
    assert_array_equal(tensor.coords, np.stack(np.nonzero(expected)))
    assert_allclose(tensor.values, expected[np.nonzero(expected)], rtol=1e-12)


def test_what_occurs_twice_is_named_where_others_are_missing(rng):
    places = np.stack(np.unravel_index(rng.permutation(60)[:30], (3, 4, 5)))
    twice = np.concatenate([places, places[:, [7]]], axis=1)
    with pytest.raises(ValueError, match=rf"entry \({', '.join(str(place) for place in places[:, 7])}\) occurs"):
        SparseTensor(twice, np.ones(31), (3, 4, 5), absent="missing")


def test_indices_past_32_bits_do_not_overflow_in_products_of_two(rng):
    size = 50_000  # two of them number more cells than int32 does
    tensor = SparseTensor([[49_999], [49_998], [1]], [2.0], (size, size, 2))
    core = tensor.compress(None, np.eye(size, 1, -49_998), None).to_dense()
    assert core.shape == (size, 1, 2)
    assert core[49_999, 0, 1] == 2.0
    assert np.count_nonzero(core) == 1


def test_single_precision_stays_and_distances_are_double(rng):
    tensor, dense = listed((7, 5, 6), rng)
    single = SparseTensor(tensor.coords, tensor.values.astype(np.float32), tensor.shape)
    factors = [rng.standard_normal((size, 3)).astype(np.float32) for size in tensor.shape]
    assert {product.dtype for product in single.mttkrps(factors)} == {np.dtype(np.float32)}
    weights = np.ones(3, dtype=np.float32)
    model = np.einsum("ir,jr,kr->ijk", *(factor.astype(np.float64) for factor in factors))
    expected = np.sum((dense.astype(np.float32).astype(np.float64) - model) ** 2)
    assert single.squared_distance(weights, factors) == pytest.approx(expected, rel=1e-12)


@pytest.mark.usefixtures("many_blocks")
def test_a_fit_of_a_long_list_is_that_of_the_array():
    rng = np.random.default_rng(3)
    factors = [rng.standard_normal((150, 3)) * (rng.random((150, 3)) < 0.2) for _ in range(3)]
    dense = np.einsum("ir,jr,kr->ijk", *factors)
    places = np.nonzero(dense)
    tensor = SparseTensor(np.stack(places), dense[places], dense.shape)
    assert codiag.factor_error(codiag.factorize(tensor, 3, rng=0), factors) < 1e-8


def test_threads_are_as_many_as_linear_algebra_may_take():
    with threadpool_limits(1):
        assert n_threads() == 1


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_results_of_threads_come_in_the_order_of_the_items(threads):
    assert list(in_threads(lambda item: item**2, range(20), threads)) == [item**2 for item in range(20)]


def test_sizes_may_be_small_integers_of_numpy():
    shape = [27, 2_654_227, np.int8(2)]
    assert SparseTensor(np.zeros((3, 1), dtype=int), np.ones(1), shape).shape == (27, 2_654_227, 2)
