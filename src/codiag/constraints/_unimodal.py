"""Factors whose columns have one peak."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from codiag._arrays import Array, array_namespace, asarray_like, to_host
from codiag.constraints._base import Constraint, times_gram

COLUMN_ROUNDS = 5
"""Rounds over the columns of a factor in one sweep; the next sweep continues from their end."""


@dataclass(frozen=True, eq=False)
class Unimodal(Constraint):
    """Columns rise to one peak and fall from it, without negative entries: elution profiles, bands, epidemics.

    See Also
    --------
    NonNegative : No negative entries, and any number of peaks.
    Smooth : May be combined with it, as ``[Unimodal(), Smooth(10.0)]``.

    Notes
    -----
    The nearest column is that of all peaks whose isotonic regressions on both sides fit best (Bro and Sidiropoulos
    1998). One column is solved for at a time. Several local minima are possible. Standard errors are those of entries
    that are not zero, as if each could move by itself.

    References
    ----------
    R. Bro and N. D. Sidiropoulos, "Least squares algorithms under unimodality and non-negativity constraints",
    J. Chemometrics 12, 1998.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.constraints import Unimodal
    >>> Unimodal().project(np.array([[-1.0], [2.0], [1.0], [3.0], [0.0]])).ravel().tolist()
    [0.0, 1.5, 1.5, 3.0, 0.0]
    """

    is_cone: ClassVar[bool] = True

    def project(self, factor: Array) -> Array:
        columns = np.asarray(to_host(factor), dtype=np.float64)
        return asarray_like(np.stack([_one_peak(column) for column in columns.T], axis=1), factor)

    def free_variables(self, factor: Array, slope: Array) -> Array:
        xp = array_namespace(factor)
        return xp.astype(factor > 0, factor.dtype)

    def solve(self, gram: Array, product: Array, start: Array) -> Array:
        """Return the factor after some rounds over the columns, each solved for exactly."""
        factor = np.array(to_host(self.project(start)), dtype=np.float64)
        grams, products = (np.asarray(to_host(part), dtype=np.float64) for part in (gram, product))
        for _ in range(COLUMN_ROUNDS):
            for r in range(factor.shape[1]):
                own = np.broadcast_to(grams[..., r, r], factor.shape[:1])
                rest = products[:, r] - times_gram(factor, grams)[:, r] + own * factor[:, r]
                if np.all(own > 0):
                    factor[:, r] = _one_peak(rest / own, own)
        return asarray_like(factor, product)


def _one_peak(values: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """Return the nearest non-negative values that rise up to one place and fall from the next."""
    weights = np.ones(values.size) if weights is None else weights
    rising, falling = _increasing(values, weights)[0], _increasing(values[::-1], weights[::-1])[0]
    n = int(np.argmax(rising + falling[::-1]))
    right = _increasing(values[n:][::-1], weights[n:][::-1])[1]
    return np.concatenate([_increasing(values[:n], weights[:n])[1], right[::-1]])


def _increasing(values: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return what the isotonic regression of the first n values explains, for every n, and that of all values.

    By pooling adjacent violators; negative means become zero, which is the nearest such sequence without negative
    values.
    """
    explained, pools = [0.0], list[tuple[float, float, int, float]]()
    for value, weight in zip(values.tolist(), weights.tolist(), strict=True):
        total, mass, size = value * weight, weight, 1
        while pools and pools[-1][0] * mass >= total * pools[-1][1]:
            before = pools.pop()
            total, mass, size = total + before[0], mass + before[1], size + before[2]
        own = total**2 / mass if total > 0 else 0.0
        pools.append((total, mass, size, own + (pools[-1][3] if pools else 0.0)))
        explained.append(pools[-1][3])
    means = [max(total / mass, 0.0) for total, mass, _, _ in pools]
    return np.array(explained), np.repeat(means, [size for _, _, size, _ in pools])
