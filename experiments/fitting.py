"""Fits of which nobody needs to be warned: whether they converged is part of what experiments measure."""

from __future__ import annotations

from typing import Any

import numpy as np

from codiag.extending import Method
from codiag.methods import as_method
from codiag.problem import Problem
from codiag.result import Factorization, solve


def silent_fit(
    tensor: Any,
    rank: int,
    *,
    method: Method | str | None = None,
    symmetric: bool = False,
    seed: int | np.random.Generator | None = None,
) -> Factorization:
    """Factorize a tensor as `codiag.factorize` does, without warnings."""
    return solve(Problem(tensor, rank, symmetric=symmetric), as_method(method), seed)
