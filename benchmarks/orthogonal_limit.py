"""Orthogonal factors at full rank: how far methods are from least squares over them, started at the truth.

``python -m benchmarks.orthogonal_limit --seeds 50 --size 25 --jobs 16`` prints a Markdown table.
"""

from __future__ import annotations

import argparse
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from typing import NamedTuple

import numpy as np

from benchmarks.measure import machine, table
from codiag import Problem, factor_error
from codiag.extending import Method
from codiag.methods import NLS, OJD, TPM, Auto
from codiag.result import solve
from codiag.tensors import symmetrize
from experiments.estimators.limits import orthogonal_oracle
from experiments.simulated import paper_tensor

CASES = [
    *(("authors", noise, True) for noise in (1e-3, 1e-2, 1e-1)),
    *(("text", noise, symmetric) for symmetric in (True, False) for noise in (1e-3, 1e-2)),
    *(("theory", noise, True) for noise in (1e-3, 1e-2, 1e-1)),
]
"""Noise model, factor of the noise, and whether one factor is sought or, as the noise is asymmetric, one a mode."""

METHODS: dict[str, tuple[Method, str | None]] = {
    'constraints="orthogonal"': (Auto(), "orthogonal"),
    "OJD1": (OJD(whiten=False), None),
    "TPM": (TPM(n_restarts=1), None),
}


class Trial(NamedTuple):
    model: str
    noise: float
    symmetric: bool
    size: int
    seed: int


def errors_of(trial: Trial) -> dict[str, tuple[float, float]]:
    """Return errors and processor seconds of the oracles and the methods on one tensor."""
    planted = paper_tensor(
        trial.size, trial.size, orthogonal=True, noise=trial.noise, model=trial.model, seed=[trial.seed, trial.size]
    )
    tensor = symmetrize(planted.tensor) if trial.symmetric else planted.tensor
    began = time.process_time()
    best = orthogonal_oracle(tensor, planted.factors, symmetric=trial.symmetric)
    found = {"oracle": (factor_error(best, planted), time.process_time() - began)}
    start = NLS(init=(planted.weights, planted.factors), max_replacements=0)
    for name, (method, constraint) in {**METHODS, "free oracle": (start, None)}.items():
        began = time.process_time()
        fit = solve(Problem(tensor, trial.size, constraints=constraint, symmetric=trial.symmetric), method, trial.seed)
        found[name] = factor_error(fit, planted), time.process_time() - began
    return found


def row(case: tuple[str, float, bool], trials: list[dict[str, tuple[float, float]]]) -> list[str]:
    """Return the median errors in units of the oracle's, and how often the constrained fit is within 1.05 of it."""
    model, noise, symmetric = case
    oracle = np.array([trial["oracle"][0] for trial in trials])
    ratios = {name: np.array([trial[name][0] for trial in trials]) / oracle for name in (*METHODS, "free oracle")}
    ours = ratios[next(iter(METHODS))]
    seconds = [np.median([trial[name][1] for trial in trials]) for name in METHODS]
    return [
        model if symmetric else f"{model}, modes apart",
        f"{noise:g}",
        f"{np.median(oracle):.2e}",
        *(f"{np.median(ratio):.3f}" for ratio in ratios.values()),
        f"{ours.max():.3f}",
        f"{np.mean(ours <= 1.05):.0%}",
        *(f"{second:.2f}" for second in seconds),
    ]


def main(arguments: list[str] | None = None) -> str:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--size", type=int, default=25)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    trials = [Trial(*case, options.size, seed) for case in CASES for seed in range(options.seeds)]
    with ProcessPoolExecutor(options.jobs) as pool:
        found = list(pool.map(errors_of, trials))
    groups = [found[n * options.seeds : (n + 1) * options.seeds] for n in range(len(CASES))]
    names = [*METHODS, "free oracle"]
    headings = ["noise model", "noise", "oracle", *names, "worst", "within 1.05", *(f"{name}, s" for name in METHODS)]
    text = (
        f"d = k = {options.size}, {options.seeds} seeds. The oracle is least squares over orthonormal factors from the "
        "truth: its median factor error; of the methods, median ratios to it, for the constrained fit also the worst "
        "and how often it is within 1.05; median processor seconds. The free oracle is least squares without "
        f"orthogonality, from the truth.\n{machine()}\n\n{table(headings, map(row, CASES, groups))}"
    )
    print(text)
    return text


if __name__ == "__main__":
    main()
