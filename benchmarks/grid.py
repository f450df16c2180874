"""Grids of problems and methods: every method on the same tensors, measured against least squares from the truth."""

from __future__ import annotations

import time
import tracemalloc
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from benchmarks.report import COLUMNS, report
from benchmarks.solvers import Solver
from codiag import factor_error
from codiag.methods import NLS
from codiag.metrics import nearest_error
from codiag.synthetic import PlantedTensor
from codiag.tensors import as_tensor
from experiments.fitting import silent_fit
from experiments.records import Cell, Values, combinations
from experiments.runs import Experiment, Refused, seed_of

Make = Callable[..., PlantedTensor]
"""Called with the values of the axes and a seed."""


@dataclass(frozen=True)
class Grid:
    """What to run: a problem for every combination of the axes, so many seeds each, and the methods to try."""

    name: str
    title: str
    problem: Make
    axes: Mapping[str, Sequence[Any]]
    methods: Sequence[str]
    n_seeds: int

    def experiment(self, solvers: Mapping[str, Solver]) -> Experiment:
        """Return the grid with those of its methods that are at hand, as what the harness runs; methods are an axis."""
        methods = [name for name in self.methods if name in solvers]
        cells = combinations({**self.axes, "seed": range(self.n_seeds), "method": methods})
        measure = partial(_measured, self.problem, solvers)
        setup = f"{self.title}. {self.n_seeds} seeds. {COLUMNS}"
        return Experiment(self.name, self.name.capitalize(), setup, lambda _: cells, measure, report)


def _measured(make: Make, solvers: Mapping[str, Solver], cell: Cell, _: int) -> Values:
    """Return errors as ratios to the oracle, times, and the memory of the first seed.

    The seed comes from the axes without the method: every method sees the same tensors, whatever else runs.
    """
    place = tuple((axis, value) for axis, value in cell.items() if axis not in ("seed", "method"))
    trial = _trial(make, place, cell["seed"])
    problem = trial.problem
    symmetric = is_symmetric(problem)
    start = zlib.crc32(f"start {trial.seed}".encode())  # a start must not be drawn like the truth
    work = partial(solvers[cell["method"]], problem.tensor, problem.weights.size, symmetric, start)
    begin, begin_cpu = time.perf_counter(), time.thread_time()
    try:
        factors = work()
    except ValueError as reason:
        raise Refused(str(reason)) from None
    values = {"oracle": trial.oracle, "wall": time.perf_counter() - begin, "cpu": time.thread_time() - begin_cpu}
    if cell["seed"] == 0:
        values["megabytes"] = _peak(work)
    error = factor_error(factors, problem)
    return values | {
        "error": error,
        "nearest": nearest_error(factors, problem),
        "success": float(error <= max(1e-3, 2 * trial.oracle)),
        "objective": squared_distance(problem, factors, symmetric) / max(trial.oracle_objective, 1e-30),
    }


class _Trial(NamedTuple):
    """One tensor, and the errors of the oracle on it."""

    seed: int
    problem: PlantedTensor
    oracle: float
    oracle_objective: float


@lru_cache(maxsize=1)
def _trial(make: Make, place: tuple[tuple[str, Any], ...], index: int) -> _Trial:
    seed = seed_of(make.__name__, dict(place), index)
    problem = make(**dict(place), seed=seed)
    symmetric = is_symmetric(problem)
    truth = NLS(init=(problem.weights, problem.factors), max_replacements=0, max_iter=1000)
    found = silent_fit(problem.tensor, problem.weights.size, method=truth, symmetric=symmetric).factors
    return _Trial(seed, problem, factor_error(found, problem), squared_distance(problem, found, symmetric))


def is_symmetric(problem: PlantedTensor) -> bool:
    """Return whether one factor was planted in all modes."""
    return all(factor is problem.factors[0] for factor in problem.factors)


def squared_distance(problem: PlantedTensor, factors: Sequence[np.ndarray], symmetric: bool) -> float:
    """Return the squared distance with the best weights for these factors, relative to the squared norm."""
    tensor = as_tensor(problem.tensor, symmetric)
    unit = [np.asarray(factor) / np.linalg.norm(factor, axis=0) for factor in factors]
    gram = np.prod([factor.T @ factor for factor in unit], axis=0)
    weights = np.linalg.lstsq(gram, np.sum(tensor.mttkrp(unit, 0) * unit[0], axis=0), rcond=None)[0]
    return tensor.squared_distance(weights, unit) / tensor.squared_norm()


def _peak(work: Callable[[], object]) -> float:
    """Return the most memory a call holds at once, in megabytes, as Python and NumPy count it."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1] / 1e6
    finally:
        tracemalloc.stop()
