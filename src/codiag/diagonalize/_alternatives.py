r"""Where one start does not prove that its end is the one: which end to keep of several.

Noise and matrices without common factors leave several fixed points. Near one of them a plain step multiplies the
distance from it by a rate that the residuals couple in. With :math:`r_{ij}` the root of the energy left at the pair
(i, j) of k components in n matrices, in units of the diagonals, and :math:`g_{ij}` the gap between these, entries of
random sign give

.. math:: q = \max_{ij} \, (2 c\, r_{ij} + 2 (1 + c)^2 r_{ij}^2) / g_{ij}, \quad c = \sqrt{k / n},

from the largest singular value of a random matrix. Below one the steps contract and the fixed point is alone in its
neighbourhood; otherwise first-order theory promises nothing, and other starts may end lower.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from array_api_compat import array_namespace

from codiag._array import Array, epsilon
from codiag.diagonalize._base import Iterate
from codiag.diagonalize._products import Slabs

SAME = 1e-3
"""Ends whose criteria differ by a smaller share are taken for the same one."""


WORK = 4000
"""Sweeps, times the size of the matrices, after which no other start is tried: seconds, whatever the size."""


class End(NamedTuple):
    """Where an iteration ended, and what it leaves there."""

    iterate: Iterate
    criterion: float


def contraction(ratio: Array, gaps: Array, n: int) -> Array:
    """Return the rate q, from the residuals of pairs in units of the diagonals, and the gaps."""
    xp = array_namespace(gaps)
    c = math.sqrt(gaps.shape[-1] / n)
    rates = (2 * c * ratio + 2 * (1 + c) ** 2 * ratio**2) / xp.where(gaps > 0, gaps, xp.ones_like(gaps))
    return xp.max(xp.where(gaps > 0, rates, xp.zeros_like(rates)))


def criterion(core: Slabs, left: Array, right: Array, *, orthogonal: bool = False) -> float:
    r"""Return what is left off the diagonals; for free factors, in units that their scale does not change.

    That is :math:`\sum_{i \ne j} R_{ij} / \sqrt{z_i z_j}`, with :math:`R_{ij} = \sum_l (D_l)_{ij}^2` and :math:`z_i`
    the same on the diagonal: like the fixed points, it is the same for :math:`C M_l C^\top` as for :math:`M_l`.
    """
    xp = array_namespace(left)
    diagonals, residuals = core.residuals(left, right, None)
    if not orthogonal:
        scale = xp.sum(diagonals**2, axis=0) ** -0.5
        residuals = residuals * xp.sqrt(scale[:, None] * scale[None, :])
    value = float(xp.sum(residuals))
    return value if math.isfinite(value) else math.inf


def lowest(ends: Iterable[End], times: int = 2) -> Iterate:
    """Take ends until the lowest has been reached so many times, and return it, with the sweeps of all.

    One that converged goes before one that did not. No further end is sought once the sweeps, times the size of the
    matrices, exceed a budget: a sweep over large matrices takes long, and their ends lie close together.
    """
    seen: list[End] = []
    for end in ends:
        seen.append(end)
        best = min(seen, key=lambda one: (not one.iterate.converged, one.criterion))
        again = [one for one in seen if one.iterate.converged and one.criterion <= (1 + SAME) * best.criterion]
        size = end.iterate.left.shape[0]
        if len(again) >= times or size * sum(one.iterate.n_sweeps for one in seen) > WORK:
            break
    return best.iterate._replace(n_sweeps=sum(end.iterate.n_sweeps for end in seen))


def whitened_start(stack: Array) -> Array:
    """Return rows that turn the largest of the matrices into a diagonal of signs, the start of Tichavsky & Yeredor."""
    xp = array_namespace(stack)
    norms = xp.sum(xp.reshape(stack, (stack.shape[0], -1)) ** 2, axis=1)
    values, vectors = xp.linalg.eigh(xp.astype(stack[int(xp.argmax(norms)), ...], xp.float64))
    sizes = xp.abs(values)
    sizes = xp.clip(sizes, float(xp.max(sizes)) * stack.shape[1] * epsilon(stack), None)
    return xp.astype(xp.matrix_transpose(vectors / xp.sqrt(sizes)), stack.dtype)
