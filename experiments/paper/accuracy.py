"""Accuracy on random symmetric tensors, orthogonal and not (claims 5 to 10)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from codiag.diagonalize import Jacobi
from codiag.methods import OJD
from codiag.synthetic import paper_tensor
from experiments.claims import Claim, Ruling, Trials, graded, in_range, over, share_of
from experiments.paper.trials import (
    NEAREST,
    axis,
    errors_of,
    free_methods,
    grid,
    names_of,
    orthogonal_methods,
    panel_of,
    rivals,
    table_of,
)
from experiments.records import Cell, Record, Values, combinations, select
from experiments.reports import Figure, Report
from experiments.runs import Experiment

EPS = {True: (1e-3, 3e-3, 1e-2, 3e-2, 1e-1), False: (1e-4, 3e-4, 1e-3, 3e-3, 1e-2)}
N_TRIALS = 50
SIZES = {(True, 1.0): (25, 50, 100), (True, 0.2): (25, 50, 100), (False, 1.0): (25, 50), (False, 0.2): (25, 50, 100)}
"""By whether factors are orthogonal, and the rank over the size. At d = k = 100 free factors take minutes a run."""
OJD01, NOJD = ("OJD0", "OJD1"), ("NOJD0", "NOJD1", "NOJD1 (factors)")
MODELS = (
    "Noise of the text: Gaussian weights, eps times independent Gaussian entries; it decides. Noise of the authors' "
    "scripts: squared Gaussian weights, and eps times another orthogonal tensor of rank d (orthogonal) or independent "
    "Gaussian entries (not). Noise of the theory: Gaussian weights, symmetric noise of unit operator norm. Tensors are "
    "symmetrized first. Means over 20 to 50 trials of the mean distance of unit factors, matched one to one."
)


def _cells(quick: bool, *, orthogonal: bool) -> list[Cell]:
    cells = []
    for share in (1.0, 0.2):
        for model in ("text", "authors", "theory"):
            sizes = SIZES[orthogonal, share] if model == "text" else (25, 50) if model == "authors" else (25,)
            cells += grid({"model": [model], "d": sizes, "share": [share], "eps": EPS[orthogonal]}, N_TRIALS)
    if not quick:
        return sorted(cells, key=_order)
    return [cell for cell in cells if cell["d"] == 25 and cell["model"] != "theory" and cell["trial"] < _few(cell)]


def _few(cell: Cell) -> int:
    return 4 if cell["share"] < 1 else 1


def _order(cell: Cell) -> tuple[int, int]:
    return _stage(cell), cell["trial"]


def _stage(cell: Cell) -> int:
    """Run the noise of the text to enough trials, then to all of them, then that of the authors, then the theory's."""
    if cell["model"] == "text":
        return 0 if cell["trial"] < 20 else 1
    return 2 if cell["model"] == "authors" and cell["trial"] < 20 else 3


def _measure(cell: Cell, seed: int, *, orthogonal: bool) -> Values:
    size, rank = cell["d"], round(cell["share"] * cell["d"])
    problem = paper_tensor(size, rank, orthogonal=orthogonal, noise=cell["eps"], model=cell["model"], seed=seed)
    small, few = rank <= 50, cell["trial"] < 20
    extras = few and rank < 50 and size < 100
    als = size <= 50
    methods = (orthogonal_methods if orthogonal else free_methods)(size, extras=extras)
    if orthogonal and cell["share"] < 1:
        rows = Jacobi(tol=1e-4, max_rows=rank)
        methods["OJD1 (k rows)"] = OJD(
            n_projections=5 if size < 100 else 10, diagonalizer=rows, compress=False, whiten=False
        )
    methods |= rivals(lathauwer=small, als=als, nls=small and not orthogonal)
    oracles = (["oracle"] if size < 50 or (few and size < 100) else []) + (["orthogonal oracle"] if orthogonal else [])
    return errors_of(problem, methods, True, seed, oracles=oracles)


def _report(records: Sequence[Record], *, orthogonal: bool) -> Report:
    names = names_of(records)
    figures = []
    for model in ("text", "authors", "theory"):
        of_model = select(records, model=model)
        panels = [
            panel_of(
                select(of_model, d=d, share=share),
                names,
                "eps",
                f"d = {d}, k = {round(share * d)}",
                "noise eps",
                "mean error of factors",
                x_log=True,
            )
            for share in (1.0, 0.2)
            for d in axis(select(of_model, share=share), "d")
        ]
        if panels:
            kind = "Orthogonal" if orthogonal else "Non-orthogonal"
            story = f"Mean error of factors against noise, by size and rank, under the noise of the {_of(model)}."
            figures.append(Figure(f"{kind} tensors, noise of the {_of(model)}", story, panels))
    axes = {"model": "noise", "d": "d", "share": "k / d", "eps": "eps"}
    both = [name + NEAREST for name in names if any(name + NEAREST in record.values for record in records)]
    tables = [table_of(records, axes, names, "Mean errors, matched one to one")]
    tables.append(table_of(records, axes, both, "The authors' measure: the nearest estimate of each true factor"))
    return Report(figures, tables, _notes(records, orthogonal))


def _of(model: str) -> str:
    return {"text": "text", "authors": "authors' scripts", "theory": "theory"}[model]


def _notes(records: Sequence[Record], orthogonal: bool) -> list[str]:
    slow = {record.cell["d"]: record.seconds for record in records if record.cell["share"] == 1}
    notes = []
    if orthogonal:
        notes.append(
            "OJD is told that factors are orthogonal. Least squares from the truth (the oracle) is not; least squares "
            "over orthonormal factors (the orthogonal oracle) is. For k below d, OJD compresses to k dimensions first, "
            "where the paper rotates k rows of d: 'OJD1 (k rows)', shown beside it."
        )
        notes.append(
            "Left out for their time: ALS (12 seconds a run at d = 100, k = 20) and the oracle at d = 100, and "
            "Lathauwer at k = 100."
        )
    else:
        notes.append(
            "NOJD1 projects along the inverse factors, as Algorithm 1 says; along the factors, as the authors' program "
            "does, stands beside it. QRJ1D diagonalizes below d = 50, UWEDGE from there on: the same minimum to first "
            "order. Left out for their time: d = k = 100, where NOJD0 alone took 67 seconds a run, and ALS and "
            "the oracle at d = 100, k = 20."
        )
    if 50 in slow:
        notes.append(f"A run of all methods at d = k = 50 takes about {slow[50]:.0f} seconds.")
    return notes


def _places(orthogonal: bool, share: float) -> list[Cell]:
    """Return all places under the noise of the text, at a rank."""
    axes = {"model": ["text"], "d": SIZES[orthogonal, share], "share": [share], "eps": EPS[orthogonal]}
    return combinations(axes)


def _both(rule: Callable[[Trials, str], Ruling]) -> Callable[[Trials], Ruling]:
    """Judge by the matched errors, and tell what the authors' measure would say."""

    def judged(trials: Trials) -> Ruling:
        own = rule(trials, "")
        other = rule(trials, NEAREST)
        told = {"yes": "holds", "partly": "in part", "no": "does not"}[other.verdict]
        return Ruling(f"{own.measured} (by the authors' measure: {told})", own.verdict)

    return judged


def _full_rank(trials: Trials, end: str) -> Ruling:
    found = trials.ratios(_ended(("TPM", "Lathauwer", "ALS"), end), _ended(OJD01, end), _places(True, 1.0))
    high, far = over(np.median, found) > 1.5, over(np.max, found) >= 3
    return Ruling(f"best rival over best OJD: {in_range(found)}", "yes" if high and far else _half(high or far))


def _ended(names: Sequence[str], end: str) -> list[str]:
    return [name + end for name in names]


def _half(one: bool) -> str:
    return "partly" if one else "no"


def _low_rank(trials: Trials, end: str) -> Ruling:
    spreads = []
    for place in _places(True, 0.2):
        means = [trials.mean(name + end, **place) for name in ("OJD0", "OJD1", "TPM", "Lathauwer")]
        spreads.append(max(means) / min(means))
    share = share_of(spreads, 0, 1.1)
    text = f"largest over least mean error: {in_range(spreads)}; within 10 % at {100 * share:.0f} % of places"
    return Ruling(text, graded(share, partly=0.5))


def _als_is_poor(trials: Trials, end: str) -> Ruling:
    places = [place for share in (1.0, 0.2) for place in _places(True, share) if place["d"] <= 50]
    found = trials.ratios(["ALS" + end], _ended(OJD01, end), places)
    share = share_of(found, 5)
    text = f"ALS over the better OJD: {in_range(found)}; above 5 at {100 * share:.0f} % of places"
    return Ruling(text, "yes" if share > 0.5 else "partly" if share >= 0.2 else "no")


def _lathauwer(trials: Trials, end: str, *, share: float, low: float, high: float) -> Ruling:
    found = trials.ratios(["Lathauwer" + end], _ended(NOJD, end), _places(False, share))
    inside = share_of(found, low, high)
    text = f"Lathauwer over the best NOJD: {in_range(found)}; {low:g} to {high:g} at {100 * inside:.0f} % of places"
    return Ruling(text, graded(inside, partly=1 / 3))


def _least_squares(trials: Trials, end: str) -> Ruling:
    texts, reached = [], []
    for share, rank in ((1.0, "k = d"), (0.2, "k = 0.2 d")):
        found = trials.ratios(_ended(("ALS", "NLS"), end), _ended(NOJD, end), _places(False, share))
        texts.append(f"{rank} {in_range(found)}")
        reached.append(over(np.median, found) >= 1.2)
    text = "better of ALS and NLS over the best NOJD: " + ", ".join(texts)
    return Ruling(text, "yes" if all(reached) else _half(any(reached)))


ORTHOGONAL, NONORTHOGONAL = (
    Experiment(
        title.lower().replace("-", ""),
        f"{title} tensors",
        MODELS,
        partial(_cells, orthogonal=orthogonal),
        partial(_measure, orthogonal=orthogonal),
        partial(_report, orthogonal=orthogonal),
        _stage,
    )
    for title, orthogonal in (("Orthogonal", True), ("Non-orthogonal", False))
)
CLAIMS = [
    Claim(
        5,
        "Orthogonal, full rank: OJD is up to three times more accurate than TPM and Lathauwer.",
        "orthogonal",
        "noise of the text, d = k = 25, 50, 100, eps = 0.001 to 0.1; rivals TPM, ALS and Lathauwer, at 100 TPM alone",
        "best rival over best OJD: median over places above 1.5 and largest at least 3; in part if one of the two",
        _both(_full_rank),
    ),
    Claim(
        6,
        "Orthogonal, k = 0.2 d: all methods are within 10 %.",
        "orthogonal",
        "noise of the text, d = 25, 50, 100; OJD0, OJD1, TPM and Lathauwer",
        "largest over least mean at most 1.1 at every place; in part from half of the places on",
        _both(_low_rank),
    ),
    Claim(
        7,
        "ALS is very poor on orthogonal tensors.",
        "orthogonal",
        "noise of the text, d = 25 and 50, both ranks",
        "ALS above 5 times the better OJD at most places; in part from a fifth of them on",
        _both(_als_is_poor),
    ),
    Claim(
        8,
        "Not orthogonal, full rank: level with Lathauwer.",
        "nonorthogonal",
        "noise of the text, d = k = 25 and 50, eps = 0.0001 to 0.01",
        "Lathauwer over the best NOJD within 0.9 to 1.1 at every place; in part from a third of them on",
        _both(partial(_lathauwer, share=1.0, low=0.9, high=1.1)),
    ),
    Claim(
        9,
        "Not orthogonal, k = 0.2 d: Lathauwer is about 10 % better.",
        "nonorthogonal",
        "noise of the text, d = 25, 50, 100, k = 0.2 d",
        "Lathauwer over the best NOJD within 0.8 to 1.0 at every place; in part from a third of them on",
        _both(partial(_lathauwer, share=0.2, low=0.8, high=1.0)),
    ),
    Claim(
        10,
        "NOJD beats ALS and NLS by 20-50 %, at full and at low rank.",
        "nonorthogonal",
        "noise of the text, both ranks judged apart",
        "better of ALS and NLS over the best NOJD: median over places at least 1.2 at each rank; in part at one",
        _both(_least_squares),
    ),
]
