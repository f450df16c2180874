"""Whether what a fit leaves over looks like noise."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from codiag._arrays import array_namespace, like, to_host
from codiag.least_squares._objective import LeastSquares
from codiag.reduction import hollow_spectrum
from codiag.tensors import DenseTensor, SparseTensor, Tensor

QUANTILE = 3.27
"""What the Tracy-Widom distribution of order one stays below in 999 of 1000 cases."""


RESIDUAL_ROUNDING = 1e-20
"""Share of the squared norm that rounding may leave, whatever it looks like."""

FLIPS, NORMAL_QUANTILE = 20, 3.1
"""Flips of signs that tell what noise would leave, and the normal quantile of one in a thousand."""


def noise_excess(residual: Tensor) -> float:
    r"""Return how far the strongest direction of a residual stands out of what white noise would leave in any.

    The largest eigenvalue of :math:`R_{(m)} R_{(m)}^\top`, m the largest mode, over the value that noise of the same
    energy exceeds in one of a thousand cases. Up to 1 the residual passes for noise; a component that was missed shows
    as more.

    References
    ----------
    I. M. Johnstone, "On the distribution of the largest eigenvalue in principal components analysis", Ann. Statist.
    29(2), 2001.
    """
    values, rows, columns = _spectrum(residual)
    if residual.symmetric:
        columns /= math.factorial(residual.order - 1)  # the others are repetitions
    long, short = math.sqrt(max(columns - 1, 1)), math.sqrt(rows)
    edge = (long + short) ** 2 + QUANTILE * (long + short) * (1 / long + 1 / short) ** (1 / 3)
    total = float(values.sum())
    return float(values[-1]) * rows * columns / (total * edge) if total > 0 else 0.0


def is_noise(objective: LeastSquares, residual: Tensor) -> bool:
    """Tell whether a residual passes for noise: its size is rounding, or no direction of it stands out."""
    problem = objective.problem
    if residual.squared_norm() < RESIDUAL_ROUNDING * objective.total:
        return True
    if problem.entries is not None or problem.shared:
        shared = next((group for group in problem.groups if len(group) > 1), ())
        return excess_over_flips(residual, shared) <= 1
    return noise_excess(residual) <= 1


def largest_square(residual: Tensor) -> float:
    """Return the square of the largest singular value of an unfolding: no rank-one term of the residual has more."""
    return float(_spectrum(residual)[0][-1])


def _spectrum(residual: Tensor) -> tuple[np.ndarray, int, float]:
    """Return the eigenvalues of the largest mode's unfolding times its transpose, and the unfolding's shape.

    Slices of zeros, which hold no noise either, are not counted.
    """
    xp = array_namespace(residual.reference)
    entries = residual.to_dense()
    axes = range(residual.order)
    energies = [xp.sum(entries**2, axis=tuple(other for other in axes if other != axis)) for axis in axes]
    sizes = [int(np.count_nonzero(to_host(energy))) for energy in energies]
    mode = int(np.argmax(sizes))
    side = xp.reshape(xp.moveaxis(entries, mode, 0), (residual.shape[mode], -1))
    side = side if side.shape[0] <= side.shape[1] else xp.matrix_transpose(side)  # the same but for zeros
    values = to_host(xp.linalg.eigvalsh(side @ xp.matrix_transpose(side)))
    return values, max(sizes[mode], 1), max(math.prod(sizes) / max(sizes[mode], 1), 1.0)


def excess_over_flips(residual: Tensor, shared: Sequence[int] = ()) -> float:
    r"""Return how many times the strongest direction of a residual with holes exceeds what noise would leave in any.

    Signs of independent noise may be flipped without a change of its distribution, whatever was observed and with
    whatever weights: the value is held against the mean over flips plus 3.1 standard deviations, which one of a
    thousand exceeds. Entries that permutations of the shared modes make equal are flipped together. Of a list, squares
    of entries, which flips do not change, are left out of the value.
    """
    rng = np.random.default_rng(0)
    flipped = [_strongest(residual, shared, rng) for _ in range(FLIPS)]
    bound = float(np.mean(flipped) + NORMAL_QUANTILE * np.std(flipped, ddof=1))
    return _strongest(residual, shared) / bound if bound > 0 else 0.0


def _strongest(residual: Tensor, shared: Sequence[int], rng: np.random.Generator | None = None) -> float:
    """Return the largest eigenvalue of an unfolding times its transpose, with a generator for signs drawn anew."""
    if isinstance(residual, SparseTensor) and not shared:
        signs = 1.0 if rng is None else rng.choice([-1.0, 1.0], residual.values.size)
        flipped = SparseTensor(residual.coords, signs * residual.values, residual.shape, check=False)
        return float(hollow_spectrum(flipped, int(np.argmax(residual.shape)), 1)[0][0])
    entries = residual.to_dense()
    if rng is not None:
        entries = entries * like(_mirrored(rng.choice([-1.0, 1.0], residual.shape), shared), entries)
    return largest_square(DenseTensor.of(entries, symmetric=False))


def _mirrored(values: np.ndarray, shared: Sequence[int]) -> np.ndarray:
    """Return values that are equal wherever indices of the shared modes differ in their order only."""
    if not shared:
        return values
    places = np.indices(values.shape)
    places[list(shared)] = np.sort(places[list(shared)], axis=0)
    mirrored: np.ndarray = values[tuple(places)]
    return mirrored
