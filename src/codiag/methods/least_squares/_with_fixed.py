"""Components of which some factors are known: the others by linear least squares."""

from __future__ import annotations

import math

import numpy as np

from codiag._array import Array, array_namespace, like
from codiag._problem import Problem
from codiag.methods.least_squares._components import hadamard_gram, solve_semidefinite
from codiag.methods.least_squares._filled import filled
from codiag.methods.least_squares._rank_one import split_columns
from codiag.tensors import FactoredTensor
from codiag.tensors._sums import khatri_rao


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
        rows = math.prod(tensor.shape[mode] for mode in known)
        side = xp.reshape(xp.permute_dims(tensor.to_dense(), (*known, *rest)), (rows, -1))
        columns = solve_semidefinite(hadamard_gram(fixed), xp.matrix_transpose(khatri_rao(fixed)) @ side)
        sizes = [tensor.shape[mode] for mode in rest]
        split = split_columns(xp.matrix_transpose(columns), sizes)
        factors |= dict(zip(rest, split, strict=True))
        if len(rest) == 1:
            factors[rest[0]] = xp.matrix_transpose(columns)
    weights = like(np.ones(problem.rank), tensor.reference)
    return FactoredTensor(weights, [factors[mode] for mode in range(tensor.order)], symmetric=False)
