"""Random projections against projections along what was found, and what methods cost."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from codiag.diagonalize import QRJ1D, Jacobi
from codiag.experiments.paper.trials import axis, grid, median_of, select, shown
from codiag.experiments.reports import Finding, Panel, Report, Series, spread
from codiag.experiments.runs import Cell, Experiment, Record, Values
from codiag.factorize import factorize
from codiag.methods import ALS, NLS, NOJD, OJD, TPM
from codiag.metrics import factor_error
from codiag.synthetic import paper_tensor
from codiag.tensors import symmetrize

NUMBERS = (5, 10, 15, 20, 30, 40, 60, 80, 100)
SCHEMES = {"random": False, "plug-in": True}


def _cells(quick: bool) -> list[Cell]:
    return grid({"factors": ["orthogonal", "free"]}, 25 if quick else 1000)


def _measure(cell: Cell, seed: int) -> Values:
    orthogonal = cell["factors"] == "orthogonal"
    noise = 0.05 if orthogonal else 0.01
    problem = paper_tensor(10, 10, orthogonal=orthogonal, noise=noise, model="text", seed=seed)
    tensor = symmetrize(problem.tensor)
    start = int(np.random.default_rng([seed, 1]).integers(2**31))
    values = {}
    for scheme, plug_in in SCHEMES.items():
        for number in NUMBERS:
            method = (
                OJD(plug_in=plug_in, n_projections=number, diagonalizer=Jacobi(), whiten=False)
                if orthogonal
                else NOJD(plug_in=plug_in, n_projections=number)
            )
            fit = factorize(tensor, 10, method=method, symmetric=True, seed=start)
            values[f"{scheme} {number}"] = factor_error(fit, problem)
    oracle = NLS(init=(problem.weights, problem.factors), max_replacements=0)
    values["oracle"] = factor_error(factorize(tensor, 10, method=oracle, symmetric=True), problem)
    auto = factorize(tensor, 10, symmetric=True, seed=start)
    return values | {"Auto": factor_error(auto, problem)}


def _report(records: Sequence[Record]) -> Report:
    panels, rows, findings = [], [], []
    for kind in axis(records, "factors"):
        here = select(records, factors=kind)
        series = [
            spread(scheme, {n: [record.values[f"{scheme} {n}"] for record in here] for n in NUMBERS})
            for scheme in SCHEMES
        ]
        for name in ("Auto", "oracle"):
            level = median_of(here, name)
            series.append(Series(name, [NUMBERS[0], NUMBERS[-1]], [level, level]))
        eps = 0.05 if kind == "orthogonal" else 0.01
        panels.append(Panel(f"{kind}, d = k = 10, eps = {eps}", "random projections L", "error of factors", series))
        means = {
            scheme: {n: float(np.mean([r.values[f"{scheme} {n}"] for r in here])) for n in NUMBERS}
            for scheme in SCHEMES
        }
        for scheme, points in means.items():
            rows.append([kind, scheme, str(len(here)), *(shown(points[n]) for n in NUMBERS)])
        gain = means["random"][20] / means["plug-in"][20]
        late = means["random"][60] / means["plug-in"][20]
        if kind == "orthogonal":
            findings.append(
                Finding(
                    "plug-in reaches with 20 projections what random ones reach with 60",
                    f"mean error of random at 60 over plug-in at 20: {late:.2f}; at 20 over 20: {gain:.2f}",
                    "yes" if late > 0.9 and gain > 1.05 else "no",
                )
            )
        else:
            text = f"mean error of random at 20 over plug-in at 20: {gain:.2f}"
            findings.append(
                Finding("the difference is much smaller when not orthogonal", text, "yes" if gain < 1.2 else "no")
            )
    note = "Mean over trials of the one-to-one matched error in the table; medians and quartiles in the figure."
    return Report(["factors", "projections", "trials", *(f"L = {n}" for n in NUMBERS)], rows, panels, findings, [note])


def _flop_cells(quick: bool) -> list[Cell]:
    return grid({"d": [10, 15, 20, 30] if quick else [10, 15, 20, 30, 40, 50, 70, 100]}, 3 if quick else 10)


def _flop_measure(cell: Cell, seed: int) -> Values:
    d = cell["d"]
    start = int(np.random.default_rng([seed, 1]).integers(2**31))
    values = {}
    for orthogonal in (True, False):
        problem = paper_tensor(d, d, orthogonal=orthogonal, noise=1e-3, model="authors", seed=seed)
        tensor = symmetrize(problem.tensor)
        methods = (
            {
                "OJD1 (Jacobi)": OJD(n_projections=5, diagonalizer=Jacobi(), whiten=False),
                "OJD1": OJD(n_projections=5, whiten=False),
                "TPM": TPM(),
            }
            if orthogonal
            else {"NOJD1": NOJD(n_projections=2 * d), "ALS": ALS()}
        )
        if not orthogonal and d <= 20:
            methods["NOJD1 (QRJ1D)"] = NOJD(n_projections=2 * d, diagonalizer=QRJ1D(max_sweeps=200))
        for name, method in methods.items():
            fit = factorize(tensor, d, method=method, symmetric=True, seed=start)
            values[name] = sum(stage.flops for stage in fit.stages)
        auto = factorize(tensor, d, symmetric=True, seed=start)
        kind = "orthogonal" if orthogonal else "not orthogonal"
        values[f"Auto, {kind}"] = sum(stage.flops for stage in auto.stages)
    return values


def _flop_report(records: Sequence[Record]) -> Report:
    sizes = axis(records, "d")
    names = list(dict.fromkeys(name for record in records for name in record.values))
    rows, series, findings = [], [], []
    for name in names:
        points = {d: [r.values[name] for r in select(records, d=d) if name in r.values] for d in sizes}
        points = {d: values for d, values in points.items() if values}
        series.append(spread(name, points))
        middles = {d: float(np.median(values)) for d, values in points.items()}
        slope = np.polyfit(np.log(list(middles)), np.log(list(middles.values())), 1)[0]
        rows.append([name, *(f"{middles[d]:.2e}" if d in middles else "-" for d in sizes), f"{slope:.1f}"])
    largest = select(records, d=sizes[-1])
    ratio = median_of(largest, "TPM") / median_of(largest, "OJD1 (Jacobi)")
    findings.append(
        Finding(
            "2dL(dk - k(k-1)/2) flops a Jacobi sweep, 4 d^3 L a QRJ1D sweep, Lkd^3 a step of TPM",
            f"counted so, with the sweeps each method took; TPM over Jacobi at d = {sizes[-1]}: {ratio:.2g}",
            "yes",
        )
    )
    panel = Panel("k = d, noise 1e-3, authors' models", "size d", "operations counted", series, x_log=True)
    return Report(["method", *(f"d = {d}" for d in sizes), "exponent"], rows, [panel], findings)


PROJECTIONS = Experiment(
    "projections",
    "Random against plug-in projections",
    "Plug-in reaches with 20 projections what random ones reach with 60; the difference is small when not orthogonal.",
    "text: Gaussian weights, eps times independent Gaussian entries; 0.05 orthogonal, 0.01 not",
    _cells,
    _measure,
    _report,
)
FLOPS = Experiment(
    "flops",
    "Operations",
    "Operations against d, counted by the formulas of the appendix.",
    "authors: eps = 1e-3",
    _flop_cells,
    _flop_measure,
    _flop_report,
)
