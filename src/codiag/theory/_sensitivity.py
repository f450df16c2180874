"""What noise does to the components of a least-squares fit, to first order."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import lapack

from codiag._arrays import to_host
from codiag.least_squares import Curvature, Layout
from codiag.problem import groups_of, n_independent_entries, n_parameters
from codiag.tensors import FactoredTensor

if TYPE_CHECKING:
    from codiag.result import Factorization

WELL_CONDITIONED = 1e-9
"""Smallest eigenvalue, relative to the largest, above which no direction is taken for null: far above rounding."""


@dataclass(frozen=True, eq=False)
class Sensitivity:
    r"""How white noise of unit variance moves components, and what each of them is worth.

    Attributes
    ----------
    entries : tuple of arrays of shape (d_m, rank)
        Standard deviations of the entries of unit factors; infinite where the data leaves them free, NaN where there
        were too many of them to compute.
    worth : array of shape (rank,)
        By how much the squared distance would grow without a component, once all others have moved to make up for it.
    n_parameters : float
        Number of parameters that the data determines; those that ridges hold back count in part.
    undetermined : tuple of tuples of int
        Mode by mode, the rows of the factors for which too little was observed.
    weights : array of shape (rank,)
        Standard deviations of the weights, all factors being unknown too.
    """

    entries: tuple[np.ndarray, ...]
    worth: np.ndarray
    n_parameters: float
    undetermined: tuple[tuple[int, ...], ...]
    weights: np.ndarray

    @cached_property
    def factors(self) -> np.ndarray:
        r"""The same of columns, :math:`(E\|\delta a_{mi}\|^2)^{1/2}`, shape (n_modes, rank)."""
        squares = np.stack([np.sum(errors**2, axis=0) for errors in self.entries])
        infinite = np.stack([np.any(np.isinf(errors), axis=0) for errors in self.entries])
        return np.where(infinite, np.inf, np.sqrt(squares))


def noise_level(fit: Factorization) -> float:
    """Return the standard deviation of white noise that leaves the residual of a fit; NaN if no entry is to spare."""
    if fit.problem is None:
        groups = groups_of(bool(fit.symmetric), len(fit.shape))
        spare: float = n_independent_entries(fit.shape, groups) - n_parameters(fit.shape, groups, fit.rank)
    else:
        spare = fit.problem.n_independent - fit.sensitivity.n_parameters
    return fit.relative_error * fit.norm / math.sqrt(spare) if spare > 0 else math.nan


def sensitivity(components: FactoredTensor) -> Sensitivity:
    r"""Return how noise of unit variance moves components, and what each of them is worth.

    The covariance is the inverse of the Gauss-Newton matrix H. Moves of a factor out of the range of all factors of its
    mode do not mix with any others, and have the covariance :math:`\Gamma_m^{-1}` in each such dimension. The rest is a
    problem in the coordinates of the ranges. A component :math:`t_i` is worth its squared distance from the tangent
    space of all others, :math:`p_i^\top (H^{-1})_{ii}^{-1} p_i / N^2`, since :math:`J_i p_i = N t_i` for its scaled
    factors :math:`p_i`.
    """
    present = np.flatnonzero(to_host(components.weights))
    if present.size < components.rank:
        return of_present(components, present, sensitivity)
    layout = Layout.of(components)
    scaled = layout.factors(to_host(layout.pack(components)).astype(np.float64))
    ranges = [_range(factor) for factor in scaled]
    inner = [basis.T @ factor for basis, factor in zip(ranges, scaled, strict=True)]
    signs = None if layout.signs is None else to_host(layout.signs)
    shape = tuple(factor.shape[0] for factor in inner) if signs is None else (inner[0].shape[0],) * components.order
    curvature = Curvature(Layout(shape, signs), np.concatenate(inner))
    matrix = curvature.matrix()
    if signs is None:
        matrix = matrix + _scaling(inner, curvature.own[0])
    covariance, free = _inverse(matrix, components.rank)
    rows, spreads = 0, []
    for basis, reduced, own in zip(ranges, inner, curvature.own, strict=True):
        size = reduced.shape[0]
        block = covariance[rows : rows + size, :, rows : rows + size, :]
        inside = np.einsum("ra,iab,rb->ri", basis, _across(block, reduced), basis, optimize=True)
        outside = (1 - np.sum(basis**2, axis=1))[:, None] * np.diag(np.linalg.pinv(own, hermitian=True))
        spread = np.sqrt(np.maximum(inside + outside, 0)) / np.linalg.norm(reduced, axis=0)
        spreads.append(np.where(free, np.inf, spread))
        rows += size
    entries = tuple(spreads * (components.order if signs is not None else 1))
    worth = _worth(covariance, np.concatenate(inner), components.order)
    n_known = float(n_parameters(components.shape, layout.groups, components.rank))
    weights = np.where(free, np.inf, _weight_errors(covariance, inner, components))
    return Sensitivity(entries, worth, n_known, ((),) * components.order, weights)


def _range(factor: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis of the range of a factor, (d, min(d, k))."""
    return np.linalg.qr(factor)[0] if factor.shape[0] > factor.shape[1] else np.eye(factor.shape[0])


def of_present(
    components: FactoredTensor, present: np.ndarray, compute: Callable[[FactoredTensor], Sensitivity]
) -> Sensitivity:
    """Return the answer where some components have no weight: they could be anything, and are worth nothing."""
    entries = tuple(np.full((size, components.rank), np.inf) for size in components.shape)
    worth, weights = np.zeros(components.rank), np.full(components.rank, np.inf)
    if present.size == 0:
        return Sensitivity(entries, worth, 0.0, ((),) * components.order, weights)
    rest = compute(components.columns(present.tolist()))
    worth[present], weights[present] = rest.worth, rest.weights
    for errors, known in zip(entries, rest.entries, strict=True):
        errors[:, present] = known
    return replace(rest, entries=entries, worth=worth, weights=weights)


def _inverse(matrix: np.ndarray, rank: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the inverse as (D, k, D, k), null directions as stiff as rounding, and which components these move."""
    definite = _definite_inverse(matrix)
    if definite is not None:
        return definite.reshape(-1, rank, matrix.shape[0] // rank, rank), np.zeros(rank, dtype=bool)
    values, vectors = np.linalg.eigh(matrix)
    rounding = values[-1] * matrix.shape[0] * np.finfo(np.float64).eps
    moved = np.sum(vectors[:, values <= rounding] ** 2, axis=1).reshape(-1, rank)
    free = np.sum(moved, axis=0) > 1e-6
    inverse = (vectors / np.maximum(values, rounding)) @ vectors.T
    return inverse.reshape(-1, rank, matrix.shape[0] // rank, rank), free


def _definite_inverse(matrix: np.ndarray) -> np.ndarray | None:
    """Return the inverse by Cholesky's factor, a tenth of the work, or None where a direction may be null."""
    root, failed = lapack.dpotrf(matrix, lower=1)
    if failed or not lapack.dpocon(root, np.linalg.norm(matrix, 1), uplo="L")[0] > WELL_CONDITIONED:
        return None
    lower = np.tril(lapack.dpotri(root, lower=1)[0])
    return np.asarray(lower + np.tril(lower, -1).T)


def _worth(covariance: np.ndarray, point: np.ndarray, order: int) -> np.ndarray:
    own = np.einsum("aibi->iab", covariance)
    solved = np.linalg.solve(own, point.T[:, :, None])[:, :, 0]
    return np.maximum(np.sum(solved * point.T, axis=1), 0) / order**2


def _weight_errors(covariance: np.ndarray, factors: list[np.ndarray], components: FactoredTensor) -> np.ndarray:
    r"""Return the errors of weights, :math:`w = \prod_m \|p_m\|`: the logarithm has slopes :math:`p_m / \|p_m\|^2`."""
    repeats = components.order // len(factors)
    slopes = repeats * np.concatenate([factor / np.sum(factor**2, axis=0) for factor in factors])
    variances = np.einsum("ai,aibi,bi->i", slopes, covariance, slopes)
    return np.abs(to_host(components.weights)) * np.sqrt(np.maximum(variances, 0))


def _across(block: np.ndarray, factor: np.ndarray) -> np.ndarray:
    """Return the covariance of each column at right angles to itself; along itself it only changes the weight."""
    unit = factor / np.linalg.norm(factor, axis=0)
    across = np.eye(factor.shape[0]) - unit.T[:, :, None] * unit.T[:, None, :]
    return across @ np.einsum("aibi->iab", block) @ across


def _scaling(factors: list[np.ndarray], own: np.ndarray) -> np.ndarray:
    """Return a term that fixes what the data leaves free: size moved from one mode of a component to another.

    It is as stiff as the data is for moves of the component that change the tensor.
    """
    rank = factors[0].shape[1]
    ends = np.cumsum([factor.size for factor in factors])
    moves = []
    for i in range(rank):
        columns = []
        for factor, end in zip(factors, ends, strict=True):
            column = np.zeros(ends[-1])
            column[end - factor.size : end].reshape(factor.shape)[:, i] = factor[:, i]
            columns.append(column)
        shifts = [column - columns[0] for column in columns[1:]]
        moves += [np.sqrt(own[i, i]) * shift / max(np.linalg.norm(shift), 1e-300) for shift in shifts]
    free = np.stack(moves, axis=1)
    return free @ free.T
