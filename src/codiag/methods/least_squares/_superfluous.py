r"""Whether more components were asked for than the data hold.

Those that are left to fit noise are each worth about as much as its largest rank-one term, :math:`\sigma \sum_m
\sqrt{d_m}` squared, and no start or swap would make more of them. Weak components lie anywhere: only where a gap parts
those that are worth no more than noise from those that are worth far more, the first are superfluous.

Fitted all at once, superfluous components overlap, cancel each other and creep. Added one at a time to those that stand
out, each as the largest term of what is left, they fit noise about as well, to a per cent, in a fraction of the time.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from codiag._array import to_host
from codiag._problem import Problem
from codiag.methods.least_squares._components import hadamard_gram, unit_components
from codiag.methods.least_squares._gauss_newton import Limits, Outcome, minimize
from codiag.methods.least_squares._objective import LeastSquares
from codiag.methods.least_squares._rank_one import distinct_components
from codiag.methods.least_squares._residual import ROUNDING, is_noise
from codiag.tensors import FactoredTensor

BEYOND_MEAN = 3.7
"""Standard deviations of an entry by which the largest term of noise exceeds its mean in one of a thousand cases."""

GAP = 100.0
"""How many times more than a term of noise all other components must be worth: ten times its weight, so that no start
can have missed one of them."""

OUTSTANDING = 30.0
"""The same where the others are known to leave nothing but noise: no swap is in question then."""

STEPS = Limits(max_sweeps=100, tol=1e-6, gain=0.1, rough=True)
"""For all components so far, after each that joins them or leaves."""


def has_superfluous(problem: Problem, components: FactoredTensor, squared_distance: float) -> bool:
    """Tell whether some components fit noise only, where all that is left of a tensor is noise.

    Parameters
    ----------
    problem : Problem
    components : FactoredTensor
        Of the tensor of the problem, or of a core of it.
    squared_distance : float
        From the tensor of the problem.
    """
    term = _largest_term(problem, squared_distance)
    if components.rank == 1 or not term > 0:
        return False
    worth = removal_costs(components)
    return bool(worth.min() <= term and not np.any((worth > term) & (worth < GAP * term)))


def regrown(problem: Problem, components: FactoredTensor, squared_distance: float) -> Outcome | None:
    """Fit the components that stand out, and in place of the others the largest terms of the noise that these leave.

    None where all components stand out, or none does, or where those that do leave more than noise.
    """
    outstanding = removal_costs(components) > OUTSTANDING * _largest_term(problem, squared_distance)
    exact = squared_distance < ROUNDING * problem.tensor.squared_norm()
    if exact or not 0 < np.count_nonzero(outstanding) < components.rank:
        return None
    fewer = replace(problem, rank=int(np.count_nonzero(outstanding)))
    found = minimize(fewer, components.columns(np.flatnonzero(outstanding).tolist()), STEPS)
    objective = LeastSquares(fewer, found.components)
    residual, term = objective.left_over(found.components), _largest_term(fewer, 2 * found.objective)
    newcomer = distinct_components(residual, 1)[0]
    if float(newcomer.weights[0]) ** 2 > term or not is_noise(objective, residual):
        return None
    if removal_costs(found.components).min() < OUTSTANDING * term:
        return None
    for rank in range(fewer.rank + 1, problem.rank + 1):
        larger = replace(problem, rank=rank)
        found = minimize(larger, found.components.joined(newcomer), STEPS)
        newcomer = distinct_components(LeastSquares(larger, found.components).left_over(found.components), 1)[0]
    return found


def _largest_term(problem: Problem, squared_distance: float) -> float:
    """Return what the largest rank-one term of noise may be worth, zero where it may be all noise of so few entries."""
    variance = LeastSquares(problem).noise_variance * max(squared_distance, 0.0) / 2
    variances = (sum(math.sqrt(size) for size in problem.tensor.shape) + BEYOND_MEAN) ** 2
    return variance * variances if variances < problem.n_entries else 0.0


def removal_costs(components: FactoredTensor) -> np.ndarray:
    """Return how much the squared distance grows without a component, the weights of the others fitted anew."""
    unit = unit_components(components)
    inverse: np.ndarray = np.linalg.pinv(to_host(hadamard_gram(unit.factors)), hermitian=True)
    return np.asarray(to_host(unit.weights) ** 2 / np.maximum(np.diag(inverse), 1.0))
