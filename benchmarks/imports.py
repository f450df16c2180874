"""What importing codiag costs beyond NumPy and SciPy."""

from __future__ import annotations

import statistics
import subprocess
import sys

from benchmarks.measure import table

STATEMENTS = ("import numpy, scipy, scipy.optimize", "import codiag")


def seconds(statement: str, repeats: int = 9) -> float:
    code = f"import time; start = time.perf_counter(); {statement}; print(time.perf_counter() - start)"
    runs = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True) for _ in range(repeats)
    ]
    return statistics.median(float(run.stdout) for run in runs)


def run() -> str:
    times = {statement: seconds(statement) for statement in STATEMENTS}
    rows = [(f"`{statement}`", f"{1e3 * time:.0f}") for statement, time in times.items()]
    rows.append(("difference", f"{1e3 * (times[STATEMENTS[1]] - times[STATEMENTS[0]]):.0f}"))
    return "## Import\nWall-clock, median of nine fresh interpreters.\n\n" + table(("statement", "ms"), rows)
