"""The way from a start to a rough minimum if entries are missing: sweeps or Gauss-Newton steps, by gain per work.

A Gauss-Newton step on observed entries costs as much as a hundred sweeps. Near a minimum, or along a narrow valley, it
gains more than these; far from one, or where the model fits badly, less.
"""

from __future__ import annotations

import math
from dataclasses import replace

from codiag.least_squares import (
    BRIEF_STEP,
    BRIEF_SWEEPS,
    NEGLIGIBLE,
    Limits,
    OptimizeResult,
    minimize,
    objective_of,
    step_seconds,
)
from codiag.problem import Problem
from codiag.starts import Pool
from codiag.tensors import FactoredTensor


def approach(problem: Problem, start: FactoredTensor, limits: Limits, lowest: float = math.inf) -> OptimizeResult:
    """Take sweeps, or Gauss-Newton steps once they gain more for their price, until little more is to be gained.

    Steps are tried after sweeps have cost as much. The lowest minimum so far ends those that are hardly to reach it.
    """
    pool, distance = Pool(problem), objective_of(problem).distance
    lengths = {"sweeps": BRIEF_SWEEPS // 2, "steps": math.isqrt(BRIEF_SWEEPS)}
    prices = {"sweeps": lengths["sweeps"] * pool.sweep_seconds, "steps": lengths["steps"] * step_seconds(problem)}
    rates, gains = dict.fromkeys(prices, math.inf), dict.fromkeys(prices, math.inf)
    components, value, batch, n_iter, n_stretches, spent = start, distance(start) / 2, None, 0, 0, 0.0
    while spent < BRIEF_SWEEPS * step_seconds(problem) and not limits.is_stopped:
        kind = "sweeps" if spent < prices["steps"] else max(rates, key=lambda kind: rates[kind])
        if kind == "sweeps":
            batch = batch or pool.member(components)
            batch.sweep(lengths[kind])
            components = pool.components(batch, 0)
        else:
            batch = None
            result = minimize(problem, components, replace(limits, max_iter=lengths[kind], budget=None))
            components, n_iter = result.components, n_iter + result.n_iter
        spent, before = spent + prices[kind], value
        value = distance(components) / 2
        if limits.callback is not None and kind == "sweeps" and limits.callback(components, value):
            break
        if limits.budget is not None and limits.budget.spend(prices[kind]):
            break
        gain, last = before - value, gains[kind] if n_stretches > 1 else math.inf
        gains[kind], rates[kind], n_stretches = gain, gain / prices[kind], n_stretches + 1
        if gain <= NEGLIGIBLE * value or _remaining(last, gain) <= max(BRIEF_STEP * value, (value - lowest) / 2):
            break
    return OptimizeResult(components, value, n_iter, False)


def _remaining(before: float, gain: float) -> float:
    """Return what is still to be gained, if gains go on falling by the same ratio."""
    return gain**2 / (before - gain) if gain < before < math.inf else math.inf
