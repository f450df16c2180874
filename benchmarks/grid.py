"""One declarative runner: every method on every cell of a grid, on the same tensors; it resumes where it stopped."""

from __future__ import annotations

import itertools
import json
import time
import tracemalloc
import warnings
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import codiag
from benchmarks.solvers import Solver
from codiag.methods import NLS
from codiag.metrics import factor_error, nearest_error
from codiag.synthetic import PlantedTensor
from codiag.tensors import FactoredTensor

Cell = dict[str, Any]


@dataclass(frozen=True)
class Grid:
    """What to run: a problem for every combination of the axes, so many seeds each, and the methods to try."""

    name: str
    title: str
    problem: Callable[..., PlantedTensor]  # called with the values of the axes and a seed
    axes: Mapping[str, Sequence[Any]]
    methods: Sequence[str]
    n_seeds: int
    symmetric: bool | None = None

    def cells(self) -> Iterator[Cell]:
        """Yield every combination of the axes."""
        for values in itertools.product(*self.axes.values()):
            yield dict(zip(self.axes, values, strict=True))


def seed_of(grid: Grid, cell: Cell, index: int) -> int:
    """Derive the seed of a problem from the axes alone: every method sees the same tensors, whatever else runs."""
    return zlib.crc32(json.dumps([grid.problem.__name__, cell, index], sort_keys=True).encode())


def run(grid: Grid, solvers: Mapping[str, Solver], folder: Path) -> list[dict[str, Any]]:
    """Run what has not been run yet, one JSON line each; return all records of the grid, in one order."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{grid.name}.jsonl"
    done = {_key(record): record for record in map(json.loads, path.read_text().splitlines())} if path.exists() else {}
    wanted = [name for name in grid.methods if name in solvers]
    records = []
    with path.open("a") as file, threadpool_limits(1):
        for cell, index in itertools.product(grid.cells(), range(grid.n_seeds)):
            missing = [name for name in wanted if _key({"cell": cell, "seed": index, "method": name}) not in done]
            if missing:
                trial = _Trial(grid, cell, index)
                for name in missing:
                    record = trial.measure(name, solvers[name])
                    done[_key(record)] = record
                    file.write(json.dumps(record) + "\n")
                    file.flush()
            records += [done[_key({"cell": cell, "seed": index, "method": name})] for name in wanted]
    return records


class _Trial:
    """One tensor, and the oracle's fit to it."""

    def __init__(self, grid: Grid, cell: Cell, index: int) -> None:
        self.grid, self.cell, self.index = grid, cell, index
        self.seed = seed_of(grid, cell, index)
        self.problem = grid.problem(**cell, seed=self.seed)
        self.rank = self.problem.weights.size
        truth = NLS(init=(self.problem.weights, self.problem.factors), max_replacements=0, max_sweeps=1000)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            oracle = codiag.factorize(self.problem.tensor, self.rank, method=truth, symmetric=grid.symmetric)
        self.oracle = factor_error(oracle, self.problem)
        self.oracle_objective = self._objective(oracle.factors)

    def measure(self, name: str, solver: Solver) -> dict[str, Any]:
        """Return the record of one method: errors as ratios to the oracle, times, memory of the first seed."""
        record: dict[str, Any] = {"cell": self.cell, "seed": self.index, "method": name, "oracle": self.oracle}
        seed = zlib.crc32(f"start {self.seed}".encode())  # a start must not be drawn like the truth
        work = lambda: solver(self.problem.tensor, self.rank, self.grid.symmetric, seed)  # noqa: E731
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            start, start_cpu = time.perf_counter(), time.thread_time()
            try:
                factors = work()
            except ValueError as reason:
                return record | {"refused": str(reason)}
            record |= {"wall": time.perf_counter() - start, "cpu": time.thread_time() - start_cpu}
            if self.index == 0:
                record["megabytes"] = _peak(work)
        error = factor_error(factors, self.problem)
        return record | {
            "error": error,
            "nearest": nearest_error(factors, self.problem),
            "success": bool(error <= max(1e-3, 2 * self.oracle)),
            "objective": self._objective(factors) / max(self.oracle_objective, 1e-30),
        }

    def _objective(self, factors: Sequence[np.ndarray]) -> float:
        """Return the squared distance with the best weights for these factors, relative to the squared norm."""
        tensor = codiag.tensors.as_tensor(self.problem.tensor, self.grid.symmetric)
        unit = [np.asarray(factor) / np.linalg.norm(factor, axis=0) for factor in factors]
        best = codiag.methods._base.with_best_weights(tensor, unit)
        return tensor.squared_distance(best.weights, FactoredTensor(best.weights, unit).factors) / tensor.squared_norm()


def _peak(work: Callable[[], object]) -> float:
    """Return the most memory a call holds at once, in megabytes, as Python and NumPy count it."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1] / 1e6
    finally:
        tracemalloc.stop()


def _key(record: Mapping[str, Any]) -> str:
    return json.dumps([record["cell"], record["seed"], record["method"]], sort_keys=True)
