"""Laws that hold for every kind of tensor, and what each kind promises beyond them."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from codiag._arrays import asarray_like, to_host
from codiag.tensors import DenseTensor, FactoredTensor, ScaledTensor, SparseTensor, SumTensor, as_tensor, symmetrize
from tensor_cases import (
    EVERY,
    EVERY_CUBE,
    EVERY_SHAPE,
    Plain,
    entries_of,
    made,
    moved,
)


def unfolded(entries, mode):
    return np.moveaxis(entries, mode, 0).reshape(entries.shape[mode], -1)


def columnwise_kronecker(factors):
    product = factors[0]
    for factor in factors[1:]:
        product = np.einsum("ar,br->abr", product, factor).reshape(-1, factor.shape[1])
    return product


@EVERY_SHAPE
def test_slices(kind, shape, blocks):
    """Projecting along unit vectors gives slices."""
    tensor, entries = made(kind, shape)
    grid = np.indices(shape[2:]).reshape(len(shape) - 2, -1)
    units = moved(tensor, *(np.eye(size)[places] for size, places in zip(shape[2:], grid, strict=True)))
    assert_allclose(to_host(tensor.project(*units)), np.moveaxis(entries.reshape(*shape[:2], -1), 2, 0), atol=1e-14)


@EVERY_SHAPE
def test_projection_is_linear_in_each_direction(kind, shape):
    tensor, _ = made(kind, shape)
    rng = np.random.default_rng(0)
    directions = [rng.standard_normal((3, size)) for size in shape[2:]]
    for mode, size in enumerate(shape[2:]):
        other = rng.standard_normal((3, size))
        changed = [other if place == mode else direction for place, direction in enumerate(directions)]
        both = [direction + 2 * other if place == mode else direction for place, direction in enumerate(directions)]
        total = to_host(tensor.project(*moved(tensor, *directions)))
        total = total + 2 * to_host(tensor.project(*moved(tensor, *changed)))
        assert_allclose(to_host(tensor.project(*moved(tensor, *both))), total, atol=1e-12)


@EVERY
def test_compression_commutes_with_projection(kind, blocks):
    tensor, _ = made(kind, (5, 5, 5))
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.standard_normal((5, 3)))[0]
    w = rng.standard_normal((2, 3))
    inside = tensor.compress(*moved(tensor, basis, basis, basis)).project(*moved(tensor, w))
    outside = to_host(tensor.project(*moved(tensor, w @ basis.T)))
    assert_allclose(to_host(inside), basis.T @ outside @ basis, atol=1e-13)


@EVERY_SHAPE
@pytest.mark.parametrize("opened", [(), (0,), (1,), (-1,), (0, 2)])
def test_compression_multiplies_every_mode(kind, shape, opened, blocks):
    tensor, entries = made(kind, shape)
    rng = np.random.default_rng(1)
    left_alone = [mode % len(shape) for mode in opened]
    bases = [None if mode in left_alone else rng.standard_normal((size, 2)) for mode, size in enumerate(shape)]
    expected = entries
    for mode, basis in enumerate(bases):
        if basis is not None:
            expected = np.moveaxis(np.tensordot(expected, basis, axes=(mode, 0)), -1, mode)
    given = [None if basis is None else asarray_like(basis, tensor.reference) for basis in bases]
    assert_allclose(to_host(tensor.compress(*given).to_dense()), expected, atol=1e-12)


@EVERY_SHAPE
def test_mttkrp_is_the_unfolding_times_the_khatri_rao_product(kind, shape, blocks):
    tensor, entries = made(kind, shape)
    rng = np.random.default_rng(2)
    factors = [rng.standard_normal((size, 3)) for size in shape]
    given = moved(tensor, *factors)
    together = tensor.mttkrps(given)
    for mode in range(len(shape)):
        others = [factor for other, factor in enumerate(factors) if other != mode]
        expected = unfolded(entries, mode) @ columnwise_kronecker(others)
        assert_allclose(to_host(tensor.mttkrp(given, mode)), expected, atol=1e-12)
        assert_allclose(to_host(together[mode]), expected, atol=1e-12)


@EVERY_SHAPE
def test_norms_and_distances(kind, shape, blocks):
    tensor, entries = made(kind, shape)
    rng = np.random.default_rng(3)
    factors = [rng.standard_normal((size, 2)) for size in shape]
    weights = rng.standard_normal(2)
    model = np.einsum("r,xr->x", weights, columnwise_kronecker(factors)).reshape(shape)
    given = moved(tensor, weights, *factors)
    assert tensor.squared_norm() == pytest.approx(np.sum(entries**2), rel=1e-13)
    assert tensor.inner(given[0], given[1:]) == pytest.approx(np.sum(entries * model), rel=1e-10)
    assert tensor.squared_distance(given[0], given[1:]) == pytest.approx(np.sum((entries - model) ** 2), rel=1e-11)


@EVERY_SHAPE
def test_permutation(kind, shape):
    tensor, entries = made(kind, shape)
    for axes in ([*range(1, len(shape)), 0], [1, 0, *range(2, len(shape))]):
        turned = tensor.permute(axes)
        assert turned.shape == tuple(shape[mode] for mode in axes)
        assert_allclose(to_host(turned.to_dense()), entries.transpose(axes), atol=1e-14)


@EVERY_CUBE
def test_symmetry_is_kept(kind, shape):
    """By permutations, multiples, sums, and one basis for all modes, or copies of it; not by bases that differ."""
    tensor, _ = made(kind, shape, symmetric=True)
    basis, order = np.random.default_rng(0).standard_normal((shape[0], 2)), len(shape)
    copies = moved(tensor, *(basis.copy() for _ in shape))
    turn, swap = [*range(1, order), 0], [1, 0, *range(2, order)]
    for kept in (tensor, tensor.permute(turn), tensor.permute(swap), -2.0 * tensor, tensor + tensor):
        assert kept.symmetric
        assert kept.permute(turn).symmetric
        assert kept.compress(*copies[:1] * order).symmetric
        assert kept.compress(*copies).symmetric
        assert kept.compress(*copies).permute(swap).symmetric
        assert kept.compress(*[None] * order).symmetric
        assert not kept.compress(copies[0] + 1, *copies[1:]).symmetric
        assert not kept.compress(None, *copies[1:]).symmetric


@EVERY
def test_entries_are_never_changed(kind):
    tensor, entries = made(kind, (4, 4, 4))
    before, given = to_host(tensor.to_dense()).copy(), entries.copy()
    factors = moved(tensor, *(np.ones((4, 2)) for _ in range(3)))
    tensor.mttkrps(factors)
    tensor.compress(*factors)
    tensor.squared_distance(factors[0][0, :], factors)
    np.testing.assert_array_equal(to_host(tensor.to_dense()), before)
    np.testing.assert_array_equal(entries, given)


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_components_agree_with_their_dense_tensor(data):
    shape = data.draw(st.lists(st.integers(1, 4), min_size=3, max_size=5))
    rank = data.draw(st.integers(1, 4))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**16)))
    factored = FactoredTensor(rng.standard_normal(rank), [rng.standard_normal((size, rank)) for size in shape])
    plain = Plain(factored.to_dense())
    factors = [rng.standard_normal((size, 2)) for size in shape]
    directions = [rng.standard_normal((3, size)) for size in shape[2:]]
    assert_allclose(factored.project(*directions), plain.project(*directions), atol=1e-10)
    assert_allclose(factored.compress(*factors).to_dense(), plain.compress(*factors).to_dense(), atol=1e-9)
    for ours, theirs in zip(factored.mttkrps(factors), plain.mttkrps(factors), strict=True):
        assert_allclose(ours, theirs, atol=1e-9)
    assert factored.squared_norm() == pytest.approx(plain.squared_norm(), rel=1e-10, abs=1e-12)


class TestSymmetricComponents:
    FACTOR = np.random.default_rng(0).standard_normal((4, 2))

    def test_equal_factors_are_detected(self):
        copies = [self.FACTOR.copy() for _ in range(3)]
        tensor = FactoredTensor(np.ones(2), copies)
        assert tensor.symmetric
        assert not FactoredTensor(np.ones(2), [*copies[:2], self.FACTOR + 1e-15]).symmetric
        assert not FactoredTensor(np.ones(2), copies, symmetric=False).symmetric
        with pytest.raises(ValueError, match="symmetric=True needs equal"):
            FactoredTensor(np.ones(2), [*copies[:2], -self.FACTOR], symmetric=True)

    def test_components_of_both_kinds_together_are_not_symmetric(self):
        tensor = FactoredTensor(np.ones(2), [self.FACTOR.copy() for _ in range(3)])
        other = FactoredTensor(np.ones(2), [self.FACTOR, self.FACTOR, -self.FACTOR])
        for both, symmetric in ((tensor.joined(tensor), True), (tensor.joined(other), False)):
            assert both.symmetric == symmetric
        assert_allclose(tensor.joined(other).to_dense(), 0, atol=1e-14)
        assert tensor.minus(tensor.weights, tensor.factors).symmetric
        assert not tensor.minus(other.weights, other.factors).symmetric
        assert_allclose(tensor.minus(other.weights, other.factors).to_dense(), 2 * tensor.to_dense())
        assert tensor.columns([1]).symmetric

    def test_a_change_is_made_once_for_all_modes(self):
        tensor = FactoredTensor(np.ones(2), [self.FACTOR.copy() for _ in range(3)])
        changed = tensor.changed(lambda factor, mode: (mode + 2) * factor)
        assert changed.symmetric
        np.testing.assert_array_equal(changed.factors[2], 2 * self.FACTOR)


def test_a_sum_with_components_has_its_norm_without_being_formed():
    rng = np.random.default_rng(0)
    parts = [
        FactoredTensor(rng.standard_normal(2), [rng.standard_normal((size, 2)) for size in (4, 5, 6)]) for _ in "ab"
    ]
    entries = entries_of((4, 5, 6))
    total = SumTensor([parts[0], DenseTensor(entries), parts[1]])
    dense = entries + parts[0].to_dense() + parts[1].to_dense()
    assert total.squared_norm() == pytest.approx(np.sum(dense**2), rel=1e-12)
    assert (parts[0] - DenseTensor(entries)).squared_norm() == pytest.approx(
        np.sum((parts[0].to_dense() - entries) ** 2), rel=1e-12
    )
    assert_allclose((total - 3 * total).to_dense(), -2 * dense, atol=1e-12)
    assert ScaledTensor(parts[0], 0.0).squared_distance(np.ones(1), [np.ones((size, 1)) for size in (4, 5, 6)]) == 120


def test_components_of_a_large_tensor_are_not_formed():
    """A tensor of 10^18 entries."""
    factor = np.linalg.qr(np.random.default_rng(0).standard_normal((10**6, 2)))[0]
    tensor = FactoredTensor(np.array([3.0, 4.0]), [factor] * 3)
    assert tensor.squared_norm() == pytest.approx(25)
    assert tensor.compress(factor, factor, factor).shape == (2, 2, 2)


def test_integers_are_cast_slab_by_slab():
    entries = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    tensor = DenseTensor(entries)
    assert tensor.squared_norm() == np.sum(entries.astype(float) ** 2)
    assert tensor.mttkrp([np.ones((size, 1)) for size in (2, 3, 4)], 0).dtype == np.float64


def test_single_precision_stays():
    tensor = DenseTensor(entries_of((4, 5, 6)).astype(np.float32))
    assert tensor.project(np.ones((1, 6), np.float32)).dtype == np.float32


@pytest.mark.parametrize("order", [3, 4, 5])
def test_the_mean_over_permutations_is_symmetric(order):
    entries = np.random.default_rng(0).standard_normal((3,) * order)
    even = symmetrize(entries)
    for pair in ((0, 1), (order - 2, order - 1), (0, order - 1)):
        assert_allclose(np.swapaxes(even, *pair), even, atol=1e-15)
    assert_allclose(symmetrize(even), even, atol=1e-15)


class TestSparse:
    def test_equal_coordinates_are_added_and_zeros_dropped(self):
        tensor = SparseTensor([[0, 1, 0, 2], [1, 0, 1, 2], [2, 2, 2, 0]], [1.0, 5.0, 2.0, 0.0], (3, 3, 3))
        assert tensor.values.tolist() == [3.0, 5.0]
        assert tensor.to_dense()[0, 1, 2] == 3

    def test_a_shape_too_large_to_number_its_cells(self):
        tensor = SparseTensor([[0, 10**7], [5, 5], [0, 1]], [1.0, 2.0], (10**8, 10**8, 10**8))
        assert tensor.squared_norm() == 5

    @pytest.mark.parametrize(
        ("coords", "values", "shape", "error", "words"),
        [
            ([[0], [0], [5]], [1.0], (3, 4, 5), ValueError, "between 0 and"),
            ([[0], [-1], [0]], [1.0], (3, 4, 5), ValueError, "between 0 and"),
            ([[0, 0, 0], [0, 0, 1]], [1.0, 1.0], (3, 4, 5), ValueError, r"pass coords\.T"),
            ([[0.5], [0], [0]], [1.0], (3, 4, 5), TypeError, "^coords must"),
            ([[0], [0], [0]], [1.0, 2.0], (3, 4, 5), ValueError, "^values must"),
            ([[0], [0], [0]], [np.nan], (3, 4, 5), ValueError, "^values must"),
            ([[0], [0]], [1.0], (3, 4), ValueError, "at least three modes"),
            ([[0], [0], [0]], [1j], (3, 4, 5), TypeError, "^values must"),
        ],
    )
    def test_mistakes(self, coords, values, shape, error, words):
        with pytest.raises(error, match=words):
            SparseTensor(coords, values, shape)


class TestConversion:
    def test_pydata_sparse(self):
        sparse = pytest.importorskip("sparse", reason="pydata/sparse is not installed; it is the extra 'sparse'")
        entries = entries_of((4, 5, 6))
        tensor = as_tensor(sparse.COO.from_numpy(entries))
        assert isinstance(tensor, SparseTensor)
        assert_allclose(tensor.to_dense(), entries)
        with pytest.raises(ValueError, match="fill_value"):
            as_tensor(sparse.COO.from_numpy(entries + 1, fill_value=1))

    def test_pyttb(self):
        pyttb = pytest.importorskip("pyttb", reason="pyttb is not installed")
        entries = entries_of((4, 5, 6))
        tensor = as_tensor(pyttb.tensor(entries).to_sptensor())
        assert isinstance(tensor, SparseTensor)
        assert_allclose(tensor.to_dense(), entries)

    def test_components_of_other_libraries(self):
        pyttb = pytest.importorskip("pyttb", reason="pyttb is not installed")
        factors = [np.random.default_rng(size).standard_normal((size, 2)) for size in (4, 5, 6)]
        expected = FactoredTensor(np.ones(2), factors).to_dense()
        assert_allclose(as_tensor(pyttb.ktensor(factors)).to_dense(), expected)
        assert_allclose(as_tensor(pyttb.tensor(expected)).to_dense(), expected)

    def test_what_is_no_tensor(self):
        with pytest.raises(ValueError, match="at least three modes"):
            as_tensor(scipy.sparse.csr_matrix(np.eye(3)))

    def test_what_noise_made_asymmetric_is_averaged(self):
        rng = np.random.default_rng(0)
        even = symmetrize(rng.standard_normal((4, 4, 4)))
        noisy = even + 0.01 * rng.standard_normal((4, 4, 4))
        assert not as_tensor(noisy).symmetric
        tensor = as_tensor(noisy, symmetric=True)
        assert tensor.symmetric
        assert_allclose(tensor.to_dense(), symmetrize(noisy), atol=1e-15)

    def test_symmetry_is_declared_and_never_detected(self):
        even = symmetrize(np.random.default_rng(0).standard_normal((4, 4, 4)))
        assert not as_tensor(even).symmetric
        assert as_tensor(even, symmetric=True).symmetric
        assert as_tensor(DenseTensor(even, symmetric=True)).symmetric
