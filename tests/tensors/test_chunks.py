"""What chunks of dask arrays may hold, and what is said of those that cannot be computed."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import codiag
from codiag.methods import Auto
from codiag.problem import in_chunks_without_missing, without_missing
from codiag.synthetic import noisy_tensor
from codiag.tensors import DaskTensor
from codiag.tensors.entries import ChunkedEntries

dask = pytest.importorskip("dask", reason="dask is not installed; it is the extra 'dask'")
da = pytest.importorskip("dask.array")
pytest.importorskip("dask.callbacks")

SHAPE = (14, 15, 16)
QUICK = Auto(max_starts=1, tol=1e-3)


@pytest.fixture(autouse=True)
def by_the_calling_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture
def large(monkeypatch):
    """Let few entries be worked on like those of a large tensor."""
    monkeypatch.setattr("codiag.tensors._sketch.SMALL_SIZE", 1000)


def entries():
    return noisy_tensor(SHAPE, 2, noise=0.01, rng=0).tensor


def chunked(array, function=None):
    """Return an array in eight chunks, each of them changed by a function."""
    whole = da.from_array(array, chunks=8)
    return whole if function is None else whole.map_blocks(function, dtype=float, meta=np.zeros((0, 0, 0)))


def assert_same_fit(array, expected, **options):
    fit, other = (codiag.factorize(one, 2, method=QUICK, rng=0, **options) for one in (array, expected))
    assert fit.problem.n_observed == other.problem.n_observed
    for one, two in zip([fit.weights, *fit.factors], [other.weights, *other.factors], strict=True):
        assert_allclose(one, two, atol=1e-8)


@pytest.mark.parametrize("is_large", [True, False])
def test_masked_entries_are_missing(is_large, request):
    if is_large:
        request.getfixturevalue("large")
    spoiled = entries()
    spoiled[5, 5, 5] = 1e6
    hidden = np.where(spoiled > 1e5, np.nan, spoiled)
    assert_same_fit(da.ma.masked_greater(chunked(spoiled), 1e5), hidden)
    in_one_chunk = chunked(spoiled, lambda block: np.ma.masked_greater(block, 1e5) if block.max() > 1e5 else block)
    assert_same_fit(in_one_chunk, hidden)


@pytest.mark.parametrize("is_large", [True, False])
def test_complex_numbers_in_a_real_array_are_refused(is_large, request):
    if is_large:
        request.getfixturevalue("large")
    array = chunked(entries(), lambda block: block + 1j)
    with pytest.raises(TypeError, match=r"^chunks must contain real numbers.*complex128"):
        codiag.factorize(array, 2)


def test_weights_of_missing_entries_are_made_chunk_by_chunk():
    """Each just before its chunk is worked on: those of all chunks would not fit into memory."""
    spoiled = entries()
    spoiled[3, 3, 3] = np.nan
    whole, known = in_chunks_without_missing(chunked(spoiled), None)
    done = []

    class Noted(dask.callbacks.Callback):
        def _posttask(self, key, *state):
            done.append(str(key))

    with Noted():
        assert ChunkedEntries(DaskTensor(whole, symmetric=False), known).summary["count"] == spoiled.size - 1
    first = next(place for place, key in enumerate(done) if "codiag-chunk" in key)
    assert first < whole.npartitions - 1


@pytest.mark.parametrize("missing", ["nan", "observed"])
def test_sparse_chunks_with_missing_entries(missing, large):
    sparse = pytest.importorskip("sparse", reason="pydata/sparse is not installed; it is the extra 'sparse'")
    hidden = np.random.default_rng(0).random(SHAPE) < 0.1
    known = np.where(hidden, np.nan, entries())
    array = chunked(known if missing == "nan" else entries(), sparse.COO.from_numpy)
    assert_same_fit(array, known, **({} if missing == "nan" else {"weights": ~hidden}))


def raising(error):
    def broken(block, block_id):
        if block_id == (1, 0, 1):
            raise error
        return block

    return broken


@pytest.mark.parametrize("error", [OSError("no disk"), MemoryError("full")])
@pytest.mark.parametrize("is_large", [True, False])
def test_a_chunk_that_raises_ends_the_fit_with_its_error_whatever_the_size(error, is_large, request):
    if is_large:
        request.getfixturevalue("large")
    broken = chunked(entries(), raising(error))
    with pytest.raises(type(error), match=str(error)):
        codiag.factorize(broken, 2)
    with pytest.raises(type(error), match=str(error)):
        DaskTensor(broken).to_dense()
    with pytest.raises(type(error), match=str(error)):
        codiag.factorize(chunked(entries()), 2, weights=broken)


def test_masked_weights_are_none_and_nan_is_no_weight(large):
    weights = np.ones(SHAPE)
    weights[0, 0, 0] = 7
    masked = da.ma.masked_greater(chunked(weights), 5)
    _, known = without_missing(chunked(entries()), masked)
    assert_array_equal(known.compute(), np.where(weights > 5, 0, 1))
    weights[0, 0, 0] = np.nan
    with pytest.raises(ValueError, match="^mask and weights must"):
        codiag.factorize(chunked(entries()), 2, weights=weights)


@pytest.mark.parametrize("scale", [1e-180, 1e180])
def test_squares_out_of_range_are_told_from_zeros(scale, large):
    with pytest.raises(ValueError, match="squares fit into"):
        codiag.factorize(chunked(entries()) * scale, 2)
    with pytest.raises(ValueError, match="not all zero"):
        codiag.factorize(chunked(entries()) * 0, 2)


def test_entries_that_are_not_finite_are_located(large):
    spoiled = entries()
    spoiled[1, 12, 3] = spoiled[9, 2, 3] = spoiled[1, 14, 3] = np.inf
    with pytest.raises(ValueError, match="3 of 3360"):
        codiag.factorize(chunked(spoiled), 2)
    spoiled = np.where(np.isinf(spoiled), np.nan, spoiled)
    with pytest.raises(ValueError, match="are NaN, the"):
        codiag.factorize(DaskTensor(chunked(spoiled)), 2)


@pytest.mark.parametrize("observed", [None, "all"])
@pytest.mark.parametrize("symmetric", [True, (0, 1)])
def test_means_over_permutations_have_no_more_chunks(symmetric, observed, large):
    factor = np.random.default_rng(0).standard_normal((16, 2))
    even = np.einsum("ir,jr,kr->ijk", factor, factor, factor)
    array = da.from_array(even, chunks=(5, 11, 16))
    weights = None if observed is None else np.where(even == even.max(), 1.0, 2.0)
    problem = codiag.Problem(array, 2, weights=weights, symmetric=symmetric)
    assert_allclose(problem.tensor.to_dense(), even, atol=1e-12)
    assert problem.tensor.array.npartitions <= 2 * array.npartitions


def test_chunks_that_differ_when_they_are_read_again_are_refused(large):
    rng = np.random.default_rng(0)
    array = chunked(entries(), lambda block: block + 0.01 * rng.standard_normal(block.shape))
    with pytest.raises(ValueError, match=r"same entries whenever its chunks are computed.*persist\(\)"):
        codiag.factorize(array, 2, rng=0)
    fit = codiag.factorize(array.persist(), 2, rng=0)
    assert fit.converged


@pytest.mark.parametrize("in_chunks", [True, False])
def test_missing_entries_of_large_samples_are_left_out(in_chunks, monkeypatch):
    fit = codiag.factorize(entries(), 2, rng=0)
    samples = entries()
    samples[3, 3, 3] = np.nan
    expected = fit.transform(samples, 0)
    monkeypatch.setattr("codiag.tensors._sketch.SMALL_SIZE", 1000)
    assert np.all(np.isfinite(expected))
    assert_allclose(fit.transform(chunked(samples) if in_chunks else samples, 0), expected, atol=1e-10)
