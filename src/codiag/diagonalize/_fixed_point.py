r"""Iterate a step to a fixed point, with Anderson acceleration, and choose among several fixed points.

Near a fixed point a plain step multiplies the distance from it by a rate that the residuals determine. With
:math:`r_{ij}` the root of the off-diagonal energy of the pair (i, j) of k components in n matrices, relative to the
diagonals, and :math:`g_{ij}` the gap between these, entries of random sign give

.. math:: q = \max_{ij} \, (2 c\, r_{ij} + 2 (1 + c)^2 r_{ij}^2) / g_{ij}, \quad c = \sqrt{k / n},

from the largest singular value of a random matrix. Below one, the steps contract and no other fixed point is near.
Above one, first-order theory guarantees nothing, and other starts may end lower.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from codiag._arrays import Array, Extrapolation, array_namespace, squared_magnitudes, to_namespace
from codiag.diagonalize._stack import MatrixStack, random_combinations


class Iterate(NamedTuple):
    r"""The result of `Diagonalizer.iterate`: inverse factors, and how they were found.

    Parameters
    ----------
    left : array of shape (k, k)
        Inverse factors B as rows: every :math:`B M_l C^\top` is as diagonal as the method could make it. Rows may have
        any scale and order. If the diagonalizer declares ``orthogonal``, they must be orthonormal, and may be fewer
        than k.
    right : array of shape (k, k)
        The same for the columns of the matrices, C; the array `left` itself for a symmetric diagonalizer.
    n_sweeps : int
        Steps or sweeps over the matrices.
    converged : bool
        Whether the tolerance was reached.

    See Also
    --------
    Diagonalizer.iterate : The method that returns one.
    codiag.Diagonalization : The result for users, made from it.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.extending import Iterate
    >>> Iterate(np.eye(2), np.eye(2), n_sweeps=3, converged=True).n_sweeps
    3
    """

    left: Array
    right: Array
    n_sweeps: int
    converged: bool


class Step(NamedTuple):
    """A point, the move from it, and measures of both."""

    point: Array  # in the scale that the move refers to
    move: Array  # relative step; zero at a fixed point
    merit: float  # the smaller the better
    largest: float  # largest entry of the move
    standardized: float  # largest entry of the move in units of its standard error, estimated from the residuals
    contraction: float  # the rate q


class FixedPointResult(NamedTuple):
    """The end of an iteration."""

    point: Array
    last: Step
    n_sweeps: int
    converged: bool

    @property
    def is_unique(self) -> bool:
        """Whether first-order theory guarantees that the steps contract here, and that no other fixed point is near."""
        return self.converged and self.last.contraction < 1


@dataclass(frozen=True)
class Limits:
    """Tolerances of an iteration."""

    tol: float  # on the largest entry of a move
    statistical_tol: float  # on the same in units of its standard error
    max_sweeps: int
    trust: float  # largest move that is taken for a move near a fixed point, and accelerated
    slack: float  # relative increase of the merit that a move may cause
    monotone: bool  # whether to stop if even short moves increase the merit; otherwise the best of them is taken
    avoid_saddles: bool = True  # whether acceleration avoids fixed points that repel plain steps

    def reached(self, step: Step, previous: Step | None) -> bool:
        """Return whether the error after this step, extrapolated from the last two, will be below tolerance."""
        if step.largest < self.tol:
            return True
        if previous is None or step.largest > self.trust:
            return False
        remaining = step.largest * _geometric_tail(step.largest, previous.largest)
        standardized = step.standardized * _geometric_tail(step.standardized, previous.standardized)
        return remaining < self.tol or standardized < self.statistical_tol


def _geometric_tail(size: float, before: float) -> float:
    """Return the sum of the geometric series of the contraction rate, at most 10: unresolved pairs never contract."""
    return min(size / (before - size), 10.0) if size < before else 10.0


def find_fixed_point(
    evaluate: Callable[[Array], Step],
    retract: Callable[[Array, Array], Array],
    point: Array,
    limits: Limits,
) -> FixedPointResult:
    """Follow the moves until they fall below tolerance; otherwise return the best of `max_sweeps` points."""
    path = Extrapolation()
    previous, step, n_sweeps = None, evaluate(point), 1
    best = step
    while not limits.reached(step, previous):
        trials: list[Step] = []
        for move in _candidates(step, path, limits):
            if n_sweeps >= limits.max_sweeps or not math.isfinite(step.largest):
                return FixedPointResult(best.point, best, n_sweeps, False)
            trials.append(evaluate(retract(move, step.point)))
            n_sweeps += 1
            if trials[-1].merit <= step.merit + limits.slack * abs(step.merit):
                break
            path.forget()
        else:
            if limits.monotone:
                return FixedPointResult(best.point, best, n_sweeps, False)
            trials.append(min(trials, key=lambda trial: trial.merit))
        previous, step = step, trials[-1]
        best = step if step.merit < best.merit else best
    return FixedPointResult(retract(step.move, step.point), step, n_sweeps, True)


def _candidates(step: Step, path: Extrapolation, limits: Limits) -> Iterator[Array]:
    """Yield the accelerated move, the plain move, and halves of it."""
    if step.largest < limits.trust:
        accelerated = path.step(step.move, avoid_saddles=limits.avoid_saddles)
        if accelerated is not step.move:
            yield accelerated
    for halvings in range(10 if limits.monotone else 4):
        yield step.move / 2**halvings


def contraction_rate(residuals: Array, gaps: Array, n: int) -> Array:
    """Return the rate q from r_ij and g_ij, both of shape (k, k), for n matrices."""
    xp = array_namespace(gaps)
    c = math.sqrt(gaps.shape[-1] / n)
    rates = (2 * c * residuals + 2 * (1 + c) ** 2 * residuals**2) / xp.where(gaps > 0, gaps, xp.ones_like(gaps))
    return xp.max(xp.where(gaps > 0, rates, xp.zeros_like(rates)))


class FixedPoint(NamedTuple):
    """The end of an iteration and the criterion by which it is compared with others."""

    iterate: Iterate
    criterion: float


def criterion(core: MatrixStack, left: Array, right: Array, *, orthogonal: bool = False) -> float:
    r"""Return the off-diagonal energy; for free factors, in units that do not depend on their scale.

    The latter is :math:`\sum_{i \ne j} R_{ij} / \sqrt{R_{ii} R_{jj}}` with :math:`R_{ij} = \sum_l |D_l|_{ij}^2`. Like
    the fixed points, it is the same for :math:`C M_l C^\top` as for :math:`M_l`.
    """
    xp = array_namespace(left)
    diagonals, residuals = core.residuals(left, right, None)
    if not orthogonal:
        scale = xp.sum(squared_magnitudes(diagonals), axis=0) ** -0.5
        residuals = residuals * scale[:, None] * scale[None, :]
    value = float(xp.sum(residuals))
    return value if math.isfinite(value) else math.inf


def lowest_fixed_point(fixed_points: Iterable[FixedPoint], n: int, times: int = 2) -> Iterate:
    """Return the lowest fixed point of n matrices, with the sweeps of all, once it has been reached `times` times.

    Converged iterations precede those that are not. No further one is started if the sweeps exceed a budget, since a
    sweep over large matrices is expensive and their fixed points are close to each other.
    """
    ends: list[FixedPoint] = []
    for end in fixed_points:
        ends.append(end)
        best = min(ends, key=lambda end: (not end.iterate.converged, end.criterion))
        limit = (1 + 1e-3) * best.criterion
        n_reached = sum(end.iterate.converged and end.criterion <= limit for end in ends)
        n_sweeps = sum(end.iterate.n_sweeps for end in ends)
        if n_reached >= times or min(end.iterate.left.shape[0], n) * n_sweeps > 4000:  # a few seconds
            break
    return best.iterate._replace(n_sweeps=n_sweeps)


def sketched(stack: Array, rng: np.random.Generator) -> Array | None:
    """Return a few random combinations of the matrices for the first steps, or None if that would save nothing.

    The joint diagonalizer of m combinations differs from that of n matrices by about sqrt(n / m) standard errors of
    the latter, near enough for Newton steps, and each step costs m / n of a step on all matrices, unless calls of
    Python take most of it.
    """
    n, size = stack.shape[:2]
    n_combinations = max(8, n // 16)
    if n < 4 * n_combinations or n * size**3 < 2e5:  # a step takes no longer than its calls
        return None
    return to_namespace(random_combinations(stack, rng, n_combinations), stack)


def sketch_limits(limits: Limits) -> Limits:
    """Return limits for steps on a sketch: below its own standard error further steps gain nothing."""
    return replace(limits, statistical_tol=1.0, max_sweeps=min(limits.max_sweeps, 20))
