"""Many random starts at once: the lowest of them after rounds of sweeps, each round for fewer of them and longer."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from codiag._arrays import Array, asarray_like, conjugate, normal_draws, to_double, to_host
from codiag.least_squares import Batch, Log, flops_seconds
from codiag.problem import Problem
from codiag.reduction import dominant_bases
from codiag.starts._start import Start
from codiag.tensors import DenseTensor, FactoredTensor, is_large

ROUNDS = ((128, 8), (48, 12), (16, 30), (6, 60))
"""Members and sweeps of each round: half of the sweeps are for members that leave soon."""

N_SURVIVORS = 4
"""Members of a tournament that are minimized to the end."""

SHARE = 0.4
"""Part of the work that is left which a tournament may cost."""

LEAST_MEMBERS = 16
"""Members of the first round, at least."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Tournament(Start):
    """Random components, the lowest of many after sweeps on a core that holds twice the rank in each mode.

    Missing entries are filled with the best components so far. Factors of one sign are swept column by column, on all
    of their rows. One tournament follows the other.
    """

    def generate(self, problem: Problem, rng: np.random.Generator, log: Log) -> Iterator[FactoredTensor]:
        if not _applies(problem):
            return
        while True:
            entries, bases = _core(problem, log.best, log.budget.left * SHARE)
            one_sided = [rule is not None and rule.is_cone for rule in problem.constraints or (None,) * entries.ndim]
            n_sweeps = sum(n * members for members, n in ROUNDS)
            price = _price(entries.shape, problem.rank)
            n_members = int(min(ROUNDS[0][0], log.budget.left * SHARE / (price * n_sweeps) * ROUNDS[0][0]))
            if n_members < LEAST_MEMBERS:
                return
            share = n_members / ROUNDS[0][0]
            batch = _drawn(entries, bases, one_sided, n_members, problem.rank, rng)
            for members, n in ROUNDS:
                kept = max(round(members * share), N_SURVIVORS)
                batch.keep(np.argsort(batch.objectives, kind="stable")[:kept].tolist())
                batch.sweep(n)
                log.budget.spend(price * kept * n)
            for place in np.argsort(batch.objectives, kind="stable")[:N_SURVIVORS].tolist():
                yield _components(batch.member(place), bases, one_sided, problem)


def _applies(problem: Problem) -> bool:
    """Return whether entries are few, and factors free or of one sign, one for each mode."""
    rules = [rule for rule in problem.constraints or () if rule is not None]
    is_plain = all(rule.is_cone and not rule.ridge for rule in rules)
    is_there = problem.tensor.holds_entries and not is_large(problem.tensor.shape)
    return is_plain and is_there and not problem.shared and not problem.symmetric and problem.loss is None


def _price(shape: Sequence[int], rank: int) -> float:
    """Return the price of a sweep of one of many members."""
    return flops_seconds(2.0 * len(shape) * math.prod(shape) * rank)


def _core(problem: Problem, best: FactoredTensor | None, seconds: float) -> tuple[np.ndarray, list[np.ndarray | None]]:
    """Return the entries in the dominant directions of each mode, and these directions.

    They are at least twice as many as components, and as many as a tournament may cost.
    """
    entries = to_double(to_host(problem.tensor.to_dense()))
    if problem.entries is not None:
        weights = problem.observed_mask() if problem.weights is None else to_host(problem.weights)
        share = weights / np.max(weights)
        fill = np.sum(share * entries) / np.sum(share) if best is None else to_double(to_host(best.to_dense()))
        entries = share * entries + (1 - share) * fill
    tensor, n_sweeps = DenseTensor.of(entries, symmetric=False), sum(n * members for members, n in ROUNDS)
    size = max(entries.shape)
    while size > 2 * problem.rank and _price([min(d, size) for d in entries.shape], problem.rank) * n_sweeps > seconds:
        size = max(size * 4 // 5, 2 * problem.rank)
    bases = [None if basis is None else to_host(basis) for basis in dominant_bases(tensor, size)]
    turned = [None if basis is None else conjugate(basis) for basis in bases]
    return to_host(tensor.compress(*turned).to_dense()), bases


def _drawn(
    entries: np.ndarray,
    bases: Sequence[np.ndarray | None],
    one_sided: Sequence[bool],
    n: int,
    rank: int,
    rng: np.random.Generator,
) -> Batch:
    """Return members with random factors, in the coordinates of the core where they are free."""
    factors = []
    for size, basis, sign in zip(entries.shape, bases, one_sided, strict=True):
        drawn = normal_draws(rng, (n, size if basis is None or not sign else basis.shape[0], rank), entries)
        factors.append(np.abs(drawn) if sign else drawn)
    inside = [basis if sign else None for basis, sign in zip(bases, one_sided, strict=True)]
    return Batch(entries, factors, one_sided, inside)


def _components(
    factors: Sequence[Array], bases: Sequence[np.ndarray | None], one_sided: Sequence[bool], problem: Problem
) -> FactoredTensor:
    """Return the components of a member, of the whole tensor."""
    reference = problem.tensor.reference
    outside = [
        factor if basis is None or sign else basis @ factor
        for factor, basis, sign in zip(factors, bases, one_sided, strict=True)
    ]
    found = [asarray_like(factor, reference) for factor in outside]
    return FactoredTensor(asarray_like(np.ones(problem.rank), reference), found, symmetric=False)
