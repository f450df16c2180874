"""Many random starts at once: the lowest of them after rounds of sweeps, each round for fewer of them and longer."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from codiag._arrays import BLOCK, asarray_like, normal_draws, to_double, to_host
from codiag.least_squares import Batch, Log, member_seconds, objective_of
from codiag.problem import Problem
from codiag.reduction import dominant_core
from codiag.starts._batch_loss import LossBatch
from codiag.starts._start import Start
from codiag.tensors import DenseTensor, FactoredTensor, is_large

ROUNDS = ((128, 10), (32, 20), (8, 70), (4, 100))
"""Members and sweeps of each round, the last of which are the survivors. Of rounds that cost up to 3300 sweeps of a
member, these most often kept one that led to the lowest minimum, over 105 problems of real tensors."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Tournament(Start):
    """Random components, the lowest of many after sweeps on a core that holds twice the rank in each mode.

    If entries are missing, sweeps are on the observed ones. Factors of one sign are swept column by column, on all of
    their rows. One tournament follows the other, while the budget allows sixteen members; what
    one costs is counted once all its survivors were taken.
    """

    def generate(self, problem: Problem, rng: np.random.Generator, log: Log) -> Iterator[FactoredTensor]:
        if not tournaments_apply(problem):
            return
        pool = Pool(problem)
        most, least = min(ROUNDS[0][0], pool.most_members), ROUNDS[-1][0]
        n_sweeps = sum(members * n for members, n in ROUNDS)
        while True:
            share, n_taken = min(log.budget.left / (n_sweeps * pool.sweep_seconds), 1.0), 0
            if share * most < least**2:
                return
            batch = pool.drawn(int(share * most), rng)
            for members, n in ROUNDS:
                kept = min(max(round(members * share), least), most)
                batch.select(np.argsort(batch.objectives, kind="stable")[:kept].tolist())
                batch.sweep(n)
                n_taken += kept * n
            for place in np.argsort(batch.objectives, kind="stable").tolist():
                yield pool.components(batch, place)
            log.budget.spend(pool.sweep_seconds * n_taken)


def tournaments_apply(problem: Problem) -> bool:
    """Return whether entries are few, and factors free or of one sign, one for each mode."""
    rules = [rule for rule in problem.constraints or () if rule is not None]
    is_plain = all(rule.is_cone and not rule.ridge for rule in rules)
    is_there = problem.tensor.holds_entries and not is_large(problem.tensor.shape)
    loss = problem.loss
    is_known = loss is None or not (loss.has_covariance or None in vars(loss).values())  # nothing is to be estimated
    return is_plain and is_there and is_known and not problem.shared and not problem.symmetric


class Pool:
    """The entries that members are swept on, on the host: a core of complete ones, or all observed ones.

    Attributes
    ----------
    sweep_seconds : float
        The price of a sweep of one member, at one operation for an addition and a multiplication.
    most_members : int
        Members whose products fit in memory.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem, self._shares = problem, None
        self._entries = to_double(to_host(problem.tensor.to_dense()))
        order, rules, rank = self._entries.ndim, problem.constraints, problem.rank
        self._one_sided = [rule is not None and rule.is_cone for rule in rules or (None,) * order]
        self._bases: Sequence[np.ndarray | None] = (None,) * order
        n_columns = rank
        if problem.loss is not None or problem.entries is not None:
            weights = problem.observed_mask() if problem.weights is None else to_host(problem.weights)
            self._shares = weights.astype(np.float64)
            n_columns = rank**2
        else:
            self._bases, core = dominant_core(DenseTensor.of(self._entries, symmetric=False), 2 * rank)
            self._entries = core.to_dense()
        sizes = self._entries.shape
        self.most_members = max(BLOCK * max(sizes) // (self._entries.size * n_columns), ROUNDS[-1][0])
        self.sweep_seconds = member_seconds(problem, self._entries.size)

    def drawn(self, n: int, rng: np.random.Generator) -> Batch | LossBatch:
        """Return members with random factors, in the coordinates of the core where they are free."""
        shares = 1.0 if self._shares is None else self._shares
        loss = self._problem.loss
        entries = self._entries if loss is None else loss.working_response(self._entries)
        size = math.sqrt(np.mean(shares * np.abs(entries) ** 2) / (np.mean(shares) * self._problem.rank))
        factors = []
        for width, basis, sign in zip(self._entries.shape, self._bases, self._one_sided, strict=True):
            rows = width if basis is None or not sign else basis.shape[0]
            drawn = normal_draws(rng, (n, rows, self._problem.rank), self._entries)
            factors.append((np.abs(drawn) if sign else drawn) * size ** (1 / self._entries.ndim))
        return self._batch(factors)

    def member(self, start: FactoredTensor) -> Batch | LossBatch:
        """Return a batch of one member, on all entries, of which some are missing."""
        feasible = objective_of(self._problem, start).feasible(start)
        weights, *factors = (to_double(to_host(array)) for array in (feasible.weights, *feasible.factors))
        return self._batch([factors[0][None] * weights, *(factor[None] for factor in factors[1:])])

    def _batch(self, factors: Sequence[np.ndarray]) -> Batch | LossBatch:
        """Return members with these factors."""
        if self._problem.loss is not None:
            return LossBatch(self._entries, factors, self._one_sided, self._problem.loss, self._shares)
        inside = [basis if sign else None for basis, sign in zip(self._bases, self._one_sided, strict=True)]
        return Batch(self._entries, factors, self._one_sided, inside, self._shares)

    def components(self, batch: Batch | LossBatch, place: int) -> FactoredTensor:
        """Return the components of a member, of the whole tensor."""
        reference = self._problem.tensor.reference
        outside = [
            factor if basis is None or sign else basis @ factor
            for factor, basis, sign in zip(batch.member(place), self._bases, self._one_sided, strict=True)
        ]
        found = [asarray_like(factor, reference) for factor in outside]
        return FactoredTensor(asarray_like(np.ones(self._problem.rank), reference), found, symmetric=False).on_host()
