"""Missing entries and factors that are not negative: everybody on the same data, against least squares from the truth.

``python -m benchmarks.constrained --scenario all --seeds 50 --jobs 16 --out FOLDER`` resumes where it stopped. It
needs TensorLy and pyttb for the baselines; what is not installed is left out.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np

from benchmarks import constrained_il2
from benchmarks.constrained_baselines import SETTINGS, Task, is_installed, warmed
from benchmarks.trials import parser_of, show
from codiag import factor_error
from codiag.extending import Limits, minimize
from codiag.synthetic import PlantedTensor, fluorescence, noisy_tensor
from codiag.tensors import FactoredTensor
from experiments.records import Cell, Record, Values, combinations, select
from experiments.reports import Report, Table
from experiments.runs import Experiment, seed_of

ALL_SEEDS = sys.maxsize
"""For methods that are quick enough to be run on all seeds that are asked for."""


@dataclass(frozen=True)
class Scenario:
    """Problems for every combination of the axes, and how many seeds each method is given at most."""

    title: str
    make: Callable[..., PlantedTensor]  # called with the values of the axes and a seed; NaN is missing
    axes: Mapping[str, Sequence[Any]]
    methods: Mapping[str, int]
    nonnegative: bool = False

    def cells(self, n_seeds: int) -> list[Cell]:
        """Return every place on the axes with seeds and those of the methods that are installed."""
        methods = [name for name in self.methods if is_installed(name)]
        found = combinations({**self.axes, "seed": range(n_seeds), "method": methods})
        return [cell for cell in found if cell["seed"] < self.methods[cell["method"]]]


def complete(seed: int) -> PlantedTensor:
    return fluorescence(rng=seed)


def scattered(seed: int) -> PlantedTensor:
    return fluorescence(scatter=True, rng=seed)


def clipped(seed: int) -> PlantedTensor:
    return fluorescence(scatter=True, clip=True, rng=seed)


def at_random(shape: str, rank: int, missing: float, seed: int) -> PlantedTensor:
    """Draw a tensor with noise of 1 %, and entries missing at random."""
    size, order = map(int, shape.split("^"))
    planted = noisy_tensor((size,) * order, rank, noise=0.01, rng=seed)
    hidden = np.random.default_rng([seed, 1]).random(planted.tensor.shape) < missing
    return PlantedTensor(np.where(hidden, np.nan, planted.tensor), planted.weights, planted.factors)


MASKED = {"codiag": ALL_SEEDS, "codiag ALS": ALL_SEEDS, "TensorLy masked ALS": ALL_SEEDS, "pyttb masked GCP": ALL_SEEDS}
SCENARIOS = {
    "eem": Scenario(
        "Emission-excitation matrices, 15 x 40 x 25, rank 4, 2 % noise, non-negative",
        complete,
        {},
        {
            "codiag": ALL_SEEDS,
            "codiag ALS": ALL_SEEDS,
            "TensorLy HALS": ALL_SEEDS,
            "TensorLy AO-ADMM": ALL_SEEDS,
            "TensorLy multiplicative": 10,
        },
        nonnegative=True,
    ),
    "scatter": Scenario(
        "The same with bands of scatter missing",
        scattered,
        {},
        {"codiag": ALL_SEEDS, "codiag ALS": ALL_SEEDS, "TensorLy multiplicative": 20, "pyttb masked GCP": ALL_SEEDS},
        nonnegative=True,
    ),
    "random": Scenario(
        "Missing at random, 1 % noise",
        at_random,
        {"shape": ["20^3"], "rank": [5], "missing": [0.3, 0.6, 0.8, 0.9]},
        MASKED,
    ),
    "random50": Scenario(
        "Missing at random, 1 % noise, larger",
        at_random,
        {"shape": ["50^3"], "rank": [10], "missing": [0.3, 0.6, 0.8, 0.9]},
        {"codiag": ALL_SEEDS, "codiag ALS": 20, "TensorLy masked ALS": ALL_SEEDS, "pyttb masked GCP": ALL_SEEDS},
    ),
    "random100": Scenario(
        "Hardly anything observed, 1 % noise",
        at_random,
        {"shape": ["100^3"], "rank": [5], "missing": [0.95, 0.99]},
        {"codiag": ALL_SEEDS, "codiag ALS": 20, "TensorLy masked ALS": 10, "pyttb masked GCP": 20},
    ),
}


@dataclass(frozen=True, eq=False)
class _Trial:
    """One problem, and what least squares from the truth reaches under the same constraints."""

    planted: PlantedTensor
    task: Task
    objective: float
    error: float


@lru_cache(maxsize=2)
def _trial(scenario: str, place: tuple[tuple[str, Any], ...], index: int) -> _Trial:
    chosen = SCENARIOS[scenario]
    seed = seed_of(scenario, dict(place), index)
    planted = chosen.make(**dict(place), seed=seed)
    mask = np.isfinite(planted.tensor)
    given = None if mask.all() else mask.astype(float)
    start = seed_of("start", seed)  # not drawn like the truth
    task = Task(np.where(mask, planted.tensor, 0.0), planted.weights.size, given, chosen.nonnegative, start)
    truth = FactoredTensor(planted.weights, planted.factors, symmetric=False)
    found = minimize(task.problem, truth, Limits(max_iter=1000)).components
    return _Trial(planted, task, squared_residual(task, found), factor_error(found.factors, planted))


def squared_residual(task: Task, components: FactoredTensor) -> float:
    """Return the sum of squares that components leave of what was observed."""
    left = task.tensor - components.to_dense()
    return float(np.sum(left**2) if task.mask is None else np.sum(task.mask * left**2))


def _measured(scenario: str, cell: Cell, _: int) -> Values:
    """Return objective and error as ratios to the oracle's, and CPU time; every method sees the same data."""
    place = tuple((axis, value) for axis, value in cell.items() if axis not in ("seed", "method"))
    trial = _trial(scenario, place, cell["seed"])
    work = warmed(cell["method"])
    begin = time.process_time()
    factors = work(trial.task)
    seconds = time.process_time() - begin
    found = FactoredTensor(np.ones(trial.task.rank), factors, symmetric=False)
    objective = squared_residual(trial.task, found) / trial.objective
    lengths = [np.linalg.norm(factor, axis=0) for factor in factors]
    lost = not all(np.all(np.isfinite(length) & (length > 0)) for length in lengths)
    error = math.inf if lost else factor_error(factors, trial.planted) / trial.error
    return {"cpu": seconds, "objective": objective, "error": error, "success": float(objective <= 1.001)}


HEADINGS = ("method", "seeds", "at the optimum", "objective, worst", "error", "error, worst", "CPU s", "CPU s, worst")
COLUMNS = (
    "At the optimum: share of seeds whose objective is within 0.1 % of that of the oracle (least squares from the "
    "truth under the same constraints) or below it. Objective and error: ratios to the oracle's, median or worst. "
    "CPU: process time on one thread, median and worst."
)


def _report(records: Sequence[Record]) -> Report:
    places = [{axis: one.cell[axis] for axis in one.cell if axis not in ("seed", "method")} for one in records]
    tables = []
    for place in [place for index, place in enumerate(places) if place not in places[:index]]:
        here = select(records, **place)
        methods = dict.fromkeys(one.cell["method"] for one in here)
        rows = [_row(method, select(here, method=method)) for method in methods]
        tables.append(Table(", ".join(f"{axis} {value}" for axis, value in place.items()) or "All", HEADINGS, rows))
    return Report([], tables)


def _row(method: str, records: Sequence[Record]) -> tuple[str, ...]:
    cpu, objective, error, success = (
        np.array([one.values[name] for one in records]) for name in ("cpu", "objective", "error", "success")
    )
    return (
        method,
        str(len(records)),
        f"{np.mean(success):.0%}",
        f"{np.max(objective):.4g}",
        f"{np.median(error):.3f}",
        f"{np.max(error):.3g}",
        f"{np.median(cpu):.3f}",
        f"{np.max(cpu):.2f}",
    )


def _chosen(cells: list[Cell], _quick: bool) -> list[Cell]:
    return cells


def experiment(name: str, n_seeds: int) -> Experiment:
    """Return a scenario as what the harness runs."""
    scenario = SCENARIOS[name]
    cells = partial(_chosen, scenario.cells(n_seeds))
    return Experiment(name, scenario.title, f"{scenario.title}.", cells, partial(_measured, name), _report)


def main() -> None:
    parser = parser_of("constrained", __doc__)
    parser.add_argument("--scenario", nargs="+", default=["all"], choices=["all", *SCENARIOS, "il2"])
    parser.add_argument("--seeds", type=int, default=50)
    options = parser.parse_args()
    names = [*SCENARIOS, "il2"] if "all" in options.scenario else options.scenario
    experiments = [constrained_il2.experiment() if name == "il2" else experiment(name, options.seeds) for name in names]
    heading = "# Missing entries and constraints", f"{COLUMNS} {SETTINGS}"
    show("constrained", options, experiments, *heading, titled=True)


if __name__ == "__main__":
    main()
