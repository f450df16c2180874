"""How the cost of Algorithm 1 grows with the size and the rank, by counted operations (claim 35)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from codiag.synthetic import matrix_stack, orthonormal_factor
from experiments.claims import Claim, Ruling, Trials
from experiments.estimators.counting import Counter, jacobi_sweep
from experiments.paper.trials import grid, panel_of, table_of
from experiments.records import Cell, Record, Values
from experiments.reports import Figure, Report
from experiments.runs import Experiment

SIZES = (16, 24, 36, 54)
RANKS = (4, 6, 9, 13)


def _cells(quick: bool) -> list[Cell]:
    return [cell for cell in grid({"d": SIZES, "k": RANKS}, 1) if not quick or cell["d"] <= 36]


def _measure(cell: Cell, seed: int) -> Values:
    """Count a sweep over k matrices of size d that turns k rows, and the k projections that give the matrices."""
    size, rank = cell["d"], cell["k"]
    stack = matrix_stack(orthonormal_factor(size, rank, [seed, 1]), rank, noise=1e-3, seed=[seed, 2]).matrices
    counter = Counter()
    jacobi_sweep(stack.copy(), np.eye(size), counter, leading=rank)
    return {"sweep": float(counter.flops), "projections": 2.0 * rank * size**3}


def exponents(trials: Trials, name: str) -> tuple[float, float]:
    """Return the powers of d and of k with which a count grows, by least squares of logarithms."""
    places = [(d, k) for d in SIZES for k in RANKS]
    counts = [trials.fact(name, d=d, k=k) for d, k in places]
    design = np.column_stack([np.ones(len(places)), np.log(places)])
    fitted = np.linalg.lstsq(design, np.log(counts), rcond=None)[0]
    return float(fitted[1]), float(fitted[2])


def _running_time(trials: Trials) -> Ruling:
    trials.fewest = min(len(trials.at(d=d, k=k)) for d in SIZES for k in RANKS)
    if not trials.fewest:
        return Ruling("not all places were run", "no")
    sweep, projections = exponents(trials, "sweep"), exponents(trials, "projections")
    text = (
        f"operations of a sweep grow like d^{sweep[0]:.2f} k^{sweep[1]:.2f}, those of the projections like "
        f"d^{projections[0]:.2f} k^{projections[1]:.2f}"
    )
    within = [max(one) <= 2.1 for one in (sweep, projections)]
    return Ruling(text, "yes" if all(within) else "partly" if any(within) else "no")


def _report(records: Sequence[Record]) -> Report:
    panels = [
        panel_of(
            [record for record in records if record.cell["k"] == k],
            ("sweep", "projections"),
            "d",
            f"k = {k}",
            "size d",
            "operations",
            x_log=True,
        )
        for k in (RANKS[0], RANKS[-1])
    ]
    story = "Operations of one Jacobi sweep and of the projections before it, against the size; nothing is random."
    table = table_of(records, {"d": "d", "k": "k"}, ("sweep", "projections"), "Operations")
    return Report([Figure("Cost of Algorithm 1", story, panels, "cost-of-algorithm-1")], [table])


GROWTH = Experiment(
    "growth",
    "Running time of Algorithm 1",
    "k matrices of size d, d = 16 to 54, k = 4 to 13; a Jacobi sweep that turns k rows, by counted operations.",
    _cells,
    _measure,
    _report,
)
CLAIMS = [Claim(35, "growth", _running_time, enough=1)]
