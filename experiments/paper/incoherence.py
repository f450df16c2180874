"""What factors that are nearly alike do: to accuracy, and to convergence (claims 4 and 28)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from codiag import match_components
from codiag.diagonalize import QRJ1D, UWEDGE
from codiag.extending import Diagonalizer
from codiag.synthetic import orthonormal_factor
from codiag.tensors import FactoredTensor
from experiments.claims import Claim, Ruling, Trials, of_parts
from experiments.paper.trials import grid, n_trials, panel_of, stage_of, table_of
from experiments.records import Cell, Record, Values, select
from experiments.reports import Figure, Report
from experiments.runs import Experiment
from experiments.simulated import unit_noise
from experiments.theory import first_order_perturbation, project_noise, projected_diagonals

MU = (0.0, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95)
D = 8
SCHEMES = ("isotropic", "random", "factors", "inverse factors")
PLUG_IN = ("inverse factors", "factors")
FAR = 0.1
"""A component this far from where the same method ends from the truth is in another optimum."""
LOCAL_MU = (0.0, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99)


def coherent_factor(size: int, rank: int, mu: float, seed: list[int]) -> np.ndarray:
    """Return unit columns whose cosines are all `mu`, turned at random."""
    gram = (1 - mu) * np.eye(rank) + mu
    return np.asarray(orthonormal_factor(size, rank, seed) @ np.linalg.cholesky(gram).T)


def random_mix(n_projections: int, size: int, rng: np.random.Generator) -> np.ndarray:
    """Return as few directions as the size that stand for so many Gaussian ones.

    The objective does not change when matrices are mixed orthogonally, so that the triangle of a QR decomposition of
    the directions does for all of them.
    """
    directions = rng.standard_normal((n_projections, size))
    return np.asarray(np.linalg.qr(directions, mode="r")) if n_projections > size else directions


def _cells(quick: bool) -> list[Cell]:
    cells = grid({"what": ["accuracy"], "mu": MU}, 1000) + grid({"what": ["optima"], "mu": LOCAL_MU}, 400)
    return [cell for cell in cells if not quick or cell["trial"] < 4]


def _stage(cell: Cell) -> float:
    if cell["what"] == "accuracy":
        return 4 + stage_of(cell["trial"], 1000)
    return stage_of(cell["trial"], 60, 400)


def _measure(cell: Cell, seed: int) -> Values:
    return _accuracy(cell["mu"], seed) if cell["what"] == "accuracy" else _optima(cell["mu"], seed)


def _accuracy(mu: float, seed: int, eps: float = 1e-5) -> Values:
    factor = coherent_factor(D, D, mu, [seed, 1])
    weights = np.linspace(1.0, 0.5, D)
    noise = unit_noise(D, [seed, 2])
    tensor = FactoredTensor(weights, (factor,) * 3).to_dense() + eps * noise
    inverse = np.linalg.inv(factor)
    inverse /= np.linalg.norm(inverse, axis=1, keepdims=True)
    directions = {
        "isotropic": np.eye(D),  # what infinitely many random ones amount to
        "random": random_mix(256, D, np.random.default_rng([seed, 3])),
        "factors": factor.T,
        "inverse factors": inverse,
    }
    values: Values = {}
    for name, rows in directions.items():
        fit = UWEDGE(tol=1e-12, max_sweeps=500)(project_noise(tensor, rows), rng=seed)
        found = match_components(fit.factor, factor).factors[0]
        theory = first_order_perturbation(
            factor, projected_diagonals(factor, weights, rows), project_noise(noise, rows), orthogonal=False
        )
        values[name] = float(np.mean(np.linalg.norm(found - factor, axis=0))) / eps
        values[f"{name}, theory"] = float(np.mean(theory.errors))
    return values


def _optima(mu: float, seed: int, eps: float = 1e-3) -> Values:
    factor = coherent_factor(D, D, mu, [seed, 1])
    rng = np.random.default_rng([seed, 2])
    weights = rng.standard_normal(D)
    tensor = FactoredTensor(weights, (factor,) * 3).to_dense() + eps * unit_noise(D, rng)
    stack = project_noise(tensor, rng.standard_normal((2 * D, D)))
    stack = (stack + stack.transpose(0, 2, 1)) / 2
    methods: dict[str, Diagonalizer] = {"QRJ1D": QRJ1D(tol=1e-7, max_sweeps=1000), "UWEDGE": UWEDGE()}
    return {name: float(_is_elsewhere(method, stack, factor, seed)) for name, method in methods.items()}


def _is_elsewhere(method: Diagonalizer, stack: np.ndarray, factor: np.ndarray, seed: int) -> bool:
    """Tell whether a method ends elsewhere than from the truth."""
    blind = method(stack, rng=seed).factor
    inverse = np.linalg.inv(factor)
    inside = method(inverse @ stack @ inverse.T, rng=seed).factor
    told = factor @ inside
    told /= np.linalg.norm(told, axis=0)
    matched = match_components(blind, told).factors[0]
    return bool(np.max(np.linalg.norm(matched - told, axis=0)) > FAR)


def _report(records: Sequence[Record]) -> Report:
    accuracy, optima = select(records, what="accuracy"), select(records, what="optima")
    names = [*SCHEMES, *(f"{name}, theory" for name in SCHEMES)]
    excess = [_excess(record) for record in accuracy]
    panels, tables = [], []
    if accuracy:
        panels.append(panel_of(accuracy, SCHEMES, "mu", "error", "cosine mu of all factors", "mean error over eps"))
        panels.append(
            panel_of(
                excess,
                SCHEMES[1:],
                "mu",
                "beside isotropic projections",
                "cosine mu of all factors",
                "error over that of isotropic",
                y_log=False,
            )
        )
        tables.append(table_of(accuracy, {"mu": "mu"}, names, "Mean error over eps"))
    if optima:
        panels.append(
            panel_of(
                optima, ("QRJ1D", "UWEDGE"), "mu", "local optima", "cosine mu", "share in another optimum", y_log=False
            )
        )
        tables.append(table_of(optima, {"mu": "mu"}, ("QRJ1D", "UWEDGE"), "Share of runs in another optimum"))
    story = (
        "Error over noise against the cosine between factors, the same as a ratio to isotropic projections, and how "
        f"often a start ends in another optimum; {n_trials(records)} trials a place, bars of two standard errors."
    )
    notes = [
        "d = k = 8, all factors with the same cosine mu. Random: 256 Gaussian projections; isotropic: what they tend "
        "to with their number, whose first-order error depends on the sum of their squares alone. Another optimum: "
        f"a component more than {FAR} away from where the same method ends when it starts at the truth."
    ]
    return Report([Figure("Incoherence", story, panels, "section-5-incoherence")], tables, notes)


def _excess(record: Record) -> Record:
    """Return errors as ratios to that of isotropic projections of the same tensor."""
    ratios = {name: record.values[name] / record.values["isotropic"] for name in SCHEMES}
    return Record(record.cell, ratios)


def _slopes(trials: Trials) -> Ruling:
    means = {name: [trials.mean(name, what="accuracy", mu=mu) for mu in MU] for name in SCHEMES}
    slopes = {name: float(np.polyfit(MU, values, 1)[0]) for name, values in means.items()}
    less = [slopes[name] < slopes["isotropic"] for name in PLUG_IN]
    text = "slope in mu of the error over eps: " + ", ".join(f"{name} {slopes[name]:.3f}" for name in SCHEMES)
    text += "; at mu = 0.95: " + ", ".join(f"{name} {means[name][-1]:.1f}" for name in SCHEMES)
    return Ruling(text, of_parts(*less))


def _local_optima(trials: Trials) -> Ruling:
    rates = [trials.mean("QRJ1D", what="optima", mu=mu) for mu in LOCAL_MU]
    others = [trials.mean("UWEDGE", what="optima", mu=mu) for mu in LOCAL_MU]
    safe = next((place for place, rate in enumerate(rates) if rate >= 0.01), len(rates))
    text = "share of QRJ1D runs in another optimum: " + ", ".join(
        f"{100 * rate:.1f} % at {mu:g}" for mu, rate in zip(LOCAL_MU, rates, strict=True)
    )
    text += f" (UWEDGE at most {100 * max(others):.1f} %)"
    return Ruling(text, of_parts(safe > 0, max(rates[safe:], default=0.0) > 0.01))


INCOHERENCE = Experiment(
    "incoherence",
    "Sections 5 and 7: incoherence",
    "d = k = 8, factors with one cosine mu between all of them; symmetric noise of unit operator norm (theory). "
    "Accuracy: eps = 1e-5, weights from 1 to 0.5, UWEDGE. Local optima: eps = 1e-3, Gaussian weights, 16 random "
    "projections, each method from its own start.",
    _cells,
    _measure,
    _report,
    _stage,
)
CLAIMS = [
    Claim(4, "incoherence", _slopes),
    Claim(28, "incoherence", _local_optima),
]
