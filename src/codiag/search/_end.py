"""An end of the search: a local minimum, and what its residual says about it. Everything is computed once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from codiag._arrays import to_host
from codiag.least_squares import (
    NEGLIGIBLE,
    SLOW,
    TINY,
    TOLERANCE,
    Objective,
    Outcome,
    is_noise,
    largest_noise_term,
    noise_excess,
    objective_of,
)
from codiag.problem import Problem, most_components
from codiag.reduction import is_small
from codiag.search._worth import objectives_without, removal_bounds
from codiag.tensors import FactoredTensor, Tensor, is_large

DOUBTFUL = 4
"""Components whose worth is below so many times the largest term of noise may have been displaced by noise: a component
of twice the weight of a noise term may lose it. Above the square of that ratio they stand out: no start can have missed
them."""

FEW = 0.15
"""Share of components, or one, that a fit may have missed, or that may be weak, while the others are certain."""

SAME_MINIMUM = 0.5
"""Noise variances by which the objectives of rough ends of one minimum may differ: each is within a few tenths."""

MEETINGS = 3
"""Starts that must end at the lowest minimum, if its residual does not show that there is no lower one. Two would miss
it in 5 of 120 symmetric tensors with more components than dimensions."""


@dataclass(frozen=True, eq=False)
class End:
    """A local minimum of a problem.

    Attributes
    ----------
    problem : Problem
        On the core, or on the whole tensor.
    outcome : Outcome
    whole : Problem, optional
        On the whole tensor, if the other is on a core; it tells how large terms of noise are.
    """

    problem: Problem
    outcome: Outcome
    whole: Problem | None = None

    def with_outcome(self, outcome: Outcome) -> End:
        """Return another minimum of the same problem, or the same one with another history."""
        end = End(self.problem, outcome, self.whole)
        if outcome.components is self.outcome.components:
            vars(end).update(vars(self) | {"outcome": outcome})
        return end

    @cached_property
    def minimized(self) -> Objective:
        """What was minimized."""
        return objective_of(self.problem, self.outcome.components)

    @property
    def objective(self) -> float:
        """Its value; infinite if it is not a number."""
        return self.outcome.objective if self.outcome.objective == self.outcome.objective else np.inf

    @property
    def relative_error(self) -> float:
        """Root of the share of the problem that the components leave."""
        return self.minimized.relative_error(self.outcome.components, self.outcome.objective)

    @cached_property
    def residual(self) -> Tensor:
        """What the components leave of the tensor."""
        return self.minimized.residual(self.outcome.components)

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
        return is_noise(self.problem, self.residual, self.outcome.components)

    @property
    def n_few(self) -> int:
        """A few of the components."""
        return max(1, int(FEW * self.problem.rank))

    @property
    def fits_anything(self) -> bool:
        """Whether parameters are more than half of the entries, so that any residual looks like noise."""
        return 2 * self.problem.n_parameters > self.problem.n_independent

    @cached_property
    def shows_model(self) -> bool:
        """Whether the tensor seems to be a sum of such components and noise.

        Then there is a best fit that is worth searching for. Tensors that fit no model leave more than noise, even if
        the terms of a few components that were missed are left out. Those that are noise, or have less components than
        the fit, are searched in vain: all but a few of its components, or all that do not stand out, are worth no more
        than noise.
        """
        if self.fits_anything or is_large(self.problem.tensor.shape):
            return False
        excess = 0.0 if self.is_noise else self._excess(self.n_few)
        if excess > 1 or np.max(self.worths) < DOUBTFUL:
            return False
        n_surplus, n_clear = int(np.sum(self.worths <= 1)), int(np.sum(self.worths > DOUBTFUL**2))
        are_too_many = n_surplus > self.problem.rank - 2 * self.n_few or n_surplus + n_clear == self.problem.rank
        return n_surplus == 0 or not are_too_many

    def _excess(self, n_left_out: int) -> float:
        """Excess of the residual over noise, without its strongest directions."""
        return noise_excess(self.problem, self.residual, n_left_out, self.outcome.components)

    @cached_property
    def terms(self) -> Sequence[FactoredTensor]:
        """The strongest rank-one terms of the residual."""
        return self.minimized.terms(self.outcome.components, residual=self.residual)

    @cached_property
    def worths(self) -> np.ndarray:
        """Worth of each component, relative to the largest term of noise, or else to the strongest of the residual.

        That of components which clearly stand out is a lower bound.
        """
        distance = self.minimized.squared_residual(self.outcome.components, self.objective) + self._outside
        term = largest_noise_term(self.whole or self.problem, distance)
        term = term or float(np.abs(to_host(self.terms[0].weights)[0])) ** 2 + TINY
        worths = 2 * removal_bounds(self.problem, self.outcome.components) / term
        doubtful = np.flatnonzero(~(worths > DOUBTFUL**2))
        if doubtful.size > 0:
            predicted = objectives_without(self.problem, self.outcome.components, doubtful.tolist())
            worths[doubtful] = 2 * (predicted[doubtful] - self.objective) / term
        return worths

    @cached_property
    def weak(self) -> list[int]:
        """Components that may have been displaced by noise, or fit nothing else.

        Under a loss only the latter: its steps cost ten times those of least squares.
        """
        return np.flatnonzero(self.worths < (DOUBTFUL if self.minimized.is_quadratic else 1)).tolist()

    @property
    def has_surplus(self) -> bool:
        """Whether some component fits nothing but noise."""
        return self.is_noise and bool(np.any(self.worths <= 1))

    @property
    def can_grow(self) -> bool:
        """Whether the shape and the constraints leave room for one more component."""
        rules = [rule for rule in self.problem.constraints or () if rule is not None]
        fits = not any(rule.is_fixed or rule.is_curved or not rule.supports_steps for rule in rules)
        return fits and 1 < self.problem.rank < most_components(self.problem.tensor.shape)


def lowest(ends: Sequence[End]) -> End:
    """Return the end with the least objective."""
    return min(ends, key=lambda end: end.objective)


def n_meetings(ends: Sequence[End]) -> int:
    """Return how many starts have ended at the lowest minimum, to the accuracy of rough ends."""
    best = lowest(ends)
    variance = SAME_MINIMUM * objective_of(best.problem).noise_variance
    tolerance = min(variance, SLOW) if is_small(best.problem.tensor.shape) else variance
    highest = best.objective * (1 + max(tolerance, NEGLIGIBLE))
    return sum(end.objective <= highest for end in ends)
