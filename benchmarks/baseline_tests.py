"""Run other libraries' own tests with ours in place: ``python -m benchmarks.baseline_tests tensorly``.

The tests come with the library that is installed. This module is also the plugin of pytest that puts our functions in
before the tests are imported, and counts.
"""

from __future__ import annotations

import argparse
import collections
import importlib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.measure import keep, table

RESULT = "CODIAG_PEERS_RESULT"
BASELINE = "CODIAG_PEERS_NAME"
TESTS = {
    "tensorly": (
        "decomposition/tests/test_cp.py",
        "decomposition/tests/test_parafac2.py",
        "metrics/tests",
        "tests/test_cp_tensor.py",
        "regression/tests",
    )
}
"""Where the tests are that call what we replace."""


def replace_tensorly() -> None:
    """Put our functions and classes wherever TensorLy has its own."""
    from codiag import drop_in

    for name in ("decomposition._cp", "decomposition._nn_cp", "decomposition", "decomposition._parafac2"):
        module: Any = importlib.import_module(f"tensorly.{name}")
        for ours in drop_in.__all__:
            if hasattr(module, ours):
                setattr(module, ours, getattr(drop_in, ours))


REPLACE: dict[str, Callable[[], None]] = {"tensorly": replace_tensorly}


def pytest_configure() -> None:
    """Put our functions in, as a plugin of pytest."""
    if BASELINE in os.environ:
        REPLACE[os.environ[BASELINE]]()


def pytest_runtest_logreport(report: Any) -> None:
    """Keep the outcome of every test, as a plugin of pytest: a line each, so that nothing is lost by a kill."""
    if hasattr(report, "wasxfail"):  # what its authors do not expect to pass counts neither way
        return
    if RESULT in os.environ and (report.when == "call" or (report.when == "setup" and not report.passed)):
        reason = "" if report.longrepr is None else _reason(report)
        with Path(os.environ[RESULT]).open("a") as file:
            file.write(json.dumps([report.nodeid, report.outcome, reason]) + "\n")


def _reason(report: Any) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    return (crash.message if crash else str(report.longrepr)).split("\n")[0]


def run(baseline: str, options: list[str]) -> list[tuple[str, str, str]]:
    """Return test, outcome and reason of all tests of a library, run by pytest in a process of its own."""
    package = Path(str(importlib.import_module(baseline).__file__)).parent
    paths = [str(package / path) for path in TESTS[baseline]]
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "outcomes"
        result.touch()
        command = [sys.executable, "-m", "pytest", "-q", "-c", os.devnull, f"--rootdir={package}"]
        command += ["-p", "no:cacheprovider", "-p", "benchmarks.baseline_tests", *options, *paths]
        here = Path(__file__).parents[1]
        subprocess.run(command, cwd=here, env=os.environ | {RESULT: str(result), BASELINE: baseline}, check=False)
        return [tuple(json.loads(line)) for line in result.read_text().splitlines()]


def report(baseline: str, outcomes: list[tuple[str, str, str]]) -> str:
    """Return the counts as Markdown: by file, and why the rest fails."""
    by_file: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for test, result, _ in outcomes:
        by_file[test.split("::")[0]][result] += 1
    total = sum(by_file.values(), collections.Counter())
    rows = [(name, count["passed"], count.total()) for name, count in sorted(by_file.items())]
    rows.append(("all", total["passed"], total.total()))
    reasons = collections.Counter(_kind(reason) for _, result, reason in outcomes if result == "failed")
    why = "\n".join(f"- {count}: `{reason}`" for reason, count in reasons.most_common())
    title = f"## Tests of {baseline} {importlib.import_module(baseline).__version__}, with ours in place\n"
    return title + table(("tests", "passed", "of"), rows) + ("\n\nWhat fails, and how often:\n\n" + why if why else "")


def _kind(reason: str) -> str:
    """Return a reason without its numbers, so that the like are counted together."""
    return re.sub(r"-?\d+(\.\d+)?(e[+-]?\d+)?", "#", reason)[:160]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.baseline_tests", description=__doc__)
    parser.add_argument("baseline", choices=sorted(TESTS))
    parser.add_argument("--keep", action="store_true", help="write the counts to RESULTS.md")
    options, rest = parser.parse_known_args()
    text = report(options.baseline, run(options.baseline, rest))
    print(text)
    if options.keep:
        keep(f"baselines {options.baseline}", f"python -m benchmarks.baseline_tests {options.baseline}", text)


if __name__ == "__main__":
    main()
