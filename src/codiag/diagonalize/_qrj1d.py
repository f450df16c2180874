"""Non-orthogonal joint diagonalization by rotations and shears of pairs."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from codiag._arrays import Array, array_namespace, epsilon, identity, moved
from codiag.diagonalize._base import Diagonalizer
from codiag.diagonalize._fixed_point import Iterate
from codiag.diagonalize._jacobi import (
    Round,
    balance_rows,
    on_device,
    paired_layout,
    rotation_sweep,
    round_robin,
    transform_pairs,
)
from codiag.diagonalize._rotations import at_saddle


@dataclass(frozen=True, kw_only=True)
class _ShearSweeps(Diagonalizer):
    """Sweeps over pairs from the identity, with rows scaled to equal diagonal energy before every third."""

    max_sweeps: int = 500

    def iterate(self, stack: Array, rng: np.random.Generator) -> Iterate:
        # On matrices with empty diagonals shears make no progress, since every pair is at a saddle. Rotations do.
        return self._swept(stack, identity(stack.shape[1], stack), rotate_first=True)

    def iterate_from(self, stack: Array, rng: np.random.Generator, left: Array, right: Array) -> Iterate:
        transformed = left @ stack @ array_namespace(stack).matrix_transpose(left)
        unit = identity(stack.shape[1], stack)
        return self._swept(transformed, left, rotate_first=at_saddle(transformed, unit, unit))

    def _swept(self, stack: Array, start: Array, *, rotate_first: bool) -> Iterate:
        """Sweep over matrices that are given in the coordinates of a start."""
        size = stack.shape[1]
        entries = paired_layout(stack)
        inverse = identity(size, entries)
        rounds = on_device(round_robin(size), entries)
        if rotate_first:
            rotation_sweep(entries, inverse, rounds, size)
        tol = max(self.tol, 4 * epsilon(entries))
        n_sweeps, converged = 0, False
        while n_sweeps < self.max_sweeps and not converged:
            if n_sweeps % 3 == 0:
                balance_rows(entries, inverse)
            converged = self._sweep(entries, inverse, rounds) < tol
            n_sweeps += 1
        inverse = moved(inverse, stack) @ start
        return Iterate(inverse, inverse, n_sweeps, converged)

    @abstractmethod
    def _sweep(self, entries: Array, inverse: Array, rounds: list[Round]) -> float:
        """Transform every pair, in place; return the largest angle or shear."""


@dataclass(frozen=True, kw_only=True)
class QRJ1D(_ShearSweeps):
    r"""Non-orthogonal joint diagonalization by rotations and lower shears, the paper's non-orthogonal method.

    A sweep is one of Jacobi rotations followed by shears that add to row j the multiple

    .. math::

        a = - \frac{\sum_l \sum_{m \ne j} (D_l)_{im} (D_l)_{jm}}{\sum_l \sum_{m \ne j} (D_l)_{im}^2}, \quad |a| \le 1,

    of row i < j, which minimizes the off-diagonal energy.

    **Needs** symmetric matrices. **Costs** :math:`O(n d^3)` operations a sweep in passes over memory; convergence is
    linear, in tens to hundreds of sweeps. **Guarantees** the best bounded shear of each single pair; rows are scaled to
    equal diagonal energy before every third sweep, since the off-diagonal energy depends on their scale. **Fails** to
    be fast: `UWEDGE` finds the same factors to first order in the noise, tens to thousands of times faster.

    Parameters
    ----------
    rank : int, optional
        Number of components, as in `Diagonalizer`.
    tol : float
        Stop when the largest entry of the relative step falls below it.
    max_sweeps : int
        Steps or sweeps before giving up, as in `Diagonalizer`.

    See Also
    --------
    UWEDGE : The same factors, faster.
    LUJ1D : The variant without rotations.
    Jacobi : For orthogonal factors.

    References
    ----------
    B. Afsari, "Simple LU and QR based non-orthogonal matrix joint diagonalization", ICA 2006.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.diagonalize import QRJ1D
    >>> rng = np.random.default_rng(0)
    >>> factor = rng.standard_normal((3, 3))
    >>> fit = QRJ1D()([factor @ np.diag(rng.standard_normal(3)) @ factor.T for _ in range(5)])
    >>> fit.converged, fit.off_diagonal < 1e-10
    (True, True)
    """

    handles_opposite_diagonals: ClassVar[bool] = True

    def _sweep(self, entries: Array, inverse: Array, rounds: list[Round]) -> float:
        largest_angle = rotation_sweep(entries, inverse, rounds, entries.shape[0])
        return max(largest_angle, shear_sweep(entries, inverse, rounds))


@dataclass(frozen=True, kw_only=True)
class LUJ1D(_ShearSweeps):
    """Non-orthogonal joint diagonalization by lower, then upper shears.

    The variant of `QRJ1D` without rotations, except in the first sweep, which gives the matrices a diagonal.

    **Needs** symmetric matrices. **Costs**, **guarantees** and **fails** as `QRJ1D`. Unlike `QRJ1D`, it cannot be used
    with `symmetrized`, since shears alone do not separate components with opposite diagonals.

    Parameters
    ----------
    rank : int, optional
        Number of components, as in `Diagonalizer`.
    tol : float
        Stop when the largest entry of the relative step falls below it.
    max_sweeps : int
        Steps or sweeps before giving up, as in `Diagonalizer`.

    See Also
    --------
    QRJ1D : The variant with rotations.
    UWEDGE : The same factors, faster.

    References
    ----------
    B. Afsari, "Simple LU and QR based non-orthogonal matrix joint diagonalization", ICA 2006.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.diagonalize import LUJ1D
    >>> rng = np.random.default_rng(0)
    >>> factor = rng.standard_normal((3, 3))
    >>> fit = LUJ1D()([factor @ np.diag(rng.standard_normal(3)) @ factor.T for _ in range(5)])
    >>> fit.converged, fit.off_diagonal < 1e-10
    (True, True)
    """

    def _sweep(self, entries: Array, inverse: Array, rounds: list[Round]) -> float:
        upper = [(q, p) for p, q in rounds]
        return max(shear_sweep(entries, inverse, rounds), shear_sweep(entries, inverse, upper))


def shear_sweep(entries: Array, inverse: Array, rounds: list[Round]) -> float:
    """Add to row q of every pair the multiple of row p that minimizes the off-diagonal energy; return the largest."""
    xp = array_namespace(entries)
    largest = []
    for p, q in rounds:
        source, target = entries[p], entries[q]
        cross, diagonal = entries[p, q], entries[q, q]
        overlap = xp.sum(source * target, axis=(1, 2)) - xp.sum(cross * diagonal, axis=1)
        energy = xp.sum(source * source, axis=(1, 2)) - xp.sum(cross * cross, axis=1)
        shear = xp.clip(-overlap / xp.where(energy > 0, energy, xp.ones_like(energy)), -1.0, 1.0)
        largest.append(xp.max(xp.abs(shear)))
        one, zero = xp.ones_like(shear), xp.zeros_like(shear)
        transform_pairs(entries, inverse, (p, q), (one, zero, shear, one))
    return float(xp.max(xp.stack(largest)))
