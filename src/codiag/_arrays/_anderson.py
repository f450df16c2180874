r"""Where a sequence of Gauss-Newton steps is heading, told from those that were taken.

Near the minimum of a residual that is not small, steps :math:`p(x)` shrink by a constant rate, however many are taken.
There :math:`p` is nearly linear in x, so that the combination of the last points at which it would vanish can be solved
for (Anderson, "Iterative procedures for nonlinear integral equations", J. ACM 12(4), 1965; Walker and Ni, "Anderson
acceleration for fixed-point iterations", SIAM J. Numer. Anal. 49(4), 2011).
"""

from __future__ import annotations

import numpy as np

from codiag._arrays._namespace import Array, like, to_host

TINY = 1e-10
"""Singular value, relative to the largest, below which differences of steps are taken for multiples of each other."""


class Extrapolation:
    """Points, and the steps that were taken from them.

    Parameters
    ----------
    start : array, shape (n, rank)
        Where the first step is taken; columns are measured in the units of its columns.
    memory : int
        Differences of steps that are remembered.
    """

    def __init__(self, start: Array, memory: int) -> None:
        self._start, self._memory = start, memory
        self.forget()

    def forget(self) -> None:
        self._points: list[Array] = []
        self._moves: list[Array] = []

    def __len__(self) -> int:
        return len(self._moves)

    def add(self, point: Array, move: Array) -> None:
        self._points = [*self._points[-self._memory :], point]
        self._moves = [*self._moves[-self._memory :], move]

    def target(self, model: Array) -> Array:
        """Return the point whose step, as linear in all points, is the shortest, moved by that step; as `model` is."""
        lengths = np.linalg.norm(to_host(self._start), axis=0)
        lengths = np.where(lengths > 0, lengths, 1.0)
        points, moves = (
            np.stack([(to_host(one).astype(np.float64) / lengths).ravel() for one in ones], axis=1)
            for ones in (self._points, self._moves)
        )
        shifts, changes = np.diff(points, axis=1), np.diff(moves, axis=1)
        shares = np.linalg.lstsq(changes, moves[:, -1], rcond=TINY)[0] if changes.shape[1] else np.zeros(0)
        target = points[:, -1] + moves[:, -1] - (shifts + changes) @ shares
        return like(target.reshape(model.shape) * lengths, model)
