"""Fits of ever higher ranks, each from the one below, and what each of them shows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np

from codiag._arrays import asarray_like, is_complex, to_double, to_host
from codiag._progress import tell
from codiag.diagnosis import FAIR, Facts, Halves
from codiag.least_squares import BRIEF, TINY, Limits, minimize, objective_of
from codiag.methods import Auto, Method
from codiag.problem import Estimate, Problem, interior
from codiag.result import Factorization, has_few_entries, solve
from codiag.search import Search
from codiag.starts import WarmStart, default_starts
from codiag.tensors import DenseTensor, FactoredTensor

LIMITS = Limits(max_iter=100, tol=1e-6)
"""Limits for a rank, which is fitted to the end only if it is chosen."""


MOST_SET_ASIDE = 20
"""Entries that are set aside at most, but for codes of missing values."""


def takes_single_entries(problem: Problem) -> bool:
    """Return whether single entries may be set aside: few and real ones, none of which stands for another."""
    is_tied = any(len(group) > 1 for group in problem.groups)
    return has_few_entries(problem) and not is_tied and not is_complex(problem.tensor.reference)


@dataclass(frozen=True, kw_only=True, eq=False)
class Upward(Method):
    """A fit from the default start, and from components of a lower rank with the strongest terms of their residual."""

    supports: ClassVar[frozenset[str]] = Auto.supports
    lower: FactoredTensor | None = None

    @property
    def has_per_index_options(self) -> bool:
        return True  # the components of a lower rank have rows

    def fit(self, problem: Problem, rng: np.random.Generator) -> Estimate:
        warm = () if self.lower is None else (WarmStart(components=self.lower),)
        starts = (*default_starts(problem)[:1], *warm)
        return Search(starts, len(starts), 20, LIMITS, max_work=3.0).run(problem, rng)


@dataclass(eq=False)
class Tried:
    """A rank that was tried.

    Attributes
    ----------
    fit, below : Factorization
        The fit, and that of the rank below.
    halves : Halves, or None
    lower : Tried, or None
        The rank below.
    events : Problem, or None
        What was asked, if entries are counts whose zeros are not listed: ranks are compared by events held out.
    """

    fit: Factorization
    below: Factorization | None
    halves: Halves | None
    lower: Tried | None = None
    events: Problem | None = None

    @cached_property
    def facts(self) -> Facts:
        """What is known about the fit."""
        return Facts(self.fit, self.below)

    @property
    def rank(self) -> int:
        return self.fit.rank

    @cached_property
    def flaw(self) -> str:
        """Why a component of the fit is no component, or nothing, without regard to halves of the data."""
        if self.facts.degenerate:
            return "degenerate"
        if self.events is not None:
            is_better = self.lower is None or self.predicts_better_than(self.lower)
            return "" if is_better else "not needed to predict events that are held out"
        if not math.isfinite(self.fit._noise):
            return "no residual degrees of freedom"
        if np.any(self.facts.significances <= 1):
            return "not significant"
        return "not determined" if self.facts.is_undetermined else ""

    @cached_property
    def of_halves(self) -> list[FactoredTensor] | None:
        """The components of both halves of the data."""
        components = self.fit._components
        known = components.changed(lambda factor, _: to_double(factor), to_double(components.weights))
        return None if self.halves is None else self.halves.refitted(known)

    @cached_property
    def congruence(self) -> float:
        """The least congruence of a component in both halves; NaN where there are none."""
        if self.halves is None or self.of_halves is None:
            return math.nan
        found = self.halves.congruences(self.of_halves)
        alone = [r for (mode, _), r in self.facts.lone_samples.items() if mode == self.halves.mode]
        kept = np.delete(found, alone)
        return float(np.min(kept)) if kept.size else math.nan

    @cached_property
    def held_out(self) -> np.ndarray | None:
        """Squared errors, or deviances, of held-out entries, by block, relative to what there is to explain."""
        if self.events is not None:
            return held_out_events(self.fit, self.events)
        if self.fit._deviance is not None:
            return held_out_deviances(self.fit)
        return None if self.halves is None or self.of_halves is None else self.halves.held_out(self.of_halves)

    @property
    def is_supported(self) -> bool:
        """Whether all components are significant and determined, and replicate."""
        return not self.flaw and not self.congruence < FAIR

    def predicts_better_than(self, other: Tried) -> bool:
        """Return whether held-out blocks are predicted better: logarithms, by more than a standard error."""
        if self.held_out is None or other.held_out is None:
            return False
        gaps = np.log(np.maximum(other.held_out, TINY)) - np.log(np.maximum(self.held_out, TINY))
        spread = float(np.std(gaps, ddof=1)) / math.sqrt(gaps.size) if gaps.size > 1 else 0.0
        return float(np.mean(gaps)) > spread

    @property
    def held_out_error(self) -> float:
        """Relative error of held-out entries."""
        return math.nan if self.held_out is None else math.sqrt(max(float(np.sum(self.held_out)), 0.0))


@dataclass(eq=False)
class Upwards:
    """Ranks in ascending order.

    Attributes
    ----------
    problem : Problem
        With the entries that were set aside missing.
    tried : dict of int to Tried
    set_aside : list of tuples of int
        Entries that are out of line, as the assessment of a fit says.
    """

    problem: Problem
    rng: np.random.Generator
    tried: dict[int, Tried] = field(default_factory=dict)
    set_aside: list[tuple[int, ...]] = field(default_factory=list)
    _halves: Halves | None = None
    _has_halves: bool = False

    @cached_property
    def _is_of_events(self) -> bool:
        return self.problem.loss is not None and self.problem.listed_entries.has_zeros

    def add(self, rank: int) -> Tried:
        """Fit a rank above all others."""
        tell("rank %d", rank, is_place=True)
        below = self.tried[max(self.tried)].fit if self.tried else None
        lower = None if below is None else below._components
        while True:
            fit = solve(self.problem.with_rank(rank), Upward(lower=lower), self.rng)
            events = self.problem.with_rank(rank) if self._is_of_events else None
            one = Tried(fit, below, None, self.tried.get(max(self.tried, default=0)), events)
            out_of_line = self._entries_out_of_line(one.facts)
            if not out_of_line:
                break
            self.set_aside += out_of_line
            self.problem, self._has_halves = self.problem.without_entries(out_of_line), False
            if below is not None:  # in which they are missing, too
                below = solve(self.problem.with_rank(below.rank), Upward(lower=lower), self.rng)
                self.tried[below.rank] = Tried(below, self.tried[below.rank].below, self.halves_of(below))
                lower = below._components
        one.halves = self.halves_of(fit)
        self.tried[rank] = one
        return one

    def _entries_out_of_line(self, facts: Facts) -> list[tuple[int, ...]]:
        """Return entries that the assessment names, but for those that carry a component which noise has not."""
        if not takes_single_entries(facts.fit.problem):
            return []
        found = [
            entry.place
            for entry in facts.entries
            if (math.isfinite(entry.z) if entry.component is None else not facts.significances[entry.component] > 1)
        ]
        found = found[: max(MOST_SET_ASIDE - len(self.set_aside), 0)]
        is_anything_left = bool(found) and self.problem.without_entries(found).data.squared_norm > 0
        return found if is_anything_left else []

    def halves_of(self, fit: Factorization) -> Halves | None:
        """Return halves of the data, which are the same for all ranks."""
        if not self._has_halves:
            self._has_halves = True
            is_known = has_few_entries(self.problem) and self.problem.symmetric is not True
            stated = self.problem.in_double_precision()
            self._halves = Halves.of(stated, Facts(fit).correlated) if is_known else None
        return self._halves


def held_out_deviances(fit: Factorization) -> np.ndarray | None:
    """Return the deviances of entries that were left out under a loss, by fold, relative to the null deviance."""
    problem, deviance = fit.problem, fit._deviance
    if not has_few_entries(problem) or deviance is None or not deviance.null > 0:
        return None
    problem, loss = problem.in_double_precision(), problem.loss
    values = to_double(to_host(problem.tensor.to_dense()))
    entries = problem.data.all_entries
    weights = np.ones(values.shape) if entries.weights is None else to_host(entries.weights).astype(np.float64)
    folds = _folds(weights > 0)
    dense = DenseTensor.of(asarray_like(values, problem.tensor.reference), symmetric=False)
    found = []
    for fold in range(4):
        kept = asarray_like(weights * (folds != fold), dense.reference)
        part = problem.with_part(dense, kept, problem.constraints).with_rank(fit.rank)
        components = minimize(part, interior(fit._components, problem.constraints), BRIEF).components
        hidden = (folds == fold) & (weights > 0)
        model = to_double(to_host(components.to_dense()))[hidden]
        assert loss is not None
        if loss.needs_nonnegative:
            model = np.maximum(model, 1e-2 * float(np.mean(model)))
        found.append(2 * float(np.sum(weights[hidden] * loss.value(values[hidden], model))))
    return np.array(found) / deviance.null


def held_out_events(fit: Factorization, problem: Problem) -> np.ndarray | None:
    """Return the deviances of a quarter of the events of a sparse tensor under fits of the others, by fold.

    They are relative to the null deviance, None for counts that are no integers. Parts of Poisson counts that are drawn
    at random are independent Poisson counts, with means in proportion to their shares.
    """
    problem, deviance = problem.in_double_precision(), fit._deviance
    listed = problem.listed_entries
    counts = to_host(listed.values)
    if deviance is None or not deviance.null > 0 or np.any(counts != np.floor(counts)):
        return None
    parts = np.random.default_rng(0).multinomial(counts.astype(np.int64), [0.25] * 4).astype(np.float64)
    found, start = [], fit._components.changed(lambda factor, _: factor, fit._components.weights * 0.75)
    for part in parts.T:
        tensors = (listed.tensor_of(each) for each in (counts - part, part))
        others, hidden = (problem.with_part(tensor, None, problem.constraints, problem.symmetric) for tensor in tensors)
        trained = minimize(others, interior(start, problem.constraints), BRIEF).components
        expected = interior(trained.changed(lambda factor, _: factor, trained.weights / 3), problem.constraints)
        found.append(objective_of(hidden).distance(expected))
    return np.array(found) / deviance.null


def _folds(known: np.ndarray) -> np.ndarray:
    """Return the number of the fold of every entry, at random, with equally many observed ones in each."""
    folds = np.full(known.shape, -1)
    folds[known] = np.random.default_rng(0).permutation(np.arange(np.count_nonzero(known)) % 4)
    return folds


def best_prediction(tried: Sequence[Tried]) -> Tried | None:
    """Return the rank that predicts held-out entries best; None if there is none."""
    known = [one for one in tried if one.held_out is not None]
    return min(known, key=lambda one: one.held_out_error) if known else None
