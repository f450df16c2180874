"""The command line of benchmarks whose trials the harness runs: in parallel, and resumed where they stopped."""

from __future__ import annotations

import argparse
import math
import shlex
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

from benchmarks.measure import keep
from experiments.reports import sections
from experiments.runs import Experiment, read, run


def parser_of(module: str, description: str | None) -> argparse.ArgumentParser:
    """Return a parser with the options that all of these benchmarks have."""
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{module}", description=description)
    parser.add_argument("--jobs", type=int, default=0, help="processes; by default trials run in this one")
    parser.add_argument("--minutes", type=float, default=math.inf, help="no trial is begun after that time")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "runs", help="folder of the records")
    parser.add_argument("--keep", action="store_true", help="write the tables to RESULTS.md")
    return parser


def show(
    module: str,
    options: argparse.Namespace,
    experiments: Sequence[Experiment],
    *heading: str,
    titled: bool = False,
    shown: Sequence[Experiment] | None = None,
) -> None:
    """Run experiments; print what the records say, and keep it where that is asked for.

    Other experiments are `shown` where records of earlier runs belong to them, too; each has its title above it if they
    are several.
    """
    warnings.simplefilter("ignore")  # for this program: how well everybody did is what it measures
    parts = [*heading, *run(experiments, options.out, jobs=options.jobs, minutes=options.minutes)]
    for one in experiments if shown is None else shown:
        parts += [f"## {one.title}"] if titled else []
        parts += sections(one.report(read(one, options.out)), [])
    text = "\n\n".join(parts)
    print(text)
    if options.keep:
        command = shlex.join(["python", "-m", f"benchmarks.{module}", *sys.argv[1:]])
        keep(module.replace("_", "-"), command, text)
