"""Tensors in the chunks of dask arrays: the same answer, whoever computes it and wherever the chunks are."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import codiag
from codiag.constraints import Fixed
from codiag.methods import Auto
from codiag.synthetic import noisy_tensor, unit_factor
from codiag.tensors import Core, DaskTensor, DenseTensor, FactoredTensor, Products, SquaredDistance, SquaredNorm

dask = pytest.importorskip("dask", reason="dask is not installed; it is the extra 'dask'")
da = pytest.importorskip("dask.array")
_chunks = pytest.importorskip("codiag.tensors.chunked._sums")

LAYOUTS = {
    "whole": (-1, -1, -1),
    "slabs": (7, -1, -1),
    "cubes": (20, 20, 20),
    "fibers": (40, 9, -1),
    "unequal": ((1, 30, 9), (17, 3, 20), (39, 1)),
}


@pytest.fixture(autouse=True)
def quick_scheduler(request):
    """What is not about schedulers is computed by the calling thread, unless a cluster was asked for."""
    if "client" in request.fixturenames:
        yield
        return
    with dask.config.set(scheduler="synchronous"):
        yield


def noisy(shape, rank=3, noise=0.01, seed=0):
    rng = np.random.default_rng(seed)
    factors = [unit_factor(size, rank, rng) for size in shape]
    entries = FactoredTensor(1 + rng.random(rank), factors).to_dense()
    return entries + noise * np.linalg.norm(entries) / entries.size**0.5 * rng.standard_normal(shape), factors


def asked(shape, rank=3):
    factors = [np.random.default_rng(size).standard_normal((size, rank)) for size in shape]
    return [SquaredNorm(), Products(factors), Core(factors), SquaredDistance(np.ones(rank), factors)]


def numbers(results):
    norm, products, core, distance = results
    return np.concatenate([[norm, distance], *(part.ravel() for part in products), core.to_dense().ravel()])


ENTRIES = noisy((40, 40, 40))[0]


@pytest.fixture(scope="module")
def expected():
    return numbers(DenseTensor(ENTRIES).read(*asked(ENTRIES.shape)))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_any_layout_of_chunks(layout, expected):
    tensor = DaskTensor(da.from_array(ENTRIES, chunks=LAYOUTS[layout]))
    with dask.config.set(scheduler="threads", num_workers=2):
        assert_allclose(numbers(tensor.read(*asked(tensor.shape))), expected, rtol=1e-11, atol=1e-12)


@pytest.mark.slow
def test_processes(expected):
    tensor = DaskTensor(da.from_array(ENTRIES, chunks=20))
    with dask.config.set(scheduler="processes", num_workers=1):  # more of them take long to start
        assert_allclose(numbers(tensor.read(*asked(tensor.shape))), expected, rtol=1e-11, atol=1e-12)


def test_sparse_chunks(expected):
    sparse = pytest.importorskip("sparse", reason="pydata/sparse is not installed; it is the extra 'sparse'")
    array = da.from_array(ENTRIES, chunks=LAYOUTS["unequal"]).map_blocks(sparse.COO.from_numpy)
    tensor = DaskTensor(array)
    assert_allclose(numbers(tensor.read(*asked(tensor.shape))), expected, rtol=1e-11, atol=1e-12)
    assert_allclose(tensor.to_dense(), ENTRIES)


@pytest.fixture
def reads(monkeypatch):
    """How often all chunks of an array are gone through, whoever asks."""
    count = []
    plain = _chunks.sum_over_chunks

    def counted(*arguments):
        count.append(arguments)
        return plain(*arguments)

    monkeypatch.setattr(_chunks, "sum_over_chunks", counted)
    return count


SHAPE = (22, 20, 24)


@pytest.fixture
def large(monkeypatch):
    """Return entries and their factors, few, that are worked on like those of a large tensor."""
    monkeypatch.setattr("codiag.tensors._sketch.SMALL_SIZE", 1000)
    return noisy(SHAPE)


def fits_agree(fit, expected, atol=1e-8):  # sums by chunk are taken in another order, and steps end elsewhere
    assert fit.converged == expected.converged
    assert fit.relative_error == pytest.approx(expected.relative_error, abs=atol)
    assert fit.problem.n_observed == expected.problem.n_observed
    for one, other in zip([fit.weights, *fit.factors], [expected.weights, *expected.factors], strict=True):
        assert type(one) is np.ndarray
        assert_allclose(one, other, atol=atol)


def test_the_fit_is_that_of_the_array_in_four_reads(reads):
    entries, factors = noisy((130, 128, 135))
    array = da.from_array(entries, chunks=((1, 100, 29), 128, (35, 100)))
    fit = codiag.factorize(array, 3, rng=0)
    assert len(reads) <= 4
    fits_agree(fit, codiag.factorize(entries, 3, rng=0))
    assert codiag.factor_error(fit, factors) < 1.5 * np.mean(fit.standard_errors)


def test_every_chunk_is_computed_as_often_as_it_is_read(large, reads):
    n_computed = []
    array = da.from_array(large[0], chunks=(15, 20, 7))
    array = array.map_blocks(lambda block: n_computed.append(block.size) or block, dtype=float, meta=array._meta)
    n_computed.clear()
    codiag.factorize(array, 3, rng=0)
    assert sum(n_computed) == len(reads) * array.size


def test_single_precision(large):
    entries = large[0].astype(np.float32)
    fit = codiag.factorize(da.from_array(entries, chunks=12), 3, rng=0)
    fits_agree(fit, codiag.factorize(entries, 3, rng=0), atol=1e-5)
    assert fit.factors[0].dtype == np.float32


def test_small_arrays_are_computed_once(reads):
    array = da.from_array(ENTRIES, chunks=20)
    fits_agree(codiag.factorize(array, 3, rng=0), codiag.factorize(ENTRIES, 3, rng=0), atol=1e-13)
    assert reads == []


def test_missing_entries(large):
    """NaN in the chunks, and weights as an array of NumPy or of dask in chunks of their own."""
    entries = large[0]
    rng = np.random.default_rng(0)
    hidden = rng.random(entries.shape) < 0.1
    array = da.from_array(np.where(hidden, np.nan, entries), chunks=(12, 20, 24))
    method = Auto(max_starts=1, tol=1e-4)
    expected = codiag.factorize(entries, 3, mask=~hidden, method=method, rng=0)
    fits_agree(codiag.factorize(array, 3, method=method, rng=0), expected, atol=1e-9)
    weights = np.where(hidden, 0.0, 2.0)
    for observed in (weights, da.from_array(weights, chunks=(10, 4, 24))):
        fit = codiag.factorize(da.from_array(entries, chunks=(12, 20, 24)), 3, weights=observed, method=method, rng=0)
        fits_agree(fit, expected)


@pytest.mark.parametrize(
    ("observed", "words"),
    [(-np.ones(SHAPE), "not negative"), (np.zeros(SHAPE), "not all zero"), (np.ones((2, 3, 4)), "shape of the tensor")],
)
def test_weights_that_are_none(observed, words, large):
    with pytest.raises(ValueError, match=f"mask and weights must .*{words}"):
        codiag.factorize(da.from_array(large[0], chunks=12), 3, weights=observed)


def test_infinities_are_refused(large):
    array = da.from_array(large[0], chunks=12)
    with pytest.raises(ValueError, match="^tensor must"):
        codiag.factorize(da.where(array == array.max(), np.inf, array), 3)


@pytest.mark.parametrize("constraints", ["nonnegative", [Fixed(np.eye(22, 3)), None, None]])
def test_constraints(constraints, large):
    method = Auto(max_starts=1, tol=1e-6)
    entries = np.abs(large[0])
    fit = codiag.factorize(da.from_array(entries, chunks=12), 3, constraints=constraints, method=method, rng=0)
    fits_agree(fit, codiag.factorize(entries, 3, constraints=constraints, method=method, rng=0))


def test_symmetry_is_declared_or_refused(large, reads):
    rng = np.random.default_rng(0)
    factor = unit_factor(20, 3, rng)
    entries = FactoredTensor(np.ones(3), [factor] * 3).to_dense()
    level = 0.01 * np.linalg.norm(entries) / entries.size**0.5
    fit = codiag.factorize(DaskTensor(da.from_array(entries, chunks=12), symmetric=True), 3, rng=0)
    assert fit._symmetric
    assert len(reads) <= 4
    noise = level * rng.standard_normal(entries.shape)
    array = da.from_array(entries + noise, chunks=(20, 20, 12))
    for symmetric in (True, (0, 1), False):
        fit = codiag.factorize(array, 3, symmetric=symmetric, rng=0)
        fits_agree(fit, codiag.factorize(entries + noise, 3, symmetric=symmetric, rng=0))
    with pytest.raises(ValueError, match=r"^symmetric needs a tensor"):
        codiag.factorize(da.from_array(noise, chunks=12), 3, symmetric=True)


def slow_chunk(block, folder, block_id):
    """Return a chunk after a while, and leave a note of who has worked on it."""
    (Path(folder) / f"{os.getpid()}-{'-'.join(map(str, block_id))}").touch()
    time.sleep(0.05)
    return block


@pytest.fixture(scope="module")
def client():
    distributed = pytest.importorskip("distributed", reason="distributed is not installed; it is in the extra 'dask'")
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0", "memory_limit": 0}
    cluster = distributed.LocalCluster(**options, silence_logs="CRITICAL")
    with cluster, distributed.Client(cluster) as found:
        yield found


@pytest.mark.slow
def test_distributed_and_a_lost_worker(client, tmp_path, large):
    """One of two workers is killed in the middle of a fit: what it had done of a pass is done again."""
    entries = large[0]
    array = da.from_array(entries, chunks=(8, 7, 12)).map_blocks(slow_chunk, str(tmp_path), dtype=entries.dtype)
    victim = next(iter(client.run(os.getpid).values()))

    def kill():
        while len(list(tmp_path.glob(f"{victim}-*"))) < 4:
            time.sleep(0.01)
        os.kill(victim, signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    fit = codiag.factorize(array, 3, rng=0)
    thread.join()
    assert len(list(tmp_path.iterdir())) > array.npartitions  # some chunks were read by both
    fits_agree(fit, codiag.factorize(entries, 3, rng=0))


def test_large_factors_are_sent_to_workers_once(client, monkeypatch, expected):
    monkeypatch.setattr("codiag._arrays._dask.IN_GRAPH", 0)
    tensor = DaskTensor(da.from_array(ENTRIES, chunks=20))
    assert_allclose(numbers(tensor.read(*asked(tensor.shape))), expected, rtol=1e-11, atol=1e-12)


def broken_chunk(block, block_id):
    if block_id == (1, 0, 2):
        raise OSError("the disk is on fire")
    return block


@pytest.mark.parametrize("scheduler", ["synchronous", "threads"])
def test_a_chunk_that_raises_ends_the_pass_with_its_error(scheduler):
    """Whatever comes between it and the tensor."""
    array = da.from_array(ENTRIES, chunks=(20, 40, 15)).map_blocks(broken_chunk, dtype=ENTRIES.dtype) * 2
    with dask.config.set(scheduler=scheduler), pytest.raises(OSError, match="on fire"):
        DaskTensor(array).squared_norm()


def test_a_chunk_that_raises_on_a_worker_ends_the_pass_with_its_error(client):
    array = da.from_array(ENTRIES, chunks=(20, 40, 15)).map_blocks(broken_chunk, dtype=ENTRIES.dtype)
    with pytest.raises(OSError, match="on fire"):
        DaskTensor(array).squared_norm()


def test_a_chunk_of_the_wrong_shape_is_named():
    array = da.from_array(ENTRIES, chunks=20).map_blocks(lambda block: block[1:], dtype=float, meta=np.zeros((0, 0, 0)))
    with pytest.raises(ValueError, match=r"entries \[\d+:\d+, .* has shape \(19, 20, 20\)"):
        DaskTensor(array).squared_norm()


def unknown_sizes():
    array = da.from_array(ENTRIES, chunks=20)
    return array[array[:, 0, 0] > 0]


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (unknown_sizes, ValueError, r"compute_chunk_sizes\(\) first"),
        (lambda: da.ones((40, 40)), ValueError, "at least three"),
        (lambda: da.ones((4, 4, 4), dtype=complex), TypeError, "real and imaginary"),
        (
            lambda: da.from_array(np.full((4, 4, 4), "a")),
            TypeError,
            "must contain real",
        ),
        (lambda: da.ones((4, 0, 4)), ValueError, "must not be empty"),
    ],
)
def test_what_is_no_tensor_is_refused(make, error, words):
    with pytest.raises(error, match=words):
        codiag.factorize(make(), 2)


@pytest.mark.parametrize("kind", ["zarr", "h5py"])
def test_arrays_of_zarr_and_h5py_are_read_in_chunks(kind, tmp_path, monkeypatch):
    library = pytest.importorskip(kind, reason=f"{kind} is not installed; it is in the extra 'files'")
    tensor = noisy_tensor((130, 130, 130), 2, noise=0.1, rng=0).tensor
    if kind == "zarr":
        stored = library.open(str(tmp_path / "x.zarr"), mode="w", shape=tensor.shape, chunks=(50, 50, 50), dtype="f8")
        stored[...] = tensor
    else:
        stored = library.File(tmp_path / "x.h5", "w").create_dataset("x", data=tensor, chunks=(50, 50, 50))
    largest, plain = 0, type(stored).__getitem__

    def counted(self, place):
        nonlocal largest
        given = plain(self, place)
        largest = max(largest, given.size)
        return given

    monkeypatch.setattr(type(stored), "__getitem__", counted)
    with dask.config.set({"array.chunk-size": "2MiB"}):
        fit = codiag.factorize(stored, 2, rng=0)
    assert 0 < largest <= tensor.size / 8
    np.testing.assert_allclose(fit.weights, codiag.factorize(tensor, 2, rng=0).weights, rtol=1e-6)
