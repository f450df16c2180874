"""An end of the search: a local minimum, and what its residual says about it. Everything is computed once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from codiag._arrays import to_host
from codiag.least_squares import (
    SLOW,
    TINY,
    TOLERANCE,
    Objective,
    OptimizeResult,
    is_noise,
    largest_noise_term,
    noise_excess,
    objective_of,
)
from codiag.problem import Problem, most_components
from codiag.search._contributions import objectives_without, removal_bounds
from codiag.tensors import FactoredTensor, Tensor, is_large

WEAK_RATIO = 4
"""Components whose contribution is below so many times the largest term of noise may have been displaced by noise: a
component of twice the weight of a noise term may lose it. Above the square of that ratio they are significant: no start
can have missed them."""


MISSED_SHARE = 0.15
"""Share of components, or one, that a fit may have missed, or that may be weak, while the others show the model."""


@dataclass(frozen=True, eq=False)
class LocalMinimum:
    """A local minimum of a problem.

    Attributes
    ----------
    problem : Problem
        On the core, or on the whole tensor.
    result : Outcome
    whole : Problem, optional
        On the whole tensor, if the other is on a core; it tells how large terms of noise are.
    """

    problem: Problem
    result: OptimizeResult
    whole: Problem | None = None

    def with_result(self, result: OptimizeResult) -> LocalMinimum:
        """Return another minimum of the same problem, or the same one with another history."""
        end = LocalMinimum(self.problem, result, self.whole)
        if result.components is self.result.components:
            vars(end).update(vars(self) | {"result": result})
        return end

    @cached_property
    def minimized(self) -> Objective:
        """What was minimized."""
        return objective_of(self.problem, self.result.components)

    @property
    def objective(self) -> float:
        """Its value; infinite if it is not a number."""
        return self.result.objective if self.result.objective == self.result.objective else np.inf

    @property
    def relative_error(self) -> float:
        """Root of the share of the problem that the components leave."""
        return self.minimized.relative_error(self.result.components, self.result.objective)

    @cached_property
    def residual(self) -> Tensor:
        """What the components leave of the tensor."""
        return self.minimized.residual(self.result.components)

    @property
    def is_exact(self) -> bool:
        """Whether only rounding is left, of the whole tensor."""
        return 2 * self.objective + self._outside < TOLERANCE**2 * (self.minimized.squared_norm + self._outside)

    @property
    def _outside(self) -> float:
        """Energy of the whole tensor that the core does not hold."""
        whole = self.whole or self.problem
        return max(whole.data.squared_norm - self.problem.data.squared_norm, 0.0)

    @cached_property
    def is_noise(self) -> bool:
        """Whether the residual passes for noise; that of a tensor too large to be formed is taken for it."""
        if self.is_exact or is_large(self.problem.tensor.shape):
            return True
        return is_noise(self.problem, self.residual, self.result.components)

    @property
    def n_few(self) -> int:
        """A few of the components."""
        return max(1, int(MISSED_SHARE * self.problem.rank))

    @property
    def fits_anything(self) -> bool:
        """Whether parameters are more than half of the entries, so that any residual looks like noise."""
        return 2 * self.problem.n_parameters > self.problem.n_independent

    @cached_property
    def shows_model(self) -> bool:
        """Whether the tensor seems to be a sum of such components and noise, so that there is a best fit to search for.

        Tensors that fit no model leave more than noise, even if the terms of a few components that were missed
        are left out. Those that are noise, or have fewer components than the fit, are searched in vain: all but a few
        of its components, or all that are not significant, explain no more than noise.
        """
        if self.fits_anything or is_large(self.problem.tensor.shape):
            return False
        rank, n_few = self.problem.rank, self.n_few
        excess = 0.0 if self.is_noise else noise_excess(self.problem, self.residual, n_few, self.result.components)
        if excess > 1 or np.max(self.contributions) < WEAK_RATIO:
            return False
        n_surplus, n_clear = int(np.sum(self.contributions <= 1)), int(np.sum(self.contributions > WEAK_RATIO**2))
        are_too_many = n_surplus > rank - 2 * n_few or n_surplus + n_clear == rank
        return n_surplus == 0 or not are_too_many

    @cached_property
    def terms(self) -> Sequence[FactoredTensor]:
        """The strongest rank-one terms of the residual."""
        return self.minimized.terms(self.result.components, residual=self.residual)

    @cached_property
    def contributions(self) -> np.ndarray:
        """Worth of each component, relative to the largest term of noise, or else to the strongest of the residual.

        That of components which are clearly significant is a lower bound.
        """
        distance = self.minimized.squared_residual(self.result.components, self.objective) + self._outside
        term = largest_noise_term(self.whole or self.problem, distance)
        term = term or float(np.abs(to_host(self.terms[0].weights)[0])) ** 2 + TINY
        contributions = 2 * removal_bounds(self.problem, self.result.components) / term
        doubtful = np.flatnonzero(~(contributions > WEAK_RATIO**2))
        if doubtful.size > 0:
            predicted = objectives_without(self.problem, self.result.components, doubtful.tolist())
            contributions[doubtful] = 2 * (predicted[doubtful] - self.objective) / term
        return contributions

    @cached_property
    def weak(self) -> list[int]:
        """Components that may have been displaced by noise, or fit nothing else.

        Under a loss only the latter: its steps cost ten times those of least squares.
        """
        return np.flatnonzero(self.contributions < (WEAK_RATIO if self.minimized.is_quadratic else 1)).tolist()

    @property
    def has_surplus(self) -> bool:
        """Whether some component fits nothing but noise."""
        return self.is_noise and bool(np.any(self.contributions <= 1))

    @property
    def can_grow(self) -> bool:
        """Whether the shape and the constraints leave room for one more component."""
        rules = [rule for rule in self.problem.constraints or () if rule is not None]
        is_open = [rule.supports_gauss_newton and not (rule.is_fixed or rule.is_manifold or rule.has_columns)
                   for rule in rules]  # fmt: skip
        return all(is_open) and 1 < self.problem.rank < most_components(self.problem.tensor.shape)


def lowest(ends: Sequence[LocalMinimum]) -> LocalMinimum:
    """Return the end with the least objective."""
    return min(ends, key=lambda end: end.objective)


def n_hits(ends: Sequence[LocalMinimum]) -> int:
    """Return how many starts have ended at the lowest minimum, to the accuracy of rough ends."""
    best = lowest(ends)
    return sum(end.objective <= best.objective * (1 + _tolerance(best)) for end in ends)


def _tolerance(best: LocalMinimum) -> float:
    """Return how much the objectives of rough ends of one minimum differ: half a noise variance, or a thousandth."""
    return max(objective_of(best.problem).noise_variance / 2, SLOW)
