"""More components than modes measure, at order three: what one start of each kind leads to, without swaps.

``python -m benchmarks.overcomplete_starts --seeds 10 --keep`` resumes where it stopped and writes to RESULTS.md.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from benchmarks.orders import SETUP, planted
from benchmarks.trials import parser_of, show
from codiag import Problem
from codiag.extending import minimize
from codiag.least_squares import ROUGH
from codiag.problem import Log
from codiag.starts import Random, diagonal_roles, diagonal_start, koszul_roles, koszul_start
from codiag.tensors import DenseTensor, FactoredTensor
from experiments.records import Cell, Record, Values, combinations, select
from experiments.reports import Report, Table
from experiments.runs import Experiment, seed_of

SHAPES = {f"{size}^3, rank {rank}": (size, rank) for size, rank in ((10, 12), (10, 14), (20, 26), (20, 30))}
AXES: dict[str, Sequence[Any]] = {
    "shape": list(SHAPES),
    "symmetric": [False, True],
    "weights": ["normal", "equal"],
    "noise": [0.0, 1e-4, 1e-3, 1e-2],
}


def koszul(problem: Problem, core: DenseTensor, rng: np.random.Generator) -> FactoredTensor:
    roles = koszul_roles(core.shape, problem.rank, symmetric=core.symmetric)
    if roles is None:
        raise ValueError(f"rank must leave Koszul flattenings a kernel; got {problem.rank}")
    return koszul_start(core, roles, problem.rank, rng, Log())


def strongest_first(problem: Problem, core: DenseTensor, rng: np.random.Generator) -> FactoredTensor:
    """Diagonalize for as many components as modes measure, fit these, and diagonalize for the others what is left."""
    first = _diagonalized(core, core.shape[0], rng)
    left = DenseTensor.of(core.to_dense() - first.to_dense(), symmetric=core.symmetric)
    return first.joined(_diagonalized(left, problem.rank - core.shape[0], rng))


def _diagonalized(core: DenseTensor, rank: int, rng: np.random.Generator) -> FactoredTensor:
    roles = diagonal_roles(core, rank)
    if roles is None:
        raise ValueError(f"rank must be such that slices can be diagonalized; got {rank}")
    return minimize(Problem(core, rank), diagonal_start(core, roles, rank, rng, Log()), ROUGH).components


def random(problem: Problem, _: DenseTensor, rng: np.random.Generator) -> FactoredTensor:
    return next(Random().generate(problem, rng, Log()))


STARTS: dict[str, Callable[[Problem, DenseTensor, np.random.Generator], FactoredTensor]] = {
    "Koszul equations": koszul,
    "the strongest first": strongest_first,
    "random": random,
}
COLUMNS = (
    "Least squares from one start of each kind, without swaps. Success: objective at most that of least squares from "
    "the truth by a factor 1.002, a relative error by 1.001, or below 1e-10; CPU: median seconds of start and least "
    "squares together, one thread. Random: a few sweeps of orthogonalized ALS, or if symmetric uniform on the sphere."
)


def _measured(cell: Cell, _: int) -> Values:
    size, rank = SHAPES[cell["shape"]]
    problem = planted(cell, (size,) * 3, rank)
    core = DenseTensor(problem.tensor, symmetric=cell["symmetric"])
    asked, rng = Problem(core, rank), np.random.default_rng(seed_of("start", cell))
    truth = FactoredTensor(problem.weights, problem.factors, symmetric=cell["symmetric"])
    least = minimize(asked, truth, ROUGH).objective
    began = time.process_time()
    end = minimize(asked, STARTS[cell["method"]](asked, core, rng), ROUGH).objective
    cpu = time.process_time() - began
    total = core.squared_norm()
    return {"oracle": math.sqrt(2 * least / total), "error": math.sqrt(2 * end / total), "cpu": cpu}


def _cell(records: Sequence[Record]) -> str:
    if not records:
        return "-"
    error, oracle, cpu = (np.array([one.values[name] for one in records]) for name in ("error", "oracle", "cpu"))
    success = error <= np.maximum(1.001 * oracle, 1e-10)
    return f"{np.mean(success):.0%} of {len(records)}, {np.median(cpu):.2f} s"


def _report(records: Sequence[Record]) -> Report:
    rows = []
    for place in combinations(AXES):
        kind = "symmetric" if place["symmetric"] else "not symmetric"
        names = (place["shape"], kind, place["weights"], f"{place['noise']:g}")
        if select(records, **place):
            rows.append((*names, *(_cell(select(records, **place, method=name)) for name in STARTS)))
    rows.append(("all together", "", "", "", *(_cell(select(records, method=name)) for name in STARTS)))
    return Report([], [Table("Success and time", ("tensor", "kind", "weights", "noise", *STARTS), rows)])


def _cells(n_seeds: int, _quick: bool) -> list[Cell]:
    return combinations({"seed": range(n_seeds), **AXES, "method": list(STARTS)})


def experiment(n_seeds: int) -> Experiment:
    """Return the grid as what the harness runs."""
    title = "Starts of overcomplete tensors"
    return Experiment("overcomplete-starts", title, SETUP, partial(_cells, n_seeds), _measured, _report)


def main() -> None:
    parser = parser_of("overcomplete_starts", __doc__)
    parser.add_argument("--seeds", type=int, default=10)
    options = parser.parse_args()
    grid = experiment(options.seeds)
    show("overcomplete_starts", options, [grid], f"## {grid.title}\n{SETUP} {COLUMNS}")


if __name__ == "__main__":
    main()
