"""Whether a residual looks like noise, and how large the terms of noise are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np

from codiag._arrays import Array, adjoint, array_namespace, asarray_like, is_complex, squared_magnitudes, to_host
from codiag.least_squares._components import unit_components
from codiag.least_squares._gauss_newton import is_exact
from codiag.problem import Problem
from codiag.tensors import DenseTensor, FactoredTensor, Tensor, leading_eigenpairs, with_random_signs

LEVEL = 1e-3
"""Share of residuals of pure noise that do not pass for it."""

TRACY_WIDOM_QUANTILES = {False: 3.27, True: 1.31}
"""The quantile 1 - LEVEL of the Tracy-Widom distribution of order one, and of order two if noise is complex."""

NORMAL_QUANTILE = NormalDist().inv_cdf(1 - LEVEL)
"""The quantile 1 - LEVEL of the normal distribution."""

N_FLIPS = 20
"""Random sign patterns from which mean and standard deviation of the largest eigenvalue are estimated, at most: to 16 %
of the latter."""


def is_noise(problem: Problem, residual: Tensor, fitted: FactoredTensor | None = None) -> bool:
    """Return whether a residual passes for noise: it is rounding, or no direction of it is significant."""
    if is_exact(problem, residual.squared_norm()):
        return True
    return noise_excess(problem, residual, fitted=fitted) <= 1


def noise_excess(
    problem: Problem, residual: Tensor, n_left_out: int = 0, fitted: FactoredTensor | None = None
) -> float:
    r"""Return the largest eigenvalue of :math:`R_{(m)} R_{(m)}^\top` over the 99.9 % quantile for white noise.

    The mode m is the largest. Up to 1 the residual passes for noise; a component that was missed shows as more. With
    some left out, the largest of the other eigenvalues and their energy are taken: up to 1, no more components than
    these were missed.

    For a complete tensor the quantile is that of the Tracy-Widom law. If it is exceeded and components were fitted, the
    comparison is repeated after directions have been scaled by the noise that the fit leaves there
    (`whitened_residual`).

    If entries are missing the quantile lies between that for noise of the same energy in all entries, since noise in
    some rows only is concentrated, and that for noise which has the same variance in all entries, missing ones
    included. If the eigenvalue is between the two, or with weights, or modes some of which share a factor, the quantile
    is estimated from the residual with random signs, which leave the distribution of independent noise as it is: mean
    plus 3.1 standard deviations, from as many patterns as it takes to tell on which side the eigenvalue is.

    References
    ----------
    I. M. Johnstone, "On the distribution of the largest eigenvalue in principal components analysis", Ann. Statist.
    29(2), 2001.
    """
    if not problem.shared and problem.data.has_equal_weights and not problem.tensor.is_partial:
        excess, share = _tracy_widom_excess(residual, n_left_out), problem.n_observed / math.prod(residual.shape)
        if excess > 1 and share == 1 and fitted is not None:
            return _tracy_widom_excess(residual, n_left_out, fitted)
        if excess <= 1 or share * excess > 1 or share == 1:
            return excess if excess <= 1 else share * excess
    shared = next((group for group in problem.groups if len(group) > 1), ())
    mode, rng = int(np.argmax(residual.shape)), np.random.default_rng(0)

    value, flipped, bound = _eigenvalue(residual, mode, n_left_out), list[float](), 0.0
    for n_flips in range(1, N_FLIPS + 1):
        flipped.append(_eigenvalue(with_random_signs(residual, rng, shared), mode))
        if n_flips < math.isqrt(N_FLIPS):
            continue
        deviation = float(np.std(flipped, ddof=1))
        bound = float(np.mean(flipped)) + NORMAL_QUANTILE * deviation
        error = deviation * math.sqrt(1 / n_flips + NORMAL_QUANTILE**2 / (2 * (n_flips - 1)))
        if abs(value - bound) > NORMAL_QUANTILE * error:  # further patterns would not change the answer
            break
    return value / bound if bound > 0 else 0.0


def _eigenvalue(tensor: Tensor, mode: int, n_left_out: int = 0) -> float:
    """Return the largest eigenvalue but some, as it would be if the rest had all the energy; zero if none is left."""
    values = to_host(leading_eigenpairs(tensor, mode, min(n_left_out + 1, tensor.shape[mode]))[0])
    if n_left_out == 0:
        return float(values[0])
    total = tensor.squared_norm()
    rest = total - float(values[:n_left_out].sum())
    return float(values[n_left_out]) * total / rest if n_left_out < values.size and rest > 0 else 0.0


def _tracy_widom_excess(residual: Tensor, n_left_out: int, fitted: FactoredTensor | None = None) -> float:
    """Return the excess of a complete residual; slices of zeros, which hold no noise, are not counted.

    Every component that was fitted takes one column of the unfolding away.
    """
    xp, entries, axes = array_namespace(residual.reference), residual.to_dense(), range(residual.order)
    energies = [
        xp.sum(squared_magnitudes(entries), axis=tuple(other for other in axes if other != axis)) for axis in axes
    ]
    sizes = [max(int(np.count_nonzero(to_host(energy))), 1) for energy in energies]
    mode = int(np.argmax(sizes))
    n_rows, n_columns = sizes[mode], math.prod(sizes) / sizes[mode]
    if residual.symmetric:
        n_columns = independent_columns(n_rows, residual.order)
    if fitted is not None:
        n_columns, residual = max(n_columns - fitted.rank, 1), whitened_residual(residual, fitted, mode)
    total, edge = residual.squared_norm(), _edge(n_rows, n_columns, has_phases=is_complex(entries))
    value = _eigenvalue(residual, mode, n_left_out)
    return value * n_rows * n_columns / (total * edge) if total > 0 else 0.0


def _edge(n_rows: int, n_columns: float, *, has_phases: bool) -> float:
    """Return the quantile of the largest eigenvalue for white noise of variance one."""
    long, short = math.sqrt(max(n_columns - (0 if has_phases else 1), 1)), math.sqrt(n_rows)
    return (long + short) ** 2 + TRACY_WIDOM_QUANTILES[has_phases] * (long + short) * (1 / long + 1 / short) ** (1 / 3)


def stacked_excess(residuals: Array) -> np.ndarray:
    """Return what `noise_excess` does before any whitening, for complete residuals (n, d_0, d_1, ...) of one shape.

    It is infinite for those that vanish in a slice.
    """
    xp, (n, *shape) = array_namespace(residuals), residuals.shape
    squares, found = squared_magnitudes(residuals), np.full(n, math.inf)
    axes = range(1, len(shape) + 1)
    energies = [xp.sum(squares, axis=tuple(other for other in axes if other != axis)) for axis in axes]
    is_full = np.all([to_host(xp.min(energy, axis=1)) > 0 for energy in energies], axis=0)
    mode = int(np.argmax(shape))
    unfolded = xp.reshape(xp.moveaxis(residuals, mode + 1, 1), (n, shape[mode], -1))
    n_rows, n_columns = unfolded.shape[1:]
    values = to_host(xp.linalg.eigvalsh(unfolded @ adjoint(unfolded))[:, -1])[is_full]
    edge = _edge(n_rows, n_columns, has_phases=is_complex(residuals))
    found[is_full] = values * n_rows * n_columns / (to_host(xp.sum(energies[mode], axis=1))[is_full] * edge)
    return found


def whitened_residual(residual: Tensor, fitted: FactoredTensor, mode: int) -> Tensor:
    r"""Scale directions of a mode such that the noise which a fit of k components leaves has equal energy in all.

    A fit takes the part of the noise that small moves of its components can reproduce. If these were orthogonal, it
    would take :math:`k I + D\, U U^\top` of the expected :math:`R R^\top = c I` of white noise of variance one, where U
    are the unit columns of this mode, c is the number of columns and D the number of moves in the other modes; for
    symmetric noise of order n, :math:`(k I + d (n - 1)\, U U^\top) / n` of :math:`c = \binom{d + n - 1}{n - 1} / n`.
    Directions with few components keep more noise than the mean of all, and are scaled down. Others stay as they are:
    moves that are not orthogonal take less than this from directions with many components.
    """
    shape, entries, rank = residual.shape, residual.to_dense(), fitted.rank
    size, others = shape[mode], [shape[other] for other in range(residual.order) if other != mode]
    if residual.symmetric:
        n_columns = math.comb(size + residual.order - 1, residual.order - 1) / residual.order
        apart, along = rank / residual.order, size * (residual.order - 1) / residual.order
    else:
        n_columns, apart, along = math.prod(others), rank, sum(others) - len(others)
    xp = array_namespace(entries)
    basis, sizes, _ = np.linalg.svd(to_host(unit_components(fitted).factors[mode]), full_matrices=False)
    mean = n_columns - apart - along * rank / size
    left = np.maximum(n_columns - apart - along * sizes**2, mean) / (n_columns - apart)
    if mean <= 0:
        return residual
    scales, basis = asarray_like(1 / np.sqrt(left) - 1, entries), asarray_like(basis, entries)
    unfolded = xp.reshape(xp.moveaxis(entries, mode, 0), (size, -1))
    unfolded = unfolded + (basis * scales) @ (adjoint(basis) @ unfolded)
    return DenseTensor.of(xp.moveaxis(xp.reshape(unfolded, (size, *others)), 0, mode), symmetric=False)


def independent_columns(size: int, order: int) -> float:
    r"""Return how many columns of independent noise vary as the unfolding R of symmetric noise does.

    An entry of symmetric white noise has variance 1 / m if m entries equal it. So a product of entries of rows a and
    b, a column I with its repetitions, has variance :math:`(1 + n_a)(1 + n_b) / n^2` at order n, where :math:`n_a` and
    :math:`n_b` count a and b in I. Summed over all I, the variance of :math:`(R R^\top)_{ab}` is
    :math:`\binom{d + n}{n - 1} / n^2`, and the mean of :math:`(R R^\top)_{aa}` is :math:`\binom{d + n - 1}{n - 1} / n`.
    For N independent columns of variance one both are N, so that N is the squared mean over the variance. Different
    entries of :math:`R R^\top` off the diagonal are uncorrelated in both cases.
    """
    return math.comb(size + order - 1, order - 1) * (size + 1) / (size + order)


def largest_noise_term(problem: Problem, squared_distance: float) -> float:
    """Return the largest squared weight that a rank-one term of white noise has, in 999 of 1000 cases.

    The variance of the noise is estimated from the squared distance of a fit. Zero if the term would exceed all noise,
    or if no degrees of freedom remain.
    """
    spare = problem.n_independent - problem.n_parameters
    variances = largest_term_of_unit_noise(problem.tensor.shape, problem.groups, problem.numbers_per_entry) ** 2
    if spare <= 1 or variances >= problem.n_independent:
        return 0.0
    return max(squared_distance, 0.0) / spare * variances


def largest_term_of_unit_noise(
    shape: Sequence[int], groups: Sequence[tuple[int, ...]], numbers_per_entry: int = 1
) -> float:
    r"""Return the weight that the largest rank-one term of noise of variance one exceeds in one of a thousand cases.

    The mean is at most :math:`\sum_g \sqrt{n_g d_g}`, where g runs over groups of :math:`n_g` modes of size :math:`d_g`
    that share a factor: a step of x by h moves :math:`x^{\otimes n}` by at most :math:`\sqrt n\, h`, so that the mean
    of the maximum is below that of :math:`\sqrt n\, g^\top x` (Sudakov and Fernique). It is exceeded by 3.7 in one of a
    thousand cases. The noise is that before averaging over permutations of modes. A complex entry is two numbers of
    variance one, and factors of size :math:`d_g` have :math:`2 d_g` real coordinates.
    """
    mean = sum(math.sqrt(numbers_per_entry * len(group) * shape[group[0]]) for group in groups)
    return mean + math.sqrt(-2 * math.log(LEVEL))  # the norm is a Lipschitz function: Gaussian concentration
