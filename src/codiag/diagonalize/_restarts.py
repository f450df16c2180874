"""Which fixed point to keep of several: noise, and matrices without common factors, leave more than one."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from codiag._array import Array, array_namespace
from codiag.diagonalize._base import Iterate
from codiag.diagonalize._products import Slabs

SAME = 1e-3
"""Fixed points whose criteria differ by a smaller share are taken for the same one."""


WORK = 4000
"""Sweeps, times the size of the matrices or their number if it is smaller, after which no other start is tried: seconds
at most, whatever the size."""


class FixedPoint(NamedTuple):
    """Where an iteration ended, and the criterion there."""

    iterate: Iterate
    criterion: float


def criterion(core: Slabs, left: Array, right: Array, *, orthogonal: bool = False) -> float:
    r"""Return the energy off the diagonals; for free factors, in units that their scale does not change.

    That is :math:`\sum_{i \ne j} R_{ij} / \sqrt{z_i z_j}`, with :math:`R_{ij} = \sum_l (D_l)_{ij}^2` and :math:`z_i`
    the same on the diagonal: like the fixed points, it is the same for :math:`C M_l C^\top` as for :math:`M_l`.
    """
    xp = array_namespace(left)
    diagonals, residuals = core.residuals(left, right, None)
    if not orthogonal:
        scale = xp.sum(diagonals**2, axis=0) ** -0.5
        residuals = residuals * scale[:, None] * scale[None, :]
    value = float(xp.sum(residuals))
    return value if math.isfinite(value) else math.inf


def lowest(found: Iterable[FixedPoint], n: int, times: int = 2) -> Iterate:
    """Take fixed points of n matrices until the lowest has been reached so many times; return it, with all sweeps.

    One that converged goes before one that did not. No further one is sought once the sweeps, times the size of the
    matrices, exceed a budget: a sweep over large matrices takes long, and their fixed points lie close together.
    """
    seen: list[FixedPoint] = []
    for point in found:
        seen.append(point)
        best = min(seen, key=lambda one: (not one.iterate.converged, one.criterion))
        again = [one for one in seen if one.iterate.converged and one.criterion <= (1 + SAME) * best.criterion]
        size = min(point.iterate.left.shape[0], n)
        if len(again) >= times or size * sum(one.iterate.n_sweeps for one in seen) > WORK:
            break
    return best.iterate._replace(n_sweeps=sum(point.iterate.n_sweeps for point in seen))
