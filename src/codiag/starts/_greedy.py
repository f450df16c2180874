"""Starts that grow: components one at a time, each from the residual of those before it.

In a tensor whose missing entries are filled, strong components hide weak ones: sampling adds noise in proportion to the
energy that is not explained yet. Once the strong ones are fitted to the observed entries, the weak ones show.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from codiag.least_squares import BRIEF, LeastSquares, Limits, Log, distinct_terms, minimize, objective_of
from codiag.problem import Problem
from codiag.starts._start import Start
from codiag.tensors import FactoredTensor, Tensor


class Greedy(Start):
    """The strongest rank-one term of the residual is added, and all components refitted, until there are enough.

    After the first time, one of the strongest terms is drawn at random.
    """

    def generate(self, problem: Problem, rng: np.random.Generator, log: Log) -> Iterator[FactoredTensor]:
        limits = replace(BRIEF, budget=log.budget)
        yield _grown(problem, limits, None)
        while True:
            yield _grown(problem, limits, rng)


@dataclass(frozen=True, kw_only=True, eq=False)
class WarmStart(Start):
    """Components of a lower rank, and the strongest rank-one terms of their residual."""

    components: FactoredTensor

    def generate(self, problem: Problem, rng: np.random.Generator, log: Log) -> Iterator[FactoredTensor]:
        extended, objective = self.components, objective_of(problem)
        while extended.rank < problem.rank:
            extended = extended.joined(objective.terms(extended, 1)[0])
        yield extended


def _grown(problem: Problem, limits: Limits, rng: np.random.Generator | None) -> FactoredTensor:
    """Return components that were added one after the other, all refitted after each."""
    residual: Tensor = problem.tensor
    components = None
    for rank in range(1, problem.rank + 1):
        terms = distinct_terms(residual, constraints=problem.constraints)
        term = terms[0 if rng is None else int(rng.integers(len(terms)))]
        start = term if components is None else components.joined(term)
        components = minimize(problem.with_rank(rank), start, limits).components
        residual = LeastSquares(problem).residual(components)
    assert components is not None
    return components
