"""The theorems: bounds, eigengaps and the number of projections (claims 29 to 31)."""

from __future__ import annotations

import numpy as np

from codiag import match_components
from codiag.diagonalize import UWEDGE, OrthogonalNewton, real_eigenvectors
from codiag.synthetic import orthonormal_factor
from codiag.tensors import FactoredTensor, symmetrize
from experiments.claims import Claim
from experiments.paper.bounds_shown import (
    EPS,
    GAPS,
    MU,
    NUMBERS,
    PAIR_NUMBERS,
    PAIR_RANKS,
    RANKS,
    SHAPES,
    WORST_RANKS,
    D,
    bounds_hold,
    bounds_report,
    few_projections,
    no_gap,
)
from experiments.paper.incoherence import coherent_factor, random_mix
from experiments.paper.trials import grid, stage_of
from experiments.records import Cell, Values
from experiments.runs import Experiment
from experiments.simulated import unit_noise
from experiments.theory import (
    error_bound,
    first_order_perturbation,
    minimum_projections,
    project_noise,
    projected_diagonals,
)


def _cells(quick: bool) -> list[Cell]:
    cells = []
    for kind, values in MU.items():
        cells += grid(
            {"what": ["bound"], "kind": [kind], "mu": values, "k": RANKS, "eps": EPS, "pi_min": [1.0, 0.3]}, 50
        )
    cells += grid({"what": ["worst"], "k": WORST_RANKS}, 1)
    cells += grid({"what": ["gap"], "gap": GAPS}, 1000)
    for d, k in SHAPES:
        cells += grid({"what": ["number"], "d": [d], "k": [k]}, 300)
    cells += grid({"what": ["pairs"], "k": PAIR_RANKS}, 300)
    few = {"bound": 1, "worst": 1, "gap": 20, "number": 1, "pairs": 20}
    return [cell for cell in cells if not quick or cell["trial"] < few[cell["what"]]]


def _stage(cell: Cell) -> float:
    return stage_of(cell["trial"], {"bound": 50, "worst": 1, "gap": 1000, "number": 300, "pairs": 300}[cell["what"]])


def _measure(cell: Cell, seed: int) -> Values:
    if cell["what"] == "bound":
        return _bound(cell, seed)
    if cell["what"] == "gap":
        return _gap(cell["gap"], seed)
    if cell["what"] == "worst":
        return _worst(cell["k"])
    return _number(cell["d"], cell["k"], seed) if cell["what"] == "number" else _pairs(cell["k"], seed)


def _worst(rank: int, eps: float = 1e-5) -> Values:
    """Measure plug-in errors under the noise 3 x_1 (x_2^2 + ... + x_k^2) - x_1^3, of unit operator norm."""
    factor, weights = np.eye(rank), np.ones(rank)
    noise = np.zeros((rank,) * 3)
    noise[0, 0, 0] = -1
    for i in range(1, rank):
        noise[0, i, i] = noise[i, 0, i] = noise[i, i, 0] = 1
    tensor = FactoredTensor(weights, (factor,) * 3).to_dense() + eps * noise
    fit = OrthogonalNewton(tol=1e-13)(project_noise(tensor, factor), rng=0)
    errors = np.linalg.norm(match_components(fit.factor, factor).factors[0] - factor, axis=0)
    bound = error_bound(factor, weights, eps, orthogonal=True)
    return {"measured": float(errors.max()) / eps, "share of bound": float(np.max(errors / bound))}


def _pairs(rank: int, seed: int) -> Values:
    """Measure by how much the closest pair of eigenvalues over L projections raises the error of a pair.

    The error of a pair is proportional to the inverse root of the sum over projections of squared differences of
    eigenvalues, which are Gaussian; it is divided by what it is on average over the pairs.
    """
    rng = np.random.default_rng(seed)
    squares, values, done = np.zeros((rank, rank)), {}, 0
    for number in PAIR_NUMBERS:
        for _ in range(number - done):
            row = rng.standard_normal(rank)
            squares += (row[:, None] - row) ** 2
        done = number
        least = np.min(squares + np.where(np.eye(rank) > 0, np.inf, 0.0))
        values[f"L = {number}"] = float(np.sqrt(2 * number / least))
    return values


def _bound(cell: Cell, seed: int) -> Values:
    """Measure errors where a theorem speaks: random directions in the number it asks for, and plug-in ones."""
    orthogonal, eps, rank = cell["kind"] == "orthogonal", cell["eps"], cell["k"]
    factor = coherent_factor(D, rank, cell["mu"], [seed, 1])
    weights, noise = np.linspace(1.0, cell["pi_min"], rank), unit_noise(D, [seed, 2])
    tensor = FactoredTensor(weights, (factor,) * 3).to_dense() + eps * noise
    number = minimum_projections(factor, orthogonal=orthogonal)
    rows = random_mix(number, D, np.random.default_rng([seed, 3]))
    values: Values = {"L": number}
    found = factor
    for name in ("random", "plug-in"):
        method = OrthogonalNewton(tol=1e-12, rank=rank) if orthogonal else UWEDGE(tol=1e-12, rank=rank)
        stack = project_noise(tensor, rows)
        found = match_components(method((stack + stack.transpose(0, 2, 1)) / 2, rng=seed).factor, factor).factors[0]
        errors = np.linalg.norm(found - factor, axis=0)
        scheme = number if name == "random" else None
        bound = error_bound(factor, weights, eps, orthogonal=orthogonal, n_projections=scheme)
        theory = first_order_perturbation(
            factor, projected_diagonals(factor, weights, rows), project_noise(noise, rows), orthogonal=orthogonal
        )
        values |= {f"{name} measured": float(errors.mean()), f"{name} bound": float(np.mean(bound))}
        values |= {f"{name} first order": eps * float(theory.errors.mean())}
        values[f"{name} share of bound"] = float(np.max(errors / bound))
        rows = found.T if orthogonal else np.linalg.pinv(found)  # plug-in: along what was found
    return values


def _gap(gap: float, seed: int, eps: float = 1e-5) -> Values:
    """Measure errors of two components that one projection, or one pair of them, hardly tells apart."""
    rng = np.random.default_rng([seed, 1])
    factor, weights = orthonormal_factor(D, D, rng), np.linspace(1.0, 0.5, D)
    noise = unit_noise(D, rng)
    tensor = FactoredTensor(weights, (factor,) * 3).to_dense() + eps * noise
    pair = rng.standard_normal(D)  # coordinates of directions in the basis of the factors
    first = np.linspace(-2.0, 2.0, D)[rng.permutation(D)] / weights  # eigenvalues at least 4 / 7 apart
    first[1] = (weights[0] * first[0] - gap) / weights[1]  # but those of 0 and 1, which are `gap` apart
    ratio = np.linspace(-2.0, 2.0, D)[rng.permutation(D)]  # all others at least 4 / 7 apart
    ratio[1] = ratio[0] - gap  # eigenvalues of the pair are these ratios
    pair = np.sign(pair) * (0.5 + np.abs(pair))  # no eigenvalue of the matrix that is inverted is near zero
    others = rng.standard_normal((2, D))
    stacks = {"one matrix": [first], "SD2": [pair * ratio, pair], "OJD0": [first, pair * ratio, pair, *others]}
    values: Values = {}
    for name, coordinates in stacks.items():
        matrices = project_noise(tensor, np.array(coordinates) @ factor.T)
        matrices = (matrices + matrices.transpose(0, 2, 1)) / 2
        if name == "one matrix":
            found = np.linalg.eigh(matrices[0])[1]
        elif name == "SD2":
            found = real_eigenvectors(np.linalg.solve(matrices[1].T, matrices[0].T).T)
        else:
            found = OrthogonalNewton(tol=1e-12)(matrices, rng=seed).factor
        values[name] = _error(found, factor, 2)
    again = OrthogonalNewton(tol=1e-12)(project_noise(tensor, found.T), rng=seed).factor
    return values | {"OJD1": _error(again, factor, 2)}


def _error(found: np.ndarray, factor: np.ndarray, first: int | None = None) -> float:
    """Return the mean distance of factors from the truth, of all or of the first ones."""
    matched = match_components(found, factor).factors[0]
    return float(np.mean(np.linalg.norm(matched - factor, axis=0)[:first]))


def _number(d: int, k: int, seed: int, eps: float = 1e-4) -> Values:
    rng = np.random.default_rng([seed, 1])
    factor = orthonormal_factor(d, k, rng)
    weights = rng.uniform(1, 2, k)
    tensor = FactoredTensor(weights, (factor,) * 3).to_dense() + eps * symmetrize(rng.standard_normal((d, d, d)))
    directions = rng.standard_normal((NUMBERS[-1], d))
    values: Values = {}
    for number in (*NUMBERS, 0):
        rows = directions[:number] if number else np.eye(d)  # an orthonormal basis stands for infinitely many
        stack = project_noise(tensor, rows)
        fit = OrthogonalNewton(tol=1e-10, rank=k)((stack + stack.transpose(0, 2, 1)) / 2, rng=seed)
        values[f"L = {number}" if number else "limit"] = _error(fit.factor, factor)
    return values


BOUNDS = Experiment(
    "bounds",
    "Table 1 and sections 4 and 5: the theorems",
    "Symmetric noise of unit operator norm, d = 8, k = 8 and 4; orthonormal factors, and factors with one cosine mu "
    "between all of them.",
    _cells,
    _measure,
    bounds_report,
    _stage,
)
CLAIMS = [
    Claim(29, "bounds", bounds_hold),
    Claim(30, "bounds", no_gap),
    Claim(31, "bounds", few_projections),
]
