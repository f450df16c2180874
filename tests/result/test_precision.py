"""What a fit claims about its error is what the entries say, whatever their precision and their storage."""

from __future__ import annotations

import math

import numpy as np
import pytest

import codiag
from codiag._arrays import asarray_like, to_host
from codiag.synthetic import noisy_tensor
from codiag.tensors import (
    CrossMomentTensor,
    DaskTensor,
    DenseTensor,
    FactoredTensor,
    SparseTensor,
    SumTensor,
)
from tensor_cases import LIBRARIES, TENSORS

RANK = 3


def few_entries(shape, precision, noise, seed=0):
    """Components with many zeros, and noise where they have none: what a sparse tensor can hold and be fitted to."""
    rng = np.random.default_rng(seed)
    factors = [rng.standard_normal((size, RANK)) * (rng.random((size, RANK)) < 0.5) for size in shape]
    entries = np.einsum("ir,jr,kr->ijk", *factors)
    level = noise * np.linalg.norm(entries) / math.sqrt(np.count_nonzero(entries))
    return (entries + level * rng.standard_normal(shape) * (entries != 0)).astype(precision)


def views(n, shape, precision):
    rng = np.random.default_rng(n)
    kinds = rng.integers(0, RANK, n)
    return [
        (rng.standard_normal((RANK, size))[kinds] + 1e-3 * rng.standard_normal((n, size))).astype(precision)
        for size in shape
    ]


def moments(n, shape):
    def make(precision):
        data = views(n, shape, precision)
        tensor = CrossMomentTensor(*data)
        weights = to_host(tensor.weights).astype(np.float64)
        return tensor, np.einsum("s,si,sj,sk->ijk", weights, *(view.astype(np.float64) for view in data))

    return make


def components(precision):
    rng = np.random.default_rng(0)
    tensor = FactoredTensor(
        np.ones(RANK, precision), [rng.random((size, RANK)).astype(precision) for size in (8, 9, 7)]
    )
    return tensor, np.einsum("ir,jr,kr->ijk", *(factor.astype(np.float64) for factor in tensor.factors))


def sparse_minus_components(precision):
    entries = few_entries((12, 11, 10), precision, 1e-3)
    tensor, dense = components(precision)
    places = np.array(np.nonzero(entries))[:, :40]
    kept = np.zeros(tensor.shape, precision)
    places = np.minimum(places, np.array(tensor.shape)[:, None] - 1)
    kept[tuple(places)] = entries[tuple(places)]
    places = np.array(np.nonzero(kept))
    return SparseTensor(places, kept[tuple(places)], kept.shape) - tensor, kept.astype(np.float64) - dense


def sparse_chunks(precision):
    array = pytest.importorskip("dask.array", reason="dask is not installed; it is the extra 'dask'")
    sparse = pytest.importorskip("sparse", reason="sparse is not installed; it is the extra 'sparse'")
    entries = few_entries((12, 11, 10), precision, 1e-3)
    chunks = array.from_array(entries, chunks=(7, 11, 4)).map_blocks(sparse.COO.from_numpy)
    return DaskTensor(chunks, symmetric=False), entries.astype(np.float64)


OTHERS = {
    "many samples": moments(300, (5, 6, 7)),
    "few samples": moments(12, (30, 20, 25)),
    "components": components,
    "sparse minus components": sparse_minus_components,
    "sparse chunks": sparse_chunks,
}
IN_LIBRARIES = [kind for kind in TENSORS if kind.split()[-1] in LIBRARIES]
NOISES = [
    pytest.param(kind, noise, marks=[pytest.mark.slow] if "strict" in kind and noise == 0 else [])
    for kind in TENSORS
    for noise in (0.3, 1e-4, 1e-6, 0.0)
    if noise < 0.3 or kind not in IN_LIBRARIES
]
PRECISIONS = pytest.mark.parametrize("precision", [np.float32, np.float64], ids=lambda precision: precision.__name__)


def recomputed(fit, entries):
    """Return the relative error as the entries have it, in double precision."""
    weights, factors = to_host(fit.weights).astype(np.float64), [to_host(f).astype(np.float64) for f in fit.factors]
    gap = entries.astype(np.float64) - np.einsum("r,ir,jr,kr->ijk", weights, *factors)
    return np.linalg.norm(gap) / np.linalg.norm(entries.astype(np.float64))


def assert_true(fit, entries):
    """A relative error can be told to the rounding of double precision, whatever that of the data and of the fit.

    One below 1e-14 is rounding itself.
    """
    assert fit.relative_error == pytest.approx(recomputed(fit, entries), rel=1e-6, abs=1e-14)


@pytest.mark.filterwarnings("ignore::codiag.ConvergenceWarning")
@PRECISIONS
@pytest.mark.parametrize(("kind", "noise"), NOISES)
def test_claimed_errors_are_true(kind, precision, noise):
    entries = few_entries((9, 8, 7), precision, noise)
    fit = codiag.factorize(TENSORS[kind](entries, False), RANK, rng=0)
    assert_true(fit, entries)


@pytest.mark.filterwarnings("ignore::codiag.ConvergenceWarning")
@PRECISIONS
@pytest.mark.parametrize("kind", OTHERS)
def test_claimed_errors_are_true_where_nothing_is_written_down(kind, precision):
    tensor, entries = OTHERS[kind](precision)
    assert_true(codiag.factorize(tensor, RANK, rng=0), entries)


@PRECISIONS
@pytest.mark.parametrize("kind", [*TENSORS, *OTHERS])
def test_norms_and_products_are_summed_in_double_precision(kind, precision):
    if kind in TENSORS:
        entries = few_entries((12, 11, 10), precision, 1e-3)
        tensor, entries = TENSORS[kind](entries, False), entries.astype(np.float64)
    else:
        tensor, entries = OTHERS[kind](precision)
    rng = np.random.default_rng(0)
    weights, factors = np.ones(2, precision), [rng.random((size, 2)).astype(precision) for size in entries.shape]
    model = np.einsum("ir,jr,kr->ijk", *(factor.astype(np.float64) for factor in factors))
    weights, *factors = (asarray_like(array, tensor.reference) for array in (weights, *factors))
    # What only the base class sums is contracted in the precision of the data before.
    allowed = 1e-6 if kind in ("sum", "placements") and precision == np.float32 else 1e-12
    size = np.linalg.norm(entries) * np.linalg.norm(model)
    assert tensor.squared_norm() == pytest.approx(np.sum(entries**2), rel=allowed)
    assert tensor.squared_distance(weights, factors) == pytest.approx(np.sum((entries - model) ** 2), rel=allowed)
    assert tensor.inner(weights, factors) == pytest.approx(np.sum(entries * model), abs=allowed * size)


def test_noise_and_standard_errors_follow_the_residual():
    entries = few_entries((12, 11, 10), np.float32, 1e-4)
    places = np.array(np.nonzero(entries))
    fit = codiag.factorize(SparseTensor(places, entries[tuple(places)], entries.shape), RANK, rng=0)
    dense = codiag.factorize(DenseTensor(entries.astype(np.float64)), RANK, rng=0)
    assert fit.noise_model.standard_deviation == pytest.approx(dense.noise_model.standard_deviation, rel=1e-3)
    np.testing.assert_allclose(fit._sensitivity.factors, dense._sensitivity.factors, rtol=1e-2)
    np.testing.assert_allclose(
        fit.standard_errors, fit.noise_model.standard_deviation * fit._sensitivity.factors, rtol=1e-12
    )


class TestWhatCancels:
    def test_a_sum_that_is_zero_to_rounding(self):
        tensor, _ = components(np.float64)
        assert math.sqrt((tensor - tensor).squared_norm() / tensor.squared_norm()) < 1e-14

    def test_components_that_cancel_each_other(self):
        """Two of weight 1e6 whose sum is of size one."""
        rng = np.random.default_rng(0)
        a, b, c = (rng.standard_normal((9, 1)) for _ in range(3))
        tensor = FactoredTensor(
            np.array([1e6, -1e6]), [np.hstack([a, a + 1e-6 * b]), np.hstack([b, b]), np.hstack([c, c])]
        )
        expected = np.linalg.norm(b) ** 4 * np.linalg.norm(c) ** 2
        assert tensor.squared_norm() == pytest.approx(expected, rel=1e-8)

    def test_a_sparse_tensor_too_large_to_look_at_its_zeros(self):
        """The relative error is then right to about 1e-8, in single precision, too."""
        rng = np.random.default_rng(0)
        factors = [np.zeros((400, RANK)) for _ in range(3)]
        for factor in factors:
            factor[rng.choice(400, 12, replace=False)] = rng.standard_normal((12, RANK))
        tensor = FactoredTensor(np.ones(RANK), factors)
        places = np.array(np.meshgrid(*(np.flatnonzero(factor.any(axis=1)) for factor in factors), indexing="ij"))
        places = places.reshape(3, -1)
        values = np.sum(np.prod([factor[row] for factor, row in zip(factors, places, strict=True)], axis=0), axis=1)
        values = values.astype(np.float32)
        made = SparseTensor(places, values, tensor.shape)
        weights, given = np.full(RANK, 1.0 + 1e-5), [factor.astype(np.float64) for factor in factors]
        gap = values.astype(np.float64) - (1 + 1e-5) * np.sum(
            np.prod([factor[row] for factor, row in zip(factors, places, strict=True)], axis=0), axis=1
        )
        distance = math.sqrt(made.squared_distance(weights, given) / made.squared_norm())
        assert distance == pytest.approx(np.linalg.norm(gap) / math.sqrt(made.squared_norm()), abs=3e-8)

    def test_sums_of_tensors_that_are_all_written_down(self):
        entries = few_entries((12, 11, 10), np.float32, 1e-4)
        halves = SumTensor([DenseTensor(entries / 2), DenseTensor(entries / 2)])
        assert_true(codiag.factorize(halves, RANK, rng=0), entries)


@pytest.mark.parametrize("stated", [{}, {"constraints": "nonnegative"}], ids=str)
@pytest.mark.parametrize("scale", [1e-145, 1e80, 1e150])
@pytest.mark.filterwarnings("error")
def test_errors_and_advice_of_entries_of_any_size(scale, stated):
    tensor = np.abs(noisy_tensor((9, 8, 7), 2, noise=0.01, rng=0).tensor)
    fit, scaled = (codiag.factorize(size * tensor, 2, **stated, rng=0) for size in (1.0, scale))
    np.testing.assert_allclose(scaled.standard_errors, fit.standard_errors, rtol=1e-6)
    np.testing.assert_allclose(scaled.weight_standard_errors / scale, fit.weight_standard_errors, rtol=1e-6)
    assert scaled.diagnose().verdicts == fit.diagnose().verdicts
    assert str(scaled.noise_model) == str(fit.noise_model)
