"""How far noise moves the factors of a least-squares fit, to first order."""

from __future__ import annotations

import numpy as np

from codiag._array import to_host
from codiag.methods.curvature import Curvature, Parameters
from codiag.tensors import FactoredTensor


def factor_spread(components: FactoredTensor) -> np.ndarray:
    r"""Return :math:`(E\|\delta a_{mi}\|^2)^{1/2}` for unit factors and white noise of unit variance, (n_modes, rank).

    The covariance is the inverse of the Gauss-Newton matrix H. Moves of a factor out of the range of all factors of its
    mode do not mix with any others, and have the covariance :math:`\Gamma_m^{-1}` in each such dimension. The rest is a
    problem in the coordinates of the ranges. Components of no weight could be anything: theirs is infinite.
    """
    present = np.flatnonzero(to_host(components.weights))
    if present.size < components.rank:
        spread = np.full((components.order, components.rank), np.inf)
        if present.size > 0:
            spread[:, present] = factor_spread(components.columns(present.tolist()))
        return spread
    parameters = Parameters.of(components)
    scaled = parameters.factors(to_host(parameters.pack(components)).astype(np.float64))
    inner = [np.linalg.qr(factor)[1] if factor.shape[0] > factor.shape[1] else factor for factor in scaled]
    signs = None if parameters.signs is None else to_host(parameters.signs)
    shape = tuple(factor.shape[0] for factor in inner) if signs is None else (inner[0].shape[0],) * components.order
    curvature = Curvature(Parameters(shape, signs), np.concatenate(inner))
    matrix = curvature.matrix()
    if signs is None:
        matrix = matrix + _scaling(inner, curvature.own[0])
    covariance = np.linalg.pinv(matrix, hermitian=True)
    rank, rows, spreads = components.rank, 0, []
    for factor, reduced, own in zip(scaled, inner, curvature.own, strict=True):
        size = reduced.shape[0]
        block = covariance[rows * rank : (rows + size) * rank, rows * rank : (rows + size) * rank]
        block = block.reshape(size, rank, size, rank)
        outside = (factor.shape[0] - size) * np.diag(np.linalg.pinv(own, hermitian=True))
        spreads.append(np.sqrt(np.maximum(_across(block, reduced) + outside, 0)) / np.linalg.norm(reduced, axis=0))
        rows += size
    return np.stack(spreads * (components.order if signs is not None else 1))


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
