"""The command line of the fuzzer: ``python -m tests.fuzz --inputs 10000 --seed 0``."""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import sys
import tempfile

from codiag.tensors import Tensor

from .case import load_generators, make_case
from .known import is_known
from .runner import Plan, Summary, run
from .watch import LIMIT, call, examine


def main() -> int:
    """Run inputs, print what was found, and return 1 where there was anything."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--inputs", type=int, help="how many; 1000 unless --seconds is given")
    parser.add_argument("--seconds", type=float, help="stop after so many seconds")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, metavar="INDEX", help="run one input, and show it")
    parser.add_argument("--jobs", type=int, default=1, help="worker processes")
    parser.add_argument("--areas", default="", help="only these, between commas: " + _areas())
    parser.add_argument("--all", action="store_true", help="count the findings of tests/fuzz/known.py too")
    parser.add_argument("--verbose", action="store_true", help="print findings as they come")
    options = parser.parse_args()
    if options.only is not None:
        return show(options.seed, options.only)
    inputs = 1000 if options.inputs is None and options.seconds is None else options.inputs
    plan = Plan(options.seed, inputs, options.seconds, jobs=options.jobs, areas=options.areas)
    return report(collect(plan, Summary(count_known=options.all), options.verbose), options.verbose)


def collect(plan: Plan, summary: Summary, verbose: bool) -> Summary:
    """Run a plan, to its end or until it is interrupted, and count what comes of it."""
    with contextlib.suppress(KeyboardInterrupt):
        for outcome in run(plan):
            summary.add(outcome)
            for finding in outcome.findings if verbose else ():
                print(outcome.index, "known:" if is_known(finding) else "", *finding, flush=True)
            if sys.stderr.isatty():
                print(f"\r{summary.line()[:150]}", end="", file=sys.stderr)
    return summary


def report(summary: Summary, verbose: bool) -> int:
    """Print what was found by cause, and one line about the whole; return the exit status."""
    if summary.groups:
        print(summary.table())
    if summary.known:
        print(f"{summary.known} findings are on the list of known ones, tests/fuzz/known.py")
    if verbose:
        print(*(f"{area} {seconds:.0f} s" for area, seconds in summary.seconds.most_common()), sep=", ")
    print(summary.line())
    if summary.valid < summary.inputs / 2:
        print("fewer than half of the inputs were valid: generators must draw more that are")
        return 1
    return int(summary.findings > 0)


def show(seed: int, index: int) -> int:
    """Run one input in this process, and print it, its outcome and its findings."""
    registry = load_generators()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["CODIAG_FUZZ_FOLDER"] = folder
        generator, case = make_case(seed, index, registry)
        spoiled = f", with another {case.spoiled}" if case.spoiled else ""
        print(
            f"{case.function} ({generator.area}), {'valid' if case.valid else 'perhaps not valid'}{spoiled}", case.note
        )
        for name, value in case.arguments.items():
            print(f"{name} = {value!r}")
            if isinstance(value, Tensor) and math.prod(value.shape) < 1000:
                print(value.to_dense())
        outcome = examine(generator, case, index)
        if "endless" not in {finding.kind for finding in outcome.findings}:
            again = call(make_case(seed, index, registry)[1], LIMIT, deadly=False)
            print(f"raised {type(again.error).__name__}: {again.error}" if again.error else f"gave {again.result!r}")
    print(f"{outcome.seconds:.2f} s; {len(outcome.findings)} findings")
    for finding in outcome.findings:
        print(f"{finding.kind}: {finding.line} {finding.place}")
    return int(bool(outcome.findings))


def _areas() -> str:
    return ", ".join(sorted({generator.area for generator in load_generators().generators}))


if __name__ == "__main__":
    sys.exit(main())
