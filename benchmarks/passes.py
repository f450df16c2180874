"""How often a fit reads a tensor, and what memory it takes beside it, by kinds of data and of questions.

``python -m benchmarks.passes``. Passes are counted as the logger ``codiag.reads`` tells them.
"""

from __future__ import annotations

import logging
import math
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dask.array
import numpy as np

import codiag
from benchmarks.growth import fill, peak_memory
from benchmarks.measure import publish, table
from benchmarks.sparse_scale import components
from codiag.models import HiddenMarkov, LatentDirichlet, SingleTopic, SphericalGaussianMixture
from codiag.synthetic import noisy_tensor
from codiag.tensors import SMALL_SIZE, SparseTensor, symmetrize

SIZE, RANK, CHUNK = 150, 10, 75


class Count(logging.Handler):
    """The number of passes over large tensors."""

    def __init__(self) -> None:
        super().__init__()
        self.n_reads = 0

    def emit(self, record: Any) -> None:
        self.n_reads += record.part == 1 and math.prod(record.shape) > SMALL_SIZE


@contextmanager
def counted() -> Iterator[Count]:
    """Count passes while a block runs."""
    logger, count = logging.getLogger("codiag.reads"), Count()
    before = logger.level
    logger.addHandler(count)
    logger.setLevel(logging.DEBUG)
    try:
        yield count
    finally:
        logger.removeHandler(count)
        logger.setLevel(before)


def cube(noise: float = 0.01, *, positive: bool = False) -> np.ndarray:
    """Return a noisy cube of random factors, or of ones that are not negative."""
    entries = np.empty((SIZE,) * 3)
    factors = fill(entries, RANK, noise)
    if positive:
        entries = np.einsum("ir,jr,kr->ijk", *map(np.abs, factors), optimize=True)
        entries += (
            noise
            * np.linalg.norm(entries)
            / entries.size**0.5
            * np.random.default_rng(1).standard_normal(entries.shape)
        )
    return entries


def with_holes(share: float = 0.3) -> np.ndarray:
    """Return a cube with NaN at random places."""
    entries = cube()
    entries[np.random.default_rng(1).random(entries.shape) < share] = np.nan
    return entries


def chunks(entries: np.ndarray) -> Any:
    """Return an array in chunks of dask, which logs passes on the schedulers of one machine."""
    import dask.array as da

    return da.from_array(entries, chunks=CHUNK)


def mapped(folder: Path) -> Any:
    """Return a cube mapped from a file."""
    np.save(folder / "tensor.npy", cube())
    return np.load(folder / "tensor.npy", mmap_mode="r")


def listed(**options: Any) -> SparseTensor:
    """Return ten components with supports, as a list of entries."""
    entries = components(1000, 1e6)
    return SparseTensor(entries.coords, entries.values, (entries.size,) * 3, **options)


def observed() -> SparseTensor:
    """Return a tenth of the entries of a cube, all others missing."""
    entries = cube()
    places = np.nonzero(np.random.default_rng(1).random(entries.shape) < 0.1)
    return SparseTensor(np.array(places), entries[places], entries.shape, absent="missing")


def symmetric_cube() -> np.ndarray:
    """Return a symmetric cube."""
    factor = np.random.default_rng(0).standard_normal((SIZE, RANK))
    entries = np.einsum("ir,jr,kr->ijk", factor, factor, factor, optimize=True)
    level = 0.01 * np.linalg.norm(entries) / entries.size**0.5
    return entries + level * np.asarray(symmetrize(np.random.default_rng(1).standard_normal(entries.shape)))


CASES: dict[str, tuple[Callable[[Path], Any], dict[str, Any]]] = {
    "array in memory": (lambda _: cube(), {}),
    "array, float32": (lambda _: cube().astype(np.float32), {}),
    "array, symmetric": (lambda _: symmetric_cube(), {"symmetric": True}),
    "array of order four, 40^4": (lambda _: noisy_tensor((40,) * 4, RANK, noise=0.01, rng=0).tensor, {}),
    "array, 20,000 x 30 x 30": (lambda _: noisy_tensor((20_000, 30, 30), RANK, noise=0.01, rng=0).tensor, {}),
    "array, noise of 30 % of the norm": (lambda _: cube(0.3), {}),
    "array, noise of 300 % of the norm": (lambda _: cube(3.0), {}),
    "mapped file": (mapped, {}),
    "dask array": (lambda _: chunks(cube()), {}),
    "sparse, 970,000 entries in 1000^3": (lambda _: listed(), {}),
    "array, non-negative factors": (lambda _: cube(positive=True), {"constraints": "nonnegative"}),
    "dask array, non-negative factors": (lambda _: chunks(cube(positive=True)), {"constraints": "nonnegative"}),
    "array, 30 % missing": (lambda _: with_holes(), {}),
    "dask array, 30 % missing": (lambda _: chunks(with_holes()), {}),
    "sparse, a tenth observed": (lambda _: observed(), {}),
}


class Reader:
    """A dask array of six blocks, and how often the last of them was read."""

    def __init__(self, data: np.ndarray) -> None:
        self.n_reads = 0
        blocks = dask.array.from_array(data, chunks=(-(-len(data) // 6), *data.shape[1:]))
        self.array = blocks.map_blocks(self._read, dtype=data.dtype)

    def _read(self, block: np.ndarray, block_id: tuple[int, ...]) -> np.ndarray:
        self.n_reads += block_id[0] == 5
        return block


def of_models() -> list[tuple[object, ...]]:
    """Return how often models read a dask array, by default and without steps after the moments."""
    rng = np.random.default_rng(0)
    topics, means = rng.dirichlet(np.full(200, 0.1), 5), 3 * rng.standard_normal((5, 10))
    mixed, single = rng.dirichlet(np.full(5, 0.2), 3000) @ topics, topics[rng.integers(0, 5, 3000)]
    samples = means[rng.integers(0, 5, 5000)] + rng.standard_normal((5000, 10))
    cases: dict[str, tuple[type[Any], np.ndarray]] = {
        "LatentDirichlet, 200 words": (LatentDirichlet, rng.multinomial(80, mixed)),
        "SingleTopic, 200 words": (SingleTopic, rng.multinomial(80, single)),
        "SphericalGaussianMixture": (SphericalGaussianMixture, samples),
        "HiddenMarkov": (HiddenMarkov, rng.integers(0, 6, 6000)),
    }
    rows: list[tuple[object, ...]] = []
    for name, (model, data) in cases.items():
        readers = Reader(data), Reader(data)
        model(5, random_state=0).fit(readers[0].array)
        model(5, random_state=0, max_iter=0).fit(readers[1].array)
        rows.append((name, *(reader.n_reads for reader in readers)))
    return rows


def report() -> str:
    """Return a table of passes and memory."""
    rows: list[tuple[object, ...]] = []
    for name, (make, options) in CASES.items():
        with tempfile.TemporaryDirectory() as folder:
            data = make(Path(folder))
            with counted() as count, peak_memory() as grown:
                fit = codiag.factorize(data, RANK, rng=0, **options)
        reads = count.n_reads if "observed" not in name and name != "array, 30 % missing" else "in memory"
        rows.append((name, reads, f"{grown[0]:.0f}", f"{fit.relative_error:.4f}", fit.converged))
        print(*rows[-1], flush=True)
    return (
        f"## Passes over the data\nPasses over the data in one fit, as the logger `codiag.reads` tells them; {SIZE}^3 "
        f"({8e-6 * SIZE**3:.0f} MB) unless the row says otherwise, rank {RANK}, noise 0.01 of the norm, dask in chunks "
        f"of {CHUNK}^3 on threads. Memory: the most that the process has grown by during the fit. 'in memory': the "
        "entries that were observed are copied once, and worked on from there.\n\n"
        + table(("data", "passes", "MB beyond the data", "relative error", "converged"), rows)
        + "\n\nModels that sum over the rows of a dask array:\n\n"
        + table(("model", "passes", "with max_iter=0"), of_models())
    )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    publish("passes", "python -m benchmarks.passes", report)
