"""Every method on one tensor, when nobody knows the truth."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from codiag.methods import METHODS, as_method
from codiag.metrics import factor_error
from codiag.problem import Problem
from codiag.result import Factorization, solve


@dataclass(frozen=True, eq=False)
class Comparison:
    """One method on the tensor: its fit, or the reason why there is none."""

    method: str
    fit: Factorization | None
    reason: str
    distance: float  # of its factors from those of the closest fit
    seconds: float


def compare(problem: Problem, *, seed: int | None = None) -> list[Comparison]:
    """Solve a problem by every method; return the closest fits first, and those that do not apply last."""
    fits: dict[str, tuple[Factorization | None, str, float]] = {}
    for name in METHODS:
        start = time.perf_counter()
        try:
            fit, reason = solve(problem, as_method(name), seed), ""
        except ValueError as error:
            fit, reason = None, str(error)
        fits[name] = fit, reason, time.perf_counter() - start
    if all(fit is None for fit, _, _ in fits.values()):  # nothing applies: the mistake is in the tensor or the rank
        raise ValueError(next(iter(fits.values()))[1])
    best = min((fit for fit, _, _ in fits.values() if fit is not None), key=lambda fit: fit.relative_error)
    results = [
        Comparison(name, fit, reason, np.nan if fit is None else factor_error(fit, best), seconds)
        for name, (fit, reason, seconds) in fits.items()
    ]
    return sorted(results, key=lambda one: np.inf if one.fit is None else one.fit.relative_error)
