"""What importing codiag, and asking for its help, costs beside NumPy and SciPy."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time

from benchmarks.measure import publish, table

REFERENCE = "import numpy, scipy.linalg"
STATEMENTS = (REFERENCE, "import codiag", "from codiag import factorize", "codiag --help")


def seconds(statement: str) -> float:
    """Return the CPU time of a fresh interpreter that runs a statement, or the command line, and ends."""
    arguments = ["-m", *statement.split()] if statement.startswith("codiag ") else ["-c", statement]
    before = os.times()
    subprocess.run([sys.executable, *arguments], capture_output=True, check=True)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def run(repeats: int = 15) -> str:
    """Measure all statements in turn, so that other work on the machine slows all of them."""
    columns: dict[str, list[float]] = {statement: [] for statement in STATEMENTS}
    for _ in range(repeats):
        for statement, times in columns.items():
            times.append(seconds(statement))
            time.sleep(0.01)
    medians = {statement: statistics.median(times) for statement, times in columns.items()}
    rows = [(f"`{name}`", f"{1e3 * value:.0f}", f"{value / medians[REFERENCE]:.2f}") for name, value in medians.items()]
    headings = ("statement", "ms", "relative")
    return f"## Import\nCPU time, median of {repeats} fresh interpreters, start of Python included.\n\n" + table(
        headings, rows
    )


if __name__ == "__main__":
    publish("import", "python -m benchmarks.imports", run)
