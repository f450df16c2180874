"""Non-orthogonal joint diagonalization by sweeps over pairs: rotations with shears, or with hyperbolic rotations."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from codiag._arrays import (
    Array,
    array_namespace,
    asarray_like,
    conjugate,
    identity,
    is_hermitian,
    real_part,
    squared_magnitudes,
    to_host,
    to_namespace,
)
from codiag.diagonalize._base import Diagonalizer
from codiag.diagonalize._fixed_point import Iterate
from codiag.diagonalize._jacobi import (
    Round,
    balance_rows,
    on_device,
    pair_entries,
    paired_layout,
    repeat,
    rotation_sweep,
    round_robin,
    transform_pairs,
)
from codiag.diagonalize._rotations import at_saddle


@dataclass(frozen=True, kw_only=True)
class _ShearSweeps(Diagonalizer):
    """Sweeps over pairs from the identity, with rows scaled to equal diagonal energy before every third."""

    max_sweeps: int = 500
    complex_kinds: ClassVar[tuple[str, ...]] = ("hermitian", "symmetric")

    def iterate(self, stack: Array, rng: np.random.Generator) -> Iterate:
        # On matrices with empty diagonals shears make no progress, since every pair is at a saddle. Rotations do.
        return self._swept(stack, identity(stack.shape[1], stack), rotate_first=True)

    def iterate_from(self, stack: Array, rng: np.random.Generator, left: Array, right: Array) -> Iterate:
        transformed = left @ stack @ array_namespace(stack).matrix_transpose(right)
        unit = identity(stack.shape[1], stack)
        return self._swept(transformed, left, rotate_first=at_saddle(transformed, unit, unit))

    def _swept(self, stack: Array, start: Array, *, rotate_first: bool) -> Iterate:
        """Sweep over matrices that are given in the coordinates of a start."""
        entries = paired_layout(stack)
        inverse = identity(entries.shape[0], entries)
        rounds = on_device(round_robin(entries.shape[0]), entries)
        hermitian = is_hermitian(stack)
        if rotate_first:
            rotation_sweep(entries, inverse, rounds, hermitian=hermitian)

        def sweep(number: int) -> float:
            if number % 3 == 0:
                balance_rows(entries, inverse)
            return self._sweep(entries, inverse, rounds, hermitian=hermitian)

        n_sweeps, converged = repeat(sweep, entries, self.tol, self.max_sweeps)
        inverse = to_namespace(inverse, stack) @ start
        return Iterate(inverse, inverse, n_sweeps, converged)

    @abstractmethod
    def _sweep(self, entries: Array, inverse: Array, rounds: list[Round], *, hermitian: bool) -> float:
        """Transform every pair, in place; return the largest angle or shear."""


@dataclass(frozen=True, kw_only=True)
class QRJ1D(_ShearSweeps):
    r"""Non-orthogonal joint diagonalization by rotations and lower shears, the paper's non-orthogonal method.

    A sweep is one of Jacobi rotations followed by shears that add to row j the multiple

    .. math::

        a = - \frac{\sum_l \sum_{m \ne j} (D_l)_{im} (D_l)_{jm}}{\sum_l \sum_{m \ne j} (D_l)_{im}^2}, \quad |a| \le 1,

    of row i < j, which minimizes the off-diagonal energy.

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

    Notes
    -----
    **Assumptions.** Symmetric matrices.

    **Complexity.** :math:`O(n d^3)` operations a sweep in passes over memory; convergence is linear, in tens to
    hundreds of sweeps.

    **Guarantees.** The best bounded shear of each single pair; rows are scaled to equal diagonal energy before every
    third sweep, since the off-diagonal energy depends on their scale.

    **Limitations.** Fails to be fast: `UWEDGE` finds the same factors to first order in the noise, tens to thousands of
    times faster.

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

    def _sweep(self, entries: Array, inverse: Array, rounds: list[Round], *, hermitian: bool) -> float:
        largest_angle = rotation_sweep(entries, inverse, rounds, hermitian=hermitian)
        return max(largest_angle, shear_sweep(entries, inverse, rounds, hermitian=hermitian))


@dataclass(frozen=True, kw_only=True)
class LUJ1D(_ShearSweeps):
    """Non-orthogonal joint diagonalization by lower, then upper shears.

    The variant of `QRJ1D` without rotations, except in the first sweep, which gives the matrices a diagonal.

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

    Notes
    -----
    **Assumptions.** Symmetric matrices.

    **Complexity.** That of `QRJ1D`.

    **Limitations.** Those of `QRJ1D`. Besides, it does not separate components with opposite diagonals, which shears
    alone cannot.

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

    def _sweep(self, entries: Array, inverse: Array, rounds: list[Round], *, hermitian: bool) -> float:
        upper = [(q, p) for p, q in rounds]
        return max(shear_sweep(entries, inverse, order, hermitian=hermitian) for order in (rounds, upper))


def shear_sweep(entries: Array, inverse: Array, rounds: list[Round], *, hermitian: bool = False) -> float:
    """Add to row q of every pair the multiple of row p that minimizes the off-diagonal energy; return the largest."""
    xp = array_namespace(entries)
    largest = []
    for p, q in rounds:
        source, target = entries[p], entries[q]
        cross, diagonal = entries[p, q], entries[q, q]
        overlap = xp.sum(conjugate(source) * target, axis=(1, 2)) - xp.sum(conjugate(cross) * diagonal, axis=1)
        energy = xp.sum(squared_magnitudes(source), axis=(1, 2)) - xp.sum(squared_magnitudes(cross), axis=1)
        shear = -overlap / xp.where(energy > 0, energy, xp.ones_like(energy))
        sizes = xp.abs(shear)
        shear = xp.where(sizes > 1, shear / xp.where(sizes > 1, sizes, xp.ones_like(sizes)), shear)
        largest.append(xp.clip(xp.max(sizes), None, 1.0))
        one, zero = xp.ones_like(shear), xp.zeros_like(shear)
        transform_pairs(entries, inverse, (p, q), (one, zero, shear, one), hermitian=hermitian)
    return float(xp.max(xp.stack(largest)))


@dataclass(frozen=True, kw_only=True)
class JDi(Diagonalizer):
    r"""Non-orthogonal joint diagonalization by the J-Di method: slow and robust.

    Each pair is transformed by a rotation and a hyperbolic rotation that together minimize its off-diagonal energy.
    With :math:`g = ((d_p + d_q)/2,\ (d_p - d_q)/2,\ D_{pq})`, :math:`G = \sum_l g g^\top` and
    :math:`J = \mathrm{diag}(-1, 1, 1)`, they follow from the eigenvector of :math:`G v = \tau J v` for the median
    :math:`\tau`. The optima of disjoint pairs do not depend on each other, so that a whole round is applied at once.
    Rows are scaled to equal diagonal energy before each sweep.

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
    UWEDGE : Faster, and the default.
    QRJ1D : The paper's method for factors that are not orthogonal.

    Notes
    -----
    **Assumptions.** Matrices that are real symmetric or Hermitian; complex symmetric ones have no closed form. Of
    Hermitian pairs, the real parts and the imaginary parts are transformed in turn.

    **Complexity.** :math:`O(n d^3)` operations a sweep in passes over memory, and :math:`d^2 / 2` eigenproblems of size
    3 on the host: minutes for size 120 and more.

    **Guarantees.** The optimum of the 2 x 2 problem of every pair, in closed form.

    **Limitations.** Fails only to be fast; `UWEDGE` falls back on it if its own steps do not converge.

    References
    ----------
    A. Souloumiac, "Nonorthogonal joint diagonalization by combining Givens and hyperbolic rotations", IEEE Trans.
    Signal Process. 57(6), 2009.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.diagonalize import JDi
    >>> rng = np.random.default_rng(0)
    >>> factor = rng.standard_normal((4, 4))
    >>> fit = JDi()([factor @ np.diag(rng.standard_normal(4)) @ factor.T for _ in range(5)])
    >>> fit.converged, fit.off_diagonal < 1e-20
    (True, True)
    """

    complex_kinds: ClassVar[tuple[str, ...]] = ("hermitian",)

    def iterate(self, stack: Array, rng: np.random.Generator) -> Iterate:
        return hyperbolic_sweeps(stack, self.tol, self.max_sweeps)


def hyperbolic_sweeps(stack: Array, tol: float, max_sweeps: int, start: Array | None = None) -> Iterate:
    """Sweep, from the identity or a given start, until every transformation is the identity up to the tolerance."""
    xp = array_namespace(stack)
    hermitian = is_hermitian(stack)
    if start is not None:
        moved_stack = start @ stack @ xp.matrix_transpose(conjugate(start) if hermitian else start)
    entries = paired_layout(stack if start is None else moved_stack)
    inverse = identity(entries.shape[0], entries) if start is None else xp.asarray(start, copy=True)
    rounds = on_device(round_robin(entries.shape[0]), entries)

    def sweep(_: int) -> float:
        balance_rows(entries, inverse)
        return max(_transform_round(entries, inverse, pairs, hermitian=hermitian) for pairs in rounds)

    n_sweeps, converged = repeat(sweep, entries, tol, max_sweeps)
    inverse = to_namespace(inverse, stack)
    return Iterate(inverse, inverse, n_sweeps, converged)


def _transform_round(entries: Array, inverse: Array, pairs: Round, *, hermitian: bool) -> float:
    """Transform every pair of a round, in place; return the largest sine, circular or hyperbolic.

    The second row of a Hermitian pair is multiplied by the phase with which the real parts of its entries have most
    energy. The real parts are transformed, and then, after a quarter turn of the phase, the imaginary parts.
    """
    if not hermitian:
        return _transform_real_parts(entries, inverse, pairs)
    squares = np.sum(to_host(pair_entries(entries, pairs)[2]) ** 2, axis=1)
    largest = []
    for phases in (np.exp(0.5j * np.angle(squares)), np.full(squares.shape, 1j)):
        zero, one = np.zeros(squares.shape), np.ones(squares.shape)
        transform_pairs(
            entries, inverse, pairs, asarray_like(np.stack([one, zero, zero, phases]), entries), hermitian=True
        )
        largest.append(_transform_real_parts(entries, inverse, pairs, hermitian=True))
    return max(largest)


def _transform_real_parts(entries: Array, inverse: Array, pairs: Round, *, hermitian: bool = False) -> float:
    xp = array_namespace(entries)
    first, second, cross = (real_part(part) for part in pair_entries(entries, pairs))
    vectors = xp.stack([(first + second) / 2, (first - second) / 2, cross], axis=1)
    v1, v2, v3 = _median_eigenvectors(to_host(vectors @ xp.matrix_transpose(vectors)).astype(np.float64))
    w = np.sqrt(1 + v1**2)
    cosh = np.sqrt((1 + w) / 2)
    sinh = v1 / (2 * cosh)
    cos = np.sqrt((1 + v3 / w) / 2)
    sin = -v2 / (2 * cos * w)
    matrix = np.stack(
        [cos * cosh - sin * sinh, cos * sinh + sin * cosh, cos * sinh - sin * cosh, cos * cosh + sin * sinh]
    )
    transform_pairs(entries, inverse, pairs, asarray_like(matrix, entries), hermitian=hermitian)
    return float(max(np.max(np.abs(sinh)), np.max(np.abs(sin))))


def _median_eigenvectors(gram: np.ndarray) -> np.ndarray:
    """Solve G v = tau J v, J = diag(-1, 1, 1), for the median tau; scale to v^T J v = 1, v_3 >= 0. Shape (3, pairs)."""
    signs = np.array([-1.0, 1.0, 1.0])
    values, vectors = np.linalg.eig(signs[:, None] * gram)
    median = np.argsort(values.real, axis=1)[:, 1]
    v = np.take_along_axis(vectors.real, median[:, None, None], axis=2)[:, :, 0]
    length = np.sum(signs * v * v, axis=1)
    # The identity, (0, 0, 1), if the pair is diagonal already or if rounding errors leave no such direction.
    usable = (length > 0) & (gram[:, 2, 2] > (10 * np.finfo(float).eps) ** 2 * np.trace(gram, axis1=1, axis2=2))
    v = np.where(usable[:, None], v / np.sqrt(np.where(usable, length, 1))[:, None], [0.0, 0.0, 1.0])
    return (v * np.where(v[:, 2] < 0, -1, 1)[:, None]).T
