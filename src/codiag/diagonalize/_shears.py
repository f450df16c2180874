r"""Steps of free factors, with one factor matrix or with one on each side: all 2 x 2 least-squares problems at once.

With rows scaled so that :math:`\sum_l |d_{il}|^2 = 1` and :math:`\rho_{ij} = \sum_l \bar d_{il} d_{jl}`, the step is
:math:`W_{ij} = (\bar\rho_{ij} y'_{ij} - y_{ij}) / (1 - |\rho_{ij}|^2)`. On the left, y and y' are the sums
:math:`\sum_l \bar d_{jl} (D_l)_{ij}` and :math:`\sum_l \bar d_{il} (D_l)_{ij}`; on the right they are exchanged.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from codiag._arrays import (
    Array,
    adjoint,
    array_namespace,
    asarray_like,
    conjugate,
    epsilon,
    identity,
    real_part,
    squared_magnitudes,
    to_host,
)
from codiag.diagonalize._fixed_point import FixedPointResult, Iterate, Limits, Step, contraction_rate, find_fixed_point
from codiag.diagonalize._stack import MatrixStack, TwoSidedStack
from codiag.diagonalize._starts import definite_start, generic_start


def shear(move: Array, inverse: Array) -> Array:
    """Return (I - W)^-1 B, which stays bounded if (I + W) B does not; by its series if W is small."""
    xp = array_namespace(move)
    if float(xp.linalg.vector_norm(move)) > 0.3:
        return xp.linalg.solve(identity(move.shape[-1], move) - move, inverse)
    result = inverse
    for _ in range(4):
        result = inverse + move @ result
    return result


def follow_shears(evaluate: Callable[[Array], Step], point: Array, limits: Limits) -> FixedPointResult:
    """Follow the steps from a point, or from rows in general position if no step leads away from that point.

    Eigenvectors of a defective pencil are such a point, because all diagonals of some of them vanish. The identity is
    another one, for matrices with empty diagonals.
    """
    outcome = find_fixed_point(evaluate, shear, point, limits)
    stuck = outcome.n_sweeps == 1 and outcome.last.largest == math.inf
    if math.isfinite(outcome.last.merit) and not stuck:
        return outcome
    rows = np.ascontiguousarray(np.broadcast_to(generic_start(point.shape[-1]), point.shape))
    return find_fixed_point(evaluate, shear, asarray_like(rows, point), limits)


def shear_step(core: MatrixStack, inverse: Array, probe: Array) -> Step:
    """Return the shear to take from inverse factors of symmetric or Hermitian matrices, and its measures."""
    inverse = core.here(inverse)
    xp, other = array_namespace(inverse), core.mirrored(inverse)
    diagonals, sums, energy = core.moments(inverse, other, probe)
    cross = core.mirrored(other @ xp.matrix_transpose(sums))
    products = conjugate(diagonals) @ xp.matrix_transpose(diagonals)
    # Scale the rows to sum_l |d_il|^2 = 1, and all that was computed from them.
    scale = real_part(xp.linalg.diagonal(products)) ** -0.25
    inverse, cross = inverse * scale[:, None], cross * scale[:, None] * scale[None, :] ** 3
    rho = products * (scale[:, None] * scale[None, :]) ** 2
    move, gaps = _solve_pairs(rho, cross, core.mirrored(xp.matrix_transpose(cross)))
    # The probe saw columns of the old scale, which is almost uniform after the first step.
    energy = energy * scale**2 * xp.mean(scale**2)
    return _measured(inverse, move, gaps, (inverse, inverse), energy, core.matrices.shape[0])


def two_sided_shear_step(core: TwoSidedStack, point: Array, probe: Array) -> Step:
    """Return the two shears to take from inverse factors on the left and on the right, and their measures."""
    point = core.here(point)
    xp = array_namespace(point)
    diagonals, first, second, energy = core.moments(point, probe)
    products = conjugate(diagonals) @ xp.matrix_transpose(diagonals)
    # Scale the rows to sum_l |d_il|^2 = 1 with equal norms on both sides, and all that was computed from them.
    norms = xp.linalg.vector_norm(point, axis=2)
    total = real_part(xp.linalg.diagonal(products)) ** -0.25
    ratio = xp.sqrt(norms[1, :] / norms[0, :])
    left, right = total * ratio, total / ratio
    point = point * xp.stack([left, right])[:, :, None]
    squared = total**2
    first = first * left[:, None] * (right * squared)[None, :]
    second = second * (left * squared)[:, None] * right[None, :]
    rho = products * squared[:, None] * squared[None, :]
    move, gaps = _solve_pairs(rho, first, second)
    right_move, _ = _solve_pairs(conjugate(rho), second, first)
    energy = energy * left**2 * xp.mean(right**2)
    sides = (point[0, ...], point[1, ...])
    step = _measured(point, xp.stack([move, right_move]), gaps, sides, energy, core.matrices.shape[0])
    return step._replace(move=xp.stack([move, xp.matrix_transpose(right_move)]))  # the right side moves by Z_ji


def _solve_pairs(rho: Array, sums: Array, other_sums: Array) -> tuple[Array, Array]:
    r"""Return :math:`W_{ij} = (\bar\rho_{ij} y'_{ij} - y_{ij}) / (1 - |\rho_{ij}|^2)` and the denominators.

    Two diagonals that are proportional up to rounding determine no move. Their denominator is returned as zero.
    """
    xp = array_namespace(rho)
    gaps = 1 - squared_magnitudes(rho)
    proportional = gaps <= 100 * epsilon(rho)  # true on the diagonal, false for NaN, which must not count as a solution
    gaps = xp.where(gaps < 1e-9, xp.full_like(gaps, 1e-9), gaps)
    moves = (conjugate(rho) * other_sums - sums) / gaps
    return xp.where(proportional, xp.zeros_like(moves), moves), xp.where(proportional, xp.zeros_like(gaps), gaps)


def _measured(point: Array, move: Array, gaps: Array, sides: tuple[Array, Array], energy: Array, n: int) -> Step:
    """Return a shear with its size, absolute and in units of the noise that the probed energy implies.

    If diagonals are proportional and off-diagonal energy remains, a move of zero is not a fixed point: no step is
    defined there, and the size is infinite.
    """
    xp = array_namespace(point)
    k = gaps.shape[0]
    rows = xp.linalg.vector_norm(sides[0], axis=1)
    columns = rows if sides[1] is sides[0] else xp.linalg.vector_norm(sides[1], axis=1)
    pairs = rows[:, None] * columns[None, :]
    sizes = xp.abs(move)
    total = xp.sum(energy)
    squares, other_squares = rows**2, columns**2
    # The sum over all pairs (i, j) of different components, as the product of two sums without the terms (i, i).
    variance = total / (n * (xp.sum(squares) * xp.sum(other_squares) - xp.vecdot(squares, other_squares)))
    scaled = xp.max(sizes * xp.sqrt(gaps) / pairs)
    undefined = xp.sum(xp.astype(gaps == 0, gaps.dtype)) - k
    rate = contraction_rate(xp.sqrt(n * variance) * pairs, gaps, n)
    numbers = [total, xp.max(sizes), scaled, variance, undefined, rate]
    off, largest, scaled, variance, undefined, rate = to_host(xp.stack(numbers)).tolist()
    if undefined > 0 and off > k * (1e3 * k * epsilon(point)) ** 2:
        largest = math.inf
    return Step(point, move, off, largest, scaled / max(variance, 1e-300) ** 0.5, rate)


def most_likely(stack: Array, weights: Array, start: Array | None, tol: float, max_sweeps: int) -> Iterate:
    r"""Diagonalize positive definite matrices by maximum likelihood, from given inverse factors.

    The matrices (n, d, d) are real or complex; their weights (n,) sum to one; the rows keep the scale of the start, by
    default that of `definite_start`.
    The criterion of Pham, :math:`f(B) = \sum_l w_l \sum_i \log (D_l)_{ii} - 2 \log |\det B|` with
    :math:`D_l = B M_l B^H`, is half the Kullback-Leibler divergence of the :math:`D_l` from their diagonals, up to a
    constant. For :math:`B \leftarrow (I + W) B` its gradient is :math:`g_{ij} = \sum_l w_l (D_l)_{ij} / (D_l)_{ii}`. If
    the :math:`D_l` are diagonal, the second derivative couples only the two entries of a pair, and Newton's step solves
    :math:`h_{ij} W_{ij} + \bar W_{ji} = -g_{ij}` with :math:`h_{ij} = \sum_l w_l (D_l)_{jj} / (D_l)_{ii}`. The same
    step is taken at all points, and shortened if f increases.

    References
    ----------
    D.-T. Pham, "Joint approximate diagonalization of positive definite Hermitian matrices", SIAM J. Matrix Anal. Appl.
    22(4), 2000.
    P. Ablin, J.-F. Cardoso and A. Gramfort, "Beyond Pham's algorithm for joint diagonalization", ESANN 2019.
    """
    rounding = epsilon(stack)
    limits = Limits(max(tol, 4 * rounding), 0.0, max_sweeps, 0.1, slack=100 * rounding, monotone=True)
    core, start = MatrixStack(stack), definite_start(stack) if start is None else start
    outcome = find_fixed_point(lambda point: _likelihood_step(core, weights, point), shear, start, limits)
    return Iterate(outcome.point, outcome.point, outcome.n_sweeps, outcome.converged)


def _likelihood_step(core: MatrixStack, weights: Array, inverse: Array) -> Step:
    """Return the Newton step of the likelihood, from one product of the matrices with the inverse factors."""
    xp = array_namespace(inverse)
    other = conjugate(inverse)
    blocks: list[Array] = []
    sums, start = 0.0, 0
    for product in core.transformed(inverse):
        diagonal = real_part((product @ other[:, :, None])[:, :, 0])
        share = weights[None, start : start + diagonal.shape[1]] / diagonal
        sums = sums + (xp.astype(share, product.dtype)[:, None, :] @ product)[:, 0, :]
        blocks.append(diagonal)
        start += diagonal.shape[1]
    diagonals = xp.concat(blocks, axis=1)
    gradient = sums @ xp.matrix_transpose(other)
    curvature = (weights / diagonals) @ xp.matrix_transpose(diagonals)
    gaps = curvature * xp.matrix_transpose(curvature) - 1
    resolved = gaps > 100 * epsilon(inverse)  # false on the diagonal, and for pairs with proportional diagonals
    move = adjoint(gradient) - xp.matrix_transpose(curvature) * gradient
    move = xp.where(resolved, move / xp.where(resolved, gaps, xp.ones_like(gaps)), xp.zeros_like(move))
    largest = float(xp.max(xp.abs(move)))
    merit = float(xp.sum(weights * xp.log(diagonals)) - 2 * xp.linalg.slogdet(inverse)[1])
    merit = merit if math.isfinite(merit) else math.inf
    return Step(inverse, move, merit, largest, math.inf, math.inf)
