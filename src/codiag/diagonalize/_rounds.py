"""Rounds of disjoint pairs, and the 2 x 2 transformations that a round applies all at once."""

from __future__ import annotations

import numpy as np
from array_api_compat import device

from codiag._array import Array, array_namespace, is_mutable, to_host

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
