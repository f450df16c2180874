"""How the cost of Algorithm 1 grows with the size and the rank, by counted operations (claim 35)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from codiag.synthetic import matrix_stack, orthonormal_factor
from experiments.claims import Claim, Ruling, Trials, of_parts
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
    stack = matrix_stack(orthonormal_factor(size, rank, [seed, 1]), rank, noise=1e-3, rng=[seed, 2]).matrices
    counter = Counter()
    jacobi_sweep(stack.copy(), np.eye(size), counter, leading=rank)
    return {"sweep": float(counter.flops), "projections": 2.0 * rank * size**3}


def _running_time(trials: Trials) -> Ruling:
    places = [(d, k) for d in SIZES for k in RANKS]
    trials.fewest = min(len(trials.at(d=d, k=k)) for d, k in places)
    if not trials.fewest:
        return Ruling("not all places were run", "no")
    texts, parts = [], []
    for name in ("sweep", "projections"):
        ratios = [trials.fact(name, d=d, k=k) / (k * d) ** 2 for d, k in places]
        texts.append(f"{name} {min(ratios):.1f} to {max(ratios):.1f}")
        parts.append(max(ratios) <= 2 * min(ratios))
    return Ruling("operations over k^2 d^2: " + ", ".join(texts), of_parts(*parts))


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
