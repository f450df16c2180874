"""A tensor in a Zarr folder, larger than the memory of the workers that read it.

``python -m benchmarks.dask_scale --gigabytes 16 --folder PLACE`` makes the tensor in parts where it is not there yet:
random low rank plus noise. A cluster of two processes of one thread each, 1.5 GB of memory allowed for each, factorizes
it from dask; the same number of passes of ``dask.array.sum`` is timed beside. With ``--mapped`` the same tensor is also
written to an ``.npy`` file and factorized from there, and the two sets of factors compared.
"""

from __future__ import annotations

import argparse
import json
import resource
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import zarr
from distributed import Client, LocalCluster

import codiag
from benchmarks.measure import keep, table, timed
from codiag.synthetic import unit_factor
from codiag.tensors import FactoredTensor

N_WORKERS, MEMORY_LIMIT = 2, "1.5GB"


def make(path: Path, size: int, side: int, rank: int, noise: float) -> list[np.ndarray]:
    """Write a tensor of size^3 in chunks of side^3, one at a time, and return the factors behind it."""
    rng = np.random.default_rng(0)
    factors = [unit_factor(size, rank, rng) for _ in range(3)]
    weights = 1 + rng.random(rank)
    level = noise * FactoredTensor(weights, factors).squared_norm() ** 0.5 / size**1.5
    done = path.with_suffix(".json")
    wanted = {"size": size, "side": side, "rank": rank, "noise": noise}
    if done.exists() and json.loads(done.read_text()) == wanted:
        return factors
    array = zarr.create_array(store=str(path), overwrite=True, shape=(size,) * 3, chunks=(side,) * 3, dtype="f8")
    for number, place in enumerate(np.ndindex(*[-(-size // side)] * 3)):
        ranges = tuple(slice(index * side, min((index + 1) * side, size)) for index in place)
        rows = [factor[part] for factor, part in zip(factors, ranges, strict=True)]
        entries = FactoredTensor(weights, rows, symmetric=False).to_dense()
        entries += level * np.random.default_rng([1, number]).standard_normal(entries.shape)
        array[ranges] = entries
    done.write_text(json.dumps(wanted))
    return factors


def copied(path: Path, array: Any) -> Path:
    """Write a Zarr array to an .npy file, some slices at a time."""
    target = path.with_suffix(".npy")
    if not target.exists():
        mapped = np.lib.format.open_memmap(target, mode="w+", dtype=array.dtype, shape=array.shape)
        step = array.chunks[0]
        for start in range(0, array.shape[0], step):
            mapped[start : start + step] = array[start : start + step]
        mapped.flush()
    return target


class Counted:
    """A Zarr array that notes in a file whenever a part of it is read, in whatever process."""

    def __init__(self, path: Path, notes: Path) -> None:
        self._path, self._notes = str(path), notes
        stored: Any = zarr.open_array(self._path, mode="r")
        self.shape, self.dtype, self.ndim, self.chunks = stored.shape, stored.dtype, stored.ndim, stored.chunks
        notes.write_bytes(b"")

    def __getitem__(self, index: Any) -> Any:
        with self._notes.open("ab") as notes:
            notes.write(b".")
        return zarr.open_array(self._path, mode="r")[index]

    def n_reads(self) -> float:
        """Return how often every chunk was read, on average."""
        n_chunks = np.prod([-(-size // step) for size, step in zip(self.shape, self.chunks, strict=True)])
        return self._notes.stat().st_size / float(n_chunks)


def processor_seconds(client: Any) -> float:
    """Return the processor time that all workers have used so far."""
    return float(sum(client.run(time.process_time).values()))


@contextmanager
def watched(client: Any) -> Iterator[dict[str, float]]:
    """Keep the most memory, and the most that was spilled, that workers have told of while a block runs, in GB."""
    found = {"worker": 0.0, "spilled": 0.0}
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(0.2):
            for worker in client.scheduler_info(n_workers=-1)["workers"].values():
                metrics = worker["metrics"]
                found["worker"] = max(found["worker"], metrics["memory"] / 1e9)
                spilled = metrics["spilled_bytes"]
                found["spilled"] = max(found["spilled"], (spilled["disk"] if spilled else 0) / 1e9)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield found
    finally:
        ended.set()
        thread.join()


def run(folder: Path, gigabytes: float, rank: int, noise: float, mapped: bool) -> str:
    """Return a table of what the fit took."""
    side = 250
    size = round((gigabytes * 1e9 / 8) ** (1 / 3))
    path = folder / f"tensor-{size}.zarr"
    factors = make(path, size, side, rank, noise)
    with _cluster() as client:
        plain = da.from_zarr(str(path))
        codiag.factorize(plain[:side, :side, :side], rank, rng=0)  # so that the workers have imported what they need
        stored = Counted(path, path.with_suffix(".reads"))
        array = da.from_array(stored, chunks=stored.chunks)
        stored = Counted(path, path.with_suffix(".reads"))
        start = processor_seconds(client)
        with watched(client) as most:
            fit, seconds = timed(lambda: codiag.factorize(array, rank, rng=0))
        used = processor_seconds(client) - start
        n_reads = stored.n_reads()
        n_sums = round(n_reads)
        start = processor_seconds(client)
        sums = sum(timed(lambda: plain.sum().compute())[1] for _ in range(n_sums))
        used_by_sums = processor_seconds(client) - start
    passes = f"{n_sums} passes of dask.array.sum"
    rows = [
        ("reads of the tensor", f"{n_reads:.2f}"),
        ("seconds", f"{seconds:.1f}"),
        (f"seconds of {passes}", f"{sums:.1f}"),
        ("ratio", f"{seconds / sums:.2f}"),
        ("processor seconds of the workers", f"{used:.1f}"),
        (f"processor seconds of the workers in {passes}", f"{used_by_sums:.1f}"),
        ("ratio of processor seconds", f"{used / used_by_sums:.2f}"),
        ("peak memory of a worker, GB", f"{most['worker']:.2f}"),
        ("peak memory of the client, GB", f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2:.2f}"),
        ("spilled, GB", f"{most['spilled']:.2f}"),
        ("relative error", f"{fit.relative_error:.6f}"),
        ("factor error", f"{codiag.factor_error(fit, factors):.2e}"),
        ("predicted by standard errors", f"{np.mean(fit.standard_errors):.2e}"),
    ]
    if mapped:
        file = copied(path, zarr.open_array(str(path), mode="r"))
        other, seconds = timed(lambda: codiag.factorize(np.load(file, mmap_mode="r"), rank, rng=0))
        gap = max(float(np.max(np.abs(a - b))) for a, b in zip(fit.factors, other.factors, strict=True))
        rows += [("seconds from the mapped .npy, this process", f"{seconds:.1f}")]
        rows += [("largest difference of its unit factors", f"{gap:.1e}")]
    return (
        f"## A Zarr folder on a dask cluster\n{size} x {size} x {size}, float64 ({8e-9 * size**3:.1f} GB), in chunks "
        f"of {side}^3, rank {rank}, noise {noise:g} of the norm; {N_WORKERS} processes of one thread, {MEMORY_LIMIT} "
        f"of memory allowed for each.\n\n" + table(("", ""), rows)
    )


@contextmanager
def _cluster() -> Iterator[Any]:
    options = {"n_workers": N_WORKERS, "threads_per_worker": 1, "memory_limit": MEMORY_LIMIT, "dashboard_address": ":0"}
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        yield client


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=1.0)
    parser.add_argument("--folder", type=Path, required=True, help="where the tensor is, or is to be made")
    parser.add_argument("--rank", type=int, default=20)
    parser.add_argument("--noise", type=float, default=0.01)
    parser.add_argument("--mapped", action="store_true", help="compare with the factors from an .npy file")
    parser.add_argument("--keep", action="store_true", help="write the result to RESULTS.md")
    given = parser.parse_args()
    text = run(given.folder, given.gigabytes, given.rank, given.noise, given.mapped)
    print(text)
    if given.keep:
        mapped = " --mapped" if given.mapped else ""
        keep("dask scale", f"python -m benchmarks.dask_scale --gigabytes {given.gigabytes:g}{mapped}", text)


if __name__ == "__main__":
    warnings.simplefilter("default")
    main()
