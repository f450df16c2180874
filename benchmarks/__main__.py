"""Measure, and rewrite RESULTS.md: ``make bench`` in minutes, ``make bench-full`` for the whole.

Grids resume from where they stopped (``benchmarks/runs``). The accelerator and the models have commands of their own,
``python -m benchmarks.device`` and ``python -m benchmarks.models``.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from threadpoolctl import threadpool_limits

from benchmarks import imports, robustness, scale, speed
from benchmarks.grid import run
from benchmarks.grids import FULL, SMALL
from benchmarks.measure import keep
from benchmarks.report import draw, tables
from benchmarks.solvers import all_solvers

HERE = Path(__file__).parent


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", help="grids to run; by default all of the chosen size")
    parser.add_argument("--full", action="store_true", help="the whole, hours rather than minutes")
    rival = "another rival: a function of a tensor, a rank and a seed that returns factors"
    parser.add_argument("--peer", action="append", default=[], metavar="MODULE:FUNCTION", help=rival)
    options = parser.parse_args()
    command = "make bench-full" if options.full else "make bench"
    solvers = all_solvers(options.peer)
    grids = [grid for grid in (FULL if options.full else SMALL) if not options.names or grid.name in options.names]
    for grid in grids:
        records = run(replace(grid, methods=[*grid.methods, *options.peer]), solvers, HERE / "runs")
        picture = f"{grid.name.replace(' ', '-')}.png"
        text = tables(grid, records) + f"\n\n![error against time]({picture})"
        draw(grid, records, HERE / picture)
        keep(grid.name, command, text)
        print(text, end="\n\n", flush=True)
    if options.names:
        return
    parts: dict[str, Callable[[], str]] = {"import": imports.run, "scale": scale.run}
    if options.full:
        parts |= {"speed": speed.run, "scale": partial(scale.run, ("svd", "random"))}
    for name, work in parts.items():
        with threadpool_limits(1):
            text = work()
        keep(name, command, text)
        print(text, end="\n\n", flush=True)
    if options.full:
        with threadpool_limits(1):
            robustness.main([])


if __name__ == "__main__":
    main()
