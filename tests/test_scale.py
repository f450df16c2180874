"""Order of growth: passes over the data, and memory."""

from __future__ import annotations

import resource
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest

import codiag
from codiag.methods import NLS, Auto
from codiag.synthetic import unit_factor
from codiag.tensors import DenseTensor, FactoredTensor, SparseTensor


@pytest.fixture
def passes(monkeypatch):
    """How often the entries of a tensor of a given shape are gone through, whoever asks."""
    count: dict[tuple[int, ...], int] = {}
    plain = DenseTensor._slabs

    def counted(self, *arguments, **options):
        count[self.shape] = count.get(self.shape, 0) + 1
        return plain(self, *arguments, **options)

    monkeypatch.setattr(DenseTensor, "_slabs", counted)
    return count


def noisy(size, rank, noise=0.01, *, symmetric=False):
    rng = np.random.default_rng(0)
    factors = [unit_factor(size, rank, rng)] * 3 if symmetric else [unit_factor(size, rank, rng) for _ in range(3)]
    entries = FactoredTensor(1 + rng.random(rank), factors).to_dense()
    level = noise * np.linalg.norm(entries) / entries.size**0.5
    if symmetric:
        entries += level * codiag.tensors.symmetrize(rng.standard_normal(entries.shape))
    else:
        for slab in entries:
            slab += level * rng.standard_normal(slab.shape)
    return entries, factors


@pytest.mark.slow
@pytest.mark.parametrize("symmetric", [True, False])
def test_at_most_eight_passes(symmetric, passes):
    """From an array, the first look (finite, norm, symmetry) and the polish included: at the error of least squares."""
    entries, factors = noisy(200, 20, symmetric=symmetric)
    fit = codiag.factorize(entries, 20, seed=0)
    assert fit.symmetric == symmetric
    assert 4 < passes[entries.shape] <= 8
    assert fit.converged
    assert codiag.factor_error(fit, factors) == pytest.approx(np.mean(fit.standard_errors), rel=0.1)


@pytest.mark.parametrize("symmetric", [True, False])
def test_large_tensors_in_single_precision(symmetric):
    entries, factors = noisy(130, 5, symmetric=symmetric)
    fit = codiag.factorize(entries.astype(np.float32), 5, seed=0)
    assert fit.symmetric == symmetric
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


def test_a_start_of_ones_own_does_not_make_a_large_sparse_tensor_dense():
    rng = np.random.default_rng(0)
    factors = [unit_factor(400, 2, rng) * (rng.random((400, 2)) < 0.05) for _ in range(3)]
    dense = FactoredTensor(np.ones(2), factors).to_dense()
    places = np.nonzero(dense)
    tensor = SparseTensor(np.array(places), dense[places], dense.shape)
    del dense
    start = codiag.factorize(tensor, 2, method="nojd1", seed=0)
    tracemalloc.start()
    fit = codiag.factorize(tensor, 2, method=NLS(init=start), seed=0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1e8
    assert codiag.factor_error(fit, factors) < 1e-8


def test_half_a_tensor_of_noise():
    """Noise as large as the tensor: the ranges are improved in turns, and still found."""
    entries, factors = noisy(150, 5, noise=3.0)
    fit = codiag.factorize(entries, 5, seed=0)
    assert codiag.factor_error(fit, factors) < 1.2 * np.mean(fit.standard_errors)


MEASURE = """
import resource, sys
import numpy as np
import codiag
from codiag._files import read_tensor

def resident():
    with open("/proc/self/status") as status:
        fields = dict(line.split(":", 1) for line in status)
    return int(fields["RssAnon"].split()[0]) / 1024

codiag.factorize(np.random.default_rng(0).standard_normal((9, 9, 9)), 2, seed=0)
before = resident()
peak = [before]
import threading, time
done = threading.Event()
def watch():
    while not done.is_set():
        peak[0] = max(peak[0], resident())
        time.sleep(0.002)
thread = threading.Thread(target=watch); thread.start()
fit = codiag.factorize(read_tensor(sys.argv[1]), 20, seed=0)
done.set(); thread.join()
print(peak[0] - before, fit.converged, fit.relative_error)
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="anonymous memory is read from /proc")
@pytest.mark.parametrize("fortran", [False, True])
def test_a_mapped_file_needs_little_memory(tmp_path, fortran):
    """400 x 400 x 400, 512 MB: under 300 MB beyond the map, in either order of the entries."""
    entries, _ = noisy(400, 20)
    np.save(tmp_path / "tensor.npy", np.asfortranarray(entries) if fortran else entries)
    del entries
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, str(tmp_path / "tensor.npy")], capture_output=True, text=True, check=True
    )
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
    fit = codiag.factorize(tensor, rank, seed=0)
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024 < 1000
    assert codiag.factor_error(fit, factors) < 1e-8


def test_small_tensors_are_not_sketched():
    """Their ranges come from decompositions, so that any seed compresses them alike."""
    entries, _ = noisy(30, 4)
    objectives = {codiag.factorize(entries, 4, method=Auto(), seed=seed).stages[0].objective for seed in range(3)}
    assert len(objectives) == 1
