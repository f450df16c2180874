"""How the time and the memory of a fit grow with the size of a tensor: dense in memory, mapped from a file, sparse.

``python -m benchmarks.growth`` measures all kinds and sizes, each in a process of its own and on one thread, writes the
table to RESULTS.md and draws growth.png. Mapped files are made in slabs in a folder of their own (``--folder``: where),
and deleted after use; they are read from the page cache of the system, not from the disk, where memory allows.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import codiag
from benchmarks.measure import keep, table
from benchmarks.sparse_scale import components
from codiag.plotting import INK, MUTED, OURS, THEIRS, paper
from codiag.synthetic import unit_factor
from codiag.tensors import SMALL_SIZE, FactoredTensor, SparseTensor

RANK, NOISE, SPARSE_SIZE = 20, 0.01, 5000
SIZES: dict[str, tuple[int, ...]] = {
    "in memory": (100, 130, 200, 300, 400, 600, 800),
    "mapped": (100, 130, 200, 300, 400, 600, 800),
    "sparse": (10**4, 10**5, 10**6, 10**7),
}
FIGURE = Path(__file__).with_name("growth.png")
LONG = 20.0
"""Seconds from which a fit is timed once, not three times."""

Record = dict[str, Any]


def fill(entries: np.ndarray, rank: int = RANK, noise: float = NOISE) -> list[np.ndarray]:
    """Write components of weights between one and two, and noise, into a cube, slab by slab; return the factors."""
    size, rng = entries.shape[0], np.random.default_rng(0)
    factors = [unit_factor(size, rank, rng) for _ in range(3)]
    weights = 1 + rng.random(rank)
    level = noise * FactoredTensor(weights, factors).squared_norm() ** 0.5 / size**1.5
    step = max(2**22 // size**2, 1)
    for start in range(0, size, step):
        rows = [factors[0][start : start + step], *factors[1:]]
        slab = FactoredTensor(weights, rows, symmetric=False).to_dense()
        entries[start : start + step] = slab + level * rng.standard_normal(slab.shape)
    return factors


def anonymous_megabytes() -> float:
    """Return the memory this process holds, but for pages of files, which the system may take back at any time."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("the system does not tell RssAnon in /proc/self/status, as Linux does")


@contextmanager
def peak_memory() -> Iterator[list[float]]:
    """Keep, in the first place of a list, how much memory has grown at most while a block runs, in MB."""
    ctypes.CDLL(None).malloc_trim(0)  # what the making of the data has left behind would be used again, unseen
    before, found, ended = anonymous_megabytes(), [0.0], threading.Event()

    def look() -> None:
        while not ended.wait(0.005):
            found[0] = max(found[0], anonymous_megabytes() - before)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield found
    finally:
        ended.set()
        thread.join()


def measured(work: Callable[[], codiag.Factorization], factors: Sequence[np.ndarray]) -> Record:
    """Return what a fit takes: the memory of a first one, then the median times of three, or those of one if long."""
    with peak_memory() as grown:
        fit = work()
    clocks: list[tuple[float, float]] = []
    while not clocks or (len(clocks) < 3 and clocks[0][1] < LONG):
        wall, processor = time.perf_counter(), time.process_time()
        work()
        clocks.append((time.process_time() - processor, time.perf_counter() - wall))
    processor, wall = (statistics.median(times) for times in zip(*clocks, strict=True))
    errors = {"error": fit.relative_error, "factor error": codiag.factor_error(fit, factors)}
    return {"cpu": processor, "wall": wall, "megabytes": grown[0], **errors}


def dense(size: int, folder: Path, *, mapped: bool) -> Record:
    """Measure the fit of a cube."""
    file = folder / f"tensor-{size}.npy"
    shape = (size,) * 3
    entries: np.ndarray = np.lib.format.open_memmap(file, "w+", np.float64, shape) if mapped else np.empty(shape)
    factors = fill(entries)
    if mapped:
        entries = np.load(file, mmap_mode="r")
    record = measured(lambda: codiag.factorize(entries, RANK, rng=0), factors)
    return {"entries": size**3, "bytes": 8 * size**3, **record}


def sparse(count: int) -> Record:
    """Measure the fit of a list of entries, its making included."""
    listed = components(SPARSE_SIZE, count, NOISE, rank=RANK)
    shape = (listed.size,) * 3

    def work() -> codiag.Factorization:
        return codiag.factorize(SparseTensor(listed.coords, listed.values, shape), RANK, rng=0)

    n_bytes = listed.coords.nbytes + listed.values.nbytes
    return {"entries": listed.values.size, "bytes": n_bytes, **measured(work, listed.factors or ())}


def one(kind: str, size: int, folder: Path) -> Record:
    """Measure one size of one kind, on one thread."""
    codiag.factorize(np.random.default_rng(0).random((9, 9, 9)), 2, rng=0)  # imports and first calls
    with threadpool_limits(1):
        return sparse(size) if kind == "sparse" else dense(size, folder, mapped=kind == "mapped")


def in_a_process(kind: str, size: int, folder: Path) -> Record:
    """Measure one size in a process of its own, so that memory is that of one fit; delete the file it made."""
    command = [sys.executable, "-m", "benchmarks.growth", "--one", kind, str(size), "--folder", str(folder)]
    try:
        told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    finally:
        for file in folder.glob("tensor-*.npy"):
            file.unlink()
    record: Record = {"kind": kind, "size": size, **json.loads(told.splitlines()[-1])}
    print(json.dumps(record), flush=True)
    return record


def slope(records: Sequence[Record], key: str) -> float:
    """Return the exponent of growth with the number of entries, by least squares on logarithms."""
    large = [record for record in records if is_counted(record)]
    x, y = (np.log([record[name] for record in large]) for name in ("entries", key))
    return float(np.polyfit(x, y, 1)[0])


def is_counted(record: Record) -> bool:
    """Tell whether a record is of the large kind: dense tensors below are worked on as a whole, in another way."""
    return record["kind"] == "sparse" or record["entries"] > SMALL_SIZE


def draw(records: Sequence[Record]) -> None:
    """Draw time and memory against the number of entries."""
    from matplotlib.ticker import LogLocator, NullFormatter

    panels = (("cpu", "seconds of CPU"), ("megabytes", "MB beyond the data"))
    with paper((10, 4.4)) as figure:
        for axis, (key, name) in zip(figure.subplots(1, 2), panels, strict=True):
            for kind, color, mark in zip(SIZES, (OURS, THEIRS, INK), "os^", strict=True):
                own = [record for record in records if record["kind"] == kind]
                x, y = ([record[field] for record in own] for field in ("entries", key))
                style = "--" if kind == "mapped" else "-"
                axis.loglog(x, y, style, color=color, marker=mark, label=f"{kind}: slope {slope(own, key):.2f}")
            axis.axvline(SMALL_SIZE, color=MUTED, linewidth=0.8, linestyle=":")
            axis.set(xlabel="entries", ylabel=name)
            for side in (axis.xaxis, axis.yaxis):
                side.set_major_locator(LogLocator(base=10, numticks=12))
                side.set_minor_formatter(NullFormatter())
            axis.legend(frameon=False, fontsize=9)
        figure.suptitle(f"A fit of rank {RANK}, noise {NOISE:g} of the norm, one thread", fontsize=11)
        figure.savefig(FIGURE, dpi=120)


def report(records: Sequence[Record]) -> str:
    """Return the table of all sizes, with slopes."""
    rows: list[tuple[object, ...]] = []
    for kind in SIZES:
        own = [record for record in records if record["kind"] == kind]
        for record in own:
            name = f"{record['entries']} in {SPARSE_SIZE}^3" if kind == "sparse" else f"{record['size']}^3"
            numbers = [f"{record[key]:.3g}" for key in ("cpu", "wall")]
            rows.append((kind, name, f"{record['bytes'] / 1e6:.4g}", *numbers, f"{record['megabytes']:.0f}"))
            rows[-1] += (f"{record['error']:.5f}", f"{record['factor error']:.1e}")
        slopes = [f"{slope(own, key):.2f}" for key in ("cpu", "wall", "megabytes")]
        rows.append((kind, "slope", "", *slopes, "", ""))
    headings = ("kind", "size", "MB of data", "s of CPU", "s", "MB beyond the data", "relative error", "factor error")
    return (
        f"## Growth\nRank {RANK}, float64, weights between 1 and 2, noise {NOISE:g} of the norm; one thread; median of "
        "three fits (one where a fit takes more than 20 s). Memory is what the process holds beyond the array or the "
        "list it was given, without pages of mapped files, at most during a first fit. Sparse: components with random "
        "supports, the making of the tensor included. A slope is the exponent of growth with the number of entries, "
        f"by least squares on logarithms, of dense tensors over those of more than 2^21 = {SMALL_SIZE} entries (dotted "
        "line): smaller ones are worked on as a whole.\n\n![time and memory against entries](growth.png)\n\n"
        + table(headings, rows)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=None, help="where mapped files are made, and deleted")
    parser.add_argument("--one", nargs=2, metavar=("KIND", "SIZE"), help="one measurement, in this process")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory(dir=given.folder) as made:
        folder = Path(made)
        if given.one:
            print(json.dumps(one(given.one[0], int(given.one[1]), folder)))
            return
        records = [in_a_process(kind, size, folder) for kind, sizes in SIZES.items() for size in sizes]
    draw(records)
    keep("growth", "python -m benchmarks.growth", report(records))


if __name__ == "__main__":
    main()
