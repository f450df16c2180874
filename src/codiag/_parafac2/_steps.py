"""Damped Gauss-Newton steps: rows of A are eliminated slice by slice, C outside of its span has a closed form."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse.linalg import LinearOperator, cg

from codiag._parafac2._model import Factors, Point, Rules, Stack

MOST_DAMPING = 1e6
"""Damping, relative to the curvature, at which no step lowers the objective: the point is a minimum to rounding."""


class Minimum(NamedTuple):
    """Where the steps ended, whether they reached their tolerance, and the objective before and after every step."""

    point: Point
    converged: bool
    values: tuple[float, ...]

    @property
    def n_iter(self) -> int:
        return len(self.values) - 1


def minimize(stack: Stack, start: Factors, rules: Rules, *, tol: float = 1e-9, max_iter: int = 100) -> Minimum:
    """Lower the objective until a step gains less than a share `tol` of it, or only rounding is left."""
    point = Point.at(stack, rules.project(start.scaled(rules.ridge)), rules.ridge)
    damping, exact, values = 1e-2, (4e-16) ** 2 * stack.squared_norm, [point.value]
    while len(values) <= max_iter:
        while True:
            trial = Point.at(stack, _stepped(point, rules, damping), rules.ridge)
            if trial.value < point.value:
                damping = max(damping / 5, 1e-12)
                break
            damping *= 4 if damping < 1 else 32
            if damping > MOST_DAMPING:
                return Minimum(point, True, tuple(values))
        gain, point = point.value - trial.value, trial
        values.append(point.value)
        if point.value <= exact or gain <= tol * point.value:
            return Minimum(point, True, tuple(values))
    return Minimum(point, False, tuple(values))


def _stepped(point: Point, rules: Rules, damping: float) -> Factors:
    """Return the factors after a step on the free entries.

    If slices are many, the curvature in B and C is that of some of them.
    """
    factors, slopes, system, ridge = point.factors, point.slopes, point.system, rules.ridge
    bound = rules.lowest(factors.a)
    free = np.ones(factors.a.shape, dtype=bool) if bound is None else (factors.a > bound) | (slopes.a > 0)
    inverse = _inverse(system.curvatures_a, damping, ridge, free)
    step_a = (inverse @ slopes.a[:, :, None])[:, :, 0]
    if rules.only_a:
        return rules.project(Factors(factors.a + step_a, factors.b, factors.c))
    by_b, by_c = system.coupled_back(step_a)
    reduced = Factors(slopes.a, slopes.b - by_b, slopes.c - system.frame @ by_c)
    core = np.zeros((2 * factors.rank**2,) * 2)
    for part, _, coupling, common in system.sample.curvatures():
        flat = coupling.reshape(-1, len(core))
        core += common * (1 + damping * np.eye(len(core)))
        core -= flat.T @ (inverse[:: system.stride][part] @ coupling).reshape(flat.shape)
    core += ridge * np.eye(len(core))
    core *= len(factors.a) / len(system.sample.factors.a)
    outside = system.gram * (1 + damping * np.eye(factors.rank)) + ridge * np.eye(factors.rank)
    free_c = (factors.c > 0) | (slopes.c > 0) if rules.nonnegative_c else None
    step_b, step_c = _common_step(system.frame, core, outside, reduced, free_c)
    step_a -= (inverse @ system.coupled(step_b, system.frame.T @ step_c)[:, :, None])[:, :, 0]
    return rules.project(Factors(factors.a + step_a, factors.b + step_b, factors.c + step_c).scaled(ridge))


def _common_step(
    frame: np.ndarray,
    core: np.ndarray,
    outside: np.ndarray,
    slopes: Factors,
    is_free: np.ndarray | None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the steps of B and C: in closed form, or by conjugate gradients for the free entries of C alone."""
    rank, n = slopes.rank, slopes.rank**2
    target = np.concatenate([slopes.b.ravel(), slopes.c.ravel()])
    free = np.ones(target.size, dtype=bool) if is_free is None else np.append(np.ones(n, dtype=bool), is_free)

    def applied(flat: np.ndarray, inner: np.ndarray, outer: np.ndarray) -> np.ndarray:
        part = flat[n:].reshape(slopes.c.shape)
        inside = frame.T @ part
        found = inner @ np.append(flat[:n], inside)
        return np.append(found[:n], frame @ found[n:].reshape(rank, rank) + (part - frame @ inside) @ outer)

    inverses = np.linalg.pinv(core, hermitian=True), np.linalg.pinv(outside, hermitian=True)
    if is_free is None:
        found = applied(target, *inverses)
    else:
        shape = (target.size, target.size)
        operator = LinearOperator(shape, lambda flat: free * applied(free * flat.ravel(), core, outside), dtype=float)
        nearly = LinearOperator(shape, lambda flat: free * applied(free * flat.ravel(), *inverses), dtype=float)
        found = cg(operator, free * target, rtol=1e-5, maxiter=100, M=nearly)[0]
    return found[:n].reshape(rank, rank), found[n:].reshape(slopes.c.shape)


def _inverse(own: np.ndarray, damping: float, ridge: float, free: np.ndarray) -> np.ndarray:
    """Return the inverse curvatures of rows of A, zero for entries that are fixed."""
    diagonal = np.einsum("nrr->nr", own)
    largest = diagonal.max(axis=1, keepdims=True) + 1e-300
    added = np.where(free, damping * diagonal + 1e-14 * largest + ridge, largest)
    both = free[:, :, None] & free[:, None, :]
    damped = np.where(both, own, 0.0) + added[:, :, None] * np.eye(own.shape[1])
    return np.asarray(np.linalg.inv(damped) * both)
