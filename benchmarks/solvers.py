"""Everybody who can factorize a tensor, behind one signature."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence

import numpy as np

from benchmarks.baselines import BASELINES
from codiag.extending import Method
from codiag.methods import ALS, METHODS, NLS, TPM
from experiments.fitting import silent_fit

Solver = Callable[[np.ndarray, int, bool, int], Sequence[np.ndarray]]
"""From a tensor, a rank, whether it is symmetric and a seed to the factors of all modes."""

VARIANTS: dict[str, Method] = {
    "tpm, one restart": TPM(n_restarts=1),
    "als": ALS(),
    "als, svd start": ALS(init="svd"),
    "nls": NLS(max_replacements=0),
    "nls, replacing": NLS(),
}


def ours(method: Method) -> Solver:
    """Return codiag's method as a solver."""

    def solve(tensor: np.ndarray, rank: int, symmetric: bool, seed: int) -> Sequence[np.ndarray]:
        return silent_fit(tensor, rank, method=method, symmetric=symmetric, seed=seed).factors

    return solve


def all_solvers(others: Sequence[str] = ()) -> dict[str, Solver]:
    """Return codiag's methods, the baselines that are installed, and others given as ``module:function``."""
    solvers = {name: ours(method) for name, method in (METHODS | VARIANTS).items()}
    for baseline in BASELINES:
        if baseline.installed:
            solvers[baseline.name] = _theirs(baseline.solve)
    for name in others:
        module, _, function = name.partition(":")
        solvers[name] = _theirs(getattr(importlib.import_module(module), function))
    return solvers


def _theirs(solve: Callable[[np.ndarray, int, int], Sequence[np.ndarray]]) -> Solver:
    return lambda tensor, rank, _, seed: [np.asarray(factor) for factor in solve(tensor, rank, seed)]
