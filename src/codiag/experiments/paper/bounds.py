"""The four theorems: measured errors, first-order theory, and the bounds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from codiag.diagonalize import UWEDGE, OrthogonalNewton
from codiag.experiments.paper.trials import axis, median_of, select, shown
from codiag.experiments.reports import Finding, Panel, Report, spread
from codiag.experiments.runs import Cell, Experiment, Record, Values
from codiag.metrics import match_components
from codiag.synthetic import orthonormal_factor, unit_noise
from codiag.tensors import FactoredTensor
from codiag.theory import error_bound, first_order, project_noise, projected_diagonals

D = 8
AXES: dict[str, list[float]] = {
    "eps": [1e-5, 1e-4, 1e-3, 1e-2],
    "L": [16, 64, 256, 1024],
    "mu": [0.0, 0.2, 0.5, 0.8],
    "pi_min": [0.1, 0.3, 0.6, 1.0],
}
PLACE: dict[str, float] = {"eps": 1e-4, "L": 256, "mu": 0.2, "pi_min": 0.5}
WHAT = ("measured", "first order", "bound")


def _cells(quick: bool) -> list[Cell]:
    places = [
        {"kind": kind, "along": along, **PLACE, along: value, **({"mu": 0.0} if kind == "orthogonal" else {})}
        for kind in ("orthogonal", "free")
        for along, values in AXES.items()
        for value in values
        if not (kind == "orthogonal" and along == "mu")
    ]
    return [{**place, "trial": trial} for trial in range(5 if quick else 50) for place in places]


def coherent_factor(size: int, mu: float, seed: list[int]) -> np.ndarray:
    """Return unit columns whose cosines are all `mu`, rotated at random."""
    gram = (1 - mu) * np.eye(size) + mu
    return orthonormal_factor(size, size, seed) @ np.linalg.cholesky(gram).T


def _measure(cell: Cell, seed: int) -> Values:
    orthogonal = cell["kind"] == "orthogonal"
    factor = coherent_factor(D, cell["mu"], [seed, 1])
    weights = np.linspace(1.0, cell["pi_min"], D)
    noise = unit_noise(D, [seed, 2])
    tensor = FactoredTensor(weights, (factor,) * 3).to_dense() + cell["eps"] * noise
    gaussian = np.random.default_rng([seed, 3]).standard_normal((int(cell["L"]), D))
    method = OrthogonalNewton(tol=1e-12) if orthogonal else UWEDGE(tol=1e-12)
    values: Values = {}
    for name, directions in (("random", gaussian), ("plug-in", np.linalg.inv(factor))):
        fit = method(project_noise(tensor, directions), seed=seed)
        found = match_components(fit.factor, factor).factors[0]
        errors = np.linalg.norm(found - factor, axis=0)
        diagonals, matrices = projected_diagonals(factor, weights, directions), project_noise(noise, directions)
        predicted = cell["eps"] * first_order(factor, diagonals, matrices, orthogonal=orthogonal).errors
        number = cell["L"] if name == "random" else None
        bound = error_bound(factor, weights, cell["eps"], orthogonal=orthogonal, n_projections=number)
        values |= {f"{name} {what}": float(v.mean()) for what, v in zip(WHAT, (errors, predicted, bound), strict=True)}
        values[f"{name} share of bound"] = float(np.max(errors / bound))
    return values


def _report(records: Sequence[Record]) -> Report:
    panels, rows = [], []
    for kind in axis(records, "kind"):
        for along in axis(select(records, kind=kind), "along"):
            here = select(records, kind=kind, along=along)
            series = []
            for scheme in ("random", "plug-in"):
                for what in WHAT:
                    points = {
                        value: [record.values[f"{scheme} {what}"] for record in select(here, **{along: value})]
                        for value in axis(here, along)
                    }
                    series.append(spread(f"{scheme}, {what}", points, "points" if what == "measured" else "line"))
                for value in axis(here, along):
                    trials = select(here, **{along: value})
                    cells = [shown(median_of(trials, f"{scheme} {what}")) for what in WHAT]
                    share = max(record.values[f"{scheme} share of bound"] for record in trials)
                    rows.append([kind, f"{along} = {value:g}", scheme, str(len(trials)), *cells, shown(share)])
            panels.append(
                Panel(f"{kind}: along {along}", along, "error of factors", series, x_log=along in ("eps", "L"))
            )
    places = ", ".join(f"{name} = {value:g}" for name, value in PLACE.items())
    return Report(
        ["factors", "place", "projections", "trials", *WHAT, "largest share of the bound"],
        rows,
        panels,
        _findings(records),
        [f"d = k = {D}, all cosines mu. An axis that does not vary stands at {places}."],
    )


def _findings(records: Sequence[Record]) -> list[Finding]:
    share = max(record.values[f"{scheme} share of bound"] for record in records for scheme in ("random", "plug-in"))
    small = [record for record in records if record.cell["eps"] <= 1e-4]
    ratios = [r.values[f"{s} measured"] / r.values[f"{s} first order"] for r in small for s in ("random", "plug-in")]
    equal = select(records, along="pi_min", pi_min=1.0, kind="orthogonal")
    apart = select(records, along="pi_min", pi_min=0.6, kind="orthogonal")
    errors = [median_of(trials, "plug-in measured") for trials in (equal, apart)]
    return [
        Finding("the bounds hold", f"the largest error is {share:.3f} of its bound", "yes" if share < 1 else "no"),
        Finding(
            "errors are those of first-order theory",
            f"measured over predicted, eps up to 1e-4: {min(ratios):.4f} to {max(ratios):.4f}",
            "yes" if max(abs(ratio - 1) for ratio in ratios) < 0.05 else "partly",
        ),
        Finding(
            "the error has no eigengap in it",
            f"all weights equal: {errors[0]:.2e}; weights from 0.6 to 1: {errors[1]:.2e}",
            "yes" if errors[0] < 2 * errors[1] else "no",
        ),
    ]


BOUNDS = Experiment(
    "bounds",
    "The four theorems",
    "Errors are below the bounds, and have no eigengap in them.",
    "theory: symmetric noise of unit operator norm",
    _cells,
    _measure,
    _report,
)
