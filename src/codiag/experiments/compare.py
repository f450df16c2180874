"""Every method on one tensor, when nobody knows the truth."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from codiag._factorization import Factorization
from codiag.experiments.fitting import silent_fit
from codiag.methods import METHODS
from codiag.metrics import factor_error
from codiag.tensors import Tensor


@dataclass(frozen=True, eq=False)
class Comparison:
    """One method on the tensor: its fit, or the reason why there is none."""

    method: str
    fit: Factorization | None
    reason: str
    distance: float  # of its factors from those of the closest fit
    seconds: float


def compare(tensor: Tensor, rank: int, *, symmetric: bool | None = None, seed: int | None = None) -> list[Comparison]:
    """Factorize a tensor by every method; return the closest fits first, and those that do not apply last."""
    fits: dict[str, tuple[Factorization | None, str, float]] = {}
    for name in METHODS:
        start = time.perf_counter()
        try:
            fit, reason = silent_fit(tensor, rank, method=name, symmetric=symmetric, seed=seed), ""
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
