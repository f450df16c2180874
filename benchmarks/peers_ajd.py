"""Run pyriemann's own tests of approximate joint diagonalization with our diagonalizers in place of theirs.

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
from codiag.diagonalize import UWEDGE, Diagonalizer, OrthogonalNewton

Result = tuple[np.ndarray, np.ndarray]
LATER = {"init": "a start of one's own", "hpd": "complex matrices"}
"""What is not offered yet, by what the name of a test says."""


def _solve(method: Diagonalizer, matrices: np.ndarray, sample_weight: np.ndarray | None = None) -> Result:
    """Return (V, D) with D = V X V^T, the convention of pyriemann for all but `rjd`."""
    if sample_weight is not None and not np.all(np.asarray(sample_weight) > 0):
        raise ValueError("weights must be strictly positive")
    inverse = method(matrices, weights=sample_weight, seed=0).inverse
    return inverse, inverse @ matrices @ inverse.T


def _refuse_start(init: object) -> None:
    if init is not None:
        raise NotImplementedError("a start of one's own is not offered")


def _step(eps: float) -> float:
    """Return the largest step to stop at; their bound is on what a sweep gains, which is of the order of its square."""
    return min(eps, 1e-8)


def uwedge(X: np.ndarray, *, init: object = None, eps: float = 1e-7, n_iter_max: int = 100) -> Result:  # noqa: N803
    _refuse_start(init)
    return _solve(UWEDGE(tol=_step(eps), max_sweeps=n_iter_max), X)


def ajd_pham(
    X: np.ndarray,  # noqa: N803
    *,
    init: object = None,
    eps: float = 1e-6,
    n_iter_max: int = 20,
    sample_weight: Any = None,
) -> Result:
    _refuse_start(init)
    return _solve(UWEDGE(tol=_step(eps), max_sweeps=n_iter_max, statistical_tol=0.0), X, sample_weight)


def rjd(X: np.ndarray, *, init: object = None, eps: float = 1e-8, n_iter_max: int = 100) -> Result:  # noqa: N803
    _refuse_start(init)
    inverse, diagonal = _solve(OrthogonalNewton(tol=_step(eps), max_sweeps=n_iter_max), X)
    return inverse.T, diagonal


NAMES: dict[str, Callable[..., Result]] = {"rjd": rjd, "ajd_pham": ajd_pham, "uwedge": uwedge}


def ajd(X: np.ndarray, method: Any = "ajd_pham", init: object = None, **options: Any) -> Result:  # noqa: N803
    function = NAMES.get(method) if isinstance(method, str) else method
    if not callable(function):
        raise ValueError(f"method must be one of {', '.join(NAMES)}, or a function; got {method!r}")
    return function(X, init=init, **options)


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
    for name, function in {**NAMES, "ajd": ajd}.items():
        setattr(theirs, name, function)
    conftest = types.ModuleType("conftest")
    conftest.approx, conftest.assert_array_equal = pytest.approx, np.testing.assert_array_equal  # type: ignore[attr-defined]
    sys.modules["conftest"] = conftest
    fixtures = Fixtures()
    pytest.main(["-q", "-p", "no:cacheprovider", "--noconftest", "--rootdir", str(path.parent), str(path)], [fixtures])
    return report(fixtures.outcomes)


def report(outcomes: dict[str, str]) -> str:
    counts: collections.Counter[tuple[str, str]] = collections.Counter()
    for name, outcome in outcomes.items():
        later = "hpd" if "hpd" in name else "init" if name.startswith("test_ajd_init[True") else ""
        counts[LATER.get(later, "the rest"), outcome] += 1
    kinds = ["the rest", *LATER.values()]
    rows = [(kind, counts[kind, "passed"], counts[kind, "failed"], counts[kind, "skipped"]) for kind in kinds]
    failures = [name for name, outcome in outcomes.items() if outcome == "failed"]
    return (
        "## pyriemann's tests of joint diagonalization\n`UWEDGE` in place of `uwedge` and `ajd_pham`, "
        "`OrthogonalNewton` in place of `rjd`, with the fixtures of `benchmarks/peers_ajd.py`.\n\n"
        + table(("tests of", "passed", "failed", "skipped"), rows)
        + f"\n\nFailed: {', '.join(failures) or 'none'}."
    )


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    text = run(Path(sys.argv[1]).resolve())
    keep("peers ajd", "python -m benchmarks.peers_ajd tests/test_geometry_ajd.py", text)
    print(text)
