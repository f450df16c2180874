"""Iterate a step to its fixed point, with Anderson acceleration."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from codiag._arrays import Array, Extrapolation


class Step(NamedTuple):
    """What a method says about a point: where to go from it, and how good it is."""

    point: Array  # the point itself, in the scale the move refers to
    move: Array  # relative step; zero at a solution
    merit: float  # lower is better
    largest: float  # largest entry of the move
    standardized: float  # the same in units of its standard error under the noise of the matrices
    contraction: float  # by how much a plain step multiplies the distance from the solution, by first-order theory


class Outcome(NamedTuple):
    """Where the iteration ended."""

    point: Array
    last: Step
    n_sweeps: int
    converged: bool

    @property
    def certain(self) -> bool:
        """Whether theory promises that the steps contract here, and to nowhere else."""
        return self.converged and self.last.contraction < 1


@dataclass(frozen=True)
class Limits:
    """When to stop, and when to trust extrapolation."""

    tol: float
    statistical_tol: float
    max_sweeps: int
    trust: float  # largest move from which the neighborhood of a solution is assumed
    slack: float  # share by which a move may raise the merit
    monotone: bool  # stop where even short moves raise it; otherwise take the least harmful
    cautious: bool = True  # whether acceleration keeps away from points that repel plain steps


def find_fixed_point(
    evaluate: Callable[[Array], Step],
    retract: Callable[[Array, Array], Array],
    point: Array,
    limits: Limits,
) -> Outcome:
    """Follow the moves until they fall below tolerance; failing that, return the best of `max_sweeps` points."""
    path = Extrapolation()
    previous, step, n_sweeps = None, evaluate(point), 1
    best = step
    while not _converged(step, previous, limits):
        trials: list[Step] = []
        for move in _candidates(step, path, limits):
            if n_sweeps >= limits.max_sweeps or not math.isfinite(step.largest):
                return Outcome(best.point, best, n_sweeps, False)
            trials.append(evaluate(retract(move, step.point)))
            n_sweeps += 1
            if trials[-1].merit <= step.merit + limits.slack * abs(step.merit):
                break
            path.forget()
        else:
            if limits.monotone:
                return Outcome(best.point, best, n_sweeps, False)
            trials.append(min(trials, key=lambda trial: trial.merit))
        previous, step = step, trials[-1]
        best = step if step.merit < best.merit else best
    return Outcome(retract(step.move, step.point), step, n_sweeps, True)


def _converged(step: Step, previous: Step | None, limits: Limits) -> bool:
    """Tell whether the error that will remain after this step, by the contraction seen so far, is below tolerance."""
    if step.largest < limits.tol:
        return True
    if previous is None or step.largest > limits.trust:
        return False
    remaining = step.largest * _geometric_tail(step.largest, previous.largest)
    standardized = step.standardized * _geometric_tail(step.standardized, previous.standardized)
    return remaining < limits.tol or standardized < limits.statistical_tol


def _geometric_tail(size: float, before: float) -> float:
    """Sum the geometric series of the rate of contraction, at most 10 since pairs that nothing resolves never do."""
    return min(size / (before - size), 10.0) if size < before else 10.0


def _candidates(step: Step, path: Extrapolation, limits: Limits) -> Iterator[Array]:
    """Yield the accelerated move, the plain one, and ever shorter ones."""
    if step.largest < limits.trust:
        accelerated = path.step(step.move, avoid_saddles=limits.cautious)
        if accelerated is not step.move:
            yield accelerated
    for halvings in range(10 if limits.monotone else 4):
        yield step.move / 2**halvings
