"""Least squares for the factors of some modes, those of the others being known."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from array_api_compat import array_namespace

from codiag._array import Array
from codiag.methods._base import hadamard_gram, solve_semidefinite
from codiag.tensors import FactoredTensor, Tensor


class Solved(NamedTuple):
    """Factors, the relative error they leave, and whether it has settled."""

    factors: list[Array]
    error: float
    converged: bool


def solve_free_modes(
    tensor: Tensor,
    factors: Sequence[Array],
    free: Sequence[int],
    *,
    max_sweeps: int,
    tol: float,
    monitor: Callable[[FactoredTensor, float], bool],
) -> Solved:
    """Solve for the factors of the free modes in turn, until the relative error falls by less than `tol`.

    With one free mode that is linear least squares, solved by the first sweep, whatever its factor was before. Unit
    weights; the given factors of the other modes are returned as they are.
    """
    xp = array_namespace(tensor.reference)
    current, error, converged = list(factors), math.inf, False
    weights = xp.ones_like(current[0][0, :])
    for _ in range(max_sweeps):
        for mode in free:
            product = xp.matrix_transpose(tensor.mttkrp(current, mode))
            current[mode] = xp.matrix_transpose(solve_semidefinite(hadamard_gram(current, [mode]), product))
        before = error
        error = math.sqrt(tensor.squared_distance(weights, current) / tensor.squared_norm())
        converged = len(free) == 1 or before - error < tol
        if monitor(FactoredTensor(weights, current), error) or converged:
            break
    return Solved(current, error, converged)
