"""Run pyriemann's own tests of approximate joint diagonalization with `codiag.drop_in.ajd` in place of theirs.

``python -m benchmarks.peers_ajd FILE``, where FILE is ``tests/test_geometry_ajd.py`` (``test_utils_ajd.py`` up to 0.11)
of pyriemann's source distribution; pyriemann itself must be installed. Its fixtures are not distributed: those here are
written from what the tests ask of them, around pyriemann's own generator of random matrices.
"""

from __future__ import annotations

import collections
import functools
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.measure import keep, table
from codiag.drop_in import ajd


class Fixtures:
    """What the tests take from a conftest that is not distributed, and the count of what became of them."""

    def __init__(self) -> None:
        self.outcomes: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or report.outcome != "passed":
            self.outcomes[report.nodeid.split("::")[-1]] = report.outcome

    @pytest.fixture
    def get_mats(self) -> Callable[..., np.ndarray]:
        return _random_matrices

    @pytest.fixture
    def get_mats_params(self) -> Callable[..., tuple[np.ndarray, np.ndarray, np.ndarray]]:
        return functools.partial(_random_matrices, return_params=True, eigvecs_same=True)

    @pytest.fixture
    def get_weights(self) -> Callable[[int], np.ndarray]:
        return lambda n: 1 + np.random.default_rng(1).uniform(size=n)


def _random_matrices(n: int, size: int, kind: str, **options: Any) -> Any:
    """Return random matrices by pyriemann's own generator: without common factors, unless the options say so."""
    from pyriemann.datasets import make_matrices

    return make_matrices(n, size, kind, np.random.RandomState(1234), **options)


def run(path: Path) -> str:
    """Put our functions into the module that the tests import from, and run the tests."""
    try:
        from pyriemann.geometry import ajd as theirs
    except ImportError:  # up to 0.11
        from pyriemann.utils import ajd as theirs
    for name in ajd.__all__:
        setattr(theirs, name, getattr(ajd, name))
    conftest = types.ModuleType("conftest")
    conftest.approx, conftest.assert_array_equal = pytest.approx, np.testing.assert_array_equal  # type: ignore[attr-defined]
    sys.modules["conftest"] = conftest
    fixtures = Fixtures()
    pytest.main(["-q", "-p", "no:cacheprovider", "--noconftest", "--rootdir", str(path.parent), str(path)], [fixtures])
    return report(fixtures.outcomes)


def report(outcomes: dict[str, str]) -> str:
    counts: collections.Counter[tuple[str, str]] = collections.Counter()
    for name, outcome in outcomes.items():
        counts["complex" if "hpd" in name else "real", outcome] += 1
    results = ("passed", "failed", "skipped")
    rows = [(kind, *(counts[kind, result] for result in results)) for kind in ("real", "complex")]
    failures = [name for name, outcome in outcomes.items() if outcome == "failed"]
    return (
        "## pyriemann's tests of joint diagonalization\n`codiag.drop_in.ajd` in place of `pyriemann.geometry.ajd`, "
        "with the fixtures of `benchmarks/peers_ajd.py`.\n\n"
        + table(("matrices", *results), rows)
        + f"\n\nFailed: {', '.join(failures) or 'none'}."
    )


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    text = run(Path(sys.argv[1]).resolve())
    keep("peers ajd", "python -m benchmarks.peers_ajd tests/test_geometry_ajd.py", text)
    print(text)
