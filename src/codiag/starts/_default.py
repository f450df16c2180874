"""Which starts are tried for a problem, and in which order."""

from __future__ import annotations

import math
from collections.abc import Sequence

from codiag.least_squares import are_orthogonal
from codiag.problem import Problem
from codiag.reduction import is_small
from codiag.starts._diagonal import Diagonal, FromObserved, MeanImputed, diagonal_roles
from codiag.starts._given import FixedFactors
from codiag.starts._greedy import Greedy
from codiag.starts._random import Random
from codiag.starts._slices import assign_roles
from codiag.starts._start import Start
from codiag.starts._tournament import Tournament, tournaments_apply
from codiag.starts._variance_stabilized import VarianceStabilized
from codiag.tensors import is_large


def default_starts(problem: Problem) -> Sequence[Start]:
    """Return the starts for a problem, the most promising first.

    If there are too many components to be diagonalized, one random start comes before the tournament: without noise, or
    with little, it is enough. Growing components one at a time is more promising than filling missing entries if more
    entries are missing than observed: filled with a constant, they add noise of a share (1 - p) / p of the energy,
    where p is the share of observed entries.
    """
    if problem.loss is not None:
        return (VarianceStabilized(starts_of=default_starts),)
    further: tuple[Start, ...] = (Tournament() if tournaments_apply(problem) else Random(),)
    if problem.rank > 1 and not problem.required_features and diagonal_roles(problem.tensor, problem.rank) is None:
        further = (Random(n_starts=1), *further)
    if not problem.required_features:
        return (MeanImputed() if is_small(problem.tensor.shape) else Diagonal(), *further)
    if any(constraint is not None and constraint.is_fixed for constraint in problem.constraints or ()):
        return (FixedFactors(),)
    large = is_large(problem.tensor.shape)
    if problem.tensor.is_partial:
        return (FromObserved(),) if large else (FromObserved(), Greedy(), *further)
    if problem.entries is None and are_orthogonal(problem):
        return (Diagonal(orthogonal=True), MeanImputed(), *further)
    if large:
        return (MeanImputed(),)
    if problem.shared and assign_roles(problem.tensor.shape, problem.rank) is None:
        return (Greedy(), *further)
    is_mostly_observed = 2 * problem.n_observed > math.prod(problem.tensor.shape)
    return (MeanImputed() if is_mostly_observed else Greedy(), *further)
