"""What makes components identifiable, and what a fit says about its own."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from codiag._array import to_host

if TYPE_CHECKING:
    from codiag.factorization import Factorization

SURE, ROUGH = 0.05, 0.3
"""Standard errors of unit factors up to which they are well, and roughly, determined."""


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


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """Which components of a fit are well determined, which are not, and why; printed, it says so in words.

    Attributes
    ----------
    standard_errors : array of shape (rank,)
        The largest over modes.
    verdicts : tuple of str
        For each component ``"well"``, ``"roughly"`` or ``"not"`` determined.
    reasons : tuple of str
        What stands in the way of those that are not well determined; empty for the rest.
    unique : bool
        Whether Kruskal's condition holds.
    conditions : tuple of float
        Condition numbers of the factors, mode by mode.
    """

    standard_errors: np.ndarray
    verdicts: tuple[str, ...]
    reasons: tuple[str, ...]
    unique: bool
    conditions: tuple[float, ...]

    def __str__(self) -> str:
        n_well = self.verdicts.count("well")
        lines = [f"{n_well} of {len(self.verdicts)} components are well determined."]
        for place, (verdict, reason) in enumerate(zip(self.verdicts, self.reasons, strict=True)):
            if verdict != "well":
                error = self.standard_errors[place]
                lines.append(f"Component {place} is {verdict} determined (standard error {error:.2g}): {reason}.")
        if not self.unique:
            lines.append("Kruskal's condition fails: other components may fit as well, whatever the noise.")
        return "\n".join(lines)


def diagnose(fit: Factorization) -> Diagnosis:
    """Tell which components of a fit are well determined."""
    factors = [to_host(factor).astype(np.float64) for factor in fit.factors]
    weights = np.abs(to_host(fit.weights).astype(np.float64))
    errors = np.max(np.asarray(fit.standard_errors), axis=0)
    errors = np.where(np.isfinite(errors), errors, np.inf)
    verdicts = tuple("well" if e <= SURE else "roughly" if e <= ROUGH else "not" for e in errors)
    likeness = np.abs(np.prod([factor.T @ factor for factor in factors], axis=0))
    np.fill_diagonal(likeness, 0)
    conditions = tuple(condition(factor) for factor in factors)
    alone = fit.noise * math.sqrt(max(fit.shape)) / np.maximum(weights, 1e-300)
    reasons = []
    for place, verdict in enumerate(verdicts):
        twin = int(np.argmax(likeness[place])) if fit.rank > 1 else place
        if verdict == "well":
            reasons.append("")
        elif not math.isfinite(fit.noise):
            reasons.append("there are no more entries than parameters, so the noise cannot be told")
        elif alone[place] > errors[place] / 2:
            reasons.append(f"its weight {weights[place]:.3g} is small beside the noise {fit.noise:.3g} in the entries")
        elif likeness[place, twin] > 0.5:
            reasons.append(f"it is like component {twin}, the product of cosines is {likeness[place, twin]:.2f}")
        else:
            reasons.append(f"the factors are nearly dependent, with condition numbers up to {max(conditions):.3g}")
    return Diagnosis(errors, verdicts, tuple(reasons), kruskal_condition(factors), conditions)
