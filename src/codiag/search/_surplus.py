"""More components than the data hold.

Surplus components fit noise. Fitted all at once they overlap, cancel each other and converge slowly. Added one at a
time to those that stand out, each as the strongest term of the residual, they fit noise as well, to a per cent, in a
fraction of the time.
"""

from __future__ import annotations

import numpy as np

from codiag.least_squares import ROUGH, Outcome, minimize
from codiag.reduction import Reduction
from codiag.search._end import DOUBTFUL, End


def regrown(end: End, space: Reduction, whole: Reduction) -> End | None:
    """Refit the components without the surplus ones, and add the strongest terms of their residual in their place.

    Parameters
    ----------
    end : End
        A minimum on the space, whose residual is noise.
    space, whole : Reduction
        The space of the search, and the whole tensor as its own core.

    Returns
    -------
    End or None
        None if no component is surplus, if all are, or if the others do not all stand out and leave noise.
    """
    others = np.flatnonzero(end.worths > 1).tolist()
    if end.is_exact or not end.can_grow or not 0 < len(others) < end.worths.size:
        return None
    components = whole.to_core(space.to_tensor(end.outcome.components)).columns(others)
    fewer = whole.problem.with_rank(len(others))
    grown = End(fewer, minimize(fewer, components, ROUGH))
    if not grown.is_noise or np.any(grown.worths <= DOUBTFUL**2):
        return None
    n_sweeps = grown.outcome.n_sweeps
    for rank in range(fewer.rank + 1, whole.problem.rank + 1):
        larger = whole.problem.with_rank(rank)
        outcome = minimize(larger, grown.outcome.components.joined(grown.terms[0]), ROUGH)
        grown, n_sweeps = End(larger, outcome), n_sweeps + outcome.n_sweeps
    return End(whole.problem, Outcome(grown.outcome.components, grown.objective, n_sweeps, False))
