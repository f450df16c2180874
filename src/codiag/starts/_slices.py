"""The slices of a core as a stack of matrices with common factors, and components from these factors."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from codiag._arrays import Array, adjoint, array_namespace, conjugate
from codiag._checks import RankDeficientError
from codiag.diagonalize import Diagonalization, Diagonalizer
from codiag.least_squares import hadamard_gram, solve_semidefinite, split_columns, with_best_weights
from codiag.problem import Problem
from codiag.tensors import DenseTensor, FactoredTensor, Tensor


class Roles(NamedTuple):
    """The modes that are the rows of the matrices, those that are the columns, and the others, which index them."""

    rows: tuple[int, ...]
    columns: tuple[int, ...]
    others: tuple[int, ...]

    @property
    def order(self) -> tuple[int, ...]:
        """All modes, those that index the matrices first."""
        return self.others + self.rows + self.columns


def assign_roles(shape: Sequence[int], rank: int, *, symmetric: bool = False) -> Roles | None:
    """Choose the two largest modes for rows and columns; None if no choice gives two matrices of this rank.

    If the modes of a tensor of higher order are smaller than the rank, several of them are merged: equally many for
    rows and for columns if the tensor is symmetric, so that the matrices are symmetric.
    """
    for roles, size, n_matrices in _splits(shape, symmetric):
        if size >= rank and n_matrices >= min(rank, 2):
            return roles
    return None


def _splits(shape: Sequence[int], symmetric: bool) -> Iterator[tuple[Roles, int, int]]:
    """Yield all roles with the size and the number of matrices: few merged modes first, large modes first."""
    order = len(shape)
    if symmetric:
        for n in range(1, (order + 1) // 2):
            modes = tuple(range(order))
            roles = Roles(modes[:n], modes[n : 2 * n], modes[2 * n :])
            yield roles, math.comb(shape[0] + n - 1, n), shape[0]  # the dimension of symmetric tensors of order n
        return
    modes = tuple(sorted(range(order), key=lambda mode: -shape[mode]))
    for n_rows in range(1, order - 1):
        for n_columns in range(n_rows, order - n_rows):
            for rows in combinations(modes, n_rows):
                remaining = [mode for mode in modes if mode not in rows]
                for columns in combinations(remaining, n_columns):
                    roles = Roles(rows, columns, tuple(sorted(set(remaining) - set(columns))))
                    sizes = [math.prod(shape[mode] for mode in role) for role in roles]
                    yield roles, min(sizes[:2]), sizes[2]


def check_roles(problem: Problem, method: str, *, together: bool = False) -> None:
    """Raise if a method cannot represent a problem by matrices of its rank.

    Rows and columns are one mode each, unless the method merges several (`together`).
    """
    tensor, rank = problem.tensor, problem.rank
    if sorted(tensor.shape)[-3] == 1 and rank > 1:
        raise ValueError(
            f"tensor must have at least two matrices for {method}, since one does not determine components; "
            f"{tensor!r} has one"
        )
    roles = assign_roles(tensor.shape, rank, symmetric=tensor.symmetric)
    if roles is not None and (together or len(roles.rows) + len(roles.columns) == 2):
        return
    limit, reason = sorted(tensor.shape)[-2], "the second largest mode"
    if together and tensor.order > 4:
        limit = max(size for _, size, n_matrices in _splits(tensor.shape, tensor.symmetric) if n_matrices > 1)
        reason = "the size of modes merged for rows and for columns"
    raise ValueError(
        f"rank must be at most {limit}, {reason}, for {method}, which diagonalizes matrices of that rank; got {rank}. "
        "method=None fits larger ranks by least squares"
    )


def matrix_roles(problem: Problem) -> Roles:
    """Return the roles of the modes, for a problem that `check_roles` accepts."""
    tensor = problem.tensor
    roles = assign_roles(tensor.shape, problem.rank, symmetric=tensor.symmetric)
    return roles or Roles((0,), (1,), tuple(range(2, tensor.order)))


def merged_core(core: DenseTensor, roles: Roles) -> Tensor:
    """Return the core with the modes for rows merged into the first, those for columns into the second."""
    ordered = core.permute(roles.rows + roles.columns + roles.others)
    if len(roles.rows) + len(roles.columns) == 2:
        return ordered
    sides = [math.prod(core.shape[mode] for mode in role) for role in (roles.rows, roles.columns)]
    entries = ordered.to_dense()
    shape = (*sides, *(core.shape[mode] for mode in roles.others))
    return DenseTensor.of(array_namespace(entries).reshape(entries, shape), symmetric=False)


def slices(core: Tensor, roles: Roles, rank: int) -> Array:
    """Return the slices of a core, or their `rank` dominant orthonormal combinations if there are more."""
    xp = array_namespace(core.reference)
    shape = [math.prod(core.shape[mode] for mode in role) for role in (roles.others, roles.rows, roles.columns)]
    stack = xp.reshape(xp.permute_dims(core.to_dense(), roles.order), tuple(shape))
    if shape[0] <= max(rank, 2):
        return stack
    flat = xp.reshape(stack, (shape[0], shape[1] * shape[2]))
    leading = xp.linalg.eigh(flat @ adjoint(flat))[1][:, -max(rank, 2) :]
    return xp.reshape(adjoint(leading) @ flat, (-1, *shape[1:]))


def components_from_sides(core: DenseTensor, roles: Roles, rows: Array, columns: Array) -> FactoredTensor:
    """Return components with given factors of rows and columns; the others, and the weights, by least squares."""
    xp = array_namespace(rows)
    shape = core.shape
    gram = hadamard_gram([rows, columns])
    stack = xp.permute_dims(core.to_dense(), roles.order)
    stack = xp.reshape(stack, (-1, rows.shape[0], columns.shape[0]))
    along = xp.sum((stack @ conjugate(columns)) * conjugate(rows), axis=1)  # (n, k)
    others = xp.matrix_transpose(solve_semidefinite(gram, xp.matrix_transpose(along)))
    factors: dict[int, Array] = {}
    for role, side in zip(roles, (rows, columns, others), strict=True):
        factors |= dict(zip(role, split_columns(side, [shape[mode] for mode in role]), strict=True))
    return with_best_weights(core, [factors[mode] for mode in range(core.order)])


def symmetric_components(core: DenseTensor, columns: Array, n_modes: int) -> FactoredTensor:
    """Return components of a symmetric core; each column is a symmetric rank-one tensor of `n_modes` modes."""
    factor = split_columns(columns, [core.shape[0]] * n_modes)[0]
    return with_best_weights(core, [factor] * core.order)


def diagonalized(diagonalizer: Diagonalizer, stack: Array, rank: int, rng: np.random.Generator) -> Diagonalization:
    """Diagonalize, or raise an error if the tensor has fewer components than the rank."""
    try:
        fit = diagonalizer(stack, rng=rng)
    except (RankDeficientError, np.linalg.LinAlgError):
        raise RankDeficientError(
            f"rank must be at most that of the tensor, whose projections are singular; got {rank}. "
            "method=None fits it by least squares"
        ) from None
    if fit.factor.shape[1] < rank:
        raise RankDeficientError(
            f"rank must be at most {fit.factor.shape[1]}, the number of components of the tensor, up to rounding; "
            f"got {rank}. method=None fits it by least squares"
        )
    return fit
