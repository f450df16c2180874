"""The rank of a tensor under a loss: by the deviance of entries that were left out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from codiag._arrays import like, to_host
from codiag._progress import tell
from codiag.least_squares import GeneralizedObjective
from codiag.methods import Auto, Method
from codiag.problem import Budget, Estimate, Problem
from codiag.result import Factorization, solve
from codiag.search import explore
from codiag.selection._choice import RankChoice
from codiag.selection._evidence import Evidence, ranks_tried
from codiag.selection._scan import BRIEF, EFFORT, MAX_STARTS, SCAN, is_degenerate
from codiag.starts import Extended, default_starts
from codiag.tensors import DenseTensor, FactoredTensor, is_large

FOLDS = 4
"""Parts of the entries, each of which is left out once: what is fitted has three quarters of them."""

MOST_WORSE = 2
"""Ranks in a row that predict worse than a lower one, after which no higher one is tried."""

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


@dataclass(frozen=True, kw_only=True, eq=False)
class Roughly(Method):
    """A fit of one of several ranks, from least squares and from a lower rank, to where steps gain less than noise.

    Deviances of entries that were left out scatter by far more than what further steps would change.
    """

    supports: ClassVar[frozenset[str]] = Auto.supports
    lower: FactoredTensor | None = None
    is_over: bool = False

    @property
    def has_per_index_options(self) -> bool:
        return True  # the components of a lower rank have rows

    def fit(self, problem: Problem, rng: np.random.Generator) -> Estimate:
        extended = () if self.lower is None else (Extended(components=self.lower),)
        starts = extended if self.is_over else (*extended, *default_starts(problem))
        limits = replace(BRIEF if self.is_over else SCAN, budget=Budget(EFFORT))
        end = explore(problem, starts, rng, max_starts=MAX_STARTS, max_swaps=0, limits=limits)
        return Estimate(end.outcome.components, (), False, loss=end.problem.loss)


@dataclass(frozen=True, eq=False)
class Series:
    """Fits of one problem by rank, each from the one before."""

    problem: Problem
    fits: dict[int, Factorization] = field(default_factory=dict)

    def add(self, rank: int, seed: int, *, is_over: bool) -> Factorization:
        """Fit a rank above all others."""
        lower = self.fits[max(self.fits)].tensor if self.fits else None
        self.fits[rank] = solve(self.problem.with_rank(rank), Roughly(lower=lower, is_over=is_over), seed)
        return self.fits[rank]


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
    dense = DenseTensor.of(like(values, problem.tensor.reference), symmetric=False)
    stated = problem.with_rank(ranks[0])
    parts = [
        stated.with_part(dense, like(weights * (folds != fold), dense.reference), problem.constraints)
        for fold in range(FOLDS)
    ]
    series = [Series(part) for part in (problem, *parts)]
    held: dict[int, list[np.ndarray]] = {}
    for rank in ranks:
        tell("rank %d", rank, is_place=True)
        fits = [one.add(rank, int(rng.integers(2**31)), is_over=_n_worse(held) > 0) for one in series]
        hidden = [(folds == fold) & (weights > 0) for fold in range(FOLDS)]
        held[rank] = [weights[own] * _values(fit, values, own) for fit, own in zip(fits[1:], hidden, strict=True)]
        if _n_worse(held) >= MOST_WORSE:
            break
    rank, reason = HeldOut({rank: np.concatenate(parts) for rank, parts in held.items()}).best()
    tell("rank %d, to the end", rank, is_place=True)
    fits_of = series[0].fits | {rank: solve(problem.with_rank(rank), Auto(), int(rng.integers(2**31)))}
    null = 2 * GeneralizedObjective(stated).null_value
    reason = f"{reason} {ranks_tried(list(held))}"
    return RankChoice(rank, reason, fits_of, tuple(_evidence(fits_of[rank], held[rank], null) for rank in held))


def _n_worse(held: dict[int, list[np.ndarray]]) -> int:
    """Return how many ranks were fitted since the one that predicts best."""
    totals = [sum(float(np.sum(part)) for part in parts) for parts in held.values()]
    return len(totals) - 1 - int(np.argmin(totals)) if totals else 0


def _folds(known: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the number of the fold of every entry, at random, with equally many observed ones in each."""
    folds = np.zeros(known.shape, dtype=int)
    folds[known] = rng.permutation(np.arange(np.count_nonzero(known)) % FOLDS)
    return folds


def _values(fit: Factorization, values: np.ndarray, hidden: np.ndarray) -> np.ndarray:
    """Return half the deviances of entries that a fit has not seen."""
    loss, model = fit.loss, to_host(fit.tensor.to_dense()).astype(np.float64)[hidden]
    assert loss is not None
    if loss.needs_nonnegative:
        model = np.maximum(model, LEAST_MODEL * float(np.mean(model)))
    return np.asarray(loss.value(values[hidden], model))


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
        residual_excess=math.nan if fit._residual_excess is None else fit._residual_excess,
        degenerate=degenerate,
        flaw="components cancel" if degenerate else "",
        noise_model=fit.noise_model,
    )
