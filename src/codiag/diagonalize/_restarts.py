"""Several starts: first steps on a few random combinations of the matrices, and the choice among fixed points."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from codiag._arrays import Array, array_namespace, moved
from codiag.diagonalize._base import Iterate
from codiag.diagonalize._compression import Slabs, random_combinations
from codiag.diagonalize.steps import Limits

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


def sketched(stack: Array, rng: np.random.Generator) -> Array | None:
    """Return a few random combinations of the matrices to start on, or None where that would save nothing.

    Their joint diagonalizer is off by about sqrt(n / size) standard errors of the final one, near enough for Newton
    steps, and each step on them costs size / n of a step on the whole stack.
    """
    n = stack.shape[0]
    size = max(8, n // 16)
    if n < 4 * size:
        return None
    return moved(random_combinations(stack, rng, size), stack)


def sketch_limits(limits: Limits) -> Limits:
    """Return limits for a start: its own noise is larger than what further steps would remove."""
    return replace(limits, statistical_tol=1.0, max_sweeps=min(limits.max_sweeps, 20))
