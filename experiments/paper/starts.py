"""Whether the solution on crowd data depends on where the diagonalizer starts (claim 25)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from codiag import match_components
from codiag._arrays import Array
from codiag.datasets import load_crowd
from codiag.diagonalize import Jacobi, TwoSided
from codiag.extending import Diagonalizer, Iterate, Method
from codiag.methods import NOJD, OJD
from codiag.models.base import ViewMoments, view_problem
from codiag.models.crowd import as_votes
from codiag.result import solve
from codiag.synthetic import orthonormal_factor
from experiments.claims import Claim, Ruling, Trials, of_parts
from experiments.paper.crowd import SETS, TITLES, has_crowds
from experiments.paper.trials import grid, history, n_trials, table_of
from experiments.records import Cell, Record, Values
from experiments.reports import Figure, Panel, Report, Series
from experiments.runs import Experiment

BLOCK = 50
"""Starts of one trial; twenty trials make the paper's thousand."""
SAME = 1e-2
"""Distance of unit factors up to which two solutions are one."""


@dataclass(frozen=True, kw_only=True)
class Turned(Diagonalizer):
    """A method that starts elsewhere: on matrices turned at random, rows and columns apart if it is two-sided."""

    inner: Diagonalizer
    start: int = 0

    @property
    def orthogonal(self) -> bool:
        return self.inner.orthogonal

    def iterate(self, stack: Array, rng: np.random.Generator) -> Iterate:
        rows, columns = stack.shape[1:]
        left = orthonormal_factor(rows, rows, [self.start, 1])
        right = left if self.inner.symmetric else orthonormal_factor(columns, columns, [self.start, 2])
        turned = np.ascontiguousarray(left.T @ stack @ right)
        found = self.inner.iterate(turned, np.random.default_rng([self.start, 3]))
        return found._replace(left=found.left @ left.T, right=found.right @ right.T)


@dataclass(frozen=True, kw_only=True)
class TurnedTwoSided(Turned):
    """The same for matrices that are not symmetric."""

    symmetric = False


def crowd_moments(name: str) -> tuple[ViewMoments, int]:
    """Return the moments of three groups of workers, by their number mod 3, and the number of classes."""
    votes = as_votes(load_crowd(name).votes)
    groups, k = np.arange(votes.workers.size) % 3, votes.classes.size
    flat = (votes.task * 3 + groups[votes.worker]) * k + votes.label
    counted = np.bincount(flat, minlength=votes.tasks.size * 3 * k).astype(np.float64).reshape(-1, 3, k)
    counted /= np.sqrt(counted.mean(axis=0) + 1 / votes.tasks.size)
    return ViewMoments([np.ascontiguousarray(counted[:, group]) for group in range(3)]), k


def _cells(quick: bool) -> list[Cell]:
    return [cell for cell in grid({"set": SETS}, 20) if not quick or cell["trial"] < 2]


def _methods(start: int) -> dict[str, Method]:
    return {
        "OJD1": OJD(diagonalizer=Turned(inner=Jacobi(tol=1e-10, max_sweeps=300), start=start)),
        "NOJD1": NOJD(
            plug_in="inverse", diagonalizer=TurnedTwoSided(inner=TwoSided(tol=1e-10, max_sweeps=500), start=start)
        ),
    }


def _measure(cell: Cell, _: int) -> Values:
    moments, k = crowd_moments(cell["set"])
    values: Values = {}
    for name in _methods(0):
        first = _fitted(moments, k, name, 0)[1]
        starts = range(cell["trial"] * BLOCK, (cell["trial"] + 1) * BLOCK)
        fits = [_fitted(moments, k, name, start) for start in starts]
        objective, best = min(fits, key=lambda one: one[0])
        same = [_distance(factors, best) < SAME for _, factors in fits]
        values |= {name: float(np.mean(same)), f"{name}, objective": objective}
        values[f"{name}, from the first"] = _distance(best, first)
    return values


def _fitted(moments: ViewMoments, k: int, name: str, start: int) -> tuple[float, list[np.ndarray]]:
    method = _methods(start)[name]
    fit = solve(view_problem(moments, k, method).problem, method, 0)  # one seed: the projections stay
    return fit.history[-1].objective, [np.asarray(factor) for factor in fit.factors]


def _distance(factors: Sequence[np.ndarray], best: Sequence[np.ndarray]) -> float:
    found = match_components(factors, best).factors
    return max(float(np.max(np.linalg.norm(one - two, axis=0))) for one, two in zip(found, best, strict=True))


def _shares(trials: Trials, name: str) -> list[float]:
    """Return the share of starts that end in the best solution of all, set by set.

    Blocks of starts meet in the solution of the very first start: objectives tell the better of two solutions, but not
    whether they are one, since two-sided steps do not lower them to the last digit.
    """
    shares = []
    for one in SETS:
        lowest = trials.values(f"{name}, objective", set=one)
        found = trials.values(name, set=one)
        if lowest.size == 0:
            shares.append(float("nan"))
            continue
        near = trials.values(f"{name}, from the first", set=one) < SAME
        good = near if near[np.argmin(lowest)] else lowest <= lowest.min() * (1 + 1e-6)
        shares.append(float(np.mean(np.where(good, found, 0.0))))
    return shares


def _one_solution(trials: Trials) -> Ruling:
    shares = {name: _shares(trials, name) for name in ("OJD1", "NOJD1")}
    text = "; ".join(
        f"{name}: " + ", ".join(f"{title} {100 * share:.1f} %" for title, share in zip(TITLES, found, strict=True))
        for name, found in shares.items()
    )
    reached = [share >= 1 for found in shares.values() for share in found]
    return Ruling(f"starts in the best solution: {text}", of_parts(*reached))


def _report(records: Sequence[Record]) -> Report:
    trials = Trials(records)
    series = [Series(name, list(range(4)), _shares(trials, name), kind="points") for name in ("OJD1", "NOJD1")]
    n_starts = f"{n_trials(records)} times {BLOCK} starts a set"
    panel = Panel(n_starts, "", "share in the best solution", series, y_log=False, x_ticks=list(TITLES))
    story = f"Share of starts of the diagonalizer that end in the best solution, on four sets of votes; {n_starts}."
    table = table_of(records, {"set": "set"}, ["OJD1", "NOJD1"], "Share of 50 starts in their best solution, mean")
    note = (
        "Workers in three groups by their number mod 3; projections stay the same and the matrices are "
        "turned at random "
        f"before the diagonalizer begins. Two solutions are one if no unit factor differs by more than {SAME}."
    )
    return Report([Figure("Starts on crowd data", story, [panel], "section-7-starts-on-crowd-data")], [table], [note])


def _missing() -> str:
    return "" if has_crowds() else "the crowd data is not on this computer; set CODIAG_DATA_DIR"


STARTS = Experiment(
    "starts",
    "Section 7: starts on crowd data",
    "Real votes of four sets, workers in three groups by their number mod 3; starts of Jacobi (OJD1) and of "
    "two-sided steps (NOJD1), on the same projections.",
    _cells,
    _measure,
    _report,
    history(20),
    missing=_missing,
)
CLAIMS = [
    Claim(25, "starts", _one_solution),
]
