"""What a fit of a large dense tensor costs, predicted from a few constants of the machine: see docs/scale.md.

``python -m benchmarks.cost_model`` measures the constants on small arrays, predicts fits of three larger sizes in
memory, mapped from a file and in a Zarr folder on the threads of dask, then measures these and writes both to
RESULTS.md. All seconds there are of CPU: other programs on the machine do not change them much.
"""

from __future__ import annotations

import argparse
import math
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import codiag
from benchmarks.growth import NOISE, RANK, fill
from benchmarks.measure import keep, table
from codiag.tensors import OVERSAMPLING, DaskTensor, Products

SMALLEST, SMALLEST_IN_CHUNKS, SIZES, CHUNK = 130, 200, (300, 400, 600), 100
"""The cubes that constants are measured on, those that are predicted, and the side of the chunks of Zarr folders."""


@dataclass(frozen=True)
class Machine:
    """Constants of one worker, or one core, and of what connects workers.

    Attributes
    ----------
    reading : float
        Bytes a second from where the data is to the worker, decompression included.
    products : float
        Operations a second of a product of a slab, (rows, d), with (d, rank + 10) columns.
    temporaries : float
        Bytes a second of arithmetic that is done entry by entry on arrays larger than the cache.
    core : float
        Seconds of a fit between reads, which depend on the rank and hardly on the size.
    task : float
        Seconds for each chunk and read that the client and the scheduler take, one after the other.
    network : float
        Bytes a second that a worker sends or receives.
    """

    reading: float
    products: float
    temporaries: float
    core: float = 0.0
    task: float = 0.0
    network: float = math.inf


@dataclass(frozen=True)
class Cost:
    """The terms of a prediction, in seconds."""

    reading: float
    products: float
    temporaries: float
    messages: float
    tasks: float
    core: float

    @property
    def total(self) -> float:
        return sum(vars(self).values())


def predicted_seconds(
    shape: Sequence[int],
    rank: int,
    machine: Machine,
    *,
    n_workers: int = 1,
    chunk: Sequence[int] | None = None,
    itemsize: int = 8,
    n_reads: int = 4,
) -> Cost:
    """Return what a fit of a dense tensor that its components explain should take, term by term.

    Parameters
    ----------
    shape : sequence of ints
        Of the tensor: three modes or more, all much larger than the rank, and not symmetric.
    rank : int
    machine : Machine
    n_workers : int
        Workers of one thread, or cores, among which reads are divided.
    chunk : sequence of ints, optional
        The shape of a chunk, where the data is in chunks.
    itemsize : int
        Bytes of an entry.
    n_reads : int
        Passes over the data: four, and one more for every further step of the polish.
    """
    block, n_polish = tuple(chunk or shape), n_reads - 3
    n_chunks = math.prod(-(-size // step) for size, step in zip(shape, block, strict=True)) if chunk else 0
    n_entries, width, order, last = math.prod(shape), rank + OVERSAMPLING, len(shape), block[-1]
    # Two sketches and the core multiply every entry by 2 x width numbers, a step of the polish by 3 x rank. The core,
    # with one mode after the other left as it is, goes on with what the first product has left of it.
    flops = 2 * n_entries * (6 * width + 3 * rank * n_polish + order * width**2 / last)
    # Numbers written, or read again, on the way: a product leaves n_entries / last rows. The norm reads every entry
    # once more; the distance writes one for every entry, subtracts, and adds up squares.
    moved = n_entries * (1 + 5 * n_polish + (3 * order * (2 * width + rank * n_polish) + 3 * width) / last)
    sent = sum(block) * (2 * width + rank * n_polish + width ** (order - 1))
    return Cost(
        reading=n_reads * n_entries * itemsize / machine.reading / n_workers,
        products=flops / machine.products / n_workers,
        temporaries=8 * moved / machine.temporaries / n_workers,
        messages=8 * n_chunks * sent / machine.network / n_workers,
        tasks=n_reads * n_chunks * machine.task,
        core=machine.core,
    )


def cpu(work: Callable[[], object], repeats: int = 3) -> float:
    """Return the median CPU time of this process, all threads, over some repeats."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return statistics.median(times)


def speed_of_products(rank: int, last: int = 256) -> float:
    """Measure operations a second, of products with a slab from either side."""
    rng = np.random.default_rng(0)
    slab = rng.standard_normal((2**22 // last, last))
    right, left = rng.standard_normal((last, rank + 10)), rng.standard_normal((slab.shape[0], rank + 10))
    return 4 * slab.size * (rank + 10) / cpu(lambda: (slab @ right, left.T @ slab), 9)


def speed_of_temporaries(rank: int) -> float:
    """Measure bytes a second, of a product entry by entry, written to memory, and its sum over an axis."""
    rng = np.random.default_rng(0)
    half, rows = rng.standard_normal((64, 512, rank + 10)), rng.standard_normal((512, rank + 10))
    return 3 * half.nbytes / cpu(lambda: np.sum(half * rows, axis=1), 9)


def calibrated(data: Any, read: Callable[[], object], rank: int = RANK) -> Machine:
    """Measure all constants on small data of a kind; the seconds of the core are what its fit takes beyond the rest."""
    machine = Machine(8 * data.size / cpu(read, 9), speed_of_products(rank), speed_of_temporaries(rank))
    chunk = getattr(data, "chunksize", None)
    if chunk is not None:
        machine = replace(machine, task=seconds_per_task(rank))
    rest = cpu(lambda: codiag.factorize(data, rank, seed=0), 5)
    rest -= predicted_seconds(data.shape, rank, machine, chunk=chunk).total
    return replace(machine, core=max(rest, 0.0))


def seconds_per_task(rank: int = RANK, n_chunks: int = 500) -> float:
    """Measure what a chunk costs in a read, however small it is, in this process: that of the client, at least."""
    import dask.array as da

    tensor = DaskTensor(da.zeros((4 * n_chunks, 4, 4), chunks=4), symmetric=False)
    factors = [np.ones((size, rank)) for size in tensor.shape]
    return cpu(lambda: tensor.read(Products(factors))) / n_chunks


def seconds_per_task_of_a_cluster() -> float:
    """Measure the same for the client and the scheduler of a cluster, which are one process here."""
    from distributed import Client, LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster, Client(cluster):
        seconds_per_task()  # so that the workers have imported what they need
        return seconds_per_task(n_chunks=2000)


def in_memory(size: int, _: Path) -> tuple[Any, Callable[[], object]]:
    """Return a cube, and what reads it once."""
    entries = np.empty((size,) * 3)
    fill(entries)
    return entries, lambda: float(np.vdot(entries, entries))


def mapped(size: int, folder: Path) -> tuple[Any, Callable[[], object]]:
    """Return a cube mapped from a file, and what reads it once more: a fit maps a file once, too."""
    file = folder / f"tensor-{size}.npy"
    fill(np.lib.format.open_memmap(file, "w+", np.float64, (size,) * 3))
    entries = np.load(file, mmap_mode="r")
    return entries, lambda: float(np.vdot(entries, entries))


def in_chunks(size: int, folder: Path) -> tuple[Any, Callable[[], object]]:
    """Return a cube in a Zarr folder as a dask array, and what reads all of its chunks once, without dask."""
    import dask.array as da
    import zarr

    entries = np.empty((size,) * 3)
    fill(entries)
    path = str(folder / f"tensor-{size}.zarr")
    stored = zarr.create_array(store=path, shape=entries.shape, chunks=(CHUNK,) * 3, dtype="f8")
    stored[...] = entries

    def read() -> None:
        for place in np.ndindex(*[size // CHUNK] * 3):
            stored[tuple(slice(index * CHUNK, (index + 1) * CHUNK) for index in place)]

    return da.from_zarr(path), read


Maker = Callable[[int, Path], tuple[Any, Callable[[], object]]]
KINDS: dict[str, tuple[Maker, int]] = {
    "in memory": (in_memory, SMALLEST),
    "mapped": (mapped, SMALLEST),
    "Zarr, threads of dask": (in_chunks, SMALLEST_IN_CHUNKS),
}
TERMS = ("reading", "products", "temporaries", "tasks", "core")


def check(kind: str, parent: Path | None) -> tuple[Machine, list[tuple[object, ...]]]:
    """Measure constants on a small cube, then predict and measure larger ones."""
    make, smallest = KINDS[kind]
    rows: list[tuple[object, ...]] = []
    with tempfile.TemporaryDirectory(dir=parent) as folder:
        data, read = make(smallest, Path(folder))
        machine, chunk = calibrated(data, read), getattr(data, "chunksize", None)
        for size in SIZES:
            cost = predicted_seconds((size,) * 3, RANK, machine, chunk=chunk)
            entries, _ = make(size, Path(folder))
            found = cpu(partial(codiag.factorize, entries, RANK, seed=0), 3 if size < 500 else 1)
            terms = (f"{getattr(cost, name):.2f}" for name in TERMS)
            rows.append((kind, f"{size}^3", f"{cost.total:.2f}", f"{found:.2f}", f"{found / cost.total:.2f}", *terms))
            print(*rows[-1], flush=True)
    return machine, rows


def report(parent: Path | None) -> str:
    """Return constants, and predictions beside measurements."""
    checks = {kind: check(kind, parent) for kind in KINDS}
    constants = []
    for kind, (one, _) in checks.items():
        speeds = (f"{getattr(one, name) / 1e9:.2f}" for name in ("reading", "products", "temporaries"))
        constants.append((kind, *speeds, f"{1e3 * one.task:.2f}", f"{one.core:.3f}"))
    cluster = 1e3 * seconds_per_task_of_a_cluster()
    return (
        f"## A model of cost\nConstants measured on a cube of {SMALLEST}^3 (in chunks: {SMALLEST_IN_CHUNKS}^3), rank "
        f"{RANK}, noise {NOISE:g} of the norm, float64; chunks of {CHUNK}^3 with zarr's default compression. CPU time "
        "of all threads, BLAS on one thread each; files are in the page cache. On a `distributed` cluster, the client "
        f"and the scheduler together take {cluster:.2f} ms for each chunk and read.\n\n"
        + table(("", "reading, GB/s", "products, Gflop/s", "temporaries, GB/s", "task, ms", "core, s"), constants)
        + "\n\nFits that were predicted from these constants, and then measured; none of the constants is fitted to "
        "these sizes. All in seconds of CPU, of one fit (the median of three below 500^3).\n\n"
        + table(
            ("", "size", "predicted", "measured", "ratio", *TERMS), [row for _, rows in checks.values() for row in rows]
        )
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=None, help="where files are made, and deleted")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        text = report(given.folder)
    keep("cost model", "python -m benchmarks.cost_model", text)
    print(text)


if __name__ == "__main__":
    main()
