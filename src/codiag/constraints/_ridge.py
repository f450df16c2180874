"""Factors that are kept small."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from codiag._arrays import Array, identity
from codiag._checks import as_number
from codiag.constraints._base import Constraint, solve_rows


@dataclass(frozen=True, eq=False)
class Ridge(Constraint):
    r"""The sum of squares of the factor, times half a strength, is added to the objective: Tikhonov's regularization.

    It makes rows that were hardly observed small instead of arbitrary. Give it to all modes: where a mode has none, the
    size of a component moves there, and the fit is the one without ridges.

    Parameters
    ----------
    strength : float
        An absolute number, of the order of the variance of the noise over that of the entries of the factor.

    See Also
    --------
    Fixed : A factor that is known exactly.
    NonNegative : Entries that are not negative.

    Examples
    --------
    >>> import numpy as np
    >>> import codiag
    >>> from codiag.constraints import Ridge
    >>> tensor = np.random.default_rng(0).random((4, 5, 6))
    >>> codiag.factorize(tensor, 2, constraints=Ridge(0.1), rng=0).converged
    True
    """

    is_hard: ClassVar[bool] = False
    supports_gauss_newton: ClassVar[bool] = True
    allows_sign_change: ClassVar[bool] = True
    allows_complex: ClassVar[bool] = True
    is_separable: ClassVar[bool] = True

    strength: float

    def __post_init__(self) -> None:
        as_number("strength", self.strength, zero=True)

    @property
    def ridge(self) -> float:
        return float(self.strength)

    def scaled(self, factor: float) -> Ridge:
        return Ridge(self.strength * factor)

    def project(self, factor: Array) -> Array:
        return factor

    def solve(self, gram: Array, product: Array, start: Array) -> Array:
        return solve_rows(gram + self.strength * identity(gram.shape[-1], gram), product)


def ridge_strengths(constraints: Sequence[Constraint | None]) -> list[float]:
    """Return the ridge strength of each mode; zeros if a mode without a ridge can absorb the size of components.

    The minimum is then that without ridges: sizes move to that mode, and the penalty on the others tends to zero.
    """
    strengths = [0.0 if constraint is None else constraint.ridge for constraint in constraints]
    absorbs_size = any(
        strength == 0 and (constraint is None or (constraint.supports_gauss_newton and not constraint.is_fixed))
        for constraint, strength in zip(constraints, strengths, strict=True)
    )
    return [0.0] * len(strengths) if absorbs_size else strengths
