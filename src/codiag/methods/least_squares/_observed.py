"""Least squares over entries that were observed, or that count with weights."""

from __future__ import annotations

from collections.abc import Sequence

from array_api_compat import array_namespace

from codiag._array import Array, double, moved
from codiag._problem import Problem
from codiag.tensors import DenseTensor, Tensor
from codiag.tensors._dense import khatri_rao

RIDGE = 1e-12
"""Share of a row's equations added to their diagonal: rows that were hardly observed do not determine theirs."""


def weighted_square(entries: Array, observed: Array) -> float:
    """Return the weighted sum of squares, without what was not observed, whatever it is."""
    entries, weights = double(entries), double(observed)
    xp = array_namespace(entries)
    known = xp.where(weights > 0, entries, xp.zeros_like(entries))
    return float(xp.sum(weights * known**2))


def filled(problem: Problem) -> Tensor:
    """Return the tensor of a problem with the weighted mean of what was observed in place of what was not."""
    if problem.observed is None:
        return problem.tensor
    entries, weights = problem.tensor.to_dense(), problem.observed
    xp = array_namespace(entries)
    known = xp.where(weights > 0, entries, xp.zeros_like(entries))
    mean = xp.sum(known * weights) / xp.sum(weights)
    return DenseTensor.of(xp.where(weights > 0, entries, mean), symmetric=problem.tensor.symmetric)


def row_equations(tensor: Tensor, factors: Sequence[Array], observed: Array, mode: int) -> tuple[Array, Array]:
    r"""Return the normal equations of every row of a mode's factor, shapes (d, k, k) and (d, k).

    With Z the columnwise Kronecker product of the other factors, :math:`G_i = \sum_j o_{ij} z_j z_j^\top` and
    :math:`p_i = \sum_j o_{ij} t_{ij} z_j`.
    """
    xp = array_namespace(observed)
    others = khatri_rao([factor for other, factor in enumerate(factors) if other != mode])
    rank = others.shape[1]
    weights = _unfolded(observed, mode)
    entries = _unfolded(tensor.to_dense(), mode)
    known = xp.where(weights > 0, weights * entries, xp.zeros_like(weights))
    pairs = xp.reshape(others[:, :, None] * others[:, None, :], (-1, rank * rank))
    return xp.reshape(weights @ pairs, (-1, rank, rank)), known @ others


def solve_rows(gram: Array, product: Array) -> Array:
    """Solve the equations of every row."""
    xp = array_namespace(gram)
    size = xp.linalg.trace(gram)[:, None, None] * RIDGE + 1e-300
    unit = moved(xp.eye(gram.shape[1]), gram)
    return xp.linalg.solve(gram + size * unit, product[:, :, None])[:, :, 0]


def _unfolded(entries: Array, mode: int) -> Array:
    xp = array_namespace(entries)
    return xp.reshape(xp.moveaxis(entries, mode, 0), (entries.shape[mode], -1))
