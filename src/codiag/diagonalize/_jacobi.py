"""Orthogonal joint diagonalization by plane rotations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from codiag._arrays import Array, array_namespace, epsilon, identity, moved
from codiag._checks import as_number
from codiag.diagonalize._base import Diagonalizer, Iterate
from codiag.diagonalize.steps import (
    Round,
    leading_rounds,
    on_device,
    pair_entries,
    paired_layout,
    round_robin,
    transform_pairs,
)


@dataclass(frozen=True, kw_only=True)
class Jacobi(Diagonalizer):
    r"""Orthogonal joint diagonalization by Jacobi rotations, the paper's orthogonal method.

    Each rotation maximizes the diagonal energy of its pair in closed form,
    :math:`\theta = \tfrac14 \mathrm{atan2}(2 g_1^\top g_2,\ \|g_1\|^2 - \|g_2\|^2)` with
    :math:`g_1 = d_p - d_q` and :math:`g_2 = 2 D_{pq}`; disjoint pairs do not touch each other's optimum, so a whole
    round of them is applied at once.

    **Needs** symmetric matrices and orthonormal factors. **Costs** :math:`O(n d^3)` operations a sweep, in passes over
    memory rather than matrix products; fewer than ten sweeps under small noise. **Guarantees** that no rotation raises
    the off-diagonal energy, and quadratic convergence without noise. **Fails** to be quick: `OrthogonalNewton` finds
    the same factors in a fraction of the time. It has one start, and may end at a local minimum under large noise.

    Parameters
    ----------
    rank : int, optional
        Number of components, as in `Diagonalizer`.
    tol : float
        Stop when the largest entry of the relative step falls below it.
    max_sweeps : int
        Steps or sweeps before giving up, as in `Diagonalizer`.
    max_rows : int, optional
        Rotate only pairs that contain one of so many leading rows, and return that many components: the paper's
        treatment of low rank, at :math:`O(n k d^2)` a sweep. Where one row of a pair is outside, the stronger component
        goes to the leading one. `rank` compresses instead, which is faster still.

    See Also
    --------
    OrthogonalNewton : The same minimum in fewer steps, and the default.
    UWEDGE : For factors that are not orthogonal.

    References
    ----------
    J.-F. Cardoso and A. Souloumiac, "Jacobi angles for simultaneous diagonalization", SIAM J. Matrix Anal. Appl. 17(1),
    1996.

    Examples
    --------
    >>> from codiag.diagonalize import Jacobi
    >>> fit = Jacobi()([[[0, 1], [1, 0]], [[0, 2], [2, 0]]])
    >>> abs(fit.diagonals).round(12).tolist()
    [[1.0, 1.0], [2.0, 2.0]]
    """

    max_rows: int | None = None
    max_sweeps: int = 100
    handles_opposite_diagonals: ClassVar[bool] = True
    orthogonal = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.max_rows is not None:
            as_number("max_rows", self.max_rows, integer=True)

    def sweep_flops(self, n: int, size: int) -> float:
        rows = min(self.max_rows or size, size)
        return 2.0 * size * n * (size * rows - rows * (rows - 1) / 2)

    def iterate(self, stack: Array, rng: np.random.Generator) -> Iterate:
        size = stack.shape[1]
        leading = size if self.max_rows is None else min(self.max_rows, size)
        entries = paired_layout(stack)
        inverse = identity(size, entries)
        rounds = on_device(round_robin(size) if leading == size else leading_rounds(size, leading), entries)
        tol = max(self.tol, 4 * epsilon(entries))
        n_sweeps, converged = 0, False
        while n_sweeps < self.max_sweeps and not converged:
            converged = rotation_sweep(entries, inverse, rounds, leading) < tol
            n_sweeps += 1
        inverse = moved(inverse[:leading], stack)
        return Iterate(inverse, inverse, n_sweeps, converged)


def rotation_sweep(entries: Array, inverse: Array, rounds: list[Round], leading: int) -> float:
    """Rotate every pair once, in place; return the largest angle."""
    xp = array_namespace(entries)
    largest = []
    for pairs in rounds:
        theta = _angles(*pair_entries(entries, pairs))
        largest.append(xp.max(xp.abs(theta)))
        if leading < entries.shape[0]:
            theta = theta + _swaps(entries, pairs, theta, leading)
        cos, sin = xp.cos(theta), xp.sin(theta)
        transform_pairs(entries, inverse, pairs, (cos, sin, -sin, cos))
    return float(xp.max(xp.stack(largest)))


def _angles(first: Array, second: Array, cross: Array) -> Array:
    xp = array_namespace(first)
    apart, across = first - second, 2 * cross
    on = xp.sum(apart * apart, axis=1) - xp.sum(across * across, axis=1)
    off = 2 * xp.sum(apart * across, axis=1)
    # Where even the turned pair would differ by rounding alone there is nothing to resolve, and nothing to turn.
    size = xp.sum(first * first + second * second, axis=1)
    resolved = xp.hypot(on, off) > (100 * epsilon(first)) ** 2 * size
    return xp.where(resolved, 0.25 * xp.atan2(off, on), xp.zeros_like(on))


def _swaps(entries: Array, pairs: Round, theta: Array, leading: int) -> Array:
    """Return a quarter turn where the component that ends in the trailing row would be the stronger one."""
    xp = array_namespace(entries)
    first, second, cross = pair_entries(entries, pairs)
    cos, sin = xp.cos(theta)[:, None], xp.sin(theta)[:, None]
    top = cos**2 * first + 2 * cos * sin * cross + sin**2 * second
    bottom = first + second - top
    weaker = xp.sum(top * top, axis=1) < xp.sum(bottom * bottom, axis=1)
    swap = xp.logical_and(weaker, pairs[1] >= leading)
    return xp.where(swap, xp.full_like(theta, np.pi / 2), xp.zeros_like(theta))
