"""A complete tensor in place of one with holes, for a start."""

from __future__ import annotations

import math

from codiag._array import array_namespace
from codiag._chunked_entries import ChunkedEntries
from codiag._problem import Problem
from codiag.tensors import DenseTensor, SparseTensor, Tensor


def filled(problem: Problem) -> Tensor:
    """Return the tensor of a problem with the weighted mean of what was observed in place of what was not."""
    if isinstance(problem.tensor, SparseTensor) and problem.entries is not None:
        share = problem.n_entries / math.prod(problem.tensor.shape)
        return SparseTensor(problem.tensor.coords, problem.tensor.values / share, problem.tensor.shape, check=False)
    if problem.observed is None:
        return problem.tensor
    if isinstance(problem.entries, ChunkedEntries):
        return problem.entries.filled()
    entries, weights = problem.tensor.to_dense(), problem.observed
    xp = array_namespace(entries)
    known = xp.where(weights > 0, entries, xp.zeros_like(entries))
    mean = xp.sum(known * weights) / xp.sum(weights)
    return DenseTensor.of(xp.where(weights > 0, entries, mean), symmetric=problem.tensor.symmetric)
