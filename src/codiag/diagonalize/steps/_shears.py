r"""Steps of free factors, on one side or on two: all 2 x 2 least-squares problems at once.

With rows scaled so that :math:`\sum_l d_{il}^2 = 1` and :math:`\rho_{ij} = \sum_l d_{il} d_{jl}`, the step is
:math:`W_{ij} = (\rho_{ij} y'_{ij} - y_{ij}) / (1 - \rho_{ij}^2)`, where y and y' are the sums
:math:`\sum_l d_{jl} (D_l)_{ij}` and :math:`\sum_l d_{il} (D_l)_{ij}`, in this order on the left and in the other on the
right.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from codiag._arrays import Array, array_namespace, epsilon, like, to_host
from codiag.diagonalize._compression import Slabs, TwoSidedSlabs, contraction
from codiag.diagonalize._starts import generic_start
from codiag.diagonalize.steps._fixed_point import Limits, Outcome, Step, find_fixed_point
from codiag.diagonalize.steps._rotations import shear


def follow_shears(evaluate: Callable[[Array], Step], point: Array, limits: Limits) -> Outcome:
    """Follow the steps from a point, or from rows in general position where no step leads away from that point.

    Eigenvectors of a defective pencil are such a point: some vanish on all diagonals. The identity is another, for
    matrices without diagonals.
    """
    outcome = find_fixed_point(evaluate, shear, point, limits)
    stuck = outcome.n_sweeps == 1 and outcome.last.largest == math.inf
    if math.isfinite(outcome.last.merit) and not stuck:
        return outcome
    rows = np.ascontiguousarray(np.broadcast_to(generic_start(point.shape[-1]), point.shape))
    return find_fixed_point(evaluate, shear, like(rows, point), limits)


def shear_step(core: Slabs, inverse: Array, probe: Array) -> Step:
    """Evaluate inverse factors of symmetric matrices, and the shear to take from them."""
    xp = array_namespace(inverse)
    diagonals, sums, energy = core.moments(inverse, inverse, probe)
    cross = inverse @ xp.matrix_transpose(sums)
    products = diagonals @ xp.matrix_transpose(diagonals)
    # Rows scaled to sum_l d_il^2 = 1, and everything made of them with it.
    scale = xp.linalg.diagonal(products) ** -0.25
    inverse, cross = inverse * scale[:, None], cross * scale[:, None] * scale[None, :] ** 3
    rho = products * (scale[:, None] * scale[None, :]) ** 2
    move, gaps = _solve_pairs(rho, cross, xp.matrix_transpose(cross))
    energy = energy * scale**2 * xp.mean(scale**2)  # the probe saw columns of the old scale, much alike after a step
    return _measured(inverse, move, gaps, (inverse, inverse), energy, core.stack.shape[0])


def two_sided_shear_step(core: TwoSidedSlabs, point: Array, probe: Array) -> Step:
    """Evaluate inverse factors on the left and on the right, and the two shears to take from them."""
    xp = array_namespace(point)
    diagonals, first, second, energy = core.moments(point, probe)
    products = diagonals @ xp.matrix_transpose(diagonals)
    # Rows scaled to sum_l d_il^2 = 1 with equal lengths on both sides, and everything made of them with it.
    norms = xp.linalg.vector_norm(point, axis=2)
    total = xp.linalg.diagonal(products) ** -0.25
    ratio = xp.sqrt(norms[1, :] / norms[0, :])
    left, right = total * ratio, total / ratio
    point = point * xp.stack([left, right])[:, :, None]
    share = total**2
    first = first * left[:, None] * (right * share)[None, :]
    second = second * (left * share)[:, None] * right[None, :]
    rho = products * share[:, None] * share[None, :]
    move, gaps = _solve_pairs(rho, first, second)
    other, _ = _solve_pairs(rho, second, first)
    energy = energy * left**2 * xp.mean(right**2)
    sides = (point[0, ...], point[1, ...])
    step = _measured(point, xp.stack([move, other]), gaps, sides, energy, core.stack.shape[0])
    return step._replace(move=xp.stack([move, xp.matrix_transpose(other)]))  # the right side moves by Z_ji


def _solve_pairs(rho: Array, own: Array, other: Array) -> tuple[Array, Array]:
    r"""Return :math:`W_{ij} = (\rho_{ij} y'_{ij} - y_{ij}) / (1 - \rho_{ij}^2)` and the denominators.

    Two diagonals that are proportional to rounding determine no move. Their denominator is returned as zero.
    """
    xp = array_namespace(rho)
    gaps = 1 - rho**2
    proportional = gaps <= 100 * epsilon(rho)  # true on the diagonal, false for NaN, which must not pass for a solution
    gaps = xp.where(gaps < 1e-9, xp.full_like(gaps, 1e-9), gaps)
    zero = xp.zeros_like(gaps)
    return xp.where(proportional, zero, (rho * other - own) / gaps), xp.where(proportional, zero, gaps)


def _measured(point: Array, move: Array, gaps: Array, sides: tuple[Array, Array], energy: Array, n: int) -> Step:
    """Measure a shear against rounding, and against the noise that the probed energy shows.

    Where diagonals are proportional and energy is left off the diagonal, no move is not a solution but a dead end.
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
    unsettled = xp.sum(xp.astype(gaps == 0, gaps.dtype)) - k
    rate = contraction(xp.sqrt(n * variance) * pairs, gaps, n)
    numbers = [total, xp.max(sizes), scaled, variance, unsettled, rate]
    off, largest, scaled, variance, unsettled, rate = to_host(xp.stack(numbers)).tolist()
    if unsettled > 0 and off > k * (1e3 * k * epsilon(point)) ** 2:
        largest = math.inf
    return Step(point, move, off, largest, scaled / max(variance, 1e-300) ** 0.5, rate)
