"""The search for many tensors of one shape together: the same minima and the same stopping rule, swept as one batch.

Every tensor gets a start by diagonalization. If its residual is noise and no component is weak, that is all, as in the
search for one. If some are weak, the others are in every good fit, and only the weak ones are found again, as the
strongest terms of what the others leave, from other random vectors each time: until minima that were met in common show
that none is lower. Tensors for which they do not, or whose residual is not noise, are left to the search for one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from codiag._arrays import (
    Array,
    array_namespace,
    asarray_like,
    few_threads,
    matrix_transpose,
    normal_draws,
    on_host,
    squared_magnitudes,
    to_host,
)
from codiag.least_squares import (
    BRIEF_STEP,
    BRIEF_SWEEPS,
    MAX_SWEEPS,
    NEGLIGIBLE,
    TINY,
    TOLERANCE,
    Log,
    NormalEquations,
    OptimizeResult,
    Settled,
    columnwise_kronecker,
    largest_noise_term,
    largest_product,
    settle,
    stacked_excess,
    sweep,
)
from codiag.problem import Estimate, Problem
from codiag.search._contributions import unit_bounds
from codiag.search._local_minimum import WEAK_RATIO, LocalMinimum, lowest
from codiag.search._loop import chance_of_lower, should_stop, shows_optimum
from codiag.starts import assign_roles, diagonal_starts
from codiag.tensors import DenseTensor, FactoredTensor, is_large

VECTOR_ROUNDS = ((32, 5), (8, 10))
"""Random vectors from which the strongest term of a residual is found, and their sweeps."""


def joins(problem: Problem) -> bool:
    """Return whether a problem can be solved together with others: least squares of a small, complete tensor.

    Factors are free or not negative.
    """
    rules = [rule for rule in problem.constraints or () if rule is not None]
    is_plain = problem.loss is None and problem.required_features <= {"constraints"} and not problem.symmetric
    is_plain = is_plain and all(rule.is_cone and not rule.ridge for rule in rules)
    tensor = problem.tensor
    if not is_plain or problem.rank == 0 or not tensor.holds_entries or is_large(tensor.shape):
        return False
    return assign_roles(tensor.shape, problem.rank) is not None


def one_sided_modes(problem: Problem) -> tuple[bool, ...]:
    """Return which modes have factors that are not negative, of a problem that `joins` allows."""
    return tuple(rule is not None for rule in problem.constraints or (None,) * problem.tensor.order)


def search_together(problems: Sequence[Problem], rngs: Sequence[np.random.Generator]) -> list[Estimate | None]:
    """Solve problems of one shape and rank that `joins` allows; None for those that the usual search must solve.

    Parameters
    ----------
    problems : sequence of Problem
    rngs : sequence of numpy.random.Generator
        One for each, so that no answer depends on the other problems.
    """
    with few_threads(largest_product(problems[0])):
        return _Together(problems, rngs).solved()


@dataclass
class _Member:
    """One tensor, and the minima that were found for it."""

    problem: Problem
    place: int
    rng: np.random.Generator
    log: Log = field(default_factory=Log)
    ends: list[LocalMinimum] = field(default_factory=list)

    @cached_property
    def on_host(self) -> Problem:
        """The problem with its tensor in the memory of the host."""
        return self.problem if on_host(self.problem.tensor.reference) else self.problem.on_host()

    @property
    def best(self) -> LocalMinimum:
        return lowest(self.ends)

    @property
    def is_settled(self) -> bool:
        """Whether a further start would hardly end lower."""
        return self.best.is_noise and should_stop(self.ends)

    def estimate(self) -> Estimate:
        """Return the lowest minimum."""
        if len(self.ends) > 1:
            name = f"best of {len(self.ends)} local minima"
            self.log.add(name, 0, self.best.relative_error, p_missed=chance_of_lower(self.ends))
        return Estimate(self.best.result.components, self.log.history, True, 2 * self.best.objective)


class _Together:
    """The search for tensors of one shape: their entries, and what was found for each."""

    def __init__(self, problems: Sequence[Problem], rngs: Sequence[np.random.Generator]) -> None:
        pairs = enumerate(zip(problems, rngs, strict=True))
        self._members = [_Member(problem, place, rng) for place, (problem, rng) in pairs]
        dense = [problem.tensor.as_double().to_dense() for problem in problems]
        self._xp = array_namespace(dense[0])
        self._entries, self._rank = self._xp.stack(dense), problems[0].rank
        self._one_sided = one_sided_modes(problems[0])

    def solved(self) -> list[Estimate | None]:
        """Solve all problems, some of them by further starts."""
        roles = assign_roles(self._entries.shape[1:], self._rank)
        assert roles is not None
        starts = diagonal_starts(self._entries, roles, self._rank, [own.rng for own in self._members])
        starts = [_clipped(start) if sign else start for start, sign in zip(starts, self._one_sided, strict=True)]
        self._record(self._members, self._settled(self._members, starts, TOLERANCE), "sweeps from a diagonalization")
        self._converge(self._members)
        self._find_weak_again([own for own in self._members if not shows_optimum(own.ends)])
        self._converge([own for own in self._members if own.is_settled])
        return [own.estimate() if own.is_settled and own.best.result.converged else None for own in self._members]

    def _converge(self, members: Sequence[_Member]) -> None:
        """Take the lowest minima to the end."""
        members = [own for own in members if not own.best.result.converged]
        if not members:
            return
        before = [own.best for own in members]
        begun = self._stacked([end.result.components for end in before])
        self._record(members, self._settled(members, begun, TOLERANCE, MAX_SWEEPS // 3), "sweeps")
        for own, end in zip(members, before, strict=True):  # both are on the way to one minimum
            own.ends.remove(end if own.ends[-1].objective <= end.objective else own.ends[-1])

    def _find_weak_again(self, doubtful: Sequence[_Member]) -> None:
        """Add minima with weak components found again, until they show that none is lower."""
        by_number: dict[int, list[_Member]] = {}
        for own in doubtful:
            by_number.setdefault(0 if own.best.fits_anything else len(own.best.weak), []).append(own)
        for number, members in by_number.items():
            if 0 < number < self._rank:
                self._found_again(members)

    def _found_again(self, members: list[_Member], most: int = 4) -> None:
        """Find weak components again, equally many of each tensor: with the first, three minima of five must agree."""
        kept = [[i for i in range(self._rank) if i not in own.best.weak] for own in members]
        pairs = zip(members, kept, strict=True)
        others = self._stacked([own.best.result.components.columns(chosen) for own, chosen in pairs])
        for _ in range(most):
            self._record(members, self._with_terms(members, others), "sweeps with weak components found again")
            waiting = [i for i, own in enumerate(members) if own.best.is_noise and not should_stop(own.ends)]
            if not waiting:
                return
            members = [members[i] for i in waiting]
            others = [self._xp.take(factor, self._xp.asarray(waiting), axis=0) for factor in others]

    def _with_terms(self, members: Sequence[_Member], factors: list[Array]) -> Settled:
        """Return minima from some components and the strongest terms of what they leave, one after the other."""
        while factors[0].shape[2] < self._rank:
            factors = self._settled(members, factors, BRIEF_STEP).factors
            terms = self._strongest_terms(members, self._residuals(members, factors))
            factors = [self._xp.concat(pair, axis=2) for pair in zip(factors, terms, strict=True)]
        return self._settled(members, factors, NEGLIGIBLE, 2 * BRIEF_SWEEPS)

    def _strongest_terms(self, members: Sequence[_Member], residuals: Array) -> list[Array]:
        """Return the strongest of many rank-one terms of every residual, as factors (n, d_m, 1)."""
        equations, reference, n = NormalEquations(residuals, self._one_sided), to_host(residuals[:1, ...]), len(members)
        drawn = [
            np.concatenate([normal_draws(own.rng, (VECTOR_ROUNDS[0][0], size, 1), reference) for own in members])
            for size in residuals.shape[1:]
        ]
        terms, values = [asarray_like(term, residuals) for term in drawn], np.zeros((n, VECTOR_ROUNDS[0][0]))
        for n_kept, n_sweeps in (*VECTOR_ROUNDS, (1, 0)):
            ranked = np.argsort(np.reshape(to_host(values), (n, -1)), axis=1, kind="stable")
            places = self._xp.asarray(np.ravel(ranked[:, :n_kept] + ranked.shape[1] * np.arange(n)[:, None]))
            terms = [self._xp.take(term, places, axis=0) for term in terms]
            for _ in range(n_sweeps):
                terms, values = sweep(equations, terms)
        return terms

    def _settled(
        self, members: Sequence[_Member], factors: Sequence[Array], tol: float, max_sweeps: int = BRIEF_SWEEPS
    ) -> Settled:
        return settle(NormalEquations(self._of(members), self._one_sided), factors, max_sweeps=max_sweeps, tol=tol)

    def _of(self, members: Sequence[_Member]) -> Array:
        """Return the entries of some of the tensors."""
        if len(members) == len(self._members):
            return self._entries
        return self._xp.take(self._entries, self._xp.asarray([own.place for own in members]), axis=0)

    def _stacked(self, components: Sequence[FactoredTensor]) -> list[Array]:
        factors = zip(*(own.factors for own in components), strict=True)
        return [asarray_like(np.stack(own), self._entries) for own in factors]

    def _residuals(self, members: Sequence[_Member], factors: Sequence[Array]) -> Array:
        entries, model = self._of(members), factors[0] @ matrix_transpose(columnwise_kronecker(factors[1:]))
        return entries - self._xp.reshape(model, entries.shape)

    def _record(self, members: Sequence[_Member], settled: Settled, name: str) -> None:
        """Take note of where sweeps have ended, with objectives that are sums of squares."""
        xp, gaps = self._xp, self._residuals(members, settled.factors)
        values = to_host(xp.sum(squared_magnitudes(gaps), axis=tuple(range(1, gaps.ndim)))) / 2
        host = [to_host(factor) for factor in settled.factors]
        excess, bounds = stacked_excess(gaps), _removal_bounds(host)
        for i, own in enumerate(members):
            components = FactoredTensor(np.ones(self._rank), [factor[i] for factor in host], symmetric=False)
            ended = (int(settled.n_sweeps[i]), bool(settled.converged[i]))
            result = OptimizeResult(components, float(values[i]), *ended)
            term, known = largest_noise_term(own.problem, 2 * result.objective), dict[str, Any]()
            if excess[i] <= 1:
                known["is_noise"] = True
            if term > 0 and np.all(bounds[i] > WEAK_RATIO**2 * term):
                known["contributions"] = bounds[i] / term
            # What is not known yet is computed on the host.
            problem = own.problem if len(known) == len(("is_noise", "contributions")) else own.on_host
            if problem is not own.problem or on_host(gaps):
                known["residual"] = DenseTensor.of(to_host(gaps[i, ...]), symmetric=False)
            end = LocalMinimum(problem, result)
            vars(end).update(known)
            own.ends.append(end)
            own.log.add(name, ended[0], end.relative_error)


def _clipped(factor: Array) -> Array:
    """Return columns with most of their weight on the positive side, and without negative entries."""
    xp = array_namespace(factor)
    turned = xp.where(xp.sum(factor, axis=1, keepdims=True) < 0, -factor, factor)
    return xp.where(turned > 0, turned, 0 * turned)


def _removal_bounds(factors: Sequence[np.ndarray]) -> np.ndarray:
    """Return twice what `removal_bounds` does, for components of stacked factors: (n, k)."""
    norms = [np.linalg.norm(factor, axis=1, keepdims=True) + TINY for factor in factors]
    squares = np.prod([norm[:, 0, :] ** 2 for norm in norms], axis=0)
    return squares * unit_bounds([factor / norm for factor, norm in zip(factors, norms, strict=True)])
