"""Order of growth: passes over the data, and memory."""

from __future__ import annotations

import logging
import resource
import subprocess
import sys
import tracemalloc
from typing import ClassVar

import array_api_compat.numpy
import numpy as np
import pytest

import codiag
from codiag.methods import NLS, Auto
from codiag.synthetic import unit_factor
from codiag.tensors import DenseTensor, FactoredTensor, SparseTensor


class Counted:
    """An array of a library of its own that gives entries by its index alone, and counts those it gave."""

    device = "cpu"

    def __init__(self, entries):
        self._entries, self.shape, self.ndim, self.dtype = entries, entries.shape, entries.ndim, entries.dtype
        self.n_given = 0

    def __getitem__(self, place):
        given = self._entries[place].copy()
        self.n_given += given.size
        return given

    def __array__(self, *arguments, **options):
        raise AssertionError("the whole array is copied")

    def __array_namespace__(self, api_version=None):
        return array_api_compat.numpy  # of whose functions none can do anything with this array

    @property
    def n_reads(self):
        return self.n_given / self._entries.size


@pytest.fixture
def reads(monkeypatch):
    """Count passes over the entries of a tensor of this shape, whoever asks."""
    records, logger = [], logging.getLogger("codiag.reads")
    handler = logging.Handler()
    handler.emit = records.append
    monkeypatch.setattr(logger, "handlers", [handler])
    monkeypatch.setattr(logger, "level", logging.DEBUG)
    logger._cache.clear()
    yield lambda shape: sum(record.shape == shape and record.part == 1 for record in records)
    logger._cache.clear()


def noisy(size, rank, noise=0.01, *, symmetric=False):
    rng = np.random.default_rng(0)
    factors = [unit_factor(size, rank, rng)] * 3 if symmetric else [unit_factor(size, rank, rng) for _ in range(3)]
    entries = FactoredTensor(1 + rng.random(rank), factors).to_dense()
    level = noise * np.linalg.norm(entries) / entries.size**0.5
    if symmetric:
        entries += level * codiag.tensors.symmetrize(rng.standard_normal(entries.shape))
    else:
        for chunk in entries:
            chunk += level * rng.standard_normal(chunk.shape)
    return entries, factors


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("symmetric", [True, False])
def test_at_most_four_reads(symmetric, dtype, reads):
    """From an array to the error of least squares: checks, norm, symmetry, polish and the error of the fit included."""
    entries, factors = noisy(130, 10, symmetric=symmetric)
    counted = Counted(entries.astype(dtype))
    fit = codiag.factorize(DenseTensor(counted, symmetric=symmetric), 10, rng=0)
    assert fit._symmetric == symmetric
    assert 3 < counted.n_reads < 4.001
    assert reads(entries.shape) == 4
    assert fit.converged
    assert codiag.factor_error(fit, factors) == pytest.approx(np.mean(fit.standard_errors), rel=0.1)


def test_at_most_four_reads_of_a_mapped_file(tmp_path, reads):
    entries, factors = noisy(130, 10)
    np.save(tmp_path / "tensor.npy", np.asfortranarray(entries))
    fit = codiag.factorize(np.load(tmp_path / "tensor.npy", mmap_mode="r"), 10, rng=0)
    assert reads(entries.shape) == 4
    assert codiag.factor_error(fit, factors) == pytest.approx(np.mean(fit.standard_errors), rel=0.1)


class CountedSparse(SparseTensor):
    """A list of entries that counts how often it is gone through: a read at a time, or any other contraction by itself.

    What a tensor without its empty rows does is counted, too.
    """

    count: ClassVar[list[str]] = []
    reading = False

    def _with(self, coords, values, shape):
        return CountedSparse(coords, values, shape, symmetric=self.symmetric, absent=self.absent, check=False)

    def read(self, *asked):
        self.count.append("read")
        self.reading = True
        results = super().read(*asked)
        self.reading = False
        return results


def _counted(name):
    def method(self, *arguments, **options):
        if not self.reading and not (name == "squared_norm" and self._sketch is not None):
            self.count.append(name)
        return getattr(SparseTensor, name)(self, *arguments, **options)

    return method


for contraction in (
    "project",
    "compress",
    "mttkrp",
    "mttkrps",
    "squared_norm",
    "squared_distance",
    "inner",
    "to_dense",
):
    setattr(CountedSparse, contraction, _counted(contraction))


def test_at_most_four_reads_of_a_sparse_tensor():
    rng = np.random.default_rng(0)
    factors = [unit_factor(150, 3, rng) * np.repeat(np.eye(3), 50, axis=0) for _ in range(3)]
    dense = FactoredTensor(np.ones(3), factors).to_dense()
    places = np.nonzero(dense)
    values = dense[places]
    values += 0.01 * np.linalg.norm(values) / values.size**0.5 * rng.standard_normal(values.size)
    CountedSparse.count.clear()
    fit = codiag.factorize(CountedSparse(np.array(places), values, dense.shape), 3, rng=0)
    assert CountedSparse.count == ["read"] * 4
    assert fit.converged
    explicit = FactoredTensor(*fit).to_dense()
    explicit[places] -= values
    assert fit.relative_error == pytest.approx(np.linalg.norm(explicit) / np.linalg.norm(values), rel=1e-8)


@pytest.mark.parametrize("method", ["nojd1", "nls"])
def test_other_methods_read_no_more(method):
    entries, factors = noisy(150, 5)
    counted = Counted(entries)
    fit = codiag.factorize(counted, 5, method=method, rng=0)
    assert counted.n_reads < 4.001
    assert codiag.factor_error(fit, factors) < 1e-2


@pytest.mark.parametrize("shape", [(130, 130, 130), (39, 40, 41, 42), (300, 200, 40)])
@pytest.mark.parametrize(("rank", "noise"), [(1, 1e-2), (5, 0.0), (5, 1e-3), (5, 0.1), (20, 1e-2), (5, 0.7)])
def test_the_error_of_a_fit_is_the_distance_of_its_components(shape, rank, noise):
    """Where the last step is predicted, and where it is not trusted."""
    rng = np.random.default_rng([*shape, rank])
    factors = [unit_factor(size, rank, rng) for size in shape]
    entries = FactoredTensor(1 + rng.random(rank), factors).to_dense()
    entries += noise * np.linalg.norm(entries) / entries.size**0.5 * rng.standard_normal(shape)
    fit = codiag.factorize(entries, rank, rng=0)
    explicit = np.linalg.norm(entries - FactoredTensor(*fit).to_dense()) / np.linalg.norm(entries)
    assert fit.relative_error == pytest.approx(explicit, rel=1e-9, abs=1e-14)  # twice what may be left out
    assert fit.converged
    if noise > 0:
        assert codiag.factor_error(fit, factors) < 1.5 * np.mean(fit.standard_errors)


def test_large_arrays_are_not_read_when_they_are_made(reads):
    counted = Counted(np.ones((150, 150, 150)))
    tensor = DenseTensor(counted)
    assert not tensor.is_validated
    assert counted.n_given < 1000
    assert not tensor.symmetric
    assert reads(tensor.shape) == 0


@pytest.mark.parametrize("symmetric", [None, True, False])
def test_large_arrays_that_are_not_finite_are_refused(symmetric):
    entries = np.ones((150, 150, 150))
    entries[3, 4, 5] = np.inf
    with pytest.raises(ValueError, match="^tensor must"):
        codiag.factorize(entries, 2, symmetric=symmetric)


def test_missing_entries_of_a_large_array_are_found():
    entries, _ = noisy(130, 2)
    hidden = np.random.default_rng(1).random(entries.shape) < 0.1
    problem = codiag.Problem(np.where(hidden, np.nan, entries), 2)
    assert np.array_equal(problem.weights, ~hidden)
    assert np.array_equal(problem.tensor.to_dense(), np.where(hidden, 0, entries))


def test_missing_entries_take_one_copy_and_their_weights():
    entries = np.ones((160, 150, 140))
    entries[3, 4, 5] = np.nan
    tracemalloc.start()
    problem = codiag.Problem(entries, 2)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert problem.n_observed == entries.size - 1
    assert peak < 2.8 * entries.nbytes


@pytest.mark.parametrize("symmetric", [True, False])
def test_large_tensors_in_single_precision(symmetric):
    entries, factors = noisy(130, 5, symmetric=symmetric)
    fit = codiag.factorize(entries.astype(np.float32), 5, symmetric=symmetric, rng=0)
    assert fit._symmetric == symmetric
    assert fit.weights.dtype == np.float32
    assert codiag.factor_error(fit, factors) == pytest.approx(np.mean(fit.standard_errors), rel=0.2)


@pytest.mark.parametrize("shape", [(2000, 600, 3), (200, 200, 30, 2)])
def test_thin_modes_do_not_make_large_products(shape):
    """Slabs are small enough for the rank as well as for the last mode."""
    rng = np.random.default_rng(0)
    factors = [unit_factor(size, 12, rng) for size in shape]
    tensor = DenseTensor(FactoredTensor(np.ones(12), factors).to_dense())
    tracemalloc.start()
    tensor.mttkrps(factors)
    tensor.squared_distance(np.ones(12), factors)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.5 * 8 * np.prod(shape) + 1e8


@pytest.mark.slow
def test_a_start_of_ones_own_does_not_make_a_large_sparse_tensor_dense():
    rng = np.random.default_rng(0)
    factors = [unit_factor(400, 2, rng) * (rng.random((400, 2)) < 0.05) for _ in range(3)]
    dense = FactoredTensor(np.ones(2), factors).to_dense()
    places = np.nonzero(dense)
    tensor = SparseTensor(np.array(places), dense[places], dense.shape)
    del dense
    start = codiag.factorize(tensor, 2, method="nojd1", rng=0)
    tracemalloc.start()
    fit = codiag.factorize(tensor, 2, method=NLS(init=start), rng=0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1e8
    assert codiag.factor_error(fit, factors) < 1e-8


def test_half_a_tensor_of_noise():
    """Noise as large as the tensor: the ranges are improved in turns, and still found."""
    entries, factors = noisy(150, 5, noise=3.0)
    fit = codiag.factorize(entries, 5, rng=0)
    assert codiag.factor_error(fit, factors) < 1.2 * np.mean(fit.standard_errors)


MEASURE = """
import resource, sys
import numpy as np
import codiag
from codiag.io import read_array

def resident():
    with open("/proc/self/status") as status:
        fields = dict(line.split(":", 1) for line in status)
    return int(fields["RssAnon"].split()[0]) / 1024

codiag.factorize(np.random.default_rng(0).standard_normal((9, 9, 9)), 2, rng=0)
before = resident()
peak = [before]
import threading, time
done = threading.Event()
def watch():
    while not done.is_set():
        peak[0] = max(peak[0], resident())
        time.sleep(0.002)
thread = threading.Thread(target=watch); thread.start()
fit = codiag.factorize(read_array(sys.argv[1]), 20, rng=0)
done.set(); thread.join()
print(peak[0] - before, fit.converged, fit.relative_error)
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="anonymous memory is read from /proc")
def test_a_mapped_file_needs_little_memory(tmp_path):
    """400 x 400 x 400, 512 MB: under 300 MB beyond the map, in the other order of the entries, too."""
    entries, _ = noisy(400, 20)
    np.save(tmp_path / "tensor.npy", entries)
    assert_little_memory(tmp_path / "tensor.npy")
    np.save(tmp_path / "tensor.npy", entries.T)  # the same numbers in the file, columns first
    assert np.load(tmp_path / "tensor.npy", mmap_mode="r").flags.f_contiguous
    assert_little_memory(tmp_path / "tensor.npy")


def assert_little_memory(path):
    done = subprocess.run([sys.executable, "-c", MEASURE, str(path)], capture_output=True, text=True, check=True)
    megabytes, converged, error = done.stdout.split()
    assert float(megabytes) < 300
    assert converged == "True"
    assert float(error) == pytest.approx(0.01, rel=0.05)


@pytest.mark.slow
def test_a_large_sparse_tensor():
    """5000 x 5000 x 5000 with about 10^6 entries: a dense slice alone would be 200 MB, and there is none."""
    rng = np.random.default_rng(0)
    size, rank, width = 5000, 10, 46
    coords, values, factors = [], [], [np.zeros((size, rank)) for _ in range(3)]
    for r in range(rank):
        places = [rng.choice(size, width, replace=False) for _ in range(3)]
        parts = [1 + rng.random(width) for _ in range(3)]
        for factor, rows, part in zip(factors, places, parts, strict=True):
            factor[rows, r] = part
        coords.append(np.stack([axis.ravel() for axis in np.meshgrid(*places, indexing="ij")]))
        values.append(np.einsum("i,j,k->ijk", *parts).ravel())
    tensor = SparseTensor(np.concatenate(coords, axis=1), np.concatenate(values), (size,) * 3)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    fit = codiag.factorize(tensor, rank, rng=0)
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024 < 1000
    assert codiag.factor_error(fit, factors) < 1e-8


def test_small_tensors_are_not_sketched():
    """Their ranges come from decompositions, so that any seed compresses them alike."""
    entries, _ = noisy(30, 4)
    objectives = {codiag.factorize(entries, 4, method=Auto(), rng=seed).history[0].objective for seed in range(3)}
    assert len(objectives) == 1


def test_modes_longer_than_all_others_together():
    """Nothing of the size of the square of a mode is formed: 3 GB here."""
    rng = np.random.default_rng(0)
    tensor = np.einsum("i,j,k->ijk", *(rng.standard_normal(size) for size in (20_000, 3, 2)))
    fit = codiag.factorize(tensor + 0.1 * rng.standard_normal(tensor.shape), 1, rng=0)
    assert fit.converged
    assert fit.relative_error == pytest.approx(0.1 * np.sqrt(tensor.size) / np.linalg.norm(tensor), rel=0.2)
