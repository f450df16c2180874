"""How large the inverse of incoherent factors can be (claim 36)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from codiag.synthetic import unit_factor
from experiments.claims import Claim, Ruling, Trials, of_parts
from experiments.paper.incoherence import coherent_factor
from experiments.paper.trials import grid, history, panel_of, table_of
from experiments.records import Cell, Record, Values
from experiments.reports import Figure, Report
from experiments.runs import Experiment

FAMILIES = ("one cosine", "random, k = 0.2 d", "random, k = d")
SIZES = (10, 20, 40, 80)
COSINE = 0.1
GROWTH = 2.0
"""Growth of (norm - 1) / mu, from the least to the largest size, up to which it counts as a constant."""


def _cells(quick: bool) -> list[Cell]:
    return [cell for cell in grid({"family": FAMILIES, "d": SIZES}, 100) if not quick or cell["trial"] < 20]


def _measure(cell: Cell, seed: int) -> Values:
    size = cell["d"]
    if cell["family"] == "one cosine":
        factor = coherent_factor(size, size, COSINE, [seed])
    else:
        factor = unit_factor(size, size if cell["family"].endswith("= d") else size // 5, np.random.default_rng(seed))
    mu = float(np.max(np.abs(factor.T @ factor - np.eye(factor.shape[1]))))
    norm = float(1 / np.linalg.svd(factor, compute_uv=False)[-1])
    return {"mu": mu, "norm": norm, "excess over mu": (norm - 1) / mu}


def _bounded(trials: Trials) -> Ruling:
    found = {f: [trials.median("excess over mu", family=f, d=d) for d in SIZES] for f in FAMILIES}
    constant = [max(medians) <= GROWTH * min(medians) for medians in found.values()]
    ends = ", ".join(f"{family} {medians[0]:.2f} and {medians[-1]:.2f}" for family, medians in found.items())
    text = f"median of (norm - 1) / mu at d = {SIZES[0]} and {SIZES[-1]}: {ends}"
    return Ruling(text, of_parts(*constant))


def _report(records: Sequence[Record]) -> Report:
    panels = [
        panel_of(
            [record for record in records if record.cell["family"] == family],
            ("norm", "mu"),
            "d",
            family,
            "size d",
            "median of norm and of mu",
            middle=np.median,
            x_log=True,
        )
        for family in FAMILIES
        if any(record.cell["family"] == family for record in records)
    ]
    story = (
        "Median of the norm of the inverse factors, and of the largest cosine mu between factors, against the size, "
        "with its interval of 95 %. Medians, since with k = d the norm has no mean."
    )
    table = table_of(records, {"family": "factors", "d": "d"}, ("mu", "norm", "excess over mu"), "Medians", np.median)
    return Report([Figure("Norm of the inverse factors", story, panels, "norm-of-inverse-factors")], [table])


NORMS = Experiment(
    "norms",
    "Norm of the inverse factors",
    "Unit factors of three families, d = 10 to 80: one cosine 0.1 between all, and uniform on the sphere with "
    "k = 0.2 d and k = d.",
    _cells,
    _measure,
    _report,
    history(100),
)
CLAIMS = [Claim(36, "norms", _bounded)]
