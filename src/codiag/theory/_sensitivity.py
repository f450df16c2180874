"""What noise does to the components of a least-squares fit, to first order."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from codiag._array import to_host
from codiag._problem import n_entries, n_parameters
from codiag.methods.least_squares._curvature import Curvature
from codiag.methods.least_squares._layout import Layout
from codiag.tensors import FactoredTensor

if TYPE_CHECKING:
    from codiag._factorization import Factorization


@dataclass(frozen=True, eq=False)
class Sensitivity:
    r"""How white noise of unit variance moves components, and what each of them is worth.

    Attributes
    ----------
    factors : array of shape (n_modes, rank)
        :math:`(E\|\delta a_{mi}\|^2)^{1/2}` of the unit factors; infinite where the data leaves a component free.
    worth : array of shape (rank,)
        By how much the squared distance would grow without a component, once all others have moved to make up for it.
    n_parameters : float
        Number of parameters that the data determines; those that ridges hold back count in part.
    undetermined : tuple of tuples of int
        Mode by mode, the rows of the factors for which too little was observed.
    """

    factors: np.ndarray
    worth: np.ndarray
    n_parameters: float
    undetermined: tuple[tuple[int, ...], ...]


def noise_level(fit: Factorization) -> float:
    """Return the standard deviation of white noise that leaves the residual of a fit; NaN if no entry is to spare."""
    if fit.problem is None:
        spare: float = n_entries(fit.tensor) - n_parameters(fit.tensor, fit.rank)
    else:
        spare = fit.problem.n_entries - fit.sensitivity.n_parameters
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
    inner = [np.linalg.qr(factor)[1] if factor.shape[0] > factor.shape[1] else factor for factor in scaled]
    signs = None if layout.signs is None else to_host(layout.signs)
    shape = tuple(factor.shape[0] for factor in inner) if signs is None else (inner[0].shape[0],) * components.order
    curvature = Curvature(Layout(shape, signs), np.concatenate(inner))
    matrix = curvature.matrix()
    if signs is None:
        matrix = matrix + _scaling(inner, curvature.own[0])
    covariance, free = _inverse(matrix, components.rank)
    rows, spreads = 0, []
    for factor, reduced, own in zip(scaled, inner, curvature.own, strict=True):
        size = reduced.shape[0]
        block = covariance[rows : rows + size, :, rows : rows + size, :]
        outside = (factor.shape[0] - size) * np.diag(np.linalg.pinv(own, hermitian=True))
        spreads.append(np.sqrt(np.maximum(_across(block, reduced) + outside, 0)) / np.linalg.norm(reduced, axis=0))
        rows += size
    factors = np.stack(spreads * (components.order if signs is not None else 1))
    worth = _worth(covariance, np.concatenate(inner), components.order)
    n_known = float(n_parameters(components, components.rank))
    return Sensitivity(np.where(free, np.inf, factors), worth, n_known, ((),) * components.order)


def of_present(
    components: FactoredTensor, present: np.ndarray, compute: Callable[[FactoredTensor], Sensitivity]
) -> Sensitivity:
    """Return the answer where some components have no weight: they could be anything, and are worth nothing."""
    factors, worth = np.full((components.order, components.rank), np.inf), np.zeros(components.rank)
    if present.size == 0:
        return Sensitivity(factors, worth, 0.0, ((),) * components.order)
    rest = compute(components.columns(present.tolist()))
    factors[:, present], worth[present] = rest.factors, rest.worth
    return replace(rest, factors=factors, worth=worth)


def _inverse(matrix: np.ndarray, rank: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the inverse as (D, k, D, k), null directions as stiff as rounding, and which components these move."""
    values, vectors = np.linalg.eigh(matrix)
    rounding = values[-1] * matrix.shape[0] * np.finfo(np.float64).eps
    moved = np.sum(vectors[:, values <= rounding] ** 2, axis=1).reshape(-1, rank)
    free = np.sum(moved, axis=0) > 1e-6
    inverse = (vectors / np.maximum(values, rounding)) @ vectors.T
    return inverse.reshape(-1, rank, matrix.shape[0] // rank, rank), free


def _worth(covariance: np.ndarray, point: np.ndarray, order: int) -> np.ndarray:
    own = np.einsum("aibi->iab", covariance)
    solved = np.linalg.solve(own, point.T[:, :, None])[:, :, 0]
    return np.maximum(np.sum(solved * point.T, axis=1), 0) / order**2


def _across(block: np.ndarray, factor: np.ndarray) -> np.ndarray:
    """Return the variance of each column at right angles to itself; along itself it only changes the weight."""
    unit = factor / np.linalg.norm(factor, axis=0)
    own = np.einsum("aibi->iab", block)
    return np.trace(own, axis1=1, axis2=2) - np.einsum("ai,iab,bi->i", unit, own, unit)


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
