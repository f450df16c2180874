r"""Newton-like steps of orthonormal factors, on one side or on two.

Each entry of a step is Cardoso's first-order error of a pair with the current off-diagonal entries as the noise. With
:math:`D_l = B M_l C^\top`, :math:`d_{il} = (D_l)_{ii}` and :math:`y_{ij} = \sum_l d_{jl} (D_l)_{ij}`, the step of one
side is :math:`(y_{ji} - y_{ij}) / \sum_l (d_{il} - d_{jl})^2`. On two sides each pair has two angles, which solve a
2 x 2 system.
"""

from __future__ import annotations

from codiag._array import Array, array_namespace, epsilon, to_host
from codiag.diagonalize._contraction import contraction
from codiag.diagonalize._fixed_point import Step
from codiag.diagonalize._products import Slabs, TwoSidedSlabs


def rotation_step(core: Slabs, inverse: Array, probe: Array) -> Step:
    """Evaluate orthonormal inverse factors of symmetric matrices, and the rotation to take from them."""
    xp = array_namespace(inverse)
    diagonals, sums, energy = core.moments(inverse, inverse, probe)
    cross = inverse @ xp.matrix_transpose(sums)
    products = diagonals @ xp.matrix_transpose(diagonals)
    squares = xp.linalg.diagonal(products)
    totals = squares[:, None] + squares[None, :]
    gaps = totals - 2 * products
    resolved = gaps > 100 * epsilon(inverse) * totals  # below that the gap itself is rounding
    gaps = xp.where(resolved, gaps, totals)
    move = xp.where(resolved, (xp.matrix_transpose(cross) - cross) / gaps, xp.zeros_like(gaps))
    move = xp.clip(move, -0.5, 0.5)
    scaled = xp.max(xp.abs(move) * xp.sqrt(gaps))
    return _measured(inverse, move, squares, scaled, energy, gaps, resolved, core.stack.shape[0])


def two_sided_rotation_step(core: TwoSidedSlabs, point: Array, probe: Array) -> Step:
    """Evaluate orthonormal inverse factors on the left and on the right, and the two rotations to take from them."""
    xp = array_namespace(point)
    diagonals, first, second, energy = core.moments(point, probe)
    products = diagonals @ xp.matrix_transpose(diagonals)
    squares = xp.linalg.diagonal(products)
    totals = squares[:, None] + squares[None, :]
    gaps = totals**2 - 4 * products**2
    resolved = gaps > 100 * epsilon(point) * totals**2
    gaps = xp.where(resolved, gaps, totals**2)
    turn, swing = first - xp.matrix_transpose(first), second - xp.matrix_transpose(second)
    moves = xp.stack([2 * products * swing - totals * turn, totals * swing - 2 * products * turn]) / gaps
    moves = xp.clip(xp.where(resolved, moves, xp.zeros_like(moves)), -0.5, 0.5)
    scaled = xp.max(xp.abs(moves) * xp.sqrt(gaps / totals))
    # The narrower of the gaps |d_i - d_j|^2 and |d_i + d_j|^2, of turning both sides together and against each other.
    narrower = totals - 2 * xp.abs(products) + xp.where(resolved, 0 * totals, totals)
    return _measured(point, moves, squares, scaled, energy, narrower, resolved, core.stack.shape[0])


def _measured(
    point: Array, move: Array, squares: Array, scaled: Array, energy: Array, gaps: Array, resolved: Array, n: int
) -> Step:
    """Measure a rotation against rounding, and against the noise that the probed energy shows."""
    xp = array_namespace(point)
    k = squares.shape[0]
    # Each pair is taken to be left with its share of the energy, in units of its own gap.
    ratio = xp.sqrt(xp.sum(energy) / (k * (k - 1)) / gaps)
    rate = contraction(ratio, xp.astype(resolved, gaps.dtype), n)
    numbers = [xp.sum(squares), xp.max(xp.abs(move)), scaled, xp.sum(energy), rate]
    objective, largest, scaled, off, rate = to_host(xp.stack(numbers)).tolist()
    noise = max(off / (n * k * (k - 1)), 1e-300)
    return Step(point, move, -objective, largest, scaled / noise**0.5, rate)
