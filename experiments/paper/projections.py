"""Random projections against projections along what was found (claims 1 to 3)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from codiag import factor_error
from codiag.diagonalize import UWEDGE, Jacobi
from codiag.methods import NLS
from codiag.synthetic import paper_tensor
from codiag.tensors import symmetrize
from codiag.theory import project_noise
from experiments.claims import Claim, Ruling, Trials
from experiments.fitting import silent_fit
from experiments.paper.trials import axis, grid, shown, stages
from experiments.records import Cell, Record, Values
from experiments.reports import Figure, Panel, Report, Series, Table
from experiments.runs import Experiment

NUMBERS = (5, 10, 15, 20, 30, 40, 60, 80, 100)
EPS = {"orthogonal": 0.05, "free": 0.01}
SCHEMES = {"orthogonal": ("random", "plug-in"), "free": ("random", "inverse factors", "factors")}
N_TRIALS = 1000
N_ORACLE = 100
"""Trials of the oracle, which takes most of the time."""


def _cells(quick: bool) -> list[Cell]:
    return grid({"factors": list(SCHEMES)}, 40 if quick else N_TRIALS)


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
        found = diagonalizer(project_noise(tensor, directions[:number]), seed=rng).factor
        values[f"random {number}"] = factor_error(found, truth)
        for scheme in SCHEMES[cell["factors"]][1:]:
            again = diagonalizer(project_noise(tensor, _plugged(scheme, found)), seed=rng).factor
            values[f"{scheme} {number}"] = factor_error(again, truth)
    if cell["trial"] >= N_ORACLE:
        return values
    oracle = NLS(init=(problem.weights, problem.factors), max_replacements=0)
    return values | {"oracle": factor_error(silent_fit(tensor, 10, method=oracle, symmetric=True), problem)}


def _plugged(scheme: str, found: np.ndarray) -> np.ndarray:
    """Return the directions of the second stage, one of unit length for every component."""
    rows = np.linalg.pinv(found) if scheme == "inverse factors" else found.T
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def _report(records: Sequence[Record]) -> Report:
    trials, panels, rows = Trials(records), [], []
    for kind in (kind for kind in SCHEMES if kind in axis(records, "factors")):
        series = []
        for scheme in SCHEMES[kind]:
            means = [trials.mean(f"{scheme} {number}", factors=kind) for number in NUMBERS]
            series.append(Series(scheme, NUMBERS, means))
            rows.append([kind, scheme, str(len(trials.at(factors=kind))), *(shown(mean) for mean in means)])
        level = trials.mean("oracle", factors=kind)
        series.append(Series("oracle", [NUMBERS[0], NUMBERS[-1]], [level, level]))
        name = "orthogonal" if kind == "orthogonal" else "not orthogonal"
        panels.append(
            Panel(f"{name}, eps = {EPS[kind]}", "random projections L", "mean error of factors", series, y_log=False)
        )
    story = (
        "Mean error of factors against the number of random projections, d = k = 10: random projections come down to "
        "where projections along estimates are from the first."
    )
    table = Table("Mean errors", ["factors", "projections", "trials", *(f"L = {n}" for n in NUMBERS)], rows)
    note = "The oracle is least squares from the truth; it is not told that factors are orthogonal, where OJD is."
    return Report([Figure("Random projections and plug-in projections", story, panels)], [table], [note])


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
    return Ruling(text, "yes" if near and falls else "partly" if near or falls else "no")


def _falling(falls: bool) -> str:
    return "fall" if falls else "do not always fall"


def _smaller_difference(trials: Trials) -> Ruling:
    def gain(scheme: str, kind: str) -> float:
        return trials.mean("random 20", factors=kind) / trials.mean(f"{scheme} 20", factors=kind) - 1

    orthogonal = gain("plug-in", "orthogonal")
    inverse, factors = gain("inverse factors", "free"), gain("factors", "free")
    small = [abs(one) < orthogonal / 2 for one in (inverse, factors)]
    text = (
        f"random over plug-in at L = 20: orthogonal {100 * orthogonal:+.1f} %, along inverse factors "
        f"{100 * inverse:+.1f} %, along factors {100 * factors:+.1f} %"
    )
    return Ruling(text, "yes" if all(small) else "partly" if any(small) else "no")


PROJECTIONS = Experiment(
    "projections",
    "Random against plug-in projections",
    "d = k = 10, noise of the text: Gaussian weights and eps times independent Gaussian entries, eps = 0.05 with "
    "orthogonal factors and 0.01 with others. Plug-in is along the inverse factors, as Algorithm 1 has it, and along "
    "the factors, as the authors' program does. Means over 1000 trials.",
    _cells,
    _measure,
    _report,
    stages(N_TRIALS),
)
PLACE = "d = k = 10, eps = 0.05, 1000 trials"
CLAIMS = [
    Claim(1, "projections", _third_of_the_projections, enough=N_TRIALS),
    Claim(2, "projections", _limit, enough=N_TRIALS),
    Claim(3, "projections", _smaller_difference, enough=N_TRIALS),
]
