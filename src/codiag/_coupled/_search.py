"""The search: starts from single sets and random ones, exchange steps, and the noise variances of the sets."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from codiag._arrays import to_host
from codiag._coupled._objective import CoupledObjective, RuleOfWeights, row_grams
from codiag._coupled._sets import Sets
from codiag._progress import tell
from codiag.constraints import Constraint
from codiag.least_squares import (
    BRIEF,
    ROUGH,
    SLOW,
    TOLERANCE,
    LeastSquares,
    Limits,
    descend,
    is_noise,
    unit_components,
)
from codiag.methods import Auto
from codiag.problem import LogEntry, Problem, most_components
from codiag.result import solve
from codiag.search import chance_missed
from codiag.tensors import FactoredTensor

MOST_STARTS = 8
"""Starts, at most."""
MOST_ROUNDS = 20
"""Rounds of estimating noise variances and minimizing, at most."""
CERTAIN = 0.05
"""Chance that a lower minimum was missed, at which the search ends."""


class Parts(NamedTuple):
    """Unit factors of the named modes, and weights (n_sets, rank)."""

    factors: list[np.ndarray]
    weights: np.ndarray


class Minimum(NamedTuple):
    """A minimum, and its objective for the variances of the search."""

    parts: Parts
    value: float
    n_iter: int
    converged: bool


@dataclass(frozen=True, eq=False)
class Found:
    """The lowest minimum, and the objective with the noise variances that belong to it."""

    end: Minimum
    objective: CoupledObjective
    history: tuple[LogEntry, ...]
    p_missed: float


class Search:
    """The search for the best fit of coupled sets."""

    def __init__(
        self,
        sets: Sets,
        rank: int,
        rules: Sequence[Constraint | None],
        rng: np.random.Generator,
        absent: np.ndarray | None = None,
    ) -> None:
        bounded = [[all(getattr(rules[mode], "is_cone", False) for mode in modes)] for modes in sets.modes]
        none = np.zeros((len(sets), rank), dtype=bool)
        of_weights = RuleOfWeights(np.array(bounded), none if absent is None else absent)
        like = [np.ones((size, rank)) for size in sets.sizes] + [np.zeros((len(sets), rank))]
        problem = Problem.of_result(np.ones(rank), like)
        self.problem = problem.stating(n_observed=int(sets.n_observed.sum()), constraints=(*rules, of_weights))
        self.sets, self.rank, self.rules, self.rng = sets, rank, rules, rng
        self.objective = CoupledObjective(self.problem, sets, np.ones(len(sets)))
        self.history: list[LogEntry] = []

    def run(self) -> Found:
        """Take starts in turn until a further one would hardly end lower, then minimize the lowest end to the end."""
        ends: list[Minimum] = []
        p_missed, clock = 1.0, time.perf_counter()
        for name, start in self._starts():
            end = self._exchanged(self._settled(start, ROUGH) if not ends else self._end(start, ROUGH))
            if not ends or end.value < min(ends, key=lambda one: one.value).value:
                end = self._settled(end.parts, ROUGH)
                ends = [one._replace(value=self._value(one.parts)) for one in ends]
            ends.append(end)
            p_missed = self._p_missed(ends)
            seconds, clock = time.perf_counter() - clock, time.perf_counter()
            self.history.append(LogEntry(name, end.n_iter, self._relative(end.value), seconds, p_missed=p_missed))
            tell("%d starts", len(ends))
            if p_missed <= CERTAIN or len(ends) >= MOST_STARTS:
                break
        return self.finished(min(ends, key=lambda one: one.value).parts, p_missed)

    def finished(self, start: Parts, p_missed: float) -> Found:
        """Return the minimum near parts."""
        clock = time.perf_counter()
        best = self._settled(start, Limits())
        name, seconds = self.objective.steps_name, time.perf_counter() - clock
        self.history.append(LogEntry(name, best.n_iter, self._relative(best.value), seconds, p_missed=p_missed))
        return Found(best, self.objective, tuple(self.history), p_missed)

    def _relative(self, value: float) -> float:
        return math.sqrt(max(2 * value / self.objective.squared_norm, 0.0))

    def point(self, parts: Parts) -> np.ndarray:
        """Return unknowns whose sizes are spread over modes and weights."""
        order = 1 + len(self.sets.sizes) / len(self.sets)
        sizes = np.sqrt(np.mean(parts.weights**2, axis=0)) ** (1 / order) + 1e-150
        counts = np.array([[len(modes)] for modes in self.sets.modes])
        return np.concatenate([*(factor * sizes for factor in parts.factors), parts.weights / sizes**counts])

    def _parts(self, components: FactoredTensor) -> Parts:
        factors = [np.asarray(factor) for factor in components.factors[:-1]]
        norms = np.stack([np.linalg.norm(factor, axis=0) for factor in factors])
        weights = components.factors[-1] * np.stack([np.prod(norms[list(own)], axis=0) for own in self.sets.modes])
        first = [np.eye(factor.shape[0], 1) for factor in factors]
        units = [np.where(norm > 0, factor / np.where(norm > 0, norm, 1.0), one)
                 for factor, norm, one in zip(factors, norms, first, strict=True)]  # fmt: skip
        return Parts(units, weights)

    def _value(self, parts: Parts) -> float:
        return self.objective.value(self.point(parts))

    def _end(self, start: Parts, limits: Limits) -> Minimum:
        components = self.objective.parametrization.components(self.point(start))
        result = descend(self.objective, components, limits)
        return Minimum(self._parts(result.components), result.objective, result.n_iter, result.converged)

    def _settled(self, start: Parts, limits: Limits) -> Minimum:
        """Minimize in turn with the estimation of the noise variances, until these change by less than one percent."""
        end = self._end(start, limits)
        for _ in range(MOST_ROUNDS if len(self.sets) > 1 else 1):
            before = np.array([member.precision for member in self.objective.members])
            variances = self._variances(end.parts)
            self.objective = CoupledObjective(self.problem, self.sets, variances)
            after = self._end(end.parts, limits)
            end = after._replace(n_iter=end.n_iter + after.n_iter)
            if np.all(np.abs(np.log(before * variances)) < 0.01):
                break
        return end

    def _variances(self, parts: Parts) -> np.ndarray:
        """Return noise variances from the residuals and their degrees of freedom.

        Parameters of a shared factor are divided among its sets in proportion to their information on it.
        """
        point = self.point(parts)
        information = np.zeros((len(self.sets), len(point), self.rank))
        for i, (objective, rows, precision) in enumerate(self.objective.members):
            information[i, rows] = precision * np.einsum("dii->di", row_grams(objective, point[rows]))
        total = information.sum(axis=0)
        shares = information / np.where(total > 0, total, 1.0)
        places = self.objective.parametrization.factor_of_row
        used = shares[:, places < len(self.sets.sizes)].sum(axis=(1, 2))
        for place in range(len(self.sets.sizes)):  # one parameter of a unit column is its length
            used -= shares[:, places == place].mean(axis=1).sum(axis=1)
        spare = np.maximum(self.sets.n_observed - used - self.rank, 1.0)
        return np.maximum(self.objective.distances(point) / spare, TOLERANCE**1.5)

    def _starts(self) -> Iterator[tuple[str, Parts]]:
        """Yield the fit of each tensor alone, completed in the other sets, then random factors."""
        sets = self.sets
        for i in sorted(range(len(sets)), key=lambda i: -int(sets.n_observed[i])):
            shape, modes = sets.arrays[i].shape, sets.modes[i]
            if len(shape) < 3 or self.rank > most_components(shape):
                continue
            own = [self.rules[mode] for mode in modes]
            free = Problem(sets.arrays[i], self.rank, constraints=own)
            fit = solve(free, Auto(), self.rng)
            known = {mode: np.nan_to_num(to_host(factor)) for mode, factor in zip(modes, fit.factors, strict=True)}
            yield f"the fit of {sets.names[i]!r} alone", self._completed(known)
        while True:
            yield "random", self._completed({})

    def _completed(
        self, known: Mapping[int, np.ndarray], objectives: Sequence[LeastSquares] | None = None, rank: int = 0
    ) -> Parts:
        """Return factors of all modes: those that are not known alternate from random ones, then the weights."""
        objectives, rank = objectives or [member.objective for member in self.objective.members], rank or self.rank
        factors = dict(known)
        for mode, size in enumerate(self.sets.sizes):
            if mode not in known:
                drawn, rule = self.rng.standard_normal((size, rank)), self.rules[mode]
                factors[mode] = _unit(np.abs(drawn) if rule is not None and rule.is_cone else drawn)
        one, weights = np.ones((1, rank)), np.zeros((len(self.sets), rank))
        for last in (*[False] * 10, True):
            for i, (objective, modes) in enumerate(zip(objectives, self.sets.modes, strict=True)):
                own = [factors[mode] for mode in modes]
                for place, mode in enumerate(modes):
                    if mode not in known and not last:
                        own[place] = factors[mode] = _unit(objective.solve_mode([*own, one], place))
                if last:
                    weights[i] = objective.solve_mode([*own, one], len(own))[0]
        return Parts([factors[mode] for mode in range(len(self.sets.sizes))], weights)

    def _exchanged(self, end: Minimum) -> Minimum:
        """Replace a component that explains little by the strongest term of a residual, while that lowers the end."""
        if not all(rule is None or rule.is_cone for rule in self.rules):
            return end
        for _ in range(2 * self.rank):
            trials = [self._end(start, BRIEF) for start in self._replacements(end.parts)]
            best = min(trials, key=lambda one: one.value)
            if not best.value < end.value * (1 - max(SLOW, 4 * self.objective.noise_variance)):
                return end
            after = self._end(best.parts, ROUGH)
            end = after._replace(n_iter=end.n_iter + best.n_iter + after.n_iter)
        return end

    def _replacements(self, parts: Parts) -> Iterator[Parts]:
        """Yield parts in which a term of the residual of a set is in the place of one of two weak components."""
        point, objectives, terms = self.point(parts), [], []
        for objective, rows, _ in self.objective.members:
            components = objective.parametrization.components(point[rows])
            residual = objective.residual(components)
            terms.append(unit_components(objective.terms(components, 1, residual)[0]))
            objectives.append(LeastSquares(Problem(residual, 1)))
        weak = np.argsort(self._contributions(parts))[:2]
        for term, modes in zip(terms, self.sets.modes, strict=True):
            new = self._completed({mode: term.factors[place] for place, mode in enumerate(modes)}, objectives, 1)
            for r in weak:
                start = Parts([factor.copy() for factor in parts.factors], parts.weights.copy())
                for factor, column in zip([*start.factors, start.weights], [*new.factors, new.weights], strict=True):
                    factor[:, r] = column[:, 0]
                yield start

    def _contributions(self, parts: Parts) -> np.ndarray:
        """Return what the other components cannot explain of each, in noise variances, with factors held."""
        total = np.zeros(self.rank)
        for member, modes, weights in zip(self.objective.members, self.sets.modes, parts.weights, strict=True):
            gram = math.prod((parts.factors[m].T @ parts.factors[m] for m in modes), start=np.ones((self.rank,) * 2))
            total += member.precision * weights**2 / np.diag(np.linalg.inv(gram + TOLERANCE * np.eye(self.rank)))
        return total

    def _p_missed(self, ends: Sequence[Minimum]) -> float:
        """Return the chance that a lower minimum was missed, as in `codiag.search`: n starts of which h met the lowest.

        Zero if the lowest leaves no more than noise in every set.
        """
        best = min(ends, key=lambda one: one.value)
        point = self.point(best.parts)
        if all(_leaves_noise(objective, point[rows]) for objective, rows, _ in self.objective.members):
            return 0.0
        tolerance = max(self.objective.noise_variance / 2, SLOW)
        n, h = len(ends), sum(end.value <= best.value * (1 + tolerance) for end in ends)
        return chance_missed(n, h)


def _leaves_noise(objective: LeastSquares, point: np.ndarray) -> bool:
    components = objective.parametrization.components(point)
    return is_noise(objective.problem, objective.residual(components), components)


def _unit(factor: np.ndarray) -> np.ndarray:
    norms = np.linalg.norm(factor, axis=0)
    return np.asarray(factor / np.where(norms > 0, norms, 1.0))
