"""What the methods of one matrix product a step have in common."""

from __future__ import annotations

from dataclasses import dataclass

from codiag._array import Array, epsilon
from codiag._validation import as_number
from codiag.diagonalize._base import Diagonalizer
from codiag.diagonalize._fixed_point import Limits


@dataclass(frozen=True, kw_only=True)
class NewtonLike(Diagonalizer):
    """A diagonalizer that stops where what is left to gain is invisible under the noise."""

    statistical_tol: float = 1e-2

    def __post_init__(self) -> None:
        super().__post_init__()
        as_number("statistical_tol", self.statistical_tol, zero=True)

    def sweep_flops(self, n: int, size: int) -> float:
        return (2.0 if self.symmetric else 4.0) * n * size**3

    def _limits(self, stack: Array) -> Limits:
        """Rotations must climb, to rounding; shears descend on nothing exactly, and are only kept from running away."""
        rounding = epsilon(stack)
        tol = max(self.tol, 4 * rounding)
        if self.orthogonal:
            return Limits(tol, self.statistical_tol, self.max_sweeps, 0.1, slack=10 * rounding, monotone=True)
        return Limits(tol, self.statistical_tol, self.max_sweeps, 0.3, slack=0.5, monotone=False)
