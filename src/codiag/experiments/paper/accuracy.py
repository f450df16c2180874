"""Accuracy on random tensors: orthogonal, not orthogonal, and without symmetry."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from codiag.experiments.paper.trials import (
    NEAREST,
    axis,
    error_panel,
    errors_of,
    free_methods,
    grid,
    median_of,
    names_of,
    orthogonal_methods,
    select,
    shown,
)
from codiag.experiments.reports import Finding, Report
from codiag.experiments.runs import Cell, Experiment, Record, Values
from codiag.synthetic import Problem, orthonormal_factor, paper_tensor, unit_factor
from codiag.tensors import FactoredTensor

MODELS = (
    "authors: squared Gaussian weights; noise is eps times another orthogonal tensor (orthogonal), or eps times "
    "independent Gaussian entries (not orthogonal). text: Gaussian weights, independent Gaussian entries. theory: "
    "Gaussian weights, symmetric noise of unit operator norm"
)
EPS = {True: [1e-3, 3e-3, 1e-2, 3e-2, 1e-1], False: [1e-4, 3e-4, 1e-3, 3e-3, 1e-2]}


def _cells(quick: bool, *, orthogonal: bool) -> list[Cell]:
    eps = EPS[orthogonal]
    if quick:
        cells = grid({"model": ["authors"], "d": [25], "share": [0.2], "eps": eps}, 3)
        cells += grid({"model": ["authors"], "d": [15], "share": [1.0], "eps": eps[1::2]}, 3)
        return cells + grid({"model": ["text", "theory"], "d": [12], "share": [1.0], "eps": eps[1::2]}, 3)
    models = ["authors", "text", "theory"]
    small = grid({"model": models, "d": [25], "share": [0.2, 1.0], "eps": eps}, 50)
    middle = grid({"model": models, "d": [50], "share": [0.2, 1.0], "eps": eps}, 50)
    large = grid({"model": ["authors"], "d": [100], "share": [0.2, 1.0], "eps": eps[1::2]}, 50)
    return sorted(small + middle + large, key=lambda cell: cell["trial"] * (1 if cell["d"] < 50 else 10))


def _measure(cell: Cell, seed: int, *, orthogonal: bool) -> Values:
    size, rank = cell["d"], max(2, round(cell["share"] * cell["d"]))
    problem = paper_tensor(size, rank, orthogonal=orthogonal, noise=cell["eps"], model=cell["model"], seed=seed)
    methods = orthogonal_methods(size) if orthogonal else free_methods(size)
    if size == 100:
        methods = {name: method for name, method in methods.items() if name not in ("ALS", "NLS", "Lathauwer")}
    return errors_of(problem, methods, True, seed)


def _report(records: Sequence[Record], *, orthogonal: bool) -> Report:
    names = names_of(records, NEAREST)
    rows, panels = [], []
    for model in axis(records, "model"):
        for d in axis(select(records, model=model), "d"):
            for share in axis(select(records, model=model, d=d), "share"):
                here = select(records, model=model, d=d, share=share)
                rank = "k = d" if share == 1 else f"k = {share:g} d"
                panels.append(error_panel(here, "eps", f"{model}, d = {d}, {rank}", "noise eps"))
                for eps in axis(here, "eps"):
                    trials = select(here, eps=eps)
                    cells = [shown(median_of(trials, name + NEAREST)) for name in names]
                    rows.append([model, str(d), rank, f"{eps:g}", str(len(trials)), *cells])
    findings = _orthogonal_findings(records) if orthogonal else _free_findings(records)
    notes = ["Errors are the authors' measure, the nearest estimate of each true factor; medians over trials."]
    if not orthogonal:
        notes.append(
            "NOJD1 projects along the factors, as the authors' program does; the text says inverse factors, which is "
            "worse where factors are nearly dependent. Tensors are symmetrised first, unlike in the authors' program."
        )
    else:
        notes.append(
            "OJD is told that factors are orthogonal, and is more accurate than least squares from the truth (the "
            "oracle) and Auto, which are not."
        )
    return Report(["noise", "d", "rank", "eps", "trials", *names], rows, panels, findings, notes)


def _ratios(records: Sequence[Record], ours: Sequence[str], theirs: Sequence[str], **place: float) -> list[float]:
    """Return the best error of theirs over the best of ours, cell by cell."""
    ratios = []
    for model in axis(records, "model"):
        for d in axis(records, "d"):
            for eps in axis(records, "eps"):
                trials = select(records, model=model, d=d, eps=eps, **place)
                best = [
                    min((m for n in names if np.isfinite(m := median_of(trials, n + NEAREST))), default=np.nan)
                    for names in (theirs, ours)
                ]
                ratios.append(best[0] / best[1])
    return [ratio for ratio in ratios if np.isfinite(ratio)]


def _range(ratios: list[float]) -> str:
    return f"{np.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})" if ratios else "not run"


def _holds(ratios: list[float], low: float, high: float = np.inf) -> str:
    """Say whether the best cells reach a claim, and the median comes near it."""
    if not ratios:
        return "open"
    inside = [low <= ratio <= high for ratio in ratios]
    return "yes" if np.mean(inside) > 0.7 else "partly" if any(inside) else "no"


def _orthogonal_findings(records: Sequence[Record]) -> list[Finding]:
    full = _ratios(select(records, model="authors"), ["OJD0", "OJD1"], ["TPM", "Lathauwer", "ALS"], share=1.0)
    low = _ratios(select(records, model="authors"), ["OJD0", "OJD1"], ["TPM", "Lathauwer"], share=0.2)
    text = _ratios(select(records, model="text"), ["OJD0", "OJD1"], ["TPM", "Lathauwer", "ALS"], share=1.0)
    return [
        Finding(
            "full rank: OJD is up to three times more accurate than the rest (authors' noise)",
            f"best rival over best OJD: {_range(full)}",
            "yes" if full and max(full) > 2 else "partly" if full and max(full) > 1.2 else "no" if full else "open",
        ),
        Finding("k = 0.2 d: all within 10 %", f"best rival over best OJD: {_range(low)}", _holds(low, 0.9, 1.1)),
        Finding(
            "the same at full rank under the noise of the text",
            f"best rival over best OJD: {_range(text)}",
            _holds(text, 1.2),
        ),
    ]


def _free_findings(records: Sequence[Record]) -> list[Finding]:
    ours = ["NOJD0", "NOJD1"]
    standard = _ratios(records, ours, ["ALS", "NLS"])
    full = _ratios(records, ours, ["Lathauwer"], share=1.0)
    low = _ratios(records, ours, ["Lathauwer"], share=0.2)
    auto = _ratios(records, ["Auto"], [*ours, "ALS", "NLS", "Lathauwer"])
    return [
        Finding(
            "20-50 % better than ALS and NLS",
            f"the better of ALS and NLS over the better NOJD: {_range(standard)}",
            _holds(standard, 1.2),
        ),
        Finding("level with Lathauwer at full rank", f"Lathauwer over NOJD: {_range(full)}", _holds(full, 0.9, 1.15)),
        Finding("about 10 % behind it below", f"Lathauwer over NOJD: {_range(low)}", _holds(low, 0.8, 1.0)),
        Finding(
            "(ours) Auto beside the best of all the others", f"best other over Auto: {_range(auto)}", _holds(auto, 1)
        ),
    ]


def _asymmetric_cells(quick: bool) -> list[Cell]:
    if quick:
        return grid({"kind": ["orthogonal", "free"], "d": [12], "k": [12], "eps": [1e-3, 1e-2]}, 2)
    return grid({"kind": ["orthogonal", "free"], "d": [50], "k": [10, 50], "eps": [3e-4, 1e-3, 3e-3, 1e-2]}, 50)


def _asymmetric_measure(cell: Cell, seed: int) -> Values:
    size, rank = cell["d"], cell["k"]
    rng = np.random.default_rng(seed)
    make = orthonormal_factor if cell["kind"] == "orthogonal" else unit_factor
    factors = tuple(make(size, rank, rng) for _ in range(3))
    weights = np.square(rng.standard_normal(rank))
    clean = FactoredTensor(weights, factors).to_dense()
    problem = Problem(clean + cell["eps"] * rng.standard_normal(clean.shape), weights, factors)
    if cell["kind"] == "orthogonal":
        methods = orthogonal_methods(size, symmetric=False)
    else:
        methods = {name: method for name, method in free_methods(50).items() if size < 50 or name != "Lathauwer"}
    return errors_of(problem, methods, False, seed)


def _asymmetric_report(records: Sequence[Record]) -> Report:
    names = names_of(records, NEAREST)
    rows, panels, findings = [], [], []
    for kind in axis(records, "kind"):
        ours = ["OJD0", "OJD1"] if kind == "orthogonal" else ["NOJD0", "NOJD1"]
        gains = []
        for k in axis(select(records, kind=kind), "k"):
            here = select(records, kind=kind, k=k)
            panels.append(error_panel(here, "eps", f"{kind}, d = {here[0].cell['d']}, k = {k}", "noise eps"))
            for eps in axis(here, "eps"):
                trials = select(here, eps=eps)
                middles = {name: median_of(trials, name + NEAREST) for name in names}
                rows.append([kind, str(k), f"{eps:g}", str(len(trials)), *(shown(m) for m in middles.values())])
                rivals = [m for n, m in middles.items() if n not in (*ours, "Auto", "oracle") and np.isfinite(m)]
                gains.append(min(rivals, default=np.nan) / min(middles[name] for name in ours))
        gains = [gain for gain in gains if np.isfinite(gain)]
        claim = f"{kind}: at least 25 % better than rivals"
        findings.append(Finding(claim, f"best rival over best of ours: {_range(gains)}", _holds(gains, 1.25)))
    return Report(["factors", "k", "eps", "trials", *names], rows, panels, findings)


ORTHOGONAL = Experiment(
    "orthogonal",
    "Orthogonal tensors",
    "At full rank OJD0 and OJD1 are up to three times more accurate than TPM, Lathauwer and ALS; at k = 0.2 d all "
    "methods are within 10 %.",
    MODELS,
    partial(_cells, orthogonal=True),
    partial(_measure, orthogonal=True),
    partial(_report, orthogonal=True),
)
NONORTHOGONAL = Experiment(
    "nonorthogonal",
    "Non-orthogonal tensors",
    "NOJD is 20-50 % better than ALS and NLS, level with Lathauwer at full rank and about 10 % behind it below.",
    MODELS,
    partial(_cells, orthogonal=False),
    partial(_measure, orthogonal=False),
    partial(_report, orthogonal=False),
)
ASYMMETRIC = Experiment(
    "asymmetric",
    "Tensors without symmetry",
    "50 x 50 x 50 with three sets of factors: at least 25 % better than rivals, up to 70 % over Lathauwer.",
    "squared Gaussian weights, eps times independent Gaussian entries",
    _asymmetric_cells,
    _asymmetric_measure,
    _asymmetric_report,
)
