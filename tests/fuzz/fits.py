"""What a fit tells of itself, and hands to other libraries."""

from __future__ import annotations

from importlib.util import find_spec
from itertools import combinations
from typing import Any

import numpy as np

from .invariants import Problems


def about_a_fit(fit: Any, arguments: dict[str, Any]) -> Problems:
    """What a fit can tell about itself is told, in words and finite numbers; other libraries get copies of it."""
    yield from about_diagnosis(fit)
    if fit.residual_excess is not None and not 0 <= fit.residual_excess < np.inf:
        yield "not finite", f"residual_excess is {fit.residual_excess}"
    yield from about_copies(fit)
    if np.any(np.asarray(fit.standard_errors) < 0):
        yield "standard errors", "are negative"
    if fit.to_tensor().shape != fit.shape or not repr(fit):
        yield "shape", f"to_tensor has shape {fit.to_tensor().shape}, the fit {fit.shape}"


def about_diagnosis(fit: Any) -> Problems:
    """A diagnosis is sentences, one verdict for each component, and never good of components that cancel."""
    found = fit.diagnose()
    lines = str(found).split("\n")
    if not isinstance(str(found), str) or not all(line.endswith(".") and " " in line for line in lines):
        yield "diagnosis", f"is not made of sentences: {lines[:3]}"
    if len(found.verdicts) != fit.rank:
        yield "diagnosis", f"{len(found.verdicts)} verdicts for {fit.rank} components"
    factors = [np.asarray(factor, dtype=np.float64) for factor in fit.factors]
    weights = np.asarray(fit.weights, dtype=np.float64)
    weights = weights / max(float(np.max(np.abs(weights))), 1e-300)
    inner = np.outer(weights, weights) * np.prod([factor.T @ factor for factor in factors], axis=0)
    for i, j in combinations(range(fit.rank), 2):
        together, apart = inner[i, i] + inner[j, j] + 2 * inner[i, j], inner[i, i] + inner[j, j]
        if together < 0.1 * apart and "well" in (found.verdicts[i], found.verdicts[j]):
            yield "diagnosis", f"components {i} and {j} cancel to {together / apart:.2g} and count as well determined"


def about_copies(fit: Any) -> Problems:
    """What TensorLy and pyttb are given is the same tensor, in memory of its own."""
    host = [np.asarray(factor) for factor in fit.factors]
    if find_spec("tensorly"):
        weights, factors = fit.to_tensorly()
        if any(not np.array_equal(one, other) for one, other in zip(factors, host, strict=True)):
            yield "copies", "to_tensorly has other factors"
        shared = [np.shares_memory(one, other) for one, other in combinations([weights, *factors], 2)]
        if any(shared) or any(np.shares_memory(one, other) for one, other in zip(factors, host, strict=True)):
            yield "copies", "to_tensorly shares memory"
    if find_spec("pyttb"):
        given = fit.to_pyttb()
        same = np.allclose(given.weights, np.asarray(fit.weights), rtol=1e-6)
        if not same or [factor.shape for factor in given.factor_matrices] != [factor.shape for factor in host]:
            yield "copies", f"to_pyttb has weights {given.weights}"
