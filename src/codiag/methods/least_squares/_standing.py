"""How the components of a fit stand against what it leaves: the terms that might take the place of some."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from codiag._array import to_host
from codiag._problem import Problem, most_components
from codiag.methods.least_squares._components import hadamard_gram, unit_components
from codiag.methods.least_squares._objective import LeastSquares
from codiag.methods.least_squares._rank_one import distinct_components
from codiag.methods.least_squares._removal import objectives_without
from codiag.methods.least_squares._residual import ROUNDING, is_noise, largest_square
from codiag.methods.least_squares._superfluous import removal_costs
from codiag.tensors import FactoredTensor, Tensor

if TYPE_CHECKING:
    from codiag.methods.least_squares._gauss_newton import Outcome

NEWCOMERS = 3
"""Terms of the residual that are tried: where all are near the noise, the largest may be it."""

ALIKE = 0.5
"""Product of cosines above which two components may do what one could."""


class Standing(NamedTuple):
    """Whether the residual is noise, its strongest terms, and the worth of each component relative to the first.

    Without terms or worths where no component can be worth as little as a term.
    """

    noise: bool
    newcomers: Sequence[FactoredTensor] = ()
    worths: Sequence[float] = ()

    def n_worth_less(self, factor: float) -> int:
        """Return how many components are worth less than a factor times the strongest term of the residual."""
        return sum(worth < factor for worth in self.worths)


def is_overcomplete(problem: Problem) -> bool:
    """Tell whether there are more components than any unfolding of the tensor has singular values."""
    shape, order = problem.tensor.shape, problem.tensor.order
    if problem.symmetric is True:
        return problem.rank > math.comb(shape[0] + order // 2 - 1, order // 2)
    total = math.prod(shape)
    parts = (math.prod(some) for count in range(1, order // 2 + 1) for some in combinations(shape, count))
    return problem.rank > max(min(part, total // part) for part in parts)


def may_grow(problem: Problem) -> bool:
    """Tell whether the shape and the constraints leave room for one component more."""
    constraints = problem.constraints or ()
    return 1 < problem.rank < most_components(problem.tensor.shape) and not any(
        one is not None and (one.known or one.curved or not one.steps) for one in constraints
    )


def standing(problem: Problem, found: Outcome) -> Standing:
    """Return how components stand, as far as it was not found out before; cheap questions come first."""
    if found.standing is not None:
        return found.standing
    objective = LeastSquares(problem, found.components)
    residual = objective.left_over(found.components)
    noise = is_noise(objective, residual)
    if found.objective < ROUNDING * objective.total or not may_grow(problem):
        return Standing(noise)
    if noise and not is_overcomplete(problem) and not _may_pay(found.components, residual):
        return Standing(noise)
    newcomers = distinct_components(residual, NEWCOMERS)
    term = max(float(newcomers[0].weights[0]) ** 2, 1e-300)
    worth = 2 * (objectives_without(problem, found.components) - found.objective) if noise else np.empty(0)
    return Standing(noise, newcomers, (worth / term).tolist())


def _may_pay(components: FactoredTensor, residual: Tensor) -> bool:
    """Tell, at the price of one small product, whether the residual can hold as much as some component is worth."""
    components = unit_components(components)
    gram = to_host(hadamard_gram(components.factors))
    likeness = abs(gram) * (1 - np.eye(components.rank))
    return float(likeness.max()) >= ALIKE or float(removal_costs(components).min()) / 2 <= largest_square(residual)
