"""Run crowd-kit's own tests of Dawid and Skene's model with `codiag.drop_in.crowdkit` in place of theirs.

``python -m benchmarks.baseline_crowdkit FILE``, FILE being ``tests/aggregation/test_ds_aggregation.py`` of
crowd-kit's repository, with ``tests/conftest.py`` above it; they are not distributed.
Crowd-kit itself must be installed.
"""

from __future__ import annotations

import collections
import importlib
import os
import sys
from pathlib import Path

import pytest

from benchmarks.measure import keep, table
from codiag.drop_in import crowdkit


class Outcomes:
    """The count of what became of the tests, as a plugin of pytest."""

    def __init__(self) -> None:
        self.by_test: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or report.outcome != "passed":
            self.by_test[report.nodeid.split("::", 1)[-1]] = report.outcome


def run(path: Path, *, ours: bool) -> dict[str, str]:
    """Return the outcomes of the tests, with our classes in the module that they import from, or with theirs."""
    theirs = importlib.import_module("crowdkit.aggregation")
    kept = {name: getattr(theirs, name) for name in crowdkit.__all__}
    for name in crowdkit.__all__:
        setattr(theirs, name, getattr(crowdkit, name) if ours else kept[name])
    sys.modules.pop(path.stem, None)  # imported anew, so that it takes the classes that are there now
    outcomes = Outcomes()
    pytest.main(
        ["-q", "-p", "no:cacheprovider", "-c", os.devnull, f"--rootdir={path.parents[1]}", str(path)], [outcomes]
    )
    for name, value in kept.items():
        setattr(theirs, name, value)
    return outcomes.by_test


def report(outcomes: dict[str, dict[str, str]]) -> str:
    rows = []
    for name, by_test in outcomes.items():
        counts = collections.Counter(by_test.values())
        rows.append((name, *(counts[result] for result in ("passed", "failed", "skipped"))))
    failures = [
        f"{test} ({name})" for name, by_test in outcomes.items() for test, one in by_test.items() if one == "failed"
    ]
    return (
        "## crowd-kit's tests of Dawid and Skene's model\n`codiag.drop_in.crowdkit` in place of `DawidSkene` and "
        "`OneCoinDawidSkene` of `crowdkit.aggregation`, and these themselves.\n\n"
        + table(("", "passed", "failed", "skipped"), rows)
        + f"\n\nFailed: {', '.join(failures) or 'none'}."
    )


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    file = Path(sys.argv[1]).resolve()
    text = report({name: run(file, ours=ours) for name, ours in (("codiag", True), ("crowd-kit", False))})
    keep("baselines crowdkit", "python -m benchmarks.baseline_crowdkit tests/aggregation/test_ds_aggregation.py", text)
    print(text)
