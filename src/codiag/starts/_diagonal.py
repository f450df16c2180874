"""Starts by joint diagonalization of the slices of a core."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from codiag._arrays import array_namespace, is_complex
from codiag._checks import RankDeficientError
from codiag.diagonalize import UWEDGE, Diagonalizer, OrthogonalNewton, TwoSided
from codiag.least_squares import ROUGH, LeastSquares, Log, best_rank_one, minimize
from codiag.problem import Problem
from codiag.reduction import reduce, reduce_listed
from codiag.starts._random import swept
from codiag.starts._rank_one_span import rank_one_roles, rank_one_start
from codiag.starts._slices import Roles, assign_roles, components_from_sides, slices, symmetric_components
from codiag.starts._span_powers import power_roles, power_start
from codiag.starts._start import Start
from codiag.tensors import DenseTensor, FactoredTensor, Tensor, is_large, shows_ranges


@dataclass(frozen=True, kw_only=True, eq=False)
class Diagonal(Start):
    """Joint diagonalization of the slices of the core, as in the paper; the best rank-one term if the rank is one.

    If the rank is larger than all modes but one, slices of several modes taken together are diagonalized, or powers of
    vectors are found in the range of a symmetric flattening (`power_start`), or the rank-one matrices in the span of
    the slices (`rank_one_start`). Nothing is yielded if none of these applies.

    Attributes
    ----------
    orthogonal : bool
        Whether to diagonalize by rotations.
    """

    uses_core: bool = True

    orthogonal: bool = False

    def generate(self, problem: Problem, rng: np.random.Generator, log: Log) -> Iterator[FactoredTensor]:
        core, rank = problem.tensor.as_double(), problem.rank
        if rank == 1:
            yield best_rank_one(core)
            return
        roles = diagonal_roles(core, rank)
        if roles is None:
            log.add("no diagonalization: the rank is too large", 0, 1.0)
            return
        for _ in range(1 if roles.others else 3):  # power iterations begin at random, and three ends must agree
            try:
                components = diagonal_start(core, roles, rank, rng, log, orthogonal=self.orthogonal)
            except (RankDeficientError, np.linalg.LinAlgError):
                log.add("diagonalization failed: the slices are singular", 0, 1.0)
                return
            if math.isfinite(components.squared_norm()):
                yield components


class MeanImputed(Start):
    """Components of the tensor without its constraints, and with missing entries filled, fitted to its core.

    If most entries are observed they are fitted by least squares to the filled core, otherwise by alternating sweeps on
    the observed entries.
    """

    def generate(self, problem: Problem, rng: np.random.Generator, log: Log) -> Iterator[FactoredTensor]:
        reduction = reduce(problem.complete(), rng)
        for start in Diagonal().generate(reduction.problem, rng, log):
            if problem.entries is None or LeastSquares(problem).expected_share is not None:
                yield reduction.to_tensor(minimize(reduction.problem, start, ROUGH).components)
            else:
                yield swept(problem, reduction.to_tensor(start))


class FromObserved(Start):
    """Components of the core of a list of entries, if these are many enough to show it."""

    def generate(self, problem: Problem, rng: np.random.Generator, log: Log) -> Iterator[FactoredTensor]:
        tensor = problem.tensor
        if not is_large(tensor.shape) and not shows_ranges(tensor, problem.rank):
            return
        reduction = reduce_listed(problem, rng)
        for start in Diagonal().generate(reduction.problem, rng, log):
            yield reduction.to_tensor(minimize(reduction.problem, start, ROUGH).components)


def diagonal_roles(core: Tensor, rank: int) -> Roles | None:
    """Return the modes to diagonalize, several together if that is needed; None if no way applies."""
    if rank == 1:
        return None
    symmetric = core.symmetric
    if is_complex(core.reference):  # the other starts are for real tensors
        return assign_roles(core.shape, rank, symmetric=symmetric)
    for choose in (assign_roles, power_roles, rank_one_roles):
        roles = choose(core.shape, rank, symmetric=symmetric)
        if roles is not None:
            return roles
    return None


def diagonal_start(
    core: DenseTensor, roles: Roles, rank: int, rng: np.random.Generator, log: Log, *, orthogonal: bool = False
) -> FactoredTensor:
    """Return components from matrices in these roles; raise `numpy.linalg.LinAlgError` if these are singular.

    Slices with as many rows and columns as components are diagonalized themselves. If slices are smaller and no fewer
    than components, the matrices of rank one in their span belong to the components.
    """
    n_rows, n_columns, _ = (math.prod(core.shape[mode] for mode in role) for role in roles)
    if not roles.others:
        return power_start(core, roles, rank, rng, log)
    if min(n_rows, n_columns) < rank:
        return rank_one_start(core, roles, rank, rng, log)
    xp = array_namespace(core.reference)
    stack = slices(core, roles, rank)
    if core.symmetric:
        stack = (stack + xp.matrix_transpose(stack)) / 2  # equal but for rounding
    diagonalizer = _diagonalizer(rank, core.symmetric, orthogonal)
    fit = diagonalizer(stack, rng=rng)  # converged or not: least squares continues from its end
    flops = fit.n_sweeps * diagonalizer.sweep_flops(stack.shape[0], rank)
    log.add("diagonalize", fit.n_sweeps, fit.off_diagonal_share, flops)
    if core.symmetric:
        return symmetric_components(core, fit.factor, len(roles.rows))
    return components_from_sides(core, roles, fit.factor, fit.right_factor)


def _diagonalizer(rank: int, symmetric: bool, orthogonal: bool) -> Diagonalizer:
    if orthogonal:
        return OrthogonalNewton(rank=rank) if symmetric else TwoSided(rank=rank, orthogonal=True, fallback=False)
    return UWEDGE(rank=rank, fallback=False) if symmetric else TwoSided(rank=rank, fallback=False)
