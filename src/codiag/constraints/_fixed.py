"""Factors that are known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from codiag._arrays import Array, array_namespace, take, to_host, to_namespace
from codiag._checks import as_number_array
from codiag.constraints._base import Constraint


@dataclass(frozen=True, eq=False)
class Fixed(Constraint):
    """The factor is known, up to the order of its columns and their lengths, which the weights absorb.

    Parameters
    ----------
    factor : array of shape (d, rank)
        The factor of the mode, complex only if the tensor is. Its columns may have any length; the weights account for
        it.

    See Also
    --------
    NonNegative : Where only the signs are known.
    codiag.Factorization.transform : Fixes all factors but one.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.constraints import Fixed
    >>> Fixed(np.eye(2)).project(np.ones((2, 2))).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """

    supports_gauss_newton: ClassVar[bool] = True
    is_fixed: ClassVar[bool] = True
    allows_complex: ClassVar[bool] = True

    factor: Array

    def __post_init__(self) -> None:
        factor = as_number_array(self.factor, "factor")
        if factor.ndim != 2 or not np.all(np.isfinite(to_host(factor))):
            raise ValueError(f"factor must be a finite array of shape (d, rank); got shape {tuple(factor.shape)}")
        object.__setattr__(self, "factor", factor)

    def project(self, factor: Array) -> Array:
        return to_namespace(self.factor, factor)

    def solve(self, gram: Array, product: Array, start: Array) -> Array:
        return to_namespace(self.factor, product)

    def free_variables(self, factor: Array, slope: Array) -> Array:
        return array_namespace(factor).zeros_like(factor)

    def restrict(self, rows: np.ndarray) -> Constraint | None:
        return Fixed(take(self.factor, rows, 0))

    def check(self, size: int, rank: int, mode: int) -> None:
        if tuple(self.factor.shape) != (size, rank):
            raise ValueError(
                f"constraints[{mode}]: the fixed factor must have shape ({size}, {rank}), the size of the mode and the "
                f"rank; got {tuple(self.factor.shape)}"
            )
