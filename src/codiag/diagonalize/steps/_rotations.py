r"""Newton-like steps of orthonormal factors, on one side or on two.

Each entry of a step is Cardoso's first-order error of a pair with the current off-diagonal entries as the noise. With
:math:`D_l = B M_l C^\top`, :math:`d_{il} = (D_l)_{ii}` and :math:`y_{ij} = \sum_l d_{jl} (D_l)_{ij}`, the step of one
side is :math:`(y_{ji} - y_{ij}) / \sum_l (d_{il} - d_{jl})^2`. On two sides each pair has two angles, which solve a
2 x 2 system.

Rounds of disjoint pairs, and the 2 x 2 transformations that a round applies all at once.

Ways to move inverse factors along a step, and to keep them orthonormal.
"""

from __future__ import annotations

import numpy as np
from array_api_compat import device

from codiag._arrays import Array, array_namespace, epsilon, identity, is_mutable, to_host
from codiag.diagonalize._compression import Slabs, TwoSidedSlabs, contraction
from codiag.diagonalize.steps._fixed_point import Step


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


Round = tuple[Array, Array]
"""Index arrays p and q of disjoint pairs (p_i, q_i), p_i < q_i."""


def round_robin(size: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return rounds of disjoint pairs that together hold every pair of `size` indices once (the circle method)."""
    players = size + size % 2
    circle = np.arange(1, players)
    rounds = []
    for turn in range(players - 1):
        seats = np.concatenate([[0], np.roll(circle, turn)])
        first, second = seats[: players // 2], seats[::-1][: players // 2]
        present = (first < size) & (second < size)
        pairs = np.sort(np.stack([first, second])[:, present], axis=0)
        rounds.append((pairs[0], pairs[1]))
    return rounds


def leading_rounds(size: int, leading: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return rounds that hold every pair with at least one of the first `leading` indices."""
    rounds = round_robin(leading) if leading > 1 else []
    rest = np.arange(leading, size)
    for start in range(0, rest.size, leading):
        block = rest[start : start + leading]
        top = np.arange(leading)
        for shift in range(leading):
            partners = np.roll(top, shift)[: block.size]
            rounds.append((partners, block))
    return rounds


def on_device(rounds: list[tuple[np.ndarray, np.ndarray]], reference: Array) -> list[Round]:
    """Move the index arrays to where the matrices are."""
    xp = array_namespace(reference)
    return [(xp.asarray(p, device=device(reference)), xp.asarray(q, device=device(reference))) for p, q in rounds]


def paired_layout(stack: Array) -> Array:
    """Return a copy of the stack as (d, d, n): picking rows or columns then moves blocks of n entries.

    Sweeps change it in place: the copy is on the host where the library of the stack does not do that.
    """
    stack = stack if is_mutable(stack) else to_host(stack)
    xp = array_namespace(stack)
    n, rows, columns = stack.shape
    # A copy keeps the strides of what it copies; flattening first puts the entries in order.
    flat = xp.reshape(xp.permute_dims(stack, (1, 2, 0)), (-1,))
    return xp.reshape(xp.asarray(flat, copy=True), (rows, columns, n))


def transform_pairs(entries: Array, inverse: Array, pairs: Round, matrix: tuple[Array, Array, Array, Array]) -> None:
    """Replace rows and columns (p, q) by (a p + b q, c p + d q), in place, and rows of the inverse factors likewise."""
    p, q = pairs
    a, b, c, d = matrix
    for target in (inverse, entries):
        shape = (-1,) + (1,) * (target.ndim - 1)
        first, second = target[p], target[q]
        target[p] = a.reshape(shape) * first + b.reshape(shape) * second
        target[q] = c.reshape(shape) * first + d.reshape(shape) * second
    first, second = entries[:, p], entries[:, q]
    entries[:, p] = a[:, None] * first + b[:, None] * second
    entries[:, q] = c[:, None] * first + d[:, None] * second


def pair_entries(entries: Array, pairs: Round) -> tuple[Array, Array, Array]:
    """Return (D_l)_pp, (D_l)_qq and (D_l)_pq of every pair, each (n_pairs, n)."""
    p, q = pairs
    return entries[p, p], entries[q, q], entries[p, q]


def balance_rows(entries: Array, inverse: Array) -> None:
    """Scale every component to unit diagonal energy, in place: off() is not invariant to the scale of the rows."""
    xp = array_namespace(entries)
    index = xp.arange(inverse.shape[0], device=device(inverse))
    energy = xp.sum(entries[index, index] ** 2, axis=1)
    scale = xp.where(energy > 0, energy, xp.ones_like(energy)) ** -0.25
    entries *= scale[:, None, None]
    entries *= scale[None, :, None]
    inverse *= scale[:, None]


def shear(move: Array, inverse: Array) -> Array:
    """Move free inverse factors by (I - W)^-1, which stays bounded where I + W does not."""
    return solve_near_identity(move, inverse)


def rotate(skew: Array, inverse: Array) -> Array:
    """Rotate inverse factors by the Cayley transform (I - W/2)^-1 (I + W/2)."""
    return solve_near_identity(skew / 2, inverse + skew @ inverse / 2)


def orthonormalize(inverse: Array) -> Array:
    """Return the rows to orthonormality, from which products of rotations drift in single precision (Newton-Schulz)."""
    xp = array_namespace(inverse)
    return 1.5 * inverse - 0.5 * (inverse @ xp.matrix_transpose(inverse)) @ inverse


def solve_near_identity(move: Array, target: Array) -> Array:
    """Return (I - W)^-1 applied to the target: by its series where W is small, which needs no factorization."""
    xp = array_namespace(move)
    if float(xp.linalg.vector_norm(move)) > 0.3:
        return xp.linalg.solve(identity(move.shape[-1], move) - move, target)
    result = target
    for _ in range(4):
        result = target + move @ result
    return result
