"""How often intervals of 90 % hold the truth, under constraints, with missing entries and with weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import codiag
from benchmarks.measure import run_parts, table
from codiag.constraints import Fixed
from codiag.extending import Limits, minimize
from codiag.tensors import FactoredTensor

SHAPE, RANK, NOISE = (8, 9, 10), 3, 0.02
NORMAL = 1.6449
"""The normal quantile of intervals of 90 %."""


class Draw(NamedTuple):
    """A noisy tensor, the factors that are in it, and what is told about them."""

    tensor: np.ndarray
    factors: list[np.ndarray]
    known: dict[str, Any]


class Coverage(NamedTuple):
    """What a number of fits say: the share of intervals that hold the truth, and measured over predicted errors."""

    covered: float
    ratio: float


def plain(rng: np.random.Generator) -> Draw:
    """Positive factors, of which nothing is told."""
    factors = [rng.random((size, RANK)) for size in SHAPE]
    clean = FactoredTensor(np.ones(RANK), factors).to_dense()
    return Draw(clean + NOISE * rng.standard_normal(SHAPE), factors, {})


def nonnegative(rng: np.random.Generator) -> Draw:
    """Non-negative factors with three entries in ten at zero."""
    factors = [rng.random((size, RANK)) for size in SHAPE]
    factors = [np.where(factor < 0.3, 0, factor) for factor in factors]
    clean = FactoredTensor(np.ones(RANK), factors).to_dense()
    return Draw(clean + NOISE * rng.standard_normal(SHAPE), factors, {"constraints": "nonnegative"})


def missing(rng: np.random.Generator) -> Draw:
    """Half the entries missing at random."""
    draw = plain(rng)
    return draw._replace(tensor=np.where(rng.random(SHAPE) < 0.5, np.nan, draw.tensor))


def weighted(rng: np.random.Generator) -> Draw:
    """Standard deviations of the noise from a fifth to five times the usual, known up to a common factor."""
    draw = plain(rng)
    deviations = 5 ** rng.uniform(-1, 1, SHAPE)
    clean = FactoredTensor(np.ones(RANK), draw.factors).to_dense()
    noise = NOISE * deviations * rng.standard_normal(SHAPE)
    return Draw(clean + noise, draw.factors, {"weights": 7 / deviations**2})


def fixed(rng: np.random.Generator) -> Draw:
    """The factor of the first mode is known."""
    draw = plain(rng)
    return draw._replace(known={"constraints": [Fixed(draw.factors[0]), None, None]})


def orthogonal(rng: np.random.Generator) -> Draw:
    """All factors are orthogonal."""
    factors = [np.linalg.qr(rng.standard_normal((size, RANK)))[0] for size in SHAPE]
    clean = FactoredTensor(np.linspace(1, 0.6, RANK), factors).to_dense()
    return Draw(clean + NOISE / 2 * rng.standard_normal(SHAPE), factors, {"constraints": "orthogonal"})


def shared(rng: np.random.Generator) -> Draw:
    """The first two modes share a factor."""
    first, last = rng.random((SHAPE[0], RANK)), rng.random((SHAPE[2], RANK))
    clean = FactoredTensor(np.ones(RANK), [first, first, last]).to_dense()
    return Draw(clean + NOISE * rng.standard_normal(clean.shape), [first, first, last], {"symmetric": (0, 1)})


CASES: dict[str, Callable[[np.random.Generator], Draw]] = {
    "nothing known": plain,
    "non-negative, some zero": nonnegative,
    "half missing": missing,
    "known unequal variances": weighted,
    "one factor fixed": fixed,
    "orthogonal": orthogonal,
    "two modes share a factor": shared,
}


def coverage(make: Callable[[np.random.Generator], Draw], n_trials: int) -> Coverage:
    """Fit draws; intervals are of the entries of unit factors that are free, errors those of whole columns."""
    hits, squares, predicted = [], [], []
    for trial in range(n_trials):
        draw = make(np.random.default_rng(trial))
        fit = codiag.factorize(draw.tensor, RANK, rng=trial, **draw.known)
        matching = codiag.match_components(fit, draw.factors)
        for mode, factor in enumerate(draw.factors):
            gaps = np.abs(matching.factors[mode] - factor / np.linalg.norm(factor, axis=0))
            errors = fit.entry_standard_errors[mode][:, matching.permutation]
            hits.append((gaps <= NORMAL * errors)[errors > 0])
            moves = fit.standard_errors[mode, matching.permutation] > 0
            squares.append(np.sum(gaps**2, axis=0)[moves])
            predicted.append(fit.standard_errors[mode, matching.permutation][moves] ** 2)
    ratio = np.sqrt(np.sum(np.concatenate(squares)) / np.sum(np.concatenate(predicted)))
    return Coverage(float(np.mean(np.concatenate(hits))), float(ratio))


class WeightedErrors(NamedTuple):
    """Factor errors with weights, without, and of weighted least squares from the truth, one a draw."""

    weighted: np.ndarray
    unweighted: np.ndarray
    oracle: np.ndarray


def weighted_errors(n_trials: int) -> WeightedErrors:
    """Fit tensors whose noise has known unequal variances."""
    errors = []
    for trial in range(n_trials):
        draw = weighted(np.random.default_rng(trial))
        ours = codiag.factorize(draw.tensor, RANK, rng=trial, **draw.known)
        unweighted = codiag.factorize(draw.tensor, RANK, rng=trial)
        problem = codiag.Problem(draw.tensor, RANK, **draw.known)
        oracle = minimize(problem, FactoredTensor(np.ones(RANK), draw.factors), Limits()).components
        errors.append([codiag.factor_error(fit, draw.factors) for fit in (ours, unweighted, oracle)])
    return WeightedErrors(*np.array(errors).T)


def intervals(n_trials: int = 200) -> str:
    """Return the table of coverage."""
    rows = []
    for name, make in CASES.items():
        found = coverage(make, n_trials)
        rows.append((name, f"{100 * found.covered:.1f} %", f"{found.ratio:.3f}"))
    headings = ("what is known", "intervals of 90 % that hold the truth", "measured over predicted error")
    size = " x ".join(map(str, SHAPE))
    return (
        f"## Standard errors\nEntries of the factors of {size} tensors of rank {RANK}, {n_trials} draws each, and the "
        "root mean square error of the factors over its prediction.\n\n" + table(headings, rows)
    )


def weights(n_trials: int = 50) -> str:
    """Return the table of errors with and without weights."""
    found = weighted_errors(n_trials)
    ratios = [errors / found.oracle for errors in (found.weighted, found.unweighted)]
    rows = [
        (name, f"{np.median(ratio):.4f}", f"{np.max(ratio):.4f}")
        for name, ratio in zip(("weighted by known variances", "unweighted"), ratios, strict=True)
    ]
    return (
        f"## Weights\nFactor error over that of weighted least squares from the truth, {n_trials} draws; standard "
        "deviations of the noise differ up to 25 times.\n\n" + table(("fit", "median", "worst"), rows)
    )


if __name__ == "__main__":
    run_parts("intervals", {"intervals": intervals, "weights": weights})
