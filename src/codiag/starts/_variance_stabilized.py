"""The start for a loss: least squares on entries whose variances are made similar."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from codiag.least_squares import ROUGH, LeastSquares, Log, minimize
from codiag.problem import Problem, as_least_squares, interior
from codiag.reduction import reduce
from codiag.starts._random import Random
from codiag.starts._start import Start
from codiag.starts._tournament import Tournament, tournaments_apply
from codiag.tensors import FactoredTensor


@dataclass(frozen=True, kw_only=True, eq=False)
class VarianceStabilized(Start):
    """The rough end of least squares on variance-stabilized entries; then random components.

    Ends of least squares are alike, and so are the minima of the loss that they lead to: random components reach
    others, in a tournament of sweeps under the loss, or where that does not apply after a few sweeps on the stabilized
    entries.

    Attributes
    ----------
    starts_of : callable
        From a problem of least squares to the starts for it, the first of which is taken.
    """

    starts_of: Callable[[Problem], Sequence[Start]]

    def generate(self, problem: Problem, rng: np.random.Generator, log: Log) -> Iterator[FactoredTensor]:
        plain, back = as_least_squares(problem)
        core = reduce(plain, rng)
        first = self.starts_of(plain)[0]
        space = core if first.uses_core else core.uncompressed()
        for components in first.generate(space.problem, rng, log):
            result = minimize(space.problem, components, replace(ROUGH, budget=log.budget))
            error = LeastSquares(space.problem).relative_error(result.components, result.objective)
            log.add("rough least squares", result.n_iter, error)
            yield interior(back(space.to_tensor(result.components)), problem.constraints)
        if tournaments_apply(problem):
            yield from Tournament().generate(problem, rng, log)
            return
        space = core.uncompressed()
        for components in Random().generate(space.problem, rng, log):
            yield interior(back(space.to_tensor(components)), problem.constraints)
