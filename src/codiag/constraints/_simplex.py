"""Factors whose rows are shares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from codiag._arrays import Array, array_namespace, asarray_like, to_host
from codiag.constraints._base import Constraint


@dataclass(frozen=True, eq=False)
class Simplex(Constraint):
    """Rows are shares that add up to one: abundances of substances in a pixel, of topics in a text.

    Columns of results have unit length; `shares` gives them the lengths with which rows add up to one. At least one
    mode must be without this constraint, so that components may have any size.

    See Also
    --------
    NonNegative : Amounts, whose rows may have any sums.

    Notes
    -----
    Standard errors are those of entries that are not zero, as if each could move by itself.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.constraints import Simplex
    >>> Simplex().project(np.array([[0.5, 0.75], [2.0, 0.0]])).tolist()
    [[0.375, 0.625], [1.0, 0.0]]
    """

    is_cone: ClassVar[bool] = True

    def project(self, factor: Array) -> Array:
        """Return the nearest rows of shares, by one threshold for each row."""
        xp = array_namespace(factor)
        size = factor.shape[1]
        falling = xp.sort(factor, axis=1, descending=True)
        ranks = asarray_like(np.arange(1.0, size + 1), factor)
        bounds = (xp.cumulative_sum(falling, axis=1) - 1) / ranks
        last = xp.sum(xp.astype(falling > bounds, factor.dtype), axis=1, keepdims=True)
        chosen = xp.astype(ranks[None, :] == last, factor.dtype)
        above = factor - xp.sum(chosen * bounds, axis=1, keepdims=True)
        return xp.where(above > 0, above, xp.zeros_like(above))

    def free_variables(self, factor: Array, slope: Array) -> Array:
        xp = array_namespace(factor)
        return xp.astype(factor > 0, factor.dtype)

    @staticmethod
    def shares(factor: Array) -> np.ndarray:
        """Return a factor with the lengths of columns at which its rows add up to one.

        Parameters
        ----------
        factor : array of shape (d, rank)
            With columns of any length, such as one of a fit.

        Returns
        -------
        numpy array of shape (d, rank)
            Shares.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.constraints import Simplex
        >>> Simplex.shares(np.array([[1.0, 6.0], [3.0, 2.0]])).round(6).tolist()
        [[0.25, 0.75], [0.75, 0.25]]
        """
        from scipy.optimize import nnls

        columns = np.asarray(to_host(factor), dtype=np.float64)
        return np.asarray(columns * nnls(columns, np.ones(len(columns)))[0])
