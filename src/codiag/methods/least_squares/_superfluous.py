r"""Whether more components were asked for than the data hold.

Those that are left to fit noise are each worth about as much as its largest rank-one term, :math:`\sigma \sum_m
\sqrt{d_m}` squared, and no start or swap would make more of them. Weak components lie anywhere: only where a gap parts
those that are worth no more than noise from those that are worth far more, the first are superfluous.
"""

from __future__ import annotations

import math

import numpy as np

from codiag._array import to_host
from codiag._problem import Problem
from codiag.methods.least_squares._components import hadamard_gram, unit_components
from codiag.methods.least_squares._objective import LeastSquares
from codiag.tensors import FactoredTensor

BEYOND_MEAN = 3.7
"""Standard deviations of an entry by which the largest term of noise exceeds its mean in one of a thousand cases."""

GAP = 100.0
"""How many times more than a term of noise all other components must be worth: ten times its weight, so that no start
can have missed one of them."""


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
    variance = LeastSquares(problem).noise_variance
    if components.rank == 1 or not variance > 0 or not squared_distance > 0:
        return False
    noise = math.sqrt(variance * squared_distance / 2)
    term = (noise * (sum(math.sqrt(size) for size in problem.tensor.shape) + BEYOND_MEAN)) ** 2
    worth = removal_costs(components)
    return bool(worth.min() <= term and not np.any((worth > term) & (worth < GAP * term)))


def removal_costs(components: FactoredTensor) -> np.ndarray:
    """Return how much the squared distance grows without a component, the weights of the others fitted anew."""
    unit = unit_components(components)
    inverse: np.ndarray = np.linalg.pinv(to_host(hadamard_gram(unit.factors)), hermitian=True)
    return np.asarray(to_host(unit.weights) ** 2 / np.maximum(np.diag(inverse), 1.0))
