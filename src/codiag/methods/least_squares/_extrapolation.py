r"""Where a sequence of Gauss-Newton steps is heading, told from the last few of them.

Far from the minimum of a residual that is not small, steps :math:`p(x)` shrink by a constant rate, however many are
taken. Near the minimum :math:`p` is nearly linear in x, so that the combination of the last points at which it would
vanish can be solved for (Anderson, "Iterative procedures for nonlinear integral equations", J. ACM 12(4), 1965).
"""

from __future__ import annotations

import numpy as np

from codiag._array import Array, array_namespace

MEMORY = 6
"""Steps that are remembered."""

TINY = 1e-12
"""Eigenvalue, relative to the largest, below which differences of steps are taken for multiples of each other."""


class Extrapolation:
    """The last points and the steps that were taken from them."""

    def __init__(self) -> None:
        self._points: list[Array] = []
        self._moves: list[Array] = []

    def forget(self) -> None:
        self._points, self._moves = [], []

    def add(self, point: Array, move: Array) -> None:
        self._points = [*self._points[-MEMORY:], point]
        self._moves = [*self._moves[-MEMORY:], move]

    def target(self) -> Array | None:
        """Return the point that the steps are heading for, None where too few were taken to tell."""
        if len(self._moves) < 3:
            return None
        xp = array_namespace(self._moves[-1])
        differences = [after - before for before, after in zip(self._moves[:-1], self._moves[1:], strict=True)]
        shifts = [after - before for before, after in zip(self._points[:-1], self._points[1:], strict=True)]
        sizes = [max(float(xp.sum(one * one)), 1e-300) ** -0.5 for one in differences]
        gram = np.array([[float(xp.sum(one * other)) for other in differences] for one in differences])
        gram *= np.outer(sizes, sizes)
        right = np.array([float(xp.sum(one * self._moves[-1])) for one in differences]) * sizes
        shares = np.linalg.lstsq(gram, right, rcond=TINY)[0] * sizes
        target = self._points[-1] + self._moves[-1]
        for share, shift, difference in zip(shares, shifts, differences, strict=True):
            target = target - float(share) * (shift + difference)
        return target
