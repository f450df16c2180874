"""From a list of observed entries to a small core, without forming the tensor."""

from __future__ import annotations

import math

import numpy as np

from codiag.problem import Problem
from codiag.reduction._reduction import Reduction, compressed


def reduce_listed(problem: Problem, rng: np.random.Generator) -> Reduction:
    """Compress a list of entries, all others missing, to an estimate of the core of the complete tensor."""
    tensor, rank = problem.tensor, problem.rank
    part = tensor.thinned(rng)
    modes = range(1 if tensor.symmetric else tensor.order)
    bases = [part.leading_eigenpairs(mode, rank)[1] if tensor.shape[mode] > rank else None for mode in modes]
    if tensor.symmetric:
        bases *= tensor.order
    share = part.n_stored / math.prod(tensor.shape)
    return compressed(problem, part * (1 / share), tuple(bases))
