"""Random projections against projections along what was found (claims 1 to 3)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from codiag import factor_error
from codiag.diagonalize import UWEDGE, Jacobi
from codiag.methods import NLS
from codiag.tensors import symmetrize
from experiments.claims import Claim, Ruling, Trials, of_parts
from experiments.fitting import silent_fit
from experiments.paper.trials import axis, grid, history, n_trials, shown
from experiments.records import Cell, Record, Values
from experiments.reports import Figure, Panel, Report, Series, Table
from experiments.runs import Experiment
from experiments.simulated import paper_tensor
from experiments.theory import project_noise

NUMBERS = (5, 10, 15, 20, 30, 40, 60, 80, 100)
EPS = {"orthogonal": 0.05, "free": 0.01}
SCHEMES = {"orthogonal": ("random", "plug-in"), "free": ("random", "inverse factors", "factors")}
N_TRIALS = 1000
N_ORACLE = 100
"""Trials of the oracle, which takes most of the time."""


def _cells(quick: bool) -> list[Cell]:
    return grid({"factors": list(SCHEMES)}, 20 if quick else N_TRIALS)


def _measure(cell: Cell, seed: int) -> Values:
    orthogonal = cell["factors"] == "orthogonal"
    problem = paper_tensor(10, 10, orthogonal=orthogonal, noise=EPS[cell["factors"]], model="text", seed=seed)
    tensor = symmetrize(problem.tensor)
    truth = problem.factors[0]
    diagonalizer = Jacobi(tol=1e-6) if orthogonal else UWEDGE()
    rng = np.random.default_rng([seed, 1])
    directions = rng.standard_normal((NUMBERS[-1], 10))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    values: Values = {}
    for number in NUMBERS:
        found = diagonalizer(project_noise(tensor, directions[:number]), rng=rng).factor
        values[f"random {number}"] = factor_error(found, truth)
        for scheme in SCHEMES[cell["factors"]][1:]:
            again = diagonalizer(project_noise(tensor, _plugged(scheme, found)), rng=rng).factor
            values[f"{scheme} {number}"] = factor_error(again, truth)
    if cell["trial"] >= N_ORACLE:
        return values
    oracle = NLS(init=(problem.weights, problem.factors), max_replacements=0)
    return values | {"oracle": factor_error(silent_fit(tensor, 10, method=oracle, symmetric=True), problem)}


def _plugged(scheme: str, found: np.ndarray) -> np.ndarray:
    """Return the directions of the second stage, one of unit length for every component."""
    rows = np.linalg.pinv(found) if scheme == "inverse factors" else found.T
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


PRINTED = {"orthogonal": (("plug-in", 20), ("random", 60))}
"""Where the paper's text says that the limit is reached; its figure prints no values."""


def _report(records: Sequence[Record]) -> Report:
    trials, panels, rows = Trials(records), [], []
    for kind in (kind for kind in SCHEMES if kind in axis(records, "factors")):
        series = []
        for scheme in SCHEMES[kind]:
            found = [trials.values(f"{scheme} {number}", factors=kind) for number in NUMBERS]
            series.append(_with_bars(scheme, found))
            rows.append([kind, scheme, str(len(trials.at(factors=kind))), *(shown(one.mean()) for one in found)])
        level = trials.values("oracle", factors=kind)
        if level.size and kind == "free":
            ends = [NUMBERS[0], NUMBERS[-1]]
            series.append(Series("oracle", ends, [float(level.mean())] * 2))
        marks = PRINTED.get(kind, ())
        if marks:
            xs = [number for _, number in marks]
            ys = [trials.mean(f"{scheme} {number}", factors=kind) for scheme, number in marks]
            series.append(Series("the paper", xs, ys, kind="paper"))
        name = "orthogonal" if kind == "orthogonal" else "not orthogonal"
        panels.append(
            Panel(f"{name}, eps = {EPS[kind]}", "random projections L", "mean error of factors", series, y_log=False)
        )
    story = (
        f"Mean error of factors against the number of random projections, d = k = 10, {n_trials(records)} trials, bars "
        "of two standard errors. Stars: where the paper says that plug-in (20) and random projections (60) have "
        "reached the limit."
    )
    table = Table("Mean errors", ["factors", "projections", "trials", *(f"L = {n}" for n in NUMBERS)], rows)
    note = (
        "The paper's figure shows random projections in blue and plug-in in green, each as a line that falls to a "
        "limit; it prints no values, so that only the numbers in its text can be set beside ours. The oracle is least "
        f"squares from the truth, over {N_ORACLE} trials."
    )
    figure = Figure("Random and plug-in projections", story, panels, "figure-1-random-and-plug-in-projections")
    return Report([figure], [table], [note])


def _with_bars(label: str, found: Sequence[np.ndarray]) -> Series:
    means = [float(one.mean()) for one in found]
    bars = [2 * float(one.std()) / np.sqrt(max(one.size, 1)) for one in found]
    low = [mean - bar for mean, bar in zip(means, bars, strict=True)]
    high = [mean + bar for mean, bar in zip(means, bars, strict=True)]
    return Series(label, NUMBERS, means, low, high)


def _third_of_the_projections(trials: Trials) -> Ruling:
    plug_in, random = trials.mean("plug-in 20", factors="orthogonal"), trials.mean("random 60", factors="orthogonal")
    ratio = plug_in / random
    text = f"plug-in at 20 {plug_in:.4f}, random at 60 {random:.4f}: ratio {ratio:.3f}"
    return Ruling(text, "yes" if ratio <= 1.02 else "no")


def _limit(trials: Trials) -> Ruling:
    random = [trials.mean(f"random {number}", factors="orthogonal") for number in NUMBERS]
    plug_in = trials.mean("plug-in 100", factors="orthogonal")
    near = random[-1] / plug_in - 1 <= 0.03
    falls = all(np.diff(random) <= 0)
    text = f"random at 100 is {100 * (random[-1] / plug_in - 1):.1f} % above plug-in; the means {_falling(falls)} in L"
    return Ruling(text, of_parts(near, falls))


def _falling(falls: bool) -> str:
    return "fall" if falls else "do not always fall"


def _smaller_difference(trials: Trials) -> Ruling:
    def gain(scheme: str, kind: str) -> float:
        return trials.mean("random 20", factors=kind) / trials.mean(f"{scheme} 20", factors=kind) - 1

    orthogonal = gain("plug-in", "orthogonal")
    inverse, factors = gain("inverse factors", "free"), gain("factors", "free")
    small = [one < orthogonal / 2 for one in (inverse, factors)]
    text = (
        f"random over plug-in at L = 20: orthogonal {100 * orthogonal:+.1f} %, along inverse factors "
        f"{100 * inverse:+.1f} %, along factors {100 * factors:+.1f} %"
    )
    return Ruling(text, of_parts(*small))


PROJECTIONS = Experiment(
    "projections",
    "Figure 1: random and plug-in projections",
    "d = k = 10, noise of the text: Gaussian weights and eps times independent Gaussian entries, eps = 0.05 with "
    "orthogonal factors and 0.01 with others; noisy tensors are symmetrized, and random directions are uniform on the "
    "sphere. Jacobi, and UWEDGE where factors are not orthogonal. Plug-in is along the inverse factors, as Algorithm 1 "
    "has it, and along the factors, as the authors' program does.",
    _cells,
    _measure,
    _report,
    history(N_TRIALS),
)
CLAIMS = [
    Claim(1, "projections", _third_of_the_projections, enough=N_TRIALS),
    Claim(2, "projections", _limit, enough=N_TRIALS),
    Claim(3, "projections", _smaller_difference, enough=N_TRIALS),
]
