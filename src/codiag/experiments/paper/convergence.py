"""Whether diagonalization depends on where it starts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from codiag.datasets import at_hand, load_crowd
from codiag.diagonalize import Jacobi, OrthogonalNewton
from codiag.experiments.paper.trials import axis, grid, select
from codiag.experiments.reports import Finding, Panel, Report, Series
from codiag.experiments.runs import Cell, Experiment, Record, Values
from codiag.models import DawidSkene
from codiag.synthetic import matrix_stack, orthonormal_factor

EPS = (1e-4, 1e-3, 1e-2)
SETS = ("web", "rte", "bluebird", "dog")
SIZE = 15


def has_crowds() -> bool:
    """Tell whether the crowd data is at hand."""
    return all(at_hand(name) for name in SETS)


def _cells(quick: bool) -> list[Cell]:
    n_trials = 100 if quick else 1000
    cells = grid({"data": [f"random, eps {eps:g}" for eps in EPS]}, n_trials)
    return cells + (grid({"data": list(SETS)}, 10 if quick else 1000) if has_crowds() else [])


def _measure(cell: Cell, seed: int) -> Values:
    if cell["data"] in SETS:
        return _from_another_start(cell["data"], cell["trial"])
    eps = float(cell["data"].rsplit(" ", 1)[1])
    stack = matrix_stack(orthonormal_factor(SIZE, SIZE, [seed, 1]), SIZE, noise=eps, seed=[seed, 2]).matrices
    turn = orthonormal_factor(SIZE, SIZE, [seed, 3])  # Jacobi starts from the identity: from anywhere, after a rotation
    found = Jacobi(tol=1e-10, max_sweeps=300)(turn.T @ stack @ turn)
    lowest = min(found.off_diagonal, OrthogonalNewton(tol=1e-12, max_sweeps=500)(stack, seed=seed).off_diagonal)
    level = np.sqrt(found.off_diagonal / (SIZE * SIZE * (SIZE - 1))) / eps
    return {"objective over eps": float(level), "above the lowest": found.off_diagonal / lowest - 1}


def _from_another_start(name: str, trial: int) -> Values:
    votes = load_crowd(name).votes
    groups = np.arange(np.unique(votes["worker"]).size) % 3
    values = {}
    for method in ("ojd1", "nojd1"):
        first, other = (
            DawidSkene(groups=groups, em_rounds=0, smoothing=1.0, method=method, random_state=seed).fit(votes).errors_
            for seed in (0, trial + 1)
        )
        values[method.upper()] = float(np.max(np.abs(first - other)))
    return values


def _report(records: Sequence[Record]) -> Report:
    rows, series = [], []
    random = [data for data in axis(records, "data") if data not in SETS]
    for place, data in enumerate(random):
        levels = np.array([record.values["objective over eps"] for record in select(records, data=data)])
        above = np.array([record.values["above the lowest"] for record in select(records, data=data)])
        rows.append([data, str(levels.size), f"{levels.mean():.3f}", f"{levels.std():.3f}", f"{np.sum(above > 1e-3)}"])
        jitter = np.random.default_rng(0).uniform(-0.3, 0.3, levels.size)
        series.append(Series(data, (place + jitter).tolist(), levels.tolist(), kind="points"))
    worst = max(record.values.get("above the lowest", 0.0) for record in records)
    claim = "objective values concentrate around eps: no run ends in a worse minimum"
    level = Finding(claim, f"the worst run ends {worst:.1e} above the lowest", "yes" if worst < 1e-3 else "no")
    crowds, start = _crowds(records)
    panel = Panel(
        f"Jacobi, d = L = {SIZE}",
        "",
        "root mean square off the diagonal, over eps",
        series,
        y_log=False,
        x_ticks=random,
    )
    headings = [
        "data",
        "runs",
        "mean (OJD1: largest change)",
        "deviation (NOJD1: largest change)",
        "runs above the lowest",
    ]
    return Report(headings, rows + crowds, [panel], [level, start])


def _crowds(records: Sequence[Record]) -> tuple[list[list[str]], Finding]:
    """Return how far confusion matrices move with the start, set by set."""
    claim = "one solution on the crowd data, whatever the start"
    moved, rows = [], []
    for name in (data for data in axis(records, "data") if data in SETS):
        here = select(records, data=name)
        moved.append([max(record.values[method] for record in here) for method in ("OJD1", "NOJD1")])
        rows.append([name, str(len(here)), *(f"{value:.1e}" for value in moved[-1]), ""])
    if not moved:
        return [], Finding(claim, "the data is not at hand", "open")
    largest = np.max(moved, axis=0)
    text = f"largest change of an entry of a confusion matrix: OJD1 {largest[0]:.1e}, NOJD1 {largest[1]:.1e}"
    return rows, Finding(claim, text, "yes" if largest.max() < 1e-3 else "partly")


CONVERGENCE = Experiment(
    "convergence",
    "Convergence",
    "1000 Jacobi runs: objective values concentrate; 1000 starts on each crowd data set: one solution.",
    "symmetric Gaussian noise of standard deviation eps in each entry",
    _cells,
    _measure,
    _report,
)
