"""Change each constant of the search to nonsense, and see whether a test fails: ``python tests/mutation.py``.

Constants are the numbers with a name in `least_squares`, `starts` and `search`; `MUTANTS` has a wrong value for each,
and the tests that must fail with it. The package is copied and changed there. ``--keep`` writes the table to
``benchmarks/RESULTS.md``; names of constants as arguments restrict the run to these.
"""

from __future__ import annotations

import argparse
import ast
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "codiag"
PACKAGES = ("least_squares", "starts", "search")
PLAIN = (0, 1, 2, 3, 4, 6, 0.5, 1.5)
"""Numbers that may stand in formulas without a name."""


class Mutant(NamedTuple):
    """A wrong value of a constant, and the tests one of which must fail with it."""

    value: str
    tests: str


MUTANTS = {
    "ROUNDING": Mutant("1e-3", "tests/least_squares"),
    "TOLERANCE": Mutant("1e-2", "tests/least_squares"),
    "NEGLIGIBLE": Mutant("0.5", "tests/search tests/least_squares"),
    "INSIGNIFICANT": Mutant("1e6", "tests/least_squares/test_noise.py"),
    "SLOW": Mutant("0.0", "tests/search tests/least_squares"),
    "ROUGHEST": Mutant("1e4", "tests/search tests/least_squares"),
    "FIRST_DAMPING": Mutant("1e6", "tests/search tests/least_squares"),
    "DEGENERATE_RATIO": Mutant("1e9", "tests/search tests/least_squares"),
    "BRIEF_SWEEPS": Mutant("1", "tests/search tests/least_squares"),
    "BRIEF_STEP": Mutant("1.0", "tests/search tests/least_squares"),
    "MAX_SWEEPS": Mutant("1", "tests/search tests/least_squares"),
    "PER_UNKNOWN": Mutant("10**9", "tests/least_squares/test_host_steps.py"),
    "MOST_PRODUCTS": Mutant("1", "tests/search tests/least_squares"),
    "DIRECT_UNKNOWNS": Mutant("0", "tests/least_squares"),
    "LEVEL": Mutant("0.5", "tests/least_squares/test_noise.py"),
    "TRACY_WIDOM_QUANTILES": Mutant("{False: -20.0, True: -20.0}", "tests/least_squares/test_noise.py"),
    "N_FLIPS": Mutant("2", "tests/least_squares/test_noise.py"),
    "N_TERMS": Mutant("1", "tests/least_squares/test_noise.py"),
    "N_CANDIDATES": Mutant("1", "tests/least_squares/test_noise.py"),
    "UNLIKE": Mutant("1.1", "tests/least_squares/test_noise.py"),
    "MAX_UNKNOWNS": Mutant("0", "tests/starts"),
    "WEAK_RATIO": Mutant("1", "tests/search"),
    "MISSED_SHARE": Mutant("0.9", "tests/search"),
    "CERTAIN": Mutant("1.0", "tests/search"),
    "STEP_GROWTH": Mutant("0.0", "tests/starts"),
    "ROUNDS": Mutant("((4, 1),)", "tests/starts"),
    "VECTOR_ROUNDS": Mutant("((1, 1),)", "tests/factorize/test_each_together.py"),
    "MOST_WORK": Mutant("0", "tests/result/test_transform.py"),
    "MOST_READS": Mutant("1", "tests/tensors/test_scale.py"),
    "SUSPECT": Mutant("10.0", "tests/diagonalize/test_ties.py"),
}


def constants() -> dict[str, Path]:
    """Return the file of each constant: a name in capitals whose value is a number, or numbers."""
    found = {}
    for package in PACKAGES:
        for path in sorted((SOURCE / package).glob("*.py")):
            for node in ast.parse(path.read_text()).body if path.name != "_budget.py" else ():  # prices, not thresholds
                if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and _has_number(node.value):
                    found[node.targets[0].id] = path
    return found


def unnamed() -> list[str]:
    """Return the numbers in formulas that are not `PLAIN`, as lines of a file."""
    places = []
    for package in PACKAGES:
        for path in sorted((SOURCE / package).glob("*.py")):
            named = [node for node in ast.parse(path.read_text()).body if isinstance(node, ast.Assign)]
            lines = {line for node in named for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)}
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Constant) and type(node.value) in (int, float) and node.lineno not in lines:
                    places += [f"{package}/{path.name}:{node.lineno}: {node.value}"] if node.value not in PLAIN else []
    return places


def _has_number(value: ast.expr) -> bool:
    calls = [node for node in ast.walk(value) if isinstance(node, ast.Call) and "finfo" not in ast.unparse(node)]
    numbers = [node for node in ast.walk(value) if isinstance(node, ast.Constant) and type(node.value) in (int, float)]
    return bool(numbers) and not calls


class Verdict(NamedTuple):
    """Whether a test has failed with a mutant, and which one did first."""

    name: str
    killed: bool
    first: str
    seconds: float


def verdict(name: str, path: Path) -> Verdict:
    """Run the tests of a constant on a copy of the package in which it has another value."""
    mutant, begin = MUTANTS[name], time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(ROOT / "src", Path(folder) / "src", ignore=shutil.ignore_patterns("__pycache__"))
        copied = Path(folder) / "src" / path.relative_to(ROOT / "src")
        text, count = re.subn(rf"(?m)^{name} = .*$", f"{name} = {mutant.value}", copied.read_text())
        if count != 1:
            raise ValueError(f"{name} must be assigned once in {path.name}")
        copied.write_text(text)
        search = os.pathsep.join([str(Path(folder) / "src"), str(ROOT)])
        environment = os.environ | {"PYTHONPATH": search, "OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *mutant.tests.split()]
        run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    failed = re.findall(r"(?m)^(?:FAILED|ERROR) (\S+)", run.stdout)
    first = failed[0] if failed else ""
    return Verdict(name, run.returncode == 1 and bool(first), first, time.perf_counter() - begin)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python tests/mutation.py", description=__doc__)
    parser.add_argument("names", nargs="*", help="constants; by default all of them")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--keep", action="store_true", help="write the table to RESULTS.md")
    options = parser.parse_args()
    chosen = {name: path for name, path in constants().items() if not options.names or name in options.names}
    rows = []
    with ThreadPoolExecutor(options.jobs) as pool:
        for result in pool.map(lambda item: verdict(*item), chosen.items()):
            package = chosen[result.name].parent.name
            value, shown = MUTANTS[result.name].value, f"`{result.first}`" if result.killed else "**survived**"
            rows.append((f"`{result.name}`", package, f"`{value}`", shown))
            print(*rows[-1], f"{result.seconds:.0f} s", flush=True)  # noqa: T201
    if options.keep:
        sys.path.insert(0, str(ROOT))
        from benchmarks.measure import keep, table

        heading = "## Constants of the search, each changed to nonsense"
        killed = sum("survived" not in row[-1] for row in rows)
        text = f"{heading}\n{killed} of {len(rows)} mutants are killed.\n\n" + table(
            ("constant", "package", "value in the mutant", "the first test that fails"), rows
        )
        keep("mutation", "python tests/mutation.py --keep", text)


if __name__ == "__main__":
    main()
