"""Approximate joint diagonalization by `codiag.drop_in.ajd`, pyriemann and qndiag: pyriemann's own tests, and speed.

``python -m benchmarks.baseline_ajd FILE`` runs pyriemann's tests with our functions in place of theirs. FILE is
``tests/test_geometry_ajd.py`` (``test_utils_ajd.py`` up to 0.11) of pyriemann's source distribution; pyriemann itself
must be installed. Its fixtures are not distributed: those here are written from what the tests ask of them, around
pyriemann's own generator of random matrices.

``python -m benchmarks.baseline_ajd speed`` measures the settings of benchopt's benchmark of joint diagonalization:
100 matrices ``A diag(d_l) A^T + N_l N_l^T`` of size 5 and 40, A Gaussian, d uniform, and N Gaussian with a standard
deviation of .01 and .1. pyriemann and qndiag must be installed.
"""

from __future__ import annotations

import collections
import functools
import statistics
import sys
import time
import types
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.measure import keep, publish, table, timed
from codiag.drop_in import ajd

SETTINGS = [(size, noise) for size in (5, 40) for noise in (0.01, 0.1)]
SEEDS = range(27, 33)  # 27 is benchopt's
SAME = 1e-4
"""Relative difference of two objectives below which they count as the same."""

Rows = Callable[[np.ndarray], np.ndarray]


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
    for name, result in outcomes.items():
        counts["complex" if "hpd" in name else "real", result] += 1
    results = ("passed", "failed", "skipped")
    rows = [(kind, *(counts[kind, result] for result in results)) for kind in ("real", "complex")]
    failures = [name for name, result in outcomes.items() if result == "failed"]
    return (
        "## pyriemann's tests of joint diagonalization\n`codiag.drop_in.ajd` in place of `pyriemann.geometry.ajd`, "
        "with the fixtures of `benchmarks/baseline_ajd.py`.\n\n"
        + table(("matrices", *results), rows)
        + f"\n\nFailed: {', '.join(failures) or 'none'}."
    )


def simulated(size: int, noise: float, seed: int, n: int = 100) -> np.ndarray:
    rng = np.random.RandomState(seed)
    diagonals, mixing = rng.uniform(size=(n, size)), rng.randn(size, size)
    errors = noise * rng.randn(n, size, size)
    return (mixing * diagonals[:, None, :]) @ mixing.T + errors @ errors.transpose(0, 2, 1)


def negative_log_likelihood(rows: np.ndarray, matrices: np.ndarray) -> float:
    """Return the objective of Pham, and of benchopt."""
    entries = rows @ matrices @ rows.T
    logarithms = np.sum(np.log(np.einsum("lii->li", entries)), axis=1) - np.linalg.slogdet(entries)[1]
    return float(np.mean(logarithms) / 2)


def relative_energy(rows: np.ndarray, matrices: np.ndarray) -> float:
    """Return the off-diagonal energy in units of the diagonals, which compares the fixed points of U-WEDGE."""
    energy = np.sum((rows @ matrices @ rows.T) ** 2, axis=0)
    sizes = np.sqrt(np.diag(energy))
    return float(np.sum(energy / np.outer(sizes, sizes)) - len(energy))


def off_diagonal_energy(rows: np.ndarray, matrices: np.ndarray) -> float:
    entries = rows @ matrices @ rows.T
    return float(np.sum((entries * (1 - np.eye(len(rows)))) ** 2))


def pairs() -> dict[str, tuple[Rows, Rows, Callable[[np.ndarray, np.ndarray], float]]]:
    """Return, for each baseline, its function, ours, and the objective that both lower."""
    from pyriemann.geometry import ajd as theirs
    from qndiag import qndiag

    orthonormal = getattr(theirs, "jade", None) or (lambda matrices: (theirs.rjd(matrices)[0].T,))
    likely = functools.partial(theirs.ajd_pham, n_iter_max=100)
    return {
        "Pham, pyriemann": (lambda x: likely(x)[0], lambda x: ajd.ajd_pham(x)[0], negative_log_likelihood),
        "Pham, qndiag": (lambda x: qndiag(x)[0], lambda x: ajd.ajd_pham(x)[0], negative_log_likelihood),
        "U-WEDGE, pyriemann": (lambda x: theirs.uwedge(x)[0], lambda x: ajd.uwedge(x)[0], relative_energy),
        "Jade, pyriemann": (lambda x: orthonormal(x)[0], lambda x: ajd.jade(x)[0], off_diagonal_energy),
    }


def compared(size: int, noise: float, name: str) -> tuple[str, ...]:
    """Measure one baseline in one setting: medians over seeds, and how often we end at the same objective or lower."""
    theirs, ours, objective = pairs()[name]
    repeats = 5 if size < 10 else 1
    times, levels = [], []
    for seed in SEEDS:
        matrices = simulated(size, noise, seed)
        calls = [functools.partial(function, matrices) for function in (theirs, ours)]
        runs = [[timed(call, time.process_time) for call in calls] for _ in range(repeats)]
        times.append([min(run[k][1] for run in runs) for k in range(2)])
        levels.append([objective(runs[0][k][0], matrices) for k in range(2)])
    medians = [1e3 * statistics.median(column) for column in zip(*times, strict=True)]
    ratios = sorted(their_time / our_time for their_time, our_time in times)
    n_same = sum(our_level <= their_level * (1 + SAME) for their_level, our_level in levels)
    n_lower = sum(our_level < their_level * (1 - SAME) for their_level, our_level in levels)
    found = f"{n_same} of {len(levels)}" + (f", lower in {n_lower}" if n_lower else "")
    ratio = f"{statistics.median(ratios):.1f} ({ratios[0]:.1f}-{ratios[-1]:.1f})"
    return str(size), f"{noise:g}", name, f"{medians[0]:.3g}", f"{medians[1]:.3g}", ratio, found


def speed() -> str:
    warnings.simplefilter("ignore")  # for this program: pyriemann warns where it stops at its last iteration
    compared(5, 0.1, "Pham, qndiag")  # warms up
    rows = [compared(size, noise, name) for size, noise in SETTINGS for name in pairs()]
    headings = ("size", "noise", "baseline", "baseline, ms", "codiag, ms", "times faster", "same objective")
    return (
        "## Joint diagonalization in benchopt's settings\n100 matrices, CPU time of one thread, medians (ranges) of "
        f"{len(SEEDS)} seeds, all by default options (Pham of pyriemann with 100 iterations in place of 20). The "
        "objective is the one that the baseline lowers: the likelihood for Pham and QNDIAG, which is benchopt's, the "
        "relative off-diagonal energy for U-WEDGE, and the off-diagonal energy of orthonormal rows for Jade. *Same* is "
        f"at most {SAME:g} above the baseline's.\n\n" + table(headings, rows)
    )


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    if sys.argv[1] == "speed":
        publish("baselines ajd speed", "python -m benchmarks.baseline_ajd speed", speed)
    else:
        text = run(Path(sys.argv[1]).resolve())
        keep("baselines ajd", "python -m benchmarks.baseline_ajd tests/test_geometry_ajd.py", text)
        print(text)
