"""Random starts, after a few alternating sweeps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from codiag.least_squares import BRIEF, LeastSquares, alternate, random_components
from codiag.problem import Log, Problem
from codiag.starts._start import Start
from codiag.tensors import FactoredTensor


@dataclass(frozen=True, kw_only=True, eq=False)
class Random(Start):
    """Random components, one after the other.

    Attributes
    ----------
    is_swept : bool
        Whether to take a few alternating sweeps from them.
    """

    is_swept: bool = True

    def generate(self, problem: Problem, rng: np.random.Generator, log: Log) -> Iterator[FactoredTensor]:
        while True:
            components = random_components(problem.complete().tensor, problem.rank, rng)
            yield swept(problem, components) if self.is_swept else components


def swept(problem: Problem, start: FactoredTensor) -> FactoredTensor:
    """Take a few alternating sweeps on the observed entries, without constraints; a symmetric start stays as it is.

    Far from a minimum they move further than Gauss-Newton steps, at the price of one step for two or three sweeps.
    """
    if problem.symmetric is True:
        return start
    objective = LeastSquares(problem.with_constraints(None))
    return alternate(objective, start, max_sweeps=BRIEF.max_sweeps, tol=BRIEF.tol).components
