"""The rank of a tensor under a loss: by the deviance of entries that were left out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from codiag._arrays import array_namespace, like, to_host
from codiag.least_squares import Scoring
from codiag.methods import Auto
from codiag.problem import Problem
from codiag.result import Factorization, solve
from codiag.selection._choice import RankChoice
from codiag.selection._evidence import Evidence
from codiag.selection._scan import is_degenerate
from codiag.tensors import DenseTensor, is_large

FOLDS = 4
"""Parts of the entries, each of which is left out once: what is fitted has three quarters of them."""

LEAST_MODEL = 1e-2
"""Least mean of an entry that was left out, relative to that of all: no model excludes what it has not seen."""


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Half the deviances of all entries, each as predicted without it, by rank."""

    values: dict[int, np.ndarray]

    def best(self) -> tuple[int, str]:
        """Return the smallest rank that predicts as well as the best, within a standard error of the difference."""
        totals = {rank: float(np.sum(values)) for rank, values in self.values.items()}
        lowest = min(totals, key=lambda rank: totals[rank])
        for rank in sorted(totals):
            gaps = self.values[rank] - self.values[lowest]
            error = float(np.std(gaps)) * math.sqrt(gaps.size)
            if totals[rank] - totals[lowest] <= error:
                break
        said = f"Rank {rank}: it predicts entries that were left out"
        if rank == lowest:
            return rank, f"{said} best, with a deviance of {2 * totals[rank]:.4g}."
        return rank, f"{said} as well as rank {lowest}, the best, within a standard error of the difference."


def choose_by_deviance(problem: Problem, ranks: Sequence[int], rng: np.random.Generator) -> RankChoice:
    """Return the rank that predicts entries best that were left out, and the fits of all ranks."""
    if is_large(problem.tensor.shape):
        raise ValueError(
            f"tensor must have at most two million entries to choose its rank under a loss; got {problem.tensor!r}. "
            "Give the rank"
        )
    cells = problem.data.all_cells
    weights = np.ones(cells.shape) if cells.weights is None else to_host(cells.weights)
    values = to_host(problem.tensor.to_dense()).astype(np.float64)
    folds = _folds(weights > 0, rng)
    reference = problem.with_rank(ranks[0])
    dense = DenseTensor.of(like(values, problem.tensor.reference), symmetric=False)
    held: dict[int, list[np.ndarray]] = {}
    for rank in ranks:
        held[rank] = []
        for fold in range(FOLDS):
            seen = reference.with_part(dense, like(weights * (folds != fold), dense.reference), problem.constraints)
            fit = solve(seen.with_rank(rank), Auto(max_starts=2), int(rng.integers(2**31)))
            hidden = (folds == fold) & (weights > 0)
            held[rank].append(weights[hidden] * _values(fit, values, hidden))
        if _is_past(held):
            break
    fits = {rank: solve(problem.with_rank(rank), Auto(), int(rng.integers(2**31))) for rank in held}
    null = 2 * Scoring(problem.with_rank(ranks[0])).null_value
    rank, reason = HeldOut({rank: np.concatenate(parts) for rank, parts in held.items()}).best()
    return RankChoice(rank, reason, fits, tuple(_evidence(fits[rank], held[rank], null) for rank in held))


def _is_past(held: dict[int, list[np.ndarray]]) -> bool:
    """Return whether the last two ranks predict worse than a lower one, so that higher ones are not tried."""
    totals = [sum(float(np.sum(part)) for part in parts) for parts in held.values()]
    return len(totals) > 2 and min(totals[-2:]) > min(totals[:-2])


def _folds(known: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the number of the fold of every entry, at random, with equally many observed ones in each."""
    folds = np.zeros(known.shape, dtype=int)
    folds[known] = rng.permutation(np.arange(np.count_nonzero(known)) % FOLDS)
    return folds


def _values(fit: Factorization, values: np.ndarray, hidden: np.ndarray) -> np.ndarray:
    """Return half the deviances of entries that a fit has not seen."""
    loss, model = fit.loss, to_host(fit.tensor.to_dense()).astype(np.float64)[hidden]
    if loss is None:
        raise ValueError("fit must have a loss other than least squares")
    if loss.needs_nonnegative:
        model = np.maximum(model, LEAST_MODEL * float(np.mean(model)))
    found = loss.value(values[hidden], model)
    return np.asarray(array_namespace(found).asarray(found))


def _evidence(fit: Factorization, parts: Sequence[np.ndarray], null: float) -> Evidence:
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.abs(to_host(fit.weights)) / fit.weight_standard_errors
    degenerate = is_degenerate(fit)
    return Evidence(
        rank=fit.rank,
        relative_error=fit.relative_error,
        core_consistency=math.nan,
        held_out=np.array([2 * float(np.sum(part)) for part in parts]) / null if null > 0 else None,
        congruence=math.nan,
        smallest_ratio=float(np.min(ratios)),
        residual_excess=math.nan if fit.residual_excess is None else fit.residual_excess,
        degenerate=degenerate,
        flaw="components cancel" if degenerate else "",
        noise_model=fit.noise_model,
    )
