"""A start for least squares by joint diagonalization: of slices, or of the equations that rank-one matrices satisfy."""

from __future__ import annotations

import math

import numpy as np

from codiag._arrays import array_namespace
from codiag.diagonalize import UWEDGE, Diagonalizer, TwoSided, off_diagonal_share
from codiag.problem import Log
from codiag.starts._koszul import koszul_roles, koszul_start
from codiag.starts._rank_one_span import rank_one_roles, rank_one_start
from codiag.starts._slices import Roles, assign_roles, components_from_sides, slices, symmetric_components
from codiag.tensors import DenseTensor, FactoredTensor


def diagonal_roles(core: DenseTensor, rank: int) -> Roles | None:
    """Return the modes to diagonalize, several together where that is needed, or None where there is nothing to."""
    if rank == 1:
        return None
    symmetric = core.symmetric
    roles = assign_roles(core.shape, rank, symmetric=symmetric) or rank_one_roles(core.shape, rank, symmetric=symmetric)
    return roles or koszul_roles(core.shape, rank, symmetric=symmetric)


def diagonal_start(core: DenseTensor, roles: Roles, rank: int, rng: np.random.Generator, log: Log) -> FactoredTensor:
    """Return components from matrices in these roles; `numpy.linalg.LinAlgError` where these are singular.

    Slices with as many rows and columns as components are diagonalized themselves. Smaller ones span a space whose
    matrices of rank one belong to the components, where they are no fewer than these; else a space like that is made.
    """
    rows, columns, others = (math.prod(core.shape[mode] for mode in role) for role in roles)
    if min(rows, columns) < rank:
        start = rank_one_start if others >= rank else koszul_start
        return start(core, roles, rank, rng, log)
    xp = array_namespace(core.reference)
    stack = slices(core, roles, rank)
    if core.symmetric:
        stack = (stack + xp.matrix_transpose(stack)) / 2  # equal but for rounding
    diagonalizer: Diagonalizer = (
        UWEDGE(rank=rank, fallback=False) if core.symmetric else TwoSided(rank=rank, fallback=False)
    )
    fit = diagonalizer(stack, seed=rng)  # converged or not: least squares goes on from wherever it ends
    flops = fit.n_sweeps * diagonalizer.sweep_flops(stack.shape[0], rank)
    log.add("diagonalize", fit.n_sweeps, off_diagonal_share(fit), flops)
    if core.symmetric:
        return symmetric_components(core, fit.factor, len(roles.rows))
    return components_from_sides(core, roles, fit.factor, fit.right_factor)
