"""Factors with few entries that are not zero."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from codiag._arrays import Array, array_namespace
from codiag.constraints._penalty import Penalty


@dataclass(frozen=True, eq=False)
class L1(Penalty):
    r"""Few entries are not zero: the strength times :math:`\sum_r \|a_r\|_1 \prod_{n \ne m} \|a^{(n)}_r\|` is added.

    Size may move from one mode to another. Entries of orthogonal components whose sizes :math:`w_r a_{ir}` are below
    the strength become zero, and the others are smaller by as much.

    Parameters
    ----------
    strength : float or "auto"
        In units of the data: one to three standard deviations of the noise of an entry. "auto" takes the power of ten
        that predicts held-out entries best.

    See Also
    --------
    Ridge : Small entries, none of them zero.

    Notes
    -----
    Standard errors are those of entries that are not zero, as if it were known which these are, without the bias.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.constraints import L1
    >>> L1(2.0).proximal(np.array([[3.0], [-0.5]]), np.array([1.0])).ravel().tolist()
    [1.0, -0.0]
    """

    penalty_degree: ClassVar[int] = 1

    def scaled(self, factor: float) -> L1:
        return self if self.is_open else L1(float(self.strength) * factor)

    def penalty(self, factor: Array) -> Array:
        xp = array_namespace(factor)
        return float(self.strength) * xp.sum(xp.abs(factor), axis=-2)

    def proximal(self, factor: Array, step: Array) -> Array:
        xp = array_namespace(factor)
        size = xp.abs(factor) - float(self.strength) * step
        return xp.sign(factor) * xp.where(size > 0, size, xp.zeros_like(size))

    def free_variables(self, factor: Array, slope: Array) -> Array:
        xp = array_namespace(factor)
        return xp.astype(factor != 0, factor.dtype)
