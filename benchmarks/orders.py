"""Orders four and five with more components than any mode measures: found by diagonalization, without random starts?

``python -m benchmarks.orders --seeds 40 --jobs 2 --keep`` resumes where it stopped and writes the table to RESULTS.md.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from benchmarks.grid import squared_distance
from benchmarks.solvers import all_solvers
from benchmarks.trials import parser_of, show
from codiag.methods import NLS
from codiag.synthetic import PlantedTensor, unit_factor
from codiag.tensors import FactoredTensor, symmetrize
from experiments.fitting import silent_fit
from experiments.records import Cell, Record, Values, combinations, select
from experiments.reports import Report, Table
from experiments.runs import Experiment, seed_of

AXES: dict[str, Sequence[Any]] = {
    "shape": ["20^4, rank 40", "8^5, rank 30"],
    "symmetric": [True, False],
    "weights": ["normal", "equal"],
    "noise": [0.0, 1e-3, 1e-2],
}
OURS, RANDOM = "codiag", "codiag from one random start"
BASELINES = ["TensorLy parafac", "TensorLy parafac, orthogonalised"]
SETUP = (
    "Factors uniform on the sphere, weights N(0, 1) or all one, Gaussian noise of the stated share of the norm, "
    "symmetrized where the tensor is symmetric."
)
COLUMNS = (
    "Success: relative error within 1.001 of least squares from the truth, or below 1e-10; worst: the largest ratio of "
    "the two; by diagonalization: success, with no random start among the stages; CPU: median and most seconds, one "
    "thread. Others, and one random start of `NLS` with replacements, on the first seeds only."
)


def shape_and_rank(name: str) -> tuple[tuple[int, ...], int]:
    """Return the shape and the rank of a name like "20^4, rank 40"."""
    size, order, rank = (int(number) for number in name.replace(", rank ", "^").split("^"))
    return (size,) * order, rank


def planted(cell: Cell, shape: tuple[int, ...], rank: int) -> PlantedTensor:
    """Draw a tensor for a place on the axes, whatever method it is for."""
    place = {axis: value for axis, value in cell.items() if axis != "method"}
    rng = np.random.default_rng(seed_of("orders", place))
    factors = tuple(unit_factor(size, rank, rng) for size in (shape[:1] if cell["symmetric"] else shape))
    factors = factors * len(shape) if cell["symmetric"] else factors
    weights = rng.standard_normal(rank) if cell["weights"] == "normal" else np.ones(rank)
    clean = FactoredTensor(weights, factors).to_dense()
    errors = rng.standard_normal(shape)
    errors = symmetrize(errors) if cell["symmetric"] else errors
    level = cell["noise"] * np.linalg.norm(clean) / np.linalg.norm(errors)
    return PlantedTensor(clean + level * errors, weights, factors)


def measured(cell: Cell, _: int) -> Values:
    """Fit a tensor of a cell, and compare the error with that of least squares from the truth."""
    symmetric, method = cell["symmetric"], cell["method"]
    problem = planted(cell, *shape_and_rank(cell["shape"]))
    rank, seed = problem.weights.size, seed_of("start", cell)
    truth = NLS(init=(problem.weights, problem.factors), max_replacements=0, max_iter=1000)
    oracle = silent_fit(problem.tensor, rank, method=truth, symmetric=symmetric).relative_error
    drawn, began = 0, time.process_time()
    if method in (OURS, RANDOM):
        chosen = None if method == OURS else NLS()
        fit = silent_fit(problem.tensor, rank, method=chosen, symmetric=symmetric, seed=seed)
        cpu, error = time.process_time() - began, fit.relative_error
        drawn = sum("random" in stage.name for stage in fit.history) if method == OURS else 1
    else:
        factors = all_solvers()[method](problem.tensor, rank, symmetric, seed)
        cpu = time.process_time() - began
        error = math.sqrt(squared_distance(problem, factors, symmetric))
    return {"oracle": oracle, "error": error, "random": drawn, "cpu": cpu}


def _row(place: Cell, method: str, records: Sequence[Record]) -> tuple[str, ...]:
    error, oracle, random, cpu = (
        np.array([one.values[name] for one in records]) for name in ("error", "oracle", "random", "cpu")
    )
    success = error <= np.maximum(1.001 * oracle, 1e-10)
    worst = np.max(error / np.maximum(oracle, 1e-10))
    direct = "-" if method in BASELINES or method == RANDOM else f"{np.mean(success & (random == 0)):.1%}"
    kind = "symmetric" if place["symmetric"] else "not symmetric"
    names = (place["shape"], kind, place["weights"], f"{place['noise']:g}", method, str(len(records)))
    return (*names, f"{np.mean(success):.1%}", f"{worst:.4g}", direct, f"{np.median(cpu):.2f}", f"{np.max(cpu):.2f}")


def report_of(places: Sequence[Cell], records: Sequence[Record]) -> Report:
    """Return the table of all methods at these places."""
    rows = []
    for place in places:
        for method in (OURS, RANDOM, *BASELINES):
            here = select(records, **place, method=method)
            rows += [_row(place, method, here)] if here else []
    headings = (
        "tensor",
        "kind",
        "weights",
        "noise",
        "method",
        "runs",
        "success",
        "worst",
        "by diagonalization",
        "CPU",
        "most",
    )
    return Report([], [Table("More components than modes measure", headings, rows)])


def _report(records: Sequence[Record]) -> Report:
    return report_of(combinations(AXES), records)


def _cells(n_seeds: int, n_others: int, _quick: bool) -> list[Cell]:
    ours = combinations({"seed": range(n_seeds), **AXES, "method": [OURS]})
    return [*ours, *combinations({"seed": range(n_others), **AXES, "method": [RANDOM, *BASELINES]})]


def experiment(n_seeds: int, n_others: int) -> Experiment:
    """Return the grid as what the harness runs."""
    return Experiment("orders", "Orders four and five", SETUP, partial(_cells, n_seeds, n_others), measured, _report)


def main() -> None:
    parser = parser_of("orders", __doc__)
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--others", type=int, default=2, help="seeds for the other methods")
    options = parser.parse_args()
    grid = experiment(options.seeds, options.others)
    show("orders", options, [grid], f"## {grid.title}\n{SETUP} {COLUMNS}")


if __name__ == "__main__":
    main()
