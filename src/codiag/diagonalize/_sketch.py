"""First steps on a few random combinations of many matrices."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from codiag._array import Array, moved
from codiag.diagonalize._fixed_point import Limits
from codiag.diagonalize._starts import random_combinations


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
