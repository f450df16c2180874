"""Random starts, after a few alternating sweeps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

import numpy as np

from codiag._arrays import Array, array_namespace
from codiag.least_squares import BRIEF, LeastSquares, Log, alternate, random_components
from codiag.problem import Problem
from codiag.starts._start import Start
from codiag.tensors import FactoredTensor


@dataclass(frozen=True, kw_only=True, eq=False)
class Random(Start):
    """Random components, one after the other.

    Attributes
    ----------
    is_swept : bool
        Whether to take a few alternating sweeps from them.
    n_starts : int or None
        How many; None for ever more.
    """

    is_swept: bool = True
    n_starts: int | None = None

    def generate(self, problem: Problem, rng: np.random.Generator, log: Log) -> Iterator[FactoredTensor]:
        for _ in count() if self.n_starts is None else range(self.n_starts):
            components = random_components(problem.complete().tensor, problem.rank, rng)
            components = components.changed(lambda factor, mode: _one_sided(factor, problem, mode))
            yield swept(problem, components) if self.is_swept else components


def _one_sided(factor: Array, problem: Problem, mode: int) -> Array:
    """Return a factor with columns of one sign if the constraint of the mode allows no other."""
    rule = None if problem.constraints is None else problem.constraints[mode]
    return array_namespace(factor).abs(factor) if rule is not None and rule.is_cone else factor


def swept(problem: Problem, start: FactoredTensor) -> FactoredTensor:
    """Take a few alternating sweeps on the observed entries, unless signs are constrained or all modes share a factor.

    Far from a minimum they move further than Gauss-Newton steps, at the price of one step for two or three sweeps.
    """
    if problem.symmetric is True or problem.is_cone:
        return start
    objective = LeastSquares(problem.with_constraints(None))
    return alternate(objective, start, max_iter=BRIEF.max_iter, tol=BRIEF.tol).components
