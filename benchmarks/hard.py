"""Tensors with many optima: more components than dimensions, and strong noise: ``python -m benchmarks.hard``.

Every tensor is fitted by `codiag.factorize`, by least squares from the truth (the oracle), and by so many random starts
of plain least squares and of TensorLy's orthogonalised alternating least squares. The lowest relative error of all of
them is the best known; a fit that comes within 0.1 % of it is a success.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib.util import find_spec

import numpy as np

from benchmarks.grid import is_symmetric
from benchmarks.trials import parser_of, show
from codiag.methods import NLS
from codiag.synthetic import PlantedTensor, noisy_tensor, unit_factor
from codiag.tensors import FactoredTensor, symmetrize
from experiments.fitting import silent_fit
from experiments.records import Cell, Record, Values, combinations, select
from experiments.reports import Report, Table
from experiments.runs import Experiment, seed_of

EXACT = 1e-8
"""Relative error up to which a fit without noise is a success."""

WITHIN = 1.001
"""Relative error of a success, relative to the best known."""

BOTH = ("free", "symmetric")
NOISES = (0.0, 1e-3, 1e-2, 5e-2)


@dataclass(frozen=True)
class Group:
    """Tensors of several sizes and ranks, with weights N(0, 1) or equal to one."""

    title: str
    sizes: Sequence[tuple[int, int]]  # size of every mode, rank
    noises: Sequence[float]
    weights: str = "normal"
    kinds: Sequence[str] = BOTH

    def places(self) -> list[Cell]:
        axes = {"kind": self.kinds, "noise": self.noises}
        sizes = [{"size": size, "rank": rank, "weights": self.weights} for size, rank in self.sizes]
        return [one | other for one in sizes for other in combinations(axes)]


FRONTIER = (
    "Ever more components: generic ones of 10 x 10 x 10 are unique below 1000 / 28 = 35, symmetric ones below "
    "220 / 10 = 22, where they have as many parameters as the tensor has entries"
)

GROUPS: Mapping[str, Group] = {
    "overcomplete": Group("More components than dimensions, weights N(0, 1)", ((20, 26), (20, 30), (30, 45)), NOISES),
    "equal": Group("Equal weights", ((10, 14), (20, 40), (30, 60)), (1e-3, 1e-2), "equal"),
    "noise": Group("As many components as dimensions, strong noise", ((20, 20), (30, 30), (50, 50)), (0.05, 0.2, 0.5)),
    "few": Group("Few components, very strong noise", ((30, 10),), (0.3, 1.0)),
    "frontier": Group(FRONTIER, tuple((10, k) for k in range(10, 35, 2)), (0.0, 1e-3)),
}


def planted(place: Cell, seed: int) -> PlantedTensor:
    """Draw a tensor; noise is a share of the norm."""
    shape, symmetric = (place["size"],) * 3, place["kind"] == "symmetric"
    if place["weights"] == "normal":
        return noisy_tensor(shape, place["rank"], symmetric=symmetric, noise=place["noise"], rng=seed)
    rng = np.random.default_rng(seed)
    factors = [unit_factor(shape[0], place["rank"], rng) for _ in range(1 if symmetric else 3)]
    factors, weights = factors * (3 // len(factors)), np.ones(place["rank"])
    clean, errors = FactoredTensor(weights, factors).to_dense(), rng.standard_normal(shape)
    errors = symmetrize(errors) if symmetric else errors
    scale = place["noise"] * np.linalg.norm(clean) / np.linalg.norm(errors)
    return PlantedTensor(clean + scale * errors, weights, tuple(factors))


@lru_cache(maxsize=1)
def _trial(place: tuple[tuple[str, object], ...], index: int) -> tuple[int, PlantedTensor]:
    seed = seed_of("hard", dict(place), index)
    return seed, planted(dict(place), seed)


Solve = Callable[[PlantedTensor, int], float]
"""From a tensor and a seed to the relative error that is left."""


def _ours(problem: PlantedTensor, seed: int) -> float:
    return silent_fit(problem.tensor, problem.weights.size, symmetric=is_symmetric(problem), seed=seed).relative_error


def _oracle(problem: PlantedTensor, seed: int) -> float:
    truth = NLS(init=(problem.weights, problem.factors), max_replacements=0, max_iter=1000)
    symmetric = is_symmetric(problem)
    fit = silent_fit(problem.tensor, problem.weights.size, method=truth, symmetric=symmetric, seed=seed)
    return fit.relative_error


def _random_start(problem: PlantedTensor, seed: int) -> float:
    return silent_fit(
        problem.tensor, problem.weights.size, method=NLS(max_replacements=0), symmetric=is_symmetric(problem), seed=seed
    ).relative_error


def _tensorly(problem: PlantedTensor, seed: int) -> float:
    from tensorly.decomposition import parafac

    options = {"init": "random", "orthogonalise": 5, "n_iter_max": 1000, "random_state": seed % 2**31}
    weights, factors = parafac(problem.tensor, problem.weights.size, **options)
    found = FactoredTensor(np.asarray(weights), [np.asarray(factor) for factor in factors], symmetric=False)
    return float(np.linalg.norm(problem.tensor - found.to_dense()) / np.linalg.norm(problem.tensor))


SOLVERS: Mapping[str, Solve] = {"auto": _ours, "oracle": _oracle, "nls": _random_start, "tensorly": _tensorly}
NOT_PLACES = ("seed", "method", "starts")
STARTED = ("nls", "tensorly")
"""Solvers of which several starts are taken."""


def _measured(cell: Cell, _: int) -> Values:
    """Return the relative error and the CPU seconds of every start; every method sees the same tensor."""
    place = tuple((axis, value) for axis, value in cell.items() if axis not in NOT_PLACES)
    seed, problem = _trial(place, cell["seed"])
    values: Values = {}
    for start in range(cell["starts"]):
        begin = time.thread_time()
        values[f"error {start}"] = SOLVERS[cell["method"]](problem, seed_of("start", seed, start))
        values[f"seconds {start}"] = time.thread_time() - begin
    return values


HEADINGS = ("tensor", "noise", "seeds", "success", "CPU s", "worst", "below oracle", "a start of NLS", "of TensorLy")
COLUMNS = (
    "Success: share of seeds within 0.1 % of the best known relative error, the lowest of all methods and starts, or "
    f"below {EXACT:g}; CPU seconds: median and worst over seeds, one thread; below oracle: seeds that end more than "
    "0.1 % below least squares from the truth; starts: share of them that succeed, median CPU seconds of one, and of "
    "one that succeeds."
)


def _report(records: Sequence[Record]) -> Report:
    places = [
        {axis: one.cell[axis] for axis in one.cell if axis not in ("seed", "method", "starts")} for one in records
    ]
    unlike = [place for index, place in enumerate(places) if place not in places[:index]]
    return Report([], [Table("By tensor", HEADINGS, [_row(place, select(records, **place)) for place in unlike])])


def _row(place: Cell, records: Sequence[Record]) -> tuple[str, ...]:
    seeds = sorted({one.cell["seed"] for one in records if one.cell["method"] == "auto"})
    best = {seed: min(map(_lowest, select(records, rng=seed))) for seed in seeds}
    ours = [select(records, rng=seed, method="auto")[0] for seed in seeds]
    oracle = {one.cell["seed"]: _lowest(one) for one in select(records, method="oracle")}
    below = sum(_lowest(one) * WITHIN < oracle.get(one.cell["seed"], 0.0) for one in ours)
    seconds = [one.values["seconds 0"] for one in ours]
    share = np.mean([_succeeds(_lowest(one), best[one.cell["seed"]]) for one in ours]) if ours else math.nan
    size, kind = place["size"], "" if place["kind"] == "free" else "symmetric "
    return (
        f"{kind}{size}^3, rank {place['rank']}" + (", equal weights" if place["weights"] == "equal" else ""),
        f"{place['noise']:g}",
        str(len(seeds)),
        f"{share:.0%}",
        f"{np.median(seconds):.2f}" if seconds else "",
        f"{max(seconds):.2f}" if seconds else "",
        str(below),
        *(_starts([one for one in select(records, method=name) if one.cell["seed"] in best], best) for name in STARTED),
    )


def _succeeds(error: float, best: float) -> bool:
    return error <= max(WITHIN * best, EXACT)


def _lowest(record: Record) -> float:
    return min(value for name, value in record.values.items() if name.startswith("error"))


def _starts(records: Sequence[Record], best: Mapping[int, float]) -> str:
    """Return how many starts of a baseline succeed, and how long they take."""
    runs = [
        (_succeeds(one.values[f"error {start}"], best[one.cell["seed"]]), one.values[f"seconds {start}"])
        for one in records
        for start in range(one.cell["starts"])
    ]
    if not runs:
        return ""
    good = [seconds for success, seconds in runs if success]
    return f"{len(good) / len(runs):.1%}, {np.median([seconds for _, seconds in runs]):.2f} s" + (
        f", {np.median(good):.2f} s" if good else ""
    )


def experiment(name: str, seeds: Sequence[int], methods: Sequence[str], n_starts: int) -> Experiment:
    """Return a group as what the harness runs: a record for every tensor and method, with all of its starts."""
    installed = [one for one in methods if one != "tensorly" or find_spec("tensorly") is not None]
    cells = [
        place | {"seed": seed, "method": method, "starts": n_starts if method in STARTED else 1}
        for place in GROUPS[name].places()
        for seed in seeds
        for method in installed
        if n_starts > 0 or method not in STARTED
    ]
    group = GROUPS[name]
    return Experiment(f"hard {name}", group.title, group.title, partial(_chosen, cells), _measured, _report)


def _chosen(cells: list[Cell], _quick: bool) -> list[Cell]:
    return cells


def _selected(one: Experiment, only: Sequence[str]) -> Experiment:
    """Return an experiment at those places whose description holds all of some words, such as "rank 26"."""

    def holds(cell: Cell) -> bool:
        words = ", ".join(f"{axis} {value:g}" if axis == "noise" else f"{axis} {value}" for axis, value in cell.items())
        return all(f"{word}," in f"{words}," for word in only)

    cells = [cell for cell in one.cells(False) if holds(cell)]
    return Experiment(one.name, one.title, one.setup, partial(_chosen, cells), one.measure, one.report)


def main() -> None:
    parser = parser_of("hard", __doc__)
    parser.add_argument("groups", nargs="*", default=list(GROUPS), metavar="GROUP", help=", ".join(GROUPS))
    parser.add_argument("--seeds", type=int, default=40, help="tensors of each kind")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--starts", type=int, default=50, help="random starts of each baseline; 0 for none")
    parser.add_argument("--methods", nargs="+", default=list(SOLVERS), choices=list(SOLVERS))
    parser.add_argument(
        "--only", nargs="+", default=[], help='places with these values, such as "rank 26" "noise 0.01"'
    )
    options = parser.parse_args()
    seeds = range(options.first, options.first + options.seeds)
    experiments = [
        _selected(experiment(name, seeds, options.methods, options.starts), options.only) for name in options.groups
    ]
    show("hard", options, experiments, "# Tensors with many optima", COLUMNS, titled=True)


if __name__ == "__main__":
    main()
