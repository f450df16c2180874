"""What makes components identifiable."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np


def incoherence(factor: np.ndarray) -> float:
    r"""Return :math:`\mu = \max_{i \ne j} |u_i^\top u_j|` of columns, taken at unit norm."""
    unit = factor / np.linalg.norm(factor, axis=0)
    cosines = np.abs(unit.T @ unit)
    np.fill_diagonal(cosines, 0)
    return float(cosines.max())


def condition(factor: np.ndarray) -> float:
    """Return the condition number of columns, taken at unit norm."""
    return float(np.linalg.cond(factor / np.linalg.norm(factor, axis=0)))


def uniqueness_moduli(diagonals: np.ndarray) -> np.ndarray:
    r"""Return the moduli of uniqueness :math:`\rho_{ij}` (k, k) of diagonals (n, k): their cosines, pair by pair.

    The factors of free joint diagonalization are unique where none is 1 or -1; errors grow like
    :math:`1 / (1 - \rho_{ij}^2)`.
    """
    unit = diagonals / np.linalg.norm(diagonals, axis=0)
    return unit.T @ unit


def kruskal_rank(factor: np.ndarray, *, tol: float = 1e-8) -> int:
    """Return the largest r such that any r columns are independent.

    Exact up to 16 columns, or where all are independent; beyond, the bound 1 / mu from the incoherence.
    """
    unit = factor / np.linalg.norm(factor, axis=0)
    d, k = unit.shape
    if k <= d and np.linalg.svd(unit, compute_uv=False)[-1] > tol:
        return k
    if k > 16:
        return max(1, math.floor(1 / max(incoherence(unit), 1e-12)))
    for size in range(2, min(d, k) + 1):
        for columns in itertools.combinations(range(k), size):
            if np.linalg.svd(unit[:, columns], compute_uv=False)[-1] <= tol:
                return size - 1
    return min(d, k)


def kruskal_condition(factors: Sequence[np.ndarray]) -> bool:
    """Tell whether Kruskal ranks are large enough, summed over modes, for the components to be unique."""
    rank, order = factors[0].shape[1], len(factors)
    return sum(kruskal_rank(factor) for factor in factors) >= 2 * rank + order - 1
