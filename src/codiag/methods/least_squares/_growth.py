"""Components one at a time, each from what those before it have left.

Of a tensor with holes, filled with zeros, strong components hide weak ones: what sampling adds to the spectrum grows
with the energy that is not explained yet. Once the strong ones are fitted to what was observed, the weak ones show.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from codiag._problem import Problem
from codiag.methods.least_squares._gauss_newton import Limits, minimize
from codiag.methods.least_squares._objective import LeastSquares
from codiag.methods.least_squares._rank_one import distinct_components
from codiag.tensors import FactoredTensor, Tensor

STEPS = Limits(max_sweeps=10, tol=1e-4, gain=0.1, rough=True)
"""For all components so far, after each that joins them."""

CHOICE = 3
"""Terms of the residual from which one is drawn where the largest has led nowhere."""


def grown(problem: Problem, rng: np.random.Generator | None = None) -> FactoredTensor:
    """Return components that were found one after the other, all of them fitted again after each.

    Each is the largest rank-one term of the residual, or with a generator one of the largest.
    """
    found = _improved(replace(problem, rank=1), _term(problem.tensor, rng))
    for rank in range(2, problem.rank + 1):
        new = _term(LeastSquares(problem).residual(found), rng)
        found = _improved(replace(problem, rank=rank), found.joined(new))
    return found


def _term(residual: Tensor, rng: np.random.Generator | None) -> FactoredTensor:
    terms = distinct_components(residual, 1 if rng is None else CHOICE)
    return terms[0 if rng is None else int(rng.integers(len(terms)))]


def _improved(problem: Problem, components: FactoredTensor) -> FactoredTensor:
    if problem.constraints is not None or problem.shared:
        components = LeastSquares(problem).feasible(components)
    return minimize(problem, components, STEPS).components
