"""Components one at a time, each from what those before it have left.

Of a tensor with holes, filled with zeros, strong components hide weak ones: what sampling adds to the spectrum grows
with the energy that is not explained yet. Once the strong ones are fitted to what was observed, the weak ones show.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from codiag.least_squares import LeastSquares, Limits, distinct_components, excess_over_flips, refitted
from codiag.problem import Problem
from codiag.tensors import FactoredTensor, Tensor

STEPS = Limits(max_sweeps=10, tol=1e-4, gain=0.1, rough=True)
"""For all components so far, after each that joins them."""

POOR = 0.05
"""Relative error above which a fit is not taken for the best there is, whatever its residual looks like."""

CHOICE = 3
"""Terms of the residual from which one is drawn where the largest has led nowhere."""


def grown(problem: Problem, rng: np.random.Generator | None = None) -> FactoredTensor:
    """Return components that were found one after the other, all of them fitted again after each.

    Each is the largest rank-one term of the residual, or with a generator one of the largest.
    """
    found = refitted(replace(problem, rank=1), _term(problem.tensor, rng), STEPS).components
    for rank in range(2, problem.rank + 1):
        new = _term(LeastSquares(problem).left_over(found), rng)
        found = refitted(replace(problem, rank=rank), found.joined(new), STEPS).components
    return found


def passes_for_noise(objective: LeastSquares, components: FactoredTensor) -> bool:
    """Tell whether what components leave of the entries is small, and no direction of it stands out.

    Of few entries, several components that were missed may hide each other: a large residual is never taken for noise.
    """
    if objective.relative_error(components) > POOR:
        return False
    return excess_over_flips(objective.left_over(components), shared_group(objective.problem)) <= 1


def shared_group(problem: Problem) -> tuple[int, ...]:
    """Return the modes that share a factor, none where all have their own."""
    return next((group for group in problem.groups if len(group) > 1), ())


def _term(residual: Tensor, rng: np.random.Generator | None) -> FactoredTensor:
    terms = distinct_components(residual, 1 if rng is None else CHOICE)
    return terms[0 if rng is None else int(rng.integers(len(terms)))]
