"""Simulations of the project's own results on projections: ``python -m experiments.own_results``.

Tables in Markdown, which `docs/theory/projections.md` includes: the law of random projections, directions, the worst
noise, and ranks below the size, with a counterexample. Every number is an error of a diagonalizer, not of a formula;
formulas stand beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

import codiag
from codiag.diagonalize import QRJ1D, UWEDGE, Diagonalizer, OrthogonalNewton
from codiag.methods import NOJD
from codiag.metrics import match_components
from codiag.synthetic import mild_factor, orthonormal_factor, unit_factor
from codiag.tensors import FactoredTensor, symmetrize
from experiments.estimators.optimal import OptimalNOJD
from experiments.simulated import unit_noise
from experiments.theory import (
    error_bound,
    expected_errors,
    first_order_perturbation,
    optimal_directions,
    project_noise,
    projected_diagonals,
    random_projection_ratio,
    worst_errors,
    worst_noise,
)

LAW_SIZES = ((5, 5, 8), (10, 10, 20), (20, 10, 30), (40, 40, 60))
"""Sizes, ranks and numbers of projections."""
RANKS = (5, 10, 20, 40)
WORST_RANKS = (4, 8, 16, 32)
GAP_SIZES = ((4, 2), (6, 3), (8, 4), (12, 6))
COUNTER_SIZES = (3, 5, 9, 17)
SMALL = 1e-6
"""Noise at which errors are of first order."""
LEVELS = (1e-4, 1e-3, 1e-2)
"""Noise of the comparison of methods: standard deviation of its entries, with weights of 1 to 2."""


def fitted(tensor: np.ndarray, rows: np.ndarray, diagonalizer: Diagonalizer, truth: np.ndarray) -> np.ndarray:
    """Return the displacements of factors that are found from projections along rows."""
    stack = project_noise(tensor, rows)
    found = diagonalizer((stack + stack.transpose(0, 2, 1)) / 2, rng=0).factor
    moved: np.ndarray = match_components(found, truth).factors[0] - truth
    return moved


def free(rank: int) -> UWEDGE:
    return UWEDGE(tol=1e-13, statistical_tol=1e-12, max_sweeps=1000, rank=rank)


def law(draws: int) -> list[list[str]]:
    """Squared errors of Gaussian projections over those of all slices, with the standard error of the ratio."""
    rows = []
    for d, k, n in LAW_SIZES:
        rng = np.random.default_rng([1, d, k, n])
        method = OrthogonalNewton(tol=1e-12, rank=k)
        squares = np.zeros((draws, 2))
        for draw in range(draws):
            factor, weights = orthonormal_factor(d, k, rng), rng.uniform(1, 2, k)
            tensor = FactoredTensor(weights, (factor,) * 3).to_dense()
            tensor = tensor + SMALL * symmetrize(rng.standard_normal((d, d, d)))
            for place, directions in enumerate((rng.standard_normal((n, d)), np.eye(d))):
                squares[draw, place] = np.sum(fitted(tensor, directions, method, factor) ** 2)
        ratio, error = root_ratio(squares)
        formula = random_projection_ratio(d, n)
        rows.append(
            [str(d), str(k), str(n), f"{formula:.4f}", f"{ratio:.4f} ± {error:.4f}", z_score(ratio, formula, error)]
        )
    return rows


def root_ratio(squares: np.ndarray) -> tuple[float, float]:
    """Return the root of the ratio of means of two columns, and its standard error by the delta method."""
    first, second = squares.mean(axis=0)
    ratio = np.sqrt(first / second)
    deviation = np.std(squares[:, 0] / first - squares[:, 1] / second) / np.sqrt(len(squares))
    return float(ratio), float(ratio * deviation / 2)


def z_score(measured: float, formula: float, error: float) -> str:
    return f"{(measured - formula) / error:+.1f}"


def expectations(draws: int) -> list[list[str]]:
    """Errors of four sets of directions, known factors, beside `expected_errors`."""
    rows = []
    for k in RANKS:
        rng = np.random.default_rng([2, k])
        factor, weights = mild_factor(k, k, rng), rng.uniform(1, 2, k)
        best = optimal_directions(factor, weights)
        cells = [str(k)]
        for directions in (np.eye(k), factor.T, np.linalg.inv(factor), best):
            theory = np.sum(expected_errors(factor, weights, directions, orthogonal=False) ** 2)
            squares = []
            for _ in range(draws):
                tensor = FactoredTensor(weights, (factor,) * 3).to_dense()
                tensor = tensor + SMALL * symmetrize(rng.standard_normal((k,) * 3))
                squares.append(np.sum((fitted(tensor, directions, free(k), factor) / SMALL) ** 2))
            error = np.std(squares) / np.mean(squares) / 2 / np.sqrt(draws)
            cells.append(f"{np.sqrt(theory / k):.3f}; {np.sqrt(np.mean(squares) / theory):.3f} ± {error:.3f}")
        rows.append(cells)
    return rows


METHODS: dict[str, Callable[..., NOJD]] = {
    "isotropic": partial(NOJD, plug_in=False),
    "factors": NOJD,
    "inverse": partial(NOJD, plug_in="inverse"),
    "optimal": OptimalNOJD,
}


def methods(tensors: int) -> list[list[str]]:
    """Errors of `NOJD` over those along isotropic directions: geometric mean over tensors, and medians."""
    rows = []
    for shape in ("k = d / 2", "k = d"):
        for k in RANKS[:-1]:
            for noise in LEVELS:
                errors = np.array([_errors(k, 2 * k if "/" in shape else k, noise, seed) for seed in range(tensors)])
                logs = np.log(errors / errors[:, :1])
                shares = np.exp(logs.mean(axis=0))
                spread = shares * logs.std(axis=0) / np.sqrt(tensors)
                text = [f"{share:.3f} ± {more:.3f}" for share, more in zip(shares[1:], spread[1:], strict=True)]
                rows.append([shape, str(k), f"{noise:g}", f"{np.median(errors[:, 0]):.2g}", *text])
    return rows


def _errors(k: int, d: int, noise: float, seed: int) -> list[float]:
    rng = np.random.default_rng([3, k, d, seed])
    factor, weights = unit_factor(d, k, rng), rng.uniform(1, 2, k)
    tensor = FactoredTensor(weights, (factor,) * 3).to_dense() + noise * symmetrize(rng.standard_normal((d,) * 3))
    found = []
    for kind in METHODS.values():
        method = kind(directions="orthonormal", n_projections=d)
        fit = codiag.factorize(codiag.Problem(tensor, k, symmetric=True), method=method, rng=0)
        moved = match_components(fit.factors[0], factor).factors[0] - factor
        found.append(float(np.sqrt(np.mean(np.sum(moved**2, axis=0)))))
    return found


def worst(_: int) -> list[list[str]]:
    """Errors of the first factor for the worst noise, beside formulas, our bound and that of the paper."""
    rows = []
    for k in WORST_RANKS:
        orthonormal, weights = orthonormal_factor(k, k, k), np.ones(k)
        coherent = np.linalg.cholesky(0.7 * np.eye(k) + 0.3).T  # cosines of 0.3
        inverse = np.linalg.inv(coherent)
        aside = coherent[:, 1] - coherent[:, 1] @ coherent[:, 0] * coherent[:, 0]
        many = {"n_projections": 10**18}
        cases: Sequence[tuple[str, np.ndarray, np.ndarray, np.ndarray, bool, bool]] = (
            ("orthogonal", orthonormal, orthonormal[:, 0], orthonormal.T, True, True),
            ("free, plug-in", coherent, inverse[0], inverse, False, True),
            ("free, isotropic", coherent, inverse[0], np.eye(k), False, False),
        )
        for name, factor, direction, directions, orthogonal, plug_in in cases:
            method = OrthogonalNewton(tol=1e-12) if orthogonal else free(k)
            measured = 0.0
            for other in (None, aside):
                tensor = FactoredTensor(weights, (factor,) * 3).to_dense() + SMALL * worst_noise(direction, other)
                error = np.linalg.norm(fitted(tensor, directions, method, factor)[:, 0]) / SMALL
                measured = max(measured, float(error))
            ours = worst_errors(factor, weights, orthogonal=orthogonal, plug_in=plug_in)
            paper = error_bound(factor, weights, 1.0, orthogonal=orthogonal, **({} if plug_in else many))[0]
            numbers = [measured, ours.attained[0], ours.bound[0], paper]
            rows.append([name, str(k), *(f"{number:.4g}" for number in numbers), f"{paper / measured:.1f}"])
    return rows


def below_full_rank(draws: int) -> list[list[str]]:
    """Full-size free diagonalization at k < d: inverse factors outside the range, and errors over theory."""
    rows = []
    for d, k in GAP_SIZES:
        found: dict[float, list[list[float]]] = {noise: [] for noise in (1e-3, 1e-5)}
        for seed in range(draws):
            for noise, values in found.items():
                values.append(_full_size(d, k, noise, seed))
        for noise, values in found.items():
            outside, whole, first = np.median(values, axis=0)
            largest = np.max(values, axis=0)[1]
            numbers = [f"{outside:.2f}", f"{whole:.2f}", f"{largest:.2f}", f"{first:.4f}"]
            rows.append([str(d), str(k), f"{noise:g}", *numbers])
    return rows


def _full_size(d: int, k: int, noise: float, seed: int) -> list[float]:
    rng = np.random.default_rng([4, d, k, seed])
    factor, tensor_noise = mild_factor(d, k, rng), unit_noise(d, rng)
    tensor, rows = FactoredTensor(np.ones(k), (factor,) * 3).to_dense() + noise * tensor_noise, np.eye(d)
    diagonals = projected_diagonals(factor, np.ones(k), rows)
    theory = first_order_perturbation(factor, diagonals, project_noise(tensor_noise, rows), orthogonal=False).errors
    stack = project_noise(tensor, rows)
    whole = QRJ1D(tol=1e-10, max_sweeps=500)((stack + stack.transpose(0, 2, 1)) / 2, rng=0).factor
    whole = whole / np.linalg.norm(whole, axis=0)
    cosines = whole.T @ factor
    places = np.argmax(np.abs(cosines), axis=0)
    matched = whole[:, places] * np.sign(cosines[places, np.arange(k)])
    inverse = np.linalg.inv(whole)[places]
    inside = inverse @ factor @ np.linalg.pinv(factor)
    outside = np.linalg.norm(inverse - inside, axis=1) / np.linalg.norm(inside, axis=1)
    scale = noise * np.sqrt(np.mean(theory**2))
    first = fitted(tensor, rows, free(k), factor)
    errors = [np.sqrt(np.mean(np.sum(moved**2, axis=0))) / scale for moved in (matched - factor, first)]
    return [float(np.median(outside)), *map(float, errors)]


def counterexample(_: int) -> list[list[str]]:
    """Noise whose form is a multiple of 3 x_1 x_d^2, rank d - 1: errors at full size, and with the range first."""
    rows = []
    for d in COUNTER_SIZES:
        form = np.zeros((d, d, d))
        form[0, -1, -1] = form[-1, 0, -1] = form[-1, -1, 0] = np.sqrt(0.75)
        factor = np.eye(d)[:, :-1]
        clean = FactoredTensor(np.ones(d - 1), (factor,) * 3).to_dense()
        for noise in (1e-2, 1e-4, 1e-6):
            whole = UWEDGE(tol=1e-13, statistical_tol=1e-12, max_sweeps=1000)(clean + noise * form, rng=0).factor
            whole = whole / np.linalg.norm(whole, axis=0)
            full = np.sqrt(2 - 2 * np.max(np.abs(whole[0])))
            first = np.linalg.norm(fitted(clean + noise * form, np.eye(d), free(d - 1), factor)[:, 0])
            bound = error_bound(factor, np.ones(d - 1), noise, orthogonal=False, n_projections=10**18)[0]
            theory = np.sqrt(np.sqrt(0.75) * noise)
            rows.append([str(d), f"{noise:g}", f"{full:.3g}", f"{theory:.3g}", f"{bound:.3g}", f"{first:.1g}"])
    return rows


TABLES: dict[str, tuple[Callable[[int], list[list[str]]], int, str, list[str]]] = {
    "law": (
        law,
        400,
        "Random projections: root mean squared error over that of all slices, {draws} tensors a row; noise 1e-6.",
        ["d", "k", "L", "law", "measured", "standard errors off"],
    ),
    "expectations": (
        expectations,
        200,
        "Directions: expected error, and measured over expected, {draws} draws of noise 1e-6 a cell; d = k.",
        ["k", "isotropic", "factors", "inverse factors", "optimal"],
    ),
    "methods": (
        methods,
        40,
        "`NOJD`: error over that of isotropic directions, geometric mean of {draws} random tensors a row.",
        ["shape", "k", "noise", "isotropic, median error", "plug-in", "plug-in, inverse", "optimal"],
    ),
    "worst": (
        worst,
        1,
        "The worst noise of unit operator norm, equal weights, cosines of 0.3 for free factors: error of a factor.",
        [
            "factors",
            "k",
            "measured",
            "attained, formula",
            "our bound",
            "the paper's bound",
            "the paper's over measured",
        ],
    ),
    "below full rank": (
        below_full_rank,
        20,
        "k < d: full-size free diagonalization (QRJ1D), {draws} tensors a row. Medians unless it says largest.",
        [
            "d",
            "k",
            "noise",
            "inverse factors, outside over inside the range",
            "error over first order",
            "largest",
            "range first: error over first order",
        ],
    ),
    "counterexample": (
        counterexample,
        1,
        "k = d - 1, orthonormal factors, noise of unit operator norm along 3 x_1 x_d^2, all slices: error of factor 1.",
        ["d", "noise", "full size", "root of 0.866 times the noise", "the paper's bound", "range first"],
    ),
}


def table(name: str, share: float) -> str:
    """Return a table in Markdown."""
    measure, draws, caption, headings = TABLES[name]
    draws = max(3, round(share * draws))
    lines = [headings, ["---"] * len(headings), *measure(draws)]
    return "\n".join([caption.format(draws=draws), "", *(f"| {' | '.join(cells)} |" for cells in lines)])


def main(
    names: Annotated[list[str] | None, typer.Argument(help=f"Tables: {', '.join(TABLES)}; all by default.")] = None,
    folder: Annotated[Path | None, typer.Option("--out", help="Where tables are kept, one file each.")] = None,
    share: Annotated[float, typer.Option(help="Share of the draws to run.")] = 1.0,
) -> None:
    """Simulate the project's own results on projections."""
    for name in names or TABLES:
        text = table(name, share)
        if folder is None:
            typer.echo(text + "\n")
        else:
            (folder / f"{name.replace(' ', '_')}.md").write_text(text + "\n")


if __name__ == "__main__":
    typer.run(main)
