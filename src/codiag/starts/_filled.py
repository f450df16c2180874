"""A complete tensor in place of one with holes, for a start.

Components of which some factors are known: the others by linear least squares.
"""

from __future__ import annotations

import math

import numpy as np

from codiag._arrays import Array, array_namespace, like
from codiag.least_squares import hadamard_gram, solve_semidefinite, split_columns
from codiag.problem import Problem
from codiag.tensors import Core, DenseTensor, FactoredTensor, SparseTensor, Tensor, is_large, khatri_rao
from codiag.tensors.entries import ChunkedEntries


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


def with_fixed(problem: Problem) -> FactoredTensor:
    """Return components with the factors that are fixed, and those of rank one nearest to what belongs to them.

    With Z the columnwise Kronecker product of the fixed factors, the unfolding is nearly Z Y^T, and every column of the
    least-squares Y is nearly a tensor of rank one.
    """
    tensor, constraints = filled(problem), problem.constraints or ()
    xp = array_namespace(tensor.reference)
    known = {
        mode: constraint.project(like(np.zeros((tensor.shape[mode], problem.rank)), tensor.reference))
        for mode, constraint in enumerate(constraints)
        if constraint is not None and constraint.known
    }
    rest = [mode for mode in range(tensor.order) if mode not in known]
    factors: dict[int, Array] = dict(known)
    if rest:
        fixed = list(known.values())
        columns = solve_semidefinite(hadamard_gram(fixed), _products(tensor, known))
        sizes = [tensor.shape[mode] for mode in rest]
        split = split_columns(xp.matrix_transpose(columns), sizes)
        factors |= dict(zip(rest, split, strict=True))
        if len(rest) == 1:
            factors[rest[0]] = xp.matrix_transpose(columns)
    weights = like(np.ones(problem.rank), tensor.reference)
    return FactoredTensor(weights, [factors[mode] for mode in range(tensor.order)], symmetric=False)


def _products(tensor: Tensor, known: dict[int, Array]) -> Array:
    """Return Z^T times the unfolding, (k, d_m d_n ...): of a tensor too large to be formed, in one pass over it."""
    xp = array_namespace(tensor.reference)
    rest = [mode for mode in range(tensor.order) if mode not in known]
    fixed = list(known.values())
    if isinstance(tensor, DenseTensor) or not is_large(tensor.shape):
        side = xp.reshape(xp.permute_dims(tensor.to_dense(), (*known, *rest)), (khatri_rao(fixed).shape[0], -1))
        return xp.matrix_transpose(khatri_rao(fixed)) @ side
    rank = fixed[0].shape[1]
    bases = [tuple(known[m][:, i : i + 1] if m in known else None for m in range(tensor.order)) for i in range(rank)]
    return xp.stack([xp.reshape(core.to_dense(), (-1,)) for core in tensor.read(*map(Core, bases))])
