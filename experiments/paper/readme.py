"""The run that the authors' README prints, again: free factors, their noise, tensors not symmetrized."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from codiag.diagonalize import QRJ1D
from codiag.methods import ALS, NLS
from codiag.metrics import nearest_error
from codiag.synthetic import PlantedTensor
from experiments.claims import Claim, Trials
from experiments.estimators.limits import GramLathauwer
from experiments.estimators.slices import SD2
from experiments.fitting import silent_fit
from experiments.paper.trials import grid, history, shown
from experiments.records import Cell, Record, Values
from experiments.reports import Figure, Panel, Report, Series, Table
from experiments.runs import Experiment
from experiments.simulated import paper_tensor

EPS = (1e-3, 7.5e-4, 5e-4, 2.5e-4, 1e-4)
PRINTED = {"NOJD0": 0.142636, "NOJD1 (factors)": 0.135456, "ALS": 0.200180, "Lathauwer": 0.235587, "NLS": 0.154352}
"""What the README prints for one run; of which noise it does not say."""
SIZE = 20
N_TRIALS = 40


def _cells(quick: bool) -> list[Cell]:
    return [cell for cell in grid({"eps": EPS}, N_TRIALS) if not quick or cell["trial"] < 1]


def _measure(cell: Cell, seed: int) -> Values:
    problem = paper_tensor(SIZE, SIZE, orthogonal=False, noise=cell["eps"], model="authors", seed=seed)
    rng = np.random.default_rng([seed, 1])
    directions = rng.standard_normal((2 * SIZE, SIZE))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    values: Values = {}
    for name in ("NOJD0", "NOJD1 (factors)"):
        found, sweeps = _diagonalized(problem.tensor, directions, rng)
        values |= {name: nearest_error(found, problem.factors[0]), f"{name} sweeps": sweeps}
        directions = found.T
    return values | _least_squares(problem, int(rng.integers(2**31)))


def _diagonalized(tensor: np.ndarray, directions: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, float]:
    """Return unit factors by QRJ1D on projections that are not symmetric, as the authors' program runs it."""
    stack = np.einsum("abc,lc->lab", tensor, directions)
    end = QRJ1D(tol=1e-4 * SIZE, max_sweeps=200).iterate(stack, rng)
    factor = np.linalg.inv(np.asarray(end.left))
    return factor / np.linalg.norm(factor, axis=0), float(end.n_sweeps)


def _least_squares(problem: PlantedTensor, seed: int) -> Values:
    """Return errors of the first factors by baselines that ignore the symmetry, from Tensorlab's default start."""
    start, values = SD2(n_pairs=1), {}
    methods = {
        "ALS": ALS(init=start),
        "Lathauwer": GramLathauwer(),
        "NLS": NLS(init=start, max_replacements=0),
    }
    for name, method in methods.items():
        fit = silent_fit(problem.tensor, SIZE, method=method, symmetric=False, seed=seed)
        values[name] = nearest_error(np.asarray(fit.factors[0]), problem.factors[0])
    return values


def _report(records: Sequence[Record]) -> Report:
    trials, rows, series = Trials(records), [], []
    places = [eps for eps in EPS if trials.at(eps=eps)]
    for name, printed in PRINTED.items():
        found = [trials.values(name, eps=eps) for eps in places]
        means = [float(values.mean()) for values in found]
        errors = [2 * float(values.std()) / np.sqrt(values.size) for values in found]
        rows.append([name, shown(printed), *(shown(mean) for mean in means)])
        low = [mean - error for mean, error in zip(means, errors, strict=True)]
        high = [mean + error for mean, error in zip(means, errors, strict=True)]
        series.append(Series(name, places, means, low, high))
    marks = [Series("the authors' README", [EPS[0] * 1.3] * len(PRINTED), list(PRINTED.values()), kind="paper")]
    panel = Panel("d = k = 20", "noise eps", "mean error of factors", [*series, *marks], x_log=True)
    n = min((len(trials.at(eps=eps)) for eps in places), default=0)
    story = (
        f"Mean error of the nearest estimate against noise, {n} or more tensors a place, with two standard errors; "
        "stars at the right are the five values of the README, of which it does not say the noise."
    )
    table = Table("Means beside the README", ["method", "README", *(f"eps = {eps:g}" for eps in places)], rows)
    return Report([Figure("The authors' README, rerun", story, [panel], "readme-rerun")], [table], [])


README = Experiment(
    "readme",
    "The authors' README",
    "d = k = 20, the authors' noise (squared Gaussian weights, eps times independent Gaussian entries), tensors not "
    "symmetrized, their measure (the nearest estimate of each factor); ALS and NLS from the eigenvectors of a pair of "
    "projections, the default of Tensorlab.",
    _cells,
    _measure,
    _report,
    history(12, N_TRIALS),
)
CLAIMS: list[Claim] = []
