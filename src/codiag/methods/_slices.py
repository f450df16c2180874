"""A core as a stack of matrices with common factors, and components from these factors."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from codiag._array import Array, array_namespace
from codiag._problem import Problem
from codiag._validation import UndeterminedError
from codiag.diagonalize import Diagonalization, Diagonalizer
from codiag.methods.least_squares._components import hadamard_gram, solve_semidefinite, with_best_weights
from codiag.methods.least_squares._rank_one import split_columns
from codiag.tensors import DenseTensor, FactoredTensor, Tensor


class Roles(NamedTuple):
    """Which modes are the rows of the matrices, which the columns, and which tell the matrices apart."""

    rows: tuple[int, ...]
    columns: tuple[int, ...]
    others: tuple[int, ...]

    @property
    def order(self) -> tuple[int, ...]:
        """All modes, those that tell the matrices apart first."""
        return self.others + self.rows + self.columns


def assign_roles(shape: Sequence[int], rank: int) -> Roles | None:
    """Make the two largest modes rows and columns; None where matrices of this rank cannot be had.

    Tensors of higher order whose modes are smaller than the rank have several of them taken together.
    """
    modes = sorted(range(len(shape)), key=lambda mode: -shape[mode])
    for n_rows in range(1, len(shape) - 1):
        for n_columns in range(n_rows, len(shape) - n_rows):
            for rows in combinations(modes, n_rows):
                left = [mode for mode in modes if mode not in rows]
                for columns in combinations(left, n_columns):
                    others = tuple(sorted(set(left) - set(columns)))
                    sizes = [int(np.prod([shape[mode] for mode in role])) for role in (rows, columns, others)]
                    if min(sizes[:2]) >= rank and sizes[2] >= min(rank, 2):
                        return Roles(rows, columns, others)
    return None


def roles_refusal(problem: Problem, method: str) -> str | None:
    """Tell why a method that needs one mode for rows and one for columns cannot have them, or None where it can."""
    tensor, rank = problem.tensor, problem.rank
    if sorted(tensor.shape)[-3] == 1 and rank > 1:
        return (
            f"tensor must hold two matrices or more for {method}, since one alone does not determine its components; "
            f"{tensor!r} is one"
        )
    roles = assign_roles(tensor.shape, rank)
    if roles is None or len(roles.rows) + len(roles.columns) > 2:
        return (
            f"rank must be at most {sorted(tensor.shape)[-2]}, the second largest mode, for {method}, "
            f"which diagonalizes matrices of that rank; got {rank}. method=None fits larger ones by least squares"
        )
    return None


def matrix_roles(problem: Problem) -> Roles:
    """Return one mode for rows and one for columns, of a problem that `roles_refusal` has nothing against."""
    tensor = problem.tensor
    roles = None if tensor.symmetric else assign_roles(tensor.shape, problem.rank)
    return roles or Roles((0,), (1,), tuple(range(2, tensor.order)))


def slices(core: Tensor, roles: Roles, rank: int) -> Array:
    """Return at most `rank` orthonormal combinations of the core's slices: all that is not noise."""
    xp = array_namespace(core.reference)
    shape = [int(np.prod([core.shape[mode] for mode in role])) for role in (roles.others, roles.rows, roles.columns)]
    stack = xp.reshape(xp.permute_dims(core.to_dense(), roles.order), tuple(shape))
    if shape[0] <= max(rank, 2):
        return stack
    flat = xp.reshape(stack, (shape[0], shape[1] * shape[2]))
    leading = xp.linalg.eigh(flat @ xp.matrix_transpose(flat))[1][:, -max(rank, 2) :]
    return xp.reshape(xp.matrix_transpose(leading) @ flat, (-1, *shape[1:]))


def components_from_sides(core: DenseTensor, roles: Roles, rows: Array, columns: Array) -> FactoredTensor:
    """Return components with these factors of rows and columns: the others by least squares, then the weights."""
    xp = array_namespace(rows)
    shape = core.shape
    gram = hadamard_gram([rows, columns])
    stack = xp.permute_dims(core.to_dense(), roles.order)
    stack = xp.reshape(stack, (-1, rows.shape[0], columns.shape[0]))
    along = xp.sum((stack @ columns) * rows, axis=1)  # (n, k)
    others = xp.matrix_transpose(solve_semidefinite(gram, xp.matrix_transpose(along)))
    factors: dict[int, Array] = {}
    for role, side in zip(roles, (rows, columns, others), strict=True):
        factors |= dict(zip(role, split_columns(side, [shape[mode] for mode in role]), strict=True))
    return with_best_weights(core, [factors[mode] for mode in range(core.order)])


def diagonalized(diagonalizer: Diagonalizer, stack: Array, rank: int, rng: np.random.Generator) -> Diagonalization:
    """Diagonalize, or say that the tensor has fewer components than were asked for."""
    try:
        fit = diagonalizer(stack, seed=rng)
    except np.linalg.LinAlgError:
        raise UndeterminedError(
            f"rank must be at most that of the tensor, whose projections are singular; got {rank}. "
            "method=None fits it by least squares"
        ) from None
    if fit.factor.shape[1] < rank:
        raise UndeterminedError(
            f"rank must be at most {fit.factor.shape[1]}, the number of components that the tensor has, to rounding; "
            f"got {rank}. method=None fits it by least squares"
        )
    return fit
