"""Measure, and rewrite RESULTS.md: ``make bench`` in minutes, ``make bench-full`` for the whole.

Grids resume from where they stopped (``benchmarks/runs``). The accelerator and the models have commands of their own,
``python -m benchmarks.device`` and ``python -m benchmarks.models``.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from benchmarks import scale, speed
from benchmarks.grid import Grid
from benchmarks.grids import FULL, SMALL
from benchmarks.measure import publish
from benchmarks.solvers import Solver, all_solvers
from experiments.drawing import draw_figure
from experiments.reports import sections
from experiments.runs import read, run

HERE = Path(__file__).parent


def run_grid(grid: Grid, solvers: Mapping[str, Solver], folder: Path) -> str:
    """Run what has not been run yet, draw the figure, and return the tables."""
    experiment = grid.experiment(solvers)
    failures = run([experiment], folder / "runs")
    report = experiment.report(read(experiment, folder / "runs"))
    picture = f"{grid.name.replace(' ', '-')}.png"
    draw_figure(report.figures[0], folder / picture)
    return "\n\n".join([f"## {experiment.title}\n{experiment.setup}", *failures, *sections(report, [picture])])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", help="grids to run; by default all of the chosen size")
    parser.add_argument("--full", action="store_true", help="the whole, hours rather than minutes")
    baseline = "another baseline: a function of a tensor, a rank and a seed that returns factors"
    parser.add_argument("--baseline", action="append", default=[], metavar="MODULE:FUNCTION", help=baseline)
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # for this program: how well everybody did is what it measures
    command = "make bench-full" if options.full else "make bench"
    solvers = all_solvers(options.baseline)
    for grid in FULL if options.full else SMALL:
        if not options.names or grid.name in options.names:
            whole = replace(grid, methods=[*grid.methods, *options.baseline])
            publish(grid.name, command, partial(run_grid, whole, solvers, HERE))
    if options.names:
        return
    parts: dict[str, Callable[[], str]] = {"scale": scale.run}
    if options.full:
        parts |= {"speed": speed.run, "scale": partial(scale.run, ("svd", "random"))}
    for name, work in parts.items():
        publish(name, command, work)


if __name__ == "__main__":
    main()
