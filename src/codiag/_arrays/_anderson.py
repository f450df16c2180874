r"""Anderson acceleration of fixed-point iterations.

An iteration moves from a point x by :math:`w(x)`, which vanishes at the solution. Near the solution w is nearly linear
in x. With the columns of :math:`\Delta X` and :math:`\Delta W` the differences between consecutive points and between
the moves from them, the accelerated step from the last point is

.. math:: w - (\Delta X + \Delta W) \gamma, \quad \gamma = \arg\min_\gamma \|w - \Delta W \gamma\|.

References
----------
D. G. Anderson, "Iterative procedures for nonlinear integral equations", J. ACM 12(4), 1965.
H. F. Walker and P. Ni, "Anderson acceleration for fixed-point iterations", SIAM J. Numer. Anal. 49(4), 2011.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from codiag._arrays._complex import as_real_numbers
from codiag._arrays._namespace import Array, array_namespace, asarray_like, on_host, to_double, to_host

LONGEST = 5.0
"""Length of an accelerated step, relative to the plain move, above which the linear model is distrusted: longer steps
are shortened to it. Chosen by experience."""


class Extrapolation:
    """The last points of a fixed-point iteration and the moves from them, extrapolated to the solution.

    Parameters
    ----------
    start : array, shape (n, rank), optional
        The first point. The norms of its columns are the units in which the columns of moves are measured; by default
        all entries have the same unit.
    memory : int
        Number of differences that are kept.
    """

    def __init__(self, start: Array | None = None, memory: int = 5) -> None:
        self._memory = memory
        self._units = None if start is None else _column_units(start)
        self.forget()

    def forget(self) -> None:
        """Delete all points and moves."""
        self._point: Array | None = None
        self._step: Array | None = None
        self._move: Array | None = None
        self._shifts: list[Array] = []
        self._changes: list[Array] = []

    def __len__(self) -> int:
        """Return the number of moves that are kept."""
        return len(self._changes) + (self._move is not None)

    def add(self, point: Array, move: Array) -> None:
        """Record a point and the move from it."""
        self._record(None if self._point is None else point - self._point, move)
        self._point = point

    def target(self, _: Array | None = None) -> Array:
        """Return the point to which the accelerated step leads from the last point."""
        return self._point + self._accelerated()

    def step(self, move: Array, *, avoid_saddles: bool = True) -> Array:
        """Record the move from the current point and return the step to take, which must then be taken.

        This form is for iterations on a group, whose points have coordinates relative to the current point only: the
        difference of the last two points is the last step. An accelerated step that is much longer than the plain move
        is shortened.

        Acceleration converges to every zero of the moves, also to saddles, which repel the plain iteration. With
        `avoid_saddles`, if the last steps show that plain moves are repelled along a direction, the plain move is
        returned, lengthened along that direction: where plain moves are repelled slowly, they stay for long.
        """
        self._record(self._step, move)
        repelling = None
        if self._changes and avoid_saddles:
            repelling = _repelling(*map(self._columns, (self._shifts, self._changes)))
        step = self._shortened() if repelling is None else self._lengthened(*repelling)
        if repelling is not None or step is move:
            self.forget()
            self._move = move
        self._step = step
        return step

    def _lengthened(self, coefficients: np.ndarray, rate: float) -> Array:
        """Return the move, longer along a combination of the last steps, so that the distance from the zero doubles."""
        xp = array_namespace(self._move)
        direction = xp.tensordot(asarray_like(coefficients, self._move), xp.stack(self._shifts), axes=1)
        pair = self._columns([direction, self._move])
        share = float(pair[:, 0] @ pair[:, 1]) / float(pair[:, 0] @ pair[:, 0])
        return self._move + min(1 / rate, LONGEST) * share * direction

    def _shortened(self) -> Array:
        """Return the accelerated step, no longer than the linear model is trusted; the move if it is not finite."""
        xp = array_namespace(self._move)
        step = self._accelerated()
        length = float(xp.linalg.vector_norm(step))
        longest = LONGEST * float(xp.linalg.vector_norm(self._move))
        if not math.isfinite(length):
            return self._move
        return step if length <= longest else step * (longest / length)

    def _record(self, shift: Array | None, move: Array) -> None:
        if shift is not None and self._move is not None:
            self._shifts = [*self._shifts, shift][-self._memory :]
            self._changes = [*self._changes, move - self._move][-self._memory :]
        self._move = move

    def _accelerated(self) -> Array:
        if not self._changes:
            return self._move
        xp = array_namespace(self._move)
        shares = asarray_like(_least_squares(self._columns([*self._changes, self._move])), self._move)
        differences = xp.stack(self._changes) + xp.stack(self._shifts)
        return self._move - xp.tensordot(shares, differences, axes=1)

    def _columns(self, arrays: Sequence[Array]) -> Array:
        """Return arrays, in units of the columns of the start, as the columns of a matrix in double precision."""
        xp = array_namespace(arrays[0])
        stacked = xp.stack(list(arrays))
        if self._units is not None:
            stacked = stacked / self._units
        return to_double(as_real_numbers(xp.matrix_transpose(xp.reshape(stacked, (len(arrays), -1)))))


def _column_units(point: Array) -> Array:
    xp = array_namespace(point)
    norms = xp.linalg.vector_norm(point, axis=0)
    return xp.where(norms > 0, norms, xp.ones_like(norms))


def _least_squares(columns: Array) -> np.ndarray:
    """Return the coefficients of all columns but the last that approximate the last one best, on the host."""
    triangle: np.ndarray
    if on_host(columns):
        triangle = np.linalg.qr(to_host(columns), mode="r")  # type: ignore[assignment]  # Q takes most of the time
    else:
        triangle = to_host(array_namespace(columns).linalg.qr(columns)[1])
    norms = np.linalg.norm(triangle[:, :-1], axis=0)
    norms[norms == 0] = 1
    coefficients: np.ndarray = np.linalg.lstsq(triangle[:, :-1] / norms, triangle[:, -1], rcond=1e-10)[0] / norms
    return coefficients


def _repelling(steps: Array, changes: Array) -> tuple[np.ndarray, float] | None:
    """Return the combination of the last steps along which plain moves lead away from the zero fastest, and how fast.

    The steps and the changes of the move determine the derivative of the move on the span of the steps. A plain move
    multiplies the distance from the zero by one plus an eigenvalue of this derivative, so that an eigenvalue with
    positive real part repels; None if there is none. Large negative eigenvalues are overshooting, which acceleration
    corrects.
    """
    xp = array_namespace(steps)
    gram, change = np.split(to_host(xp.matrix_transpose(steps) @ xp.concat([steps, changes], axis=1)), 2, axis=1)
    scale = np.sqrt(np.diag(gram))
    scale[scale == 0] = 1
    values, vectors = np.linalg.eigh(gram / np.outer(scale, scale))
    independent = values > 1e-10 * values[-1]
    basis = vectors[:, independent] / np.sqrt(values[independent])
    derivative = basis.T @ (change / np.outer(scale, scale)) @ basis
    if not np.all(np.isfinite(derivative)):
        return None
    rates, directions = np.linalg.eig(derivative)
    fastest = int(np.argmax(rates.real))
    if rates[fastest].real <= 0:
        return None
    return (basis / scale[:, None]) @ directions[:, fastest].real, float(rates[fastest].real)
